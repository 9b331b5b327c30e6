"""The event loop on which agents that are not async wait for async tools.

Imports nothing of this package. One loop serves the process, in a thread of its own that starts
with the first async tool: clients bind to a loop, so tools that share a client must share a loop.
Rules that hold here:

* whatever a task raises, the loop goes on; whatever it waits for, the process can exit;
* an agent that runs inside an async tool, and so blocks its loop, gets another loop;
* a loop that a task blocks is left alone, and the next call gets a new one;
* a forked process has a loop of its own.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Awaitable
from contextvars import Context, ContextVar
from typing import Any

__all__ = ["Awaited", "Background", "background"]

_PATIENCE = 1.0  # seconds in which a loop answers, or ends when the process exits

_lock = threading.Lock()
_left: list[_Loop] = []  # of the process that this one was forked from, or blocked: never closed


class Awaited:
    """What became of an awaitable.

    Attributes
    ----------
    result : object
        What it gave.
    error : BaseException or None
        What it raised.
    """

    def __init__(self, awaitable: Awaitable[Any], loop: _Loop) -> None:
        self.result: Any = None
        self.error: BaseException | None = None
        self._awaitable = awaitable
        self._loop = loop
        self._has_ended = threading.Event()
        self._is_given_up = False
        self._task: Any = None

    def wait(self, context: Context, timeout: float | None) -> bool:
        """Have it awaited, and return whether it ends within so many seconds.

        Otherwise, and when the wait is interrupted, it is cancelled, and what it gives is dropped.
        """
        has_ended = False
        try:
            self._loop.loop.call_soon_threadsafe(self._start, context=context)
            has_ended = self._has_ended.wait(timeout)
        finally:
            if not has_ended:
                self._loop.ask(self._cancel)
        return has_ended

    def _start(self) -> None:
        self._loop.loop.create_task(self._run())

    def _cancel(self) -> None:
        self._is_given_up = True
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        import asyncio

        if self._is_given_up:
            if hasattr(self._awaitable, "close"):
                self._awaitable.close()
            return
        self._task = asyncio.current_task()
        try:
            self.result = await self._awaitable
        except BaseException as error:  # it is raised or judged by who waits
            self.error = error
        self._has_ended.set()


class _Loop:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        import asyncio  # here, since it takes longer to import than all the rest

        self.loop = asyncio.new_event_loop()
        self._pid = os.getpid()
        self._has_answered = threading.Event()
        self._has_answered.set()
        self._shall_end = False
        self._thread = threading.Thread(target=self._serve, name="async tools", daemon=True)
        try:
            self._thread.start()
        except RuntimeError:
            self.loop.close()
            raise
        atexit.register(self._end)

    def ask(self, callback: Any) -> None:
        """Have something called in the loop's thread; `is_usable` finds out whether it was."""
        answered = self._has_answered = threading.Event()
        self.loop.call_soon_threadsafe(callback)
        self.loop.call_soon_threadsafe(answered.set)

    def is_usable(self) -> bool:
        return self._pid == os.getpid() and self._has_answered.wait(_PATIENCE)

    def _serve(self) -> None:
        while not self._shall_end:
            try:
                self.loop.run_forever()
            except (KeyboardInterrupt, SystemExit):  # of a task that some tool left behind
                continue
        self.loop.run_until_complete(self._clear())
        self.loop.close()

    async def _clear(self) -> None:
        import asyncio

        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.loop.shutdown_asyncgens()

    def _end(self) -> None:
        if self._pid == os.getpid():
            self._shall_end = True
            self.loop.call_soon_threadsafe(self.loop.stop)
            self._thread.join(_PATIENCE)


class Background:
    """A place for one loop; `background` gives the one to use."""

    def __init__(self) -> None:
        self._loop: _Loop | None = None
        self._inner: Background | None = None

    @property
    def inner(self) -> Background:
        """The place for agents that run inside a task of this one."""
        with _lock:
            if self._inner is None:
                self._inner = Background()
            return self._inner

    def wait(
        self, awaitable: Awaitable[Any], context: Context, timeout: float | None
    ) -> Awaited | None:
        """Await something in a copy of a context.

        Returns what became of it, None if it took more than `timeout` seconds. Raises
        `RuntimeError` if no thread can be started for the loop.
        """
        with _lock:
            if self._loop is None or not self._loop.is_usable():
                if self._loop is not None:
                    _left.append(self._loop)
                self._loop = _Loop()
            awaited = Awaited(awaitable, self._loop)
        context = context.copy()
        context.run(_inside.set, self)
        return awaited if awaited.wait(context, timeout) else None


_root = Background()
_inside: ContextVar[Background] = ContextVar("scikitplot.agent.background")


def background() -> Background:
    """Return the place for what the caller shall wait for.

    Examples
    --------
    >>> import contextvars
    >>> from scikitplot.agent.background import background
    >>> async def double(number):
    ...     return 2 * number
    >>> background().wait(double(21), contextvars.copy_context(), None).result
    42
    """
    place = _inside.get(None)
    return _root if place is None else place.inner


def _renew_lock() -> None:
    global _lock
    _lock = threading.Lock()  # another thread may have held it when this process was forked


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)
