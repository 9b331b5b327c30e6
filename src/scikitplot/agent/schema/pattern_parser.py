"""The grammar of ECMA-262 patterns in Unicode mode (flag ``u``), read into a tree.

Imports `pattern_reader`, `pattern_tree` and `unicode_classes`. What the grammar does not allow is
refused, and so is what cannot be searched for in linear time (back-references, look-around) and
what exceeds a bound below. A refusal is a `PatternError`.
"""

from __future__ import annotations

from .pattern_reader import DIGITS, MAX_SOURCE, PatternError, Reader
from .pattern_tree import (
    EMPTY,
    Assertion,
    AssertionKind,
    Characters,
    Node,
    choice,
    repeat,
    sequence,
)
from .unicode_classes import DOT, CodePoints, complement, union

__all__ = [
    "MAX_COUNT",
    "MAX_NESTING",
    "MAX_RANGES",
    "MAX_SOURCE",
    "PatternError",
    "check_syntax",
    "parse",
]

MAX_NESTING = 20
"""Groups inside each other; the recursion here and in what reads the tree is as deep."""

MAX_COUNT = 1_000_000
"""Number in a quantifier."""

MAX_RANGES = 50_000
"""Ranges of code points in all classes; ``\\p{L}`` has about 650."""

_ASSERTIONS: tuple[tuple[str, AssertionKind], ...] = (
    ("^", "start"),
    ("$", "end"),
    ("\\b", "boundary"),
    ("\\B", "inside"),
)
_LOOK_AROUND = ("(?=", "(?!", "(?<=", "(?<!")


def parse(source: str) -> Node:
    """Return the tree of the pattern `source`, or raise `PatternError`.

    Examples
    --------
    >>> from scikitplot.agent.schema.pattern_parser import parse
    >>> parse("\\\\d{2,}")
    Repeat(body=Characters(points=((48, 57),)), low=2, high=None)
    """
    return _Parser(source, syntax_only=False).pattern()


def check_syntax(source: str) -> None:
    """Raise `PatternError` unless `source` is a pattern, which `parse` may yet refuse.

    The bounds hold here too. The name of a script is not looked up.

    Examples
    --------
    >>> from scikitplot.agent.schema.pattern_parser import check_syntax
    >>> check_syntax("(?=a)(b)\\\\1")
    >>> check_syntax("(?=a")
    Traceback (most recent call last):
        ...
    scikitplot.agent.schema.pattern_reader.PatternError: at position 0: this group is not closed
    """
    _Parser(source, syntax_only=True).pattern()


class _Parser(Reader):
    """Recursive descent: a method for each production."""

    def __init__(self, source: str, syntax_only: bool) -> None:
        super().__init__(source, syntax_only)
        self.depth = 0
        self.ranges = 0
        self.groups = 0
        self.names: set[str] = set()
        self.references: list[tuple[int, int | str]] = []

    def pattern(self) -> Node:
        node = self.disjunction()
        if self.at < len(self.source):
            raise self.error("')' closes no group; write \\) for the character")
        for position, group in self.references:
            if group not in self.names if isinstance(group, str) else group > self.groups:
                raise self.error("no group has this name or number", position)
        return node

    def disjunction(self) -> Node:
        options = [self.alternative()]
        while self.take("|"):
            options.append(self.alternative())
        return choice(options)

    def alternative(self) -> Node:
        parts = []
        while self.peek() not in ("", "|", ")"):
            parts.append(self.term())
        return sequence(parts)

    def term(self) -> Node:
        start = self.at
        for text, kind in _ASSERTIONS:
            if self.take(text):
                if self.peek() in ("*", "+", "?", "{"):
                    raise self.error("an assertion cannot be repeated")
                return Assertion(kind)
        for text in _LOOK_AROUND:
            if self.take(text):
                self.refuse(
                    f"look-around '{text}' cannot be matched in linear time; make the condition a "
                    "pattern of its own, in allOf or not",
                    start,
                )
                self.group_body(start)
                return EMPTY
        char = self.peek()
        if char in ("*", "+", "?"):
            raise self.error(f"nothing to repeat; write \\{char} for the character")
        if char in ("{", "}", "]"):
            raise self.error(f"'{char}' stands alone; write \\{char} for the character")
        self.at += 1
        if char == "(":
            node = self.group(start)
        elif char == "[":
            node = self.characters(self.char_class(start), start)
        elif char == "\\":
            node = self.characters(self.atom_escape(start), start)
        else:
            node = Characters(DOT if char == "." else _one(ord(char)))
        return self.quantified(node)

    def characters(self, points: CodePoints, start: int) -> Characters:
        self.ranges += len(points)
        if self.ranges > MAX_RANGES:
            raise self.error(f"the classes have more than {MAX_RANGES} ranges", start)
        return Characters(points)

    def group(self, start: int) -> Node:
        if self.take("?<"):
            name = self.group_name(start)
            if name in self.names:
                raise self.error("two groups have this name", start)
            self.names.add(name)
            self.groups += 1
        elif self.peek() != "?":
            self.groups += 1
        elif not self.take("?:"):
            raise self.error(
                "a group begins with '(', '(?:' or '(?<name>'; there are no flags", start
            )
        return self.group_body(start)

    def group_body(self, start: int) -> Node:
        if self.depth == MAX_NESTING:
            raise self.error(f"groups are nested more than {MAX_NESTING} deep", start)
        self.depth += 1
        node = self.disjunction()
        self.depth -= 1
        if not self.take(")"):
            raise self.error("this group is not closed", start)
        return node

    def group_name(self, start: int) -> str:
        end = self.source.find(">", self.at)
        name = ""
        while self.at < end:
            if self.take("\\"):
                if not self.take("u"):
                    raise self.error("a group's name takes no escape but \\u", start)
                name += chr(self.unicode_escape(start))
            else:
                name += self.peek()
                self.at += 1
        if self.at != end or not name.replace("$", "_").isidentifier():
            raise self.error("a group's name is an identifier followed by '>'", start)
        self.at += 1
        return name

    def quantified(self, node: Node) -> Node:
        start = self.at
        low, high = 0, None
        if self.take("{"):
            low, high = self.counts(start)
        elif self.take("+"):
            low = 1
        elif self.take("?"):
            high = 1
        elif not self.take("*"):
            return node
        self.take("?")
        return repeat(node, low, high)

    def counts(self, start: int) -> tuple[int, int | None]:
        first = last = self.run(DIGITS)
        if self.take(","):
            last = self.run(DIGITS)
        if not first or not self.take("}"):
            raise self.error("no count; write {n}, {n,} or {n,m}, or \\{ for the character", start)
        low = self.count(first, start)
        if not last:
            return low, None
        high = self.count(last, start)
        if high < low:
            raise self.error("the counts are out of order", start)
        return low, high

    def count(self, digits: str, start: int) -> int:
        digits = digits.lstrip("0") or "0"
        if len(digits) > len(str(MAX_COUNT)) or int(digits) > MAX_COUNT:
            raise self.error(f"a count above {MAX_COUNT}", start)
        return int(digits)

    def atom_escape(self, start: int) -> CodePoints:
        if self.back_reference(start):
            return ()
        points = self.class_escape(start)
        return _one(self.character_escape(start)) if points is None else points

    def back_reference(self, start: int) -> bool:
        if "1" <= self.peek() <= "9":
            digits = self.run(DIGITS)
            # A pattern has fewer groups than characters, so more digits name none.
            self.references.append((start, int(digits[: len(str(MAX_SOURCE))])))
        elif self.take("k"):
            if not self.take("<"):
                raise self.error("\\k is followed by <name>", start)
            self.references.append((start, self.group_name(start)))
        else:
            return False
        self.refuse(
            "a back-reference cannot be matched in linear time; write the cases out, or check the "
            "text in the tool",
            start,
        )
        return True

    def char_class(self, start: int) -> CodePoints:
        negated = self.take("^")
        ranges: list[tuple[int, int]] = []
        while not self.take("]"):
            here = self.at
            low = self.class_atom(start)
            if self.peek() == "-" and self.source[self.at + 1 : self.at + 2] not in ("", "]"):
                self.at += 1
                high = self.class_atom(start)
                if not isinstance(low, int) or not isinstance(high, int):
                    raise self.error(
                        "a range is between two characters; write \\- for the hyphen", here
                    )
                if high < low:
                    raise self.error("the range ends before it starts", here)
                ranges.append((low, high))
            else:
                ranges.extend(_one(low) if isinstance(low, int) else low)
        points = union(ranges)
        return complement(points) if negated else points

    def class_atom(self, start: int) -> int | CodePoints:
        here = self.at
        char = self.peek()
        if not char:
            raise self.error("this class is not closed", start)
        self.at += 1
        if char != "\\":
            return ord(char)
        if self.take("b"):
            return 0x08
        if self.take("-"):
            return ord("-")
        points = self.class_escape(here)
        return self.character_escape(here) if points is None else points


def _one(point: int) -> CodePoints:
    return ((point, point),)
