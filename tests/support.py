"""What several test files need: tools, planners, and drivers of the two kinds."""

from __future__ import annotations

import asyncio
import functools
import itertools
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from scikitplot.agent import (
    Agent,
    Approval,
    AsyncAgent,
    Decision,
    JsonlAuditSink,
    Limits,
    MemoryAuditSink,
    MemoryStore,
    Policy,
    RunState,
    SqliteStore,
    StateError,
    Tool,
    Toolset,
)
from scikitplot.agent.approval import agreed_answers_to
from scikitplot.agent.effects import (
    AskApprover,
    AskPlanner,
    CallTool,
    CheckAnswer,
    Commit,
    Raised,
    Reconcile,
    RunChild,
)
from scikitplot.agent.gates import Rules
from scikitplot.agent.ledger import Ledger
from scikitplot.agent.loop import Loop
from scikitplot.agent.perform import reconcile as perform_reconcile
from scikitplot.agent.signing import ApprovalKeys
from scikitplot.agent.state.head import read_head
from scikitplot.agent.state.marks import Marks
from scikitplot.agent.watch import Watch

WRITES = Policy(allow_effects={"read", "write", "external"})
FREE = Policy(allow_effects={"read", "write", "external"}, approval_effects=())
TEXT = {
    "type": "object",
    "properties": {"text": {"type": "string"}},
    "required": ["text"],
    "additionalProperties": False,
}


def script(*decisions: Decision | Callable[[RunState], Decision]) -> Callable[..., Decision]:
    """A planner that goes by the number of finished steps, and finishes after the last."""

    def planner(state: RunState, tools: Any) -> Decision:
        index = len(state.steps)
        if index >= len(decisions):
            return Decision.finish("end")
        decision = decisions[index]
        return decision if isinstance(decision, Decision) else decision(state)

    return planner


def writer(calls: list[Any], name: str = "save", **options: Any) -> Tool:
    """A tool with an effect, which notes each call."""
    options.setdefault("effect", "write")
    return Tool(
        name,
        lambda text: calls.append(text) or f"saved {len(calls)}",  # type: ignore[func-returns-value]
        parameters=TEXT,
        **options,
    )


def approve(state: RunState, granted: bool = True, approver: str = "ann") -> list[Approval]:
    assert state.pending is not None
    return [Approval(state.pending.digest, granted, approver)]


class ByAgent:
    """Drive through `Agent`, with a store and a trail in memory."""

    def __init__(
        self,
        tools: Iterable[Tool],
        planner: Callable[..., Any],
        *,
        store: MemoryStore | None = None,
        audit: MemoryAuditSink | None = None,
        **options: Any,
    ) -> None:
        self.store = MemoryStore() if store is None else store
        self.audit = MemoryAuditSink() if audit is None else audit
        self.agent: Any = Agent(tools, planner, store=self.store, audit=self.audit, **options)

    def run(self, goal: str = "goal", *, tainted: bool = False) -> RunState:
        return self.agent.run(goal, tainted=tainted)

    def resume(self, state: RunState, approvals: Sequence[Approval] = ()) -> RunState:
        return self.agent.resume(state.run_id, approvals=approvals)

    @property
    def records(self) -> list[Any]:
        return self.audit.records


class ByAsync(ByAgent):
    """The same through `AsyncAgent`, in an event loop of its own for each session."""

    def __init__(self, tools: Iterable[Tool], planner: Callable[..., Any], **options: Any) -> None:
        super().__init__(tools, planner, **options)
        options.update(store=self.store, audit=self.audit)
        self.agent: Any = AsyncAgent(tools, planner, **options)

    def run(self, goal: str = "goal", *, tainted: bool = False) -> RunState:
        return asyncio.run(self.agent.run(goal, tainted=tainted))

    def resume(self, state: RunState, approvals: Sequence[Approval] = ()) -> RunState:
        return asyncio.run(self.agent.resume(state.run_id, approvals=approvals))


class ByHand:
    """Drive the loop's generator itself: no thread, no clock, no disk, not even a store."""

    _ids = itertools.count(1)

    def __init__(
        self,
        tools: Iterable[Tool],
        planner: Callable[..., Any],
        *,
        policy: Policy | None = None,
        limits: Limits | None = None,
        approver: Callable[..., Any] | None = None,
        done: Callable[..., Any] | None = None,
        store: dict[str, Any] | None = None,
        audit: list[Any] | None = None,
        approval_keys: dict[str, bytes] | None = None,
        reconcile: Callable[..., Any] | None = None,
        now: Callable[[], float] | None = None,
    ) -> None:
        keys = None if approval_keys is None else ApprovalKeys(approval_keys)
        self.rules = Rules(Toolset(tools), policy or Policy(), limits or Limits(), keys)
        self.now = self.clock if now is None else now
        self.planner, self.approver, self.done = planner, approver, done
        self.reconcile = reconcile
        self.store = {} if store is None else store
        self.records: list[Any] = [] if audit is None else audit
        self.time = itertools.count()

    def clock(self) -> float:
        return float(next(self.time))

    def run(self, goal: str = "goal", *, tainted: bool = False) -> RunState:
        watch, marks = Watch(self.clock, self.now), Marks("goal" if tainted else None)
        ledger = Ledger(f"{next(self._ids):064x}", goal, watch, marks=marks)
        return self._drive(ledger, self._loop(ledger).start("0" * 64))

    def resume(self, state: RunState, approvals: Sequence[Approval] = ()) -> RunState:
        text, steps, _ = self.store[state.run_id]
        head = read_head(text)
        if head.status.has_ended:
            return RunState.view(text, steps)
        request = head.open.request if head.open else None
        answers = agreed_answers_to(request.digest, approvals) if request else []
        given = [(answer, None) for answer in answers]
        ledger = Ledger.resumed(head, text, steps, head.audit_head, Watch(self.clock, self.now))
        return self._drive(ledger, self._loop(ledger).resume(head.open, given, 0))

    def _loop(self, ledger: Ledger) -> Loop:
        return Loop(
            ledger,
            self.rules,
            has_approver=self.approver is not None,
            has_done=self.done is not None,
            has_reconcile=self.reconcile is not None,
        )

    def _drive(self, ledger: Ledger, effects: Any) -> RunState:
        reply = None
        while True:
            try:
                effect = effects.send(reply)
            except StopIteration:
                return ledger.view()
            reply = self._perform(effect)

    def _perform(self, effect: Any) -> Any:
        if isinstance(effect, Commit):
            held = self.store.get(effect.run_id, (None, [], None))
            if held[2] != effect.revision:
                raise StateError("claimed by another")
            self.records.extend(effect.records)
            revision = 0 if effect.revision is None else effect.revision + 1
            self.store[effect.run_id] = effect.head, [*held[1], *effect.steps], revision
            return None
        if isinstance(effect, RunChild):  # none is ever begun here
            return None
        if isinstance(effect, Reconcile):
            return perform_reconcile(self.reconcile, *effect)  # type: ignore[arg-type]
        functions: dict[type, tuple[Any, str]] = {
            AskPlanner: (self.planner, "planner_failed"),
            AskApprover: (self.approver, ""),
            CheckAnswer: (self.done, "done_failed"),
        }
        try:
            if isinstance(effect, CallTool):
                return effect.tool.invoke(effect.arguments)
            function, code = functions[type(effect)]
            return function(*effect)
        except Exception as error:
            return Raised(
                code if not isinstance(effect, CallTool) else "tool_failed",
                f"raised {type(error).__name__}",
            )


class Dies(BaseException):
    """The process dies here."""


class Fuse:
    """Counts the points at which a process may die, and blows at one of them."""

    left: int | None = None

    def point(self) -> None:
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                self.left = None
                raise Dies


KINDS = ("memory", "one object", "files")


def dying_stores(kind: str, folder: Path, fuse: Fuse) -> tuple[Any, Any]:
    """Return a store and a trail that may die before and after each write."""

    def around(cls: type, name: str) -> Any:
        write = getattr(cls, name)

        @functools.wraps(write)
        def dies(*args: Any, **kwargs: Any) -> None:
            fuse.point()
            write(*args, **kwargs)
            fuse.point()

        return type(cls.__name__, (cls,), {name: dies})

    if kind == "memory":
        return around(MemoryStore, "commit")(), around(MemoryAuditSink, "append")()
    store = around(SqliteStore, "commit")(folder / "runs.db")
    if kind == "one object":
        return store, store
    return store, around(JsonlAuditSink, "append")(folder / "trail.jsonl")
