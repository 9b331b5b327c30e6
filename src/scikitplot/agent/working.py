"""The step that a session works on.

Imports `answers` and `approval`.
"""

from __future__ import annotations

from .answers import Answer
from .approval import ApprovalRequest

__all__ = ["WorkingStep"]


class WorkingStep:
    """The step that is being worked on; its decision is a text already."""

    __slots__ = (
        "action",
        "answers",
        "attempt",
        "decision",
        "history",
        "recorded",
        "request",
        "started",
        "started_text",
    )

    def __init__(self, decision: str, started: float, history: str) -> None:
        self.decision = decision
        self.started = started
        self.started_text = repr(started)
        self.history = history
        self.action: str | None = None
        self.attempt = 0
        self.request: ApprovalRequest | None = None
        self.answers: tuple[Answer, ...] = ()  # to the request
        self.recorded = 0  # of them, how many are in the trail
