"""What came back from who was asked, judged: how a call ends, and whether an answer is one.

Imports `approval`, `effects`, `state` and `values`. What a tool returned, and what is said to have
become of a call that was cut off, is judged alike.
"""

from __future__ import annotations

from typing import NamedTuple

from .approval import Approval, ApprovalRequest, same_digest
from .effects import Raised
from .state import StepOutcome
from .values import InvalidValue, ValueTooLarge, admit, type_name

__all__ = ["End", "answer_fault", "end_of"]


class End(NamedTuple):
    """How a call ends."""

    outcome: StepOutcome
    result: str = "null"  # canonical text
    code: str | None = None
    error: str | None = None


def end_of(reply: object, most: int) -> End:
    """Return how a call ends by what came of it, of which `most` bytes may be kept."""
    if type(reply) is Raised:
        return End(StepOutcome.FAILED, code=reply.code, error=reply.error)
    try:
        return End(StepOutcome.EXECUTED, admit(reply, most, allow_tuples=True)[1])
    except ValueTooLarge as error:
        told = f"the result is too large: {error.reason}; max_result_bytes is {most}"
        return End(StepOutcome.FAILED, code="result_too_large", error=told)
    except InvalidValue as error:
        told = f"the result{error.pointer}: {error.reason}"
        return End(StepOutcome.FAILED, code="invalid_result", error=told)


def answer_fault(answer: object, request: ApprovalRequest) -> str | None:
    """Return why an approver's answer is none."""
    if type(answer) is Raised:
        return answer.error
    if type(answer) is not Approval:
        return f"the approver returned a {type_name(answer)}, not an Approval or None"
    if not same_digest(answer.digest, request.digest):
        return "the approver answered another request"
    return None
