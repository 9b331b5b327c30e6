"""Rules on arguments: schemas by tool name, each judged on its own."""

from __future__ import annotations

import contextlib
import copy
import pickle
import sys
from typing import Any

import pytest

from scikitplot.agent import Policy, SchemaError
from scikitplot.agent.rules import ArgumentRules

SMALL = {"$defs": {"x": {"maximum": 50}}, "properties": {"n": {"$ref": "#/$defs/x"}}}
LARGE = {"$defs": {"x": {"minimum": 10}}, "properties": {"n": {"$ref": "#/$defs/x"}}}
OLD = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "properties": {"n": {"$ref": "#/definitions/odd"}},
    "definitions": {"odd": {"not": {"multipleOf": 2}}},
}


def rules(**given: Any) -> ArgumentRules:
    return ArgumentRules("arguments", given)


@pytest.mark.parametrize("how", ["a list", "merged"])
def test_arguments_must_meet_every_schema_and_none_reaches_into_another(how: str) -> None:
    if how == "a list":
        asked = rules(pay=[SMALL, LARGE, OLD])
    else:
        asked = rules(pay=SMALL).of_either(rules(pay=[LARGE])).of_either(rules(pay=OLD))
    met = [n for n in range(70) if asked.meets("pay", {"n": n})]
    assert met == [n for n in range(10, 51) if n % 2]
    assert [str(p) for p in asked.problems("pay", {"n": 60})][:1] == ["/n: must be at most 50"]


def test_without_a_rule_nothing_is_wrong_and_nothing_is_met() -> None:
    asked = rules(pay=SMALL)
    assert asked.problems("sell", {"n": 99}) == []
    assert not asked.meets("sell", {})
    assert not rules(pay=False).meets("pay", {})
    assert rules(pay=True).meets("pay", {"n": 99})


def test_merging_takes_the_tools_of_either_or_of_both() -> None:
    one, other = rules(a=SMALL, b=SMALL), rules(b=LARGE, c=LARGE)
    assert dict(one.of_either(other)) == {"a": SMALL, "b": [SMALL, LARGE], "c": LARGE}
    assert dict(one.of_both(other)) == {"b": [SMALL, LARGE]}
    assert one.of_either(other) == other.of_either(one)
    assert one.of_either(one) == one.of_both(one) == one


def test_rules_do_not_change_with_what_they_were_made_of_or_what_they_gave() -> None:
    schema = copy.deepcopy(SMALL)
    asked = rules(pay=schema)
    schema["properties"]["n"] = True
    asked["pay"]["properties"]["n"] = True
    asked.to_dict()["pay"] = True
    assert asked["pay"] == SMALL
    assert not asked.meets("pay", {"n": 51})


def test_rules_are_compared_hashed_and_pickled_by_their_schemas() -> None:
    asked = rules(pay=[LARGE, SMALL])
    same = rules(pay=[SMALL, LARGE, SMALL])
    assert asked == same
    assert hash(asked) == hash(same)
    assert asked != rules(pay=SMALL)
    assert rules(pay={"const": 1}) != rules(pay={"const": True})
    for other in (copy.deepcopy(asked), pickle.loads(pickle.dumps(asked))):
        assert other == asked
        assert not other.meets("pay", {"n": 51})


@pytest.mark.parametrize("field", ["arguments", "approval_arguments"])
@pytest.mark.parametrize(
    ("given", "error", "told"),
    [
        ([], TypeError, "must map tool names to schemas, not list"),
        (None, TypeError, "not NoneType"),
        ({"": {}}, ValueError, "a tool name in .* is empty"),
        ({3: {}}, ValueError, "a key that is a int"),
        ({"\ud800": {}}, ValueError, "surrogate"),
        ({"pay": []}, ValueError, r"\['pay'\] is an empty list; give a schema"),
        ({"pay": None}, SchemaError, "of tool 'pay'"),
        ({"pay": "x"}, SchemaError, "of tool 'pay'"),
        ({"pay": {"tpye": "object"}}, SchemaError, r"'type'.*\(.*arguments of tool 'pay'\)"),
        ({"pay": [{}, {"maximum": "x"}]}, SchemaError, "of tool 'pay'"),
        ({"pay": {"const": float("nan")}}, ValueError, "/pay/const: NaN"),
        ({"pay": {"enum": [{1, 2}]}}, ValueError, "/pay/enum/0: a set"),
        ({"pay": {"enum": ["x" * 1_000_000]}}, ValueError, "bytes of JSON"),
    ],
)
def test_what_is_no_rule_is_refused_when_the_policy_is_made(
    field: str, given: Any, error: type[Exception], told: str
) -> None:
    with pytest.raises(error, match=told) as caught:
        Policy(**{field: given})
    assert error is SchemaError or field in str(caught.value)


def test_rules_nest_no_deeper_than_a_record_of_them_can_be_read() -> None:
    schema: dict[str, Any] = {}
    for _ in range(70):
        schema = {"not": schema}
    with pytest.raises(ValueError, match="nested too deep"):
        Policy(arguments={"pay": schema})


def test_arguments_that_cannot_be_judged_break_a_rule_and_meet_none() -> None:
    asked = rules(
        nest={"properties": {"in": {"$ref": "#"}}},
        never={"properties": {"in": {"$ref": "#"}, "bad": False}},
    )
    arguments: dict[str, Any] = {"bad": 1}
    for _ in range(60):
        arguments = {"in": arguments}
    outcomes = set()

    def deep(frames: int) -> None:
        if frames:
            deep(frames - 1)
        else:
            outcomes.add(
                (
                    bool(asked.problems("nest", arguments)),
                    asked.meets("nest", arguments),
                    bool(asked.problems("never", arguments)),
                    asked.meets("never", arguments),
                )
            )

    limit = sys.getrecursionlimit()
    for left in range(20, 400):
        with contextlib.suppress(RecursionError):  # where not even the call itself fits
            deep(limit - left)
    assert {outcome[2:] for outcome in outcomes} == {(True, False)}
    # Where there is room for the one and not for the other, it meets nothing and breaks nothing.
    assert {(True, False), (False, True)} <= {outcome[:2] for outcome in outcomes}
    assert (True, True) not in {outcome[:2] for outcome in outcomes}
