"""No schema and no value, of any kind, makes compiling or validating run away.

Nothing here is timed: without the bound that a test is for, it would not end, fill the memory, or
raise RecursionError.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

from scikitplot.agent import schema
from scikitplot.agent.errors import SchemaError
from scikitplot.agent.schema import bounds

PRIME = 2**61 - 1  # integers that are equal modulo this have one hash


def nested(wrap: Callable[[Any], Any], levels: int, innermost: Any = True) -> Any:
    for _ in range(levels):
        innermost = wrap(innermost)
    return innermost


def answers(asked: Any, value: Any) -> bool:
    """Return the answer, after a check that both ways give it."""
    compiled = schema.compile(asked)
    accepted = compiled.accepts(value)
    assert (compiled.problems(value) == []) is accepted
    assert (schema.validate(compiled, value) == []) is accepted
    return accepted


def limit(asked: Any, value: Any) -> str:
    """Return the message of the one problem, that a bound was met."""
    assert not answers(asked, value)
    (problem,) = schema.validate(asked, value)
    assert (problem.pointer, problem.rule) == ("", "limit")
    return problem.message


WRAPPERS: dict[str, Callable[[Any], Any]] = {
    keyword: lambda below, keyword=keyword: {keyword: below}
    for keyword in (
        "not", "if", "items", "contains", "additionalProperties", "propertyNames",
        "unevaluatedItems", "unevaluatedProperties",
    )
} | {
    keyword: lambda below, keyword=keyword: {keyword: [below]}
    for keyword in ("allOf", "anyOf", "oneOf", "prefixItems")
} | {
    keyword: lambda below, keyword=keyword: {keyword: {"a": below}}
    for keyword in ("properties", "patternProperties", "dependentSchemas", "$defs")
}  # fmt: skip


@pytest.mark.parametrize("keyword", WRAPPERS)
def test_ten_thousand_nested_applicators_are_refused(keyword: str) -> None:
    with pytest.raises(SchemaError, match="more than 64 levels"):
        schema.compile(nested(WRAPPERS[keyword], 10_000))


@pytest.mark.parametrize("keyword", WRAPPERS)
def test_a_schema_as_deep_as_allowed_validates(keyword: str) -> None:
    asked = nested(WRAPPERS[keyword], bounds.MAX_DEPTH)
    for value in (1, [[1]], {"a": {"a": 1}}):
        answers(asked, value)


@pytest.mark.parametrize("keyword", ["allOf", "anyOf", "oneOf"])
def test_a_tree_of_branches_that_is_too_wide_is_refused(keyword: str) -> None:
    def tree(levels: int) -> Any:
        return {keyword: [tree(levels - 1), tree(levels - 1)]} if levels else {"type": "integer"}

    with pytest.raises(SchemaError, match="more than 5000 subschemas"):
        schema.compile(tree(16))


@pytest.mark.parametrize("leaf", [{"minimum": 3}, {"properties": {"a": {"minimum": 3}}}])
@pytest.mark.parametrize("keyword", ["allOf", "anyOf"])
def test_a_fan_of_references_with_2_to_40_ways_is_answered(keyword: str, leaf: Any) -> None:
    places = {
        f"a{i}": {keyword: [{"$ref": f"#/$defs/a{i + 1}"}, {"$ref": f"#/$defs/a{i + 1}"}]}
        for i in range(40)
    }
    asked = {"$ref": "#/$defs/a0", "$defs": {**places, "a40": leaf}}
    for value, valid in [(3, True), ({"a": 3}, True), ({"a": 1}, "minimum" in leaf)]:
        assert answers(asked, value) is valid
        answers({**asked, "unevaluatedProperties": False}, value)
    assert answers(asked, 1) is ("properties" in leaf)


def test_a_fan_through_the_items_is_answered() -> None:
    places = {
        f"a{i}": {key: {"$ref": f"#/$defs/a{i + 1}"} for key in ("items", "contains")}
        for i in range(40)
    }
    asked = {"$ref": "#/$defs/a0", "$defs": {**places, "a40": {"type": "integer"}}}
    assert answers(asked, nested(lambda below: [below], 40, 1))
    assert not answers(asked, nested(lambda below: [below], 40, "a"))


def test_an_object_that_is_used_many_times_is_read_once() -> None:
    asked = nested(lambda below: {"allOf": [below, below]}, 40, {"minimum": 2})
    assert answers(asked, 2)
    assert not answers(asked, 1)


def test_an_object_that_holds_itself_is_a_recursive_schema() -> None:
    asked: dict[str, Any] = {"type": "object"}
    asked["additionalProperties"] = asked
    assert answers(asked, {"a": {"a": {}}})
    assert not answers(asked, {"a": {"a": 1}})
    asked["not"] = asked
    with pytest.raises(SchemaError, match="leads back to itself"):
        schema.compile(asked)


def test_a_chain_of_references_too_long_is_refused() -> None:
    places: dict[str, Any] = {
        f"a{i}": {"allOf": [{"$ref": f"#/$defs/a{i + 1}"}]} for i in range(99)
    }
    with pytest.raises(SchemaError, match="inside each other"):
        schema.compile({"$ref": "#/$defs/a0", "$defs": {**places, "a99": {}}})


def test_a_tower_of_one_of_is_answered() -> None:
    asked = nested(lambda below: {"oneOf": [below, {"type": "string"}]}, 60, {"type": "integer"})
    assert answers(asked, 1)
    assert not answers(asked, "a")
    places: dict[str, Any] = {
        f"a{i}": {"oneOf": [{"$ref": f"#/$defs/a{i + 1}"}, {"not": {"$ref": f"#/$defs/a{i + 1}"}}]}
        for i in range(30)
    }
    assert answers({"$ref": "#/$defs/a0", "$defs": {**places, "a30": {"minimum": 3}}}, 5)


RECURSIVE = {"anyOf": [{"type": "integer"}, {"items": {"$ref": "#"}}, {"items": {"$ref": "#"}}]}
RECURSIVE["anyOf"][1]["type"] = RECURSIVE["anyOf"][2]["type"] = "array"


def test_a_recursive_schema_with_several_ways_down_is_answered() -> None:
    assert answers(RECURSIVE, nested(lambda below: [below], 63, 1))
    assert not answers(RECURSIVE, nested(lambda below: [below, below], 63, "a"))


@pytest.mark.parametrize("levels", [500, 100_000])
def test_a_value_that_is_too_deep_is_denied(levels: int) -> None:
    value = nested(lambda below: [below], levels, 1)
    assert "nested too deep" in limit(RECURSIVE, value)
    assert "deeper than 64 levels" in limit({"uniqueItems": True}, [value])
    assert "deeper than 64 levels" in limit({"const": [1]}, value)
    assert answers({"type": "array"}, value)


def deep_stack(levels: int, function: Callable[[], Any]) -> Any:
    return function() if levels == 0 else deep_stack(levels - 1, function)


def test_a_stack_that_is_nearly_full_denies() -> None:
    value = nested(lambda below: [below], 60, 1)
    compiled = schema.compile(RECURSIVE)
    room = sys.getrecursionlimit() - 150
    assert deep_stack(0, lambda: compiled.accepts(value))
    (problem,) = deep_stack(room, lambda: schema.validate(compiled, value))
    assert "stack is nearly full" in problem.message


def test_a_hundred_thousand_objects_are_compared_in_bounded_steps() -> None:
    rows = [{"a": index, "b": [str(index), index]} for index in range(100_000)]
    assert answers({"uniqueItems": True}, rows)
    rows[-1] = {"b": ["0", 0.0], "a": 0}
    assert not answers({"uniqueItems": True}, rows)


def test_integers_whose_hashes_collide_cost_no_more() -> None:
    numbers = [index * PRIME for index in range(50_000)]
    assert answers({"uniqueItems": True}, numbers)
    assert answers({"enum": numbers}, numbers[-1])
    assert not answers({"enum": numbers}, numbers[-1] + PRIME)


def shared(value: Any) -> Any:
    return nested(lambda below: [below, below], 40, value)


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({"enum": list(range(1_000_000))}, "more than 100000 values"),
        ({"enum": ["a" * 10_000_000]}, "more than 100000 values"),
        ({"const": shared(1)}, "more than 100000 values"),
        ({"const": nested(lambda below: [below], 10_000)}, "more than 64 levels"),
        ({"required": [f"a{index}" for index in range(200_000)]}, "more than 100000 values"),
        ({"dependentRequired": {f"a{i}": [] for i in range(200_000)}}, "more than 100000"),
        ({"properties": {f"a{index}": {} for index in range(200_000)}}, "more than 5000"),
        ({"allOf": [True] * 200_000}, "more than 5000"),
        ({"allOf": [{"pattern": f"a{i}"} for i in range(200)]}, "more than 100 different patterns"),
    ],
)
def test_a_schema_that_is_too_large_is_refused(asked: Any, reason: str) -> None:
    with pytest.raises(SchemaError, match=reason):
        schema.compile(asked)


MANY = 2_000
LONG = [1] * 100_000


@pytest.mark.parametrize(
    ("asked", "value"),
    [
        ({"allOf": [{"items": {"minimum": -i}} for i in range(MANY)]}, LONG),
        ({"items": {"allOf": [{"minimum": -i} for i in range(MANY)]}}, LONG),
        ({"allOf": [{"uniqueItems": True} for _ in range(MANY)]}, [LONG, LONG[1:]]),
        ({"allOf": [{"not": {"const": [i]}} for i in range(MANY)]}, LONG),
        ({"allOf": [{"not": {"pattern": f"a{i}b"}} for i in range(99)]}, "a" * 10_000_000),
        ({"patternProperties": {f"a{i}b": {} for i in range(99)}}, {"a" * 10_000_000: 1}),
        ({"patternProperties": {f"a{i}b": {} for i in range(99)}}, {f"a{i}": 1 for i in LONG[:1]}),
        ({"items": {"not": {"required": [f"a{i}" for i in range(50_000)]}}}, [{"a0": 1}] * 9_999),
        ({"items": {"dependentRequired": {f"a{i}": [] for i in range(50_000)}}}, [{}] * 9_999),
    ],
)
def test_a_large_schema_on_a_large_value_is_answered_or_denied(asked: Any, value: Any) -> None:
    answers(asked, value)


def test_the_steps_of_a_validation_are_bounded() -> None:
    asked = {"items": {"allOf": [{"minimum": -i} for i in range(MANY)]}}
    assert answers(asked, [1] * 400)
    assert f"more than {bounds.MAX_STEPS} steps" in limit(asked, LONG)


def test_the_problems_that_are_listed_are_bounded() -> None:
    problems = schema.validate({"items": {"type": "string"}}, LONG)
    assert len(problems) == bounds.MAX_PROBLEMS + 1
    assert problems[-1].rule == "limit"


def test_a_message_is_short_whatever_the_schema_and_the_value_hold() -> None:
    long = "a" * 1_000_000
    asked = {
        "properties": {long: {"enum": [long]}},
        "additionalProperties": False,
        "required": [long + "b"],
    }
    problems = schema.validate(asked, {long: 1, long + "c": 1})
    assert [problem.rule for problem in problems] == ["enum", "additionalProperties", "required"]
    assert all(len(str(problem)) < 300 for problem in problems)
    with pytest.raises(SchemaError) as caught:
        schema.compile({"properties": {long: {long: 1}}})
    assert len(str(caught.value)) < 500


def test_threads_do_not_spend_each_others_steps() -> None:
    value = [[1] * 100 for _ in range(1_000)]
    compiled = schema.compile(RECURSIVE)
    answered: list[bool] = []
    threads = [
        threading.Thread(target=lambda: answered.append(compiled.accepts(value))) for _ in range(20)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answered == [True] * 20
