"""Many runs as one batch: on each executor and in a loop, bounded together, and never twice."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import io
import multiprocessing
import os
import pickle
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import (
    BrokenExecutor,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
)
from contextlib import aclosing, closing, contextmanager
from pathlib import Path
from typing import Any

import batch_agents
import pytest
from support import FREE, WRITES, script, writer

from scikitplot.agent import (
    Agent,
    Approval,
    AsyncAgent,
    BatchResult,
    BatchTotals,
    Decision,
    Limits,
    MemoryAuditSink,
    MemoryStore,
    Progress,
    RunStatus,
    SqliteStore,
    StateError,
    Tool,
    Usage,
    delegate,
    run_many,
    run_many_async,
    verify_audit,
)

SAVE = Decision.act("save", {"text": "x"})
NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


def maker(store: Any = None, *, calls: list[Any] | None = None, cost: float = 0.25) -> Any:
    """Return what makes agents that save once and end."""
    noted: list[Any] = [] if calls is None else calls

    def make() -> Agent:
        tools = [writer(noted, cost=cost)]
        audit = store if isinstance(store, SqliteStore) else None
        return Agent(tools, script(SAVE), policy=FREE, store=store, audit=audit)

    return make


def async_maker(store: Any = None, seconds: float = 0.0, noted: list[Any] | None = None) -> Any:
    async def wait() -> None:
        if noted is not None:
            noted.append("begun")
        await asyncio.sleep(seconds)
        if noted is not None:
            noted.append("ended")

    def make() -> AsyncAgent:
        tools = [Tool("wait", wait, effect="write", cost=0.25)]
        return AsyncAgent(tools, script(Decision.act("wait")), policy=FREE, store=store)

    return make


async def gather(results: Any) -> list[BatchResult]:
    return [result async for result in results]


def in_loop(*args: Any, **options: Any) -> list[BatchResult]:
    async def main() -> list[BatchResult]:
        return await gather(run_many_async(*args, **options))

    return asyncio.run(main())


def goals(count: int) -> list[str]:
    return [f"goal {index}" for index in range(count)]


class Inline(Executor):
    """An executor that runs what is submitted at once."""

    _max_workers = 2

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def submit(self, task: Any, /, *args: Any, **kwargs: Any) -> Any:  # type: ignore[override]
        self.sizes.append(len(task.items))
        future: Any = Future()
        future.set_result(task(*args, **kwargs))
        return future


# What a goal becomes


@pytest.mark.parametrize("kind", ["none", "inline", "threads", "loop"])
def test_each_goal_is_a_run_and_each_run_is_a_result(kind: str) -> None:
    if kind == "loop":
        results = in_loop(async_maker(), goals(100))
    elif kind == "threads":
        with ThreadPoolExecutor(4) as executor:
            results = list(run_many(maker(), goals(100), executor=executor))
    else:
        results = list(
            run_many(maker(), goals(100), executor=Inline() if kind == "inline" else None)
        )
    assert sorted(result.index for result in results) == list(range(100))
    assert len({result.run_id for result in results}) == 100
    for result in results:
        assert result.state is not None
        assert result.error is None
        assert result.state.goal == result.goal == f"goal {result.index}"
        assert result.state.run_id == result.run_id
        assert result.state.status is RunStatus.COMPLETED


def test_a_goal_that_fails_is_a_result() -> None:
    def planner(state: Any, tools: Any) -> Decision:
        if state.goal == "raise":
            raise ValueError("a secret")
        return Decision.finish(1)

    results = list(run_many(lambda: Agent([], planner), ["one", "raise", "two"]))
    assert [result.state and result.state.status.value for result in results] == [
        "completed",
        "failed",
        "completed",
    ]


@pytest.mark.parametrize("goal", ["a\udc80b", 7, None, "x" * 2_000_000])
def test_a_goal_that_is_none_is_a_result(goal: Any) -> None:
    with ThreadPoolExecutor(2) as executor:
        results = list(run_many(maker(), ["one", goal, "two"], executor=executor))
    failed = [result for result in results if result.error is not None]
    assert [result.index for result in failed] == [1]
    assert failed[0].state is None
    assert "goal" in str(failed[0].error)
    assert len(results) == 3


def test_what_make_agent_raises_is_a_result_without_its_text() -> None:
    made: list[int] = []

    def make() -> Agent:
        made.append(1)
        if len(made) == 3:
            raise OSError("a secret")
        return maker()()  # type: ignore[no-any-return]

    results = list(run_many(make, goals(3)))
    assert [result.error for result in results] == [
        None,
        "OSError was raised where the run was driven",
        None,
    ]


def test_a_store_that_raises_is_a_result() -> None:
    class Store(MemoryStore):
        def commit(self, run_id: str, *args: Any, **options: Any) -> None:
            if '"goal":"goal 1"' in args[0]:
                raise OSError("a secret")
            super().commit(run_id, *args, **options)

    results = list(run_many(maker(Store()), goals(3)))
    errors = [result.error for result in results]
    assert errors[0] is errors[2] is None
    assert "a secret" not in str(errors[1])


def test_interrupting_a_run_is_no_result() -> None:
    def planner(state: Any, tools: Any) -> Decision:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(run_many(lambda: Agent([], planner), goals(2)))


def test_goals_are_not_trusted_where_that_is_said() -> None:
    def make() -> Agent:
        return Agent([], script())

    for tainted in (True, False):
        (result,) = run_many(make, ["goal"], tainted=tainted)
        assert result.state is not None
        assert result.state.tainted is tainted


VARIABLE: contextvars.ContextVar[str] = contextvars.ContextVar("VARIABLE")


@pytest.mark.parametrize("kind", ["none", "threads", "loop"])
def test_each_goal_has_the_context_variables_of_the_caller_and_its_own_changes(kind: str) -> None:
    seen: list[str] = []

    def planner(state: Any, tools: Any) -> Decision:
        return Decision.finish(0)

    cls: Any = AsyncAgent if kind == "loop" else Agent

    def make() -> Any:
        seen.append(VARIABLE.get())
        if len(seen) > 1:  # the first is made to see what it is
            VARIABLE.set("changed")
        return cls([], planner)

    def use() -> None:
        VARIABLE.set("mine")
        if kind == "loop":
            in_loop(make, goals(300))
        elif kind == "none":
            list(run_many(make, goals(300)))
        else:
            with ThreadPoolExecutor(2) as executor:
                list(run_many(make, goals(300), executor=executor))

    contextvars.copy_context().run(use)
    assert seen == ["mine"] * 301


# Bounded memory


@pytest.mark.parametrize("kind", ["none", "inline", "threads", "loop"])
def test_an_iterator_of_goals_is_read_as_the_batch_goes_on(kind: str) -> None:
    read = 0

    def source() -> Iterator[str]:
        nonlocal read
        while True:
            read += 1
            yield f"goal {read}"

    def make() -> Agent:
        return Agent([], lambda state, tools: Decision.finish(0))

    if kind == "loop":

        async def main() -> None:
            made = run_many_async(
                lambda: AsyncAgent([], lambda state, tools: Decision.finish(0)),
                source(),
                max_concurrency=50,
            )
            async with aclosing(made) as results:  # type: ignore[type-var]
                count = 0
                async for _ in results:
                    count += 1
                    assert read <= count + 50
                    if count == 2_000:
                        return
                raise AssertionError("goals were lost")

        asyncio.run(main())
        return
    with ThreadPoolExecutor(2) as threads:
        executor = {"none": None, "inline": Inline(), "threads": threads}[kind]
        with closing(run_many(make, source(), executor=executor)) as results:  # type: ignore[type-var]
            for count, _ in enumerate(results):
                assert read <= count + 1100
                if count == 4_000:
                    return
            raise AssertionError("goals were lost")


def test_a_caller_who_reads_slowly_has_no_more_waiting_for_him() -> None:
    begun: list[str] = []

    def planner(state: Any, tools: Any) -> Decision:
        begun.append(state.goal)
        return Decision.finish(0)

    with ThreadPoolExecutor(2) as executor:
        results = run_many(lambda: Agent([], planner), iter(goals(5_000)), executor=executor)
        for _ in range(10):
            next(results)
        time.sleep(0.5)
        assert len(begun) <= 1100
        results.close()  # type: ignore[attr-defined]
    assert len(begun) <= 1100  # and no further one is begun


def test_what_was_handed_over_and_not_begun_is_never_begun_where_the_caller_leaves() -> None:
    begun: list[str] = []
    release = threading.Event()

    def planner(state: Any, tools: Any) -> Decision:
        begun.append(state.goal)
        if state.goal == "goal 0":
            time.sleep(0.3)  # meanwhile many more are handed over
        else:
            assert release.wait(30)
        return Decision.finish(0)

    with ThreadPoolExecutor(2) as executor:
        results = run_many(lambda: Agent([], planner), goals(500), executor=executor)
        next(results)
        results.close()  # type: ignore[attr-defined]
        release.set()
    assert len(begun) < 100


class Breaks(Executor):
    """An executor whose tasks end as it is said, and then it refuses more."""

    def __init__(self, *ends: BaseException | None) -> None:
        self.ends = list(ends)

    def submit(self, task: Any, /, *args: Any, **kwargs: Any) -> Any:  # type: ignore[override]
        if not self.ends:
            raise BrokenExecutor("no more")
        future: Any = Future()
        end = self.ends.pop(0)
        # Those that came to an end come last, so that all are handed over.
        threading.Timer(0.1 if end is None else 0.05, settle, (future, task, end)).start()
        return future


def settle(future: Any, task: Any, end: BaseException | None) -> None:
    if end is None:
        future.set_result(task())
    else:
        future.set_exception(end)


def test_what_is_known_is_told_before_an_executor_that_broke() -> None:
    executor = Breaks(None, BrokenExecutor("killed"), None)
    results = run_many(maker(), goals(3), executor=executor)
    assert {next(results).index, next(results).index} == {0, 2}
    with pytest.raises(BrokenExecutor, match="killed"):
        next(results)
    refuses = run_many(maker(), goals(3), executor=Breaks(None, None))
    assert {next(refuses).index, next(refuses).index} == {0, 1}
    with pytest.raises(BrokenExecutor, match="no more"):
        next(refuses)


def test_a_task_whose_worker_is_gone_is_a_result_for_each_of_its_goals() -> None:
    class KilledWorker(Exception):
        pass

    results = list(run_many(maker(), goals(3), executor=Breaks(None, KilledWorker("x"), None)))
    told = {result.index: result.error for result in results}
    assert told == {0: None, 1: "the worker that had it is gone (KilledWorker)", 2: None}


def test_short_goals_are_handed_over_together_and_long_ones_alone() -> None:
    short, long = Inline(), Inline()
    list(run_many(maker(), goals(500), executor=short))
    assert 1 < max(short.sizes) <= 32
    assert short.sizes[0] == 1

    def planner(state: Any, tools: Any) -> Decision:
        time.sleep(0.03)
        return Decision.finish(0)

    list(run_many(lambda: Agent([], planner), goals(5), executor=long))
    assert long.sizes == [1] * 5


def test_results_come_as_they_are_known() -> None:
    release = threading.Event()

    def planner(state: Any, tools: Any) -> Decision:
        if state.goal == "goal 0":
            assert release.wait(30)
        return Decision.finish(0)

    with ThreadPoolExecutor(2) as executor:
        results = run_many(lambda: Agent([], planner), goals(3), executor=executor)
        assert {next(results).index, next(results).index} == {1, 2}
        release.set()
        assert next(results).index == 0


# Going on


def test_a_batch_goes_on_where_it_was() -> None:
    store, calls = MemoryStore(), []  # type: ignore[var-annotated]
    make = maker(store, calls=calls)
    first = run_many(make, goals(10), batch_id="b")
    begun = [next(first) for _ in range(4)]
    first.close()  # type: ignore[attr-defined]
    assert len(calls) == 4
    results = list(run_many(make, goals(10), batch_id="b"))
    assert len(calls) == 10
    assert results[:4] == begun
    assert list(run_many(make, goals(10), batch_id="b")) == results
    assert len(calls) == 10
    assert len(store.runs()) == 10
    other = list(run_many(make, goals(1), batch_id="c"))
    assert other[0].run_id != results[0].run_id
    assert len(calls) == 11


def test_another_goal_in_the_same_place_is_an_error() -> None:
    store = MemoryStore()
    list(run_many(maker(store), ["one"], batch_id="b"))
    (result,) = run_many(maker(store), ["two"], batch_id="b")
    assert result.error is not None
    assert "another goal" in result.error
    assert result.state is not None
    assert result.state.goal == "one"


def test_a_run_that_waits_for_a_person_goes_on_in_the_next_call() -> None:
    store, calls = MemoryStore(), []  # type: ignore[var-annotated]

    def make() -> Agent:
        return Agent([writer(calls)], script(SAVE), policy=WRITES, store=store)

    totals: list[BatchTotals] = []
    (result,) = run_many(make, ["goal"], batch_id="b", progress=totals.append)
    assert result.error is None
    assert result.state is not None
    assert result.state.pending is not None
    assert (totals[-1].waiting, totals[-1].has_ended) == (1, True)
    make().resume(result.run_id, approvals=[Approval(result.state.pending.digest, True, "ann")])
    assert calls == ["x"]
    (result,) = run_many(make, ["goal"], batch_id="b")
    assert result.state is not None
    assert result.state.status is RunStatus.COMPLETED
    assert calls == ["x"]


def test_a_saved_run_that_cannot_be_read_is_an_error() -> None:
    store = MemoryStore()
    (result,) = run_many(maker(store), ["one"], batch_id="b")
    head, steps = store.load(result.run_id)  # type: ignore[misc]
    store.delete(result.run_id)
    store.commit(result.run_id, head.replace('"goal":"one"', '"goal":7'), steps, expected=None)
    (again,) = run_many(maker(store), ["one"], batch_id="b")
    assert str(again.error).startswith("StateError: ")
    assert again.state is None


# What all may use up together


@pytest.mark.parametrize("kind", ["memory account", "memory", "sqlite"])
def test_a_limit_on_cost_is_never_passed_by_threads(kind: str, tmp_path: Path) -> None:
    for attempt in range(200 if kind != "sqlite" else 20):
        store: Any = {"memory": MemoryStore, "memory account": lambda: None}.get(
            kind, lambda at=attempt: SqliteStore(tmp_path / f"{at}.db")
        )()
        calls: list[Any] = []
        with ThreadPoolExecutor(50) as executor:
            results = list(
                run_many(
                    maker(store, calls=calls),
                    goals(50),
                    executor=executor,
                    limits=Limits(max_cost=1.0),
                )
            )
        assert len(calls) == 4
        # As in a run, who finds all of it spent is not asked for the next decision.
        assert sum(result.error is None for result in results) <= 3
        refused = [result for result in results if result.error is not None]
        assert {result.error for result in refused} == {
            "LimitReached: max_cost of the batch is reached"
        }
        if store is not None:
            assert all(r.state and r.state.status is RunStatus.RUNNING for r in refused)


@pytest.mark.parametrize("limit", ["max_tool_calls", "max_cost"])
def test_a_batch_with_more_of_a_limit_goes_on(limit: str, tmp_path: Path) -> None:
    calls: list[Any] = []
    with SqliteStore(tmp_path / "runs.db") as store:
        make = maker(store, calls=calls)

        def run(most: int) -> list[BatchResult]:
            value = most if limit == "max_tool_calls" else most * 0.25 + 0.1
            bounded = Limits(**{limit: value})  # type: ignore[arg-type]
            return list(run_many(make, goals(10), batch_id="b", limits=bounded))

        assert [result.error is None for result in run(3)] == [True] * 3 + [False] * 7
        assert len(calls) == 3
        assert [result.error is None for result in run(3)] == [True] * 3 + [False] * 7
        assert len(calls) == 3
        assert all(result.error is None for result in run(10))
        assert len(calls) == 10
        assert len(store.runs()) == 11
        assert verify_audit(store.read(), heads=store.heads()) == []


def test_a_call_is_charged_before_it_is_made() -> None:
    store = MemoryStore()

    def make() -> Agent:
        def call() -> None:
            raise KeyboardInterrupt

        tool = Tool("save", call, effect="write", cost=0.25)
        return Agent([tool], script(Decision.act("save")), policy=FREE, store=store)

    bounded = Limits(max_cost=0.6)
    for count in (1, 2):
        with pytest.raises(KeyboardInterrupt):
            list(run_many(make, goals(count), batch_id="b", limits=bounded))
    # Both were begun, and are not known to have had no effect.
    results = list(run_many(maker(store), goals(3), batch_id="b", limits=bounded))
    assert [result.error is None for result in results] == [True, True, False]
    assert "max_cost" in str(results[2].error)


def test_a_limit_on_tokens_counts_all_planners_and_stops_the_next_one() -> None:
    used = Usage(tokens=40, cost=0.5)

    def make() -> Agent:
        return Agent([], lambda state, tools: Decision.finish(0, usage=used), store=store)

    for bounded, name in (
        (Limits(max_tokens=120), "max_tokens"),
        (Limits(max_cost=1.5), "max_cost"),
    ):
        store = MemoryStore()
        results = list(run_many(make, goals(5), limits=bounded))
        assert [result.error is None for result in results] == [True] * 3 + [False] * 2
        assert name in str(results[3].error)


def test_what_planners_cost_without_tokens_is_charged() -> None:
    def make() -> Agent:
        return Agent([], lambda state, tools: Decision.finish(0, usage=Usage(cost=0.5)))

    results = list(run_many(make, goals(5), limits=Limits(max_cost=1.0)))
    assert [result.error is None for result in results] == [True] * 2 + [False] * 3


def test_a_limit_on_tokens_needs_planners_that_tell() -> None:
    results = list(run_many(maker(), goals(2), limits=Limits(max_tokens=100)))
    assert all("reports its usage" in str(result.error) for result in results)


def test_a_limit_on_seconds_is_of_this_call() -> None:
    calls: list[Any] = []
    store = MemoryStore()
    results = run_many(
        maker(store, calls=calls), goals(4), batch_id="b", limits=Limits(max_seconds=0.3)
    )
    assert next(results).error is None
    time.sleep(0.35)
    assert [result.error for result in results] == [
        "LimitReached: max_seconds of the batch is reached"
    ] * 3
    assert len(calls) == 1
    again = run_many(maker(store, calls=calls), goals(4), batch_id="b")
    assert all(result.error is None for result in again)


@pytest.mark.parametrize("who", ["planner", "tool"])
def test_after_the_last_second_neither_a_call_nor_a_decision_is_begun(who: str) -> None:
    begun: list[str] = []

    def work(name: str) -> None:
        begun.append(name)
        if who == name:
            time.sleep(0.3)

    def planner(state: Any, tools: Any) -> Decision:
        work("planner")
        return Decision.finish(0) if state.steps else Decision.act("work", {"name": "tool"})

    tool = Tool("work", work, parameters=NAME)
    (result,) = run_many(lambda: Agent([tool], planner), ["goal"], limits=Limits(max_seconds=0.2))
    assert "max_seconds" in str(result.error)
    assert begun == ["planner"] if who == "planner" else ["planner", "tool"]


def test_an_agent_that_is_made_once_is_bounded_in_the_batch_alone() -> None:
    calls: list[Any] = []
    agent = maker(calls=calls)()
    list(run_many(lambda: agent, goals(3), limits=Limits(max_tool_calls=1)))
    assert len(calls) == 1
    assert agent.run("alone").status is RunStatus.COMPLETED
    assert len(calls) == 2


def test_the_account_is_no_business_of_what_the_agent_has() -> None:
    seen: set[str] = set()
    store = MemoryStore()

    def make() -> Agent:
        return Agent(
            [],
            lambda state, tools: seen.add(state.goal) or Decision.finish(0),  # type: ignore[func-returns-value]
            store=store,
            observer=lambda event: seen.add(event.run_id),
            done=lambda state: seen.add(state.goal) or False,  # type: ignore[func-returns-value]
            limits=Limits(max_steps=2),
        )

    (result,) = run_many(make, ["goal"], limits=Limits(max_cost=1.0))
    assert seen == {"goal", result.run_id}
    assert len(store.runs("completed")) == 1  # of the goal's run nobody says that it is done


def test_an_account_that_was_cut_off_when_it_was_opened_is_opened_to_its_end() -> None:
    class Store(MemoryStore):
        left = 1

        def commit(self, run_id: str, *args: Any, **options: Any) -> None:
            if not self.left:
                raise KeyboardInterrupt
            self.left -= 1
            super().commit(run_id, *args, **options)

    store = Store()
    bounded = Limits(max_tool_calls=1)
    with pytest.raises(KeyboardInterrupt):
        list(run_many(maker(store), goals(2), batch_id="b", limits=bounded))
    assert len(store.runs("running")) == 1
    store.left = 1000
    results = list(run_many(maker(store), goals(2), batch_id="b", limits=bounded))
    assert [result.error is None for result in results] == [True, False]
    assert len(store.runs("completed")) == 2


def test_what_a_child_does_is_charged_too() -> None:
    calls: list[Any] = []

    def make() -> Agent:
        inner = Agent([writer(calls, cost=0.25)], script(SAVE, SAVE), policy=FREE)
        tool = delegate(inner, "inner", "saves twice")
        plan = script(Decision.act("inner", {"goal": "save"}))
        return Agent([tool], plan, policy=FREE, store=store)

    store = MemoryStore()
    results = list(run_many(make, goals(3), limits=Limits(max_cost=1.0)))
    assert len(calls) == 4
    assert [result.error is None for result in results] == [True, False, False]


def test_a_limit_on_cost_is_never_passed_in_a_loop() -> None:
    for _ in range(20):
        noted: list[Any] = []
        results = in_loop(
            async_maker(MemoryStore(), noted=noted), goals(50), limits=Limits(max_cost=1.0)
        )
        assert noted.count("begun") == 4
        assert sum(result.error is None for result in results) <= 3


def test_a_store_that_refuses_the_account_is_an_error_and_no_endless_try() -> None:
    class Store(MemoryStore):
        def commit(self, run_id: str, *args: Any, **options: Any) -> None:
            if "hold what the runs" in args[0] and options["expected"] not in (None, 0):
                raise StateError("full")
            super().commit(run_id, *args, **options)

    (result,) = run_many(maker(Store()), goals(1), limits=Limits(max_cost=1.0))
    assert result.error == "StateError: full"


def test_agents_that_share_no_store_cannot_be_bounded() -> None:
    def make() -> Agent:
        return maker(MemoryStore())()  # type: ignore[no-any-return]

    results = list(run_many(make, goals(2), limits=Limits(max_cost=1.0)))
    assert all("one store" in str(result.error) for result in results)


# In an event loop


def test_no_more_runs_go_on_at_a_time_than_said() -> None:
    going = most = 0

    def make() -> AsyncAgent:
        async def wait() -> None:
            nonlocal going, most
            going += 1
            most = max(most, going)
            await asyncio.sleep(0.05)
            going -= 1

        return AsyncAgent([Tool("wait", wait)], script(Decision.act("wait")))

    results = in_loop(make, goals(40), max_concurrency=7)
    assert len(results) == 40
    assert most == 7


def test_goals_may_come_from_an_async_iterator() -> None:
    async def source() -> Any:
        for goal in goals(5):
            await asyncio.sleep(0)
            yield goal

    results = in_loop(async_maker(), source())
    assert sorted(result.goal for result in results) == goals(5)


def test_results_come_while_the_next_goal_is_waited_for() -> None:
    async def main() -> None:
        more = asyncio.Event()

        async def source() -> Any:
            yield "one"
            await more.wait()
            yield "two"

        results = run_many_async(async_maker(), source())
        assert (await asyncio.wait_for(results.__anext__(), 30)).goal == "one"
        more.set()
        assert (await results.__anext__()).goal == "two"
        with pytest.raises(StopAsyncIteration):
            await results.__anext__()

    asyncio.run(main())


def test_what_an_iterator_of_goals_raises_is_raised_and_leaves_nothing_behind() -> None:
    def source() -> Iterator[str]:
        yield "one"
        raise LookupError("lost")

    async def main() -> None:
        with pytest.raises(LookupError, match="lost"):
            await gather(run_many_async(async_maker(seconds=30.0), source()))
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(main())
    with ThreadPoolExecutor(1) as executor, pytest.raises(LookupError, match="lost"):
        list(run_many(maker(), source(), executor=executor))


def test_runs_of_a_loop_that_is_left_are_cancelled_and_go_on_later() -> None:
    store, noted = MemoryStore(), []  # type: ignore[var-annotated]

    async def main() -> None:
        made = run_many_async(async_maker(store, 30.0, noted), goals(5), batch_id="b")
        async with aclosing(made) as results:  # type: ignore[type-var]
            waiting = asyncio.ensure_future(results.__anext__())
            while noted.count("begun") < 5:
                await asyncio.sleep(0.01)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(main())
    results = in_loop(async_maker(store, 0.0, noted), goals(5), batch_id="b")
    states = [result.state for result in results]
    assert all(state is not None and state.status is RunStatus.COMPLETED for state in states)
    # Whether the call that was cancelled had an effect is not known: it is not made again.
    assert noted.count("begun") == 5
    assert noted.count("ended") == 0


# What is refused


@pytest.mark.parametrize(
    ("options", "error", "told"),
    [
        ({"make_agent": Agent([], script())}, TypeError, "a function that makes one"),
        ({"make_agent": "x"}, TypeError, "make_agent must be a function, not str"),
        ({"make_agent": lambda: 7}, TypeError, "make_agent must make an Agent, not int"),
        ({"make_agent": lambda: AsyncAgent([], script())}, TypeError, "must make an Agent"),
        ({"goals": 7}, TypeError, "not iterable"),
        ({"executor": 7}, TypeError, "executor must be an Executor or None, not int"),
        ({"batch_id": "b"}, ValueError, "agents have no store"),
        ({"batch_id": 7, "make_agent": maker(MemoryStore())}, TypeError, "batch_id must be"),
        ({"limits": 7}, TypeError, "limits must be"),
        ({"limits": Limits(max_steps=3)}, ValueError, "max_steps is a run's"),
        ({"tainted": 1}, TypeError, "tainted must be"),
        ({"progress": 7}, TypeError, "progress must be callable or None, not int"),
    ],
)
def test_wrong_arguments_are_refused_when_it_is_called(
    options: dict[str, Any], error: type[Exception], told: str
) -> None:
    arguments: dict[str, Any] = {"make_agent": maker(), "goals": ["goal"], **options}
    with pytest.raises(error, match=told):
        run_many(arguments.pop("make_agent"), arguments.pop("goals"), **arguments)


def test_wrong_arguments_are_refused_in_a_loop_too() -> None:
    with pytest.raises(ValueError, match="max_concurrency must be at least 1"):
        run_many_async(async_maker(), goals(1), max_concurrency=0)
    with pytest.raises(TypeError, match="max_concurrency must be"):
        run_many_async(async_maker(), goals(1), max_concurrency=1.5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="must make an AsyncAgent"):
        run_many_async(maker(), goals(1))


def test_what_no_other_process_can_have_is_refused() -> None:
    with ProcessPoolExecutor(1) as executor:  # starts no process, for nothing is submitted
        with pytest.raises(TypeError, match="a function at the top of a module"):
            run_many(maker(), goals(1), executor=executor)
        with pytest.raises(ValueError, match="share a store"):
            run_many(without_store, goals(1), executor=executor, limits=Limits(max_cost=1.0))
    with pytest.raises(TypeError, match="an Agent cannot be pickled"):
        pickle.dumps(Agent([], script()))
    with pytest.raises(TypeError, match="in the memory of one process"):
        pickle.dumps(MemoryStore())
    with pytest.raises(TypeError, match="in the memory of one process"):
        pickle.dumps(MemoryAuditSink())


def without_store() -> Agent:
    return Agent([], script())


# Progress


def test_progress_tells_the_totals() -> None:
    totals: list[BatchTotals] = []
    list(run_many(maker(), goals(3), progress=totals.append))
    assert [one.goals for one in totals] == [1, 2, 3, 3]
    assert [one.has_ended for one in totals] == [False] * 3 + [True]
    assert str(totals[-1]) == "3 goals: 3 completed; 6 decisions, 3 calls, 0 tokens, cost 0.75"
    file = io.StringIO()
    list(run_many(maker(), goals(3), progress=Progress(file), limits=Limits(max_tool_calls=1)))
    assert file.getvalue() == (
        "3 goals: 1 completed, 2 not run; 2 decisions, 1 call, 0 tokens, cost 0.25\n"
    )
    in_loop(async_maker(), goals(2), progress=totals.append)
    assert str(totals[-1]).startswith("2 goals: 2 completed")


# Other processes


@contextmanager
def processes() -> Iterator[tuple[Executor, Callable[[], None]]]:
    """Two worker processes, and what kills one of them."""
    executor = ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn"))

    def kill() -> None:
        living = [process.pid for process in executor._processes.values() if process.is_alive()]
        if living:
            os.kill(random.choice(living) or 0, signal.SIGKILL)

    try:
        yield executor, kill
    finally:
        executor.shutdown(cancel_futures=True)


@contextmanager
def dask_workers() -> Iterator[tuple[Executor, Callable[[], None]]]:
    """Two worker processes of a cluster, which starts another for one that is killed."""
    pytest.importorskip("distributed", reason="this machine has no Dask")
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0") as cluster,
        Client(cluster) as client,
    ):
        executor = client.get_executor()

        def kill() -> None:
            nanny = random.choice(list(cluster.workers.values()))
            killed = nanny.pid
            os.kill(killed, signal.SIGKILL)
            # Another is not killed before this one has a successor: a nanny whose worker dies while
            # it starts gives up.
            for _ in range(600):
                if nanny.pid not in (None, killed) and nanny.process.status.name == "running":
                    return
                time.sleep(0.05)
            raise BrokenExecutor("a worker that was killed has no successor")

        yield executor, kill


@pytest.mark.parametrize("where", [processes, dask_workers])
def test_a_batch_runs_on_processes(where: Any, tmp_path: Path) -> None:
    make = functools.partial(batch_agents.make, str(tmp_path))
    with where() as (executor, _):
        limits = Limits(max_tool_calls=100)
        results = list(run_many(make, goals(30), executor=executor, batch_id="b", limits=limits))
    assert [result.error for result in results] == [None] * 30
    noted = (tmp_path / "calls").read_text().splitlines()
    assert len(noted) == len(set(noted)) == 30 * batch_agents.CALLS * 2


def test_workers_that_are_lost_are_told_and_the_batch_goes_on(tmp_path: Path) -> None:
    make = functools.partial(batch_agents.make, str(tmp_path))
    with processes() as (executor, kill):
        results = run_many(make, iter(goals(500)), executor=executor, batch_id="b")
        known = [next(results)]
        kill()
        with pytest.raises(BrokenExecutor):
            known.extend(results)
    assert 0 < len(known) < 500
    with processes() as (executor, kill):
        results = list(run_many(make, goals(20), executor=executor, batch_id="b"))
    assert all(result.error is None for result in results)


@pytest.mark.parametrize(
    ("where", "place"),
    [(processes, "sqlite"), (dask_workers, "postgresql")],
)
def test_a_batch_whose_workers_are_killed_ends_complete_and_each_run_once(
    where: Any, place: str, tmp_path: Path, request: Any
) -> None:
    if place == "sqlite":
        make = functools.partial(batch_agents.make, str(tmp_path), seconds=0.02)
    else:
        address = request.getfixturevalue("postgres").address
        make = functools.partial(
            batch_agents.make_on_postgresql, str(tmp_path), address, seconds=0.02
        )
    count, kills, limits = 200, 0, Limits(max_tool_calls=5_000)
    left = True
    while left:
        with where() as (executor, kill):
            seen = 0
            try:
                results = []
                for result in run_many(
                    make, goals(count), executor=executor, batch_id="b", limits=limits
                ):
                    results.append(result)
                    seen += 1
                    if kills < 20 and seen > kills * count // 22:
                        time.sleep(random.uniform(0.0, 0.02))
                        kill()
                        kills += 1
            except BrokenExecutor:
                continue
            left = kills < 20 or any(result.error is not None for result in results)
    check(make(), results, tmp_path / "calls", count)


def check(agent: Agent, results: list[BatchResult], noted: Path, count: int) -> None:
    """Each run is complete, each call was made once, and all trails are whole."""
    store: Any = agent.store
    assert sorted(result.index for result in results) == list(range(count))
    marks = Counter(noted.read_text().splitlines())
    assert set(marks.values()) == {1}
    interrupted = 0
    for result in results:
        state = result.state
        assert state is not None
        assert state.status is RunStatus.COMPLETED
        assert store.load(result.run_id) is not None
        calls = state.steps[: batch_agents.CALLS]
        for place, step in enumerate(calls):
            begun, ended = (marks[f"{state.goal} {place} {mark}"] for mark in ("begun", "ended"))
            if step.outcome.value == "executed":
                assert begun == ended == 1
            else:
                assert step.outcome.value == "interrupted"
                interrupted += 1
    assert interrupted <= 60
    assert len(store.runs()) == count + 1  # and the account
    assert verify_audit(store.read(), heads=store.heads()) == []
