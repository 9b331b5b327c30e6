"""What is refused when a schema is compiled, and what the refusal says."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scikitplot.agent import schema
from scikitplot.agent.errors import SchemaError
from scikitplot.agent.schema.keywords import DRAFTS

DRAFT_07 = {"$schema": "http://json-schema.org/draft-07/schema#"}

ROWS: list[tuple[Any, str, str, str]] = [
    ({"type": "strnig"}, "type", "", "did you mean 'string'"),
    ({"type": "any"}, "type", "", "draft-03"),
    ({"type": []}, "type", "", "one or more"),
    ({"type": ["string", "string"]}, "type", "", "twice"),
    ({"type": {"type": "string"}}, "type", "", "the name of a type"),
    ({"properties": {"a": {"requred": ["b"]}}}, "requred", "/properties/a", "mean 'required'"),
    ({"additionalProprties": False}, "additionalProprties", "", "'additionalProperties'"),
    ({"colour": 1}, "colour", "", "begins with x-"),
    ({"type": "string", "nullable": True}, "nullable", "", '"type": ["string", "null"]'),
    ({"type": "integer", "nullable": True}, "nullable", "", '"type": ["integer", "null"]'),
    ({"exclusiveMinimum": True, "minimum": 1}, "exclusiveMinimum", "", "draft-04"),
    ({"exclusiveMaximum": False}, "exclusiveMaximum", "", "draft-04"),
    ({"required": True}, "required", "", "draft-03"),
    ({"required": ["a", "a"]}, "required", "", "twice"),
    ({"required": "a"}, "required", "", "a list of names"),
    ({"multipleOf": 0}, "multipleOf", "", "above 0"),
    ({"multipleOf": True}, "multipleOf", "", "above 0"),
    ({"maximum": "3"}, "maximum", "", "a number"),
    ({"maximum": float("inf")}, "maximum", "", "a number"),
    ({"minLength": -1}, "minLength", "", "not negative"),
    ({"minLength": 1.5}, "minLength", "", "an integer"),
    ({"uniqueItems": "yes"}, "uniqueItems", "", "true or false"),
    ({"enum": []}, "enum", "", "empty"),
    ({"enum": "a"}, "enum", "", "a list of values"),
    ({"const": float("nan")}, "const", "", "not JSON"),
    ({"const": (1, 2)}, "const", "", "not JSON"),
    ({"const": 10**5000}, "const", "", "4096 bits"),
    ({"const": {1: 2}}, "const", "", "no string"),
    ({"allOf": []}, "allOf", "", "one or more"),
    ({"anyOf": {}}, "anyOf", "", "one or more"),
    ({"properties": []}, "properties", "", "an object of schemas"),
    ({"additionalProperties": 0}, "", "/additionalProperties", "true or false"),
    ({"not": None}, "", "/not", "true or false"),
    ([], "", "", "true or false"),
    ({"items": [{}]}, "items", "", '"prefixItems"'),
    ({"additionalItems": False}, "additionalItems", "", '"prefixItems"'),
    ({"dependencies": {}}, "dependencies", "", '"dependentRequired"'),
    ({**DRAFT_07, "prefixItems": [{}]}, "prefixItems", "", '"items"'),
    ({**DRAFT_07, "dependentSchemas": {}}, "dependentSchemas", "", '"dependencies"'),
    ({**DRAFT_07, "unevaluatedItems": False}, "unevaluatedItems", "", "draft 2020-12"),
    ({"$schema": "http://json-schema.org/draft-04/schema#"}, "$schema", "", "2020-12"),
    ({"$schema": ""}, "$schema", "", "2020-12"),
    ({"$schema": 7}, "$schema", "", "2020-12"),
    ({"not": DRAFT_07}, "$schema", "/not", "the root"),
    ({"not": {"$id": "https://example.com"}}, "$id", "/not", "below the root"),
    ({"$anchor": "a"}, "$anchor", "", "JSON pointer"),
    ({"$dynamicRef": "#a"}, "$dynamicRef", "", "JSON pointer"),
    ({"$recursiveRef": "#"}, "$recursiveRef", "", "JSON pointer"),
    ({"id": "a"}, "id", "", '"$id"'),
    ({"example": 1}, "example", "", '"examples"'),
    ({"discriminator": {}}, "discriminator", "", '"const"'),
    ({"divisibleBy": 2}, "divisibleBy", "", '"multipleOf"'),
    ({"format": 1}, "format", "", "a string"),
    ({"pattern": "("}, "pattern", "", "the pattern is refused"),
    ({"pattern": "(a)\\1"}, "pattern", "", "linear time"),
    ({"patternProperties": {"(?=a)": {}}}, "patternProperties", "", "the pattern is refused"),
    ({"$ref": 1}, "$ref", "", "a string"),
    ({"$ref": "https://example.com/x"}, "$ref", "", '"$defs"'),
    ({"$ref": "other.json#/a"}, "$ref", "", '"$defs"'),
    ({"$ref": "#name"}, "$ref", "", "anchor"),
    ({"$ref": "#/%FF"}, "$ref", "", "UTF-8"),
    ({"$ref": "#/$defs/none", "$defs": {}}, "$ref", "", "'none' is not there"),
    ({"$ref": "#/$defs/persn", "$defs": {"person": {}}}, "$ref", "", "did you mean 'person'"),
    ({"$ref": "#/allOf/01", "allOf": [{}, {}]}, "$ref", "", "'01' is not there"),
    ({"$ref": "#/title", "title": "a"}, "$ref", "", "no schema"),
    ({"$ref": "#/x-more", "x-more": {"typ": 1}}, "typ", "/x-more", "did you mean 'type'"),
    ({"$ref": "#"}, "$ref", "", "leads back to itself"),
    ({"$defs": {"a": {"$ref": "#/$defs/a"}}}, "$ref", "/$defs/a", "leads back to itself"),
    ({"anyOf": [{"type": "null"}, {"$ref": "#"}]}, "$ref", "/anyOf/1", "leads back to itself"),
    ({"if": {"$ref": "#"}}, "$ref", "/if", "leads back to itself"),
]


@pytest.mark.parametrize(("asked", "keyword", "pointer", "reason"), ROWS)
def test_a_refusal_names_keyword_pointer_reason_and_way_out(
    asked: Any, keyword: str, pointer: str, reason: str
) -> None:
    with pytest.raises(SchemaError) as caught:
        schema.compile(asked)
    assert (caught.value.keyword, caught.value.pointer) == (keyword, pointer)
    assert reason in caught.value.reason


def test_a_schema_is_refused_where_nothing_refers_to_it_too() -> None:
    with pytest.raises(SchemaError, match=r"^schema /\$defs/a/typ: "):
        schema.compile({"$defs": {"a": {"typ": "string"}}})


@pytest.mark.parametrize(
    "asked",
    [
        {"title": 1, "description": "d", "default": {"$ref": "#/no"}, "examples": [1]},
        {"deprecated": True, "readOnly": False, "writeOnly": False, "$comment": "c"},
        {"contentMediaType": "a/b", "contentEncoding": "base64", "contentSchema": {"typ": 1}},
        {"format": "no such format", "x-order": {"nullable": True}},
        {"$id": "https://example.com/s", "$schema": "https://json-schema.org/draft/2020-12/schema"},
        {"properties": {"nullable": {}, "$ref": {}, "requred": {}}},
        {"const": {"$ref": "#/no", "nullable": 1}},
        {"definitions": {"a": {}}, "$ref": "#/definitions/a"},
        {"required": []},
    ],
)
def test_annotations_names_and_values_are_not_taken_for_keywords(asked: dict[str, Any]) -> None:
    assert schema.compile(asked).accepts({"$ref": "#/no", "nullable": 1})


def test_beside_a_reference_draft_07_sees_nothing() -> None:
    asked = {**DRAFT_07, "properties": {"a": {"$ref": "#/properties/b", "typ": 1}, "b": {}}}
    assert schema.compile(asked).accepts({"a": 1})


def test_an_empty_enum_is_taken_only_where_the_draft_is_named() -> None:
    asked = {"$schema": "https://json-schema.org/draft/2020-12/schema", "enum": []}
    assert not schema.compile(asked).accepts(1)
    assert "nothing is allowed" in schema.validate(asked, 1)[0].message
    with pytest.raises(SchemaError):
        schema.compile({"enum": []})


KEYWORDS = sorted({name for draft in DRAFTS.values() for name in draft.keywords})
ANYTHING = st.recursive(
    st.sampled_from([None, True, False, 0, -1, 1.5, 10**400, float("nan"), b"a", (1,)])
    | st.sampled_from(["", "a", "(", "#", "#/not", "#/$defs/a", "object", "\ud800"]),
    lambda part: (
        st.lists(part, max_size=3)
        | st.dictionaries(st.sampled_from([*KEYWORDS, "a", 1]), part, max_size=4)
    ),
    max_leaves=12,
)


@given(ANYTHING, st.lists(ANYTHING, max_size=4))
def test_whatever_is_given_nothing_but_a_schema_error_is_raised(
    asked: Any, values: list[Any]
) -> None:
    try:
        compiled = schema.compile(asked)
    except SchemaError:
        return
    for value in values:
        compiled.accepts(value)
        schema.validate(compiled, value)
