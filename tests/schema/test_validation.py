"""What a compiled schema accepts, says and refuses."""

from __future__ import annotations

import pytest

from scikitplot.agent import schema
from scikitplot.agent.errors import SchemaError

SAVE = {
    "type": "object",
    "properties": {"name": {"type": "string", "minLength": 1}, "size": {"type": "integer"}},
    "required": ["name"],
    "additionalProperties": False,
}

ROWS = [
    ({"type": "integer"}, 1.0, True),
    ({"type": "integer"}, 1.5, False),
    ({"type": "integer"}, True, False),
    ({"type": ["string", "null"]}, None, True),
    ({"enum": [1]}, 1.0, True),
    ({"enum": [True]}, 1, False),
    ({"enum": [None, "a"]}, None, True),
    ({"const": {"a": [1]}}, {"a": [1.0]}, True),
    ({"const": {"a": 1}}, {"a": True}, False),
    ({"enum": list(range(1000))}, 999.0, True),
    ({"enum": list(range(1000))}, 1000, False),
    ({"multipleOf": 0.01}, 19.99, True),
    ({"multipleOf": 0.01}, 19.995, False),
    ({"multipleOf": 2.5}, 1e308, True),
    ({"maximum": 9007199254740992}, 9007199254740993, False),
    ({"exclusiveMinimum": 1}, 1, False),
    ({"minLength": 2}, "\U0001f600", False),
    ({"maxItems": 1}, [1, 2], False),
    ({"minProperties": 1}, {}, False),
    ({"prefixItems": [{"type": "string"}], "items": False}, ["a"], True),
    ({"prefixItems": [{"type": "string"}], "items": False}, ["a", 1], False),
    ({"uniqueItems": True}, [[1], [True], "1", 1], True),
    ({"uniqueItems": True}, [{"a": 1, "b": 2}, {"b": 2.0, "a": 1}], False),
    ({"allOf": [{"minimum": 1}, {"maximum": 2}]}, 3, False),
    ({"anyOf": [{"type": "string"}, {"type": "null"}]}, None, True),
    ({"anyOf": [{"minimum": 3}, {"maximum": 1}]}, 2, False),
    ({"oneOf": [{"type": "integer"}, {"minimum": 2}]}, 3, False),
    ({"oneOf": [{"type": "integer"}, {"minimum": 2}]}, 2.5, True),
    ({"not": {"type": "integer"}}, 1.0, False),
    ({"not": {"not": {"minimum": 1}}}, 0, False),
    (SAVE, {"name": "a", "size": 2}, True),
    (SAVE, {"size": 2}, False),
    (SAVE, {"name": "a", "sise": 2}, False),
    ({"additionalProperties": {"type": "string"}}, {"a": 1}, False),
    (True, 1, True),
    (False, 1, False),
]


@pytest.mark.parametrize(("asked", "value", "valid"), ROWS)
def test_both_ways_give_the_answer(asked, value, valid):
    compiled = schema.compile(asked)
    assert compiled.accepts(value) is valid
    assert (compiled.problems(value) == []) is valid
    assert (schema.validate(asked, value) == []) is valid


REFUSED = [
    ({"type": "strnig"}, "type", "", "did you mean 'string'"),
    ({"properties": {"a": {"requred": ["b"]}}}, "requred", "/properties/a", "mean 'required'"),
    ({"type": "string", "nullable": True}, "nullable", "", '"type": ["string", "null"]'),
    ({"exclusiveMinimum": True}, "exclusiveMinimum", "", "draft-04"),
    ({"required": True}, "required", "", "draft-03"),
    ({"multipleOf": 0}, "multipleOf", "", "above 0"),
    ({"enum": []}, "enum", "", "empty"),
    ({"allOf": []}, "allOf", "", "one or more"),
    ({"additionalProperties": 0}, "", "/additionalProperties", "true or false"),
    ({"const": float("nan")}, "const", "", "not JSON"),
    ({"maximum": float("inf")}, "maximum", "", "a number"),
    ({"items": [{}]}, "items", "", "prefixItems"),
    ({"$schema": "http://json-schema.org/draft-04/schema#"}, "$schema", "", "2020-12"),
    ({"not": {"$id": "https://example.com"}}, "$id", "/not", "below the root"),
]


@pytest.mark.parametrize(("asked", "keyword", "pointer", "reason"), REFUSED)
def test_a_refusal_names_keyword_pointer_and_way_out(asked, keyword, pointer, reason):
    with pytest.raises(SchemaError) as caught:
        schema.compile(asked)
    assert (caught.value.keyword, caught.value.pointer) == (keyword, pointer)
    assert reason in caught.value.reason


def test_all_problems_are_listed_each_with_its_place():
    problems = schema.validate(SAVE, {"name": "", "size": "big", "sise": 1})
    assert {(problem.pointer, problem.rule) for problem in problems} == {
        ("/name", "minLength"),
        ("/size", "type"),
        ("/sise", "additionalProperties"),
    }
    assert any("did you mean 'size'" in str(problem) for problem in problems)


def test_a_disagreement_of_the_two_ways_denies(monkeypatch):
    compiled = schema.compile({"type": "string"})
    monkeypatch.setattr("scikitplot.agent.schema.compiled.explain", lambda node, value: [])
    assert compiled.problems(1) == []
    assert [problem.rule for problem in schema.validate(compiled, 1)] == ["limit"]


@pytest.mark.parametrize("keyword", ["not", "allOf", "items", "properties"])
def test_a_schema_too_deep_is_refused(keyword):
    wrap = {
        "not": lambda below: below,
        "allOf": lambda below: [below],
        "items": lambda below: below,
        "properties": lambda below: {"a": below},
    }[keyword]
    asked: object = True
    for _ in range(10_000):
        asked = {keyword: wrap(asked)}
    with pytest.raises(SchemaError, match="more than 64 levels"):
        schema.compile(asked)


def test_a_schema_changed_later_changes_no_answer():
    asked = {"enum": [["a"]], "required": ["b"]}
    compiled = schema.compile(asked)
    asked["enum"][0].append("c")
    asked["required"].clear()
    assert compiled.accepts(["a"])
    assert not compiled.accepts({})
    assert compiled.schema is asked
