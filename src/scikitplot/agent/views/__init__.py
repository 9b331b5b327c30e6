"""Views for people: what is shown of a thing, as text, as HTML and as Markdown."""

from .blocks import Block, Fact, Fields, Heading, Shown, StepRow, Table, Timeline, Values, View

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
