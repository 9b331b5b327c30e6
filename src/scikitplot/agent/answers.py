"""Answers to a request: who gave them and when they came, and which of them count.

Imports `approval`, `policy` and `signing`. Rules that hold here:

* an answer counts if its approver may answer, is who they say as far as there are keys, and names
  this request; any other changes nothing;
* what counts is judged again whenever the gates are asked, by the policy and the keys as they are;
* of when an answer came, the wall clock decides; a clock that went back proves nothing in favour.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from .approval import Approval, ApprovalRequest, same_digest
from .policy import Policy
from .signing import ApprovalKeys

__all__ = ["ASKED", "CLAIMED", "SIGNED", "Answer", "counted", "receive", "why_late"]

SIGNED = "signed"
"""The answer has a valid signature of its approver."""

ASKED = "asked"
"""The agent's own ``approver`` function gave the answer."""

CLAIMED = "claimed"
"""Nothing proves the approver's name: the agent has no keys."""


class Answer(NamedTuple):
    """An approval that was handed in."""

    approval: Approval
    received_at: float  # wall-clock time, in seconds since the epoch
    identity: str  # SIGNED, ASKED or CLAIMED


def counted(
    answers: Iterable[Answer], wanted: str, policy: Policy, keys: ApprovalKeys | None
) -> list[Answer]:
    """Return the answers that count for the request of digest `wanted`."""
    return [
        answer
        for answer in answers
        if same_digest(answer.approval.digest, wanted)
        and _may_answer(answer.approval, policy)
        and (keys is None or answer.identity == ASKED or keys.verify(answer.approval))
    ]


def receive(
    wanted: str,
    given: Sequence[tuple[Approval, float]],
    held: Sequence[Answer],
    policy: Policy,
    keys: ApprovalKeys | None,
    *,
    was_asked: bool,
) -> tuple[list[Answer], list[tuple[Approval, str]]]:
    """Return the answers among `given` that are to be kept, and the others with why they are not.

    Parameters
    ----------
    wanted : str
        Digest of the request.
    given : sequence of (Approval, float)
        Answers to it, each with the wall-clock time at which it came.
    held : sequence of Answer
        Those that came before.
    policy, keys
        Who may answer, and how that is proved.
    was_asked : bool
        Whether the agent's own function gave them.
    """
    kept: list[Answer] = []
    ignored: list[tuple[Approval, str]] = []
    before = {answer.approval.approver for answer in counted(held, wanted, policy, keys)}
    for approval, time in given:
        identity = _identity(approval, keys, was_asked)
        if not _may_answer(approval, policy):
            ignored.append((approval, "the policy does not name this approver"))
        elif identity is None:
            ignored.append((approval, "it has no valid signature of its approver"))
        elif approval.granted and approval.approver in before:
            ignored.append((approval, "this approver answered already"))
        else:
            kept.append(Answer(approval, time, identity))
            before.add(approval.approver)
    return kept, ignored


def why_late(time: float, request: ApprovalRequest, policy: Policy) -> str | None:
    """Return why what came at `time` came too late for a request; None if it came in time."""
    most, passed = policy.approval_seconds, time - request.requested_at
    if most is None or 0 <= passed <= most:
        return None
    if passed < 0:
        return "the clock went back behind the request, so how late the answer is cannot be told"
    return f"{passed:.1f} seconds after the request; approval_seconds is {most}"


def _may_answer(approval: Approval, policy: Policy) -> bool:
    return policy.approvers is None or approval.approver in policy.approvers


def _identity(approval: Approval, keys: ApprovalKeys | None, was_asked: bool) -> str | None:
    if keys is not None and (approval.signature is not None or not was_asked):
        return SIGNED if keys.verify(approval) else None
    return ASKED if was_asked else CLAIMED
