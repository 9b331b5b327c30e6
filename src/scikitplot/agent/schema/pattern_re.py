"""Patterns that Python's ``re`` may search for: it takes linear time for them, and means the same.

Imports `pattern_tree` and `unicode_classes`. ``re`` tries all ways in which a pattern can match,
one after the other, and remembers none of them. It takes linear time where there are few ways, and
a pattern goes to ``re`` only where that is proved here. Two measures bound the ways:

**One way.** A part has *one way* if the next code point alone decides how a match goes on. That is
so if the options of each choice begin differently; if what is repeated or left out begins
differently from what comes after it; and if nothing that can be empty is repeated, left out, or one
of two such options, for then the empty text there would match in two ways. From one place, ``re``
reads the text along one path. Every other way ends before it reads a code point, after at most as
many attempts as the pattern has leaves, and no point of the path is left twice for what follows.

**Work.** A part without endless repetition has a number of steps in which all its ways are tried,
whatever the text is.

So the steps for a text of n code points are bounded, for a pattern that is

1. begun by ``^`` and of bounded work: by the work;
2. begun by ``^`` and a part that has one way, and ended by one of bounded work, which is entered at
   most n + 1 times: by n + 1 times the leaves of the one and the work of the other;
3. of bounded work: by n + 1 times the work, for an attempt at each place;
4. a choice of such patterns: by the sum.

`MAX_WORK_ONCE` and `MAX_WORK` bound the sums, of what does not and of what does grow with n.

In a part that has one way, only a set is repeated more than `MAX_WORK` times: of anything longer,
``re`` keeps a record of each time, some 100 bytes. An assertion counts as the empty text: where it
fails, a way only ends sooner. The meaning is the same because every set is written out, ``$``
becomes ``\\Z``, and ``\\b`` is that of ASCII. ``\\B`` does not go to ``re``, which means something
else by it in an empty text before Python 3.14.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from .pattern_tree import (
    Assertion,
    Characters,
    Choice,
    Node,
    Repeat,
    Sequence,
)
from .unicode_classes import ANY, LAST, CodePoints, complement, overlap, union

__all__ = ["MAX_RANGES", "MAX_WORK", "MAX_WORK_ONCE", "compile_re", "is_linear", "ranges"]

MAX_RANGES = 10_000
"""Ranges in the sets of a pattern; bounds the time that ``re`` takes to compile it."""

MAX_WORK = 100
"""Steps for each place of the text."""

MAX_WORK_ONCE = 10_000
"""Steps that do not grow with the text."""


def is_linear(root: Node) -> bool:
    """Tell whether ``re`` is proved to search for `root` in linear time, and to mean the same.

    Examples
    --------
    >>> from scikitplot.agent.schema.pattern_parser import parse
    >>> from scikitplot.agent.schema.pattern_re import is_linear
    >>> is_linear(parse("^[a-z]+-[a-z]+$")), is_linear(parse("^[a-z]+[a-f]+$"))
    (True, False)
    """
    if ranges(root) > MAX_RANGES or not _means_the_same(root):
        return False
    costs = list(map(_cost, _options(root)))
    return (
        sum(cost.once for cost in costs) <= MAX_WORK_ONCE
        and sum(cost.each for cost in costs) <= MAX_WORK
    )


def compile_re(root: Node) -> Callable[[str], object]:
    """Return the function of ``re`` that gives a true value for a text in which `root` occurs.

    Examples
    --------
    >>> from scikitplot.agent.schema.pattern_parser import parse
    >>> from scikitplot.agent.schema.pattern_re import compile_re
    >>> occurs = compile_re(parse("^\\\\d+$"))
    >>> bool(occurs("12")), bool(occurs("12\\n"))
    (True, False)
    """
    compiled = re.compile(_translated(root), re.ASCII)
    return compiled.match if all(map(_is_anchored, _options(root))) else compiled.search


def ranges(node: Node) -> int:
    """Return how many ranges of code points the sets of `node` have."""
    if isinstance(node, Characters):
        return len(node.points)
    return sum(map(ranges, _children(node)))


def _leaves(node: Node) -> int:
    return sum(map(_leaves, _children(node))) or 1


def _means_the_same(node: Node) -> bool:
    if isinstance(node, Assertion):
        return node.kind in _ASSERTIONS
    return all(map(_means_the_same, _children(node)))


def _children(node: Node) -> tuple[Node, ...]:
    if isinstance(node, Repeat):
        return (node.body,)
    if isinstance(node, Choice):
        return node.options
    return node.parts if isinstance(node, Sequence) else ()


def _options(root: Node) -> tuple[Node, ...]:
    return root.options if isinstance(root, Choice) else (root,)


def _parts(node: Node) -> tuple[Node, ...]:
    return node.parts if isinstance(node, Sequence) else (node,)


def _is_anchored(option: Node) -> bool:
    return _parts(option)[:1] == (Assertion("start"),)


class _Cost(NamedTuple):
    """Bounds of the steps: those that are taken once, and those for each place of the text."""

    once: int
    each: int


def _cost(option: Node) -> _Cost:
    work = _work(option).steps
    if not _is_anchored(option):
        return _Cost(0, work)
    if work <= MAX_WORK_ONCE:
        return _Cost(work, 0)
    parts = _parts(option)
    known: _OneWay | None = _NOTHING
    for index, part in enumerate(parts):
        known = _then(known, _one_way(part))
        if known is None:
            tail = Sequence(parts[index:])
            return _Cost(0, _leaves(Sequence(parts[:index])) + _work(tail).steps)
    return _Cost(0, _leaves(option))


class _Work(NamedTuple):
    """Steps in which all ways of a part are tried, and their number; `_ENDLESS` is the most."""

    steps: int
    ways: int


_ENDLESS = MAX_WORK_ONCE + 1


def _work(node: Node) -> _Work:
    if isinstance(node, Choice):
        works = list(map(_work, node.options))
        steps, ways = 1 + sum(work.steps for work in works), sum(work.ways for work in works)
    elif isinstance(node, Sequence):
        steps, ways = 1, 1
        for part in node.parts:
            work = _work(part)
            steps, ways = steps + ways * work.steps, ways * work.ways
    elif isinstance(node, Repeat):
        steps, ways = _repeated_work(node)
    else:
        steps, ways = 1, 1
    return _Work(min(steps, _ENDLESS), min(ways, _ENDLESS))


def _repeated_work(node: Repeat) -> _Work:
    if node.high is None:
        return _Work(_ENDLESS, _ENDLESS)
    body = _work(node.body)
    steps, ways, here = 1, 0, 1
    for count in range(node.high + 1):
        if count >= node.low:
            ways += here
        if count < node.high:
            steps += here * body.steps
            here *= body.ways
        if steps > _ENDLESS:
            break
    return _Work(steps, ways)


class _OneWay(NamedTuple):
    """What is known of a part that has one way."""

    empty: bool  # the empty text may match
    first: CodePoints  # with which a match may begin
    more: CodePoints  # with which it may go on where it may also end


_NOTHING = _OneWay(True, (), ())


def _one_way(node: Node) -> _OneWay | None:
    if isinstance(node, Characters):
        return _OneWay(False, node.points, ())
    if isinstance(node, Assertion):
        return _NOTHING
    if isinstance(node, Sequence):
        known: _OneWay | None = _NOTHING
        for part in node.parts:
            known = _then(known, _one_way(part))
        return known
    if isinstance(node, Choice):
        known = _one_way(node.options[0])
        for option in node.options[1:]:
            known = _either(known, _one_way(option))
        return known
    often = node.high is None or node.high > MAX_WORK
    body = _one_way(node.body)
    if body is None or body.empty or (often and not isinstance(node.body, Characters)):
        return None
    again = node.high != 1
    if again and overlap(body.more, body.first):
        return None
    more = body.more
    if again and node.low != node.high:
        more = union(more + body.first)
    return _OneWay(node.low == 0, body.first, more)


def _then(left: _OneWay | None, right: _OneWay | None) -> _OneWay | None:
    # `left` grew from `_NOTHING`: if it can be empty, what it may begin with is in `more`.
    if left is None or right is None or overlap(left.more, right.first):
        return None
    return _OneWay(
        left.empty and right.empty,
        union(left.first + right.first) if left.empty else left.first,
        union(left.more + right.first + right.more) if right.empty else right.more,
    )


def _either(left: _OneWay | None, right: _OneWay | None) -> _OneWay | None:
    if left is None or right is None or (left.empty and right.empty):
        return None
    if overlap(left.first, right.first):
        return None
    return _OneWay(
        left.empty or right.empty, union(left.first + right.first), union(left.more + right.more)
    )


_ASSERTIONS = {"start": r"\A", "end": r"\Z", "boundary": r"\b"}


def _translated(node: Node) -> str:
    if isinstance(node, Characters):
        return _set(node.points)
    if isinstance(node, Assertion):
        return _ASSERTIONS[node.kind]
    if isinstance(node, Repeat):
        body = _translated(node.body)
        if not isinstance(node.body, Characters):
            body = f"(?:{body})"
        return f"{body}{{{node.low},{'' if node.high is None else node.high}}}"
    if isinstance(node, Sequence):
        return "".join(map(_translated, node.parts))
    return f"(?:{'|'.join(map(_translated, node.options))})"


def _set(points: CodePoints) -> str:
    if points == ANY:
        return "(?s:.)"
    if not points:
        return "(?!)"
    if points[0] == (points[-1][1], points[-1][1]):
        return re.escape(chr(points[0][0]))
    # ``re`` takes longest for sets that go to the last code point.
    negated = points[-1][1] == LAST
    pairs = complement(points) if negated else points
    written = "".join(f"\\U{low:08x}-\\U{high:08x}" for low, high in pairs)
    return f"[{'^' if negated else ''}{written}]"
