"""How a tool is called: its context, its timeout, and what it may know of the call."""

from __future__ import annotations

import contextvars
import subprocess
import sys
import threading
import time
from typing import Any

import pytest
from support import FREE, script, writer

from scikitplot.agent import Agent, Decision, MemoryStore, Tool, current_call, verify_audit

GET = Decision.act("get")


@pytest.mark.parametrize("timeout", [None, 60.0])
def test_a_tool_sees_the_caller_s_context_and_leaves_nothing_in_it(timeout: float | None) -> None:
    tenant: contextvars.ContextVar[str] = contextvars.ContextVar("tenant")
    seen: list[str] = []

    def tool() -> None:
        seen.append(tenant.get())
        tenant.set("the tool's own")

    tenant.set("t1")
    Agent([Tool("get", tool, timeout=timeout)], script(GET, GET)).run("goal")
    assert seen == ["t1", "t1"]
    assert tenant.get() == "t1"
    with pytest.raises(RuntimeError, match="inside a tool"):
        current_call()


def test_the_key_of_a_call_differs_for_every_step_and_run() -> None:
    keys: list[str] = []
    tool = Tool("get", lambda: keys.append(current_call().idempotency_key))
    agent = Agent([tool], script(GET, GET))
    agent.run("goal")
    agent.run("goal")
    assert len(set(keys)) == len(keys) == 4


@pytest.mark.parametrize("effect", ["read", "write"])
def test_a_call_that_takes_too_long_fails_its_step_and_what_comes_later_is_dropped(
    effect: str,
) -> None:
    go, late = threading.Event(), threading.Event()

    def slow() -> str:
        deadline = current_call().deadline
        assert deadline is not None
        assert deadline > time.monotonic() - 60
        go.wait(60)
        late.set()
        return "too late"

    tools = [Tool("get", slow, timeout=0.05, effect=effect), writer([])]
    store = MemoryStore()
    save = Decision.act("save", {"text": "x"})
    agent = Agent(tools, script(GET, save), policy=FREE, store=store)
    state = agent.run("goal")
    first, second = state.steps[0], state.steps[1]
    assert (first.outcome.value, first.code, first.attempts) == ("failed", "tool_timeout", 1)
    assert ("unknown" in first.error) == (effect == "write")
    assert second.outcome.value == "executed"
    before = store.load(state.run_id), len(agent.audit.records)
    go.set()
    assert late.wait(60)
    assert (store.load(state.run_id), len(agent.audit.records)) == before
    assert verify_audit(agent.audit.records) == []


def test_hung_calls_stop_no_other_and_the_process_can_exit() -> None:
    code = """
import time
from scikitplot.agent import *
def planner(state, tools):
    if len(state.steps) < 30:
        return Decision.act('hang')
    return Decision.finish(state.steps[-1].result) if len(state.steps) > 30 else Decision.act('ok')
tools = [Tool('hang', lambda: time.sleep(600), timeout=0.01), Tool('ok', lambda: 'ok', timeout=60)]
print(Agent(tools, planner, limits=Limits(max_steps=40)).run('goal').answer)
"""
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert ran.stdout.strip() == "ok"


def test_an_agent_holds_no_run_so_threads_may_share_it() -> None:
    def planner(state: Any, tools: Any) -> Decision:
        return Decision.finish(state.goal) if state.steps else GET

    agent = Agent([Tool("get", lambda: 0)], planner)
    answers: dict[str, Any] = {}

    def run(goal: str) -> None:
        answers[goal] = agent.run(goal).answer

    threads = [threading.Thread(target=run, args=[f"goal {number}"]) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == {goal: goal for goal in answers}
    assert len(answers) == 20
    assert verify_audit(agent.audit.records) == []
