"""A key that shows itself only where it is sent.

Imports `values`. Rules that hold here:

* the key is kept under a mask, so that no repr, attribute, closure or dump of an object has it;
* no frame that has it bare raises: `of` returns what is wrong, for its caller to drop the key and
  raise it, and `reveal` is called in one frame alone, which no exception leaves: see
  `transport.exchange`;
* a secret is neither copied nor pickled.
"""

from __future__ import annotations

import hashlib
import secrets
from typing import NoReturn

from ..values import type_name

__all__ = ["Secret"]

_PART = 6
_LONGEST = 10_000


class Secret:
    """An API key, printable ASCII without blanks; made by `of`.

    Examples
    --------
    >>> from scikitplot.agent.models.secret import Secret
    >>> key = Secret.of("sk-123456")
    >>> key, key.scrub("no such key: sk-1234**")
    (<Secret>, 'no such key: [key]**')
    """

    __slots__ = ("_mask", "_masked", "_parts", "_size")

    _mask: bytes
    _masked: bytes
    _parts: set[bytes]
    _size: int

    def __init__(self) -> None:
        raise TypeError("make a secret with Secret.of(...)")

    @classmethod
    def of(cls, key: str) -> Secret | TypeError | ValueError:
        """Return a key, or the error that says what is wrong with it, without it."""
        if type(key) is not str:
            return TypeError(f"api_key must be a str or None, not {type_name(key)}")
        if not 0 < len(key) <= _LONGEST or not all("!" <= char <= "~" for char in key):
            return ValueError("api_key must be printable ASCII without blanks, and not empty")
        made = object.__new__(cls)
        made._mask = secrets.token_bytes(len(key))
        made._masked = bytes(a ^ b for a, b in zip(key.encode(), made._mask, strict=True))
        made._size = size = min(_PART, len(key))
        made._parts = {made._mark(key[at : at + size]) for at in range(len(key) - size + 1)}
        return made

    def reveal(self) -> str:
        """Return the key itself."""
        return bytes(a ^ b for a, b in zip(self._masked, self._mask, strict=True)).decode()

    def scrub(self, text: str) -> str:
        """Return `text` without the key and without any part of it of 6 characters or more."""
        shown: list[str] = []
        start = 0
        while start < len(text):
            end = start
            while self._mark(text[end : end + self._size]) in self._parts:
                end += 1
            if end > start:
                shown.append("[key]")
                start = end + self._size - 1
            else:
                shown.append(text[start])
                start += 1
        return "".join(shown)

    def _mark(self, part: str) -> bytes:
        # With the mask for a salt: the parts of the key are known again, and not to be read.
        return hashlib.blake2b(part.encode(), key=self._mask[:64], digest_size=16).digest()

    def __repr__(self) -> str:
        return "<Secret>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("an API key is neither copied nor pickled; make the planner where it runs")
