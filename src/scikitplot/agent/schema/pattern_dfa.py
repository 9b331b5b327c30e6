"""A matcher that reads each code point of the text once, whatever the pattern.

Imports `pattern_tree` and `unicode_classes`. The leaves of the tree are the positions of an
automaton (Glushkov's), a set of positions is an integer, and the deterministic automaton over such
sets is made while texts are read. Rules that hold here:

* A step from one set to the next costs at most one look-up for each eight positions, and is
  remembered; so the steps for a text of n code points are at most a constant times n.
* What is remembered is bounded by `MAX_CACHE`: when it is full, all of it is dropped.
* An assertion is the empty text where it holds and nothing at all where it does not. Whether it
  holds depends on what is before and what is after a place, of which there are three kinds each; so
  there is one table of what follows for each way in which the assertions of the pattern can hold.
  A set is therefore judged only when the next code point, or the end, is known.
* Threads may share a matcher: what is remembered is right whoever wrote it, and only the writing
  takes the lock.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from operator import length_hint
from threading import Lock

from .pattern_tree import Assertion, AssertionKind, Characters, Choice, Node, Repeat, Sequence
from .unicode_classes import WORD, CodePoints

__all__ = ["MAX_CACHE", "Automaton", "LazyMatcher"]

MAX_CACHE = 10_000
"""States and transitions that one matcher remembers."""

# What is at one side of a place: the edge of the text, a word character, or another one.
_EDGE, _WORD, _OTHER = range(3)
_KINDS = (_EDGE, _WORD, _OTHER)

_START = 1
"""The set that holds only the place before the first leaf, which is position 0."""


def _bits(number: int) -> Iterator[int]:
    while number:
        low = number & -number
        yield low.bit_length() - 1
        number ^= low


class _Follow(dict[int, int]):
    """What follows each of 256 subsets of eight positions, filled in when it is asked for."""

    __slots__ = ("single",)

    def __init__(self, single: list[int]) -> None:
        super().__init__({0: 0})
        self.single = single

    def __missing__(self, subset: int) -> int:
        low = subset & -subset
        follows = self[subset ^ low] | self.single[low.bit_length() - 1]
        self[subset] = follows
        return follows


class _Table:
    """Follow sets and accepting positions, given the assertions that hold."""

    __slots__ = ("accepting", "follow", "from_start", "leaves")

    def __init__(self, root: Node, holding: frozenset[AssertionKind]) -> None:
        self.leaves: list[CodePoints] = []
        follows = [0]
        nullable, first, last = self._visit(root, holding, follows)
        follows[0] = first
        self.accepting = last | (_START if nullable else 0)
        self.from_start = bool(first or nullable)
        self.follow = [_Follow(follows[i : i + 8]) for i in range(0, len(follows), 8)]

    def _visit(
        self, node: Node, holding: frozenset[AssertionKind], follows: list[int]
    ) -> tuple[bool, int, int]:
        """Number the leaves of `node`; return if it can be empty, its first and its last leaves."""
        if isinstance(node, Characters):
            position = 1 << len(follows)
            follows.append(0)
            self.leaves.append(node.points)
            return False, position, position
        if isinstance(node, Assertion):
            return node.kind in holding, 0, 0
        if isinstance(node, Choice):
            nullable, first, last = False, 0, 0
            for option in node.options:
                empty, begin, end = self._visit(option, holding, follows)
                nullable, first, last = nullable or empty, first | begin, last | end
            return nullable, first, last
        if isinstance(node, Sequence):
            parts = [self._visit(part, holding, follows) for part in node.parts]
            return _joined(parts, follows, optional=0)
        copies = node.low if node.high is None else node.high
        parts = [self._visit(node.body, holding, follows) for _ in range(copies or 1)]
        if node.high is None:
            nullable, first, last = parts[-1]
            for position in _bits(last):
                follows[position] |= first
            parts[-1] = (nullable or not node.low, first, last)
            return _joined(parts, follows, optional=0)
        return _joined(parts, follows, optional=node.high - node.low)


def _joined(
    parts: list[tuple[bool, int, int]], follows: list[int], optional: int
) -> tuple[bool, int, int]:
    """Put `parts` in sequence; with the last `optional` of them, the text may also end before each.

    From right to left, so that each leaf is looked at once however many parts can be empty.
    """
    nullable, first, last = True, 0, 0
    for index in range(len(parts) - 1, -1, -1):
        empty, begin, end = parts[index]
        if first:
            for position in _bits(end):
                follows[position] |= first
        if nullable:
            last |= end
        if empty:
            first |= begin
        else:
            first = begin
            nullable = False
        nullable = nullable or index >= len(parts) - optional
    return nullable, first, last


def _assertions(node: Node) -> frozenset[AssertionKind]:
    if isinstance(node, Assertion):
        return frozenset([node.kind])
    if isinstance(node, Repeat):
        return _assertions(node.body)
    if isinstance(node, Characters):
        return frozenset()
    inner = node.parts if isinstance(node, Sequence) else node.options
    return frozenset().union(*map(_assertions, inner))


def _holding(before: int, after: int) -> frozenset[AssertionKind]:
    edges: list[AssertionKind] = ["boundary" if (before == _WORD) != (after == _WORD) else "inside"]
    if before == _EDGE:
        edges.append("start")
    if after == _EDGE:
        edges.append("end")
    return frozenset(edges)


class _Alphabet:
    """Code points in classes: two of one class are in the same sets of the pattern."""

    __slots__ = ("_classes", "_firsts", "_positions", "_signatures", "_taken", "_word")

    def __init__(self, leaves: list[CodePoints]) -> None:
        numbers = {WORD: 0}
        self._positions = [0]  # of the leaves that have each set
        for position, points in enumerate(leaves, 1):
            number = numbers.setdefault(points, len(numbers))
            if number == len(self._positions):
                self._positions.append(0)
            self._positions[number] |= 1 << position
        changes = {0: 0}
        for points, number in numbers.items():
            for low, high in points:
                changes[low] = changes.get(low, 0) ^ 1 << number
                changes[high + 1] = changes.get(high + 1, 0) ^ 1 << number
        self._firsts = sorted(changes)
        self._classes: list[int] = []
        classes: dict[int, int] = {}
        signature = 0
        for first in self._firsts:
            signature ^= changes[first]
            self._classes.append(classes.setdefault(signature, len(classes)))
        self._signatures = list(classes)
        self._taken: dict[int, int] = {}

    def class_of(self, char: str) -> int:
        return self._classes[bisect_right(self._firsts, ord(char)) - 1]

    def is_word(self, kind: int) -> bool:
        return self._signatures[kind] & 1 == 1

    def positions(self, kind: int) -> int:
        """Return the leaves that take the code points of the class `kind`."""
        if kind not in self._taken:
            taken = 0
            for number in _bits(self._signatures[kind]):
                taken |= self._positions[number]
            self._taken[kind] = taken
        return self._taken[kind]


class Automaton:
    """What a pattern's texts look like, without anything that was learnt from a text.

    Parameters
    ----------
    root : Node
        The tree; its size, with counts written out, is the caller's to bound.
    """

    __slots__ = ("alphabet", "before", "restart", "tables")

    def __init__(self, root: Node) -> None:
        used = _assertions(root)
        made: dict[frozenset[AssertionKind], _Table] = {}
        self.tables: list[list[_Table]] = []
        for before in _KINDS:
            row = []
            for after in _KINDS:
                holding = used & _holding(before, after)
                if holding not in made:
                    made[holding] = _Table(root, holding)
                row.append(made[holding])
            self.tables.append(row)
        # Of the kinds that make no difference, one stands for all: fewer states.
        self.before = [self.tables.index(row) for row in self.tables]
        # Beyond the start of the text, a match may begin only where something leads.
        beyond = self.tables[_WORD] + self.tables[_OTHER]
        self.restart = _START if any(table.from_start for table in beyond) else 0
        self.alphabet = _Alphabet(self.tables[0][0].leaves)


class _Decided(Exception):
    """The answer is known before the end of the text."""


class _State(dict[str, "_State"]):
    """A set of positions and what was before it; maps the next character to the next state."""

    __slots__ = ("accepts", "before", "by_class", "matcher", "positions")

    def __init__(self, matcher: LazyMatcher, positions: int, before: int, accepts: bool) -> None:
        super().__init__()
        self.matcher = matcher
        self.positions = positions
        self.before = before
        self.accepts = accepts
        self.by_class: dict[int, _State] = {}

    def __missing__(self, char: str) -> _State:
        return self.matcher.step(self, char)


class LazyMatcher:
    """Tells whether a pattern occurs in a text, in steps that grow with the text alone.

    Parameters
    ----------
    automaton : Automaton
        The pattern.

    Examples
    --------
    >>> from scikitplot.agent.schema.pattern_dfa import Automaton, LazyMatcher
    >>> from scikitplot.agent.schema.pattern_parser import parse
    >>> hostile = LazyMatcher(Automaton(parse("^(a+)+$")))
    >>> hostile("a" * 1000), hostile("a" * 1000 + "!")
    (True, False)
    """

    __slots__ = ("_automaton", "_found", "_lock", "_lost", "_room", "_start", "_states", "work")

    def __init__(self, automaton: Automaton) -> None:
        self._automaton = automaton
        self._lock = Lock()
        self._states: dict[tuple[int, int], _State] = {}
        self._room = MAX_CACHE
        self.work = 0
        self._found = _State(self, 0, _EDGE, True)
        self._lost = _State(self, 0, _EDGE, False)
        self._start = self._state(_START, automaton.before[_EDGE])

    def __call__(self, text: Iterable[str]) -> bool:
        state = self._start
        try:
            for char in text:
                state = state[char]
        except _Decided:
            pass
        return state.accepts

    def steps(self, text: str) -> int:
        """Return the steps that a matcher which remembers nothing takes for `text`.

        A step is a code point that was read, or a look-up while a state was made.
        """
        fresh = LazyMatcher(self._automaton)
        chars = iter(text)
        fresh(chars)
        return len(text) - length_hint(chars) + fresh.work

    def step(self, state: _State, char: str) -> _State:
        """Return the state after `char`, which `state` does not remember."""
        if state is self._found or state is self._lost:
            raise _Decided
        kind = self._automaton.alphabet.class_of(char)
        with self._lock:
            if self._room <= 0:
                self._forget()
            following = state.by_class.get(kind)
            if following is None:
                following = state.by_class[kind] = self._follow(state, kind)
                self._room -= 1
            state[char] = following
            self._room -= 1
        return following

    def _follow(self, state: _State, kind: int) -> _State:
        automaton = self._automaton
        after = _WORD if automaton.alphabet.is_word(kind) else _OTHER
        table = automaton.tables[state.before][after]
        if state.positions & table.accepting:
            return self._found
        reached = 0
        chunks = state.positions.to_bytes(len(table.follow), "little")
        for follow, subset in zip(table.follow, chunks, strict=True):
            reached |= follow[subset]
        self.work += len(chunks)
        reached = reached & automaton.alphabet.positions(kind) | automaton.restart
        return self._state(reached, automaton.before[after]) if reached else self._lost

    def _state(self, positions: int, before: int) -> _State:
        key = (positions, before)
        state = self._states.get(key)
        if state is None:
            at_end = self._automaton.tables[before][_EDGE].accepting
            state = self._states[key] = _State(self, positions, before, positions & at_end != 0)
            self._room -= 1
        return state

    def _forget(self) -> None:
        # A text that is being read goes on from the state it is in, to which nothing leads now.
        for state in self._states.values():
            state.clear()
            state.by_class.clear()
        self._states = {(self._start.positions, self._start.before): self._start}
        self._room = MAX_CACHE
