"""What stands beside a type in ``Annotated``: text, bounds, JSON Schema keywords.

Imports `schema` and `values`. Each keyword is one more condition; none replaces another. The
objects with bounds of other libraries are read by their attributes and never imported. What cannot
be read is an error, for otherwise a bound would be lost without a word.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from . import schema
from .values import JSON, InvalidValue, admit, encode, type_name

__all__ = ["KINDS", "constrain"]

KINDS = frozenset(("string", "integer", "number", "boolean", "null", "array", "object"))
"""The types that a JSON Schema tells apart."""

_NUMBERS = frozenset(("integer", "number"))
_STRINGS, _ARRAYS, _OBJECTS = (frozenset((kind,)) for kind in ("string", "array", "object"))

_MEANT_FOR = {
    "minimum": _NUMBERS,
    "maximum": _NUMBERS,
    "exclusiveMinimum": _NUMBERS,
    "exclusiveMaximum": _NUMBERS,
    "multipleOf": _NUMBERS,
    "pattern": _STRINGS,
    "format": _STRINGS,
    "minLength": _STRINGS,
    "maxLength": _STRINGS,
    "items": _ARRAYS,
    "prefixItems": _ARRAYS,
    "contains": _ARRAYS,
    "minContains": _ARRAYS,
    "maxContains": _ARRAYS,
    "uniqueItems": _ARRAYS,
    "unevaluatedItems": _ARRAYS,
    "minItems": _ARRAYS,
    "maxItems": _ARRAYS,
    "properties": _OBJECTS,
    "patternProperties": _OBJECTS,
    "additionalProperties": _OBJECTS,
    "unevaluatedProperties": _OBJECTS,
    "propertyNames": _OBJECTS,
    "required": _OBJECTS,
    "dependentRequired": _OBJECTS,
    "dependentSchemas": _OBJECTS,
    "minProperties": _OBJECTS,
    "maxProperties": _OBJECTS,
}
_BOUNDS = {
    "ge": "minimum",
    "gt": "exclusiveMinimum",
    "le": "maximum",
    "lt": "exclusiveMaximum",
    "multiple_of": "multipleOf",
}
_LENGTHS = {
    "min_length": {"string": "minLength", "array": "minItems", "object": "minProperties"},
    "max_length": {"string": "maxLength", "array": "maxItems", "object": "maxProperties"},
}
_TEXTS = ("description", "documentation")
_KNOWN = (*_BOUNDS, *_LENGTHS, *_TEXTS, "pattern", "metadata")


def constrain(
    base: dict[str, JSON], kinds: frozenset[str], metadata: Iterable[Any]
) -> dict[str, JSON]:
    """Return the schema `base` with what `metadata` adds to it.

    Parameters
    ----------
    base : dict
        The schema of the type; it is not changed.
    kinds : frozenset of str
        The types, of `KINDS`, of the values that it allows.
    metadata : iterable
        The rest of an ``Annotated``: a text is the description, a dict holds keywords, any other
        object has some of the attributes ``ge``, ``gt``, ``le``, ``lt``, ``multiple_of``,
        ``min_length``, ``max_length``, ``pattern``, ``description``, or ``metadata``, a list of
        such objects.

    Returns
    -------
    dict
        A schema of the same class as `base`.

    Raises
    ------
    TypeError, ValueError
        If an object says nothing that a schema could, or a keyword says nothing about `kinds`.

    Examples
    --------
    >>> from scikitplot.agent.annotated import constrain
    >>> constrain({"type": "integer"}, frozenset({"integer"}), ["a page", {"minimum": 1}])
    {'type': 'integer', 'description': 'a page', 'minimum': 1}
    """
    result = type(base)(base)
    for keyword, value in _keywords(kinds, metadata):
        if keyword == "description" or keyword not in result:
            result[keyword] = value
        else:
            result["allOf"] = [*result.get("allOf", ()), {keyword: value}]
    return result


def _keywords(kinds: frozenset[str], metadata: Iterable[Any]) -> Iterator[tuple[str, JSON]]:
    for item in metadata:
        if type(item) is str:
            found: Iterable[tuple[str, JSON]] = [("description", item)]
        elif type(item) is dict:
            found = _checked(item).items()
        else:
            found = _read_object(item, kinds)
        for keyword, value in found:
            if not kinds & _MEANT_FOR.get(keyword, KINDS):
                raise ValueError(f"{keyword!r} says nothing about {' or '.join(sorted(kinds))}")
            yield keyword, value


def _read_object(item: Any, kinds: frozenset[str]) -> Iterator[tuple[str, JSON]]:
    if isinstance(item, type) or not any(hasattr(item, name) for name in _KNOWN):
        what = item.__name__ if isinstance(item, type) else type_name(item)
        raise TypeError(
            f"Annotated holds {what}, of which a JSON Schema can say nothing; write a text, or a "
            "dict of JSON Schema keywords"
        )
    yield from _keywords(kinds, getattr(item, "metadata", None) or ())
    found: dict[str, JSON] = {}
    for name, keyword in _BOUNDS.items():
        found[keyword] = getattr(item, name, None)
    for name, by_kind in _LENGTHS.items():
        length = getattr(item, name, None) or None  # a least length of 0 asks nothing
        told = [keyword for kind, keyword in by_kind.items() if kind in kinds]
        if length is not None and not told:
            raise ValueError(f"{name!r} says nothing about {' or '.join(sorted(kinds))}")
        found.update(dict.fromkeys(told, length))
    found["pattern"] = _pattern(item)
    for name in _TEXTS:
        found["description"] = found.get("description") or getattr(item, name, None)
    yield from _checked({k: v for k, v in found.items() if v is not None}).items()


def _pattern(item: Any) -> Any:
    pattern = item if isinstance(item, re.Pattern) else getattr(item, "pattern", None)
    if not isinstance(pattern, re.Pattern):
        return pattern
    if pattern.flags & ~re.UNICODE:
        raise ValueError("a pattern with flags; write what they mean into the pattern")
    return pattern.pattern


def _checked(keywords: dict[str, Any]) -> dict[str, JSON]:
    """Return a copy of the keywords, if they are a schema by themselves."""
    try:
        copy: dict[str, JSON] = admit(keywords, allow_tuples=True)[0]
    except InvalidValue as error:
        raise TypeError(f"Annotated{error.pointer}: {error.reason}") from None
    if '"$ref"' in encode(copy):  # it would lead elsewhere once it stands inside another schema
        raise ValueError("a $ref in Annotated; write the type itself")
    schema.compile(copy)
    return copy
