"""An MCP server for the cases that no published server has; it speaks over its standard streams."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
from mcp.server import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

PAGE = 5  # tools; so that the list has several pages

NOTHING: dict[str, Any] = {"type": "object", "properties": {}, "additionalProperties": False}
NOTE = {
    "type": "object",
    "properties": {"text": {"$ref": "#/$defs/line"}},
    "required": ["text"],
    "additionalProperties": False,
    "$defs": {"line": {"type": "string", "maxLength": 80, "x-null": None}},
}
TEXT = types.TextContent(type="text", text="a text")


def encoded(size: int) -> str:
    return base64.b64encode(bytes(size)).decode()


def image(size: int) -> types.ImageContent:
    return types.ImageContent(type="image", data=encoded(size), mime_type="image/png")


RESULTS: dict[str, dict[str, Any]] = {
    "text": {"content": [TEXT]},
    "nothing": {"content": []},
    "empty_text": {"content": [types.TextContent(type="text", text="")]},
    "structured": {"content": [], "structured_content": {"done": True, "left": None}},
    "both": {
        "content": [types.TextContent(type="text", text='{\n "n": 1\n}')],
        "structured_content": {"n": 1},
    },
    "not_both": {
        "content": [types.TextContent(type="text", text='{"n": 1}')],
        "structured_content": {"n": True},
    },
    "wrapped": {"content": [TEXT], "structured_content": {"result": "a text"}},
    "image": {"content": [image(70)]},
    "large_image": {"content": [TEXT, image(5_000_000)]},
    "audio": {
        "content": [
            types.AudioContent(type="audio", data=encoded(9), mime_type="audio/wav"),
            types.AudioContent(type="audio", data="not base64!", mime_type="audio/wav"),
        ]
    },
    "link": {
        "content": [
            types.ResourceLink(
                type="resource_link",
                uri="file:///a.txt",
                name="a",
                size=3,
                icons=[types.Icon(src="data:image/png;base64,AAAA")],
                _meta={"for": "programs"},
            )
        ]
    },
    "resources": {
        "content": [
            types.EmbeddedResource(
                type="resource",
                resource=types.TextResourceContents(uri="file:///a.txt", text="inside"),
            ),
            types.EmbeddedResource(
                type="resource",
                resource=types.BlobResourceContents(
                    uri="file:///a.bin", blob=encoded(4), mime_type="application/octet-stream"
                ),
            ),
        ]
    },
    "fails": {
        "content": [TEXT, image(3)],
        "structured_content": {"reason": "no room"},
        "is_error": True,
    },
    "fails_at_length": {
        "content": [types.TextContent(type="text", text="long " * 1_000)],
        "structured_content": {"reason": "no room"},
        "is_error": True,
    },
    "fails_silently": {"content": [], "is_error": True},
    "large": {"content": [types.TextContent(type="text", text="x" * 2_000_000)]},
}

notes: list[str] = []
changed: dict[str, types.Tool] = {}


def define(name: str, schema: dict[str, Any] = NOTHING, **more: Any) -> types.Tool:
    return types.Tool(name=name, description=f"Does {name}.", input_schema=schema, **more)


def tools() -> dict[str, types.Tool]:
    """Return the definitions, as they are now."""
    only_read = types.ToolAnnotations(read_only_hint=True, destructive_hint=False)
    defined = [
        *(define(name) for name in RESULTS),
        define("note", NOTE, annotations=only_read),
        define("notes"),
        define("sleep"),
        define("die"),
        define("refuse"),
        define("break"),
        define("lie", output_schema={"type": "object", "required": ["n"]}),
        define("change", {"type": "object", "properties": {"how": {"type": "string"}}}),
        define("a.b"),
        define("a_b"),
        define("s\u00f8k \u2603"),
        define("x" * 69 + "1"),
        define("x" * 69 + "2"),
    ]
    return {**{tool.name: tool for tool in defined}, **changed}


def change(how: str) -> None:
    """Change the definition of ``note`` in one of the ways that a server may."""
    schema = {**NOTE, "properties": dict(NOTE["properties"])}  # type: ignore[call-overload]
    description = "Does note."
    if how == "description":
        description = "Does not."
    elif how == "hidden":
        description = "Does note.\U000e0041"
    elif how == "default":
        schema["$defs"] = {"line": {**NOTE["$defs"]["line"], "default": "a"}}  # type: ignore[index]
    elif how == "property":
        schema["properties"]["to"] = {"type": "string"}
    changed["note"] = types.Tool(name="note", description=description, input_schema=schema)


async def list_tools(context: Any, params: types.PaginatedRequestParams | None) -> Any:
    found = list(tools().values())
    # The cursor of the second page is empty, which a client has to pass on all the same.
    cursor = None if params is None else params.cursor
    start = 0 if cursor is None else int(cursor or PAGE)
    end = start + PAGE
    following = None if end >= len(found) else "" if end == PAGE else str(end)
    return types.ListToolsResult(tools=found[start:end], next_cursor=following)


async def call_tool(context: Any, params: types.CallToolRequestParams) -> Any:
    name, arguments = params.name, params.arguments or {}
    if name in RESULTS:
        return types.CallToolResult(**RESULTS[name])
    said = name
    if name == "note":
        notes.append(arguments["text"])
    elif name == "notes":
        said = " ".join(notes)
    elif name == "change":
        change(arguments["how"])
    elif name == "sleep":
        try:
            await anyio.sleep(60)
        except BaseException:
            notes.append("cancelled")
            raise
    elif name == "die":
        Path("died").write_text("its effect", encoding="utf-8")
        os._exit(3)
    elif name == "refuse":
        raise MCPError(code=-32602, message="pg://user:p4ss@host")
    elif name == "break":
        raise MCPError(code=-32050, message="pg://user:p4ss@host")
    return types.CallToolResult(content=[types.TextContent(type="text", text=said)])


async def main() -> None:
    server = Server("special", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    anyio.run(main)
