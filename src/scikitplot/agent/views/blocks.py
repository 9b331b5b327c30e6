"""What a view consists of, and the methods of what can be shown.

Imports `values` and the three renderers, each where it is asked for. A class says what is shown of
it, in blocks; how that looks as text, HTML or Markdown is said once, in `text`, `html` and
`markdown`. The rule that holds here: a block holds values as they came, and each renderer makes
them harmless for its own place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

from ..values import JSON

__all__ = [
    "Block",
    "Fact",
    "Fields",
    "Heading",
    "Shown",
    "StepRow",
    "Table",
    "Timeline",
    "Values",
    "View",
]


class Heading(NamedTuple):
    """What the view is of."""

    text: str


class Fields(NamedTuple):
    """Facts with a label each; a text is shown whole."""

    rows: Sequence[tuple[str, str]]


class Values(NamedTuple):
    """JSON values by name, each shown whole."""

    label: str
    values: Mapping[str, JSON]


class Table(NamedTuple):
    """Rows of texts; `hidden` more are not shown."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    hidden: int = 0


class Fact(NamedTuple):
    """A value of a step behind a label, of which no more than some rows are shown."""

    label: str
    value: JSON
    rows: int


class StepRow(NamedTuple):
    """A step: what was proposed, what the gates said of it, and what came of it."""

    number: int
    proposed: Fact | None  # None where it is not known
    reason: str
    gates: Sequence[tuple[str, str]]  # name and word, of those that were reached
    not_reached: Sequence[str]
    gates_told: str  # in place of them, where that is not known
    facts: Sequence[Fact | str]  # who was asked, and what they said
    outcome: str | None  # None while it is open
    code: str | None
    attempts: int
    cost: float | None  # None where it is not known
    started: float  # seconds of running time, as in the next
    seconds: float
    ends: Sequence[Fact]  # its error and its result


class Timeline(NamedTuple):
    """A run: its steps in order."""

    run_id: str
    goal: str
    status: str
    reason: str | None
    error: str | None
    usage: Sequence[str]  # in words
    seconds: float
    steps: Sequence[StepRow]
    hidden: int  # steps before the last ones that are not shown


Block: TypeAlias = "Heading | Fields | Values | Table | Timeline"


class Shown:
    """What can be shown to a person: at a terminal, in a notebook, in a Markdown document."""

    __slots__ = ()

    def _view(self) -> View:
        raise NotImplementedError

    def to_text(self, width: int = 80, encoding: str = "utf-8") -> str:
        """Return plain text that is safe to print, whatever is in it.

        Parameters
        ----------
        width : int, default=80
            Columns, at least 60.
        encoding : str, default="utf-8"
            Of the place where it is shown; what it cannot encode is escaped.
        """
        from .text import as_text

        return as_text(self._view().blocks, width, encoding)

    def _repr_html_(self) -> str:
        from .html import as_html

        return as_html(self._view().blocks)

    def _repr_markdown_(self) -> str:
        from .markdown import as_markdown

        return as_markdown(self._view().blocks)


class View(Shown):
    """Blocks, to be shown. In a notebook it is a picture, and ``str()`` of it is text.

    Examples
    --------
    >>> from scikitplot.agent.views import Heading, View
    >>> print(View(Heading("A run\\x1b[2K")))
    A run\\x1b[2K
    """

    __slots__ = ("blocks",)

    def __init__(self, *blocks: Block) -> None:
        self.blocks = blocks

    def _view(self) -> View:
        return self

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        return f"<View of {len(self.blocks)} blocks; print() shows it>"
