"""The run itself: a generator of effects, with no I/O in it.

Everything that decides what happens in a run is here, in `acting` and in `gates`. The rules:

* every run ends or pauses: each turn of the loop appends a step or ends the run, and `max_steps`
  bounds the steps;
* what is handed out is a copy; what comes in is judged before it is used.

A step, and its commits (in brackets)::

    decision, denied                                      [1]
    decision, tool_started                                [1] call, tool_finished        [2]
    decision, approval_requested                          [1] asked
        approval, tool_started                            [2] call, tool_finished        [3]
    decision, answer, run_finished                        [1]
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from .acting import Acting, Effects
from .answers import CLAIMED, Answer
from .approval import Approval
from .decision import Decision
from .effects import AskPlanner, CheckAnswer, Raised, TrailMoved
from .gates import Rules
from .ledger import Ledger
from .state import RunStatus, StepOutcome
from .state.head import OpenStep
from .state.step import decision_text, recorded_decision
from .stops import lacks_usage, stop_for
from .values import JSON, InvalidValue, admit, clean_text, encode, type_name

__all__ = ["Loop"]


class Loop(Acting):
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
        super().__init__(ledger, rules, has_approver=has_approver, has_reconcile=has_reconcile)
        self._has_done = has_done
        self._tools_text = json.dumps(rules.tools.describe())
        self._tools: list[dict[str, JSON]] = json.loads(self._tools_text)
        self._handed_out: list[dict[str, JSON]] = json.loads(self._tools_text)

    def start(self, nonce: str) -> Effects:
        """Run from the beginning; `nonce` is 64 random hexadecimal digits."""
        ledger = self._ledger
        ledger.watch.tick()
        tainted = ledger.marks.tainted is not None
        data = {"goal": ledger.goal, "nonce": nonce, "tainted": tainted, **self._terms()}
        if ledger.parent is not None:
            data["parent"] = list(ledger.parent)
        ledger.record("run_started", encode(data))
        yield from self._commit()
        yield from self._go_on()

    def resume(
        self, saved: OpenStep | None, answers: Sequence[tuple[Approval, float | None]], ahead: int
    ) -> Effects:
        """Go on with a saved run.

        Parameters
        ----------
        saved : OpenStep or None
            The step that was being worked on.
        answers : sequence of (Approval, float or None)
            New answers to its request, with the wall-clock time at which each came; None is now.
        ahead : int
            Records that the trail holds beyond the saved state.
        """
        ledger = self._ledger
        ledger.watch.tick()
        step = ledger.open
        ignored: Sequence[tuple[Approval | None, str]] = ()
        given = [(said, ledger.watch.time() if at is None else at) for said, at in answers]
        request = None if step is None else step.request
        of_child = request is not None and request.run_id != ledger.run_id
        if step is not None and of_child:
            held = {answer.approval for answer in step.answers}
            new = [Answer(*answer, CLAIMED) for answer in given if answer[0] not in held]
            step.answers = (*step.answers, *new)  # the run that asked judges them
        elif step is not None:
            left = self._left(step)  # what was left for this session, or came to one that died
            if left or given:
                ignored = self._receive(step, [*left, *given], was_asked=False)
        yield from self._commit()  # the claim: with a store, whoever comes second fails here
        if step is not None and of_child:
            ledger.status, step.request = RunStatus.RUNNING, None
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
