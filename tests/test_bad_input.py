"""What is wrong from outside: the run ends or the step fails; nothing raises or hangs."""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import os
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest
from support import FREE, TEXT, WRITES, approve, script, writer

from scikitplot.agent import (
    Agent,
    Approval,
    Decision,
    JsonlAuditSink,
    Limits,
    MemoryAuditSink,
    MemoryStore,
    Policy,
    RunState,
    SchemaError,
    Tool,
    ToolError,
    Toolset,
    Usage,
    current_call,
    verify_audit,
)


def nested(depth: int) -> Any:
    value: Any = 0
    for _ in range(depth):
        value = [value]
    return value


def cycle() -> Any:
    value: list[Any] = []
    value.append(value)
    return value


def bomb() -> Any:
    """A small object that is huge as text: each level names the one below ten times."""
    value: Any = "x"
    for _ in range(60):
        value = [value] * 10
    return value


class Sub(str):
    __slots__ = ()


HOSTILE = {
    "NaN": math.nan,
    "infinity": -math.inf,
    "a set": {1},
    "a cycle": cycle(),
    "a lone surrogate": "\ud800",
    "a lone surrogate in a key": {"\udfff": 1},
    "10 MB": "x" * 10_000_000,
    "depth of 10,000": nested(10_000),
    "65 levels": nested(65),
    "a bomb": bomb(),
    "an object": object(),
    "bytes": b"x",
    "a number as key": {1: 1},
    "a huge integer": 10**10_000,
    "a subclass": Sub("x"),
    "a tuple": (1, 2),
    "a generator": (i for i in ()),
    "a range": range(3),
}
hostile = pytest.mark.parametrize("value", list(HOSTILE.values()), ids=list(HOSTILE))


def intact(agent: Agent, state: RunState) -> None:
    """The trail and the saved state can still be written and read."""
    assert verify_audit(agent.audit.records, heads={state.run_id: state.audit_head}) == []
    assert RunState.from_json(state.to_json()) == state


# The planner


@hostile
def test_hostile_arguments_are_denied_with_their_place(value: Any) -> None:
    calls: list[Any] = []
    agent = Agent([writer(calls)], script(Decision.act("save", {"text": value})), policy=FREE)
    state = agent.run("goal")
    assert state.status.value == "completed"
    step = state.steps[0]
    assert (step.outcome.value, step.code) == ("denied", "invalid_arguments")
    assert step.error.startswith("arguments/text")
    assert len(step.error) < 500
    assert calls == []
    intact(agent, state)


@hostile
def test_a_hostile_answer_fails_the_run(value: Any) -> None:
    agent = Agent([], lambda state, tools: Decision.finish({"a": value}))
    state = agent.run("goal")
    if isinstance(value, tuple):
        assert state.answer == {"a": list(value)}
        return
    assert (state.status.value, state.stop_reason) == ("failed", "invalid_decision")
    assert state.error.startswith("the answer/a")
    intact(agent, state)


@pytest.mark.parametrize(
    "returned",
    [None, "act", ("act", "save"), {"tool": "save"}, True, Decision, object()],
)
def test_what_is_no_decision_fails_the_run(returned: Any) -> None:
    agent = Agent([], lambda state, tools: returned)
    state = agent.run("goal")
    assert (state.status.value, state.stop_reason) == ("failed", "invalid_decision")
    assert "Decision" in state.error
    intact(agent, state)


class Nasty(Exception):
    def __str__(self) -> str:
        raise ValueError("s3cret")

    __repr__ = __str__


@pytest.mark.parametrize(
    "error",
    [
        ValueError("s3cret"),
        RecursionError("s3cret"),
        StopIteration("s3cret"),
        Nasty(),
        MemoryError(),
    ],
)
def test_a_planner_that_raises_fails_the_run(error: Exception) -> None:
    def planner(state: Any, tools: Any) -> Decision:
        raise error

    agent = Agent([], planner)
    state = agent.run("goal")
    assert (state.status.value, state.stop_reason) == ("failed", "planner_failed")
    assert state.error == f"the planner raised {type(error).__name__}"
    intact(agent, state)


def test_the_name_of_an_exception_s_type_is_judged_too() -> None:
    hostile_type = type("s3cret name" * 100, (Exception,), {})

    def planner(state: Any, tools: Any) -> Decision:
        raise hostile_type

    agent = Agent([], planner)
    state = agent.run("goal")
    assert state.error == "the planner raised object"
    intact(agent, state)


STEP = Agent([], script(Decision.act("no"))).run("goal").steps[0]
REQUEST: Any = (
    Agent([writer([])], script(Decision.act("save", {"text": "x"})), policy=WRITES)
    .run("goal")
    .pending
)


@pytest.mark.parametrize(
    ("make", "error", "named"),
    [
        (lambda: Decision.act(3), TypeError, "tool"),
        (lambda: Decision.act("x" * 257), ValueError, "tool"),
        (lambda: Decision.act("\ud800"), ValueError, "tool"),
        (lambda: Decision.act("x", [1]), TypeError, "arguments"),
        (lambda: Decision.act("x", reason=3), TypeError, "reason"),
        (lambda: Decision.act("x", reason="\ud800"), ValueError, "reason"),
        (lambda: Decision.act("x", reason="x" * 10_000_000), ValueError, "reason"),
        (lambda: Decision.act("x", usage=3), TypeError, "usage"),
        (lambda: Decision.finish("x", usage={"tokens": 3}), TypeError, "usage"),
        (lambda: Decision.act("x", repairs="text"), TypeError, "repairs"),
        (lambda: Decision.act("x", repairs=3), TypeError, "repairs"),
        (lambda: Decision.act("x", repairs=[3]), TypeError, "repairs"),
        (lambda: Decision.act("x", repairs=["\ud800"]), ValueError, "repairs"),
        (lambda: Decision.act("x", repairs=["x" * 201]), ValueError, "repairs"),
        (lambda: Decision.act("x", repairs=itertools.repeat("x")), ValueError, "repairs"),
        (lambda: Decision.finish("x", extra={1}), ValueError, "extra"),
        (lambda: Decision.finish("x", extra={"a": math.nan}), ValueError, "extra/a"),
        (lambda: Decision.finish("x", extra="x" * 1_000_000), ValueError, "extra"),
        (lambda: Decision.act("x", extra="\ud800"), ValueError, "extra"),
        (lambda: Decision(), TypeError, "Decision.act"),
        (lambda: Usage(3, cached_tokens=True), TypeError, "cached_tokens"),
        (lambda: Usage(3, cached_tokens=-1), ValueError, "cached_tokens"),
        (lambda: Usage(3, cached_tokens=4), ValueError, "cached_tokens"),
        (lambda: Usage(tokens=True), TypeError, "tokens"),
        (lambda: Usage(tokens=-1), ValueError, "tokens"),
        (lambda: Usage(tokens=1.0), TypeError, "tokens"),
        (lambda: Usage(cost=math.nan), ValueError, "cost"),
        (lambda: Usage(cost=-0.5), ValueError, "cost"),
        (lambda: Usage(cost=math.inf), ValueError, "cost"),
        (lambda: Usage(cost=10**400), ValueError, "cost"),
        (lambda: Usage(cost=True), TypeError, "cost"),
        (lambda: Limits(max_steps=True), TypeError, "max_steps"),
        (lambda: Limits(max_steps=0), ValueError, "max_steps"),
        (lambda: Limits(max_steps=-1), ValueError, "max_steps"),
        (lambda: Limits(max_steps=None), TypeError, "max_steps"),
        (lambda: Limits(max_steps=1.5), TypeError, "max_steps"),
        (lambda: Limits(max_tool_calls=-1), ValueError, "max_tool_calls"),
        (lambda: Limits(max_cost="3"), TypeError, "max_cost"),
        (lambda: Limits(max_cost=math.nan), ValueError, "max_cost"),
        (lambda: Limits(max_tokens=2.0), TypeError, "max_tokens"),
        (lambda: Limits(max_seconds=-1), ValueError, "max_seconds"),
        (lambda: Limits(max_repeats=True), TypeError, "max_repeats"),
        (lambda: Limits(max_result_bytes=0), ValueError, "max_result_bytes"),
        (lambda: Limits(max_result_bytes=10**9), ValueError, "max_result_bytes"),
        (lambda: Policy(allow_effects="read"), TypeError, "allow_effects"),
        (lambda: Policy(allow_effects=["reed"]), ValueError, "allow_effects"),
        (lambda: Policy(allow_effects=[3]), TypeError, "allow_effects"),
        (lambda: Policy(granted_scopes="docs:read"), TypeError, "granted_scopes"),
        (lambda: Policy(granted_scopes=[3]), TypeError, "granted_scopes"),
        (lambda: Policy(allow_tools=3), TypeError, "allow_tools"),
        (lambda: Policy(deny_tools=None), TypeError, "deny_tools"),
        (lambda: Policy(approval_tools=[""]), ValueError, "approval_tools"),
        (lambda: Policy().allows_effect("reed"), ValueError, "effect"),
        (lambda: Approval("x", True, "ann"), ValueError, "digest"),
        (lambda: Approval(3, True, "ann"), TypeError, "digest"),
        (lambda: Approval("A" * 64, True, "ann"), ValueError, "digest"),
        (lambda: Approval("a" * 64 + "\n", True, "ann"), ValueError, "digest"),
        (lambda: Approval("a" * 64, 1, "ann"), TypeError, "granted"),
        (lambda: Approval("a" * 64, "yes", "ann"), TypeError, "granted"),
        (lambda: Approval("a" * 64, None, "ann"), TypeError, "granted"),
        (lambda: Approval("a" * 64, True, ""), ValueError, "approver"),
        (lambda: Approval("a" * 64, True, 3), TypeError, "approver"),
        (lambda: Approval("a" * 64, True, "\ud800"), ValueError, "approver"),
        (lambda: Approval("a" * 64, True, "ann", reason=None), TypeError, "reason"),
        (lambda: replace(REQUEST, digest="x"), ValueError, "digest"),
        (lambda: replace(REQUEST, step="1"), TypeError, "step"),
        (lambda: replace(REQUEST, arguments=None), TypeError, "arguments"),
        (lambda: replace(REQUEST, effect="write"), TypeError, "effect"),
        (lambda: replace(STEP, index=True), TypeError, "index"),
        (lambda: replace(STEP, decision=None), TypeError, "decision"),
        (lambda: replace(STEP, outcome="executed"), TypeError, "outcome"),
        (lambda: replace(STEP, error=3), TypeError, "error"),
        (lambda: replace(STEP, seconds=None), TypeError, "seconds"),
        (lambda: ToolError(3), TypeError, "message"),
        (lambda: RunState(), TypeError, "from_json"),
    ],
)
def test_a_value_checks_itself_when_it_is_made(
    make: Any, error: type[Exception], named: str
) -> None:
    with pytest.raises(error, match=named):
        make()


# Tools


def two(a: int, b: int = 0) -> int:
    return a + b


PAIR = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
    "required": ["a"],
}


@pytest.mark.parametrize(
    ("make", "error", "named"),
    [
        (lambda: Tool(3, two), TypeError, "name"),
        (lambda: Tool("", two), ValueError, "name"),
        (lambda: Tool("a b", two), ValueError, "name"),
        (lambda: Tool("x" * 65, two), ValueError, "name"),
        (lambda: Tool("é", two), ValueError, "name"),
        (lambda: Tool("a\n", two), ValueError, "name"),
        (lambda: Tool("t", 3), TypeError, "func"),
        (lambda: Tool("t", two, parameters=[]), TypeError, "parameters"),
        (lambda: Tool("t", two, parameters={"type": "string"}), SchemaError, "type"),
        (lambda: Tool("t", two, parameters={}), SchemaError, "type"),
        (
            lambda: Tool("t", two, parameters={**PAIR, "required": {"a"}}),
            ValueError,
            "parameters/required",
        ),
        (lambda: Tool("t", two, parameters={**PAIR, "typ": 1}), SchemaError, "typ"),
        (lambda: Tool("t", two), ValueError, "'a'"),
        (lambda: Tool("t", two, parameters={"type": "object"}), ValueError, "'a'"),
        (lambda: Tool("t", two, parameters={**PAIR, "required": []}), ValueError, "'a'"),
        (lambda: Tool("t", lambda a: a, parameters=PAIR), ValueError, "'b'"),
        (lambda: Tool("t", lambda a, /: a, parameters=PAIR), ValueError, "by keyword"),
        (lambda: Tool("t", lambda: 0, description=3), TypeError, "description"),
        (lambda: Tool("t", lambda: 0, description="\ud800"), ValueError, "description"),
        (lambda: Tool("t", lambda: 0, effect="reed"), ValueError, "effect"),
        (lambda: Tool("t", lambda: 0, effect=None), TypeError, "effect"),
        (lambda: Tool("t", lambda: 0, scopes="docs"), TypeError, "scopes"),
        (lambda: Tool("t", lambda: 0, scopes=[3]), TypeError, "scopes"),
        (lambda: Tool("t", lambda: 0, cost=-1), ValueError, "cost"),
        (lambda: Tool("t", lambda: 0, cost=math.nan), ValueError, "cost"),
        (lambda: Tool("t", lambda: 0, cost=True), TypeError, "cost"),
        (lambda: Tool("t", lambda: 0, idempotent=1), TypeError, "idempotent"),
        (lambda: Tool("t", lambda: 0, timeout=0), ValueError, "timeout"),
        (lambda: Tool("t", lambda: 0, timeout="1"), TypeError, "timeout"),
        (lambda: Toolset("tools"), TypeError, "tools"),
        (lambda: Toolset([two]), TypeError, "tools"),
        (lambda: Toolset([Tool("t", lambda: 0), Tool("t", lambda: 1)]), ValueError, "'t'"),
        (lambda: Agent([], 3), TypeError, "planner"),
        (lambda: Agent(3, script()), TypeError, "tools"),
        (lambda: Agent([], script(), policy={}), TypeError, "policy"),
        (lambda: Agent([], script(), limits=3), TypeError, "limits"),
        (lambda: Agent([], script(), approver=True), TypeError, "approver"),
        (lambda: Agent([], script(), done="yes"), TypeError, "done"),
        (lambda: Agent([], script(), audit=[]), TypeError, "audit"),
        (lambda: Agent([], script(), store={}), TypeError, "store"),
        (lambda: Agent([], script(), clock=3.0), TypeError, "clock"),
        (lambda: Agent([], script(), now=3.0), TypeError, "now"),
    ],
)
def test_a_tool_or_an_agent_checks_itself_when_it_is_made(
    make: Any, error: type[Exception], named: str
) -> None:
    with pytest.raises(error, match=named):
        make()


@hostile
def test_a_hostile_result_fails_its_step_and_the_run_goes_on(value: Any) -> None:
    agent = Agent([Tool("get", lambda: {"rows": [value]})], script(Decision.act("get")))
    state = agent.run("goal")
    assert state.status.value == "completed"
    step = state.steps[0]
    if isinstance(value, tuple):  # the one thing that is converted
        assert step.result == {"rows": [list(value)]}
        return
    code = "result_too_large" if isinstance(value, str) and len(value) > 10**6 else "invalid_result"
    assert step.outcome.value == "failed"
    assert step.code in (code, "result_too_large")
    assert step.result is None
    assert len(step.error) < 500
    intact(agent, state)


def test_the_place_and_the_type_of_a_wrong_result_are_told_and_its_value_is_not() -> None:
    agent = Agent([Tool("get", lambda: {"a/b": [0, {"s3cret"}]})], script(Decision.act("get")))
    step = agent.run("goal").steps[0]
    assert step.error == "the result/a~1b/1: a set is no JSON value"


def test_a_result_over_the_limit_is_told_with_both_sizes() -> None:
    limits = Limits(max_result_bytes=100)
    for text, code in (("x" * 98, None), ("x" * 99, "result_too_large"), ("é" * 49, None)):
        agent = Agent(
            [Tool("get", lambda text=text: text)], script(Decision.act("get")), limits=limits
        )
        step = agent.run("goal").steps[0]
        assert step.code == code
    agent = Agent([Tool("get", lambda: "é" * 50)], script(Decision.act("get")), limits=limits)
    assert agent.run("goal").steps[0].error == (
        "the result is too large: 102 bytes of JSON, 100 are allowed; max_result_bytes is 100"
    )


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ValueError("s3cret"), "tool_failed"),
        (StopIteration(), "tool_failed"),
        (Nasty(), "tool_failed"),
        (ToolError("said"), "tool_error"),
        (ToolError("\udcff" + "x" * 10_000), "tool_error"),
    ],
)
def test_a_tool_that_raises_fails_its_step_and_the_run_goes_on(error: Exception, code: str) -> None:
    def tool() -> None:
        raise error

    agent = Agent([Tool("get", tool)], script(Decision.act("get")))
    state = agent.run("goal")
    step = state.steps[0]
    assert (state.status.value, step.outcome.value, step.code) == ("completed", "failed", code)
    assert "s3cret" not in step.error
    assert len(step.error) < 2_100
    intact(agent, state)


def test_arguments_that_the_function_cannot_take_are_denied_and_not_dropped() -> None:
    calls: list[Any] = []
    open_schema = {
        "type": "object",
        "properties": {"text": {"type": "string"}},
        "required": ["text"],
    }
    tool = Tool("save", lambda text: calls.append(text), parameters=open_schema)
    agent = Agent([tool], script(Decision.act("save", {"text": "a", "txet": "b"})))
    step = agent.run("goal").steps[0]
    assert step.code == "invalid_arguments"
    assert "/txet" in step.error
    assert "'text'" in step.error
    assert calls == []


def test_an_argument_that_the_function_must_have_is_asked_for_wherever_the_schema_says_so() -> None:
    calls: list[Any] = []
    either = {
        "type": "object",
        "properties": {"text": {"type": "string"}, "path": {"type": "string"}},
        "anyOf": [{"required": ["text"]}, {"required": ["path"]}],
        "additionalProperties": False,
    }
    tool = Tool("save", lambda text, path="": calls.append((text, path)), parameters=either)
    decisions = [Decision.act("save", {"path": "b"}), Decision.act("save", {"text": "a"})]
    state = Agent([tool], script(*decisions)).run("goal")
    assert [step.code for step in state.steps] == ["invalid_arguments", None, None]
    assert state.steps[0].error == "argument 'text' is missing"
    assert calls == [("a", "")]


def test_arguments_that_cannot_be_judged_are_denied() -> None:
    """However little of the stack the caller left, a run ends without an exception."""
    recursive = {
        "type": "object",
        "properties": {"in": {"$ref": "#"}},
        "required": [],
        "additionalProperties": False,
    }
    tool = Tool("nest", lambda **given: 0, parameters=recursive)
    arguments: dict[str, Any] = {}
    for _ in range(60):
        arguments = {"in": arguments}
    outcomes = set()

    def deep(frames: int) -> None:
        if frames:
            deep(frames - 1)
        elif tool.problems(arguments):
            outcomes.add("denied")
        else:
            outcomes.add("judged")

    limit = sys.getrecursionlimit()
    for left in range(60, 400, 20):
        with contextlib.suppress(RecursionError):  # where not even the call itself fits
            deep(limit - left)
    assert outcomes == {"denied", "judged"}


# The approver, done, and the clocks


def raises(*anything: Any) -> Any:
    raise ValueError("s3cret")


@pytest.mark.parametrize(
    "answer",
    [True, 1, "yes", {"granted": True}, object(), Approval("0" * 64, True, "ann"), "raises"],
)
def test_an_approver_that_raises_or_answers_nonsense_pauses_the_run(answer: Any) -> None:
    calls: list[str] = []
    approver = raises if answer == "raises" else lambda asked: answer
    agent = Agent(
        [writer(calls)],
        script(Decision.act("save", {"text": "x"})),
        policy=WRITES,
        approver=approver,
        store=MemoryStore(),
    )
    state = agent.run("goal")
    assert state.status.value == "awaiting_approval"
    assert calls == []
    assert agent.audit.records[-1].event == "approval_ignored"
    intact(agent, state)
    agent.approver = None
    assert agent.resume(state.run_id, approvals=approve(state)).status.value == "completed"
    assert calls == ["x"]


@pytest.mark.parametrize("verdict", [None, 1, 0.0, [], {"ok": True}, raises])
def test_a_done_that_raises_or_answers_nonsense_fails_the_run(verdict: Any) -> None:
    done = verdict if callable(verdict) else lambda answer, state: verdict
    agent = Agent([], script(), done=done)
    state = agent.run("goal")
    assert (state.status.value, state.stop_reason) == ("failed", "done_failed")
    assert state.answer is None
    assert state.steps[0].outcome.value == "rejected"
    intact(agent, state)


@pytest.mark.parametrize("reason", ["", "short", "\ud800" + "x" * 100_000])
def test_a_reason_of_done_is_read_by_the_planner(reason: str) -> None:
    def planner(state: RunState, tools: Any) -> Decision:
        return Decision.finish(state.steps[-1].error if state.steps else "first")

    agent = Agent([], planner, done=lambda answer, state: answer != "first" or reason)
    state = agent.run("goal")
    assert state.status.value == "completed"
    assert state.answer.startswith(reason[:5].replace("\ud800", "?"))
    assert len(state.answer) < 2_100
    intact(agent, state)


class Stops:
    """A clock that works for a while."""

    def __init__(self, *readings: Any) -> None:
        self.readings = list(readings)

    def __call__(self) -> Any:
        reading = self.readings.pop(0) if len(self.readings) > 1 else self.readings[0]
        if reading == "raises":
            raise ValueError("s3cret")
        return reading


@pytest.mark.parametrize("name", ["clock", "now"])
@pytest.mark.parametrize("working", [0, 1, 4])
@pytest.mark.parametrize("reading", ["raises", None, "3", True, math.nan, math.inf, 10**400, [1]])
def test_a_clock_that_raises_or_lies_fails_the_run(name: str, working: int, reading: Any) -> None:
    options: Any = {name: Stops(*[5.0] * working, reading)}
    agent = Agent([Tool("get", lambda: 0)], lambda state, tools: Decision.act("get"), **options)
    state = agent.run("goal")
    assert (state.status.value, state.stop_reason) == ("failed", "clock_failed")
    assert name in state.error
    assert "s3cret" not in state.error
    intact(agent, state)


def test_a_clock_that_runs_backwards_takes_no_time_back() -> None:
    agent = Agent(
        [Tool("get", lambda: 0)],
        lambda state, tools: Decision.act("get"),
        clock=Stops(*[float(100 - reading) for reading in range(100)]),
        now=Stops(*[float(100 - reading) for reading in range(100)]),
        limits=Limits(max_steps=3, max_seconds=10),
    )
    state = agent.run("goal")
    assert state.stop_reason == "max_steps"
    assert state.usage.seconds == 0
    assert all(step.seconds == 0 for step in state.steps)
    intact(agent, state)


def test_running_time_counts_over_sessions_and_waiting_does_not() -> None:
    time = [0.0]

    def planner(state: RunState, tools: Any) -> Decision:
        time[0] += 2
        return Decision.act("save", {"text": "x"})

    def approver(asked: Any) -> Any:
        time[0] += 1000
        return Approval(asked.digest, True, "ann") if asked.step else None

    def slow(text: str) -> None:
        time[0] += 3

    store, audit = MemoryStore(), MemoryAuditSink()
    agent = Agent(
        [Tool("save", slow, parameters=TEXT, effect="write")],
        planner,
        policy=WRITES,
        approver=approver,
        store=store,
        audit=audit,
        clock=lambda: time[0],
        limits=Limits(max_seconds=11),
    )
    paused = agent.run("goal")
    assert paused.usage.seconds == 2
    time[0] += 5000
    state = agent.resume(paused.run_id, approvals=approve(paused))
    assert state.stop_reason == "max_seconds"
    assert state.usage.seconds == 15
    assert [(step.started, step.seconds) for step in state.steps] == [(0, 5), (5, 5), (10, 5)]


# An interrupt is no outcome


@pytest.mark.parametrize("idempotent", [True, False])
@pytest.mark.parametrize("timeout", [None, 60.0])
def test_an_interrupt_in_a_tool_passes_on_and_the_run_resumes(
    idempotent: bool, timeout: float | None
) -> None:
    attempts: list[Any] = []

    def tool() -> str:
        attempts.append(current_call())
        if len(attempts) == 1:
            raise KeyboardInterrupt
        return "saved"

    store, audit = MemoryStore(), MemoryAuditSink()
    agent = Agent(
        [Tool("save", tool, effect="write", idempotent=idempotent, timeout=timeout)],
        script(Decision.act("save")),
        policy=FREE,
        store=store,
        audit=audit,
    )
    with pytest.raises(KeyboardInterrupt):
        agent.run("goal")
    (run_id,) = store.runs("running")
    saved = store.load(run_id)
    state = RunState.view(saved.head, saved.steps)
    assert state.in_flight.tool == "save"
    assert state.in_flight.attempt == 1
    assert not any(record.event == "tool_finished" for record in audit.records)
    state = agent.resume(run_id)
    step = state.steps[0]
    if idempotent:
        assert (step.outcome.value, step.attempts) == ("executed", 2)
        assert [call.attempt for call in attempts] == [1, 2]
        assert len({call.idempotency_key for call in attempts}) == 1
    else:
        assert (step.outcome.value, step.attempts) == ("interrupted", 1)
        assert "unknown" in step.error
    assert state.usage.tool_calls == len(attempts)


def test_an_interrupt_in_the_planner_loses_that_decision_alone() -> None:
    calls: list[str] = []
    asked: list[int] = []

    def planner(state: RunState, tools: Any) -> Decision:
        asked.append(1)
        if len(asked) in (2, 3, 4):
            raise KeyboardInterrupt
        return Decision.finish("end") if state.steps else Decision.act("save", {"text": "x"})

    store, audit = MemoryStore(), MemoryAuditSink()
    agent = Agent([writer(calls)], planner, policy=FREE, store=store, audit=audit)
    with pytest.raises(KeyboardInterrupt):
        agent.run("goal")
    (run_id,) = store.runs()
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            agent.resume(run_id)
    state = agent.resume(run_id)
    assert (state.status.value, calls) == ("completed", ["x"])
    assert state.usage.decisions == 2


def test_an_interrupt_while_a_person_is_asked_leaves_the_run_paused() -> None:
    def approver(asked: Any) -> Any:
        raise KeyboardInterrupt

    calls: list[str] = []
    store = MemoryStore()
    planner = script(Decision.act("save", {"text": "x"}))
    agent = Agent([writer(calls)], planner, policy=WRITES, store=store, approver=approver)
    with pytest.raises(KeyboardInterrupt):
        agent.run("goal")
    (run_id,) = store.runs("awaiting_approval")
    agent.approver = lambda asked: Approval(asked.digest, True, "ann")
    assert agent.resume(run_id).status.value == "completed"
    assert calls == ["x"]


def test_a_goal_with_any_text_is_written_the_same_whatever_the_locale(tmp_path: Any) -> None:
    code = (
        "import sys; from scikitplot.agent import *\n"
        "agent = Agent([], lambda s, t: Decision.finish(s.goal), audit=JsonlAuditSink(sys.argv[1]),"
        " now=lambda: 1.0, clock=lambda: 1.0)\n"
        "print(ascii(agent.run('gr\\u00fc\\u00dfe \\U0001f388 \\x00 \\u2028').answer))"
    )
    for encoding in ("C", "C.UTF-8"):
        ran = subprocess.run(
            [sys.executable, "-X", "utf8=0", "-c", code, str(tmp_path / encoding)],
            env={**os.environ, "LC_ALL": encoding},
            capture_output=True,
            text=True,
            check=True,
        )
        assert ran.stdout.strip() == ascii("grüße 🎈 \x00 \u2028")
        data = (tmp_path / encoding).read_bytes()
        assert "grüße 🎈 \\u0000 \u2028".encode() in data
        assert b"\r" not in data
        for record in JsonlAuditSink(tmp_path / encoding).read():
            assert json.loads(record.line)["digest"] == record.digest
