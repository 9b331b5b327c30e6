"""How an async agent has done what its sessions request: it awaits it.

Imports `perform` and what stands below it, and asyncio, so nothing imports this before there is an
event loop. Some functions here are the async form of one of `perform` or `keeper`. The rules:

* what is async runs in the caller's event loop, in a task of its own; what is not, and may block,
  runs in a thread of its own, which keeps no process from its exit;
* a cancellation waits for a write that was begun, so that what it leaves is what was committed; a
  function of the user's that is no coroutine cannot be stopped, and what it returns is dropped.
"""

from __future__ import annotations

import asyncio
import inspect
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextvars import copy_context
from functools import partial
from typing import Any

from . import keeper, perform
from .audit import MemoryAuditSink
from .calls import ReconcileRequest
from .driving import Request, Requests, T
from .effects import CallTool, Raised
from .errors import ToolError
from .perform import Later, call_now, judge_error, raised, timed_out
from .stores import MemoryStore
from .tools import Tool

__all__ = ["drive", "steps_of"]

_NEVER_BLOCK = (MemoryStore, MemoryAuditSink)
_FAILURES = (Exception, asyncio.CancelledError)
"""What is a failure of who was asked; anything else is the end of the process, or of more."""

Reply = tuple[Any, "BaseException | None"]
_Work = tuple["asyncio.Future[Reply]", "asyncio.Task[Reply] | None"]
"""Where the reply of what was begun will be, and the task, if it is one, that can be cancelled."""

_TOO_LONG: Reply = (None, TimeoutError())


async def drive(requests: Requests[T]) -> T:
    """Do what is requested, and return what the requests lead to."""
    try:
        request = next(requests)
        while True:
            reply, error = await _answer(request)
            request = requests.send(reply) if error is None else requests.throw(error)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    finally:
        requests.close()


async def steps_of(requests: Requests[T]) -> AsyncIterator[None]:
    """Do what is requested, one request a step."""
    try:
        request = next(requests)
        while True:
            reply, error = await _answer(request)
            request = requests.send(reply) if error is None else requests.throw(error)
            yield
    except StopIteration:
        return
    finally:
        requests.close()


async def _answer(request: Request) -> Reply:
    """Return what a request gives, or what it raises."""
    function, arguments, keywords = request
    try:
        form = _FORMS.get(function)
        if form is not None:
            return await form(*arguments), None
        if type(getattr(function, "__self__", None)) in _NEVER_BLOCK:
            return function(*arguments, **keywords), None
        return await _write(function, *arguments, **keywords), None
    except BaseException as error:
        return None, error


async def _ask(who: str, code: str, function: Callable[..., Any], *arguments: Any) -> Any:
    reply, error = await _call(function, *arguments)
    if error is None:
        return reply
    if not isinstance(error, _FAILURES):
        raise error
    return raised(who, code, error)


async def _reconcile(function: Callable[..., Any], request: ReconcileRequest) -> Any:
    reply, error = await _call(function, request)
    if error is None:
        return reply
    if isinstance(error, ToolError):
        return judge_error(error)
    if not isinstance(error, _FAILURES):
        raise error
    return raised("reconcile function", "interrupted", error)


async def _notify(observer: Callable[[Any], Any], event: Any) -> BaseException | None:
    try:  # here and not in a thread, which would cost more than most observers do
        told = observer(event)
    except Exception as raised_here:
        return raised_here
    if not inspect.isawaitable(told):
        return None
    _, error = await _end(_in_task(told))
    if error is not None and not isinstance(error, _FAILURES):
        raise error
    return error


async def _find(read: Callable[..., Any], run_id: str, is_sought: Callable[[Any], bool]) -> bool:
    if inspect.isasyncgenfunction(read):
        async for line in read(run_id):
            if is_sought(line):
                return True
        return False
    if inspect.iscoroutinefunction(read):
        return any(map(is_sought, await read(run_id)))
    found: bool = await _write(keeper.find, read, run_id, is_sought)
    return found


async def _call_tool(effect: CallTool) -> Any:
    tool = effect.tool
    deadline = None if tool.timeout is None else time.monotonic() + tool.timeout
    effect = effect._replace(call=effect.call._replace(deadline=deadline))
    if _is_async(tool.func):
        work = _in_task(_call_here(effect))
    else:
        try:
            work = _in_thread(copy_context().run, call_now, effect)
        except RuntimeError:
            return Raised("tool_failed", "no thread could be started to call the tool in")
    reply = await _end_in_time(work, tool, deadline)
    if type(reply) is Later:
        reply = await _end_in_time(_in_task(reply.awaitable), tool, deadline)
    return reply


async def _call_here(effect: CallTool) -> Any:
    reply = call_now(effect)  # in a task of its own, so that what it sets is seen by nobody else
    return await reply.awaitable if type(reply) is Later else reply


async def _end_in_time(work: _Work, tool: Tool, deadline: float | None) -> Any:
    left = None if deadline is None else max(0.0, deadline - time.monotonic())
    ended = await _end(work, left)
    if ended is _TOO_LONG:
        return timed_out(tool)
    reply, error = ended
    if error is None:
        return reply
    if not isinstance(error, _FAILURES):
        raise error
    return judge_error(error)


# How something is awaited. What it raises is returned, so that what is raised here is a
# cancellation of the agent itself and nothing else.


async def _call(function: Callable[..., Any], *arguments: Any) -> Reply:
    """Call a planner, an approver, a ``done`` or a ``reconcile``."""
    if _is_async(function):
        return await _end(_in_task(function(*arguments)))
    reply, error = await _end(_in_thread(copy_context().run, function, *arguments))
    if error is None and inspect.isawaitable(reply):
        return await _end(_in_task(reply))
    return reply, error


async def _end(work: _Work, timeout: float | None = None) -> Reply:
    """Wait for what was begun. It is cancelled with its agent, and where it takes too long."""
    end, task = work
    if end.done():
        return end.result()
    timer = None
    if timeout is not None:
        timer = end.get_loop().call_later(timeout, _settle, end, _TOO_LONG)
    try:
        reply = await end
    except asyncio.CancelledError:
        if task is not None:
            task.cancel()
            await asyncio.wait((task,))
        raise
    finally:
        if timer is not None:
            timer.cancel()
    if reply is _TOO_LONG and task is not None:
        task.cancel()
    return reply


async def _write(function: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
    """Call a method of a store or a sink, to its end whatever is cancelled."""
    if _is_async(function):
        end, _ = _in_task(function(*arguments, **keywords))
    else:
        end, _ = _in_thread(partial(function, *arguments, **keywords))
    cancelled: BaseException | None = None
    while not end.done():
        try:
            await asyncio.wait((end,))
        except asyncio.CancelledError as told:
            cancelled = told
    reply, error = end.result()
    if error is not None:
        raise error
    if cancelled is not None:
        raise cancelled
    return reply


async def _settled(awaitable: Awaitable[Any]) -> Reply:
    try:
        return await awaitable, None
    except (*_FAILURES, KeyboardInterrupt, SystemExit) as error:
        return None, error


def _in_task(awaitable: Awaitable[Any]) -> _Work:
    """Await in a task of its own; it begins at once where Python has that."""
    loop = asyncio.get_running_loop()
    settled = _settled(awaitable)
    if sys.version_info >= (3, 12) and loop.get_task_factory() is None:
        task = asyncio.Task(settled, loop=loop, eager_start=True)
    else:
        task = loop.create_task(settled)
    if task.done():
        return task, None
    end: asyncio.Future[Reply] = loop.create_future()

    def has_ended(task: asyncio.Task[Reply]) -> None:
        # Cancelled is a task that had not begun, and not from here.
        _settle(end, (None, asyncio.CancelledError()) if task.cancelled() else task.result())

    task.add_done_callback(has_ended)
    return end, task


def _in_thread(function: Callable[..., Any], *arguments: Any) -> _Work:
    """Call a function in a thread of its own. Raises `RuntimeError` if none can be started."""
    loop = asyncio.get_running_loop()
    end: asyncio.Future[Reply] = loop.create_future()

    def work() -> None:
        reply: Reply
        try:
            reply = function(*arguments), None
        except BaseException as error:  # raised again where it is awaited
            reply = None, error
        try:
            loop.call_soon_threadsafe(_settle, end, reply)
        except RuntimeError:  # the loop is closed: nobody waits any more
            _close(reply[0])

    threading.Thread(target=work, name="agent", daemon=True).start()
    return end, None


def _settle(end: asyncio.Future[Reply], reply: Reply) -> None:
    if end.done():  # it was given up
        _close(reply[0])
    else:
        end.set_result(reply)


def _close(reply: Any) -> None:
    awaitable = reply.awaitable if type(reply) is Later else reply
    if inspect.iscoroutine(awaitable):
        awaitable.close()  # nobody will await it


def _is_async(function: Any) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004
    )


_FORMS: dict[Callable[..., Any], Callable[..., Awaitable[Any]]] = {
    perform.ask: _ask,
    perform.call_tool: _call_tool,
    perform.reconcile: _reconcile,
    perform.notify: _notify,
    keeper.find: _find,
}
"""The async form of each function that a session requests, but for methods of stores and sinks."""
