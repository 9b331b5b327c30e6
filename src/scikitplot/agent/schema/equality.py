"""When two JSON values are equal, and exact division of numbers.

Imports the canonical text of strings. Numbers compare by value, so 1 and 1.0 are equal; booleans
are no numbers; objects compare without order.
"""

from __future__ import annotations

from typing import Any

from ..values import MAX_DEPTH, quote
from .bounds import TooMuch

__all__ = ["is_multiple", "key", "parts"]


def key(value: Any, depth: int = 0) -> str:
    """Return a text that two JSON values share if, and only if, they are equal.

    A text and not a tuple, because the hashes of integers can be chosen to collide, which makes a
    set of them quadratic; those of texts are seeded.

    Examples
    --------
    >>> from scikitplot.agent.schema.equality import key
    >>> key([1, True]) == key([1.0, True]), key([1]) == key([True])
    (True, False)
    """
    kind = type(value)
    if kind is str:
        return quote(value)
    if kind is int:
        return hex(value)  # of any length, in linear time
    if kind is float:
        return hex(int(value)) if value.is_integer() else repr(value)
    if kind is list or kind is dict:
        if depth > MAX_DEPTH:
            raise TooMuch(f"is nested deeper than {MAX_DEPTH} levels")
        if kind is list:
            return "[" + ",".join([key(item, depth + 1) for item in value]) + "]"
        pairs = [f"{key(name)}:{key(item, depth + 1)}" for name, item in value.items()]
        return "{" + ",".join(sorted(pairs)) + "}"
    return str(value)


def parts(number: float) -> tuple[int, int]:
    """Return the integers m and e for which `number`, in its shortest decimal form, is m * 10**e.

    Examples
    --------
    >>> from scikitplot.agent.schema.equality import parts
    >>> parts(19.99), parts(1e300), parts(7)
    ((1999, -2), (1, 300), (7, 0))
    """
    if isinstance(number, int):
        return number, 0
    digits, _, exponent = repr(number).partition("e")
    whole, _, fraction = digits.partition(".")
    if fraction == "0":
        fraction = ""
    return int(whole + fraction), int(exponent or 0) - len(fraction)


def is_multiple(value: float, of: tuple[int, int]) -> bool:
    """Return whether `value` is a multiple of the number whose `parts` are `of`.

    Examples
    --------
    >>> from scikitplot.agent.schema.equality import is_multiple, parts
    >>> is_multiple(19.99, parts(0.01)), is_multiple(19.995, parts(0.01))
    (True, False)
    """
    if value - value != 0:  # infinite, or not a number
        return False
    mantissa, exponent = parts(value)
    unit, unit_exponent = of
    shift = exponent - unit_exponent
    if shift >= 0:
        mantissa *= pow(10, shift)
    else:
        unit *= pow(10, -shift)
    return mantissa % unit == 0
