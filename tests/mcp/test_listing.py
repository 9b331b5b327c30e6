"""How a server's list of tools is read: whole, or not at all."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

from scikitplot.agent import Toolset, mcp_tools, mcp_tools_async

Page = dict[str, Any]
OBJECT = {"type": "object"}


def page(*names: Any, cursor: str | None = None, **more: Any) -> Page:
    tools = [{"name": name, "inputSchema": OBJECT} for name in names]
    return {"tools": tools, **({} if cursor is None else {"nextCursor": cursor}), **more}


class Fake:
    """A session whose pages are made by a function of the cursor; it notes the cursors."""

    def __init__(self, pages: Callable[[str | None], Any]) -> None:
        self.pages = pages
        self.cursors: list[str | None] = []

    def list_tools(self, cursor: str | None = None) -> Any:
        self.cursors.append(cursor)
        return self.pages(cursor)

    def call_tool(self, name: str, arguments: Any) -> Any:
        return {"content": [{"type": "text", "text": name}]}


class AsyncFake(Fake):
    async def list_tools(self, cursor: str | None = None) -> Any:
        return super().list_tools(cursor)


READERS = {
    "sync": (Fake, mcp_tools),
    "async": (AsyncFake, lambda session: asyncio.run(mcp_tools_async(session))),
}


@pytest.fixture(params=READERS)
def read(request: pytest.FixtureRequest) -> Callable[..., tuple[Any, Callable[[], Toolset]]]:
    """Return what makes a session and what reads the tools of it, in both forms."""
    kind, reader = READERS[request.param]

    def make(pages: Callable[[str | None], Any] | dict[str | None, Any]) -> Any:
        session = kind(pages if callable(pages) else pages.__getitem__)
        return session, lambda: reader(session)

    return make


def test_all_pages_are_read_and_each_cursor_is_passed_on_as_it_came(read: Any) -> None:
    session, tools = read({None: page("a", cursor=""), "": page(cursor=" \n"), " \n": page("b")})
    assert [tool.name for tool in tools()] == ["a", "b"]
    assert session.cursors == [None, "", " \n"]


def test_a_cursor_that_comes_again_is_an_error(read: Any) -> None:
    pages = {None: page("a", cursor="1"), "1": page("b", cursor="2"), "2": page("c", cursor="1")}
    session, tools = read(pages)
    with pytest.raises(ValueError, match="does not end: a cursor came again"):
        tools()
    assert len(session.cursors) == 3


def test_a_list_of_ten_thousand_pages_is_an_error(read: Any) -> None:
    session, tools = read(lambda cursor: page(cursor=str(int(cursor or 0) + 1)))
    with pytest.raises(ValueError, match="more than 100 pages"):
        tools()
    assert len(session.cursors) == 100


def test_a_name_that_is_defined_twice_is_an_error(read: Any) -> None:
    _, tools = read({None: page("a", "b", cursor="1"), "1": page("a")})
    with pytest.raises(ValueError, match="defines 'a' twice"):
        tools()


def test_more_than_a_thousand_tools_are_an_error(read: Any) -> None:
    _, tools = read({None: page(*(f"t{number}" for number in range(1_001)))})
    with pytest.raises(ValueError, match="more than 1,000 tools"):
        tools()


@pytest.mark.parametrize("text", ["x" * 90_000, "\u00e9" * 45_000], ids=["ASCII", "UTF-8"])
def test_a_list_of_more_than_four_million_bytes_is_an_error(read: Any, text: str) -> None:
    described = [
        {"name": f"t{number}", "description": text, "inputSchema": OBJECT} for number in range(45)
    ]
    _, tools = read({None: {"tools": described}})
    with pytest.raises(ValueError, match="more than 4,000,000 bytes"):
        tools()
    _, tools = read({None: {"tools": described[:44]}})
    assert len(tools()) == 44


@pytest.mark.parametrize(
    ("entries", "told"),
    [
        (None, "a page without a list `tools`"),
        ([1], "holds int, not an object"),
        ([{"inputSchema": OBJECT}], "a tool without a name"),
        ([{"name": 1, "inputSchema": OBJECT}], "a tool without a name"),
        ([{"name": "a"}], "tool 'a' has no object `inputSchema`"),
        ([{"name": "a", "inputSchema": True}], "tool 'a' has no object `inputSchema`"),
        (
            [{"name": "a", "inputSchema": OBJECT, "description": 1}],
            "tool 'a' has .* a description that is no text",
        ),
        (
            [{"name": "\u202ea\n", "inputSchema": {"const": float("nan")}}],
            r"tool '\\u202ea\\n' is no JSON: ",
        ),
    ],
)
def test_a_definition_that_is_none_is_an_error(read: Any, entries: Any, told: str) -> None:
    _, tools = read({None: {"tools": entries}})
    with pytest.raises(ValueError, match=told):
        tools()


@pytest.mark.parametrize("cursor", [1, True, "\ud800"])
def test_a_cursor_that_is_no_text_is_an_error(read: Any, cursor: Any) -> None:
    _, tools = read({None: page(cursor=cursor)})
    with pytest.raises((TypeError, ValueError), match="nextCursor of the MCP server's list"):
        tools()


def test_the_title_stands_for_a_description_that_is_not_there() -> None:
    entry = {"name": "a", "title": "The title", "inputSchema": OBJECT}
    tools = mcp_tools(Fake(lambda cursor: {"tools": [entry]}))
    assert tools["a"].description == "The title"


def test_a_session_whose_methods_are_async_is_refused_where_it_cannot_be_awaited() -> None:
    with pytest.raises(TypeError, match=r"open it with McpSession, or call `await mcp_tools_async"):
        mcp_tools(AsyncFake(lambda cursor: page("a")))


def test_a_session_whose_methods_are_not_async_is_refused_where_it_would_be_awaited() -> None:
    with pytest.raises(TypeError, match=r"is not async: call mcp_tools\(session\)"):
        asyncio.run(mcp_tools_async(Fake(lambda cursor: page("a"))))


@pytest.mark.parametrize("session", [None, object()])
def test_what_is_no_session_is_refused(session: Any) -> None:
    with pytest.raises(TypeError, match="session must have a method list_tools"):
        mcp_tools(session)
    with pytest.raises(TypeError, match="session must have a method list_tools"):
        asyncio.run(mcp_tools_async(session))


def test_a_session_that_takes_no_cursor_is_refused_at_the_second_page() -> None:
    class Single:
        async def list_tools(self) -> Any:
            return page("a", cursor="1")

        async def call_tool(self, name: str, arguments: Any) -> Any: ...

    with pytest.raises(TypeError, match="takes no cursor, and there is a second page"):
        asyncio.run(mcp_tools_async(Single()))


def test_a_list_that_takes_too_long_is_an_error() -> None:
    def slow(cursor: str | None) -> Page:
        time.sleep(0.06)
        return page(cursor=str(int(cursor or 0) + 1))

    with pytest.raises(TimeoutError, match=r"did not list its tools within 0\.05 seconds"):
        mcp_tools(Fake(slow), timeout=0.05)

    class Slow(AsyncFake):
        async def list_tools(self, cursor: str | None = None) -> Any:
            await asyncio.sleep(60)

    with pytest.raises(TimeoutError, match=r"did not list its tools within 0\.05 seconds"):
        asyncio.run(mcp_tools_async(Slow(lambda cursor: page()), timeout=0.05))
