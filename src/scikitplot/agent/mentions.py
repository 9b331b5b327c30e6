"""What a text writes: whole tokens, numbers, and the links, addresses and accounts in it.

Imports `values`. Rules that hold here:

* a value is written where it stands as whole tokens, never as a part of a longer one;
* what a stranger may choose costs time linear in its length, whatever it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import NamedTuple

from .values import JSON, exact

__all__ = ["Mentions", "Suspect", "number_of", "suspects"]

_QUOTES = {"'": "'", '"': '"', "`": "`", "‘": "’", "“": "”", "«": "»", "「": "」", "『": "』"}  # noqa: RUF001
_OPENING = "([{<" + "".join(_QUOTES)
_CLOSING = ".,;:!?)]}>" + "".join(_QUOTES.values())
_PAIRS = (("(", ")"), ("[", "]"), ("{", "}"), ("<", ">"))
_MAX_WORDS = 32  # a value of more is not looked for
_MAX_PLACES = 100  # where one word stands that are looked at
_SHORT = 20  # characters: as long as words of a language get
_NUMBER = re.compile(
    r"[$€£¥]?([+-]?[0-9]{1,40}|[+-]?[0-9]{1,3}(?:,[0-9]{3}){1,12})(\.[0-9]{1,40})?[$€£¥]?"
)


def number_of(value: JSON) -> Decimal | None:
    """Return a JSON number by value, None for what is none (a bool is none)."""
    if type(value) is int:
        return Decimal(value)
    return exact(value) if type(value) is float else None


class Mentions:
    """The tokens of a text that is trusted: what stands between white space, without punctuation.

    Parameters
    ----------
    text : str
        The text.

    Examples
    --------
    >>> from scikitplot.agent.mentions import Mentions
    >>> goal = Mentions("Send 1,200.50 to bob@example.com, subject 'rent'. Thank the tenants.")
    >>> [goal.writes(value) for value in ("bob@example.com", "example.com", "rent", "tenants")]
    [True, False, True, False]
    >>> goal.writes(1200.5), goal.writes("1")
    (True, False)
    """

    __slots__ = ("_at", "_chunks", "_numbers", "_used")

    def __init__(self, text: str) -> None:
        self._chunks = text.split()
        self._at: dict[str, list[int]] = {}
        self._numbers: dict[Decimal, list[int]] = {}
        self._used: set[int] = set()  # the chunks that were read from
        for place, chunk in enumerate(self._chunks):
            core = _core(chunk)
            _append(self._at.setdefault(core, []), place)
            found = _NUMBER.fullmatch(core)
            if found:
                number = Decimal(found[1].replace(",", "") + (found[2] or ""))
                _append(self._numbers.setdefault(number, []), place)

    def writes(self, value: JSON, *, unused: bool = False) -> bool:
        """Return whether the text writes a string or a number as whole tokens.

        Parameters
        ----------
        value : JSON
            A string, a number (compared by value) or a bool (by its JSON text).
        unused : bool, default=False
            Whether only a place counts that `use` has not taken.
        """
        return any(
            not (unused and self._used.intersection(places)) for places in self._places(value)
        )

    def use(self, value: JSON) -> None:
        """Take the first place where the text writes `value`."""
        self._used.update(next(self._places(value), ()))

    def use_all(self) -> None:
        """Take every place."""
        self._used.update(range(len(self._chunks)))

    def _places(self, value: JSON) -> Iterator[range]:
        number = number_of(value)
        if number is not None:
            for place in self._numbers.get(number, ()):
                yield range(place, place + 1)
            return
        text = value if type(value) is str else str(value).lower()
        wanted = text.split()
        core = _core(wanted[0]) if 0 < len(wanted) <= _MAX_WORDS else ""
        if not core or text != text.strip() or not all(map(_is_balanced, wanted)):
            return
        plain = all(map(_is_plain, wanted))
        for place in self._at.get(core, ()):
            if self._stands_at(place, wanted, plain):
                yield range(place, place + len(wanted))

    def _stands_at(self, place: int, wanted: list[str], plain: bool) -> bool:
        chunks = self._chunks[place : place + len(wanted)]
        if len(chunks) < len(wanted) or chunks[1:-1] != wanted[1:-1]:
            return False
        first, last = chunks[0], chunks[-1]
        if len(wanted) == 1:
            # Both have the same core, so that what is around it is punctuation.
            start = first.find(wanted[0])
            before, after = first[: max(0, start)], first[start + len(wanted[0]) :]
            stands = start >= 0
        else:
            before, after = first[: -len(wanted[0])], last[len(wanted[-1]) :]
            stands = first.endswith(wanted[0]) and last.startswith(wanted[-1])
        if not stands or before.strip(_OPENING) or after.strip(_CLOSING):
            return False
        return not plain or (before != "" and after.startswith(_QUOTES.get(before[-1], "\0")))


def _append(places: list[int], place: int) -> None:
    if len(places) < _MAX_PLACES:
        places.append(place)


def _core(chunk: str) -> str:
    return chunk.lstrip(_OPENING).rstrip(_CLOSING)


def _is_balanced(chunk: str) -> bool:
    # A closing bracket belongs to the token that opened it: (wiki/Ham_(food)) is wiki/Ham_(food).
    return all(chunk.count(opening) <= chunk.count(closing) for opening, closing in _PAIRS)


def _is_plain(chunk: str) -> bool:
    """Return whether a chunk is so short and common that it may stand for anything."""
    core = _core(chunk)
    if core.isdecimal():
        return len(core) < _ACCOUNT_DIGITS
    return (
        len(core) < _SHORT
        and core == core.lower()
        and all(sign.isalpha() or sign in "-'’" for sign in core)  # noqa: RUF001
    )


class Suspect(NamedTuple):
    """A part of a text that leads somewhere."""

    kind: str
    start: int  # where it begins, in characters
    text: str


# Searched in one run of characters without white space; none of them tries a place twice.
_BREAK = re.compile(r"[\s<>\"]+")
_LINK = re.compile(r"://|^www\.|\w\.[^\W\d_]{2}|^[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?![0-9.])")
_ADDRESS = re.compile(r"\S@\w")
_DATE = re.compile(
    r"(?:[12][0-9]{3}[-/.](?:0?[1-9]|1[0-2])[-/.][0-3]?[0-9]"
    r"|[0-3]?[0-9][-/.][0-3]?[0-9][-/.][12][0-9]{3})(?:T[0-9]{2}:[0-9]{2}(?::[0-9]{2})?Z?)?"
)
_NUMERIC = re.compile(r"\+?[A-Za-z]{0,4}[0-9][A-Za-z0-9/.,()-]*")
_ACCOUNT_DIGITS = 8
# As a reader or a mail program takes them: full-width forms, and what stands for a dot.
_PLAIN = {0xFF01 + offset: 0x21 + offset for offset in range(94)}
_PLAIN.update(dict.fromkeys((0x2024, 0x3002, 0xFF0E, 0xFF61), ord(".")))
_EDGES = "()[]{}.,;:!?'`‘’“”«»"  # noqa: RUF001


def suspects(text: str) -> Iterator[Suspect]:
    """Yield the links, addresses and account numbers in `text`.

    An account number is a run of at least 8 digits, with letters between them or not, that hyphens
    or single spaces may divide; a date is none. What only looks like a link (``notes.txt``) is
    taken for one.

    Examples
    --------
    >>> from scikitplot.agent.mentions import suspects
    >>> text = "On 2024-05-15 see (www.example.com), or pay GB29 6016 1331 e.g. 12.50 to al@b.org."
    >>> [(kind, part) for kind, _, part in suspects(text)]
    [('link', 'www.example.com'), ('account number', 'GB29 6016 1331'), ('address', 'al@b.org')]
    """
    digits, start, end = 0, 0, 0  # of a run of numeric chunks
    for at, chunk in _chunks(text):
        core = chunk.strip(_EDGES)
        lead = chunk.find(core)
        plain = core.translate(_PLAIN)
        kind = ""
        if _ADDRESS.search(plain) and "://" not in plain:
            kind = "address"
        elif _LINK.search(plain):
            kind = "link"
        counted = sum(map(str.isdigit, plain))
        numeric = not kind and counted and _NUMERIC.fullmatch(plain) and not _DATE.fullmatch(plain)
        if digits and (not numeric or at - end > 1):
            yield from _account(text, digits, start, end)
            digits = 0
        if kind:
            yield Suspect(kind, at + lead, core)
        elif numeric:
            start = start if digits else at + lead
            digits, end = digits + counted, at + lead + len(core)
        elif counted >= _ACCOUNT_DIGITS and not _DATE.fullmatch(plain):
            yield Suspect("account number", at + lead, core)
    yield from _account(text, digits, start, end)


def _account(text: str, digits: int, start: int, end: int) -> Iterator[Suspect]:
    if digits >= _ACCOUNT_DIGITS:
        yield Suspect("account number", start, text[start:end])


def _chunks(text: str) -> Iterator[tuple[int, str]]:
    at = 0
    for gap in _BREAK.finditer(text):
        if gap.start() > at:
            yield at, text[at : gap.start()]
        at = gap.end()
    if at < len(text):
        yield at, text[at:]
