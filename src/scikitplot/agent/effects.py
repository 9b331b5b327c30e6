"""What the loop asks of the world.

The loop yields one of these at a time and is sent what became of it. A driver performs it and
decides nothing: an exception of a planner, an approver, a tool, a ``done`` or a ``reconcile`` is
sent as `Raised`, one of a store or a sink ends the driving.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from .answers import Answer
from .approval import ApprovalRequest
from .audit import AuditHead, AuditRecord
from .calls import Call, ReconcileRequest
from .children import Delegation
from .decision import Usage
from .limits import Limits
from .state import RunState
from .state.marks import Marks
from .tools import Tool
from .values import JSON

__all__ = [
    "AskApprover",
    "AskPlanner",
    "CallTool",
    "CheckAnswer",
    "Commit",
    "Effect",
    "Raised",
    "Reconcile",
    "RunChild",
    "StopRequest",
    "TrailMoved",
]


class AskPlanner(NamedTuple):
    """Ask for the next decision. Answered by whatever the planner returns."""

    state: RunState
    tools: list[dict[str, JSON]]


class AskApprover(NamedTuple):
    """Ask whether an action may run. Answered by whatever the approver returns."""

    request: ApprovalRequest


class CallTool(NamedTuple):
    """Start a call. Answered by whatever the tool returns."""

    tool: Tool
    arguments: dict[str, JSON]
    call: Call


class RunChild(NamedTuple):
    """Have the run that a step delegates to begin, or go on.

    Answered by its head, once it ended or waits for a person; by None if it is to stop and never
    began.
    """

    tool: Delegation | None  # None if it is gone; the run can only stop then
    run_id: str
    goal: str
    parent: tuple[str, int]  # the run and the step that delegate
    limits: Limits | None  # None where it is to stop
    marks: Marks  # its first ones
    answers: Sequence[Answer]  # that came for it, not judged yet
    stop: str | None  # why it is to stop


class Reconcile(NamedTuple):
    """Ask what became of a call that was cut off. Answered by whatever ``reconcile`` returns."""

    request: ReconcileRequest


class CheckAnswer(NamedTuple):
    """Ask ``done`` for its verdict. Answered by whatever it returns."""

    answer: JSON
    state: RunState


class Commit(NamedTuple):
    """Write the records to the trail, then the head and the new steps to the store.

    The next effect is yielded only when both are written. The trail goes first, so that it may be
    ahead of the state by the records of one commit and never behind it. Answered by None, or by a
    `StopRequest`: the head was not written then, and the same commit follows on top of it; or by
    `TrailMoved`: nothing was written.
    """

    run_id: str
    records: Sequence[AuditRecord]
    audit_head: AuditHead | None  # what the trail ends with before
    head: str
    steps: Sequence[str]
    revision: int | None  # what the store holds before
    known: AuditHead | None  # the last record that the store's state knows of before


class StopRequest(NamedTuple):
    """Sent in answer to a `Commit`: since the last one, somebody asked that the run stops."""

    reason: str
    revision: int  # of the head in which the request stands
    records_are_written: bool  # those of the commit


class TrailMoved(NamedTuple):
    """Sent in answer to a session's first records: the process that had the run wrote more.

    It cannot write again once the new session's records are there.
    """

    trail: AuditHead  # what the trail ends with now
    ahead: int  # its records beyond those that the store's state knows of


Effect: TypeAlias = (
    "AskPlanner | AskApprover | CallTool | RunChild | Reconcile | CheckAnswer | Commit"
)


class Raised(NamedTuple):
    """Sent in place of an answer: who was asked raised an exception, or took too long.

    The text of an exception may hold a secret, so it goes no further than the driver.
    """

    code: str
    error: str
    usage: Usage | None = None  # what a planner consumed all the same
