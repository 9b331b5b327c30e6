"""What a pattern says, as a tree, and the one question asked of it: does it occur in a text?

Imports `unicode_classes` alone. Groups leave no trace, and a lazy quantifier is a greedy one:
neither changes the answer. The functions that make nodes keep the tree small: sequences and choices
are flat, nothing is repeated that has no width, and single characters to choose from are one set.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from typing import Literal, TypeAlias

from .unicode_classes import CodePoints, union

__all__ = [
    "EMPTY",
    "Assertion",
    "AssertionKind",
    "Characters",
    "Choice",
    "Node",
    "Repeat",
    "Sequence",
    "choice",
    "repeat",
    "sequence",
    "size",
    "trim",
]


AssertionKind: TypeAlias = Literal["start", "end", "boundary", "inside"]


@dataclass(frozen=True, slots=True)
class Characters:
    """One code point of a set; of the empty set, nothing at all matches."""

    points: CodePoints


@dataclass(frozen=True, slots=True)
class Assertion:
    """A condition on a place between two code points: ``^``, ``$``, ``\\b`` or ``\\B``."""

    kind: AssertionKind


@dataclass(frozen=True, slots=True)
class Sequence:
    """All parts, one after the other."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """Any one of the options."""

    options: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """`body`, at least `low` times and at most `high` times (None: without end)."""

    body: Node
    low: int
    high: int | None


Node: TypeAlias = Characters | Assertion | Sequence | Choice | Repeat

EMPTY = Sequence(())
"""What matches the empty text, everywhere."""


def sequence(parts: Iterable[Node]) -> Node:
    """Return `parts` one after the other as one flat node."""
    flat: list[Node] = []
    for part in parts:
        if isinstance(part, Sequence):
            flat.extend(part.parts)
        else:
            flat.append(part)
    return flat[0] if len(flat) == 1 else Sequence(tuple(flat))


def choice(options: Iterable[Node]) -> Node:
    """Return the choice of `options`, of which there is one; single characters become one set."""
    rest: list[Node] = []
    sets: list[CodePoints] = []
    for option in options:
        for each in option.options if isinstance(option, Choice) else (option,):
            if isinstance(each, Characters):
                sets.append(each.points)
            else:
                rest.append(each)
    if sets:
        rest.append(Characters(sets[0] if len(sets) == 1 else union(chain(*sets))))
    return rest[0] if len(rest) == 1 else Choice(tuple(rest))


def repeat(body: Node, low: int, high: int | None) -> Node:
    """Return `body` repeated.

    What has no width is not repeated: a second time changes nothing.
    """
    if not _has_width(body):
        return body if low else choice([EMPTY, body])
    if high == 0:
        return EMPTY
    return body if low == high == 1 else Repeat(body, low, high)


def _has_width(node: Node) -> bool:
    if isinstance(node, Sequence):
        return any(map(_has_width, node.parts))
    if isinstance(node, Choice):
        return any(map(_has_width, node.options))
    return not isinstance(node, Assertion)


def size(node: Node) -> int:
    """Return how many leaves `node` has when all counts are written out.

    Examples
    --------
    >>> from scikitplot.agent.schema.pattern_parser import parse
    >>> from scikitplot.agent.schema.pattern_tree import size
    >>> size(parse("(?:ab{1,3}){10}|c*"))
    41
    """
    if isinstance(node, Sequence):
        return sum(map(size, node.parts)) or 1
    if isinstance(node, Choice):
        return sum(map(size, node.options))
    if isinstance(node, Repeat):
        return size(node.body) * max(node.low, node.high or 1)
    return 1


def trim(node: Node) -> Node:
    """Return a smaller pattern that occurs in the same texts.

    A repetition at either end of what is searched for needs no more than its least count: where
    more of it occurs, that occurs too. So ``.*b+`` is in the same texts as ``b``.

    Examples
    --------
    >>> from scikitplot.agent.schema.pattern_parser import parse
    >>> from scikitplot.agent.schema.pattern_tree import trim
    >>> trim(parse(".*b+")) == parse("b")
    True
    """
    return _trim(_trim(node, 0), -1)


def _trim(node: Node, end: Literal[0, -1]) -> Node:
    if isinstance(node, Repeat):
        if node.low <= 1:
            return _trim(node.body, end) if node.low else EMPTY
        return repeat(node.body, node.low, node.low)
    if isinstance(node, Choice):
        return choice(_trim(option, end) for option in node.options)
    if isinstance(node, Sequence):
        parts = list(node.parts)
        while parts:
            outer = parts.pop(end)
            inner = _trim(outer, end)
            if inner != EMPTY:
                return sequence([inner, *parts] if end == 0 else [*parts, inner])
        return EMPTY
    return node
