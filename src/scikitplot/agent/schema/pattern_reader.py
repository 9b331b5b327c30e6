"""What is read of a pattern character by character: the escapes of ECMA-262 in Unicode mode.

Imports `unicode_classes`. A refusal is a `PatternError` that names the position and the reason.
"""

from __future__ import annotations

from .unicode_classes import (
    DIGIT,
    LAST,
    SPACE,
    WORD,
    CodePoints,
    NoTable,
    complement,
    property_class,
)

__all__ = ["DIGITS", "MAX_SOURCE", "PatternError", "Reader"]

MAX_SOURCE = 10_000
"""Code points of a pattern."""

DIGITS = frozenset("0123456789")
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


class Reader:
    """Reads on from `at`; each method reads one thing, whose first character is at `start`.

    Parameters
    ----------
    source : str
        The pattern.
    syntax_only : bool
        Whether what is well-formed but cannot be searched for is taken.
    """

    def __init__(self, source: str, syntax_only: bool) -> None:
        if len(source) > MAX_SOURCE:
            raise PatternError(f"longer than {MAX_SOURCE} characters", MAX_SOURCE)
        try:
            source.encode()
        except UnicodeEncodeError as error:
            raise PatternError("a lone surrogate is no character", error.start) from None
        self.source = source
        self.at = 0
        self._syntax_only = syntax_only

    def error(self, reason: str, position: int | None = None) -> PatternError:
        return PatternError(reason, self.at if position is None else position)

    def refuse(self, reason: str, position: int) -> None:
        """Raise the error of what is well-formed but cannot be searched for."""
        if not self._syntax_only:
            raise PatternError(reason, position)

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
        except NoTable as error:
            self.refuse(str(error), start)
            points = ()
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
        if char == "0" and self.peek() not in DIGITS:
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
