"""The list of a server's tools, read page by page.

Imports `values`. Does no I/O: `read_list` yields the cursor that it wants the page of. Rules that
hold here: a list is taken whole or not at all; it is no larger than the bounds below; a cursor is
passed on as it came; what is wrong is said with the server's name of the tool, made visible.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, NamedTuple

from ..values import InvalidValue, ValueTooLarge, admit, check_text, type_name

__all__ = ["Definition", "quoted", "read_list"]

MAX_PAGES = 100
"""Pages of a list."""

MAX_TOOLS = 1_000
"""Tools in a list."""

MAX_LIST_BYTES = 4_000_000
"""Bytes of the names, descriptions and schemas of a list, as JSON."""


class Definition(NamedTuple):
    """What counts of a tool's definition."""

    name: str
    description: str
    parameters: dict[str, Any]


def read_list() -> Generator[str | None, dict[str, Any], list[Definition]]:
    """Yield the cursor of each page, be sent the page, and return what is in all of them."""
    found: dict[str, Definition] = {}
    seen: set[str] = set()
    room = MAX_LIST_BYTES
    cursor: str | None = None
    for _ in range(MAX_PAGES):
        page = yield cursor
        entries = page.get("tools")
        if type(entries) is not list:
            raise ValueError("the MCP server's list of tools has a page without a list `tools`")
        for entry in entries:
            definition, size = _read_definition(entry, room)
            if definition.name in found:
                raise ValueError(
                    f"the MCP server's list of tools defines {quoted(definition.name)} twice"
                )
            found[definition.name] = definition
            room -= size
        if len(found) > MAX_TOOLS:
            raise ValueError(f"the MCP server's list of tools has more than {MAX_TOOLS:,} tools")
        cursor = page.get("nextCursor")
        if cursor is None:
            return list(found.values())
        cursor = check_text("nextCursor of the MCP server's list of tools", cursor)
        if cursor in seen:
            raise ValueError("the MCP server's list of tools does not end: a cursor came again")
        seen.add(cursor)
    raise ValueError(f"the MCP server's list of tools has more than {MAX_PAGES} pages")


def _read_definition(entry: Any, room: int) -> tuple[Definition, int]:
    if type(entry) is not dict:
        raise ValueError(f"the MCP server's list of tools holds {type_name(entry)}, not an object")
    name, parameters = entry.get("name"), entry.get("inputSchema")
    description = entry.get("description") or entry.get("title") or ""
    if type(name) is not str:
        raise ValueError("the MCP server's list of tools holds a tool without a name")
    if type(parameters) is not dict or type(description) is not str:
        raise ValueError(
            f"the MCP server's tool {quoted(name)} has no object `inputSchema`, or a description "
            "that is no text"
        )
    try:
        text = admit([name, description, parameters], room, max_depth=256)[1]
    except ValueTooLarge:
        raise ValueError(
            f"the MCP server's list of tools has more than {MAX_LIST_BYTES:,} bytes"
        ) from None
    except InvalidValue as error:
        raise ValueError(
            f"the definition of the MCP server's tool {quoted(name)} is no JSON: {error.reason}"
        ) from None
    return Definition(name, description, parameters), len(text.encode())


def quoted(name: str) -> str:
    """Return a server's name for a message: short, in one line, and all of it visible."""
    return ascii(name if len(name) <= 80 else f"{name[:80]}...")
