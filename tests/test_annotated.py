"""What stands beside a type in Annotated is asked of every value, or refused."""

from __future__ import annotations

import re
from typing import Annotated, Any

import annotated_types
import pydantic
import pytest
import typing_extensions

from scikitplot.agent import tool


def schema_of(hint: Any, default: Any = ...) -> Any:
    def echo(it: Any) -> Any:
        """Echo.

        Args:
            it: The docstring's text.
        """

    echo.__annotations__ = {"it": hint}
    return tool(echo).parameters["properties"]["it"]


SAID = "The docstring's text."


@pytest.mark.parametrize(
    ("hint", "found"),
    [
        (Annotated[int, "mine"], {"type": "integer", "description": "mine"}),
        (Annotated[int, "mine", "last"], {"type": "integer", "description": "last"}),
        (Annotated[int, {"minimum": 1}], {"type": "integer", "minimum": 1, "description": SAID}),
        (
            Annotated[Annotated[int, {"minimum": 5}], {"minimum": 1}],
            {"type": "integer", "minimum": 5, "allOf": [{"minimum": 1}], "description": SAID},
        ),
        (
            Annotated[int, {"type": ["integer", "string"]}],
            {"type": "integer", "allOf": [{"type": ["integer", "string"]}], "description": SAID},
        ),
        (
            Annotated[int | None, {"minimum": 1}, "mine"],
            {"type": ["integer", "null"], "minimum": 1, "description": "mine"},
        ),
        (
            Annotated[str | list[str], annotated_types.MinLen(2), "mine"],
            {
                "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}],
                "minLength": 2,
                "minItems": 2,
                "description": "mine",
            },
        ),
        (
            Annotated[int, annotated_types.Ge(1), annotated_types.Lt(9)],
            {"type": "integer", "minimum": 1, "exclusiveMaximum": 9, "description": SAID},
        ),
        (
            Annotated[float, annotated_types.Interval(gt=0, le=1)],
            {"type": "number", "exclusiveMinimum": 0, "maximum": 1, "description": SAID},
        ),
        (
            Annotated[dict[str, int], annotated_types.Len(1, 3)],
            {
                "type": "object",
                "additionalProperties": {"type": "integer"},
                "minProperties": 1,
                "maxProperties": 3,
                "description": SAID,
            },
        ),
        (
            Annotated[list, annotated_types.Len(0, 3)],
            {"type": "array", "maxItems": 3, "description": SAID},
        ),
        (
            Annotated[int, pydantic.Field(ge=1, multiple_of=2, description="theirs")],
            {"type": "integer", "minimum": 1, "multipleOf": 2, "description": "theirs"},
        ),
        (
            Annotated[str, pydantic.Field(pattern="^a", max_length=3)],
            {"type": "string", "pattern": "^a", "maxLength": 3, "description": SAID},
        ),
        (
            Annotated[str, re.compile("a+")],
            {"type": "string", "pattern": "a+", "description": SAID},
        ),
        (
            Annotated[str, typing_extensions.Doc("theirs")],
            {"type": "string", "description": "theirs"},
        ),
    ],
)
def test_text_and_bounds_stand_in_the_schema(hint: Any, found: Any) -> None:
    assert schema_of(hint) == found


@pytest.mark.parametrize(
    ("hint", "named"),
    [
        (Annotated[str, {"minimum": 1}], "'minimum' says nothing about string"),
        (Annotated[int, annotated_types.MinLen(1)], "'min_length' says nothing about integer"),
        (Annotated[int, {"minimun": 1}], "minimun"),
        (Annotated[int, {"minimum": "1"}], "minimum"),
        (Annotated[int, {"minimum": {1}}], "/minimum: a set"),
        (Annotated[int, annotated_types.Ge("a")], "minimum"),
        (Annotated[str, {"pattern": "(?=a)"}], "pattern"),
        (Annotated[str, re.compile("a", re.IGNORECASE)], "flags"),
        (Annotated[list, {"items": {"$ref": "#"}}], r"\$ref"),
        (Annotated[str, annotated_types.Predicate(str.islower)], "Predicate"),
        (Annotated[int, int], "int"),
        (Annotated[int, 3], "int"),
    ],
)
def test_what_a_schema_cannot_ask_is_an_error_that_names_the_parameter(
    hint: Any, named: str
) -> None:
    with pytest.raises((TypeError, ValueError), match=f"'echo': parameter 'it'.*{named}"):
        schema_of(hint)


def test_a_bound_holds_where_a_class_is_put_in_its_place() -> None:
    class Options(typing_extensions.TypedDict):
        a: int

    def echo(it: Annotated[Options, {"additionalProperties": True}, {"maxProperties": 2}]) -> None:
        pass

    found = tool(echo)
    assert "$defs" not in found.parameters
    assert found.parameters["properties"]["it"]["maxProperties"] == 2
    assert found.problems({"it": {"a": 1}}) == []
    assert found.problems({"it": {"a": 1, "b": 1}})
