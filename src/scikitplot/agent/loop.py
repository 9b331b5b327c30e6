"""The run itself: a generator of effects, with no I/O in it.

Everything that decides what happens in a run is in this file and in `gates`. The rules:

* a tool is called only after all five gates passed for exactly this action, and after the commit
  that holds the decision, the approval and the start of the call;
* a denial is the outcome of its step; the planner reads it and goes on;
* every run ends or pauses: each turn of the loop appends a step or ends the run, and `max_steps`
  bounds the steps;
* what is handed out is a copy; what comes in is judged before it is used;
* a call in flight starts again only if its tool is idempotent and defined as it was, through all
  gates, and `MAX_ATTEMPTS` times in all; before any other is called interrupted, ``reconcile`` is
  asked what became of it.

A step, and its commits (in brackets)::

    decision, denied                                      [1]
    decision, tool_started                                [1] call, tool_finished        [2]
    decision, approval_requested                          [1] asked
        approval, tool_started                            [2] call, tool_finished        [3]
    decision, answer, run_finished                        [1]
"""

from __future__ import annotations

import json
from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from .answers import receive
from .approval import Approval
from .calls import Call, ReconcileRequest
from .decision import Decision
from .effects import (
    AskApprover,
    AskPlanner,
    CallTool,
    CheckAnswer,
    Effect,
    Raised,
    Reconcile,
    StopRequest,
    TrailMoved,
)
from .gates import UNKNOWN, Ask, Denial, Proposal, Rules, judge, why_not_again
from .influence import Influence
from .ledger import Ledger
from .results import End, answer_fault, end_of
from .state import RunStatus, StepOutcome
from .state.head import OpenStep
from .state.step import decision_text, recorded_decision
from .stops import lacks_usage, repeats, stop_for
from .tools import Tool
from .values import JSON, InvalidValue, admit, clean_text, encode, type_name
from .working import WorkingStep

__all__ = ["Loop"]

Effects: TypeAlias = "Generator[Effect, Any, None]"


class Loop:
    """One session of one run.

    Parameters
    ----------
    ledger : Ledger
        The run's account.
    rules : Rules
        Tools, policy, limits and keys.
    has_approver, has_done, has_reconcile : bool
        Whether there is somebody to ask.
    """

    def __init__(
        self,
        ledger: Ledger,
        rules: Rules,
        *,
        has_approver: bool,
        has_done: bool,
        has_reconcile: bool,
    ) -> None:
        self._ledger = ledger
        self._rules = rules
        self._has_approver = has_approver
        self._has_done = has_done
        self._has_reconcile = has_reconcile
        self._influence: Influence | None = None
        if rules.policy.flow is not None:
            goal = None if ledger.marks.tainted == "goal" else ledger.goal
            self._influence = Influence(rules.policy.flow, goal)
            ledger.marks = self._influence.replay(ledger.steps, rules.tools, ledger.marks)
        self._tools_text = json.dumps(rules.tools.describe())
        self._tools: list[dict[str, JSON]] = json.loads(self._tools_text)
        self._handed_out: list[dict[str, JSON]] = json.loads(self._tools_text)

    def start(self, nonce: str) -> Effects:
        """Run from the beginning; `nonce` is 64 random hexadecimal digits."""
        ledger = self._ledger
        ledger.watch.tick()
        tainted = ledger.marks.tainted is not None
        data = {"goal": ledger.goal, "nonce": nonce, "tainted": tainted, **self._terms()}
        ledger.record("run_started", encode(data))
        yield from self._commit()
        yield from self._go_on()

    def resume(self, saved: OpenStep | None, answers: Sequence[Approval], ahead: int) -> Effects:
        """Go on with a saved run.

        Parameters
        ----------
        saved : OpenStep or None
            The step that was being worked on.
        answers : sequence of Approval
            New answers to its request.
        ahead : int
            Records that the trail holds beyond the saved state.
        """
        ledger = self._ledger
        ledger.watch.tick()
        step = ledger.open
        ignored: Sequence[tuple[Approval | None, str]] = ()
        if step is not None and answers:
            ignored = self._receive(step, answers, was_asked=False)
        yield from self._commit()  # the claim: with a store, whoever comes second fails here
        moved: TrailMoved | None = None
        while True:
            more = 0 if moved is None else moved.ahead
            ledger.record("resumed", encode({"ahead": ahead + more, **self._terms()}))
            ledger.ignore_answers(ignored)
            moved = yield from self._commit()
            if moved is None:
                break
            ledger.chain_after(moved)
        if saved is not None and step is not None:
            if ledger.stop is not None:
                yield from self._leave(saved, step)
            elif saved.decision.kind == "finish":
                yield from self._check(encode(saved.decision.answer))
            else:
                yield from self._reopen(saved, step)
        yield from self._go_on()

    def _terms(self) -> dict[str, JSON]:
        tools, policy, limits = self._rules[:3]
        return {"limits": limits.to_dict(), "policy": policy.to_dict(), "tools": tools.digest}

    def _go_on(self) -> Effects:
        ledger = self._ledger
        while ledger.status is RunStatus.RUNNING:
            started = ledger.watch.tick()
            stop = stop_for(ledger, self._rules.limits)
            if stop is not None:
                ledger.end(*stop)
                yield from self._commit()
                return
            reply = yield AskPlanner(ledger.view(), self._descriptions())
            ledger.watch.tick()
            yield from self._decide(reply, started)

    def _descriptions(self) -> list[dict[str, JSON]]:
        """Return the planner's copy of the tools: one a session, a new one if it was changed."""
        try:
            unchanged = self._handed_out == self._tools
        except Exception:  # compared with something that the planner put in
            unchanged = False
        if not unchanged:
            self._handed_out = json.loads(self._tools_text)
        return self._handed_out

    def _commit(self) -> Generator[Effect, Any, TrailMoved | None]:
        """Commit all that is new, on top of a request to stop where there is one."""
        answer = yield self._ledger.commit()
        while type(answer) is StopRequest:
            answer = yield self._ledger.commit_after(answer)
        return answer  # type: ignore[no-any-return]

    def _fail(self, code: str, error: str) -> Effects:
        self._ledger.end(RunStatus.FAILED, stop_reason=code, error=error)
        yield from self._commit()

    # A decision

    def _decide(self, reply: object, started: float) -> Effects:
        ledger = self._ledger
        if type(reply) is Raised:
            ledger.count_usage(reply.usage)
            yield from self._fail(reply.code, reply.error)
            return
        if type(reply) is not Decision:
            error = f"the planner returned a {type_name(reply)}, not a Decision"
            yield from self._fail("invalid_decision", error)
            return
        ledger.count_decision(reply.usage)
        is_act, arguments, text = reply.kind == "act", None, "null"
        fault = ": those of a saved step that could not be kept"
        try:
            payload = reply.arguments if is_act else reply.answer
            arguments, text = admit(payload, allow_tuples=not is_act)
        except InvalidValue as error:
            fault = f"{error.pointer}: {error.reason}"
            if not is_act:
                yield from self._fail("invalid_decision", f"the answer{fault}")
                return
        saved = recorded = decision_text(reply, text)
        if reply.extra_text != "null":
            recorded = recorded_decision(reply, text)
        step = ledger.begin(saved, recorded, started)
        if lacks_usage(reply.usage, self._rules.limits):
            told = "max_tokens is set and the planner reported no usage"
            yield from self._fail("usage_not_reported", told)
        elif not is_act:
            if self._has_done:
                yield from self._commit()  # before its effect can be seen
            yield from self._check(text)
        else:
            yield from self._act(self._propose(reply, step, arguments, text, fault), step)

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
            ledger.tool_calls,
            ledger.cost,
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
        ignored = [(None, fault)] if fault else self._receive(step, [answer], was_asked=True)
        if ignored:
            ledger.ignore_answers(ignored)
            yield from self._commit()
            return False
        proposal.answers = step.answers
        return True

    def _receive(
        self, step: WorkingStep, given: Sequence[Approval], *, was_asked: bool
    ) -> Sequence[tuple[Approval | None, str]]:
        """Keep the answers that count; return the others with why they do not."""
        assert step.action is not None, "there is a request"
        policy, keys, time = self._rules.policy, self._rules.keys, self._ledger.watch.time()
        kept, ignored = receive(
            step.action, given, step.answers, time, policy, keys, was_asked=was_asked
        )
        step.answers = (*step.answers, *kept)
        return ignored

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
        call = Call(ledger.run_id, proposal.step, step.attempt, action, None)
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
        reason = None if saved.request else why_not_again(saved, proposal, self._rules.tools)
        if reason is None:
            yield from self._act(proposal, step)
        else:
            yield from self._give_up(saved, step, reason)

    def _give_up(self, saved: OpenStep, step: WorkingStep, reason: str) -> Effects:
        """Close a call that was cut off and does not start again; it is interrupted unless told."""
        ledger, tool = self._ledger, saved.decision.tool or ""
        arguments = saved.decision.arguments or {}
        text, end = encode(arguments), End(StepOutcome.INTERRUPTED, "null", "interrupted", reason)
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
        self._ledger.status = RunStatus.RUNNING
        if saved.request is None and saved.attempt:
            reason = f"the call was cut off and the run was stopped{UNKNOWN}"
            yield from self._give_up(saved, step, reason)

    # An answer

    def _check(self, text: str) -> Effects:
        """Ask ``done``, if there is one, about an answer (canonical text)."""
        ledger = self._ledger
        reason: str | None = None
        if self._has_done:
            verdict = yield CheckAnswer(json.loads(text), ledger.view())
            ledger.watch.tick()
            if type(verdict) not in (bool, str):
                told = f"done returned a {type_name(verdict)}, not True, False or a reason"
                if type(verdict) is Raised:
                    told = verdict.error
                ledger.end_answer(StepOutcome.REJECTED, "done_failed", told)
                yield from self._fail("done_failed", told)
                return
            if verdict is not True:
                reason = clean_text(verdict or "the answer does not meet the criterion")
        if reason is not None:
            ledger.end_answer(StepOutcome.REJECTED, error=reason)
        else:
            ledger.end_answer(StepOutcome.ACCEPTED)
            ledger.end(RunStatus.COMPLETED, answer=text)
        yield from self._commit()
