"""Going on with all runs that were cut off."""

from __future__ import annotations

from typing import Any

import pytest
from support import FREE, WRITES, script, writer

from scikitplot.agent import Agent, Decision, MemoryAuditSink, MemoryStore, recover, verify_audit

SAVE = Decision.act("save", {"text": "x"})


def cut_off_runs(count: int) -> tuple[MemoryStore, MemoryAuditSink, list[str]]:
    store, audit, calls = MemoryStore(), MemoryAuditSink(), []

    def planner(state: Any, tools: Any) -> Decision:
        if state.steps:
            raise KeyboardInterrupt
        return SAVE

    agent = Agent([writer(calls)], planner, policy=FREE, store=store, audit=audit)
    for number in range(count):
        with pytest.raises(KeyboardInterrupt):
            agent.run(f"goal {number}")
    return store, audit, calls


def test_each_run_that_was_cut_off_goes_on_to_its_end() -> None:
    store, audit, calls = cut_off_runs(3)
    waits = Agent([writer(calls)], script(SAVE), policy=WRITES, store=store, audit=audit)
    waits.run("waits for a person")
    ended = Agent([], script(), store=store, audit=audit).run("ended")
    made: list[Agent] = []

    def make_agent() -> Agent:
        made.append(Agent([writer(calls)], script(SAVE), policy=FREE, store=store, audit=audit))
        return made[-1]

    recovered = list(recover(store, make_agent))
    assert [result.error for result in recovered] == [None] * 3
    assert {result.state.status.value for result in recovered if result.state} == {"completed"}
    assert len(made) == 3
    assert calls == ["x"] * 3, "what was executed is not executed again"
    assert len(store.runs("awaiting_approval")) == 1
    assert store.load(ended.run_id) is not None
    assert list(recover(store, make_agent)) == []
    assert verify_audit(audit.records) == []


def test_a_run_that_cannot_be_resumed_does_not_keep_the_others_from_it() -> None:
    store, audit, calls = cut_off_runs(3)
    second = store.runs()[1]
    store._runs[second].head = "{}"
    store.runs = lambda status=None: list(store._runs)  # type: ignore[method-assign]

    def make_agent() -> Agent:
        return Agent([writer(calls)], script(SAVE), policy=FREE, store=store, audit=audit)

    found = {result.run_id: result for result in recover(store, make_agent)}
    assert "answer is missing" in str(found[second].error)
    assert found[second].state is None
    assert sum(result.state is not None for result in found.values()) == 2


def test_what_makes_no_agent_is_named() -> None:
    store, _, _ = cut_off_runs(1)
    with pytest.raises(TypeError, match="make_agent"):
        recover(store, 3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="make_agent"):
        list(recover(store, lambda: 3))  # type: ignore[arg-type, return-value]
