"""Async tools under an agent that is not: their loop, their timeout, their context."""

from __future__ import annotations

import asyncio
import contextvars
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from support import FREE, script, writer

from scikitplot.agent import (
    Agent,
    Decision,
    MemoryStore,
    RunState,
    Tool,
    ToolError,
    current_call,
    tool,
    verify_audit,
)
from scikitplot.agent.background import Background

GET = Decision.act("get")


def run(func: Callable[..., Any], *decisions: Decision, **options: Any) -> RunState:
    agent = Agent([Tool("get", func, **options)], script(*(decisions or (GET,))), policy=FREE)
    state = agent.run("goal")
    assert verify_audit(agent.audit.records) == []
    return state


async def give() -> str:
    await asyncio.sleep(0)
    return "given"


class Lazy:
    def __await__(self) -> Iterator[Any]:
        yield from asyncio.sleep(0).__await__()
        return "given"


class Callable_:
    async def __call__(self) -> str:
        return await give()


@pytest.mark.parametrize("timeout", [None, 60.0, 1e300])
@pytest.mark.parametrize("func", [give, lambda: give(), Lazy, Callable_()])
def test_what_a_tool_returns_is_awaited(func: Callable[..., Any], timeout: float | None) -> None:
    step = run(func, timeout=timeout).steps[0]
    assert (step.outcome.value, step.result) == ("executed", "given")


def test_an_async_function_with_hints_gets_decoded_arguments() -> None:
    @tool
    async def add(pair: tuple[int, int]) -> int:
        assert type(pair) is tuple
        return sum(pair)

    act = Decision.act("add", {"pair": [1, 2]})
    assert Agent([add], script(act)).run("goal").steps[0].result == 3
    assert asyncio.run(add((1, 2))) == 3


@pytest.mark.parametrize("timeout", [None, 60.0])
def test_an_exception_of_an_async_tool_is_judged_like_any_other(timeout: float | None) -> None:
    async def say() -> None:
        raise ToolError("try later")

    async def fail() -> None:
        raise TimeoutError("postgresql://user:password@host")

    async def cancel() -> None:
        raise asyncio.CancelledError

    async def nonsense() -> Any:
        return {1, 2}

    told = [run(func, timeout=timeout).steps[0] for func in (say, fail, cancel, nonsense)]
    assert [(step.outcome.value, step.code, step.error) for step in told] == [
        ("failed", "tool_error", "try later"),
        ("failed", "tool_failed", "the tool raised TimeoutError"),
        ("failed", "tool_failed", "the tool raised CancelledError"),
        ("failed", "invalid_result", "the result: a set is no JSON value"),
    ]


@pytest.mark.parametrize("timeout", [None, 60.0])
def test_an_async_tool_sees_the_caller_s_context_and_leaves_nothing_in_it(
    timeout: float | None,
) -> None:
    tenant: contextvars.ContextVar[str] = contextvars.ContextVar("tenant")
    seen: list[Any] = []

    async def look() -> None:
        await asyncio.sleep(0)
        seen.append((tenant.get(), current_call().step, current_call().deadline is not None))
        tenant.set("the tool's own")

    tenant.set("t1")
    run(look, GET, GET, timeout=timeout)
    assert seen == [("t1", 0, timeout is not None), ("t1", 1, timeout is not None)]
    assert tenant.get() == "t1"


def test_tools_share_a_loop_so_that_they_can_share_a_client() -> None:
    lock: list[asyncio.Lock] = []

    async def connect() -> None:
        lock.append(asyncio.Lock())
        await lock[0].acquire()
        asyncio.get_running_loop().call_later(0.01, lock[0].release)

    async def use() -> str:
        async with lock[0]:  # it waits, and so binds to the loop
            return "used"

    Agent([Tool("get", connect)], script(GET)).run("goal")
    assert run(use).steps[0].result == "used"


@pytest.mark.parametrize("effect", ["read", "write"])
def test_an_async_call_that_takes_too_long_is_cancelled_and_fails_its_step(effect: str) -> None:
    cleaned = threading.Event()

    async def slow() -> str:
        try:
            await asyncio.sleep(600)
        finally:
            cleaned.set()
        return "too late"

    store = MemoryStore()
    tools = [Tool("get", slow, timeout=0.05, effect=effect), writer([])]
    agent = Agent(tools, script(GET, Decision.act("save", {"text": "x"})), policy=FREE, store=store)
    state = agent.run("goal")
    first, second = state.steps[0], state.steps[1]
    assert (first.outcome.value, first.code, first.attempts) == ("failed", "tool_timeout", 1)
    assert ("unknown" in first.error) == (effect == "write")
    assert second.outcome.value == "executed"
    assert cleaned.wait(60)


def test_what_a_cancelled_call_still_returns_is_dropped() -> None:
    returned = threading.Event()

    async def stubborn() -> str:
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            returned.set()
        return "too late"

    store = MemoryStore()
    agent = Agent([Tool("get", stubborn, timeout=0.05)], script(GET), store=store)
    state = agent.run("goal")
    assert state.steps[0].code == "tool_timeout"
    before = store.load(state.run_id), len(agent.audit.records)
    assert returned.wait(60)
    assert run(give).steps[0].result == "given"  # the loop has gone on
    assert (store.load(state.run_id), len(agent.audit.records)) == before


def test_an_awaitable_that_comes_after_the_timeout_is_closed() -> None:
    go, made = threading.Event(), []

    def slow() -> Awaitable[str]:
        go.wait(60)
        made.append(give())
        return made[0]

    assert run(slow, timeout=0.05).steps[0].code == "tool_timeout"
    go.set()
    thread = next(t for t in threading.enumerate() if t.name == "tool get")
    thread.join(60)
    assert made[0].cr_frame is None  # closed, so that Python has nothing to warn of


def test_an_awaitable_that_is_given_up_before_it_begins_never_does() -> None:
    place, context = Background(), contextvars.copy_context()
    blocked, go, began = threading.Event(), threading.Event(), threading.Event()

    async def block() -> None:
        blocked.set()
        go.wait(60)

    async def begin() -> None:
        began.set()

    thread = threading.Thread(target=place.wait, args=(block(), context, None))
    thread.start()
    assert blocked.wait(60)
    late = begin()
    assert place.wait(late, context, 0.0) is None
    go.set()
    thread.join()
    awaited = place.wait(give(), context, None)
    assert awaited is not None
    assert awaited.result == "given"
    assert (began.is_set(), late.cr_frame) == (False, None)


def test_a_tool_that_blocks_the_loop_stops_no_other() -> None:
    go = threading.Event()

    async def block() -> None:
        go.wait(60)

    assert run(block, timeout=0.05).steps[0].code == "tool_timeout"
    assert run(give, timeout=0.05).steps[0].code in ("tool_timeout", None)
    assert run(give, timeout=60.0).steps[0].result == "given"
    go.set()


def test_what_a_left_behind_task_raises_does_not_end_the_loop() -> None:
    async def leave() -> None:
        async def exit() -> None:
            raise SystemExit

        asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
        tasks.append(asyncio.ensure_future(exit()))
        asyncio.get_running_loop().call_soon(asyncio.get_running_loop().stop)

    tasks: list[Any] = []
    assert run(leave).steps[0].outcome.value == "executed"
    assert run(give, timeout=60.0).steps[0].result == "given"
    assert type(tasks[0].exception()) is SystemExit


def test_an_interrupt_inside_an_async_tool_is_no_outcome() -> None:
    calls: list[int] = []

    async def interrupted() -> str:
        calls.append(current_call().attempt)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return "done"

    store = MemoryStore()
    agent = Agent([Tool("get", interrupted)], script(GET), store=store)
    with pytest.raises(KeyboardInterrupt):
        agent.run("goal", run_id="1" * 64)
    state = agent.resume("1" * 64)
    assert (state.steps[0].outcome.value, state.steps[0].attempts, calls) == ("executed", 2, [1, 2])


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="this machine has no pthread_kill")
@pytest.mark.parametrize("effect", ["read", "write"])
def test_an_interrupt_while_waiting_cancels_the_call_and_leaves_a_run_that_resumes(
    effect: str,
) -> None:
    cancelled = threading.Event()
    calls: list[int] = []

    async def wait() -> str:
        calls.append(current_call().attempt)
        if len(calls) > 1:
            return "done"
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        try:
            await asyncio.sleep(600)
        finally:
            cancelled.set()
        return "too late"

    store = MemoryStore()
    agent = Agent([Tool("get", wait, effect=effect)], script(GET), policy=FREE, store=store)
    # Where the shell started this in the background, it is ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            agent.run("goal", run_id="1" * 64)
    finally:
        signal.signal(signal.SIGINT, before)
    assert cancelled.wait(60)
    step = agent.resume("1" * 64).steps[0]
    outcome = "executed" if effect == "read" else "interrupted"
    assert (step.outcome.value, step.attempts) == (outcome, 2 if effect == "read" else 1)
    assert len(calls) == step.attempts


def test_a_running_loop_in_the_caller_s_thread_does_not_matter() -> None:
    async def cell() -> Any:
        return run(give).steps[0].result

    assert asyncio.run(cell()) == "given"


@pytest.mark.parametrize("timeout", [None, 60.0])
def test_an_agent_inside_an_async_tool_may_have_async_tools(timeout: float | None) -> None:
    async def innermost() -> Any:
        return run(give, timeout=timeout).steps[0].result

    async def inner() -> Any:
        return run(innermost, timeout=timeout).steps[0].result

    assert run(inner, timeout=timeout).steps[0].result == "given"


def test_a_forked_process_has_a_loop_of_its_own() -> None:
    assert run(give).steps[0].result == "given"
    if not hasattr(os, "fork"):
        return
    receive, send = multiprocessing.Pipe(duplex=False)
    child = os.fork()
    if child == 0:
        try:
            send.send(run(give, timeout=60.0).steps[0].result)
        finally:
            os._exit(0)
    assert receive.poll(60)
    assert receive.recv() == "given"
    os.waitpid(child, 0)
    assert run(give).steps[0].result == "given"


HANGS = """
import asyncio, time
from scikitplot.agent import *
async def hang():
    try:
        await asyncio.sleep(600)
    finally:
        print("cleaned up", flush=True)
async def block():
    time.sleep(600)
async def ok():
    return "ok"
def planner(state, tools):
    name = names[len(state.steps)] if len(state.steps) < len(names) else None
    return Decision.act(name) if name else Decision.finish(state.steps[-1].result)
names = {names}
tools = [Tool('hang', hang, timeout=0.01), Tool('block', block, timeout=0.01), Tool('ok', ok)]
print(Agent(tools, planner, limits=Limits(max_steps=200)).run('goal').answer, flush=True)
async def left():
    asyncio.ensure_future(hang())
    await asyncio.sleep(0)
names = ['left']
Agent([Tool('left', left)], planner).run('goal')
"""


@pytest.mark.parametrize("names", [["hang"] * 100 + ["ok"], ["block", "ok"]])
def test_hung_async_calls_stop_no_other_and_the_process_can_exit(
    names: list[str],
) -> None:
    code = HANGS.format(names=names)
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-X", "dev", "-c", code],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert (set(ran.stdout.splitlines()), ran.stderr) == ({"ok", "cleaned up"}, "")


def test_importing_the_package_does_not_import_asyncio() -> None:
    code = "import sys, scikitplot.agent; print('asyncio' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "False"


def test_many_threads_may_call_async_tools_at_once() -> None:
    async def slow() -> float:
        await asyncio.sleep(0.01)
        return time.monotonic()

    results: list[Any] = []
    threads = [
        threading.Thread(target=lambda: results.append(run(slow, timeout=60.0).steps[0].code))
        for _ in range(20)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [None] * 20
