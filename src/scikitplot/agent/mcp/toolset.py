"""The tools of a session: a `Tool` for each that its server lists, and what calls it.

Imports `tools`, `values` and `errors`. Rules that hold here:

* what a server says of its tools' effects is a hint and counts for nothing: a tool is ``external``
  unless the caller says otherwise, by the name that the server gives it;
* a name that the caller gives and the server does not have is an error, so that a tool that was
  renamed is neither let in nor given another one's rights;
* the name that a planner sees depends on the server's name alone.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from inspect import isawaitable, iscoroutine
from typing import Any

from ..errors import SchemaError, ToolError
from ..tools import Tool, ToolEffect
from ..toolset import Toolset
from ..values import check_amount, check_names, check_text, digest, type_name
from .listing import Definition, quoted, read_list
from .results import read_result, to_wire
from .session import CannotAsk, NoAnswer, ask_on, ask_page, check_seconds, check_session

__all__ = ["mcp_tools", "mcp_tools_async"]

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
_DIGITS = 12  # of the digest in a name that was changed
_REFUSALS = {
    -32700: "the message cannot be read",
    -32600: "the request is not valid",
    -32601: "there is no such method",
    -32602: "the parameters are not valid",
}
_OTHERS = {-32000: ", that of a closed connection"}
_UNKNOWN = "whether the call took effect is unknown"


def mcp_tools(
    session: Any,
    *,
    only: Iterable[str] | None = None,
    exclude: Iterable[str] = (),
    prefix: str = "",
    effects: Mapping[str, ToolEffect | str] | None = None,
    scopes: Mapping[str, Iterable[str]] | None = None,
    costs: Mapping[str, float] | None = None,
    timeout: float = 60.0,
) -> Toolset:
    """Return the tools of an MCP server.

    Parameters
    ----------
    session : McpSession or object
        An object with methods ``list_tools`` and ``call_tool`` that are not async; `McpSession`
        makes one of an async session. Their results are dicts or pydantic models.
    only : iterable of str or None, default=None
        The tools to take; None takes all. Here and below a tool goes by the server's name for it.
    exclude : iterable of str, default=()
        Tools to leave out.
    prefix : str, default=""
        What the names begin with that a planner sees, for servers whose tools have equal names. At
        most 40 of the characters ``A-Z a-z 0-9 _ -``.
    effects : mapping of str to ToolEffect or str or None, default=None
        The effect of a tool, ``"external"`` for those that are not named.
    scopes : mapping of str to iterable of str or None, default=None
        The scopes of a tool, none for those that are not named.
    costs : mapping of str to float or None, default=None
        What a started call costs, in the unit of `Limits.max_cost`; 0 for those that are not named.
    timeout : float, default=60.0
        Seconds for each call, and those after which no more of the list is read.

    Returns
    -------
    Toolset
        The tools by name, as they are now. Call it again after the list has changed.

    Raises
    ------
    TypeError, ValueError
        If an argument is of the wrong type or value, or names a tool that the server does not have;
        or if the list has no end, is too large, defines a name twice, or has two names that would
        be seen as one. `SchemaError` if a tool has a schema that cannot be enforced.
    ConnectionError, TimeoutError
        If the session gives no list.

    Notes
    -----
    A name of 1 to 64 of the characters ``A-Z a-z 0-9 _ -``, the prefix included, stays as it is. In
    any other one all other characters become ``_``, it is cut after 51 characters, and ``_`` and 12
    hexadecimal digits of the SHA-256 of prefix and name follow.

    Examples
    --------
    >>> from scikitplot.agent import mcp_tools
    >>> class Session:  # stands for a session of an SDK
    ...     def list_tools(self, cursor=None):
    ...         return {"tools": [{"name": "files.read", "inputSchema": {"type": "object"}}]}
    ...     def call_tool(self, name, arguments):
    ...         return {"content": [{"type": "text", "text": f"{name} was called"}]}
    >>> [tool] = mcp_tools(Session(), effects={"files.read": "read"})
    >>> tool, tool.func()
    (Tool('files_read_601e4eb608f9', effect='read', scopes=[], cost=0.0), {'content': [...]})
    """
    choice = _Choice.of(only, exclude, prefix, effects, scopes, costs, timeout)
    check_session("session", session)
    reading = read_list()
    cursor, end = next(reading), time.monotonic() + choice.timeout
    while True:
        page = ask_page(session, cursor)
        if isawaitable(page):
            if iscoroutine(page):
                page.close()
            raise TypeError(
                "list_tools of the session is async: open it with McpSession, or call "
                "`await mcp_tools_async(session)` on its event loop"
            )
        if time.monotonic() > end:
            raise _too_slow(choice)
        try:
            cursor = reading.send(to_wire(page))
        except StopIteration as done:
            return choice.toolset(done.value, session.call_tool)


async def mcp_tools_async(
    session: Any,
    *,
    only: Iterable[str] | None = None,
    exclude: Iterable[str] = (),
    prefix: str = "",
    effects: Mapping[str, ToolEffect | str] | None = None,
    scopes: Mapping[str, Iterable[str]] | None = None,
    costs: Mapping[str, float] | None = None,
    timeout: float = 60.0,
) -> Toolset:
    """Return the tools of an MCP server over an async session, on the event loop of the session.

    The tools are called from other threads and hand the call to this loop, which must be free to
    run: on it, run an `Agent` as ``await asyncio.to_thread(agent.run, goal)``.

    Parameters
    ----------
    session : object
        An object with async methods ``list_tools`` and ``call_tool``, such as the ``Client`` or the
        ``ClientSession`` of the official SDK.
    only, exclude, prefix, effects, scopes, costs, timeout
        As those of `mcp_tools`.

    Returns
    -------
    Toolset
        The tools by name, as they are now.

    Raises
    ------
    TypeError, ValueError, TimeoutError
        As `mcp_tools`, and whatever the session raises.

    Examples
    --------
    >>> import asyncio
    >>> from scikitplot.agent import Agent, Decision, mcp_tools_async
    >>> class Session:  # stands for a session of an SDK
    ...     async def list_tools(self, cursor=None):
    ...         return {"tools": [{"name": "now", "inputSchema": {"type": "object"}}]}
    ...     async def call_tool(self, name, arguments):
    ...         return {"content": [{"type": "text", "text": "noon"}]}
    >>> def planner(state, tools):
    ...     return Decision.finish(state.steps[0].result) if state.steps else Decision.act("now")
    >>> async def main():
    ...     tools = await mcp_tools_async(Session(), effects={"now": "read"})
    ...     return await asyncio.to_thread(Agent(tools, planner).run, "what time is it?")
    >>> asyncio.run(main()).answer
    {'content': ['noon']}
    """
    import asyncio  # here, since it takes long to import

    choice = _Choice.of(only, exclude, prefix, effects, scopes, costs, timeout)
    check_session("session", session)
    loop = asyncio.get_running_loop()
    reading = read_list()

    async def read() -> list[Definition]:
        cursor = next(reading)
        while True:
            page = ask_page(session, cursor)
            if not isawaitable(page):
                raise TypeError("list_tools of the session is not async: call mcp_tools(session)")
            page = await page
            try:
                cursor = reading.send(to_wire(page))
            except StopIteration as done:
                return list(done.value)

    try:
        definitions = await asyncio.wait_for(read(), choice.timeout)
    except asyncio.TimeoutError:
        raise _too_slow(choice) from None

    def call_tool(name: str, arguments: dict[str, Any]) -> Any:
        return ask_on(loop, session.call_tool, name, arguments, seconds=choice.timeout)

    return choice.toolset(definitions, call_tool)


def _too_slow(choice: _Choice) -> TimeoutError:
    return TimeoutError(f"the MCP server did not list its tools within {choice.timeout:g} seconds")


@dataclass(frozen=True, slots=True)
class _Choice:
    """What the caller says of a server's tools."""

    only: frozenset[str] | None
    exclude: frozenset[str]
    prefix: str
    effects: dict[str, ToolEffect]
    scopes: dict[str, frozenset[str]]
    costs: dict[str, float]
    timeout: float

    @classmethod
    def of(
        cls,
        only: Any,
        exclude: Any,
        prefix: Any,
        effects: Any,
        scopes: Any,
        costs: Any,
        timeout: Any,
    ) -> _Choice:
        """Return the checked choice, or raise an error that names the argument."""
        prefix = check_text("prefix", prefix, 40)
        if not re.fullmatch(r"[A-Za-z0-9_-]*", prefix, re.ASCII):
            raise ValueError("prefix may hold the characters A-Z a-z 0-9 _ - alone")
        return cls(
            None if only is None else check_names("only", only),
            check_names("exclude", exclude),
            prefix,
            _by_name("effects", effects, ToolEffect.of),
            _by_name("scopes", scopes, check_names),
            _by_name("costs", costs, check_amount),
            check_seconds("timeout", timeout),
        )

    def toolset(self, definitions: list[Definition], call_tool: Callable[..., Any]) -> Toolset:
        """Return the chosen tools, in the order of their names, whatever that of the server."""
        known = {definition.name for definition in definitions}
        for argument in ("only", "exclude", "effects", "scopes", "costs"):
            unknown = sorted(set(getattr(self, argument) or ()) - known)
            if unknown:
                raise ValueError(f"{argument}: the MCP server has no tool {quoted(unknown[0])}")
        tools: dict[str, Tool] = {}
        names: dict[str, str] = {}
        refused: dict[str, Exception] = {}
        for definition in sorted(definitions):
            name = definition.name
            if name in self.exclude or (self.only is not None and name not in self.only):
                continue
            exposed = _exposed(self.prefix + name)
            if exposed in names:
                raise ValueError(
                    f"the MCP server's tools {quoted(names[exposed])} and {quoted(name)} would "
                    f"both be named {exposed!r}; leave one out with exclude="
                )
            names[exposed] = name
            try:
                tools[exposed] = Tool(
                    exposed,
                    _function(name, call_tool),
                    description=definition.description,
                    parameters=definition.parameters,
                    effect=self.effects.get(name, ToolEffect.EXTERNAL),
                    scopes=self.scopes.get(name, ()),
                    cost=self.costs.get(name, 0.0),
                    timeout=self.timeout,
                )
            except ValueError as error:
                refused[name] = error
        if refused:
            raise _refusal(refused)
        return Toolset(tools.values())


def _by_name(argument: str, given: Any, check: Callable[[str, Any], Any]) -> dict[str, Any]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise TypeError(f"{argument} must be a mapping by tool name, not {type_name(given)}")
    check_names(argument, given)
    return {name: check(f"{argument}[{quoted(name)}]", value) for name, value in given.items()}


def _refusal(refused: dict[str, Exception]) -> ValueError:
    error = next(iter(refused.values()))
    names = ", ".join(map(quoted, list(refused)[:20]))
    told = (
        f"the MCP server defines tools that cannot be taken as they are ({names}); to do without "
        f"them, name them in exclude="
    )
    if isinstance(error, SchemaError):
        return SchemaError(error.keyword, error.pointer, f"{error.reason}; {told}")
    return ValueError(f"{error}; {told}")


def _exposed(name: str) -> str:
    """Return the name that a planner sees."""
    if _NAME.fullmatch(name):
        return name
    clean = re.sub(r"[^A-Za-z0-9_-]", "_", name[: 63 - _DIGITS])
    return f"{clean}_{digest(name)[:_DIGITS]}"


def _function(name: str, call_tool: Callable[[str, dict[str, Any]], Any]) -> Callable[..., Any]:
    def call(**arguments: Any) -> dict[str, Any]:
        try:
            result = to_wire(call_tool(name, arguments))
        except Exception as error:
            told = _told(error)
        else:
            return read_result(result)
        raise ToolError(told)  # here, so that it holds nothing of the exception

    return call


def _told(error: Exception) -> str:
    """Return what a planner is told of an exception: its type and its code, never its text."""
    if isinstance(error, CannotAsk):
        return str(error)
    if isinstance(error, NoAnswer):
        return f"{error}; {_UNKNOWN}"
    code = getattr(getattr(error, "error", None), "code", None)
    if type(code) is not int or abs(code) > 99_999:
        return f"the call failed with {type_name(error)}; {_UNKNOWN}"
    if code in _REFUSALS:
        return f"the server refused the call with error {code}: {_REFUSALS[code]}"
    return f"the call failed with error {code}{_OTHERS.get(code, '')}; {_UNKNOWN}"
