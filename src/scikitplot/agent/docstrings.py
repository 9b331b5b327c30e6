"""What a docstring says of a function's parameters, in the three forms that are in use.

Imports nothing of this package. numpydoc, Google's and Sphinx's forms are told apart line by line,
so that one docstring may mix them. In a section of parameters an entry that cannot be read is an
error, for otherwise its description would be lost without a word.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["Docstring", "read_docstring"]

_PARAMETERS = frozenset(
    (
        "args",
        "arguments",
        "keyword args",
        "keyword arguments",
        "other parameters",
        "parameters",
        "params",
    )
)
_OTHER_SECTIONS = frozenset(
    (
        "attributes",
        "example",
        "examples",
        "methods",
        "note",
        "notes",
        "raise",
        "raises",
        "receive",
        "receives",
        "references",
        "return",
        "returns",
        "see also",
        "todo",
        "warn",
        "warning",
        "warnings",
        "warns",
        "yield",
        "yields",
    )
)
_SECTIONS = _PARAMETERS | _OTHER_SECTIONS

_NAME = r"(?:\\?\*){0,2}[^\W\d]\w*"
_NAMES = rf"{_NAME}(?:\s*,\s*{_NAME})*"
_NUMPYDOC_ENTRY = re.compile(rf"({_NAMES})\s*(?::.*)?")
_GOOGLE_ENTRY = re.compile(rf"({_NAMES})\s*(?:\(.*?\))?\s*:\s*(.*)")
# The type between `:param` and the name is taken only where the text has no shorter reading.
_FIELD = re.compile(
    r":(?:params?|parameter|arg|argument|key|keyword|kwarg)\s+(?:.*?\s+)??"
    rf"({_NAME})\s*(?:\(.*?\))?\s*:(?:\s+(.*))?"
)
_OTHER_FIELD = re.compile(r":(?:type|vartype|returns?|rtype|raises?|except|exception|meta)\b.*?:.*")


class Docstring(NamedTuple):
    """A docstring, read.

    Attributes
    ----------
    description : str
        Its text without the sections and fields.
    parameters : dict of str to str
        What it says of each parameter, by name without stars.
    attributes : dict of str to str
        The same of a section ``Attributes``, which only classes have.
    """

    description: str
    parameters: dict[str, str]
    attributes: dict[str, str]


def read_docstring(text: str) -> Docstring:
    """Read a docstring.

    Parameters
    ----------
    text : str
        The docstring, indented or not.

    Returns
    -------
    Docstring
        Its description, and those of the parameters.

    Raises
    ------
    ValueError
        If an entry in a section of parameters is in none of the known forms.

    Examples
    --------
    >>> from scikitplot.agent.docstrings import read_docstring
    >>> read_docstring('''Find a word.
    ...
    ...     Args:
    ...         word (str): What to find.
    ...         limit: At most so many.
    ... ''')[:2]
    ('Find a word.', {'word': 'What to find.', 'limit': 'At most so many.'})
    """
    lines = _lines(text)
    prose: list[str] = []
    found: dict[str, dict[str, str]] = {"parameters": {}, "attributes": {}}
    at = 0
    while at < len(lines):
        line = lines[at]
        title = line.strip().lower()
        bare = title.removesuffix(":")
        if bare in _SECTIONS and _is_underline(lines, at + 1):
            end = _numpydoc_end(lines, at)
            _read_section(bare, lines[at + 2 : end], _NUMPYDOC_ENTRY, found)
        elif _google_title(line) and _block_end(lines, at) > at + 1:
            end = _block_end(lines, at)
            _read_section(bare, lines[at + 1 : end], _GOOGLE_ENTRY, found)
        elif field := _FIELD.fullmatch(line.strip()):
            end = _block_end(lines, at)
            found["parameters"].update(_entry(field[1], field[2], lines[at + 1 : end]))
        elif _OTHER_FIELD.fullmatch(line.strip()):
            end = _block_end(lines, at)
        else:
            prose.append(line)
            end = at + 1
        at = end
    description = re.sub(r"\n{3,}", "\n\n", "\n".join(prose)).strip()
    return Docstring(description, **found)


def _lines(text: str) -> list[str]:
    lines = inspect.cleandoc(text).splitlines()
    first = next((line for line in lines[1:] if line.strip()), " ")
    if lines and _google_title(lines[0]) and not first.startswith(" "):
        # The first line has no margin of its own, so that the block below it seems to have none.
        lines[1:] = [" " + line for line in lines[1:]]
    return lines


def _google_title(line: str) -> str:
    title = line.strip().lower()
    return title[:-1] if title.endswith(":") and title[:-1] in _SECTIONS else ""


def _is_underline(lines: Sequence[str], at: int) -> bool:
    return at < len(lines) and re.fullmatch(r"\s*(-{3,}|={3,})\s*", lines[at]) is not None


def _numpydoc_end(lines: Sequence[str], title: int) -> int:
    """Return where the next underlined title is; one indented deeper is a table's head."""
    margin = _margin(lines[title])
    for at in range(title + 2, len(lines) - 1):
        is_deeper = max(_margin(lines[at]), _margin(lines[at + 1])) > margin
        if lines[at].strip() and not is_deeper and _is_underline(lines, at + 1):
            return at
    return len(lines)


def _block_end(lines: Sequence[str], at: int) -> int:
    """Return where the lines end that are indented deeper than line `at`."""
    margin = _margin(lines[at])
    end = at + 1
    for index in range(at + 1, len(lines)):
        if lines[index].strip():
            if _margin(lines[index]) <= margin:
                break
            end = index + 1
    return end


def _margin(line: str) -> int:
    return len(line) - len(line.lstrip())


def _read_section(
    title: str, lines: Sequence[str], entry: re.Pattern[str], found: dict[str, dict[str, str]]
) -> None:
    if title not in _PARAMETERS and title != "attributes":
        return
    entries = found["attributes" if title == "attributes" else "parameters"]
    filled = [line for line in lines if line.strip()]
    if not filled or (len(filled) == 1 and filled[0].strip(" .").lower() == "none"):
        return
    margin = min(map(_margin, filled))
    at = 0
    while at < len(lines):
        if not lines[at].strip():
            at += 1
            continue
        match = entry.fullmatch(lines[at].strip())
        if match is None:
            if title == "attributes":
                return
            form = "name : type" if entry is _NUMPYDOC_ENTRY else "name: description"
            raise ValueError(
                f"the docstring's section {title!r} has the entry {lines[at].strip()[:60]!r}; "
                f"write it as '{form}'"
            )
        end = at + 1
        while end < len(lines) and not (lines[end].strip() and _margin(lines[end]) <= margin):
            end += 1
        first = match[2] if entry is _GOOGLE_ENTRY else None
        entries.update(_entry(match[1], first, lines[at + 1 : end]))
        at = end


def _entry(names: str, first: str | None, block: Sequence[str]) -> dict[str, str]:
    text = inspect.cleandoc("\n".join([first or "", *block]))
    return {name.strip().lstrip("\\*"): text for name in names.split(",")}
