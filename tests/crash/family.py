"""The agents that are killed as one: a parent, its child and its grandchild.

What is said of a run here is said of the parent's; the others are below it in the same store.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from crash import workload
from crash.workload import TEXT, Oracle, Point, go_on, no_point

from scikitplot.agent import Agent, Approval, Decision, Limits, Policy, RunState, Tool, delegate
from scikitplot.agent.children import child_run

__all__ = ["fault_of", "go_on", "look", "make_agent", "runs_of"]

LOOK = Decision.act("look", {"text": "erste Seite ∀"})
NOTE = Decision.act("note", {"text": "notiz 🎈"})
SEND = Decision.act("send", {"text": "braucht ein Ja"})
PUT = Decision.act("put", {"text": "with a key"})
DELEGATE = Decision.act("below", {"goal": "grüße 🎈"})
PLANS = ([LOOK, DELEGATE, NOTE], [PUT, DELEGATE, NOTE], [LOOK, SEND, NOTE, PUT])
ANSWERS = ["the parent's", "the child's", "the grandchild's"]
CALLS = sum(map(len, PLANS))
DECISIONS = CALLS + len(PLANS)


def runs_of(run_id: str) -> list[str]:
    """Return the ids of the three runs, the parent's first."""
    runs = [run_id]
    for plan in PLANS[:-1]:
        runs.append(child_run(runs[-1], plan.index(DELEGATE)))
    return runs


def make_agent(store: Any, audit: Any, oracle: Oracle, point: Point = no_point) -> Agent:
    """Return the parent; `point` is called before and after each call of a function."""

    def tool(name: str, idempotent: bool, **options: Any) -> Tool:
        def function(text: str) -> Any:
            point(f"call {name}")
            oracle.effect(name, idempotent)
            point(f"effect {name}")
            return len(text)

        return Tool(name, function, parameters=TEXT, idempotent=idempotent, **options)

    def planner(depth: int) -> Callable[..., Decision]:
        def plan(state: RunState, tools: Any) -> Decision:
            point("planner")
            decisions = [*PLANS[depth], Decision.finish(ANSWERS[depth])]
            return decisions[len(state.steps)]

        return plan

    def approver(request: Any) -> Approval | None:
        point("approver")
        return None

    tools = [
        tool("look", True),
        tool("note", False, effect="write"),
        tool("send", False, effect="external"),
        tool("put", True, effect="write"),
    ]
    options: dict[str, Any] = {
        "policy": Policy({"read", "write", "external"}, approval_effects={"external"}),
        "limits": Limits(max_steps=DECISIONS),
    }
    agent = Agent(tools, planner(2), **options)
    agent = Agent([*tools, delegate(agent, "below", "Does it.")], planner(1), **options)
    return Agent(
        [*tools, delegate(agent, "below", "Does it.")],
        planner(0),
        approver=approver,
        store=store,
        audit=audit,
        **options,
    )


def look(store: Any, audit: Any, run_id: str) -> dict[str, Any]:
    """Return what is saved of the parent's run, and of all three what they came to."""
    seen = workload.look(store, audit, run_id)
    saved = store.load(run_id)
    if saved is None:
        return seen
    head = json.loads(saved.head)
    if seen["request"]:
        seen["request"] = head["open"]["request"]["digest"]
    seen["usage"] = {**head["usage"], "seconds": 0}
    seen["starts"] = sum(json.loads(step)["attempts"] for step in saved.steps)
    seen["below"] = []
    for run in runs_of(run_id)[1:]:
        found = store.load(run)
        if found is not None:
            told = json.loads(found.head)
            seen["starts"] += sum(json.loads(step)["attempts"] for step in found.steps)
            seen["below"].append([told["status"], told["answer"]])
    seen["answer"] = head["answer"]
    return seen


def fault_of(seen: dict[str, Any], effects: list[dict[str, Any]]) -> str | None:
    """Return what is wrong with a run that ended; None if it came to what it always comes to."""
    below = [["completed", answer] for answer in ANSWERS[1:]]
    if seen["answer"] != ANSWERS[0] or seen["below"] != below:
        return f"it came to {seen['answer']}, and below to {seen['below']}"
    allowed = [{"executed"}, {"executed"}, {"executed", "interrupted"}, {"accepted"}]
    outcomes = seen["outcomes"]
    if len(outcomes) != 4 or not all(map(lambda one, may: one in may, outcomes, allowed)):
        return f"it ended with the steps {outcomes}"
    used = seen["usage"]
    if used["decisions"] != DECISIONS or used["tool_calls"] != seen["starts"]:
        return f"{used} was used up, and {seen['starts']} calls were started"
    sent = sum(line["tool"] == "send" for line in effects)
    return f"{sent} were sent" if sent > 1 else None
