r"""Text from outside, made visible and folded, so that a person sees what is there.

Imports nothing of the package but the name of a type. Rules that hold here:

* what is not plainly visible (control, format, bidi and zero-width characters, blanks other than
  the space, marks piled on a letter) stands there as an escape such as ``\x1b`` or ``\u202e``: it
  moves no cursor, hides nothing and starts no line;
* lines are folded here and not by the terminal, and each starts with the view's own: a label, a
  quote or a bar, so that no value can pass for a part of the view;
* nothing is cut without a word in front of it that says how much is missing.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator
from itertools import groupby

from ..values import JSON

__all__ = ["Page", "escape", "excerpt_of", "is_name"]

_BLANK = re.compile(  # printable by category, yet there is nothing to see
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
    "\U0001d159\U000e0000-\U000e0fff]"
)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,39}", re.ASCII)
_MAX_MARKS = 4  # on one letter; with more they reach into other lines
_MAX_INDENT = 24
_MIN_WIDTH = 60
_json = json.JSONEncoder(ensure_ascii=False, check_circular=False).encode


def escape(text: str, encoding: str = "utf-8") -> str:
    r"""Return `text` in one line, with what is not plainly visible as an escape of Python.

    Parameters
    ----------
    text : str
        Anything. Its backslashes are doubled, so that they start no escape.
    encoding : str, default="utf-8"
        Of the place where it is shown; what it cannot encode is escaped too.

    Examples
    --------
    >>> print(escape("rm -rf /\r\x1b[2Kls \u202e \\"))
    rm -rf /\r\x1b[2Kls \u202e \\
    """
    return "".join(shown for shown, _ in _characters(text, encoding, "\\"))


def excerpt_of(value: JSON, most: int | None) -> tuple[str, int]:
    r"""Return a value as JSON in one line, and how many characters of it are missing there.

    Parameters
    ----------
    value : JSON
        Anything.
    most : int or None
        Characters of the JSON that are shown, at most; None shows it whole.

    Examples
    --------
    >>> excerpt_of(["x" * 100, "\x1b"], 5)
    ('["xxx', 109)
    """
    text = _json(value)
    kept = text if most is None else text[:most]
    return "".join(shown for shown, _ in _characters(kept, "utf-8", "")), len(text) - len(kept)


def is_name(text: object) -> bool:
    """Return whether `text` is a short name that may stand as a label of the view."""
    return type(text) is str and _NAME.fullmatch(text) is not None


class Page:
    r"""Lines of a view.

    Parameters
    ----------
    width : int
        Columns, at least 60.
    encoding : str
        Of the place where it is shown.

    Examples
    --------
    >>> page = Page(60, "utf-8")
    >>> page.text("because ", "it writes")
    >>> page.excerpt("  ", "result", "x" * 100, 1)
    >>> page.value(2, "text", "\n" * 5000 + "rm -rf /\x1b[2K")
    >>> print("\n".join(page.lines))
    because it writes
      result (46 more characters):
      | "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
      text:
        "\n"
        (this line 5,000 times)
        "rm -rf /\x1b[2K"
    """

    def __init__(self, width: int, encoding: str) -> None:
        self.lines: list[str] = []
        self._width = max(width, _MIN_WIDTH)
        self._encoding = encoding

    def text(self, start: str, text: str) -> None:
        """Add text behind `start`, whole; rows below it start with a bar."""
        below = " " * (len(start) - 2) + "| "
        for row in self._fold(text, len(below), "\\") or [[]]:
            self.lines.append((start + "".join(row)).rstrip())
            start = below

    def excerpt(self, start: str, label: str, value: JSON, most: int) -> None:
        """Add as much of a value, as JSON, as fits behind a label or in `most` rows below it."""
        text = _json(value)
        behind = self._fold(text[: self._width], len(start) + len(label) + 2, "")
        if len(behind) == 1 and len(behind[0]) == len(text):
            self.lines.append(f"{start}{label}: {''.join(behind[0])}")
            return
        below = " " * len(start) + "| "
        rows = self._fold(text[: most * self._width], len(below), "")[:most]
        missing = len(text) - sum(map(len, rows))
        self.text(start, f"{label} ({missing:,} more characters):" if missing else f"{label}:")
        self.lines += [below + "".join(row).rstrip() for row in rows]

    def value(self, indent: int, name: str | None, value: JSON) -> None:
        """Add a value whole, with its name in an object or, without one, as an item of a list."""
        pad = " " * min(indent, _MAX_INDENT)
        start = f"{pad}- " if name is None else f"{pad}{name}: "
        if name is not None and not is_name(name):
            self._literals(pad, name)
            start = f"{pad}: "
        text = _json(value)
        is_plain = text.isascii() and text.isprintable() and "\\" not in text
        if type(value) is str:
            self._literals(start, value)
        elif (
            not value
            or type(value) not in (list, dict)
            or (is_plain and len(start) + len(text) <= self._width)
        ):
            self.text(start, text)
        else:
            self.lines.append(f"{start}{text[0]}")
            items = value.items() if type(value) is dict else ((None, item) for item in value)
            for key, item in items:
                self.value(indent + 2, key, item)
            self.lines.append(f"{pad}{text[-1]}")

    def _literals(self, start: str, text: str) -> None:
        """Add a text as literals of Python, one for each of its lines."""
        lines = re.findall(r"[^\n]*\n|[^\n]+", text) or [""]
        if len(lines) == 1 and len(text) <= (1 + _MAX_MARKS) * self._width:
            rows = self._quoted(text, len(start))
            if len(rows) == 1:
                self.lines.append(start + rows[0])
                return
        below = len(start) - len(start.lstrip()) + 2
        rows = [row for line in lines for row in self._quoted(line, below)]
        self.lines.append(start.rstrip())
        for row, equal in groupby(rows):
            count = len(list(equal))
            self.lines += [" " * below + row] * (count if count < 4 else 1)
            if count >= 4:
                self.lines.append(f"{' ' * below}(this line {count:,} times)")

    def _quoted(self, line: str, indent: int) -> list[str]:
        quote = "'" if '"' in line and "'" not in line else '"'
        rows = self._fold(line, indent + 2, f"\\{quote}") or [[]]
        return [f"{quote}{''.join(row)}{quote}" for row in rows]

    def _fold(self, text: str, indent: int, doubled: str) -> list[list[str]]:
        """Return rows that fit behind an indent, broken at a space where there is one."""
        rows: list[list[str]] = []
        row: list[tuple[str, int]] = []
        used = space = 0
        for shown in _characters(text, self._encoding, doubled):
            if row and used + shown[1] > self._width - indent:
                cut = space if space > len(row) // 2 else len(row)
                rows.append([character for character, _ in row[:cut]])
                row = row[cut:]
                used, space = sum(columns for _, columns in row), 0
            row.append(shown)
            used += shown[1]
            if shown[0] == " ":
                space = len(row)
        return [*rows, [character for character, _ in row]] if row else rows


def _characters(text: str, encoding: str, doubled: str) -> Iterator[tuple[str, int]]:
    """Yield what is shown for each character, and the columns that it takes."""
    marks = _MAX_MARKS  # those that the letter before has; where there is none it takes none
    for char in text:
        shown, columns = char, 1
        category = unicodedata.category(char)
        is_mark = category.startswith("M")
        marks = marks + 1 if is_mark else 0 if char.isalnum() else _MAX_MARKS
        if " " <= char <= "~":
            if char in doubled:
                shown, columns = f"\\{char}", 2
        elif (is_mark and marks > _MAX_MARKS) or not _is_visible(char, encoding):
            shown = ascii(char)[1:-1]
            columns, marks = len(shown), _MAX_MARKS
        elif is_mark:
            columns = 1 if category == "Mc" else 0
        elif unicodedata.east_asian_width(char) in "WF":
            columns = 2
        yield shown, columns


def _is_visible(char: str, encoding: str) -> bool:
    try:
        char.encode(encoding)
    except UnicodeEncodeError:
        return False
    return char.isprintable() and not _BLANK.match(char)
