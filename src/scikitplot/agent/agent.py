"""The agent: performs what the loop asks for, one effect at a time.

An `Agent` holds no run, so threads may share one. It decides nothing: what happens in a run is in
`loop` and `gates`. Here is what a run is begun with and resumed from, and who is asked.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable
from typing import Any

from .approval import Approval, ApprovalRequest, agreed_answers_to, is_digest
from .audit import AuditHead, AuditSink, MemoryAuditSink
from .decision import Decision
from .effects import AskApprover, AskPlanner, CallTool, CheckAnswer, Commit, Effect
from .errors import AuditError, StateError
from .gates import Rules
from .ledger import Ledger
from .loop import Effects, Loop
from .perform import ask, call_tool
from .policy import Limits, Policy
from .state import RunState
from .state.head import Head, check_steps, read_head
from .stores import StateStore
from .tools import Tool, Toolset
from .values import JSON, check_text, type_name

__all__ = ["Agent"]


class Agent:
    """Run a goal with a planner and tools, within a policy and limits.

    Parameters
    ----------
    tools : Toolset or iterable of Tool
        What the agent may call.
    planner : callable
        ``planner(state, tools) -> Decision``: `state` is a `RunState` of its own and `tools` what
        `Toolset.describe` gives. A model's adapter, or a rule.
    policy : Policy or None, default=None
        None is ``Policy()``: ``read`` tools without scopes, and nothing else.
    limits : Limits or None, default=None
        None is ``Limits()``: at most 16 decisions.
    approver : callable or None, default=None
        ``approver(request) -> Approval or None``, asked when an action needs approval. Without
        one, and where it answers None, raises or answers something else, the run pauses.
    done : callable or None, default=None
        ``done(answer, state) -> bool or str``: True takes the planner's answer; False or a reason
        rejects it, and the run goes on. None takes any answer.
    audit : AuditSink or None, default=None
        Where the trail goes; None is a new `MemoryAuditSink`, kept as `audit`.
    store : StateStore or None, default=None
        Where the state is saved at each step; None keeps it in the returned state alone.
    clock : callable or None, default=None
        Gives seconds, for limits and the times of steps; None is `time.monotonic`.
    now : callable or None, default=None
        Gives the wall-clock time that the trail shows; None is `time.time`.

    Raises
    ------
    TypeError, ValueError
        If an argument is of the wrong type or value.

    Examples
    --------
    >>> from scikitplot.agent import Agent, Decision, Limits, Tool, verify_audit
    >>> double = Tool("double", lambda n: 2 * n, parameters={
    ...     "type": "object", "properties": {"n": {"type": "integer"}},
    ...     "required": ["n"], "additionalProperties": False})
    >>> def planner(state, tools):
    ...     n = state.steps[-1].result if state.steps else 1
    ...     return Decision.act("double", {"n": n}) if n < 100 else Decision.finish(n)
    >>> agent = Agent([double], planner, limits=Limits(max_steps=20))
    >>> state = agent.run("the first power of two above 100")
    >>> state.answer, state.usage.tool_calls, verify_audit(agent.audit.records)
    (128, 7, [])
    """

    def __init__(
        self,
        tools: Toolset | Iterable[Tool],
        planner: Callable[[RunState, list[dict[str, JSON]]], Decision],
        *,
        policy: Policy | None = None,
        limits: Limits | None = None,
        approver: Callable[[ApprovalRequest], Approval | None] | None = None,
        done: Callable[[JSON, RunState], bool | str] | None = None,
        audit: AuditSink | None = None,
        store: StateStore | None = None,
        clock: Callable[[], float] | None = None,
        now: Callable[[], float] | None = None,
    ) -> None:
        if not callable(planner):
            raise TypeError(f"planner must be callable, not {type_name(planner)}")
        for name, kind, value in (("policy", Policy, policy), ("limits", Limits, limits)):
            if value is not None and not isinstance(value, kind):
                raise TypeError(f"{name} must be a {kind.__name__} or None, not {type_name(value)}")
        for name, function in (
            ("approver", approver),
            ("done", done),
            ("clock", clock),
            ("now", now),
        ):
            if function is not None and not callable(function):
                raise TypeError(f"{name} must be callable or None, not {type_name(function)}")
        _check_methods("audit", audit, ("append", "head", "read"))
        _check_methods("store", store, ("load", "commit"))
        self.tools = tools if isinstance(tools, Toolset) else Toolset(tools)
        self.planner = planner
        self.policy = Policy() if policy is None else policy
        self.limits = Limits() if limits is None else limits
        self.approver = approver
        self.done = done
        # Annotated as what it is by default, so that `agent.audit.records` needs no cast.
        self.audit: Any = MemoryAuditSink() if audit is None else audit
        self.store = store
        self._has_own_trail = audit is None
        self._clock = time.monotonic if clock is None else clock
        self._now = time.time if now is None else now

    def run(self, goal: str, *, run_id: str | None = None) -> RunState:
        """Start a run and drive it until it ends or pauses.

        Parameters
        ----------
        goal : str
            What the run is for; the planner reads it from the state. At most 100,000 characters.
        run_id : str or None, default=None
            64 lower-case hexadecimal digits; None draws a random one. A run id is used once.

        Returns
        -------
        RunState
            The last state: completed, stopped, failed, or awaiting approval.

        Raises
        ------
        TypeError, ValueError
            If an argument is of the wrong type or value, or the store or the trail holds a run of
            this id already.
        StateError, AuditError
            If the state or the trail cannot be written. What was committed before can be resumed.

        Examples
        --------
        >>> from scikitplot.agent import Agent, Decision
        >>> agent = Agent([], lambda state, tools: Decision.finish(state.goal.upper()))
        >>> agent.run("shout")
        <RunState ...: completed, 1 step>
        """
        check_text("goal", goal)
        if run_id is None:
            run_id = secrets.token_hex(32)
        else:
            check_run_id(run_id)
            self._refuse_used(run_id)
        ledger = Ledger(run_id, goal, self._clock, self._now)
        self._drive(self._loop(ledger).start(secrets.token_hex(32)))
        return ledger.view()

    def resume(self, state: RunState | str, *, approvals: Iterable[Approval] = ()) -> RunState:
        """Go on with a run that is paused or was cut off.

        Parameters
        ----------
        state : RunState or str
            The saved state, or its run id, which is read from the store.
        approvals : iterable of Approval, default=()
            Answers. Those that name the pending request are used, others are none. All gates run
            again on the tools, the policy and the limits as they are now.

        Returns
        -------
        RunState
            The last state, which replaces the one given, also where the run stays paused. A run
            that has ended is returned unchanged.

        Raises
        ------
        StateError
            If there is a newer state of the run, or another process goes on with it, or the trail
            does not hold the record that the state was saved after.
        TypeError, ValueError
            If an argument is of the wrong type or value, two approvals of the request disagree, or
            a run id is given without a store.

        Notes
        -----
        With a store, give the run id: the stored state alone counts. Without one the caller holds
        the states, and the trail tells whether a paused one was resumed before; with neither a
        store nor a shared trail, resuming one copy twice is the caller's own replay.

        Examples
        --------
        >>> from scikitplot.agent import Agent, Approval, Decision, MemoryStore, Policy, Tool
        >>> def planner(state, tools):
        ...     return Decision.finish("sent") if state.steps else Decision.act("send")
        >>> agent = Agent([Tool("send", lambda: None, effect="external")], planner,
        ...               policy=Policy(allow_effects={"external"}), store=MemoryStore())
        >>> paused = agent.run("send it")
        >>> yes = Approval(paused.pending.digest, granted=True, approver="ann")
        >>> agent.resume(paused.run_id, approvals=[yes]).answer
        'sent'
        """
        answers = _check_approvals(approvals)
        text, steps = self._load(state)
        head = read_head(text)
        check_steps(head, len(steps))
        if isinstance(state, str) and head.run_id != state:
            raise StateError("the store returned another run than the one it was asked for")
        if head.status.has_ended:
            return RunState.view(text, steps)
        request = None if head.open is None else head.open.request
        answers = [] if request is None else agreed_answers_to(request.digest, answers)
        trail, ahead = self._find_trail(head)
        ledger = Ledger.resumed(head, text, steps, trail, self._clock, self._now)
        self._drive(self._loop(ledger).resume(head.open, answers, ahead))
        return ledger.view()

    def _loop(self, ledger: Ledger) -> Loop:
        return Loop(
            ledger,
            Rules(self.tools, self.policy, self.limits),
            has_approver=self.approver is not None,
            has_done=self.done is not None,
        )

    def _drive(self, effects: Effects) -> None:
        reply: Any = None
        while True:
            try:
                effect = effects.send(reply)
            except StopIteration:
                return
            reply = self._perform(effect)

    def _perform(self, effect: Effect) -> Any:
        kind = type(effect)
        if kind is Commit:
            return self._commit(*effect)
        if kind is CallTool:
            return call_tool(effect)  # type: ignore[arg-type]
        if kind is AskPlanner:
            return ask("planner", "planner_failed", self.planner, *effect)
        if kind is AskApprover:
            return ask("approver", "", self.approver, *effect)  # type: ignore[arg-type]
        assert kind is CheckAnswer
        return ask("done criterion", "done_failed", self.done, *effect)  # type: ignore[arg-type]

    def _commit(
        self,
        run_id: str,
        records: Any,
        audit_head: AuditHead | None,
        head: str,
        steps: Any,
        revision: int | None,
    ) -> None:
        if records:
            self.audit.append(records, expected=audit_head)
        if self.store is not None:
            self.store.commit(run_id, head, steps, expected=revision)

    def _refuse_used(self, run_id: str) -> None:
        if self.store is not None and self.store.load(run_id) is not None:
            raise ValueError("run_id names a run that the store holds; a run id is used once")
        if self.audit.head(run_id) is not None:
            raise ValueError("run_id names a run that the trail holds; a run id is used once")

    def _load(self, state: RunState | str) -> tuple[str, list[str]]:
        if isinstance(state, RunState):
            text, steps = state.parts()
            if self.store is None:
                return text, steps
            run_id = state.run_id
        elif isinstance(state, str):
            text, steps, run_id = "", [], check_run_id(state)
            if self.store is None:
                raise ValueError("a run id can be resumed with a store only; pass the RunState")
        else:
            raise TypeError(f"state must be a RunState or a run id, not {type_name(state)}")
        saved = self.store.load(run_id)
        if saved is None:
            raise StateError(f"run {run_id[:12]}: the store does not hold it")
        stored = saved[0], list(saved[1])
        if not all(type(part) is str for part in (stored[0], *stored[1])):
            raise StateError(f"run {run_id[:12]}: the store returned something else than texts")
        if isinstance(state, RunState) and stored != (text, steps):
            raise StateError(
                f"run {run_id[:12]}: the store holds another state than revision "
                f"{state.revision} as it was given; resume it by its run id"
            )
        return stored

    def _find_trail(self, head: Head) -> tuple[AuditHead | None, int]:
        """Return what the run's trail ends with, and its records beyond the state."""
        run, known = head.run_id[:12], head.audit_head
        try:
            held = self.audit.head(head.run_id)
        except AuditError as error:
            raise StateError(f"run {run}: {error}") from error
        if held is None and self._has_own_trail:
            return None, 0  # nothing to compare with; the new trail goes on from the state's record
        held = None if held is None else AuditHead(*held)
        if held == known:
            return held, 0
        if held is None or self._digest_at(head.run_id, known.seq) != known.digest:
            raise StateError(
                f"run {run}: the trail does not hold record {known.seq}, after which the state was "
                "saved; pass the audit sink that the run was started with, or find what changed it"
            )
        if self.store is None:
            raise StateError(
                f"run {run}: the trail goes on after this state; it was resumed already"
            )
        return held, held.seq - known.seq

    def _digest_at(self, run_id: str, seq: int) -> str | None:
        return next((r.digest for r in self.audit.read(run_id) if r.seq == seq), None)

    def __repr__(self) -> str:
        names = [tool.name for tool in self.tools]
        return f"Agent(tools={names}, limits={self.limits})"


def check_run_id(run_id: object) -> str:
    """Return a run id that is one, or raise an error."""
    if type(run_id) is not str:
        raise TypeError(f"run_id must be a str, not {type_name(run_id)}")
    if not is_digest(run_id):
        raise ValueError("run_id must be 64 lower-case hexadecimal digits")
    return run_id


def _check_approvals(approvals: object) -> list[Approval]:
    if isinstance(approvals, (str, bytes, Approval)) or not isinstance(approvals, Iterable):
        raise TypeError(f"approvals must be an iterable of Approval, not {type_name(approvals)}")
    checked = []
    for approval in approvals:
        if type(approval) is not Approval:
            raise TypeError(f"approvals must hold Approval objects, not {type_name(approval)}")
        checked.append(approval)
    return checked


def _check_methods(name: str, value: object, methods: tuple[str, ...]) -> None:
    if value is None:
        return
    for method in methods:
        if not callable(getattr(value, method, None)):
            raise TypeError(
                f"{name} must have the methods {', '.join(methods)}; "
                f"{type_name(value)} has no {method}"
            )
