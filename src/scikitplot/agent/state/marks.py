"""What a run has read so far: the marks that its head keeps."""

from __future__ import annotations

from typing import NamedTuple

from ..tools import Tool
from .fields import Fields

__all__ = ["NO_MARKS", "Marks", "mark_text", "read_marks"]


class Marks(NamedTuple):
    """What a run has read so far; a property of the run, saved in its head.

    Attributes
    ----------
    tainted : int or str, or None
        Index of the step that first read untrusted content, ``"goal"`` if the goal is that; None
        where all is trusted.
    secret : int or None
        Index of the step that first returned a secret.
    """

    tainted: int | str | None = None
    secret: int | None = None

    def after(self, tool: Tool | None, step: int) -> Marks:
        """Return the marks once a call of `tool`, None if it is gone, came back.

        None is ever unset.
        """
        tainted, secret = self
        if tainted is not None and (secret is not None or (tool is not None and not tool.secret)):
            return self
        if tainted is None and (tool is None or not tool.trusted):
            tainted = step
        if secret is None and (tool is None or tool.secret):
            secret = step
        return Marks(tainted, secret)


NO_MARKS = Marks()


def mark_text(mark: int | str | None) -> str:
    """Return the canonical text of a mark."""
    return "null" if mark is None else '"goal"' if mark == "goal" else str(mark)


def read_marks(fields: Fields) -> Marks:
    """Return the marks that a saved head holds, or raise `StateError`."""
    tainted, secret = fields.value("tainted"), fields.value("secret")
    if tainted is not None and tainted != "goal":
        tainted = fields.count("tainted")
    return Marks(tainted, None if secret is None else fields.count("secret"))
