"""Which schemas are sent as strict: those that the provider documents, and no others."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from scikitplot.agent.strict import strict_subset


def an_object(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


INTEGER = {"type": "integer"}
DEEP: dict[str, Any] = {"type": "string"}
for _ in range(9):
    DEEP = an_object(inside=DEEP)


def many(count: int, text: str = "") -> dict[str, Any]:
    return {"type": "string", "enum": [f"{text}{number:05}" for number in range(count)]}


@pytest.mark.parametrize(
    "part",
    [
        {"type": "string", "description": "a word", "title": "Word"},
        {"type": "string", "pattern": "^a", "format": "date-time"},
        {"type": "number", "minimum": 1, "exclusiveMaximum": 9, "multipleOf": 0.5},
        {"type": ["integer", "null"], "maximum": 3},
        {"type": "string", "enum": ["a", "b"]},
        {"type": "string", "const": "a"},
        {"type": "array", "items": INTEGER, "minItems": 1, "maxItems": 3},
        {"anyOf": [INTEGER, an_object(a=INTEGER)]},
        an_object(a=INTEGER),
        an_object(),
        DEEP,
        {"$ref": "#"},
        {"$ref": "#/$defs/point"},
        many(1_000),
        many(250, "x" * 200),
        an_object(**{f"p{number}": INTEGER for number in range(4_997)}),
    ],
)
def test_a_schema_in_the_documented_subset_is_strict(part: Any) -> None:
    whole = {**an_object(part=part, other=INTEGER), "$defs": {"point": an_object(x=INTEGER)}}
    before = copy.deepcopy(whole)
    assert strict_subset(whole)
    assert whole == before


@pytest.mark.parametrize(
    "part",
    [
        {},
        True,
        {"enum": ["a"]},
        {"type": "string", "minLength": 1},
        {"type": "string", "default": "a"},
        {"type": "string", "examples": ["a"]},
        {"type": "string", "format": "uri"},
        {"type": "string", "x-note": 1},
        {"type": "integer", "pattern": "a"},
        {"type": "array"},
        {"type": "array", "items": True},
        {"type": "array", "items": INTEGER, "uniqueItems": True},
        {"type": "array", "prefixItems": [INTEGER]},
        {"type": "object"},
        {**an_object(a=INTEGER), "required": []},
        {**an_object(a=INTEGER), "additionalProperties": True},
        {**an_object(a=INTEGER), "additionalProperties": INTEGER},
        {**an_object(a=INTEGER), "minProperties": 1},
        {"type": "object", "additionalProperties": False, "properties": {}},
        {"type": "object", "additionalProperties": False, "required": []},
        {"type": ["object", "null"], "properties": {"a": INTEGER}, "additionalProperties": False},
        an_object(a={"type": "string", "minLength": 1}),
        {"anyOf": [INTEGER, {"type": "object"}]},
        {"oneOf": [INTEGER]},
        {"allOf": [INTEGER]},
        {"type": "integer", "allOf": [{"minimum": 1}]},
        {"type": "integer", "not": {"const": 3}},
        {"$ref": "#/$defs/point", "description": "beside"},
        {"$ref": "#/properties/other"},
        {"type": "object", "enum": [{}], **an_object()},
        an_object(inside=DEEP),
        many(1_001),
        many(251, "x" * 200),
        an_object(**{f"p{number}": INTEGER for number in range(5_001)}),
        an_object(**{"x" * 120_001: INTEGER}),
    ],
)
def test_anything_else_is_not(part: Any) -> None:
    whole = {**an_object(part=part, other=INTEGER), "$defs": {"point": an_object(x=INTEGER)}}
    assert not strict_subset(whole)
    assert not strict_subset({**an_object(a={"$ref": "#/$defs/part"}), "$defs": {"part": part}})


@pytest.mark.parametrize(
    "schema",
    [
        True,
        {},
        {"type": "string"},
        {**an_object(), "anyOf": [an_object()]},
        {"type": ["object"], **{k: v for k, v in an_object().items() if k != "type"}},
        {**an_object(), "$schema": "https://json-schema.org/draft/2020-12/schema"},
        {**an_object(), "definitions": {}},
        {**an_object(), "$ref": "#/$defs/a", "$defs": {"a": an_object()}},
    ],
)
def test_the_root_is_one_object(schema: Any) -> None:
    assert not strict_subset(schema)
