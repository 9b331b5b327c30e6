"""Agents in an event loop: nothing blocks, a cancellation is a crash, and all may be async."""

from __future__ import annotations

import asyncio
import contextvars
import threading
import time
from contextlib import aclosing
from typing import Any

import pytest
from support import FREE, TEXT, WRITES, approve, script, writer

from scikitplot.agent import (
    Agent,
    Approval,
    AsyncAgent,
    Decision,
    JsonlAuditSink,
    Limits,
    MemoryAuditSink,
    MemoryStore,
    ReconcileRequest,
    RunState,
    SqliteStore,
    StateError,
    Tool,
    ToolError,
    current_call,
    delegate,
    verify_audit,
)

SAVE = Decision.act("save", {"text": "x"})


def waits(seconds: float = 60.0, name: str = "wait", **options: Any) -> Tool:
    async def wait() -> str:
        await asyncio.sleep(seconds)
        return "waited"

    return Tool(name, wait, **options)


class Async:
    """A store or a sink, each method of it async."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.key = getattr(inner, "key", None)

    async def load(self, run_id: str) -> Any:
        await asyncio.sleep(0)
        return self.inner.load(run_id)

    async def commit(self, run_id: str, head: str, steps: Any, *, expected: Any) -> None:
        await asyncio.sleep(0)
        self.inner.commit(run_id, head, steps, expected=expected)

    async def append(self, records: Any, *, expected: Any) -> None:
        await asyncio.sleep(0)
        self.inner.append(records, expected=expected)

    async def head(self, run_id: str) -> Any:
        await asyncio.sleep(0)
        return self.inner.head(run_id)

    async def read(self, run_id: str | None = None) -> Any:
        for record in self.inner.read(run_id):
            await asyncio.sleep(0)
            yield record


# What may be async


def test_all_that_is_passed_may_be_async() -> None:
    store, audit, told = MemoryStore(), MemoryAuditSink(), []

    async def save(text: str) -> str:
        await asyncio.sleep(0)
        return f"saved at depth {current_call().depth}"

    async def planner(state: RunState, tools: Any) -> Decision:
        await asyncio.sleep(0)
        return SAVE if not state.steps else Decision.finish(state.steps[0].result)

    async def approver(request: Any) -> Approval:
        await asyncio.sleep(0)
        return Approval(request.digest, True, "ann")

    async def done(answer: Any, state: RunState) -> bool:
        await asyncio.sleep(0)
        return True

    async def observer(event: Any) -> None:
        await asyncio.sleep(0)
        told.append(event.name)

    agent = AsyncAgent(
        [Tool("save", save, parameters=TEXT, effect="write")],
        planner,
        policy=WRITES,
        approver=approver,
        done=done,
        observer=observer,
        store=Async(store),  # type: ignore[arg-type]
        audit=Async(audit),  # type: ignore[arg-type]
    )
    state = asyncio.run(agent.run("goal", run_id="1" * 64))
    assert state.answer == "saved at depth 0"
    assert verify_audit(audit.records, heads={state.run_id: state.audit_head}) == []
    assert told.count("committed") == store.load(state.run_id).head.count("revision") * (  # type: ignore[union-attr]
        state.revision + 1
    )
    with pytest.raises(ValueError, match="used once"):
        asyncio.run(agent.run("goal", run_id="1" * 64))


def test_an_async_reconcile_is_asked() -> None:
    store = MemoryStore()

    async def reconcile(request: ReconcileRequest) -> str:
        await asyncio.sleep(0)
        return f"found {request.tool}"

    tool = waits(effect="write", idempotent=False)
    agent = AsyncAgent(
        [tool], script(Decision.act("wait")), policy=FREE, store=store, reconcile=reconcile
    )

    async def main() -> RunState:
        task = asyncio.ensure_future(agent.run("goal", run_id="1" * 64))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return await agent.resume("1" * 64)

    assert asyncio.run(main()).steps[0].result == "found wait"


def test_what_is_not_async_blocks_nobody() -> None:
    """Each of these sleeps in its thread, and the loop turns meanwhile."""
    loop_thread: list[int] = []
    seen: dict[str, int] = {}

    def slow(name: str, reply: Any) -> Any:
        def function(*args: Any, **kwargs: Any) -> Any:
            seen[name] = threading.get_ident()
            time.sleep(0.02)
            return reply(*args, **kwargs)

        return function

    agent = AsyncAgent(
        [writer([])],
        slow("planner", script(SAVE)),
        policy=WRITES,
        approver=slow("approver", lambda request: Approval(request.digest, True, "ann")),
        done=slow("done", lambda answer, state: True),
    )
    agent.tools = type(agent.tools)(
        [Tool("save", lambda text: slow("tool", str)(text), parameters=TEXT, effect="write")]
    )
    turns = 0

    async def main() -> RunState:
        nonlocal turns
        loop_thread.append(threading.get_ident())
        task = asyncio.ensure_future(agent.run("goal"))
        while not task.done():
            await asyncio.sleep(0.001)
            turns += 1
        return task.result()

    assert asyncio.run(main()).status.value == "completed"
    assert set(seen) == {"planner", "approver", "tool", "done"}
    assert loop_thread[0] not in seen.values()
    assert turns >= 10


def test_a_store_on_a_disk_is_written_in_a_thread(tmp_path: Any) -> None:
    threads: set[int] = set()

    class Store(SqliteStore):
        def commit(self, *args: Any, **kwargs: Any) -> None:
            threads.add(threading.get_ident())
            super().commit(*args, **kwargs)

    store = Store(tmp_path / "runs.db")
    agent = AsyncAgent([], script(), store=store, audit=JsonlAuditSink(tmp_path / "trail.jsonl"))
    asyncio.run(agent.run("goal"))
    assert threads
    assert threading.get_ident() not in threads


def test_a_tool_sees_the_callers_context_and_changes_none() -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="none")
    seen: list[str] = []

    async def look() -> None:
        seen.append(variable.get())
        variable.set("the tool's")

    def look_too() -> None:
        seen.append(variable.get())
        variable.set("the tool's")

    agent = AsyncAgent(
        [Tool("a", look), Tool("b", look_too)],
        script(*(Decision.act(name) for name in "abab")),
    )

    async def main() -> str:
        variable.set("the caller's")
        await agent.run("goal")
        return variable.get()

    assert asyncio.run(main()) == "the caller's"
    assert seen == ["the caller's"] * 4


def test_many_runs_of_one_agent_wait_at_the_same_time() -> None:
    agent = AsyncAgent([waits(0.2)], script(Decision.act("wait")))
    at_once: list[int] = []

    async def watched() -> RunState:
        at_once.append(len(agent._driven))
        return await agent.run("goal")

    async def main() -> list[RunState]:
        states = await asyncio.gather(*(watched() for _ in range(100)))
        return list(states)

    states = asyncio.run(main())
    assert {state.steps[0].result for state in states} == {"waited"}
    assert max(at_once) > 50


# What fails


@pytest.mark.parametrize(
    ("error", "code", "told"),
    [
        (ToolError("no"), "tool_error", "no"),
        (ValueError("secret"), "tool_failed", "the tool raised ValueError"),
        (asyncio.CancelledError(), "tool_failed", "the tool raised CancelledError"),
        (TimeoutError(), "tool_failed", "the tool raised TimeoutError"),
    ],
)
@pytest.mark.parametrize("is_async", [True, False])
def test_an_exception_of_a_tool_is_its_steps(
    error: BaseException, code: str, told: str, is_async: bool
) -> None:
    async def fails() -> None:
        await asyncio.sleep(0)
        raise error

    def fails_too() -> None:
        raise error

    tool = Tool("fail", fails if is_async else fails_too)
    state = asyncio.run(AsyncAgent([tool], script(Decision.act("fail"))).run("goal"))
    assert (state.steps[0].code, state.steps[0].error) == (code, told)
    assert state.status.value == "completed"


@pytest.mark.parametrize("error", [ValueError("secret"), asyncio.CancelledError()])
@pytest.mark.parametrize("is_async", [True, False])
def test_an_exception_of_a_planner_is_the_runs(error: BaseException, is_async: bool) -> None:
    async def fails(state: Any, tools: Any) -> Decision:
        raise error

    def fails_too(state: Any, tools: Any) -> Decision:
        raise error

    state = asyncio.run(AsyncAgent([], fails if is_async else fails_too).run("goal"))
    assert (state.stop_reason, state.error) == (
        "planner_failed",
        f"the planner raised {type(error).__name__}",
    )


@pytest.mark.parametrize("is_async", [True, False])
def test_what_ends_the_process_passes_and_leaves_the_run_to_be_resumed(is_async: bool) -> None:
    died: list[int] = []

    def dies() -> str:
        if not died:
            died.append(1)
            raise KeyboardInterrupt
        return "alive"

    async def dies_too() -> str:
        return dies()

    tool = Tool("die", dies_too if is_async else dies)
    agent = AsyncAgent([tool], script(Decision.act("die")), store=MemoryStore())
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(agent.run("goal", run_id="1" * 64))
    assert asyncio.run(agent.resume("1" * 64)).steps[0].result == "alive"


@pytest.mark.parametrize("is_async", [True, False])
def test_a_tool_that_takes_too_long_is_given_up(is_async: bool) -> None:
    went_on = threading.Event()

    def hangs() -> None:
        went_on.wait(30)

    tool = waits(timeout=0.05) if is_async else Tool("wait", hangs, timeout=0.05)
    agent = AsyncAgent([tool], script(Decision.act("wait")))
    state = asyncio.run(agent.run("goal"))
    went_on.set()
    assert (state.steps[0].code, state.status.value) == ("tool_timeout", "completed")


def test_a_store_that_fails_ends_the_session() -> None:
    class Broken(MemoryStore):
        def commit(self, *args: Any, **kwargs: Any) -> None:
            raise StateError("the disk is full")

    with pytest.raises(StateError, match="the disk is full"):
        asyncio.run(AsyncAgent([], script(), store=Broken()).run("goal"))


# Cancelling


class Slow(MemoryStore):
    """A store that takes its time, in a thread, as the agent does not know it."""

    def __init__(self) -> None:
        super().__init__()
        self.has_begun = threading.Event()
        self.has_ended = False

    def commit(self, *args: Any, **kwargs: Any) -> None:
        self.has_begun.set()
        time.sleep(0.05)
        super().commit(*args, **kwargs)
        self.has_ended = True


def test_a_run_that_is_cancelled_at_any_await_goes_on_where_it_was() -> None:
    """A task is cancelled at its n-th wait, for each n until it is not reached any more."""

    async def save(text: str) -> str:
        calls.append(current_call().idempotency_key)
        await asyncio.sleep(0)
        return "saved"

    async def planner(state: RunState, tools: Any) -> Decision:
        await asyncio.sleep(0)
        return script(SAVE, SAVE)(state, tools)

    tool = Tool("save", save, parameters=TEXT, effect="write", idempotent=True)
    turn, cancelled = 0, True
    while cancelled:
        calls: list[str] = []
        store, audit = MemoryStore(), MemoryAuditSink()
        agent = AsyncAgent(
            [tool],
            planner,
            policy=FREE,
            store=Async(store),  # type: ignore[arg-type]
            audit=Async(audit),  # type: ignore[arg-type]
        )
        run_id = f"{turn + 1:064x}"

        async def main(agent: AsyncAgent = agent, run_id: str = run_id, turn: int = turn) -> bool:
            task = asyncio.ensure_future(agent.run("goal", run_id=run_id))
            for _ in range(turn):
                await asyncio.sleep(0)
            task.cancel()
            try:
                await task
            except asyncio.CancelledError:
                return True
            return False

        cancelled = asyncio.run(main())
        assert agent._driven == set()
        if store.load(run_id) is None:
            state = asyncio.run(agent.run("goal", run_id=run_id))
        else:
            state = asyncio.run(agent.resume(run_id))
        assert (state.status.value, state.answer) == ("completed", "end")
        assert [step.result for step in state.steps[:2]] == ["saved", "saved"]
        assert len(set(calls)) == 2
        assert verify_audit(audit.records, heads={run_id: state.audit_head}) == []
        turn += 1
    assert turn > 30


def test_a_write_that_was_begun_is_ended_before_a_cancellation_is() -> None:
    store = Slow()
    agent = AsyncAgent([], script(), store=store)

    async def main() -> None:
        task = asyncio.ensure_future(agent.run("goal", run_id="1" * 64))
        while not store.has_begun.is_set():
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert store.has_ended

    asyncio.run(main())
    assert asyncio.run(agent.resume("1" * 64)).status.value == "completed"


def test_a_cancelled_run_cancels_its_tool_and_that_of_its_child() -> None:
    ended: list[str] = []

    async def wait() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append("cancelled")

    child = AsyncAgent([Tool("wait", wait)], script(Decision.act("wait")))
    agent = AsyncAgent(
        [delegate(child, "child", "Waits.")],
        script(Decision.act("child", {"goal": "wait"})),
        store=MemoryStore(),
    )

    async def main() -> None:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(agent.run("goal"), 0.1)

    asyncio.run(main())
    assert ended == ["cancelled"]


def test_a_run_is_stopped_from_another_task() -> None:
    agent = AsyncAgent([waits(0.02)], lambda state, tools: Decision.act("wait"), limits=Limits(999))

    async def main() -> RunState:
        task = asyncio.ensure_future(agent.run("goal", run_id="1" * 64))
        await asyncio.sleep(0.1)
        await agent.stop("1" * 64, "enough")
        return await task

    state = asyncio.run(main())
    assert (state.stop_reason, state.error) == ("cancelled", "enough")


def test_one_kind_of_agent_goes_on_with_what_the_other_began() -> None:
    store, audit, calls = MemoryStore(), MemoryAuditSink(), []  # type: ignore[var-annotated]
    options: dict[str, Any] = {"policy": WRITES, "store": store, "audit": audit}
    first = AsyncAgent([writer(calls)], script(SAVE), **options)
    second = Agent([writer(calls)], script(SAVE), **options)
    paused = asyncio.run(first.run("goal"))
    state = second.resume(paused.run_id, approvals=approve(paused))
    assert (state.status.value, calls) == ("completed", ["x"])
    paused = second.run("goal")
    state = asyncio.run(first.resume(paused.run_id, approvals=approve(paused)))
    assert (state.status.value, calls) == ("completed", ["x", "x"])


def test_a_run_is_undone() -> None:
    there: set[str] = set()

    async def unmake(arguments: Any, result: Any) -> None:
        there.clear()

    tool = Tool("make", lambda: there.add("file"), effect="write", undo=unmake)
    agent = AsyncAgent([tool], script(Decision.act("make")), policy=FREE, store=MemoryStore())

    async def main() -> RunState:
        state = await agent.run("goal")
        return await agent.undo(state.run_id)

    assert asyncio.run(main()).answer == {"left": [], "undone": [0], "unlisted": 0}
    assert there == set()


# Events


def names(events: list[Any]) -> list[str]:
    return [event.name for event in events]


def test_both_kinds_stream_the_same_events() -> None:
    def make(kind: Any) -> Any:
        return kind([writer([])], script(SAVE), policy=FREE)

    async def main() -> list[Any]:
        return [event async for event in make(AsyncAgent).stream("goal")]

    told = list(make(Agent).stream("goal"))
    assert names(asyncio.run(main())) == names(told)
    assert names(told) == [
        "run_started",
        "committed",
        "decision",
        "passed",
        "tool_started",
        "committed",
        "tool_finished",
        "committed",
        "decision",
        "answer",
        "run_finished",
        "committed",
    ]


def test_an_event_is_told_before_the_next_thing_happens() -> None:
    happened: list[str] = []
    tool = Tool("look", lambda: happened.append("called"))
    agent = Agent([tool], script(Decision.act("look")))
    for event in agent.stream("goal"):
        happened.append(event.name)
    assert happened.index("tool_started") < happened.index("called")
    assert happened.index("called") < happened.index("tool_finished")


def test_who_asks_for_no_further_event_leaves_a_run_that_can_be_resumed() -> None:
    store = MemoryStore()
    agent = Agent([writer([])], script(SAVE), policy=FREE, store=store)
    for event in agent.stream("goal", run_id="1" * 64):
        if event.name == "tool_started":
            break
    assert agent._driven == set()
    assert agent.resume("1" * 64).steps[0].code == "interrupted"
    other = AsyncAgent([writer([])], script(SAVE), policy=FREE, store=store)

    async def main() -> RunState:
        async with aclosing(other.stream("goal", run_id="2" * 64)) as events:
            async for event in events:
                if event.name == "decision":
                    break
        return await other.resume("2" * 64)

    assert asyncio.run(main()).status.value == "completed"


@pytest.mark.parametrize("kind", [Agent, AsyncAgent])
def test_an_observer_that_raises_is_told_of_once_and_changes_no_run(kind: Any) -> None:
    told: list[str] = []

    def observer(event: Any) -> None:
        told.append(event.name)
        raise ValueError("secret")

    agent = kind([writer([])], script(SAVE), policy=FREE, observer=observer)

    def run() -> RunState:
        ran = agent.run("goal")
        state: RunState = ran if kind is Agent else asyncio.run(ran)
        return state

    told_once = r"the observer raised ValueError; this is said once$"
    with pytest.warns(RuntimeWarning, match=told_once) as w:
        state = run()
    assert len(w) == 1
    assert state.status.value == "completed"
    assert len(told) == 12


def test_the_time_of_an_observer_is_not_the_runs() -> None:
    clock = [0.0]

    def observer(event: Any) -> None:
        clock[0] += 1_000.0

    agent = Agent(
        [writer([])],
        script(SAVE),
        policy=FREE,
        observer=observer,
        clock=lambda: clock[0],
        limits=Limits(max_seconds=10.0),
    )
    state = agent.run("goal")
    assert (state.status.value, state.usage.seconds) == ("completed", 0.0)


def test_an_observer_sees_no_more_than_the_trail_shows_and_its_changes_reach_nobody() -> None:
    told: list[Any] = []

    def observer(event: Any) -> None:
        told.append(str(event.data))
        event.data.clear()

    agent = Agent(
        [writer([])],
        script(SAVE),
        policy=FREE,
        observer=observer,
        redact=lambda tool, argument, value: "***",
    )
    state = agent.run("goal")
    assert not any("'x'" in text for text in told)
    assert verify_audit(agent.audit.records, heads={state.run_id: state.audit_head}) == []


def test_what_happens_below_is_told_with_the_rest() -> None:
    told: list[Any] = []
    child = Agent([], script())
    agent = Agent(
        [delegate(child, "child", "Does it.")],
        script(Decision.act("child", {"goal": "x"})),
        store=MemoryStore(),
        observer=told.append,
    )
    state = agent.run("goal")
    runs = [event.run_id for event in told if event.name in ("run_started", "run_finished")]
    assert runs[0] == runs[-1] == state.run_id
    assert len(set(runs)) == 2
