"""The keywords: what each may hold, which are refused, and what to write in their place.

Imports nothing of the package. A reader checks the value of one keyword and returns it in the form
that the rest of `schema/` uses; it raises `Refusal` with a reason. Keywords that hold schemas are
read in `reader`, which knows places.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from difflib import get_close_matches
from typing import Any

__all__ = [
    "ANNOTATIONS",
    "ASSERTIONS",
    "LISTS",
    "NAMED",
    "SINGLE",
    "TYPES",
    "Refusal",
    "nearest",
    "why_unknown",
]

TYPES = ("array", "boolean", "integer", "null", "number", "object", "string")

SINGLE = {"additionalProperties", "items", "not"}
LISTS = {"allOf", "anyOf", "oneOf", "prefixItems"}
NAMED = {"properties"}

ANNOTATIONS = {
    "$comment",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    "default",
    "deprecated",
    "description",
    "examples",
    "format",
    "readOnly",
    "title",
    "writeOnly",
}


class Refusal(ValueError):
    """Why the value of a keyword is refused; the place is known to the caller."""


def nearest(word: str, known: list[str]) -> str:
    """Return ``"; did you mean 'x'?"`` for the name nearest to `word`, ``""`` if none is near.

    Examples
    --------
    >>> from scikitplot.agent.schema.keywords import nearest
    >>> nearest("strnig", ["number", "string"])
    "; did you mean 'string'?"
    """
    # The comparison is quadratic in the word, and a name worth mending is short.
    near = get_close_matches(word, known, 1, 0.6) if len(word) <= 40 else []
    return f"; did you mean {near[0]!r}?" if near else ""


def _types(value: Any) -> frozenset[str]:
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not names:
        raise Refusal("must be the name of a type, or a list of one or more")
    for name in names:
        if not isinstance(name, str):
            raise Refusal("must be the name of a type, or a list of one or more")
        if name == "any":
            raise Refusal("is 'any', as in draft-03; leave the keyword out to allow every type")
        if name not in TYPES:
            known = ", ".join(TYPES)
            raise Refusal(f"is {name[:60]!r}{nearest(name, list(TYPES)) or f'; types are {known}'}")
    if len(set(names)) < len(names):
        raise Refusal("names a type twice")
    return frozenset(names)


def _number(value: Any) -> float:
    if isinstance(value, bool):
        raise Refusal(
            "must be a number; true is the form of draft-04: write the bound itself here, as in "
            '"exclusiveMinimum": 1, and leave "minimum" out'
        )
    if not isinstance(value, (int, float)) or not math.isfinite(value):
        raise Refusal("must be a number")
    return value


def _divisor(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < math.inf:
        raise Refusal("must be a number above 0")
    return value


def _count(value: Any) -> int:
    whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    if isinstance(value, bool) or not whole or value < 0:
        raise Refusal("must be an integer that is not negative")
    return int(value)


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise Refusal("must be true or false")
    return value


def _names(value: Any) -> tuple[str, ...]:
    if isinstance(value, bool):
        raise Refusal(
            "must be a list of names; true is the form of draft-03: name the property in the "
            '"required" list of the object that holds it'
        )
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise Refusal("must be a list of names")
    if len(set(value)) < len(value):
        raise Refusal("names a property twice")
    return tuple(value)


def _choices(value: Any) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise Refusal("must be a list of values")
    if not value:
        raise Refusal("is empty, so nothing would be allowed; list the values, or leave it out")
    return tuple(value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise Refusal("must be a string")
    return value


ASSERTIONS: dict[str, Callable[[Any], Any]] = {
    "const": lambda value: (value,),
    "enum": _choices,
    "exclusiveMaximum": _number,
    "exclusiveMinimum": _number,
    "format": _text,
    "maxItems": _count,
    "maxLength": _count,
    "maxProperties": _count,
    "maximum": _number,
    "minItems": _count,
    "minLength": _count,
    "minProperties": _count,
    "minimum": _number,
    "multipleOf": _divisor,
    "required": _names,
    "type": _types,
    "uniqueItems": _flag,
}


def why_unknown(keyword: str, schema: dict[str, Any]) -> str:
    """Return the reason to refuse `keyword` in `schema`, with the way out."""
    if keyword == "nullable":
        kind = schema.get("type")
        kind = kind if isinstance(kind, str) and kind in TYPES else "string"
        return (
            f'is a keyword of OpenAPI 3.0; write "type": ["{kind}", "null"], or "anyOf" with '
            '{"type": "null"}'
        )
    known = sorted(SINGLE | LISTS | NAMED | ANNOTATIONS | set(ASSERTIONS))
    near = nearest(keyword, known)
    return f"is no keyword that can be enforced{near or '; a name of your own begins with x-'}"
