"""Definitions in the forms of providers: read whole, and written so that they are read back."""

from __future__ import annotations

from typing import Any

import anthropic.types
import mcp.types
import openai.types.shared_params
import pytest
from pydantic import TypeAdapter

from scikitplot.agent import Tool, Toolset, tool

SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {"tree": {"$ref": "#/$defs/tree"}, "n": {"type": "integer", "default": 3}},
    "required": ["tree"],
    "$defs": {"tree": {"type": "array", "items": {"$ref": "#/$defs/tree"}}},
}


def grow(tree: Any, n: int = 3) -> Any:
    return tree


NESTED = {
    "type": "function",
    "function": {"name": "grow", "description": "Grow.", "parameters": SCHEMA, "strict": False},
}
FLAT = {"type": "function", **NESTED["function"]}  # type: ignore[dict-item]
ANTHROPIC = {
    "name": "grow",
    "description": "Grow.",
    "input_schema": SCHEMA,
    "type": "custom",
    "cache_control": {"type": "ephemeral"},
    "input_examples": [{"tree": []}],
}
MCP = {
    "name": "grow",
    "title": "Grow a tree",
    "description": "Grow.",
    "inputSchema": SCHEMA,
    "outputSchema": {"type": "object"},
    "annotations": {"readOnlyHint": True, "idempotentHint": True},
    "icons": None,
    "_meta": {"v": 1},
}


@pytest.mark.parametrize("definition", [NESTED, FLAT, ANTHROPIC, MCP])
def test_every_form_gives_the_same_tool_with_its_schema_whole(definition: Any) -> None:
    before = repr(definition)
    found = Tool.from_dict(definition, grow, effect="write", cost=2.0)
    assert found.digest == (
        Tool("grow", grow, description="Grow.", parameters=SCHEMA, effect="write", cost=2.0).digest
    )
    assert found.parameters == SCHEMA
    assert repr(definition) == before


def test_hints_of_a_server_are_not_trusted() -> None:
    found = Tool.from_dict(MCP, grow, effect="external")
    assert (found.effect.value, found.idempotent) == ("external", False)


@pytest.mark.parametrize(
    ("definition", "named"),
    [
        ({"name": "ping", "type": "function"}, ""),
        ({"function": {"name": "ping"}}, ""),
        ({"type": "function", "function": {"name": "ping", "description": None}}, ""),
        ({"type": "function", "name": "ping", "parameters": None, "strict": None}, ""),
    ],
)
def test_a_function_without_parameters_or_description_has_none(definition: Any, named: str) -> None:
    found = Tool.from_dict(definition, lambda: "pong")
    assert (found.description, found.problems({})) == (named, [])
    assert found.problems({"a": 1})


@pytest.mark.parametrize(
    ("definition", "error", "named"),
    [
        ([], TypeError, "not list"),
        ({}, ValueError, "no schema"),
        ({"name": "grow"}, ValueError, "no schema"),
        ({"name": "grow", "type": "web_search_20250305"}, ValueError, "no schema"),
        ({**FLAT, "type": "custom"}, ValueError, "type must be 'function'"),
        ({**NESTED, "type": "tool"}, ValueError, "type must be 'function'"),
        ({**ANTHROPIC, "type": "bash"}, ValueError, "type must be 'custom'"),
        ({**ANTHROPIC, "parameters": SCHEMA}, ValueError, "both"),
        ({**FLAT, "paramters": SCHEMA}, ValueError, "'paramters'.*'parameters'"),
        ({**MCP, "needsApproval": False}, ValueError, "'needsApproval' is not in MCP's form"),
        ({**NESTED, "strict": True}, ValueError, "'strict'"),
        ({"type": "function", "function": []}, TypeError, "function must be a dict"),
        ({"input_schema": SCHEMA}, ValueError, "no name"),
        ({**FLAT, "name": 3}, TypeError, "name"),
        ({**FLAT, "name": "a.b"}, ValueError, "name"),
        ({**FLAT, "description": 3}, TypeError, "description"),
        ({**FLAT, "parameters": []}, TypeError, "parameters"),
        ({**FLAT, "parameters": {"type": "object", "typ": 1}}, ValueError, "typ"),
    ],
)
def test_what_is_in_none_of_the_forms_is_refused(
    definition: Any, error: type[Exception], named: str
) -> None:
    with pytest.raises(error, match=named):
        Tool.from_dict(definition, grow)


@tool
def find(word: str, near: tuple[float, float] | None = None) -> None:
    """Find a word."""


TOOLS = Toolset([Tool("ping", lambda: "pong"), find, Tool.from_dict(FLAT, grow)])


def test_what_is_written_is_read_back() -> None:
    for listed in (TOOLS.to_openai(), TOOLS.to_anthropic()):
        for definition, original in zip(listed, TOOLS, strict=True):
            again = Tool.from_dict(definition, lambda **arguments: None)
            assert again.describe() == original.describe()
            assert again.digest == original.digest


def test_what_is_written_passes_the_providers_own_models() -> None:
    for definition in TOOLS.to_openai():
        assert definition.keys() == {"type", "function"}
        TypeAdapter(openai.types.shared_params.FunctionDefinition).validate_python(
            definition["function"], extra="forbid"
        )
    for definition in TOOLS.to_anthropic():
        TypeAdapter(anthropic.types.ToolParam).validate_python(definition, extra="forbid")


def test_what_a_server_sends_is_read() -> None:
    listed = mcp.types.Tool.model_validate(MCP)
    for sent in (listed.model_dump(by_alias=True), listed.model_dump(), {**MCP, "meta": None}):
        assert Tool.from_dict(sent, grow).digest == Tool.from_dict(MCP, grow).digest


def test_what_is_written_is_a_copy() -> None:
    before = TOOLS.digest, TOOLS.describe()
    for definition in (*TOOLS.to_openai(), *TOOLS.to_anthropic()):
        definition.get("function", definition).clear()
    assert (TOOLS.digest, TOOLS.describe()) == before


def test_strict_is_set_where_the_schema_is_in_the_subset() -> None:
    @tool
    def strict(word: str, size: int | None) -> None: ...

    @tool
    def optional(word: str = "a") -> None: ...

    listed = Toolset([strict, optional]).to_openai()
    assert [entry["function"].get("strict") for entry in listed] == [True, None]
