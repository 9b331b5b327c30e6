"""The head of a saved run: everything but its finished steps, in one bounded text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple

from ..answers import ASKED, CLAIMED, SIGNED, Answer
from ..approval import Approval, ApprovalRequest, is_digest
from ..audit import AuditHead
from ..decision import Decision
from ..errors import StateError
from ..tools import ToolEffect
from ..values import JSON, encode
from .fields import Fields, optional_text, read_json
from .marks import Marks, mark_text, read_marks
from .status import RunStatus, RunUsage
from .step import read_decision

__all__ = [
    "Head",
    "OpenStep",
    "answer_dict",
    "check_steps",
    "head_text",
    "open_text",
    "read_answer",
    "read_head",
    "read_usage",
]

VERSION = 1
"""Of the saved form. An older one is migrated, a newer one refused."""

_COST = re.compile(r"[0-9]{1,700}(\.[0-9]{1,1200})?(E[+-]?[0-9]{1,4})?", re.ASCII)


class OpenStep(NamedTuple):
    """The step that is being worked on: it waits for a person, for a tool or for ``done``."""

    decision: Decision
    step: int  # its index
    started: float  # running time of the run, in seconds
    history: str  # digest of the record of the decision
    digest: str | None  # of the action; None for a finish
    attempt: int  # calls that were started
    request: ApprovalRequest | None  # of this step, or of the run that it delegates to
    answers: tuple[Answer, ...]  # to the request; to that of another run, not judged yet
    recorded: int  # of them, how many are in the trail


class Head(NamedTuple):
    """A saved head, read and checked: what the loop goes on from."""

    run_id: str
    goal: str
    parent: tuple[str, int] | None
    status: RunStatus
    stop: str | None
    stop_reason: str | None
    answer: JSON
    error: str | None
    usage: RunUsage
    cost: Decimal  # the exact form of usage.cost
    delegated: int  # of its decisions, those of runs that it delegated to
    revision: int
    audit_head: AuditHead
    open: OpenStep | None
    salt: str | None  # of what its trail does not show
    marks: Marks

    def from_caller(self) -> Head:
        """Return as much of the head as is to be believed of a caller, whom no store bears out.

        That the agent asked for an answer itself, or recorded one, is not.
        """
        if self.open is None:
            return self
        answers = tuple(answer for answer in self.open.answers if answer.identity != ASKED)
        return self._replace(open=self.open._replace(answers=answers, recorded=0))


def head_text(
    *,
    run_id: str,
    goal: str,
    parent: str,
    status: str,
    stop: str | None,
    stop_reason: str | None,
    answer: str,
    error: str | None,
    usage: str,
    revision: int,
    audit_head: AuditHead,
    open_step: str,
    salt: str,
    marks: Marks,
) -> str:
    """Return the canonical text of a head; what has parts is passed as text."""
    tainted, secret = marks
    why = stopped = told = "null"
    if stop is not None or stop_reason is not None or error is not None:
        why, stopped, told = map(optional_text, (stop, stop_reason, error))
    seq, last = audit_head
    return (
        f'{{"answer":{answer},"audit_head":[{seq},"{last}"],"error":{told},"goal":{goal},'
        f'"open":{open_step},"parent":{parent},"revision":{revision},"run_id":"{run_id}",'
        f'"salt":{salt},"secret":{mark_text(secret)},"status":"{status}","stop":{why},'
        f'"stop_reason":{stopped},"tainted":{mark_text(tainted)},"usage":{usage},"version":{VERSION}}}'
    )


def open_text(
    decision: str,
    step: int,
    started: str,
    history: str,
    action: str | None,
    attempt: int,
    request: ApprovalRequest | None,
    answers: Sequence[Answer],
    recorded: int,
) -> str:
    """Return the canonical text of an open step; `decision` and `started` are texts already."""
    asked = "null"
    if request is not None:
        saved_request = request.to_dict()
        if request.digest == action:  # the step has the rest
            saved_request = {name: saved_request[name] for name in _REQUEST}
        asked = encode(saved_request)
    saved = encode([answer_dict(answer) for answer in answers]) if answers else "[]"
    return (
        f'{{"answers":{saved},"attempt":{attempt},"decision":{decision},'
        f'"digest":{optional_text(action)},"history":"{history}","recorded":{recorded},'
        f'"request":{asked},"started":{started},"step":{step}}}'
    )


def answer_dict(answer: Answer) -> dict[str, JSON]:
    """Return an answer as JSON, as it is saved and recorded."""
    approval, received_at, identity = answer
    return {**approval.to_dict(), "identity": identity, "received_at": received_at}


_USAGE = ("cost", "decisions", "seconds", "tokens", "tool_calls")
_OPEN = (
    "answers",
    "attempt",
    "decision",
    "digest",
    "history",
    "recorded",
    "request",
    "started",
    "step",
)
_REQUEST = ("effect", "reasons", "requested_at", "scopes")
_OF_CHILD = ("arguments", "digest", "history", "run_id", "step", "tool", *_REQUEST)
_APPROVAL = ("approver", "digest", "granted", "reason", "signature")
_HEAD = (
    "answer",
    "audit_head",
    "error",
    "goal",
    "open",
    "parent",
    "revision",
    "run_id",
    "salt",
    "secret",
    "status",
    "stop",
    "stop_reason",
    "tainted",
    "usage",
    "version",
)


def read_head(text: str) -> Head:
    """Return what a saved head holds.

    Raises
    ------
    StateError
        If it is no saved head, or one of a newer version; the message names the field.
    """
    saved = read_json("saved state", text)
    version = saved.get("version") if type(saved) is dict else None
    if type(version) is int and version > VERSION:
        raise StateError(
            f"saved state: version is {version}, newer than {VERSION}, the newest this release "
            "reads; upgrade the package"
        )
    fields = Fields("saved state", saved, _HEAD)
    if version != VERSION or type(version) is not int:
        raise fields.wrong("version", f"must be {VERSION}")
    run_id = fields.digest("run_id")
    goal = fields.text("goal")
    status = RunStatus(fields.one_of("status", [status.value for status in RunStatus]))
    head = Head(
        run_id,
        goal or "",
        _read_parent(fields),
        status,
        fields.text("stop", optional=True),
        fields.text("stop_reason", optional=True),
        fields.value("answer"),
        fields.text("error", optional=True),
        *read_usage(fields.value("usage")),
        fields.count("revision"),
        _read_audit_head(fields),
        _read_open(fields.value("open"), run_id),
        None if fields.value("salt") is None else fields.digest("salt"),
        read_marks(fields),
    )
    _check_status(fields, head)
    return head


def read_usage(saved: JSON) -> tuple[RunUsage, Decimal, int]:
    """Return what a run has used up, its exact cost, and how many decisions were delegated.

    Raises `StateError` if it is none of that.
    """
    has_delegated = type(saved) is dict and "delegated" in saved
    names = (*_USAGE, "delegated") if has_delegated else _USAGE
    parts = Fields("saved state: usage", saved, names)
    cost = parts.text("cost")
    if cost is None or not _COST.fullmatch(cost):
        raise parts.wrong("cost", "must be a decimal number as a string")
    exact_cost = Decimal(cost)
    usage = RunUsage(
        parts.count("decisions"),
        parts.count("tool_calls"),
        float(exact_cost),
        parts.count("tokens"),
        parts.number("seconds"),
    )
    delegated = parts.count("delegated") if has_delegated else 0
    if delegated > usage.decisions:
        raise parts.wrong("delegated", "is more than there are decisions")
    return usage, exact_cost, delegated


def check_steps(head: Head, count: int) -> None:
    """Raise `StateError` unless a head goes with so many finished steps."""
    begun = count + (head.open is not None)
    if head.open is not None and head.open.step != count:
        raise StateError("saved state: the open step does not follow the finished ones")
    own = head.usage.decisions - head.delegated
    if not head.status.has_ended and own != begun:
        raise StateError(f"saved state: there are {own} decisions and {begun} steps")


def _check_status(fields: Fields, head: Head) -> None:
    step = head.open
    waits = head.status is RunStatus.AWAITING_APPROVAL
    if waits != (step is not None and step.request is not None):
        raise fields.wrong("open", "does not fit the status")
    if head.status.has_ended and step is not None:
        raise fields.wrong("open", "must be null, the run has ended")
    ended_early = head.status in (RunStatus.STOPPED, RunStatus.FAILED)
    if ended_early != (head.stop_reason is not None):
        raise fields.wrong("stop_reason", "does not fit the status")
    if head.answer is not None and head.status is not RunStatus.COMPLETED:
        raise fields.wrong("answer", "must be null, the run is not completed")


def _read_parent(fields: Fields) -> tuple[str, int] | None:
    parent = fields.value("parent")
    if parent is None:
        return None
    if type(parent) is list and len(parent) == 2:
        run_id, step = parent
        if is_digest(run_id) and type(step) is int and step >= 0:
            return run_id, step
    raise fields.wrong("parent", "must be null or a run id and a step")


def _read_audit_head(fields: Fields) -> AuditHead:
    pair = fields.value("audit_head")
    if type(pair) is list and len(pair) == 2:
        seq, digest = pair
        if type(seq) is int and 0 <= seq < 2**63 and is_digest(digest):
            return AuditHead(seq, digest)
    raise fields.wrong("audit_head", "must be the number and the digest of a record")


def _read_open(saved: JSON, run_id: str) -> OpenStep | None:
    if saved is None:
        return None
    fields = Fields("saved state: open", saved, _OPEN)
    decision = read_decision(fields.value("decision"))
    answers, recorded = _read_answers(fields), fields.count("recorded")
    if recorded > len(answers):
        raise fields.wrong("recorded", "is more than there are answers")
    step, attempt = fields.count("step"), fields.count("attempt")
    started, history = fields.number("started"), fields.digest("history")
    if decision.kind == "finish":
        of_a_call = answers, attempt, fields.value("digest"), fields.value("request")
        if of_a_call != ((), 0, None, None):
            raise fields.wrong("decision", "is a finish, which is no call")
        return OpenStep(decision, step, started, history, None, 0, None, (), 0)
    action = fields.digest("digest")
    if decision.arguments is None:
        raise fields.wrong("decision", "has no arguments")
    request = None
    if fields.value("request") is not None:
        place = {"digest": action, "history": history, "run_id": run_id, "step": step}
        call = {"arguments": decision.arguments, "tool": decision.tool or ""}
        request = _read_request(fields.value("request"), {**place, **call})
    elif attempt == 0:
        raise fields.wrong("attempt", "must be at least 1 without a request")
    return OpenStep(decision, step, started, history, action, attempt, request, answers, recorded)


def _read_request(saved: JSON, own: dict[str, JSON]) -> ApprovalRequest:
    """Return a saved request; `own` is what one of this step has from the step."""
    name = "saved state: request"
    of_child = type(saved) is dict and "run_id" in saved
    fields = Fields(name, saved, _OF_CHILD if of_child else _REQUEST)
    if of_child:
        own = {
            "digest": fields.digest("digest"),
            "history": fields.digest("history"),
            "run_id": fields.digest("run_id"),
            "step": fields.count("step"),
            "arguments": fields.value("arguments"),
            "tool": fields.text("tool"),
        }
        if type(own["arguments"]) is not dict:
            raise fields.wrong("arguments", "must be an object")
    return ApprovalRequest(
        **own,
        effect=ToolEffect(fields.one_of("effect", [effect.value for effect in ToolEffect])),
        scopes=fields.texts("scopes"),
        reasons=fields.texts("reasons"),
        requested_at=fields.time("requested_at"),
    )


def _read_answers(fields: Fields) -> tuple[Answer, ...]:
    saved = fields.value("answers")
    if type(saved) is not list:
        raise fields.wrong("answers", "must be a list")
    return tuple(read_answer(item) for item in saved)


def read_answer(saved: JSON) -> Answer:
    """Return the answer that `answer_dict` gave, or raise `StateError`."""
    parts = Fields("saved state: answer", saved, (*_APPROVAL, "identity", "received_at"))
    try:
        approval = Approval(**{name: parts.value(name) for name in _APPROVAL})
    except (TypeError, ValueError) as error:
        raise StateError(f"saved state: answer: {error}") from None
    identity = parts.one_of("identity", [SIGNED, ASKED, CLAIMED])
    return Answer(approval, parts.time("received_at"), identity)
