"""What a compiled schema accepts, and what it says of what it does not."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scikitplot.agent import schema

DRAFT_07 = {"$schema": "http://json-schema.org/draft-07/schema#"}
SAVE = {
    "type": "object",
    "properties": {"name": {"type": "string", "minLength": 1}, "size": {"type": "integer"}},
    "required": ["name"],
    "additionalProperties": False,
}
TREE = {
    "$ref": "#/$defs/node",
    "$defs": {
        "node": {
            "type": "object",
            "properties": {"value": {"type": "integer"}, "below": {"$ref": "#/$defs/nodes"}},
            "required": ["value"],
            "unevaluatedProperties": False,
        },
        "nodes": {"type": "array", "items": {"$ref": "#/$defs/node"}},
    },
}

ROWS: list[tuple[Any, Any, bool]] = [
    (True, 1, True),
    (False, 1, False),
    ({}, {"anything": [1, None]}, True),
    ({"type": "integer"}, 1.0, True),
    ({"type": "integer"}, 1.5, False),
    ({"type": "integer"}, True, False),
    ({"type": ["string", "null"]}, None, True),
    ({"type": ["integer", "number"]}, 1.5, True),
    ({"enum": [1]}, 1.0, True),
    ({"enum": [True]}, 1, False),
    ({"enum": [None, "a"]}, None, True),
    ({"enum": [[1], {"a": 1}]}, [1.0], True),
    ({"enum": [[1], {"a": 1}]}, [True], False),
    ({"const": {"a": [1]}}, {"a": [1.0]}, True),
    ({"const": {"a": 1}}, {"a": True}, False),
    ({"const": False}, 0, False),
    ({"enum": list(range(1000))}, 999.0, True),
    ({"enum": list(range(1000))}, 1000, False),
    ({"multipleOf": 0.01}, 19.99, True),
    ({"multipleOf": 0.01}, 19.995, False),
    ({"multipleOf": 2.5}, 1e308, True),
    ({"multipleOf": 1e-300}, 10**300 + 1, True),
    ({"multipleOf": 1}, float("nan"), False),
    ({"maximum": 9007199254740992}, 9007199254740993, False),
    ({"minimum": 1, "maximum": 2}, 2, True),
    ({"minimum": 1}, float("nan"), False),
    ({"exclusiveMinimum": 1}, 1, False),
    ({"exclusiveMaximum": 1}, 0.5, True),
    ({"minimum": 1}, "a", True),
    ({"minLength": 2}, "\U0001f600", False),
    ({"maxLength": 1}, "\U0001f600", True),
    ({"pattern": "b$"}, "ab", True),
    ({"pattern": "b$"}, "ab\n", False),
    ({"maxItems": 1}, [1, 2], False),
    ({"minItems": 1}, [], False),
    ({"minProperties": 1}, {}, False),
    ({"maxProperties": 0}, {"a": 1}, False),
    ({"items": {"type": "string"}}, ["a", "b"], True),
    ({"items": {"type": "string"}}, ["a", 1], False),
    ({"items": False}, [], True),
    ({"items": False}, [1], False),
    ({"prefixItems": [{"type": "string"}], "items": False}, ["a"], True),
    ({"prefixItems": [{"type": "string"}], "items": False}, ["a", 1], False),
    ({"prefixItems": [{}], "items": {"minimum": 2}}, [1, 1], False),
    ({"contains": {"const": 1}}, [], False),
    ({"contains": {"const": 1}, "minContains": 0}, [], True),
    ({"contains": {"const": 1}, "maxContains": 1}, [1, 1], False),
    ({"contains": {"const": 1}, "minContains": 2}, [1, 2, 1], True),
    ({"uniqueItems": True}, [[1], [True], "1", 1], True),
    ({"uniqueItems": True}, [{"a": 1, "b": 2}, {"b": 2.0, "a": 1}], False),
    ({"uniqueItems": True}, ["a", "b", "a"], False),
    ({"uniqueItems": False}, [1, 1], True),
    ({"propertyNames": {"maxLength": 1}}, {"ab": 1}, False),
    ({"patternProperties": {"^x": {"type": "integer"}}}, {"xa": "a"}, False),
    ({"patternProperties": {"^x": {}}, "additionalProperties": False}, {"xa": 1}, True),
    ({"patternProperties": {"^x": {}}, "properties": {"xa": False}}, {"xa": 1}, False),
    ({"additionalProperties": {"type": "string"}}, {"a": 1}, False),
    ({"dependentRequired": {"a": ["b"]}}, {"a": None}, False),
    ({"dependentRequired": {"a": ["b"]}}, {"b": 1}, True),
    ({"dependentSchemas": {"a": {"minProperties": 2}}}, {"a": 1}, False),
    ({"dependentSchemas": {"a": False}}, {"b": 1}, True),
    ({"allOf": [{"minimum": 1}, {"maximum": 2}]}, 3, False),
    ({"anyOf": [{"type": "string"}, {"type": "null"}]}, None, True),
    ({"anyOf": [{"minimum": 3}, {"maximum": 1}]}, 2, False),
    ({"oneOf": [{"type": "integer"}, {"minimum": 2}]}, 3, False),
    ({"oneOf": [{"type": "integer"}, {"minimum": 2}]}, 2.5, True),
    ({"oneOf": [{"minimum": 1}, {"minimum": 2}, {"minimum": 3}]}, 1, True),
    ({"not": {"type": "integer"}}, 1.0, False),
    ({"not": {"not": {"minimum": 1}}}, 0, False),
    ({"not": {"anyOf": [{"const": 1}, {"const": 2}]}}, 3, True),
    ({"if": {"type": "string"}, "then": {"minLength": 1}, "else": {"minimum": 1}}, "", False),
    ({"if": {"type": "string"}, "then": {"minLength": 1}, "else": {"minimum": 1}}, 0, False),
    ({"if": {"minimum": 1}, "then": {"maximum": 5}, "else": False}, 3, True),
    ({"then": False}, 1, True),
    (SAVE, {"name": "a", "size": 2}, True),
    (SAVE, {"size": 2}, False),
    (SAVE, {"name": "a", "sise": 2}, False),
    (TREE, {"value": 1, "below": [{"value": 2}]}, True),
    (TREE, {"value": 1, "below": [{"value": 2, "belwo": []}]}, False),
    ({"allOf": [{"properties": {"a": {}}}], "unevaluatedProperties": False}, {"a": 1}, True),
    ({"not": {"properties": {"a": False}}, "unevaluatedProperties": False}, {"a": 1}, False),
    (
        {"anyOf": [{"required": ["a"]}, {"properties": {"b": {}}}], "unevaluatedProperties": False},
        {"b": 1},
        True,
    ),
    ({"if": {"properties": {"a": {}}}, "unevaluatedProperties": False}, {"a": 1}, True),
    ({"contains": {"const": 1}, "unevaluatedItems": {"const": 2}}, [2, 1, 2], True),
    ({"prefixItems": [{}], "unevaluatedItems": False}, [1, 2], False),
    ({"$ref": "#/$defs/a%20~1b", "$defs": {"a /b": {"type": "string"}}}, 1, False),
    ({"properties": {"a": {"$ref": "#/properties/b"}, "b": {"minimum": 1}}}, {"a": 0}, False),
    ({**DRAFT_07, "$ref": "#/definitions/x", "minimum": 5, "definitions": {"x": {}}}, 1, True),
    ({**DRAFT_07, "items": [{"type": "string"}], "additionalItems": False}, ["a", 1], False),
    ({**DRAFT_07, "additionalItems": False}, [1], True),
    ({**DRAFT_07, "dependencies": {"a": ["b"]}}, {"a": 1}, False),
    ({**DRAFT_07, "dependencies": {"a": {"minProperties": 2}}}, {"a": 1}, False),
]


@pytest.mark.parametrize(("asked", "value", "valid"), ROWS)
def test_both_ways_give_the_answer(asked: Any, value: Any, valid: bool) -> None:
    compiled = schema.compile(asked)
    assert compiled.accepts(value) is valid
    assert (compiled.problems(value) == []) is valid
    assert (schema.validate(asked, value) == []) is valid


class Text(str):
    """A string whose class is not ``str``, so that its answers may be its own."""


@pytest.mark.parametrize("value", [(1,), {1}, b"a", object(), Text("a"), type("D", (dict,), {})()])
def test_a_value_that_is_not_json_is_invalid_and_told_as_such(value: object) -> None:
    compiled = schema.compile({"items": {}})
    assert not compiled.accepts(value)
    assert "is no JSON value" in compiled.problems(value)[0].message


def test_a_name_that_is_no_string_breaks_nothing() -> None:
    patterns = {"patternProperties": {"a": {}}, "additionalProperties": False}
    for asked in (patterns, SAVE, {"const": {"1": 2}}):
        compiled = schema.compile(asked)
        assert not compiled.accepts({1: 2})
        assert compiled.problems({1: 2})


def test_integers_of_any_length_are_compared() -> None:
    long = 10**10_000
    for asked in ({"maximum": 5}, {"multipleOf": 3}, {"enum": [1, 2]}, {"maximum": long - 1}):
        assert schema.validate(asked, long)
    assert schema.validate({"uniqueItems": True, "minimum": long}, [long, long + 1]) == []


def test_all_problems_are_listed_each_with_its_place_and_rule() -> None:
    problems = schema.validate(SAVE, {"name": "", "size": "big", "sise": 1})
    assert {(problem.pointer, problem.rule) for problem in problems} == {
        ("/name", "minLength"),
        ("/size", "type"),
        ("/sise", "additionalProperties"),
    }


LISTED = '"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"'
EQUAL = "items 0 and 2 are equal; each must differ from all others"
LONG = "must have at most 1 character"


@pytest.mark.parametrize(
    ("asked", "value", "text"),
    [
        (SAVE, {"name": "a", "sise": 1}, "/sise: is not allowed here; did you mean 'size'?"),
        (SAVE, {}, 'property "name" is missing'),
        ({"minLength": 1}, "", "must have at least 1 character"),
        ({"type": ["null", "string"]}, 1, "must be a string or null"),
        ({"enum": ["a", 1, None]}, 2, 'must be one of "a", 1, null'),
        ({"enum": [*"abcdefghijkl"]}, 1, f"must be one of {LISTED}, or one of 2 more"),
        ({"const": {"a": 1}}, 2, 'must be {"a":1}'),
        ({"pattern": "^a$"}, "b", 'must match the pattern "^a$"'),
        ({"items": {"minimum": 2}}, [3, 1], "/1: must be at least 2"),
        ({"uniqueItems": True}, [1, 2, 1], EQUAL),
        ({"propertyNames": {"maxLength": 1}}, {"ab": 1}, f"/ab: the name of this property: {LONG}"),
        (
            {"anyOf": [{"type": "string"}, {"anyOf": [{"type": "null"}, {"const": 5}]}]},
            1,
            "meets none of 2 alternatives: must be a string; or must be null; or must be 5",
        ),
        (
            {"oneOf": [{"minimum": 1}, {"minimum": 2}]},
            3,
            "must meet one alternative only, and meets 2 (at 0, 1)",
        ),
        ({"properties": {"a/b~": False}}, {"a/b~": 1}, "/a~1b~0: is not allowed here"),
        (
            {"dependentRequired": {"a": ["b"]}},
            {"a": 1},
            'property "b" is missing, which "a" asks for',
        ),
    ],
)
def test_a_problem_tells_what_is_asked(asked: Any, value: Any, text: str) -> None:
    assert [str(problem) for problem in schema.validate(asked, value)] == [text]


def test_of_the_alternatives_the_one_that_was_meant_is_explained() -> None:
    asked = {
        "oneOf": [
            {"properties": {"kind": {"const": "text"}, "size": {"type": "integer"}}},
            {"properties": {"kind": {"const": "image"}, "size": {"type": "string"}}},
            {"type": "null"},
        ]
    }
    problems = schema.validate(asked, {"kind": "text", "size": "large"})
    assert [(problem.pointer, problem.rule) for problem in problems] == [
        ("", "oneOf"),
        ("/size", "type"),
    ]


def test_a_problem_names_the_keyword_as_it_is_written_in_draft_07() -> None:
    asked = {**DRAFT_07, "items": [{"type": "string"}, False], "additionalItems": False}
    rules = [problem.rule for problem in schema.validate(asked, ["a", 1, 2])]
    assert rules == ["items", "additionalItems"]
    asked = {**DRAFT_07, "dependencies": {"a": ["b"]}}
    assert [problem.rule for problem in schema.validate(asked, {"a": 1})] == ["dependencies"]


@given(st.sampled_from([asked for asked, _, _ in ROWS]), st.data())
def test_a_message_never_holds_what_the_value_holds(asked: Any, data: st.DataObject) -> None:
    secret = "s3cr3t"
    scalars = st.sampled_from([secret, f"x {secret}", 31415926, 27.182818, [secret], {"a": secret}])
    value = data.draw(
        scalars
        | st.lists(scalars, max_size=4)
        | st.dictionaries(st.sampled_from(["a", "b", "name", "xa", "value"]), scalars)
    )
    for problem in schema.validate(asked, value):
        for told in (secret, "31415926", "27.182818"):
            assert told not in problem.message


def test_a_format_is_an_annotation_unless_it_is_asserted() -> None:
    asked = {"properties": {"day": {"format": "date"}}}
    value = {"day": "2023-02-29"}
    assert schema.validate(asked, value) == []
    (problem,) = schema.validate(schema.compile(asked, assert_formats=True), value)
    assert str(problem) == '/day: must have the format "date"'
    with pytest.raises(schema.SchemaError, match="cannot be asserted; the formats that can are"):
        schema.compile({"format": "int32"}, assert_formats=True)


def test_a_disagreement_of_the_two_ways_denies(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = schema.compile({"type": "string"})
    monkeypatch.setattr("scikitplot.agent.schema.compiled.explain", lambda node, value: [])
    assert compiled.problems(1) == []
    assert [problem.rule for problem in schema.validate(compiled, 1)] == ["limit"]


def test_a_schema_changed_later_changes_no_answer() -> None:
    asked: dict[str, Any] = {"enum": [["a"]], "required": ["b"], "properties": {"b": {}}}
    compiled = schema.compile(asked)
    asked["enum"][0].append("c")
    asked["required"].clear()
    asked["properties"]["b"]["type"] = "string"
    assert compiled.accepts(["a"])
    assert not compiled.accepts(["a", "c"])
    assert schema.validate(compiled, ["a"]) == []
    assert compiled.schema is asked


def test_a_default_is_never_filled_in() -> None:
    value: dict[str, Any] = {}
    assert schema.validate({"properties": {"a": {"default": 1}}}, value) == []
    assert value == {}


def test_validate_takes_a_schema_and_a_compiled_one() -> None:
    compiled = schema.compile(SAVE)
    value = json.loads('{"name": "", "size": 1.5}')
    assert schema.validate(compiled, value) == schema.validate(SAVE, value) != []
