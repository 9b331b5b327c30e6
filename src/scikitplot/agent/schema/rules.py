"""The rules of the slow way that look at one value and apply no further schema.

Imports `equality` and `nodes`. A rule gives the messages of what is wrong. A message tells what the
schema asks and never what the value is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from ..values import clean_text
from .equality import is_multiple, parts
from .nodes import Choices

__all__ = ["KINDS", "RULES", "shown"]

KINDS: dict[type, str] = {
    bool: "boolean",
    dict: "object",
    float: "number",
    int: "number",
    list: "array",
    str: "string",
    type(None): "null",
}
"""The types of JSON values; every number is one kind."""

_WORDS = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "array": "an array",
    "object": "an object",
    "null": "null",
}

KeyFinder: TypeAlias = Callable[[Any], str]
Rule: TypeAlias = Callable[[Any, Any, KeyFinder], Iterable[str]]


def shown(value: Any) -> str:
    """Return a part of the schema as JSON text, cut where it is long.

    Examples
    --------
    >>> from scikitplot.agent.schema.rules import shown
    >>> shown("name"), shown(10**30)
    ('"name"', '1000000000000000000000000000000')
    """
    if isinstance(value, int) and abs(value) > 10**60:
        return f"an integer of {value.bit_length()} bits"
    return clean_text(json.dumps(value, ensure_ascii=False), 60)


def _type(names: frozenset[str], value: Any, find_key: KeyFinder) -> Iterable[str]:
    kind = KINDS[type(value)]
    whole = kind == "number" and (type(value) is int or value.is_integer())
    if kind not in names and not (whole and "integer" in names):
        yield f"must be {' or '.join(words for name, words in _WORDS.items() if name in names)}"


def _among(choices: Choices, value: Any, find_key: KeyFinder) -> Iterable[str]:
    if find_key(value) in choices.keys:
        return
    if len(choices.keys) > 1:
        yield f"must be one of {choices.shown}"
    elif choices.keys:
        yield f"must be {choices.shown}"
    else:
        yield "nothing is allowed here: the list of values is empty"


def _minimum(bound: float, value: float, find_key: KeyFinder) -> Iterable[str]:
    if not value >= bound:
        yield f"must be at least {shown(bound)}"


def _maximum(bound: float, value: float, find_key: KeyFinder) -> Iterable[str]:
    if not value <= bound:
        yield f"must be at most {shown(bound)}"


def _exclusive_minimum(bound: float, value: float, find_key: KeyFinder) -> Iterable[str]:
    if not value > bound:
        yield f"must be above {shown(bound)}"


def _exclusive_maximum(bound: float, value: float, find_key: KeyFinder) -> Iterable[str]:
    if not value < bound:
        yield f"must be below {shown(bound)}"


def _multiple_of(divisor: float, value: float, find_key: KeyFinder) -> Iterable[str]:
    if not is_multiple(value, parts(divisor)):
        yield f"must be a multiple of {shown(divisor)}"


def _at_least(one: str, more: str) -> Rule:
    def rule(bound: int, value: Any, find_key: KeyFinder) -> Iterable[str]:
        if len(value) < bound:
            yield f"must have at least {shown(bound)} {one if bound == 1 else more}"

    return rule


def _at_most(one: str, more: str) -> Rule:
    def rule(bound: int, value: Any, find_key: KeyFinder) -> Iterable[str]:
        if len(value) > bound:
            yield f"must have at most {shown(bound)} {one if bound == 1 else more}"

    return rule


def _pattern(asked: tuple[str, Callable[[str], bool]], value: str, _: KeyFinder) -> Iterable[str]:
    source, matches = asked
    if not matches(value):
        yield f"must match the pattern {shown(source)}"


def _format(asked: tuple[str, Callable[[str], bool]], value: str, _: KeyFinder) -> Iterable[str]:
    name, matches = asked
    if not matches(value):
        yield f"must have the format {shown(name)}"


def _unique_items(asked: bool, value: list[Any], find_key: KeyFinder) -> Iterable[str]:
    seen: dict[str, int] = {}
    for index, item in enumerate(value if asked else ()):
        first = seen.setdefault(find_key(item), index)
        if first != index:
            yield f"items {first} and {index} are equal; each must differ from all others"
            return


def _required(names: tuple[str, ...], value: dict[str, Any], _: KeyFinder) -> Iterable[str]:
    for name in names:
        if name not in value:
            yield f"property {shown(name)} is missing"


def _dependent_required(
    asked: dict[str, tuple[str, ...]], value: dict[str, Any], _: KeyFinder
) -> Iterable[str]:
    for name in value:
        for other in asked.get(name, ()):
            if other not in value:
                yield f"property {shown(other)} is missing, which {shown(name)} asks for"


RULES: dict[str, tuple[str, Rule]] = {
    "const": ("any", _among),
    "dependentRequired": ("object", _dependent_required),
    "enum": ("any", _among),
    "exclusiveMaximum": ("number", _exclusive_maximum),
    "exclusiveMinimum": ("number", _exclusive_minimum),
    "format": ("string", _format),
    "maxItems": ("array", _at_most("item", "items")),
    "maxLength": ("string", _at_most("character", "characters")),
    "maxProperties": ("object", _at_most("property", "properties")),
    "maximum": ("number", _maximum),
    "minItems": ("array", _at_least("item", "items")),
    "minLength": ("string", _at_least("character", "characters")),
    "minProperties": ("object", _at_least("property", "properties")),
    "minimum": ("number", _minimum),
    "multipleOf": ("number", _multiple_of),
    "pattern": ("string", _pattern),
    "required": ("object", _required),
    "type": ("any", _type),
    "uniqueItems": ("array", _unique_items),
}
"""For each keyword the kind of value that it speaks of, and its rule."""
