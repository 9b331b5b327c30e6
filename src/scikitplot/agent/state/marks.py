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
    secret : int or str, or None
        Index of the step that first returned a secret, ``"goal"`` if the run goes on from one that
        read some.
    """

    tainted: int | str | None = None
    secret: int | str | None = None

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

    def passed_on(self) -> Marks:
        """Return the first marks of a run that goes on from what this one has read."""
        tainted, secret = self
        return Marks(None if tainted is None else "goal", None if secret is None else "goal")

    def after_child(self, child: Marks, step: int) -> Marks:
        """Return the marks once the run that a step delegated to came back with its own."""
        tainted, secret = self
        if tainted is None and child.tainted is not None:
            tainted = step
        if secret is None and child.secret is not None:
            secret = step
        return Marks(tainted, secret)


NO_MARKS = Marks()


def mark_text(mark: int | str | None) -> str:
    """Return the canonical text of a mark."""
    return "null" if mark is None else '"goal"' if mark == "goal" else str(mark)


def read_marks(fields: Fields) -> Marks:
    """Return the marks that a saved head holds, or raise `StateError`."""
    marks = []
    for name in Marks._fields:
        mark = fields.value(name)
        marks.append(mark if mark is None or mark == "goal" else fields.count(name))
    return Marks(*marks)
