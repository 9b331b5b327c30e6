"""Whether a schema lies in the subset that a provider's strict mode takes.

Imports nothing of this package. Strict mode refuses a whole request for one keyword too many, so
what is not documented as taken is not taken here. Nothing is rewritten: a tool whose schema is
outside the subset is sent as it is, without ``strict``. The bounds are those that OpenAI documents
for structured outputs; depth counts objects and lists, the strictest reading.
"""

from __future__ import annotations

from typing import Any

__all__ = ["strict_subset"]

_MAX_LEVELS = 10
_MAX_PROPERTIES = 5_000
_MAX_CHOICES = 1_000
_MAX_CHARACTERS = 120_000
_LONG_CHOICES = 250  # more than so many choices of one `enum`, and its texts have a bound
_MAX_LONG_CHOICES_CHARACTERS = 15_000

_ANYWHERE = frozenset(("type", "description", "title", "enum", "const", "anyOf"))
_NUMBER = frozenset(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"))
_KEYWORDS = {
    "string": frozenset(("pattern", "format")),
    "number": _NUMBER,
    "integer": _NUMBER,
    "boolean": frozenset(),
    "null": frozenset(),
    "array": frozenset(("items", "minItems", "maxItems")),
    "object": frozenset(("properties", "required", "additionalProperties")),
}
_FORMATS = frozenset(
    ("date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid")
)


def strict_subset(schema: Any) -> bool:
    """Return whether `schema` may be sent as the parameters of a strict function.

    Parameters
    ----------
    schema : dict
        A JSON Schema that was compiled before, so that it is one.

    Returns
    -------
    bool
        False for whatever is not known to be taken.

    Examples
    --------
    >>> from scikitplot.agent.strict import strict_subset
    >>> point = {"type": "object", "properties": {"x": {"type": "number"}},
    ...          "required": ["x"], "additionalProperties": False}
    >>> strict_subset(point), strict_subset({**point, "required": []})
    (True, False)
    """
    if type(schema) is not dict or schema.get("type") != "object" or "anyOf" in schema:
        return False
    definitions = schema.get("$defs", {})
    root = {keyword: value for keyword, value in schema.items() if keyword != "$defs"}
    size = _Size(definitions)
    return (
        _is_strict(root, 1, size)
        and all(_is_strict(part, 2, size) for part in definitions.values())
        and size.is_small()
    )


class _Size:
    """What adds up over a schema."""

    def __init__(self, definitions: dict[str, Any]) -> None:
        self.references = {"#", *(f"#/$defs/{name}" for name in definitions)}
        self.properties = 0
        self.choices = 0
        self.characters = sum(map(len, definitions))

    def is_small(self) -> bool:
        return (
            self.properties <= _MAX_PROPERTIES
            and self.choices <= _MAX_CHOICES
            and self.characters <= _MAX_CHARACTERS
        )


def _is_strict(schema: Any, level: int, size: _Size) -> bool:
    if type(schema) is not dict:
        return False
    if "$ref" in schema:  # nothing may stand beside it
        return len(schema) == 1 and schema["$ref"] in size.references
    kinds = schema.get("type", [])
    kinds = [kinds] if type(kinds) is str else kinds
    allowed = _ANYWHERE.union(*(_KEYWORDS[kind] for kind in kinds))
    if not allowed.issuperset(schema) or not (kinds or "anyOf" in schema):
        return False
    if schema.get("format", "date") not in _FORMATS or not _count_choices(schema, size):
        return False
    parts = list(schema.get("anyOf", ()))
    inner = level
    if "object" in kinds or "array" in kinds:
        if level > _MAX_LEVELS:
            return False
        inner = level + 1
    if "object" in kinds:
        properties = schema.get("properties")
        if type(properties) is not dict or schema.get("additionalProperties") is not False:
            return False
        if set(schema.get("required", [None])) != set(properties):
            return False
        size.properties += len(properties)
        size.characters += sum(map(len, properties))
        parts += properties.values()
    if "array" in kinds:
        parts.append(schema.get("items"))
    return all(_is_strict(part, inner, size) for part in parts)


def _count_choices(schema: dict[str, Any], size: _Size) -> bool:
    choices = schema.get("enum", [])
    size.choices += len(choices)
    constant = [schema["const"]] if "const" in schema else []
    if any(type(choice) in (list, dict) for choice in [*choices, *constant]):
        return False
    texts = sum(len(choice) for choice in choices if type(choice) is str)
    size.characters += texts + sum(len(value) for value in constant if type(value) is str)
    return len(choices) <= _LONG_CHOICES or texts <= _MAX_LONG_CHOICES_CHARACTERS
