"""How a proposed call is taken to its end: through the gates, to a person, to its tool.

Imports `gates`, `ledger` and what stands below them; the loop is built on this. The rules:

* a tool is called only after all five gates passed for exactly this action, and after the commit
  that holds the decision, the approval and the start of the call;
* a denial is the outcome of its step; the planner reads it and goes on;
* a call in flight starts again only if its tool is idempotent and defined as it was, through all
  gates, and `MAX_ATTEMPTS` times in all; before any other is called interrupted, ``reconcile`` is
  asked what became of it;
* a call that delegates is one run, whatever is cut off: it goes on, and none begins in its place;
* what that run used up is charged in the commit that closes the step.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from .answers import receive
from .approval import Approval
from .calls import Call, ReconcileRequest
from .children import Delegation, child_limits, child_run
from .decision import Decision
from .effects import (
    AskApprover,
    CallTool,
    Effect,
    Reconcile,
    RunChild,
    StopRequest,
    TrailMoved,
)
from .gates import UNKNOWN, Ask, Denial, Proposal, Rules, judge, why_not_again
from .influence import Influence
from .ledger import Ledger
from .limits import Limits
from .results import End, answer_fault, end_of
from .state import RunStatus, StepOutcome
from .state.head import Head, OpenStep
from .stops import repeats
from .tools import Tool
from .values import JSON, encode
from .working import WorkingStep

__all__ = ["Acting", "Effects"]

Effects: TypeAlias = "Generator[Effect, Any, None]"


class Acting:
    """The calls of one session of one run.

    Parameters
    ----------
    ledger : Ledger
        The run's account.
    rules : Rules
        Tools, policy, limits and keys.
    has_approver, has_reconcile : bool
        Whether there is somebody to ask.
    """

    def __init__(
        self, ledger: Ledger, rules: Rules, *, has_approver: bool, has_reconcile: bool
    ) -> None:
        self._ledger = ledger
        self._rules = rules
        self._has_approver = has_approver
        self._has_reconcile = has_reconcile
        self._influence: Influence | None = None
        if rules.policy.flow is not None:
            goal = None if ledger.marks.tainted == "goal" else ledger.goal
            self._influence = Influence(rules.policy.flow, goal)
            ledger.marks = self._influence.replay(ledger.steps, rules.tools, ledger.marks)

    def _commit(self) -> Generator[Effect, Any, TrailMoved | None]:
        """Commit all that is new, on top of a request to stop where there is one."""
        answer = yield self._ledger.commit()
        while type(answer) is StopRequest:
            answer = yield self._ledger.commit_after(answer)
        return answer  # type: ignore[no-any-return]

    def _propose(
        self,
        decision: Decision,
        step: WorkingStep,
        arguments: dict[str, JSON] | None,
        text: str,
        fault: str,
    ) -> Proposal:
        ledger = self._ledger
        return Proposal(
            ledger.run_id,
            len(ledger.steps),
            step.history,
            decision.tool or "",
            arguments,
            text,
            fault,
            ledger.spent(),
            repeats(ledger, self._rules.limits, decision.tool, text),
            ledger.salt,
            step.request,
            step.answers,
            0.0 if step.request is None else ledger.watch.time(),
            influence=self._influence,
            marks=ledger.marks,
        )

    # A call

    def _act(self, proposal: Proposal, step: WorkingStep) -> Effects:
        """Take a proposed call through the gates, and to its end if it gets that far."""
        ledger = self._ledger
        verdict = judge(proposal, self._rules)
        while type(verdict) is Ask:
            if not (yield from self._ask(proposal, step, verdict)):
                return
            verdict = judge(proposal, self._rules)
        ledger.take_answers(step)
        if type(verdict) is Denial:
            gate, code, error = verdict
            if step.attempt:
                error += f"; it was started before{UNKNOWN}"
            ledger.deny(gate, code, error)
            yield from self._commit()
        else:
            yield from self._call(proposal, step)

    def _ask(self, proposal: Proposal, step: WorkingStep, ask: Ask) -> Generator[Effect, Any, bool]:
        """Ask a person; return whether one more answer counts. Without one the run stays paused."""
        ledger = self._ledger
        request = step.request
        if request is None:
            step.answers, step.recorded = (), 0  # to an earlier request: who is asked anew answers
            request = proposal.request = proposal.ask(ask.reasons, ledger.watch.time())
            ledger.ask(step, request)
            yield from self._commit()
        elif step.recorded < len(step.answers):  # one of several that are needed
            ledger.record_answers(step)
            yield from self._commit()
        if not self._has_approver:
            return False
        asked = replace(request, arguments=json.loads(proposal.text))
        ledger.watch.tick()
        answer = yield AskApprover(asked)
        ledger.watch.skip()
        if answer is None:
            return False
        fault = answer_fault(answer, request)
        given = [(answer, ledger.watch.time())]
        ignored = [(None, fault)] if fault else self._receive(step, given, was_asked=True)
        if ignored:
            ledger.ignore_answers(ignored)
            yield from self._commit()
            return False
        proposal.answers = step.answers
        return True

    def _receive(
        self, step: WorkingStep, given: Sequence[tuple[Approval, float]], *, was_asked: bool
    ) -> Sequence[tuple[Approval | None, str]]:
        """Keep the answers that count; return the others with why they do not."""
        assert step.action is not None, "there is a request"
        policy, keys = self._rules.policy, self._rules.keys
        kept, ignored = receive(step.action, given, step.answers, policy, keys, was_asked=was_asked)
        step.answers = (*step.answers, *kept)
        return ignored

    def _left(self, step: WorkingStep) -> list[tuple[Approval, float]]:
        """Take the answers that are in no record yet out of a step, to be received."""
        left, step.answers = step.answers[step.recorded :], step.answers[: step.recorded]
        return [(answer.approval, answer.received_at) for answer in left]

    def _call(self, proposal: Proposal, step: WorkingStep) -> Effects:
        ledger = self._ledger
        tool, arguments = proposal.passed()
        action = proposal.digest()
        ledger.start_call(step, tool, action)
        yield from self._commit()
        if ledger.stop is not None:
            told = "the run was stopped before the call started"
            ledger.end_call(step, StepOutcome.INTERRUPTED, code="interrupted", error=told)
            yield from self._commit()
            return
        if isinstance(tool, Delegation):
            yield from self._join(proposal, step, tool)
            return
        place = ledger.run_id, proposal.step, step.attempt
        call = Call(*place, action, None, self._rules.depth)
        reply = yield CallTool(tool, arguments, call)
        end = end_of(reply, self._rules.limits.max_result_bytes)
        self._end_call(step, tool, proposal.text, end)
        yield from self._commit()

    def _end_call(self, step: WorkingStep, tool: Tool | None, text: str, end: End) -> None:
        """Close a call of which something came back; `text` is that of its arguments."""
        ledger, influence = self._ledger, self._influence
        # Whatever the outcome: the text of a `ToolError` is the tool's content too.
        ledger.marks = ledger.marks.after(tool, len(ledger.steps))
        ledger.end_call(step, *end)
        if influence is not None and tool is not None and end.outcome is StepOutcome.EXECUTED:
            influence.learn(tool, json.loads(text), json.loads(end.result))

    def _reopen(self, saved: OpenStep, step: WorkingStep) -> Effects:
        """Go on with a call that waits for a person, or was cut off."""
        arguments = saved.decision.arguments
        proposal = self._propose(saved.decision, step, arguments, encode(arguments), "")
        tool = self._rules.tools.get(proposal.name)
        if step.attempt and isinstance(tool, Delegation):
            yield from self._rejoin(proposal, step, tool)
            return
        reason = None if step.request else why_not_again(saved, proposal, self._rules.tools)
        if reason is None:
            yield from self._act(proposal, step)
        else:
            yield from self._give_up(saved, step, reason)

    def _give_up(self, saved: OpenStep, step: WorkingStep, reason: str) -> Effects:
        """Close a call that was cut off and does not start again; it is interrupted unless told."""
        ledger, tool = self._ledger, saved.decision.tool or ""
        arguments = saved.decision.arguments or {}
        text, end = encode(arguments), End(StepOutcome.INTERRUPTED, "null", "interrupted", reason)
        if arguments.keys() == {"goal"}:  # its tool may have been one that delegates
            yield from self._run_child(step, None, "", None, reason)
        if self._has_reconcile:
            place = ledger.run_id, saved.step, tool, arguments, step.attempt, step.action or ""
            reply = yield Reconcile(ReconcileRequest(*place))
            if reply is not NotImplemented:
                told = end_of(reply, self._rules.limits.max_result_bytes)
                is_known = told.outcome is StepOutcome.EXECUTED or told.code == "tool_error"
                unknown = end._replace(code=told.code, error=f"{reason}: {told.error}")
                end = told if is_known else unknown
            ledger.reconcile(step, end.outcome)
        if end.outcome is StepOutcome.INTERRUPTED:
            ledger.end_call(step, *end)
        else:
            self._end_call(step, self._rules.tools.get(tool), text, end)
        yield from self._commit()

    def _leave(self, saved: OpenStep, step: WorkingStep) -> Effects:
        """Close the open step of a run that is to stop: no person is asked, no call starts."""
        ledger = self._ledger
        ledger.status = RunStatus.RUNNING
        tool = self._rules.tools.get(saved.decision.tool or "")
        if step.request is not None or not step.attempt:
            return
        if isinstance(tool, Delegation):
            arguments = saved.decision.arguments
            proposal = self._propose(saved.decision, step, arguments, encode(arguments), "")
            yield from self._join(proposal, step, tool, stop=ledger.stop)
        else:
            reason = f"the call was cut off and the run was stopped{UNKNOWN}"
            yield from self._give_up(saved, step, reason)

    # A run that a call delegates to

    def _rejoin(self, proposal: Proposal, step: WorkingStep, tool: Delegation) -> Effects:
        """Go on with what was delegated, if it may be still; else have it stop."""
        spent = proposal.spent  # the call is in it, and is not to be counted once more
        proposal.spent = spent._replace(tool_calls=spent.tool_calls - step.attempt)
        verdict = judge(proposal, self._rules)
        if type(verdict) is Denial:
            yield from self._join(proposal, step, tool, stop=verdict.error, denial=verdict)
        else:  # who was to be asked of the call was asked before it began
            yield from self._join(proposal, step, tool)

    def _join(
        self,
        proposal: Proposal,
        step: WorkingStep,
        tool: Delegation,
        *,
        stop: str | None = None,
        denial: Denial | None = None,
    ) -> Effects:
        """Have the run that a call delegates to go on to its end, and close the step by that."""
        ledger = self._ledger
        goal: Any = (proposal.arguments or {}).get("goal")
        limits: Limits | str | None = None
        if stop is None:
            limits = child_limits(tool, self._rules.limits, proposal.spent)
        assert not isinstance(limits, str), "the Budget gate passed"
        head = yield from self._run_child(step, tool, goal, limits, stop)
        if head is not None and not head.status.has_ended:
            assert head.open is not None, "it waits for a person"
            assert head.open.request is not None, "it waits for a person"
            ledger.wait_for_child(step, head.open.request)
        elif head is not None and head.status is RunStatus.COMPLETED:
            end = end_of(head.answer, self._rules.limits.max_result_bytes)
            self._end_call(step, tool, proposal.text, end)
        elif denial is not None:
            gate, code, error = denial
            ledger.deny(gate, code, f"{error}; what it had delegated was stopped")
        elif head is None:
            told = "the run was stopped before what it delegated began"
            ledger.end_call(step, StepOutcome.INTERRUPTED, code="interrupted", error=told)
        else:
            told = f"the run that it delegated to is {head.status.value}: {head.stop_reason}"
            end = End(StepOutcome.FAILED, "null", "tool_error", told)
            self._end_call(step, tool, proposal.text, end)
        yield from self._commit()

    def _run_child(
        self,
        step: WorkingStep,
        tool: Delegation | None,
        goal: str,
        limits: Limits | None,
        stop: str | None,
    ) -> Generator[Effect, Any, Head | None]:
        """Return the head of the run that a step delegates to, and charge it where it has ended."""
        ledger = self._ledger
        place = ledger.run_id, len(ledger.steps)
        ledger.watch.tick()
        head: Head | None = yield RunChild(
            tool,
            child_run(*place),
            goal,
            place,
            limits,
            ledger.marks.passed_on(),
            step.answers,
            stop,
        )
        ledger.watch.skip()  # its time is charged with the rest
        step.answers = ()
        if head is not None and head.status.has_ended:
            ledger.charge_child(head)
        return head
