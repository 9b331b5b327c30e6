"""Recorded runs under another policy: each call judged again, nothing called.

Imports `replayed` and what stands below `loop`. Rules that hold here:

* the gates say what would be said, and `stops` what would end a run; no rule is written here again;
* what was recorded is fixed: a call is judged on the account as recorded up to it, since the
  planner's later decisions saw the recorded results;
* a run that cannot be read is reported and keeps no other from being judged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial, reduce
from typing import Any

from .approval import is_digest
from .audit.record import GENESIS
from .errors import AgentError, StateError
from .gates import MAX_ATTEMPTS, Ask, Denial, Proposal, Rules, judge
from .influence import Influence
from .ledger import Ledger
from .limits import Limits
from .policy import Policy
from .recorded import (
    Called,
    Trail,
    called_in,
    check_trail,
    delegations_above,
    is_sink,
    read_trail,
    verdict_of,
)
from .replayed import (
    ASKED_CODES,
    ReplayedRun,
    ReplayedStep,
    ReplayTotals,
    ReplayVerdict,
    Summary,
)
from .state import RunState, RunStatus, Step, StepOutcome
from .state.head import Head, check_steps, read_head
from .state.marks import Marks
from .stops import lacks_usage, repeats, stop_for
from .stores import StateStore
from .tools import Tool
from .toolset import Toolset
from .values import add_exactly, clean_text, encode, exact, type_name
from .watch import Watch

__all__ = ["Replay", "replay"]

_UNBOUNDED = Limits(2**62)
_BUDGET = ("max_steps", "max_tool_calls", "max_cost", "max_tokens", "max_seconds", "max_repeats")


def replay(
    state_or_store: RunState | StateStore,
    *,
    tools: Iterable[Tool],
    policy: Policy,
    limits: Limits | None = None,
    trail: Trail | None = None,
) -> Replay:
    """Judge recorded runs again, under another policy; nothing is called and nothing written.

    Each recorded call passes the gates once more, with the tools, the policy and the limits that
    are given, on the account as it was recorded up to it: what was called, spent and proposed
    before is what it was, since the planner's later decisions saw the recorded results. So what is
    told of a call is exact for this call; what a planner would have done after another answer
    nobody can tell. Where the limits would have ended the run, the calls from there on are not
    judged.

    A run that was delegated to (`delegate`) is judged with the tools and under the policy of its
    agent, where `tools` has the one that delegated to it. What it used counts for the run above, as
    the trail tells.

    A recorded answer counts for the step it was given for, by the approvers, the number and the
    seconds of the new policy, whatever the tool's definition is now. Signatures are not checked
    again.

    Parameters
    ----------
    state_or_store : RunState or StateStore
        One run, or all runs of a store.
    tools : iterable of Tool
        As the runs would have them.
    policy : Policy
        What to judge by.
    limits : Limits or None, default=None
        What to judge by; None for those that the trail records for the run. Without a trail nothing
        is bounded then, but what was denied for a limit stays denied.
    trail : AuditSink, iterable of AuditRecord, or None, default=None
        What tells who was asked and what each call cost. None takes the store itself, if it has
        the records, as a `SqliteStore` has that was the agent's ``audit``. With a store it must be
        a sink. Without a trail it is not known whether a person was asked before a call that ran,
        and calls cost what `tools` say.

    Returns
    -------
    Replay
        The runs, the totals, and a table. The runs are read and judged where it is iterated, or
        first shown.

    Raises
    ------
    TypeError, ValueError
        If an argument is of the wrong type, or two tools have one name.

    Examples
    --------
    >>> from scikitplot.agent import Agent, Decision, Policy, Tool, replay
    >>> def planner(state, tools):
    ...     return Decision.finish(None) if state.steps else Decision.act("ping")
    >>> tools = [Tool("ping", lambda: "pong")]
    >>> agent = Agent(tools, planner)
    >>> state = agent.run("ping")
    >>> replay(state, tools=tools, policy=Policy(deny_tools=["ping"]), trail=agent.audit)
    Recorded runs: 1, and changed: 1; calls: 1
      denied 1
    <BLANKLINE>
    run           step  what changes      call
    ...     0  denied            ping: allowed, now denied (tool_denied): ...
    """
    is_store = all(callable(getattr(state_or_store, name, None)) for name in ("load", "runs"))
    if not is_store and not isinstance(state_or_store, RunState):
        told = type_name(state_or_store)
        raise TypeError(f"state_or_store must be a RunState or a StateStore, not {told}")
    if not isinstance(policy, Policy):
        raise TypeError(f"policy must be a Policy, not {type_name(policy)}")
    if limits is not None and not isinstance(limits, Limits):
        raise TypeError(f"limits must be a Limits or None, not {type_name(limits)}")
    if trail is not None:
        run_id = state_or_store.run_id if isinstance(state_or_store, RunState) else None
        trail = check_trail(trail, run_id)
    elif is_sink(state_or_store):
        trail = state_or_store
    return Replay(
        state_or_store,
        trail,
        tools if isinstance(tools, Toolset) else Toolset(tools),
        policy,
        limits,
    )


class Replay:
    """Recorded runs, judged again. `replay` makes it.

    Iterating yields a `ReplayedRun` for each run, one at a time, so that any number of them takes
    the memory of one. Its ``str`` is a table of the totals and the first 50 changes.

    Attributes
    ----------
    totals : ReplayTotals
        How much changes, over all runs.
    """

    def __init__(
        self,
        source: Any,
        trail: Any,
        tools: Toolset,
        policy: Policy,
        limits: Limits | None,
    ) -> None:
        self._source = source
        self._trail = trail
        self._tools = tools
        self._policy = policy
        self._limits = limits
        self._summary: Summary | None = None

    def __iter__(self) -> Iterator[ReplayedRun]:
        summary = Summary()
        for run in self._runs():
            summary.add(run)
            yield run
        self._summary = summary

    def _runs(self) -> Iterator[ReplayedRun]:
        source = self._source
        if isinstance(source, RunState):
            yield self._judge(source.run_id, *source.parts())
            return
        for run_id in source.runs():
            if not is_digest(run_id):
                yield ReplayedRun(clean_text(str(run_id), 100), error="this is no id of a run")
                continue
            try:
                saved = source.load(run_id)
            except AgentError as error:
                yield ReplayedRun(run_id, error=str(error))
                continue
            if saved is not None:  # or it was deleted meanwhile
                yield self._judge(run_id, saved.head, saved.steps, source)

    def _judge(
        self, run_id: str, head_text: str, texts: Sequence[str], store: Any = None
    ) -> ReplayedRun:
        try:
            head = read_head(head_text)
            check_steps(head, len(texts))
            if head.run_id != run_id:
                raise StateError("saved state: run_id is that of another run")
            steps = partial(
                called_in, head, texts, read_trail(self._trail, run_id, head.audit_head)
            )
            tools, policy = self._tools, self._policy
            for delegation in delegations_above(head, tools, store):
                tools, policy = delegation.agent.tools, policy & delegation.agent.policy
            return _Run(head, steps, tools, policy, self._limits).judged()
        except AgentError as error:
            return ReplayedRun(run_id, error=str(error))

    @property
    def totals(self) -> ReplayTotals:
        """How much changes, over all runs."""
        return self._whole().totals

    def _whole(self) -> Summary:
        if self._summary is None:
            for _ in self:
                pass
        assert self._summary is not None, "a whole pass leaves it"
        return self._summary

    def table(self, *, width: int = 100, encoding: str = "utf-8") -> str:
        """Return the totals and the first changes as lines of text.

        Parameters
        ----------
        width : int, default=100
            Columns, at least 60.
        encoding : str, default="utf-8"
            Of the place where it is shown.
        """
        return self._whole().table(width, encoding)

    def __repr__(self) -> str:
        return self.table()


class _Run:
    """One run; its ledger is the account as it was recorded up to the call that is judged."""

    def __init__(
        self,
        head: Head,
        steps: Callable[[], Iterator[Called]],
        tools: Toolset,
        policy: Policy,
        limits: Limits | None,
    ) -> None:
        self._head = head
        self._steps = steps
        self._tools = tools
        self._policy = policy
        self._limits = limits
        by_goal = head.marks.tainted == "goal"
        first_secret = "goal" if head.marks.secret == "goal" else None
        marks = Marks("goal" if by_goal else None, first_secret)
        self._ledger = Ledger(head.run_id, head.goal, Watch(float, float), marks=marks)
        self._influence: Influence | None = None
        if policy.flow is not None:
            self._influence = Influence(policy.flow, None if by_goal else head.goal)

    def judged(self) -> ReplayedRun:
        """Return the run, judged as far as the limits let it go."""
        ledger = self._ledger
        judged: list[ReplayedStep] = []
        for called in self._steps():
            decision = called.decision
            ledger.watch.seconds = called.started
            reason = self._stop_before(called)
            if reason is not None:
                left = (step for step in self._steps() if step.index >= called.index)
                calls = sum(step.decision.kind == "act" for step in left)
                return ReplayedRun(ledger.run_id, tuple(judged), (called.index, reason), calls)
            ledger.count_decision(decision.usage)
            code = called.code
            if decision.kind == "act":
                judged.append(self._judge(called))
                code = judged[-1].after.code
            if called.text is not None:
                text = called.text
                if code != called.code and "max_repeats" in (code, called.code):
                    # By the code of the last step a run stops for its repetitions.
                    text = replace(Step.from_json(text), code=code).to_json()
                ledger.steps.append(text)
                self._learn(called, called.text)
        return ReplayedRun(ledger.run_id, tuple(judged), goes_on=self._goes_on())

    def _stop_before(self, called: Called) -> str | None:
        """Return the limit that would end the run before a step; its own never did."""
        if self._limits is None:
            return None
        stop = stop_for(self._ledger, self._limits)
        if stop is not None:
            return stop.stop_reason
        return "usage_not_reported" if lacks_usage(called.decision.usage, self._limits) else None

    def _goes_on(self) -> bool:
        head, limits = self._head, self._limits
        if (
            limits is None
            or head.status is not RunStatus.STOPPED
            or head.stop_reason == "cancelled"
        ):
            return False
        self._ledger.watch.seconds = head.usage.seconds
        return stop_for(self._ledger, limits) is None

    def _judge(self, called: Called) -> ReplayedStep:
        """Judge a call as it was judged last, and count its starts."""
        ledger, started = self._ledger, called.attempts
        costs = [] if called.told is None else called.told.costs
        if len(costs) != started:
            tool = self._tools.get(called.decision.tool or "")
            costs = [exact(0.0 if tool is None else tool.cost)] * min(started, MAX_ATTEMPTS)
        if called.outcome is not StepOutcome.DENIED and called.request is None:
            started = max(0, started - 1)  # its last start came after it was judged
        ledger.tool_calls += started
        ledger.cost = reduce(add_exactly, costs[:started], ledger.cost)
        before = verdict_of(called)
        judged = ReplayedStep(
            called.index, called.decision.tool or "", before, self._verdict(called, before)
        )
        ledger.tool_calls += called.attempts - started
        ledger.cost = reduce(add_exactly, costs[started:], ledger.cost)
        if called.told is not None and called.told.child is not None:
            ledger.count_child(called.told.child)
            ledger.marks = ledger.marks.after_child(called.told.child_marks, called.index)
        return judged

    def _learn(self, called: Called, text: str) -> None:
        """Take notice of what a call returned, with its tool as it is declared now."""
        if self._influence is None:
            return
        ledger = self._ledger
        ledger.marks = self._influence.replay([text], self._tools, ledger.marks)
        came_back = called.outcome in (StepOutcome.EXECUTED, StepOutcome.FAILED)
        if came_back and called.decision.tool not in self._tools and ledger.marks.tainted is None:
            ledger.marks = ledger.marks._replace(tainted=called.index)  # nobody declares it trusted

    def _verdict(self, called: Called, before: ReplayVerdict) -> ReplayVerdict:
        """Return what the gates say of a call now."""
        limits, told = self._limits, called.told
        if limits is None and told is not None:
            limits = told.judged_by
        rules = Rules(self._tools, self._policy, limits or _UNBOUNDED)
        proposal = self._propose(called, rules.limits)
        verdict, asks = judge(proposal, rules), False
        if limits is None and called.code in _BUDGET and not isinstance(verdict, Denial):
            return before  # for a limit that is not known
        if isinstance(verdict, Ask):
            asks = True
            if called.code == "approval_stale" or (
                called.code in ASKED_CODES and called.answers is None
            ):
                return before  # what was answered is not known, or was to another action
            if called.asked_at is not None:
                proposal.request = proposal.ask(verdict.reasons, called.asked_at)
                proposal.now = called.asked_at
                if told is not None and told.denied_at is not None:
                    proposal.now = told.denied_at
            # A recorded answer is one to this step, whatever its tool's definition is now.
            proposal.answers = [
                answer._replace(approval=replace(answer.approval, digest=proposal.digest()))
                for answer in called.answers or ()
            ]
            verdict = judge(proposal, rules)
        if isinstance(verdict, Denial):
            return ReplayVerdict("denied", *verdict)
        if isinstance(verdict, Ask):
            return ReplayVerdict("asks", told="; ".join(verdict.reasons))
        return ReplayVerdict("granted" if asks else "allowed")

    def _propose(self, called: Called, limits: Limits) -> Proposal:
        """Return a recorded decision as the gates see it; this alone makes proposals here."""
        ledger, arguments = self._ledger, called.decision.arguments
        text = encode(arguments)
        return Proposal(
            ledger.run_id,
            called.index,
            GENESIS if called.told is None else called.told.history,
            called.decision.tool or "",
            arguments,
            text,
            ": those of a saved step that could not be kept",
            ledger.spent(),
            repeats(ledger, limits, called.decision.tool, text),
            influence=self._influence,
            marks=ledger.marks,
        )
