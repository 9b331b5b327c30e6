"""What one session writes of a run: its records, its head, its finished steps.

The ledger keeps the run's account for the loop, and how the chain goes on. It builds each text once
and does no I/O; the loop yields the commits that it makes. The rule that holds here: a commit holds
everything since the last one, and nothing that was committed before.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from .account import Account, Spent
from .approval import Approval, ApprovalRequest
from .audit import AuditHead, AuditRecord
from .audit.record import GENESIS, seal
from .effects import Commit, StopRequest, TrailMoved
from .redaction import Redact, redact_decision, redact_result
from .state import RunState, RunStatus, StepOutcome
from .state.fields import optional_text
from .state.head import Head, answer_dict, head_text, open_text
from .state.marks import NO_MARKS, Marks
from .state.step import saved_decision, step_text
from .tools import Tool
from .values import JSON, encode, quote
from .watch import Watch
from .working import WorkingStep

__all__ = ["Ledger"]


class Ledger(Account):
    """The account of one run in one session.

    Parameters
    ----------
    run_id, goal : str
        The run.
    watch : Watch
        The session's clocks.
    key : bytes or None, default=None
        Seals the records.
    trail : AuditHead or None, default=None
        What the run's trail ends with; None where it has none.
    redact : callable or None, default=None
        What the records show of arguments, results and answers.
    marks : Marks, default=NO_MARKS
        Whether the goal is untrusted.
    parent : tuple of (str, int), or None, default=None
        Run id and step of the run that delegates to this one.
    """

    def __init__(
        self,
        run_id: str,
        goal: str,
        watch: Watch,
        key: bytes | None = None,
        trail: AuditHead | None = None,
        redact: Redact | None = None,
        marks: Marks = NO_MARKS,
        parent: tuple[str, int] | None = None,
    ) -> None:
        super().__init__(watch)
        self.run_id = run_id
        self.status = RunStatus.RUNNING
        self.stop_reason: str | None = None
        self.error: str | None = None
        self.stop: str | None = None  # why somebody wants the run to stop
        self.steps: list[str] = []
        self.open: WorkingStep | None = None
        self.head = ""  # as it was committed last
        self.goal = goal
        self.marks = marks
        self._goal = quote(goal)
        self.parent = parent
        self._parent = encode(parent)
        self._answer = "null"
        self._key = key
        self._redact = redact
        self.salt: str | None = None  # drawn when the first step is redacted
        self._go_on_from(AuditHead(-1, GENESIS) if trail is None else trail)
        self._trail = trail  # what the trail ends with
        self._revision: int | None = None  # what the store holds
        self._known: AuditHead | None = None  # the last record that the store's state knows of
        self._records: list[AuditRecord] = []
        self._committed_steps = 0
        self._written: Commit | None = None  # the last one

    @classmethod
    def resumed(
        cls,
        head: Head,
        text: str,
        steps: Sequence[str],
        trail: AuditHead | None,
        watch: Watch,
        key: bytes | None = None,
        redact: Redact | None = None,
    ) -> Ledger:
        """Return the account of a saved run that goes on.

        Parameters
        ----------
        head : Head
            The saved head, read.
        text : str
            The saved head itself.
        steps : sequence of str
            The saved steps.
        trail : AuditHead or None
            What the run's trail ends with; None if a new trail goes on from the head's record.
        watch, key, redact
            As for a new run.
        """
        run = head.run_id, head.goal
        ledger = cls(*run, watch, key, trail, redact, head.marks, head.parent)
        ledger.status = head.status
        ledger.stop = head.stop
        ledger.steps = list(steps)
        ledger._committed_steps = len(ledger.steps)
        ledger.decisions, ledger.tool_calls, _, ledger.tokens, watch.seconds = head.usage
        ledger.cost, ledger.delegated = head.cost, head.delegated
        ledger.head = text
        ledger.salt = head.salt
        ledger._revision, ledger._known = head.revision, head.audit_head
        if trail is None:
            ledger._go_on_from(head.audit_head)
        if head.open is not None:
            saved = head.open
            call = WorkingStep(saved_decision(saved.decision), saved.started, saved.history)
            call.action, call.attempt = saved.digest, saved.attempt
            call.request, call.answers, call.recorded = saved.request, saved.answers, saved.recorded
            ledger.open = call
        return ledger

    def _go_on_from(self, last: AuditHead) -> None:
        self._last = last  # the last record of the last commit
        self._seq, self._prev = last.seq + 1, last.digest

    # What is written

    def record(self, event: str, data: str) -> str:
        """Add a record with this data (canonical text) to the next commit; return its digest."""
        record = seal(self.run_id, self._seq, event, data, self.watch.time(), self._prev, self._key)
        self._records.append(record)
        self._seq += 1
        self._prev = record.digest
        return record.digest

    def begin(self, decision: str, recorded: str, started: float) -> WorkingStep:
        """Record a decision (canonical texts, as saved and as recorded) and open its step."""
        index, shown, redacted = len(self.steps), recorded, ""
        if self._redact is not None:
            shown, redacted = redact_decision(self._redact, self._salted(), index, recorded)
        history = self.record("decision", f'{{"decision":{shown},{redacted}"step":{index}}}')
        self.open = WorkingStep(decision, started, history)
        return self.open

    def _salted(self) -> str:
        # Before a step is begun, and at its end: while one is open, its digest has the salt or not.
        if self.salt is None:
            self.salt = secrets.token_hex(32)
        return self.salt

    def ask(self, step: WorkingStep, request: ApprovalRequest) -> None:
        """Record that a person is asked; the run waits."""
        step.request, step.action = request, request.digest
        self.status = RunStatus.AWAITING_APPROVAL
        self.record(
            "approval_requested",
            encode(
                {"digest": request.digest, "reasons": list(request.reasons), "step": request.step}
            ),
        )

    def ignore_answers(self, ignored: Sequence[tuple[Approval | None, str]]) -> None:
        """Record answers that change nothing, each with why, or just why what came is none."""
        for answer, error in ignored:
            told: dict[str, JSON] = {"approver": None, "error": error, "granted": None}
            if answer is not None:
                told.update(approver=answer.approver, granted=answer.granted)
            self.record("approval_ignored", encode({**told, "step": len(self.steps)}))

    def record_answers(self, step: WorkingStep) -> None:
        """Record the answers that are not in the trail yet."""
        for answer in step.answers[step.recorded :]:
            self.record("approval", encode({**answer_dict(answer), "step": len(self.steps)}))
        step.recorded = len(step.answers)

    def take_answers(self, step: WorkingStep) -> None:
        """Record the answers to the step's request; the run waits no more."""
        self.status = RunStatus.RUNNING
        self.record_answers(step)
        step.request = None

    def deny(self, gate: str, code: str, error: str) -> None:
        """Record a gate's no and close the step."""
        self.record(
            "denied",
            f'{{"code":"{code}","error":{quote(error)},"gate":"{gate}","step":{len(self.steps)}}}',
        )
        self._close(StepOutcome.DENIED, "null", code, error)

    def start_call(self, step: WorkingStep, tool: Tool, action: str) -> None:
        """Count and record a call that is about to start; each start is charged."""
        step.action = action
        step.attempt += 1
        self.count_call(tool.cost)
        self.record(
            "tool_started",
            f'{{"attempt":{step.attempt},"cost":{tool.cost!r},"digest":"{action}",'
            f'"step":{len(self.steps)},"tool":"{tool.name}"}}',
        )

    def end_call(
        self,
        step: WorkingStep,
        outcome: StepOutcome,
        result: str = "null",
        code: str | None = None,
        error: str | None = None,
    ) -> None:
        """Record what became of a call and close the step; `result` is canonical text."""
        index, shown, redacted = len(self.steps), result, ""
        if self._redact is not None and outcome is StepOutcome.EXECUTED:
            shown, redacted = redact_result(
                self._redact, self._salted(), index, step.decision, result
            )
        self.record(
            "tool_finished",
            f'{{"attempt":{step.attempt},"code":{optional_text(code)},'
            f'"error":{optional_text(error)},"outcome":"{outcome._value_}",{redacted}'
            f'"result":{shown},"step":{index}}}',
        )
        self._close(outcome, result, code, error)

    def reconcile(self, step: WorkingStep, outcome: StepOutcome) -> None:
        """Record that ``reconcile`` was asked, and how the call ends by what it said."""
        self.record(
            "reconciled",
            f'{{"attempt":{step.attempt},"digest":"{step.action}","outcome":"{outcome.value}",'
            f'"step":{len(self.steps)}}}',
        )

    def wait_for_child(self, step: WorkingStep, request: ApprovalRequest) -> None:
        """Record that this run waits, since the one waits that a step delegates to."""
        step.request = request
        self.status = RunStatus.AWAITING_APPROVAL
        told: dict[str, JSON] = {"digest": request.digest, "run_id": request.run_id}
        self.record("child_paused", encode({**told, "step": len(self.steps)}))

    def charge_child(self, child: Head) -> None:
        """Count and record what the run used up and read that the open step delegated to."""
        used, marks = child.usage, child.marks
        calls = used.decisions, used.tool_calls
        self.count_child(Spent(*calls, child.cost, used.tokens, used.seconds))
        self.marks = self.marks.after_child(marks, len(self.steps))
        self.record(
            "child_finished",
            encode(
                {
                    "read_secret": marks.secret is not None,
                    "run_id": child.run_id,
                    "status": child.status.value,
                    "step": len(self.steps),
                    "stop_reason": child.stop_reason,
                    "tainted": marks.tainted is not None,
                    "usage": {**used._asdict(), "cost": str(child.cost)},
                }
            ),
        )

    def end_answer(
        self, outcome: StepOutcome, code: str | None = None, error: str | None = None
    ) -> None:
        """Record the verdict on an answer and close the step."""
        self.record(
            "answer",
            f'{{"error":{optional_text(error)},"outcome":"{outcome.value}",'
            f'"step":{len(self.steps)}}}',
        )
        self._close(outcome, "null", code, error)

    def _close(
        self, outcome: StepOutcome, result: str, code: str | None, error: str | None
    ) -> None:
        step = self.open
        assert step is not None, "a step is closed that was begun"
        self.steps.append(
            step_text(
                len(self.steps),
                step.decision,
                outcome._value_,  # which takes a third of the time of `value`
                result,
                code,
                error,
                step.attempt,
                step.started_text,
                max(0.0, self.watch.tick() - step.started),
            )
        )
        self.open = None

    def end(
        self,
        status: RunStatus,
        stop_reason: str | None = None,
        error: str | None = None,
        *,
        answer: str = "null",
    ) -> None:
        """Record the end of the run."""
        self.watch.tick()
        self.open = None
        self.status, self.stop_reason, self.error = status, stop_reason, error
        self._answer = answer
        self.record(
            "run_finished",
            f'{{"error":{optional_text(error)},"status":"{status.value}",'
            f'"stop_reason":{optional_text(stop_reason)},"usage":{self.usage_text()}}}',
        )

    def commit(self) -> Commit:
        """Return the commit of all that is new."""
        before = self._trail
        records, self._records = self._records, []
        if records:
            self._trail = self._last = AuditHead(self._seq - 1, self._prev)
        new = self.steps[self._committed_steps :]
        self._committed_steps += len(new)
        return self._save(records, before, new)

    def commit_after(self, request: StopRequest) -> Commit:
        """Return the last commit again, on top of the head with a request to stop."""
        last = self._written
        assert last is not None, "a request answers a commit"
        self.stop, self._revision = request.reason, request.revision
        records = () if request.records_are_written else last.records
        return self._save(records, last.audit_head, last.steps)

    def chain_after(self, moved: TrailMoved) -> None:
        """Take the last commit back, and let the records go on from where the trail ends now."""
        last = self._written
        assert last is not None, "it answers a commit"
        self._revision, self._known, self._trail = last.revision, last.known, moved.trail
        self._go_on_from(moved.trail)

    def _save(
        self, records: Sequence[AuditRecord], before: AuditHead | None, steps: Sequence[str]
    ) -> Commit:
        replaced, known, last = self._revision, self._known, self._last
        self._revision = revision = 0 if replaced is None else replaced + 1
        self._known = last
        self.head = head_text(
            run_id=self.run_id,
            goal=self._goal,
            parent=self._parent,
            status=self.status._value_,
            stop=self.stop,
            stop_reason=self.stop_reason,
            answer=self._answer,
            error=self.error,
            usage=self.usage_text(),
            revision=revision,
            audit_head=last,
            open_step=self._open_text(),
            salt=optional_text(self.salt),
            marks=self.marks,
        )
        self._written = Commit(self.run_id, records, before, self.head, steps, replaced, known)
        return self._written

    def view(self) -> RunState:
        """Return the run as it was committed last."""
        return RunState.view(self.head, self.steps)

    def _open_text(self) -> str:
        step = self.open
        if step is None:
            return "null"
        return open_text(
            step.decision,
            len(self.steps),
            step.started_text,
            step.history,
            step.action,
            step.attempt,
            step.request,
            step.answers,
            step.recorded,
        )
