"""Stopping a run from outside: at the next boundary, with its last outcome kept."""

from __future__ import annotations

import contextlib
import signal
import threading
from pathlib import Path
from typing import Any

import pytest
from support import FREE, WRITES, approve, script, writer

from scikitplot.agent import (
    Agent,
    Decision,
    JsonlAuditSink,
    MemoryAuditSink,
    MemoryStore,
    RunState,
    SqliteStore,
    StateError,
    Tool,
    recover,
    verify_audit,
)

SAVE = Decision.act("save", {"text": "x"})
RUN_ID = "a" * 64


def stopped(state: RunState, reason: str | None) -> bool:
    return (state.status.value, state.stop_reason, state.error) == ("stopped", "cancelled", reason)


@pytest.fixture(params=["memory", "one database", "a database and a file"])
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """Options of an agent, and of another one as another process would make it."""
    if request.param == "memory":
        options: dict[str, Any] = {"store": MemoryStore(), "audit": MemoryAuditSink()}
        yield options, options
        return
    stores = [SqliteStore(tmp_path / "runs.db") for _ in range(2)]
    sinks: list[Any] = list(stores)
    if request.param == "a database and a file":
        sinks = [JsonlAuditSink(tmp_path / "trail.jsonl") for _ in range(2)]
    yield tuple({"store": store, "audit": sink} for store, sink in zip(stores, sinks, strict=True))
    for store in stores:
        store.close()


def test_a_thread_stops_a_run_and_the_call_that_was_running_keeps_its_outcome(kept: Any) -> None:
    started, go = threading.Event(), threading.Event()

    def slow(text: str) -> str:
        started.set()
        assert go.wait(60)
        return "done"

    tool = Tool("save", slow, parameters=writer([]).parameters, effect="write")
    agent = Agent([tool], lambda state, tools: SAVE, policy=FREE, **kept[0])
    states: list[RunState] = []
    thread = threading.Thread(target=lambda: states.append(agent.run("goal", run_id=RUN_ID)))
    thread.start()
    assert started.wait(60)
    agent.stop(RUN_ID, "enough")
    go.set()
    thread.join()
    (state,) = states
    assert stopped(state, "enough")
    assert [step.outcome.value for step in state.steps] == ["executed"]
    heads = {RUN_ID: state.audit_head}
    assert verify_audit(kept[0]["audit"].read(), heads=heads) == []


@pytest.mark.parametrize("where", ["planner", "tool"])
def test_another_process_stops_a_run_through_the_store(kept: Any, where: str) -> None:
    """By another agent on another store object: it knows nothing of who drives the run."""
    calls: list[str] = []
    other = Agent([], script(), **kept[1])

    def planner(state: RunState, tools: Any) -> Decision:
        if where == "planner" and len(state.steps) == 2:
            other.stop(state.run_id, "enough")
            other.stop(state.run_id, "a second request changes nothing")
            return Decision.act("nothing")
        return SAVE

    def save(text: str) -> str:
        calls.append(text)
        if where == "tool" and len(calls) == 2:
            other.stop(RUN_ID, "enough")
        return "saved"

    tool = Tool("save", save, parameters=writer([]).parameters, effect="write")
    agent = Agent([tool], planner, policy=FREE, **kept[0])
    state = agent.run("goal", run_id=RUN_ID)
    assert stopped(state, "enough")
    assert [step.outcome.value for step in state.steps][:2] == ["executed", "executed"]
    assert len(state.steps) == (3 if where == "planner" else 2)
    assert len(calls) == 2
    assert other.resume(RUN_ID) == state
    assert verify_audit(kept[1]["audit"].read(), heads={RUN_ID: state.audit_head}) == []
    events = [record.event for record in kept[0]["audit"].read()]
    assert events.count("tool_finished") == events.count("tool_started") == 2


def test_a_call_that_has_not_started_does_not_start(kept: Any) -> None:
    """Asked while the planner thinks, the run stops before the call that the planner proposes."""
    calls: list[str] = []
    other = Agent([], script(), **kept[1])

    def planner(state: RunState, tools: Any) -> Decision:
        other.stop(state.run_id)
        return SAVE

    agent = Agent([writer(calls)], planner, policy=FREE, **kept[0])
    state = agent.run("goal", run_id=RUN_ID)
    assert stopped(state, None)
    assert calls == []
    assert [step.outcome.value for step in state.steps] == ["interrupted"]
    assert verify_audit(kept[1]["audit"].read(), heads={RUN_ID: state.audit_head}) == []


def test_a_signal_handler_may_stop_the_run_that_it_interrupts() -> None:
    def planner(state: RunState, tools: Any) -> Decision:
        if len(state.steps) == 1:
            signal.raise_signal(signal.SIGTERM)
            return Decision.act("nothing")
        return SAVE

    agent = Agent([writer([])], planner, policy=FREE, store=MemoryStore())
    before = signal.signal(signal.SIGTERM, lambda *_: agent.stop(RUN_ID, "terminated"))
    try:
        state = agent.run("goal", run_id=RUN_ID)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert stopped(state, "terminated")
    assert len(state.steps) == 2


def test_a_paused_run_ends_at_once_and_nobody_is_said_to_have_refused(kept: Any) -> None:
    calls: list[str] = []
    agent = Agent([writer(calls)], script(SAVE), policy=WRITES, **kept[0])
    paused = agent.run("goal")
    Agent([writer(calls)], script(SAVE), policy=WRITES, **kept[1]).stop(paused.run_id)
    state = agent.resume(paused.run_id, approvals=approve(paused))
    assert stopped(state, None)
    assert calls == []
    events = [record.event for record in kept[0]["audit"].read()]
    assert events == [
        "run_started", "decision", "approval_requested", "resumed", "run_finished",
    ]  # fmt: skip
    agent.stop(paused.run_id, "it has ended already")
    assert agent.resume(paused.run_id) == state


def test_a_run_whose_process_is_gone_ends_when_it_is_resumed_and_starts_nothing(kept: Any) -> None:
    calls: list[str] = []

    def cut_off(text: str) -> str:
        calls.append(text)
        raise KeyboardInterrupt

    tool = Tool("save", cut_off, parameters=writer([]).parameters, effect="write", idempotent=True)
    agent = Agent([tool], script(SAVE), policy=FREE, **kept[0])
    with pytest.raises(KeyboardInterrupt):
        agent.run("goal", run_id=RUN_ID)
    agent.stop(RUN_ID, "enough")
    ((run_id, state, error),) = recover(
        kept[1]["store"], lambda: Agent([tool], script(), **kept[1])
    )
    assert (run_id, error, len(calls)) == (RUN_ID, None, 1)
    assert state is not None
    assert stopped(state, "enough")
    assert [step.outcome.value for step in state.steps] == ["interrupted"]
    assert verify_audit(kept[1]["audit"].read(), heads={RUN_ID: state.audit_head}) == []


def test_a_run_that_was_taken_is_not_taken_for_one_that_is_to_stop() -> None:
    """Two sessions on one store: a refused commit is a request to stop only if nothing else is."""
    store, audit = MemoryStore(), MemoryAuditSink()
    calls: list[str] = []

    def planner(state: RunState, tools: Any) -> Decision:
        other = Agent([], lambda state, tools: Decision.finish("taken"), store=store, audit=audit)
        other.stop(state.run_id, "enough")
        assert other.resume(state.run_id).stop_reason == "cancelled"
        return SAVE

    agent = Agent([writer(calls)], planner, policy=FREE, store=store, audit=audit)
    with pytest.raises(StateError):
        agent.run("goal")
    assert calls == []


@pytest.mark.parametrize("policy", [FREE, WRITES], ids=["cut off", "paused"])
def test_a_store_that_fails_is_told_and_not_asked_for_ever(policy: Any) -> None:
    class Full(MemoryStore):
        full = False

        def commit(self, *args: Any, **options: Any) -> None:
            if self.full:
                raise StateError("the disk is full")
            super().commit(*args, **options)

    def cut_off(text: str) -> str:
        raise KeyboardInterrupt

    store = Full()
    tool = Tool("save", cut_off, parameters=writer([]).parameters, effect="write")
    agent = Agent([tool], script(SAVE), policy=policy, store=store)
    with contextlib.suppress(KeyboardInterrupt):
        agent.run("goal", run_id=RUN_ID)
    store.full = True
    with pytest.raises(StateError, match="the disk is full"):
        agent.stop(RUN_ID)


@pytest.mark.parametrize(
    ("arguments", "error", "named"),
    [
        ((3,), TypeError, "run_id"),
        (("../x",), ValueError, "run_id"),
        ((RUN_ID, 3), TypeError, "reason"),
        ((RUN_ID, "\ud800"), ValueError, "reason"),
        ((RUN_ID,), StateError, "neither drives nor stores"),
    ],
)
def test_what_cannot_be_stopped_is_named(arguments: Any, error: Any, named: str) -> None:
    for options in ({}, {"store": MemoryStore()}):
        with pytest.raises(error, match=named):
            Agent([], script(), **options).stop(*arguments)
