"""The grammar of ECMA-262 patterns in Unicode mode (flag ``u``), read into a tree.

Imports `pattern_tree` and `unicode_classes`. What the grammar does not allow is refused, and so is
what cannot be searched for in linear time (back-references, look-around) and what exceeds a bound
below. A refusal is a `PatternError` that names the position and the reason.
"""

from __future__ import annotations

from .pattern_tree import Assertion, AssertionKind, Characters, Node, choice, repeat, sequence
from .unicode_classes import (
    DIGIT,
    DOT,
    LAST,
    SPACE,
    WORD,
    CodePoints,
    complement,
    property_class,
    union,
)

__all__ = ["MAX_COUNT", "MAX_NESTING", "MAX_RANGES", "MAX_SOURCE", "PatternError", "parse"]

MAX_SOURCE = 10_000
"""Code points of a pattern."""

MAX_NESTING = 32
"""Groups inside each other."""

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
_SYNTAX = frozenset("^$\\.*+?()[]{}|/")
_CONTROLS = {"f": 0x0C, "n": 0x0A, "r": 0x0D, "t": 0x09, "v": 0x0B}
_CLASSES = {
    "d": DIGIT,
    "D": complement(DIGIT),
    "s": SPACE,
    "S": complement(SPACE),
    "w": WORD,
    "W": complement(WORD),
}
# Escapes of other languages, and what they are here.
_FOREIGN = {"A": "^", "Z": "$", "z": "$", "a": "\\x07", "e": "\\x1B"}
_HEX = frozenset("0123456789abcdefABCDEF")
_DIGITS = frozenset("0123456789")
_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")


class PatternError(ValueError):
    """A pattern that is refused.

    Parameters
    ----------
    reason : str
        What is wrong, and what to write in its place where there is something.
    position : int
        Index of the code point in the source at which it is wrong.

    Examples
    --------
    >>> from scikitplot.agent.schema.patterns import PatternError, compile_pattern
    >>> try:
    ...     compile_pattern("[z-a]")
    ... except PatternError as error:
    ...     print(error.position, error.reason)
    1 the range ends before it starts
    """

    def __init__(self, reason: str, position: int) -> None:
        super().__init__(reason, position)
        self.reason = reason
        self.position = position

    def __str__(self) -> str:
        return f"at position {self.position}: {self.reason}"


def parse(source: str) -> Node:
    """Return the tree of the pattern `source`, or raise `PatternError`.

    Examples
    --------
    >>> from scikitplot.agent.schema.pattern_parser import parse
    >>> parse("\\\\d{2,}")
    Repeat(body=Characters(points=((48, 57),)), low=2, high=None)
    """
    if len(source) > MAX_SOURCE:
        raise PatternError(f"longer than {MAX_SOURCE} characters", MAX_SOURCE)
    return _Parser(source).pattern()


class _Parser:
    """Recursive descent: a method for each production, all reading on from `at`."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.at = 0
        self.depth = 0
        self.ranges = 0
        self.names: set[str] = set()

    def error(self, reason: str, position: int | None = None) -> PatternError:
        return PatternError(reason, self.at if position is None else position)

    def peek(self) -> str:
        return self.source[self.at : self.at + 1]

    def take(self, text: str) -> bool:
        if self.source.startswith(text, self.at):
            self.at += len(text)
            return True
        return False

    def run(self, allowed: frozenset[str]) -> str:
        start = self.at
        while self.peek() in allowed:
            self.at += 1
        return self.source[start : self.at]

    def pattern(self) -> Node:
        try:
            self.source.encode()
        except UnicodeEncodeError as error:
            raise PatternError("a lone surrogate is no character", error.start) from None
        node = self.disjunction()
        if self.at < len(self.source):
            raise self.error("')' closes no group; write \\) for the character")
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
        for text in ("?=", "?!", "?<=", "?<!"):
            if self.take(text):
                raise self.error(f"look-around '({text}' cannot be matched in linear time", start)
        if self.take("?<"):
            self.group_name(start)
        elif self.peek() == "?" and not self.take("?:"):
            raise self.error(
                "a group begins with '(', '(?:' or '(?<name>'; there are no flags", start
            )
        if self.depth == MAX_NESTING:
            raise self.error(f"groups are nested more than {MAX_NESTING} deep", start)
        self.depth += 1
        node = self.disjunction()
        self.depth -= 1
        if not self.take(")"):
            raise self.error("this group is not closed", start)
        return node

    def group_name(self, start: int) -> None:
        end = self.source.find(">", self.at)
        name = ""
        while self.at < end:
            if self.take("\\"):
                if not self.take("u"):
                    raise self.error("a group's name takes no escape but \\u", start)
                name += chr(self.unicode_escape(self.at - 2))
            else:
                name += self.peek()
                self.at += 1
        if self.at != end or not name.replace("$", "_").isidentifier():
            raise self.error("this group's name is not an identifier followed by '>'", start)
        self.at += 1
        if name in self.names:
            raise self.error("two groups have this name", start)
        self.names.add(name)

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
        first = last = self.run(_DIGITS)
        if self.take(","):
            last = self.run(_DIGITS)
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
        char = self.peek()
        if "1" <= char <= "9" or char == "k":
            raise self.error("a back-reference cannot be matched in linear time", start)
        points = self.class_escape(start)
        return _one(self.character_escape(start)) if points is None else points

    def class_escape(self, start: int) -> CodePoints | None:
        """Read what stands for a set, such as ``\\d``, or nothing."""
        char = self.peek()
        if char in _CLASSES:
            self.at += 1
            return _CLASSES[char]
        if char not in ("p", "P"):
            return None
        self.at += 1
        end = self.source.find("}", self.at)
        if not self.take("{") or end < 0:
            raise self.error(f"\\{char} is followed by {{Property}}", start)
        try:
            points = property_class(self.source[self.at : end])
        except ValueError as error:
            raise PatternError(str(error), start) from None
        self.at = end + 1
        return complement(points) if char == "P" else points

    def character_escape(self, start: int) -> int:
        char = self.peek()
        self.at += 1
        if char in _CONTROLS:
            return _CONTROLS[char]
        if char in _SYNTAX:
            return ord(char)
        if char == "0" and self.peek() not in _DIGITS:
            return 0
        if char == "c" and self.peek() in _LETTERS:
            self.at += 1
            return ord(self.source[self.at - 1]) % 32
        if char == "x":
            return self.hexadecimal(2, start)
        if char == "u":
            return self.unicode_escape(start)
        if not char:
            raise self.error("nothing is escaped; write \\\\ for the character", start)
        advice = f"write {_FOREIGN.get(char, 'the character alone')}"
        raise self.error(f"\\{ascii(char)[1:-1]} is no escape in Unicode mode; {advice}", start)

    def hexadecimal(self, length: int, start: int) -> int:
        digits = self.source[self.at : self.at + length]
        if len(digits) < length or not _HEX.issuperset(digits):
            raise self.error(f"not {length} hexadecimal digits", start)
        self.at += length
        return int(digits, 16)

    def unicode_escape(self, start: int) -> int:
        if self.take("{"):
            digits = self.run(_HEX).lstrip("0") or "0"
            if self.source[self.at - 1] == "{" or not self.take("}"):
                raise self.error("\\u{ is followed by hexadecimal digits and '}'", start)
            if len(digits) > 6 or int(digits, 16) > LAST:
                raise self.error(f"no code point is above {LAST:x}", start)
            return int(digits, 16)
        lead = self.hexadecimal(4, start)
        here = self.at
        if 0xD800 <= lead <= 0xDBFF and self.take("\\u") and self.peek() != "{":
            trail = self.hexadecimal(4, here)
            if 0xDC00 <= trail <= 0xDFFF:
                return 0x10000 + ((lead & 0x3FF) << 10) + (trail & 0x3FF)
        self.at = here
        return lead

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
