"""Definitions of tools as providers and servers write them.

Imports `values`. Three forms are known, by the key that holds the schema. Of the other keys those
are left out that say how a provider treats a definition, or what a server claims of it; whatever is
not known is refused, because nobody could tell what was lost with it.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

from .values import JSON, type_name

__all__ = ["read_definition"]

_TAKEN = ("name", "description")
_SCHEMAS = {
    "input_schema": "Anthropic's form",  # also what `model_dump()` of MCP's Python SDK writes
    "inputSchema": "MCP's form",
    "parameters": "OpenAI's form",
}
_OF_MCP = ("title", "annotations", "icons", "execution", "meta")
_LEFT_OUT = {
    "input_schema": (
        "type",
        "strict",
        "cache_control",
        "input_examples",
        "defer_loading",
        "allowed_callers",
        "eager_input_streaming",
        *_OF_MCP,
        "output_schema",
    ),
    "inputSchema": (*_OF_MCP, "outputSchema", "_meta"),
    "parameters": (
        "type",
        "strict",
        "output_schema",
        "defer_loading",
        "allowed_callers",
        "async",
    ),
}


def read_definition(definition: Any) -> tuple[Any, Any, dict[str, JSON] | None]:
    """Return the name, the description and the schema of a definition.

    Parameters
    ----------
    definition : dict
        In the form of OpenAI (nested or flat), Anthropic or MCP.

    Returns
    -------
    name, description, parameters
        Not judged yet; `Tool` does that.

    Raises
    ------
    TypeError, ValueError
        If it is in none of the forms.

    Examples
    --------
    >>> from scikitplot.agent.definition import read_definition
    >>> read_definition({"type": "function", "function": {"name": "ping"}})
    ('ping', '', None)
    """
    if type(definition) is not dict:
        raise TypeError(f"definition must be a dict, not {type_name(definition)}")
    if "function" in definition:
        _refuse_unknown(definition, ("type", "function"), "OpenAI's form")
        _check_kind(definition, "function")
        definition = definition["function"]
        if type(definition) is not dict:
            raise TypeError(f"definition: function must be a dict, not {type_name(definition)}")
    elif not set(definition) & set(_SCHEMAS) and definition.get("type") != "function":
        raise ValueError(
            "definition has no schema; a function has 'parameters', a tool of Anthropic "
            "'input_schema' and one of MCP 'inputSchema'"
        )
    found = [key for key in _SCHEMAS if key in definition] or ["parameters"]
    if len(found) > 1:
        raise ValueError(f"definition has both {found[0]!r} and {found[1]!r}; leave one out")
    [key] = found
    _refuse_unknown(definition, (*_TAKEN, key, *_LEFT_OUT[key]), _SCHEMAS[key])
    if key != "inputSchema":
        _check_kind(definition, "function" if key == "parameters" else "custom")
    if definition.get("name") is None:
        raise ValueError("definition has no name")
    description = definition.get("description")
    parameters = definition.get(key)
    return definition["name"], "" if description is None else description, parameters


def _refuse_unknown(definition: dict[str, JSON], known: tuple[str, ...], form: str) -> None:
    for key in definition:
        if key not in known:
            near = get_close_matches(str(key)[:64], known, 1)
            hint = f"did you mean {near[0]!r}?" if near else "take it out"
            raise ValueError(f"definition: {str(key)[:64]!r} is not in {form}; {hint}")


def _check_kind(definition: dict[str, JSON], kind: str) -> None:
    if definition.get("type") not in (None, kind):
        raise ValueError(f"definition: type must be {kind!r}; other kinds run at the provider")
