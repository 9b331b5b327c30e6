"""The agent that is killed: its tools, its rule, and the oracle that saw every effect.

The oracle is a file outside the runtime. An effect is one line in it, appended and synced before
the tool returns, so what is in it happened and what is not did not.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from scikitplot.agent import (
    Agent,
    Approval,
    Decision,
    JsonlAuditSink,
    Limits,
    Policy,
    RunState,
    Tool,
    ToolError,
    current_call,
    read_audit,
    verify_audit,
)

GOAL = "grüße 🎈 an alle"
TEXT = {
    "type": "object",
    "properties": {"text": {"type": "string"}},
    "required": ["text"],
    "additionalProperties": False,
}


Point = Callable[[str], None]


def no_point(label: str) -> None:
    """Where nothing dies."""


# Kept, so that a harness that wraps `os` elsewhere does not reach the oracle.
_open, _write, _fsync, _close = os.open, os.write, os.fsync, os.close


class Oracle:
    """The world outside: a file with one line for each effect."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def effect(self, tool: str, idempotent: bool) -> None:
        call = current_call()
        line = json.dumps(
            {
                "run": call.run_id,
                "step": call.step,
                "tool": tool,
                "key": call.idempotency_key,
                "attempt": call.attempt,
                "idempotent": idempotent,
            }
        )
        fd = _open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        try:
            _write(fd, f"{line}\n".encode())
            _fsync(fd)
        finally:
            _close(fd)

    def lines(self) -> list[dict[str, Any]]:
        if not self.path.exists():
            return []
        return [json.loads(line) for line in self.path.read_text().splitlines()]


PLAN: list[Decision] = [
    Decision.act("look", {"text": "erste Seite ∀"}),
    Decision.act("note", {"text": "notiz 🎈" * 40}, reason="weil ich es will"),
    Decision.act("forbidden", {"text": "darf nicht"}),
    Decision.act("send", {"text": "braucht ein Ja"}),
    Decision.act("put", {"text": "with a key"}),
    Decision.act("look", {"text": "erste Seite ∀"}),
    Decision.act("fail", {"text": "says something"}),
    Decision.act("send", {"text": "asks the approver"}),
    Decision.finish({"answer": "too early"}),
    Decision.act("note", {"text": "the last one"}),
    Decision.finish({"answer": "fertig 🎈"}),
]
PAUSES_AT = 3
OUTCOMES = {2: "denied", 6: "failed", 8: "rejected", 10: "accepted"}  # all others are executed


def make_agent(
    store: Any, audit: Any, oracle: Oracle, point: Point = no_point, *, scale: int = 1
) -> Agent:
    """Return the agent; `point` is called before and after each call of its functions.

    The long results are `scale` times as long.
    """

    def tool(name: str, act: Callable[[str], Any], idempotent: bool, **options: Any) -> Tool:
        def function(text: str) -> Any:
            point(f"call {name}")
            oracle.effect(name, idempotent)
            point(f"effect {name}")
            return act(text)

        return Tool(name, function, parameters=TEXT, idempotent=idempotent, **options)

    def fail(text: str) -> None:
        raise ToolError(f"{text} 🎈")

    def planner(state: RunState, tools: Any) -> Decision:
        point("planner")
        return PLAN[len(state.steps)]

    def approver(request: Any) -> Approval | None:
        point("approver")
        return None if request.step == PAUSES_AT else Approval(request.digest, True, "ann")

    def done(answer: Any, state: RunState) -> bool | str:
        point("done")
        return answer != {"answer": "too early"} or "zu früh"

    tools = [
        tool(
            "look", lambda text: {"page": [f"{text} {n} äöü 🎈" for n in range(120 * scale)]}, True
        ),
        tool("note", lambda text: len(text), False, effect="write"),
        tool("forbidden", lambda text: None, False, effect="write"),
        tool("send", lambda text: "sent", False, effect="external"),
        tool("put", lambda text: text * 100 * scale, True, effect="write"),
        tool("fail", fail, False, effect="write"),
    ]
    policy = Policy(
        allow_effects={"read", "write", "external"},
        approval_effects={"external"},
        deny_tools={"forbidden"},
    )
    return Agent(
        tools,
        planner,
        policy=policy,
        limits=Limits(max_steps=40),
        approver=approver,
        done=done,
        store=store,
        audit=audit,
    )


def look(store: Any, audit: Any, run_id: str) -> dict[str, Any]:
    """Return what is saved of a run, and what is wrong with the whole trail."""
    lines = read_audit(audit.path) if isinstance(audit, JsonlAuditSink) else audit.read()
    problems = verify_audit(lines, heads=store.heads())
    saved = store.load(run_id)
    if saved is None:
        return {
            "problems": [str(p) for p in problems if p.kind != "torn"],
            "status": None,
            "steps": [],
            "request": None,
        }
    head = json.loads(saved.head)
    asked = head["open"] is not None and head["open"]["request"] is not None
    return {
        "problems": [str(p) for p in problems if p.kind != "torn"],
        "torn": sum(p.kind == "torn" for p in problems),
        "status": head["status"],
        "revision": head["revision"],
        "steps": [hashlib.sha256(step.encode()).hexdigest()[:16] for step in saved.steps],
        "outcomes": [json.loads(step)["outcome"] for step in saved.steps],
        "request": head["open"]["digest"] if asked else None,
    }


def go_on(agent: Agent, run_id: str, seen: dict[str, Any]) -> RunState:
    """Start the run, or resume it, with a yes where it waits for one."""
    if seen["status"] is None:
        return agent.run(GOAL, run_id=run_id)
    yes = [Approval(seen["request"], True, "harness")] if seen["request"] else []
    return agent.resume(run_id, approvals=yes)


def runs_of(run_id: str) -> list[str]:
    """Return the ids of all runs that take part."""
    return [run_id]


def fault_of(seen: dict[str, Any], effects: list[dict[str, Any]]) -> str | None:
    """Return what is wrong with a run that ended; None if all its steps are there as they were."""
    counts = Counter(line["step"] for line in effects)
    outcomes = seen["outcomes"]
    if len(outcomes) != len(PLAN):
        return f"it ended with the steps {outcomes}"
    for step, outcome in enumerate(outcomes):
        usual = OUTCOMES.get(step, "executed")
        called = usual in ("executed", "failed")
        if outcome != usual and not (called and outcome == "interrupted"):
            return f"step {step} is {outcome}, not {usual}"
        if outcome in ("executed", "failed") and not counts[step]:
            return f"step {step} is {outcome}, and had no effect"
    return None
