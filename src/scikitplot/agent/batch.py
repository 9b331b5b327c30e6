"""Many runs: one for each goal, on any executor or in an event loop.

Imports `goals`, and asyncio where a loop runs already. What is in memory is bounded, however many
goals there are.
"""

from __future__ import annotations

import queue
import sys
import time
from collections.abc import AsyncIterable, AsyncIterator, Callable, Coroutine, Iterable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future
from contextvars import Context, copy_context
from itertools import islice
from typing import Any

from .agent import Agent
from .aio import AsyncAgent
from .driving import drive
from .goals import Batch, BatchResult, begin, gone, open_account, run_one, run_one_async
from .limits import Limits
from .totals import BatchTotals
from .values import check_type, type_name

__all__ = ["run_many", "run_many_async"]

_MOST_GOALS = 1024  # with the executor at a time, what it finished included
_MOST_IN_A_TASK = 32
_TASK_SECONDS = 0.02  # that a task should take, so that handing it over costs little


def run_many(
    make_agent: Callable[[], Agent],
    goals: Iterable[str],
    *,
    executor: Executor | None = None,
    batch_id: str | None = None,
    limits: Limits | None = None,
    tainted: bool = False,
    progress: Callable[[BatchTotals], object] | None = None,
) -> Iterator[BatchResult]:
    """Run each goal, and yield what became of it, as it is known.

    Parameters
    ----------
    make_agent : callable
        ``make_agent() -> Agent``, called once for each goal, where its run is driven, and once
        before. For processes it is a function that can be imported there. All agents must have one
        store and one trail, opened where `make_agent` runs; without a store they share nothing, and
        no run can be resumed.
    goals : iterable of str
        One run for each. An iterator is read as the batch goes on: about 1,000 goals ahead.
    executor : concurrent.futures.Executor or None, default=None
        Who drives the runs: threads, processes, or a cluster's ``get_executor()``. It is not shut
        down. None drives them here, one after the other.
    batch_id : str or None, default=None
        Name of the batch. Given again, with the same goals, it goes on where it was: runs that
        ended are read from the store, those that wait or were cut off are resumed. Those who drove
        them must be gone. None draws a random one.
    limits : Limits or None, default=None
        What all runs together may use up: `max_tool_calls`, `max_cost`, `max_tokens` (over all
        calls with this `batch_id`) and `max_seconds` (wall clock, of this call). A tool's cost is
        charged before it is called and never passes the limit; what a model consumes is known
        afterwards, so that each worker may pass it by one call of a model. The run that finds
        nothing left stays where it is, and has an `error`. With a store the account is kept there,
        as the usage of a run of its own.
    tainted : bool, default=False
        Whether the goals hold what others wrote; see `Agent.run`.
    progress : callable or None, default=None
        ``progress(totals)``, called here with a `BatchTotals` for each result, and at the end.

    Yields
    ------
    BatchResult
        For each goal, in the order in which they are known. Where the iterator is closed early, no
        further goal is begun; those that were begun go on.

    Raises
    ------
    TypeError, ValueError
        If an argument is of the wrong type or value; when `run_many` is called.
    concurrent.futures.BrokenExecutor
        If the executor lost its workers, after all that is known was yielded. Go on with the same
        `batch_id` and a new executor.

    Examples
    --------
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> from scikitplot.agent import Agent, Decision, run_many
    >>> def make_agent():
    ...     return Agent([], lambda state, tools: Decision.finish(state.goal.upper()))
    >>> with ThreadPoolExecutor(4) as executor:
    ...     results = list(run_many(make_agent, ["one", "two", "three"], executor=executor))
    >>> sorted((result.index, result.state.answer) for result in results)
    [(0, 'ONE'), (1, 'TWO'), (2, 'THREE')]
    """
    if executor is not None and not callable(getattr(executor, "submit", None)):
        raise TypeError(f"executor must be an Executor or None, not {type_name(executor)}")
    batch, agent = begin(make_agent, Agent, batch_id, limits, tainted, progress)
    source = enumerate(goals)
    processes: Any = sys.modules.get("concurrent.futures.process")  # which loads much
    if processes is not None and isinstance(executor, processes.ProcessPoolExecutor):
        _check_pickles(batch)
    return _yielded(batch, agent, source, executor, progress)


def run_many_async(
    make_agent: Callable[[], AsyncAgent],
    goals: Iterable[str] | AsyncIterable[str],
    *,
    max_concurrency: int = 100,
    batch_id: str | None = None,
    limits: Limits | None = None,
    tainted: bool = False,
    progress: Callable[[BatchTotals], object] | None = None,
) -> AsyncIterator[BatchResult]:
    """Run each goal in the running event loop, and yield what became of it, as it is known.

    Parameters
    ----------
    make_agent : callable
        ``make_agent() -> AsyncAgent``, called once for each goal and once before.
    goals : iterable or async iterable of str
        One run for each.
    max_concurrency : int, default=100
        How many runs go on at the same time, at most.
    batch_id, limits, tainted, progress
        As for `run_many`.

    Yields
    ------
    BatchResult
        For each goal. Where no further one is asked for, close the iterator
        (``contextlib.aclosing``): the runs that go on are cancelled, and can be resumed.

    Raises
    ------
    TypeError, ValueError
        If an argument is of the wrong type or value; when `run_many_async` is called.

    Examples
    --------
    >>> import asyncio
    >>> from scikitplot.agent import AsyncAgent, Decision, run_many_async
    >>> def make_agent():
    ...     return AsyncAgent([], lambda state, tools: Decision.finish(state.goal.upper()))
    >>> async def main():
    ...     return [result async for result in run_many_async(make_agent, ["one", "two"])]
    >>> sorted(result.state.answer for result in asyncio.run(main()))
    ['ONE', 'TWO']
    """
    check_type("max_concurrency", max_concurrency, int)
    if max_concurrency < 1:
        raise ValueError("max_concurrency must be at least 1")
    batch, agent = begin(make_agent, AsyncAgent, batch_id, limits, tainted, progress)
    source = goals if isinstance(goals, AsyncIterable) else _async(iter(goals))
    return _yielded_async(batch, agent, source, max_concurrency, progress)


# On an executor


def _check_pickles(batch: Batch) -> None:
    from multiprocessing.reduction import ForkingPickler  # what a pool of processes writes with

    if batch.share is not None and batch.share.memory is not None:
        raise ValueError("limits for several processes need agents that share a store")
    try:
        ForkingPickler.dumps(batch.make_agent)
    except Exception as error:
        raise TypeError(
            "make_agent must be a function at the top of a module, which other processes import; "
            f"it cannot be pickled ({type_name(error)})"
        ) from None


class _Task:
    """Some goals, to be run one after the other by a worker."""

    def __init__(self, batch: Batch, items: list[tuple[int, str]], context: Context | None) -> None:
        self.batch = batch
        self.items = items
        self._context = context  # of the caller; it goes to no other process

    def __call__(self) -> tuple[list[BatchResult], float]:
        start = time.perf_counter()
        results = []
        for index, goal in self.items:
            context = copy_context() if self._context is None else self._context.copy()
            results.append(context.run(run_one, self.batch, index, goal))
        return results, time.perf_counter() - start

    def __reduce__(self) -> tuple[Any, ...]:
        return _Task, (self.batch, self.items, None)


def _yielded(
    batch: Batch,
    agent: Agent,
    source: Iterator[tuple[int, str]],
    executor: Executor | None,
    progress: Callable[[BatchTotals], object] | None,
) -> Iterator[BatchResult]:
    totals = BatchTotals()
    drive(open_account(agent, batch))
    results = (
        (copy_context().run(run_one, batch, index, goal) for index, goal in source)
        if executor is None
        else _handed_over(batch, source, executor)
    )
    for result in results:
        totals = totals.with_result(result.state, result.error)
        if progress is not None:
            progress(totals)
        yield result
    if progress is not None:
        progress(totals._replace(has_ended=True))


def _handed_over(
    batch: Batch, source: Iterator[tuple[int, str]], executor: Executor
) -> Iterator[BatchResult]:
    done: queue.SimpleQueue[Future[Any]] = queue.SimpleQueue()
    tasks: dict[Future[Any], list[tuple[int, str]]] = {}
    workers = getattr(executor, "_max_workers", None)
    most = 1 if type(workers) is not int else max(1, _MOST_GOALS // (4 * workers))
    size, goals, broken = 1, 0, None
    try:
        while True:
            while broken is None and goals + size <= _MOST_GOALS and (not tasks or done.empty()):
                items = list(islice(source, size))
                if not items:
                    break
                try:
                    future = executor.submit(_Task(batch, items, copy_context()))
                except BrokenExecutor as error:
                    broken = error
                    break
                tasks[future] = items
                goals += len(items)
                future.add_done_callback(done.put)
            if not tasks:
                break
            future = done.get()
            items = tasks.pop(future)
            goals -= len(items)
            try:
                results, seconds = future.result()
            except BrokenExecutor as error:
                broken = error
                continue
            except Exception as error:
                results = [gone(batch, index, goal, error) for index, goal in items]
            else:
                wanted = int(_TASK_SECONDS * len(items) / max(seconds, 1e-6))
                size = max(1, min(2 * size, wanted, most, _MOST_IN_A_TASK))
            yield from results
        if broken is not None:
            raise broken
    finally:
        for future in tasks:
            future.cancel()


# In an event loop


async def _async(goals: Iterator[str]) -> AsyncIterator[str]:
    for goal in goals:
        yield goal


async def _next(goals: AsyncIterator[str]) -> list[str]:
    """Return the next goal, or nothing after the last."""
    async for goal in goals:
        return [goal]
    return []


async def _yielded_async(
    batch: Batch,
    agent: AsyncAgent,
    source: AsyncIterable[str],
    max_concurrency: int,
    progress: Callable[[BatchTotals], object] | None,
) -> AsyncIterator[BatchResult]:
    import asyncio

    from . import awaiting

    totals, index = BatchTotals(), 0
    await awaiting.drive(open_account(agent, batch))
    done: asyncio.Queue[asyncio.Task[Any]] = asyncio.Queue()
    tasks: set[asyncio.Task[Any]] = set()
    goals: AsyncIterator[str] | None = source.__aiter__()
    reading: asyncio.Task[Any] | None = None  # of `tasks`, and not one of a run

    def start(work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.ensure_future(work)
        tasks.add(task)
        task.add_done_callback(done.put_nowait)
        return task

    try:
        while True:
            if reading is None and goals is not None and len(tasks) < max_concurrency:
                reading = start(_next(goals))
            if not tasks:
                break
            task = await done.get()
            tasks.discard(task)
            if task is reading:
                reading, read = None, task.result()
                for goal in read:
                    start(run_one_async(batch, index, goal))
                    index += 1
                goals = goals if read else None
                continue
            result: BatchResult = task.result()
            totals = totals.with_result(result.state, result.error)
            if progress is not None:
                progress(totals)
            yield result
        if progress is not None:
            progress(totals._replace(has_ended=True))
    finally:
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
