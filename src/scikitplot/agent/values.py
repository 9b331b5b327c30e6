"""JSON values: the strict copy, the canonical text and its digest.

Imports the standard library alone. Everything that comes from a planner, a tool, a person or a
file passes through here before it is used, and these rules hold for it:

* JSON types only, exactly (no subclasses), no NaN, no infinity, no lone surrogate, string keys;
* at most `MAX_DEPTH` levels, `MAX_INT_BITS` bits in an integer, and a number of bytes that the
  caller names, counted on the canonical text; the cost of a refusal is bounded by the same number;
* nothing is converted but, where the caller allows it, a tuple, which becomes a list;
* a refusal names the place and the type, never the value.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import math
from collections.abc import Callable, Iterable
from decimal import Clamped, Context, Decimal, Inexact, InvalidOperation, Overflow
from json.encoder import encode_basestring
from typing import Any, TypeAlias

__all__ = [
    "JSON",
    "MAX_BYTES",
    "MAX_DEPTH",
    "MAX_INT_BITS",
    "MAX_NESTING",
    "MAX_TEXT",
    "InvalidValue",
    "ValueTooLarge",
    "add_exactly",
    "admit",
    "check_amount",
    "check_names",
    "check_text",
    "check_type",
    "clean_text",
    "digest",
    "encode",
    "exact",
    "pointer",
    "quote",
    "type_name",
]

JSON: TypeAlias = Any
"""``None``, ``bool``, ``int``, ``float``, ``str``, or a ``list`` or ``dict`` of these."""

MAX_DEPTH = 64
"""Levels of lists and objects in one value."""

MAX_NESTING = MAX_DEPTH + 16
"""Levels of a record or a saved text: those of a value, and those around it."""

MAX_INT_BITS = 4_096
"""Bits of an integer, some 1,233 decimal digits."""

MAX_BYTES = 1_000_000
"""Bytes of the canonical text of one call's arguments, or of one answer."""

MAX_TEXT = 100_000
"""Characters of a goal, a reason or a name of a person."""

_INT_BOUND = 2**MAX_INT_BITS

_encoder = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False, check_circular=False
)
# `JSONEncoder.encode` makes a new C encoder at every call, which costs more than what it then does
# for a small value. Where Python has that encoder, one is made here and kept.
_make: Any = getattr(json.encoder, "c_make_encoder", None)
_chunks: Any = _encoder.iterencode
if _make is not None:
    _c_encoder = _make(
        None, _encoder.default, encode_basestring, None, ":", ",", True, False, False
    )

    def _chunks(value: JSON) -> Any:
        return _c_encoder(value, 0)


def encode(value: JSON) -> str:
    """Return the canonical text of a value that was admitted: sorted keys, no spaces.

    Examples
    --------
    >>> from scikitplot.agent.values import encode
    >>> encode({"b": [1.0, None], "a": "é"})
    '{"a":"é","b":[1.0,null]}'
    """
    return "".join(_chunks(value))


quote: Callable[[str], str] = encode_basestring
"""The canonical text of one string."""


class InvalidValue(ValueError):
    """A value that is no JSON value, with the place (a JSON pointer) and the reason."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self._path: list[str | int] = []

    @property
    def pointer(self) -> str:
        """JSON pointer (RFC 6901) of the part at fault, ``""`` for the whole value."""
        return pointer(reversed(self._path))

    def __str__(self) -> str:
        return f"{self.pointer}: {self.reason}" if self._path else self.reason


class ValueTooLarge(InvalidValue):
    """A value whose canonical text has more bytes than the caller allows."""


def pointer(parts: Iterable[str | int]) -> str:
    """Return the JSON pointer of `parts`, each cut at 60 characters since it may come from outside.

    Examples
    --------
    >>> from scikitplot.agent.values import pointer
    >>> pointer(["a/b", 0])
    '/a~1b/0'
    """
    tokens = (clean_text(str(part), 60).replace("~", "~0").replace("/", "~1") for part in parts)
    return "".join("/" + token for token in tokens)


def admit(
    value: object,
    max_bytes: int = MAX_BYTES,
    *,
    max_depth: int = MAX_DEPTH,
    allow_tuples: bool = False,
) -> tuple[JSON, str]:
    """Return a strict copy of `value` and its canonical text, or raise `InvalidValue`.

    Parameters
    ----------
    value : object
        Anything.
    max_bytes : int, default=1_000_000
        The most bytes that the canonical text may have in UTF-8.
    max_depth : int, default=64
        The most levels of lists and objects.
    allow_tuples : bool, default=False
        Whether a tuple is taken, as a list; its saved form differs from what was given.

    Returns
    -------
    copy : JSON
        A copy that shares nothing mutable with `value`.
    text : str
        The copy's canonical text.

    Raises
    ------
    InvalidValue
        If `value` holds what is not JSON; `ValueTooLarge` if it is too large.

    Examples
    --------
    >>> from scikitplot.agent.values import admit
    >>> admit({"b": [1, 2], "a": None})
    ({'b': [1, 2], 'a': None}, '{"a":null,"b":[1,2]}')
    >>> admit({"when": [1, {2}]})
    Traceback (most recent call last):
        ...
    scikitplot.agent.values.InvalidValue: /when/1: a set is no JSON value
    """
    if type(value) is str and len(value) <= max_bytes and value.isascii():
        text = quote(value)  # what most results are, and nothing in it can be wrong but its size
        if len(text) <= max_bytes:
            return value, text
    room = [max_bytes, allow_tuples]
    try:
        copy = _copy(value, max_depth, room)
    except RuntimeError:  # another thread changes it, so that it cannot be iterated
        raise InvalidValue("it changes while it is read") from None
    try:
        text = encode(copy)
    except ValueError:  # sys.set_int_max_str_digits was set lower than ours
        raise InvalidValue("an integer of more digits than this Python is set to write") from None
    size = len(text) if text.isascii() else len(text.encode())
    if size > max_bytes:
        raise ValueTooLarge(f"{size} bytes of JSON, {max_bytes} are allowed")
    return copy, text


def _copy(value: Any, depth: int, room: list[int]) -> JSON:
    # `room` holds what is left of a lower bound of the text's size, so that neither a huge value
    # nor a small one that refers to itself many times costs more than the limit allows; and
    # whether tuples are taken.
    kind = type(value)
    if kind is str:
        room[0] -= len(value) + 2
        if room[0] < 0:
            raise _too_large()
        if not value.isascii():
            _check_surrogates(value)
        return value
    room[0] -= 1
    if room[0] < 0:
        raise _too_large()
    if value is None or kind is bool:
        return value
    if kind is int:
        if not -_INT_BOUND < value < _INT_BOUND:
            raise InvalidValue(f"an integer of more than {MAX_INT_BITS} bits")
        return value
    if kind is float:
        if not math.isfinite(value):
            raise InvalidValue("NaN and infinity are no JSON values")
        return value
    if kind is dict:
        if depth == 0:
            raise InvalidValue("lists and objects nested too deep")
        return _copy_object(value, depth - 1, room)
    if kind is list or (kind is tuple and room[1]):
        if depth == 0:
            raise InvalidValue("lists and objects nested too deep")
        items = []
        for index, item in enumerate(value):
            try:
                items.append(_copy(item, depth - 1, room))
            except InvalidValue as error:
                error._path.append(index)
                raise
        return items
    raise InvalidValue(f"a {type_name(value)} is no JSON value")


def _copy_object(value: dict[Any, Any], depth: int, room: list[int]) -> dict[str, JSON]:
    copy: dict[str, JSON] = {}
    for key, item in value.items():
        if type(key) is not str:
            raise InvalidValue(f"a key that is a {type_name(key)}; JSON keys are strings")
        room[0] -= len(key) + 3
        if room[0] < 0:
            raise _too_large()
        if not key.isascii():
            _check_surrogates(key)
        try:
            copy[key] = _copy(item, depth, room)
        except InvalidValue as error:
            error._path.append(key)
            raise
    return copy


def _too_large() -> ValueTooLarge:
    return ValueTooLarge("larger than the bytes of JSON that are allowed")


def _check_surrogates(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidValue("text with a lone surrogate") from None


def check_text(name: str, value: object, limit: int = MAX_TEXT) -> str:
    """Return `value` if it is a string that can be written, or raise an error that names it.

    Examples
    --------
    >>> from scikitplot.agent.values import check_text
    >>> check_text("goal", "find it")
    'find it'
    >>> check_text("goal", 3)
    Traceback (most recent call last):
        ...
    TypeError: goal must be a str, not int
    """
    if type(value) is not str:
        raise TypeError(f"{name} must be a str, not {type_name(value)}")
    if len(value) > limit:
        raise ValueError(f"{name} has {len(value)} characters, at most {limit} are allowed")
    if not value.isascii():
        try:
            _check_surrogates(value)
        except InvalidValue:
            raise ValueError(
                f"{name} has a lone surrogate; decode it with errors='replace'"
            ) from None
    return value


def check_names(argument: str, values: object) -> frozenset[str]:
    """Return `values` as a set of non-empty strings, or raise an error that names the argument."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise TypeError(f"{argument} must be an iterable of str, not {type_name(values)}")
    checked = frozenset(check_text(f"an item of {argument}", value, 1_000) for value in values)
    if "" in checked:
        raise ValueError(f"an item of {argument} is empty")
    return checked


def check_amount(argument: str, value: object) -> float:
    """Return `value` as a finite float of at least 0, or raise an error that names the argument."""
    if type(value) not in (int, float):
        raise TypeError(f"{argument} must be a number, not {type_name(value)}")
    try:
        number = float(value)  # type: ignore[arg-type]
    except OverflowError:
        number = math.inf
    if not 0 <= number < math.inf:
        raise ValueError(f"{argument} must be finite and at least 0")
    return number


def check_type(name: str, value: object, *kinds: type) -> None:
    """Raise an error that names the argument unless the type of `value` is exactly one of `kinds`.

    Examples
    --------
    >>> from scikitplot.agent.values import check_type
    >>> check_type("step", 1.0, int)
    Traceback (most recent call last):
        ...
    TypeError: step must be int, not float
    """
    if type(value) not in kinds:
        told = " or ".join("None" if kind is type(None) else kind.__name__ for kind in kinds)
        raise TypeError(f"{name} must be {told}, not {type_name(value)}")


def clean_text(text: str, limit: int = 2_000) -> str:
    """Return `text` so that it can be written: no lone surrogate, at most `limit` characters.

    Examples
    --------
    >>> from scikitplot.agent.values import clean_text
    >>> clean_text("a\\ud800b"), clean_text("abcdef", 3)
    ('a?b', 'abc... (3 more characters)')
    """
    more = len(text) - limit
    if more > 0:
        text = f"{text[:limit]}... ({more} more characters)"
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def type_name(value: object) -> str:
    """Return the name of the type of `value`, whatever its class says of itself.

    Examples
    --------
    >>> from scikitplot.agent.values import type_name
    >>> type_name(1.5), type_name(type("not a name", (), {})())
    ('float', 'object')
    """
    name: str = type.__dict__["__name__"].__get__(type(value))
    return name if len(name) <= 100 and name.isascii() and name.isidentifier() else "object"


def digest(text: str, key: bytes | None = None) -> str:
    """Return the SHA-256 of `text` in UTF-8 as 64 hexadecimal digits; with a key, its HMAC.

    Examples
    --------
    >>> from scikitplot.agent.values import digest
    >>> digest("{}")[:16]
    '44136fa355b3678a'
    """
    if key is None:
        return hashlib.sha256(text.encode()).hexdigest()
    return hmac.digest(key, text.encode(), "sha256").hex()


_EXACT = Context(prec=5_000, traps=[Inexact, InvalidOperation, Overflow, Clamped])
add_exactly: Callable[[Decimal, Decimal], Decimal] = _EXACT.add
"""The exact sum of two costs; a sum of finite floats never needs more digits than it has."""


def exact(number: float) -> Decimal:
    """Return the decimal that the shortest repr of `number` shows.

    Examples
    --------
    >>> from scikitplot.agent.values import exact
    >>> exact(0.1) + exact(0.2) == exact(0.3)
    True
    """
    return Decimal(repr(number))
