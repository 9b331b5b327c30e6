"""An async session, used from threads that have no event loop.

Imports `calls` and `values`. Rules that hold here:

* a session is opened, used and closed on one event loop, and opened and closed in one task of it;
* nobody waits for ever: every wait has a bound in seconds, and what is waited for no longer is
  cancelled, so that the server is told;
* an error says whether something was sent. What was sent may have taken effect.
"""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import AbstractAsyncContextManager, suppress
from inspect import signature
from types import TracebackType
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

from ..calls import running
from ..values import check_amount, type_name

if TYPE_CHECKING:
    import asyncio

__all__ = [
    "CannotAsk",
    "McpSession",
    "NoAnswer",
    "ask_on",
    "ask_page",
    "check_seconds",
    "check_session",
]

_START_SECONDS = 5.0
"""How long a loop may take to begin a call before it counts as blocked."""

_GRACE_SECONDS = 2.0
"""How much longer than the runtime a tool waits, so that the runtime says ``tool_timeout``."""

_ENDED = "the MCP session has ended; open a new one. Nothing was sent"
_BLOCKED = (
    "the event loop of the MCP session is blocked, maybe by the agent itself: run the agent in "
    "another thread, as with `await asyncio.to_thread(agent.run, goal)`. Nothing was sent"
)


class CannotAsk(ConnectionError):
    """The session cannot be used; nothing was sent."""


class NoAnswer(ConnectionError):
    """A request was sent and its answer will not come."""


class McpSession:
    """A session that runs on an event loop in a thread of its own, for code that has no loop.

    It is open once it is made. Leave it with ``with`` or `close`, which stops a server that was
    started for it. Threads may share it.

    Parameters
    ----------
    connect : callable
        Called without arguments, in the thread of the session. It returns an async context manager
        that gives a session which is ready for use: an object with ``list_tools`` and
        ``call_tool``, such as the ``Client`` or the ``ClientSession`` of the official SDK.
    timeout : float, default=60.0
        Seconds in which it must open, in which it must close, and in which a request that is made
        outside a tool must be answered.

    Raises
    ------
    TypeError, ValueError
        If an argument is of the wrong type or value, or what `connect` gives is no session.
    TimeoutError
        If it is not open in time.
    Exception
        Whatever `connect` and its context manager raise while they open.

    Examples
    --------
    >>> from contextlib import asynccontextmanager
    >>> from scikitplot.agent import McpSession, mcp_tools
    >>> class Session:  # stands for the session of an SDK
    ...     async def list_tools(self, cursor=None):
    ...         return {"tools": [{"name": "now", "inputSchema": {"type": "object"}}]}
    ...     async def call_tool(self, name, arguments):
    ...         return {"content": [{"type": "text", "text": "noon"}]}
    >>> @asynccontextmanager
    ... async def connect():
    ...     yield Session()
    >>> with McpSession(connect) as session:
    ...     mcp_tools(session)["now"].func()
    {'content': ['noon']}
    """

    def __init__(
        self, connect: Callable[[], AbstractAsyncContextManager[Any]], *, timeout: float = 60.0
    ) -> None:
        if not callable(connect):
            raise TypeError(
                "connect must be a function that returns an async context manager, not "
                f"{type_name(connect)}; write `lambda:` before it"
            )
        self._timeout = check_seconds("timeout", timeout)
        self._failure: BaseException | None = None
        self._has_ended = False
        begun: Future[tuple[asyncio.AbstractEventLoop, Any, asyncio.Event]] = Future()
        opened: Future[Any] = Future()
        self._thread = threading.Thread(
            target=self._run, args=(connect, begun, opened), name="mcp session", daemon=True
        )
        self._thread.start()
        self._loop, task, self._stop = begun.result()
        try:
            if not wait([opened], self._timeout).done:
                raise TimeoutError(f"the MCP session did not open within {self._timeout:g} seconds")
        except BaseException:
            self._loop.call_soon_threadsafe(task.cancel)
            raise
        self._inner = opened.result()

    def _run(self, connect: Callable[[], Any], begun: Future[Any], opened: Future[Any]) -> None:
        import asyncio  # in each function that needs it, since it takes long to import

        try:
            asyncio.run(self._live(connect, begun, opened))
        except BaseException as error:  # told to who opens the session, or to who closes it
            if opened.done():
                self._failure = error
            else:
                (opened if begun.done() else begun).set_exception(error)

    async def _live(
        self, connect: Callable[[], Any], begun: Future[Any], opened: Future[Any]
    ) -> None:
        import asyncio

        stop = asyncio.Event()
        begun.set_result((asyncio.get_running_loop(), asyncio.current_task(), stop))
        try:
            async with connect() as inner:
                try:
                    check_session("what connect gives", inner)
                except TypeError as error:  # here, where no transport makes a group of it
                    opened.set_exception(error)
                else:
                    opened.set_result(inner)
                    await stop.wait()
        finally:
            self._has_ended = True

    def list_tools(self, cursor: str | None = None) -> Any:
        """Return a page of the server's list of tools; None is the first page."""
        return self._ask(ask_page, self._inner, cursor)

    def call_tool(self, name: str, arguments: dict[str, Any] | None = None) -> Any:
        """Return what the server's tool `name` returns, as the SDK gives it."""
        return self._ask(self._inner.call_tool, name, arguments)

    def _ask(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return ask_on(
            self._loop,
            function,
            *arguments,
            seconds=self._timeout,
            has_ended=lambda: self._has_ended,
        )

    def close(self) -> None:
        """Close the session and wait until it is closed. Closing it again does nothing.

        What went wrong in it meanwhile or at its end is told by a `RuntimeWarning`.
        """
        with suppress(RuntimeError):  # its loop has ended already
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(self._timeout)
        if self._thread.is_alive():
            told = f"did not close within {self._timeout:g} seconds; its thread was left behind"
        elif self._failure is not None:
            told = f"broke down: {', '.join(sorted(set(_leaves(self._failure))))}"
            self._failure = None
        else:
            return
        warnings.warn(f"the MCP session {told}", RuntimeWarning, stacklevel=2)

    def __enter__(self) -> McpSession:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def _leaves(error: BaseException) -> Iterator[str]:
    """Yield the names of the types in a group of exceptions, or of the one that is none."""
    parts = getattr(error, "exceptions", None)
    if isinstance(parts, tuple):
        for part in parts:
            yield from _leaves(part)
    else:
        yield type_name(error)


def ask_on(
    loop: asyncio.AbstractEventLoop,
    function: Callable[..., Any],
    *arguments: Any,
    seconds: float,
    has_ended: Callable[[], bool] = bool,
) -> Any:
    """Return what ``await function(*arguments)`` gives on `loop`, which runs in another thread.

    Parameters
    ----------
    loop : asyncio.AbstractEventLoop
        The loop.
    function : callable
        Called on the loop; what it returns is awaited.
    *arguments
        Its arguments.
    seconds : float
        How long to wait for the answer. Inside a tool with a deadline it is that of the tool.
    has_ended : callable, default=bool
        Once it returns True no call is begun.

    Raises
    ------
    CannotAsk
        If the loop has ended, does not begin the call, or is that of this thread, which would wait
        for itself. Nothing was sent.
    NoAnswer
        If the answer does not come in time, or the session ended before it came.
    """
    call = running.get(None)
    if call is not None and call.deadline is not None:
        seconds = max(call.deadline + _GRACE_SECONDS - time.monotonic(), 0.0)
    if _runs_here(loop):
        raise CannotAsk(
            "this thread runs the event loop of the MCP session and would wait for itself; call "
            "from another one, as with `await asyncio.to_thread(...)`. Nothing was sent"
        )
    end = time.monotonic() + seconds
    answer: Future[Any] = Future()
    begun = threading.Event()
    tasks: list[asyncio.Task[Any]] = []

    async def work() -> Any:
        return await function(*arguments)

    def begin() -> None:
        if answer.set_running_or_notify_cancel():
            if has_ended():
                answer.set_exception(CannotAsk(_ENDED))
            else:
                tasks.append(loop.create_task(work()))
                tasks[0].add_done_callback(settle)
            begun.set()

    def give_up() -> None:
        for task in tasks:
            task.cancel()

    def settle(task: asyncio.Task[Any]) -> None:
        if task.cancelled():
            answer.set_exception(NoAnswer("the MCP session ended before the answer came"))
        elif (error := task.exception()) is not None:
            answer.set_exception(error)
        else:
            answer.set_result(task.result())

    if has_ended():
        raise CannotAsk(_ENDED)
    try:
        loop.call_soon_threadsafe(begin)
    except RuntimeError:
        raise CannotAsk(_ENDED) from None
    try:
        if not begun.wait(min(seconds, _START_SECONDS)) and answer.cancel():
            raise CannotAsk(_ENDED if loop.is_closed() else _BLOCKED)
        wait([answer], end - time.monotonic())
        if not answer.done():
            raise NoAnswer(f"no answer came within {seconds:g} seconds")
        return answer.result()
    finally:
        if not answer.done():
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(give_up)


def _runs_here(loop: asyncio.AbstractEventLoop) -> bool:
    import asyncio

    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False


def ask_page(session: Any, cursor: str | None) -> Any:
    """Return what the session's ``list_tools`` gives for a page, maybe something to await.

    Sessions differ in how they take the cursor: as ``cursor``, or in an object of their own as
    ``params``, whose class is in the hints of the method.
    """
    if cursor is None:
        return session.list_tools()
    if "cursor" in signature(session.list_tools).parameters:
        return session.list_tools(cursor=cursor)
    hint = get_type_hints(session.list_tools).get("params")
    for kind in get_args(hint) or (hint,):
        if isinstance(kind, type) and kind is not type(None):
            return session.list_tools(params=kind(cursor=cursor))
    raise TypeError("list_tools of the MCP session takes no cursor, and there is a second page")


def check_session(name: str, session: object) -> None:
    """Raise an error that names the argument unless `session` has the methods of a session."""
    for method in ("list_tools", "call_tool"):
        if not callable(getattr(session, method, None)):
            raise TypeError(
                f"{name} must have a method {method}, and {type_name(session)} has none; over the "
                "streams of a transport, open a ClientSession"
            )


def check_seconds(name: str, value: object) -> float:
    """Return `value` as seconds above 0, or raise an error that names the argument."""
    seconds = check_amount(name, value)
    if seconds == 0:
        raise ValueError(f"{name} must be more than 0 seconds")
    return seconds
