"""How the effects that call a user's code are performed, and its exceptions judged.

Of an exception only the type goes on; its text may hold a secret. What is no `Exception`
(a `KeyboardInterrupt`, a `SystemExit`, the cancellation of a task) is no outcome and passes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Awaitable, Callable
from contextvars import Context, copy_context
from typing import Any, NamedTuple

from .background import background
from .calls import ReconcileRequest, running
from .decision import Usage
from .effects import CallTool, Raised
from .errors import ProviderError, ToolError
from .tools import Tool
from .values import clean_text, type_name

__all__ = [
    "Later",
    "ask",
    "call_now",
    "call_tool",
    "judge_error",
    "notify",
    "raised",
    "reconcile",
    "timed_out",
]


def ask(who: str, code: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """Return what the function of a planner, an approver or a ``done`` returns, or `Raised`."""
    try:
        return function(*arguments)
    except Exception as error:
        return raised(who, code, error)


def reconcile(function: Callable[..., Any], request: ReconcileRequest) -> Any:
    """Return what ``reconcile`` returns, or `Raised`; a `ToolError` speaks for the tool."""
    try:
        return function(request)
    except ToolError as error:
        return judge_error(error)
    except Exception as error:
        return raised("reconcile function", "interrupted", error)


def raised(who: str, code: str, error: BaseException) -> Raised:
    """Return what is told of an exception."""
    told, usage = f"the {who} raised {type_name(error)}", None
    if type(error) is ProviderError:  # ours, so its fields are known; its text is not told either
        status = error.status
        told += f" (status {status})" if type(status) is int and 100 <= status <= 999 else ""
        usage = error.usage if type(error.usage) is Usage else None
    return Raised(code, told, usage)


def call_tool(effect: CallTool) -> Any:
    """Return what the tool returns, or `Raised`.

    The tool sees the caller's context variables; what it sets is seen by nobody else. An awaitable
    that it returns is awaited in the loop of `background`.
    """
    tool, context = effect.tool, copy_context()
    if tool.timeout is None:
        reply = context.run(call_now, effect)
        return _await(tool, reply.awaitable, context, None) if type(reply) is Later else reply
    timeout = min(tool.timeout, threading.TIMEOUT_MAX)
    deadline = time.monotonic() + timeout
    effect = effect._replace(call=effect.call._replace(deadline=deadline))
    thread = _Thread(effect, context)
    try:
        thread.start()
    except RuntimeError:
        return Raised("tool_failed", "no thread could be started to call the tool in")
    if not thread.wait(timeout):
        return timed_out(tool)
    if thread.error is not None:
        raise thread.error
    reply = thread.reply
    return _await(tool, reply.awaitable, context, deadline) if type(reply) is Later else reply


class Later(NamedTuple):
    """In place of a result: the tool is async."""

    awaitable: Awaitable[Any]


class _Thread:
    """A thread of its own, for a call that nobody may wait for to the end.

    A call that hangs takes no other's place, and the process can exit.
    """

    reply: Any = None
    error: BaseException | None = None

    def __init__(self, effect: CallTool, context: Context) -> None:
        self._effect, self._context = effect, context
        self._lock = threading.Lock()
        self._has_ended = self._is_given_up = False
        name = f"tool {effect.tool.name}"
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)

    def start(self) -> None:
        """Begin. Raises `RuntimeError` if no thread can be started."""
        self._thread.start()

    def wait(self, timeout: float) -> bool:
        """Return whether it has ended; if it has not, what it returns later is dropped."""
        self._thread.join(timeout)
        with self._lock:
            self._is_given_up = not self._has_ended
            return self._has_ended

    def _work(self) -> None:
        try:
            reply, error = self._context.run(call_now, self._effect), None
        except BaseException as caught:  # raised again in the caller's thread
            reply, error = None, caught
        with self._lock:
            if not self._is_given_up:
                self.reply, self.error, self._has_ended = reply, error, True
            elif type(reply) is Later and hasattr(reply.awaitable, "close"):
                reply.awaitable.close()  # nobody will await it


def _await(tool: Tool, awaitable: Awaitable[Any], context: Context, deadline: float | None) -> Any:
    timeout = None if deadline is None else max(0.0, deadline - time.monotonic())
    try:
        awaited = background().wait(awaitable, context, timeout)
    except RuntimeError:
        return Raised("tool_failed", "no event loop could be had to await the tool in")
    if awaited is None:
        return timed_out(tool)
    if awaited.error is None:
        return awaited.result
    import asyncio

    # Nobody cancels a tool that is waited for, so that a cancellation is the tool's own failure.
    if isinstance(awaited.error, (Exception, asyncio.CancelledError)):
        return judge_error(awaited.error)
    raise awaited.error


_PLAIN = frozenset((str, dict, list, int, float, bool, type(None)))
"""What most tools return; none of them can be awaited."""


def call_now(effect: CallTool) -> Any:
    """Call a tool here; return what it returns, `Raised`, or `Later` if that is to be awaited."""
    running.set(effect.call)
    try:
        reply = effect.tool.invoke(effect.arguments)
        kind = type(reply)
        return reply if kind in _PLAIN or not hasattr(kind, "__await__") else Later(reply)
    except Exception as error:
        return judge_error(error)


def judge_error(error: BaseException) -> Raised:
    """Return what is told of an exception of a tool."""
    if not isinstance(error, ToolError):
        return Raised("tool_failed", f"the tool raised {type_name(error)}")
    said = error.args[0] if error.args else ""
    told = clean_text(said) if type(said) is str else "the tool raised ToolError"
    return Raised("tool_error", told)


def timed_out(tool: Tool) -> Raised:
    """Return what is told of a call that took too long."""
    unknown = "" if tool.idempotent else "; whether it took effect is unknown"
    return Raised("tool_timeout", f"the call took longer than {tool.timeout} seconds{unknown}")


def notify(observer: Callable[[Any], object], event: Any) -> BaseException | None:
    """Tell an observer of an event; return what it raised."""
    try:
        observer(event)
    except Exception as error:
        return error
    return None
