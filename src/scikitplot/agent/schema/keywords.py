"""The keywords: what each may hold, which are refused, and what to write in their place.

Imports nothing of the package. A reader checks the value of one keyword and returns it in the form
that the rest of `schema/` uses; it raises `Refusal` with a reason. Keywords that hold schemas or
refer to one are read in `reader`, which knows places.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import Any, NamedTuple

__all__ = [
    "ANNOTATIONS",
    "DRAFTS",
    "TYPES",
    "Draft",
    "Refusal",
    "draft_of",
    "nearest",
    "why_unknown",
]

TYPES = ("array", "boolean", "integer", "null", "number", "object", "string")


_ONE_TYPE = {name: frozenset({name}) for name in TYPES}


class Refusal(ValueError):
    """Why the value of a keyword is refused; the place is known to the caller."""


def nearest(word: str, known: Iterable[str]) -> str:
    """Return ``"; did you mean 'x'?"`` for the name nearest to `word`, ``""`` if none is near.

    Examples
    --------
    >>> from scikitplot.agent.schema.keywords import nearest
    >>> nearest("strnig", ["number", "string"])
    "; did you mean 'string'?"
    """
    # The comparison is quadratic in the words, and a name worth mending is short.
    if len(word) > 40:
        return ""
    near = get_close_matches(word, [name for name in known if len(name) <= 40][:500], 1, 0.7)
    return f"; did you mean {near[0]!r}?" if near else ""


def _types(value: Any) -> frozenset[str]:
    if isinstance(value, str) and value in _ONE_TYPE:
        return _ONE_TYPE[value]
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
            raise Refusal(f"is {name[:60]!r}{nearest(name, TYPES) or f'; the types are {known}'}")
    if len(set(names)) < len(names):
        raise Refusal("names a type twice")
    return frozenset(names)


def _number(value: Any) -> float:
    if isinstance(value, bool):
        raise Refusal(
            "must be a number; true and false are the form of draft-04: write the bound itself "
            'here, as in "exclusiveMinimum": 1, and leave "minimum" out'
        )
    if not isinstance(value, (int, float)) or not -math.inf < value < math.inf:
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
            "must be a list of names; true and false are the form of draft-03: name the property "
            'in the "required" list of the object that holds it'
        )
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise Refusal("must be a list of names")
    if len(set(value)) < len(value):
        raise Refusal("names a property twice")
    return tuple(value)


def _dependent(value: Any) -> dict[str, tuple[str, ...]]:
    if not isinstance(value, dict):
        raise Refusal("must be an object of lists of names")
    return {name: _names(names) for name, names in value.items()}


def _choices(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise Refusal("must be a list of values")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise Refusal("must be a string")
    return value


Reader = Callable[[Any], Any]


class Draft(NamedTuple):
    """The keywords of one draft: those that hold one schema, a list, an object of schemas, none."""

    name: str
    single: frozenset[str]
    lists: frozenset[str]
    named: frozenset[str]
    plain: dict[str, Reader]

    @property
    def keywords(self) -> list[str]:
        """Every keyword of the draft that does something or is an annotation."""
        own = {*self.single, *self.lists, *self.named, *self.plain, *ANNOTATIONS}
        return sorted(own | {"$ref", "$schema", "$id"})


_PLAIN_OF_BOTH: dict[str, Reader] = {
    "const": lambda value: [value],
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
    "pattern": _text,
    "required": _names,
    "type": _types,
    "uniqueItems": _flag,
}
PLAIN = _PLAIN_OF_BOTH | {
    "dependentRequired": _dependent,
    "maxContains": _count,
    "minContains": _count,
}
"""The readers of all keywords that hold no schema."""

_SINGLE = {
    "additionalProperties",
    "contains",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
}
_LISTS = {"allOf", "anyOf", "oneOf"}
_NAMED = {"$defs", "definitions", "patternProperties", "properties"}

DRAFTS = {
    "2020-12": Draft(
        "2020-12",
        frozenset(_SINGLE | {"unevaluatedItems", "unevaluatedProperties"}),
        frozenset(_LISTS | {"prefixItems"}),
        frozenset(_NAMED | {"dependentSchemas"}),
        PLAIN,
    ),
    "draft-07": Draft(
        "draft-07",
        frozenset(_SINGLE | {"additionalItems"}),
        frozenset(_LISTS),
        frozenset(_NAMED | {"dependencies"}),
        _PLAIN_OF_BOTH,
    ),
}

ANNOTATIONS = frozenset(
    {
        "$comment",
        "contentEncoding",
        "contentMediaType",
        "contentSchema",
        "default",
        "deprecated",
        "description",
        "examples",
        "readOnly",
        "title",
        "writeOnly",
    }
)

_URIS = {
    "https://json-schema.org/draft/2020-12/schema": "2020-12",
    "http://json-schema.org/draft/2020-12/schema": "2020-12",
    "http://json-schema.org/draft-07/schema": "draft-07",
    "https://json-schema.org/draft-07/schema": "draft-07",
}


def draft_of(uri: Any) -> Draft:
    """Return the draft that a ``$schema`` names.

    Examples
    --------
    >>> from scikitplot.agent.schema.keywords import draft_of
    >>> draft_of("http://json-schema.org/draft-07/schema#").name
    'draft-07'
    """
    name = _URIS.get(uri.removesuffix("#")) if isinstance(uri, str) else None
    if name is None:
        raise Refusal(
            'must be "https://json-schema.org/draft/2020-12/schema" or '
            '"http://json-schema.org/draft-07/schema#"; without it the draft is 2020-12'
        )
    return DRAFTS[name]


_POINTER = 'is not supported; refer by a JSON pointer, as in "$ref": "#/$defs/name"'
_INSTEAD = {
    "$anchor": _POINTER,
    "$dynamicAnchor": _POINTER,
    "$dynamicRef": _POINTER,
    "$recursiveAnchor": _POINTER,
    "$recursiveRef": _POINTER,
    "$vocabulary": "is for meta-schemas; leave it out",
    "discriminator": 'is a keyword of OpenAPI; give each branch a property with a "const" instead',
    "disallow": 'is a keyword of draft-03; write "not" instead',
    "divisibleBy": 'is a keyword of draft-03; write "multipleOf" instead',
    "example": 'is a keyword of OpenAPI 3.0; write "examples": [...] instead',
    "extends": 'is a keyword of draft-03; write "allOf" instead',
    "id": 'is a keyword of draft-04; leave it out, or write "$id" at the root',
    "optional": 'is no keyword; leave the name out of the "required" list instead',
}
_INSTEAD_IN = {
    "2020-12": {
        "additionalItems": 'is a keyword of draft-07; write "prefixItems" and "items" instead',
        "dependencies": 'is a keyword of draft-07; write "dependentRequired" or '
        '"dependentSchemas" instead',
    },
    "draft-07": {
        "dependentRequired": 'is a keyword of draft 2020-12; write "dependencies" instead',
        "dependentSchemas": 'is a keyword of draft 2020-12; write "dependencies" instead',
        "prefixItems": 'is a keyword of draft 2020-12; write "items" with a list instead',
    },
}


def why_unknown(keyword: str, schema: dict[str, Any], draft: Draft) -> str:
    """Return the reason to refuse `keyword` in `schema`, with the way out."""
    if keyword == "nullable":
        kind = schema.get("type")
        kind = kind if isinstance(kind, str) and kind in TYPES else "string"
        return (
            f'is a keyword of OpenAPI 3.0; write "type": ["{kind}", "null"] instead, or "anyOf" '
            'with {"type": "null"}'
        )
    instead = _INSTEAD.get(keyword) or _INSTEAD_IN[draft.name].get(keyword)
    if instead:
        return instead
    for other in DRAFTS.values():
        if keyword in other.keywords:
            return f'is a keyword of draft {other.name}; name that draft in "$schema" to use it'
    near = nearest(keyword, draft.keywords)
    return f"is no keyword{near or '; a name of your own begins with x-'}"
