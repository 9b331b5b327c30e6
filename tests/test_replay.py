"""Recorded runs under another policy."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support import FREE, TEXT, WRITES, approve, script, writer

from scikitplot.agent import (
    Agent,
    Approval,
    AuditRecord,
    Decision,
    Flow,
    JsonlAuditSink,
    Limits,
    MemoryAuditSink,
    MemoryStore,
    Policy,
    Replay,
    ReplayChange,
    ReplayedRun,
    RunState,
    SqliteStore,
    StateError,
    Tool,
    Usage,
    replay,
)

SAVE = Decision.act("save", {"text": "x"})
READ = Decision.act("read", {"text": "x"})


def tools() -> list[Tool]:
    """Tools that may run while a run is made, and must not while it is judged again."""
    return [
        writer([], cost=0.1, idempotent=True),
        writer([], "read", effect="read", scopes=["s"], cost=0.2),
    ]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    with SqliteStore(tmp_path / "runs.db") as opened:
        yield opened


def ran(
    store: SqliteStore,
    *decisions: Decision,
    policy: Policy = FREE,
    limits: Limits | None = None,
    answer: Callable[[Any], Approval | None] | None = None,
    **options: Any,
) -> RunState:
    agent = Agent(
        tools(),
        script(*decisions),
        policy=policy,
        limits=limits,
        approver=answer,
        store=store,
        audit=store,
        **options,
    )
    return agent.run("goal")


def yes(request: Any) -> Approval:
    return Approval(request.digest, granted=True, approver="ann")


def no(request: Any) -> Approval:
    return Approval(request.digest, granted=False, approver="ann", reason="not now")


def only(replayed: Replay) -> ReplayedRun:
    [run] = replayed
    return run


def told(run: ReplayedRun) -> list[tuple[int, str, str | None, str | None, str | None]]:
    """Return of each step that changes its index, the change and the new gate, code and kind."""
    assert run.error is None
    return [
        (step.index, step.change.value, step.after.gate, step.after.code, step.after.kind)
        for step in run.changes
        if step.change is not None
    ]


def changes(replayed: Replay) -> list[str]:
    return [change for _, change, *_ in told(only(replayed))]


# What changes


@pytest.mark.parametrize(
    ("policy", "gate", "code"),
    [
        (Policy(["read", "write"], deny_tools=["save"]), "permissions", "tool_denied"),
        (Policy(["read"]), "permissions", "effect_denied"),
        (
            Policy(["write"], arguments={"save": {"properties": {"text": {"const": "y"}}}}),
            "permissions",
            "arguments_denied",
        ),
    ],
)
def test_a_call_that_a_gate_would_deny_now_is_named_with_the_gate_and_the_code(
    store: SqliteStore, policy: Policy, gate: str, code: str
) -> None:
    ran(store, SAVE)
    run = only(replay(store, tools=tools(), policy=policy))
    assert told(run) == [(0, "denied", gate, code, "denied")]
    assert run.steps[0].before.kind == "allowed"


def test_a_scope_that_is_not_granted_any_more_denies(store: SqliteStore) -> None:
    ran(store, READ, policy=Policy(granted_scopes=["s"]))
    run = only(replay(store, tools=tools(), policy=Policy()))
    assert told(run) == [(0, "denied", "scope", "scope_denied", "denied")]


def test_tools_that_changed_deny_at_validation(store: SqliteStore) -> None:
    ran(store, SAVE, Decision.act("gone"), Decision.act("save", {"text": 3}))
    strict = {**TEXT, "properties": {"text": {"type": "string", "minLength": 2}}}
    narrow = [Tool("save", lambda text: text, parameters=strict, effect="write")]
    run = only(replay(store, tools=narrow, policy=FREE))
    assert told(run) == [(0, "denied", "validation", "invalid_arguments", "denied")]
    gone = only(replay(store, tools=[], policy=FREE))
    assert [change[1:4] for change in told(gone)] == [
        ("denied", "validation", "unknown_tool"),
        ("denied_otherwise", "validation", "unknown_tool"),
    ]


def test_a_call_that_was_denied_and_would_run_is_allowed(store: SqliteStore) -> None:
    ran(store, SAVE, READ, policy=Policy())
    policy = Policy(["read", "write"], granted_scopes=["s"], approval_effects=[])
    run = only(replay(store, tools=tools(), policy=policy))
    assert [change[:2] for change in told(run)] == [(0, "allowed"), (1, "allowed")]
    assert [(step.before.gate, step.before.code) for step in run.steps] == [
        ("permissions", "effect_denied"),
        ("scope", "scope_denied"),
    ]


def test_a_denial_with_another_code_is_told_apart(store: SqliteStore) -> None:
    ran(store, SAVE, policy=Policy())
    policy = Policy(["write"], deny_tools=["save"])
    assert changes(replay(store, tools=tools(), policy=policy)) == ["denied_otherwise"]


def test_a_call_that_would_ask_a_person_and_one_that_would_not_any_more(store: SqliteStore) -> None:
    first = ran(store, SAVE)
    second = ran(store, SAVE, policy=WRITES, answer=yes)
    asked = {run.run_id: told(run) for run in replay(store, tools=tools(), policy=WRITES)}
    assert asked == {first.run_id: [(0, "asks", None, None, "asks")], second.run_id: []}
    free = {run.run_id: told(run) for run in replay(store, tools=tools(), policy=FREE)}
    assert free == {
        first.run_id: [],
        second.run_id: [(0, "no_longer_asks", None, None, "allowed")],
    }


def test_a_refused_call_that_asks_nobody_now_would_run(store: SqliteStore) -> None:
    ran(store, SAVE, policy=WRITES, answer=no)
    assert changes(replay(store, tools=tools(), policy=WRITES)) == []
    assert changes(replay(store, tools=tools(), policy=FREE)) == ["no_longer_asks"]


# Recorded answers


def test_a_recorded_grant_counts_only_as_far_as_the_new_policy_lets_it(store: SqliteStore) -> None:
    ran(store, SAVE, policy=WRITES, answer=yes)

    def under(**more: Any) -> list[str]:
        policy = Policy(["read", "write"], **more)
        return changes(replay(store, tools=tools(), policy=policy))

    assert under(approvers=["ann", "bob"]) == []
    assert under(approvers=["bob"]) == ["asks_again"]
    assert under(approvals_needed=2) == ["asks_again"]


def test_a_recorded_grant_counts_whatever_the_tools_definition_is_now(store: SqliteStore) -> None:
    ran(store, SAVE, policy=WRITES, answer=yes)
    described = [writer([], description="Saves."), tools()[1]]
    assert changes(replay(store, tools=described, policy=WRITES)) == []


def test_an_answer_that_came_too_late_for_the_new_policy_denies(store: SqliteStore) -> None:
    times = itertools.count()
    ran(store, SAVE, policy=WRITES, answer=yes, now=lambda: 10.0 * next(times))
    late = Policy(["write"], approval_seconds=1)
    run = only(replay(store, tools=tools(), policy=late))
    assert told(run) == [(0, "denied", "approval", "approval_expired", "denied")]
    in_time = Policy(["write"], approval_seconds=1_000)
    assert changes(replay(store, tools=tools(), policy=in_time)) == []


def test_an_answer_that_was_too_late_may_be_in_time_now(store: SqliteStore) -> None:
    times = itertools.count()
    late = Policy(["write"], approval_seconds=1)
    state = ran(store, SAVE, policy=late, answer=yes, now=lambda: 10.0 * next(times))
    assert state.steps[0].code == "approval_expired"
    assert changes(replay(store, tools=tools(), policy=late)) == []
    run = only(replay(store, tools=tools(), policy=WRITES))
    assert told(run) == [(0, "allowed", None, None, "granted")]


def test_a_call_that_waits_is_judged_with_the_answers_that_it_has(store: SqliteStore) -> None:
    two = Policy(["write"], approvals_needed=2)
    state = ran(store, SAVE, policy=two, answer=yes)
    assert state.pending is not None
    for source in (store, RunState.from_json(state.to_json())):
        assert changes(replay(source, tools=tools(), policy=two)) == []
        [(*_, kind)] = told(only(replay(source, tools=tools(), policy=WRITES)))
        assert kind == "granted"
        assert changes(replay(source, tools=tools(), policy=FREE)) == ["no_longer_asks"]
        assert changes(replay(source, tools=tools(), policy=Policy())) == ["denied"]


def test_the_time_of_a_request_that_waits_is_that_of_the_saved_run(store: SqliteStore) -> None:
    times = itertools.count()
    two = Policy(["write"], approvals_needed=2)
    state = ran(store, SAVE, policy=two, answer=yes, now=lambda: 10.0 * next(times))
    late = replay(state, tools=tools(), policy=Policy(["write"], approval_seconds=1))
    assert told(only(late)) == [(0, "denied", "approval", "approval_expired", "denied")]


def test_of_a_call_that_was_asked_for_twice_the_answers_to_the_last_request_count(
    store: SqliteStore,
) -> None:
    def agent(given: list[Tool], approver: str) -> Agent:
        return Agent(
            given,
            script(SAVE),
            policy=Policy(["write"], approvers=[approver]),
            approver=lambda request: Approval(request.digest, True, approver),
            store=store,
            audit=store,
        )

    state = agent(tools()[:1], "bob").resume(dead(store, agent(DEADLY, "ann")))
    assert state.steps[0].outcome.value == "executed"
    asked = [record.event for record in store.read()].count("approval_requested")
    assert asked == 2
    assert changes(replay(store, tools=tools(), policy=WRITES)) == []
    only_ann = Policy(["write"], approvers=["ann"])
    assert changes(replay(store, tools=tools(), policy=only_ann)) == ["asks_again"]


# Without a trail


def test_without_a_trail_it_is_said_that_a_person_may_have_been_asked(store: SqliteStore) -> None:
    ran(store, SAVE)
    state = ran(store, SAVE, policy=WRITES, answer=yes)
    alone = only(replay(state, tools=tools(), policy=WRITES))
    assert told(alone) == [(0, "may_ask", None, None, "asks")]
    assert alone.steps[0].before.kind == "passed"
    assert changes(replay(state, tools=tools(), policy=FREE)) == []
    assert changes(replay(state, tools=tools(), policy=Policy())) == ["denied"]
    for trail in (store, store.read(), list(store.read(state.run_id))):
        assert changes(replay(state, tools=tools(), policy=WRITES, trail=trail)) == []
        run = only(replay(state, tools=tools(), policy=WRITES, trail=store))
        assert run.steps[0].before.kind == "granted"


def test_without_a_trail_a_refusal_says_that_a_person_was_asked(store: SqliteStore) -> None:
    state = ran(store, SAVE, policy=WRITES, answer=no)
    assert changes(replay(state, tools=tools(), policy=WRITES)) == []
    assert changes(replay(state, tools=tools(), policy=FREE)) == ["no_longer_asks"]


def test_a_trail_may_be_kept_apart_from_the_store(tmp_path: Path) -> None:
    kept, trail = MemoryStore(), JsonlAuditSink(tmp_path / "trail.jsonl")
    agent = Agent(tools(), script(SAVE), policy=WRITES, approver=yes, store=kept, audit=trail)
    agent.run("goal")
    assert changes(replay(kept, tools=tools(), policy=WRITES)) == ["may_ask"]
    assert changes(replay(kept, tools=tools(), policy=WRITES, trail=trail)) == []


def test_a_store_with_another_read_of_its_own_has_no_trail(store: SqliteStore) -> None:
    class Kept:
        load, runs = store.load, store.runs

        def read(self, path: str) -> str:
            raise NotImplementedError

    ran(store, SAVE, policy=WRITES, answer=yes)
    assert changes(replay(Kept(), tools=tools(), policy=WRITES)) == ["may_ask"]  # type: ignore[arg-type]


# The account and the limits


def test_each_call_is_judged_on_the_account_as_recorded_up_to_it(store: SqliteStore) -> None:
    ran(store, SAVE, Decision.act("fly"), SAVE, SAVE)

    def under(**limits: Any) -> list[tuple[Any, ...]]:
        run = only(replay(store, tools=tools(), policy=FREE, limits=Limits(**limits)))
        return [change[:4] for change in told(run)]

    assert under(max_tool_calls=2) == [(3, "denied", "budget", "max_tool_calls")]
    assert under(max_cost=0.2) == []
    assert under(max_cost=0.19) == [(2, "denied", "budget", "max_cost")], "then it stops the run"


def test_without_limits_those_of_the_trail_hold(store: SqliteStore) -> None:
    state = ran(store, SAVE, SAVE, limits=Limits(max_tool_calls=1))
    assert state.steps[1].code == "max_tool_calls"
    assert changes(replay(store, tools=tools(), policy=FREE)) == []
    wide = replay(store, tools=tools(), policy=FREE, limits=Limits())
    assert told(only(wide)) == [(1, "allowed", None, None, "allowed")]


def test_a_call_that_would_get_to_budget_is_judged_by_the_limits_that_the_trail_has(
    store: SqliteStore,
) -> None:
    ran(store, SAVE, READ, limits=Limits(max_tool_calls=1))
    scoped = Policy(["read", "write"], granted_scopes=["s"], approval_effects=[])
    run = only(replay(store, tools=tools(), policy=scoped))
    assert told(run) == [(1, "denied_otherwise", "budget", "max_tool_calls", "denied")]


def test_a_call_is_judged_by_the_limits_of_the_session_that_judged_it_last(
    store: SqliteStore,
) -> None:
    def agent(given: list[Tool], policy: Policy, most: int) -> Agent:
        limits = Limits(max_tool_calls=most)
        return Agent(given, script(SAVE), policy=policy, limits=limits, store=store, audit=store)

    waits = agent(tools(), WRITES, 5).run("waits")
    state = agent(tools(), WRITES, 0).resume(waits.run_id, approvals=approve(waits))
    assert state.steps[0].code == "max_tool_calls"
    assert changes(replay(state, tools=tools(), policy=WRITES, trail=store)) == []
    cut_off = dead(store, agent(DEADLY, FREE, 1))
    state = agent(tools(), FREE, 2).resume(cut_off)
    assert state.steps[0].outcome.value == "executed"
    assert changes(replay(state, tools=tools(), policy=FREE, trail=store)) == []


def test_without_limits_and_a_trail_what_a_limit_denied_stays_denied(store: SqliteStore) -> None:
    state = ran(store, SAVE, SAVE, limits=Limits(max_tool_calls=1))
    assert changes(replay(state, tools=tools(), policy=FREE)) == []
    assert changes(replay(state, tools=tools(), policy=WRITES)) == ["may_ask"]
    assert changes(replay(state, tools=tools(), policy=Policy())) == ["denied", "denied_otherwise"]


def test_what_was_charged_is_what_the_trail_says_and_without_one_what_the_tools_cost(
    store: SqliteStore,
) -> None:
    state = ran(store, SAVE, SAVE)
    dear = [writer([], cost=5.0)]
    limits = Limits(max_cost=5.1)
    assert changes(replay(store, tools=dear, policy=FREE, limits=limits)) == []
    assert changes(replay(state, tools=dear, policy=FREE, limits=limits)) == ["denied"]


def costly(tokens: int, cost: float = 0.0) -> Decision:
    return Decision.act("save", {"text": "x"}, usage=Usage(tokens, cost))


@pytest.mark.parametrize(
    ("limits", "step", "reason", "left"),
    [
        (Limits(2), 2, "max_steps", 1),
        (Limits(max_tokens=10), 1, "max_tokens", 2),
        (Limits(max_cost=0.6), 1, "max_cost", 2),
        (Limits(max_seconds=0.0), 0, "max_seconds", 3),
        (Limits(max_tokens=100), 2, "usage_not_reported", 1),
        (Limits(max_repeats=0), 2, "max_repeats", 1),
    ],
)
def test_a_limit_that_would_have_ended_the_run_is_told_at_the_step_and_no_call_behind_it_is_judged(
    store: SqliteStore, limits: Limits, step: int, reason: str, left: int
) -> None:
    ran(store, costly(10, 0.5), costly(10), Decision.act("save", {"text": "y"}))
    run = only(replay(store, tools=tools(), policy=FREE, limits=limits))
    assert (run.stop, run.not_reached, len(run.steps)) == ((step, reason), left, step)
    totals = replay(store, tools=tools(), policy=FREE, limits=limits).totals
    assert (totals.stopped, totals.not_reached, totals.calls) == (1, left, step)


def test_a_run_that_a_limit_stopped_and_would_not_is_told(store: SqliteStore) -> None:
    ran(store, SAVE, SAVE, limits=Limits(2))
    ran(store, SAVE, SAVE, SAVE, limits=Limits(max_repeats=0))
    same = replay(store, tools=tools(), policy=FREE)
    assert [run.has_changed for run in same] == [False, False]
    wide = replay(store, tools=tools(), policy=FREE, limits=Limits(9, max_repeats=5))
    assert [(run.goes_on, run.stop) for run in wide] == [(True, None), (True, None)]
    assert wide.totals.go_on == 2
    narrow = replay(store, tools=tools(), policy=FREE, limits=Limits(2))
    assert [run.goes_on for run in narrow] == [False, False]


def test_running_time_ends_a_run_at_the_step_before_which_it_was_reached(
    store: SqliteStore,
) -> None:
    times = itertools.count()
    state = ran(store, *[SAVE] * 9, limits=Limits(max_seconds=20), clock=lambda: 3.0 * next(times))
    assert state.stop_reason == "max_seconds"
    [last] = [step.started for step in state.steps[-1:]]
    assert 0 < last < 20 <= state.usage.seconds

    def under(seconds: float) -> ReplayedRun:
        limits = Limits(max_seconds=seconds)
        return only(replay(store, tools=tools(), policy=FREE, limits=limits))

    assert under(20) == only(replay(store, tools=tools(), policy=FREE))
    assert under(last).stop == (len(state.steps) - 1, "max_seconds")
    assert [under(seconds).goes_on for seconds in (20, last + 0.5, 1_000)] == [False, False, True]


def test_a_run_that_was_stopped_by_a_person_does_not_go_on(store: SqliteStore) -> None:
    agent = Agent(tools(), script(SAVE), policy=WRITES, store=store, audit=store)
    state = agent.run("waits")
    agent.stop(state.run_id)
    assert agent.resume(state.run_id).stop_reason == "cancelled"
    run = only(replay(store, tools=tools(), policy=WRITES, limits=Limits(99)))
    assert not run.has_changed


# The same rules change nothing


def recorded_runs(store: SqliteStore) -> Iterator[tuple[RunState, Policy, Limits]]:
    """Yield runs of every kind, each with what it was run under."""
    plain = Limits()
    yield ran(store, SAVE, READ, Decision.act("fly"), Decision.act("save")), FREE, plain
    for limits in (
        Limits(3),
        Limits(max_tool_calls=1),
        Limits(max_cost=0.25),
        Limits(max_tokens=15),
        Limits(max_repeats=1),
    ):
        yield ran(store, *[costly(10)] * 4, limits=limits), FREE, limits
    for answer in (yes, no, None):
        yield ran(store, SAVE, SAVE, policy=WRITES, answer=answer), WRITES, plain
        kept = {"redact": lambda value, path: "hidden"} if answer is yes else {}
        yield ran(store, SAVE, policy=WRITES, answer=answer, **kept), WRITES, plain
    flow = Policy(["read", "write"], granted_scopes=["s"], approval_effects=[], flow=Flow())
    yield ran(store, SAVE, READ, SAVE, SAVE, policy=flow, answer=yes), flow, plain
    yield ran(store, SAVE, done=lambda answer, state: len(state.steps) > 2), FREE, Limits()
    times = itertools.count()
    late = Policy(["write"], approval_seconds=1)
    agent = Agent(
        tools(), script(SAVE), policy=late, store=store, audit=store, now=lambda: 9.0 * next(times)
    )
    agent.run("nobody answers in time")
    yield agent.resume(agent.run("waits").run_id), late, plain
    # A person's yes that became stale since the tool changed, and a call that died on the way.
    waits = Agent(tools(), script(SAVE), policy=WRITES, store=store, audit=store).run("stale")
    other = [writer([], description="Another."), tools()[1]]
    again = Agent(other, script(SAVE), policy=WRITES, store=store, audit=store)
    yield again.resume(waits.run_id, approvals=approve(waits)), WRITES, plain
    for limits in (Limits(max_tool_calls=2), Limits(max_cost=0.25)):
        agent = Agent(DEADLY, script(SAVE), policy=FREE, limits=limits, store=store, audit=store)
        cut_off = dead(store, agent)
        saved = store.load(cut_off)
        assert saved is not None
        yield RunState.view(*saved), FREE, limits
        with pytest.raises(KeyboardInterrupt):
            agent.resume(cut_off)
        yield agent.resume(cut_off), FREE, limits


def die(text: str) -> None:
    raise KeyboardInterrupt


DEADLY = [Tool("save", die, parameters=TEXT, effect="write", idempotent=True, cost=0.1)]


def dead(store: SqliteStore, agent: Agent) -> str:
    """Return the id of a run that was cut off in its first call."""
    before = set(store.runs())
    with pytest.raises(KeyboardInterrupt):
        agent.run("dies")
    [cut_off] = set(store.runs()) - before
    return cut_off


def test_a_run_judged_by_the_rules_it_was_run_under_is_as_it_was(store: SqliteStore) -> None:
    codes: set[str | None] = set()
    for state, policy, limits in recorded_runs(store):
        codes |= {step.code for step in state.steps}
        own = list(store.read(state.run_id))
        for given in (None, limits):
            for trail in (own, None):
                if trail is None and (policy.approval_effects or policy.flow):
                    continue  # whether a person was asked before what ran is not known then
                run = only(replay(state, tools=tools(), policy=policy, limits=given, trail=trail))
                assert run.error is None
                assert not run.has_changed, (state, run)
    assert {"approval_denied", "approval_expired", "approval_stale", "max_cost"} <= codes
    assert {"max_tool_calls", "max_repeats", "unknown_tool", "invalid_arguments"} <= codes


def drawn(pick: random.Random) -> Policy:
    def some(*items: str) -> list[str]:
        return [item for item in items if pick.random() < 0.6]

    schema = {"properties": {"text": {"const": pick.choice("xy")}}}
    return Policy(
        some("read", "write", "external"),
        some("s"),
        deny_tools=[name for name in ("read", "save") if pick.random() < 0.2],
        approval_effects=some("write"),
        approval_tools=[name for name in ("read", "save") if pick.random() < 0.2],
        arguments={"save": schema} if pick.random() < 0.4 else {},
        approval_arguments={"save": schema} if pick.random() < 0.4 else {},
        flow=Flow() if pick.random() < 0.5 else None,
    )


@pytest.mark.parametrize("seed", range(40))
def test_what_is_told_of_a_call_is_what_a_run_under_the_new_policy_does(seed: int) -> None:
    pick = random.Random(seed)
    calls = [
        Decision.act(pick.choice(["save", "read", "fly"]), {"text": pick.choice(["x", "y", 3])})
        for _ in range(8)
    ]
    old, new = drawn(pick), drawn(pick)

    def run(policy: Policy) -> tuple[RunState, MemoryAuditSink, list[int]]:
        asked: list[int] = []

        def approver(request: Any) -> Approval:
            asked.append(request.step)
            return no(request) if request.step % 3 == 0 else yes(request)

        sink = MemoryAuditSink()
        agent = Agent(tools(), script(*calls), policy=policy, approver=approver, audit=sink)
        return agent.run('save "x" and nothing else'), sink, asked

    state, trail, asked_before = run(old)
    wanted, _, asked_after = run(new)
    judged = only(replay(state, tools=tools(), policy=new, trail=trail)).steps
    assert len(judged) == len(calls)
    for step in judged:
        was, then = state.steps[step.index], wanted.steps[step.index]
        assert (step.before.code, step.before.asked) == (was.code, step.index in asked_before)
        assert step.after.asked == (step.index in asked_after)
        if step.after.kind == "asks":
            assert step.index not in asked_before, "an answer that is recorded counts"
        else:
            assert (step.after.code, step.after.told) == (then.code, then.error or "")
        same = (was.code, step.before.asked) == (then.code, step.after.asked)
        assert (step.change is None) == same
        if new.flow is not None and was.outcome is not then.outcome:
            break  # from here on the two runs have read other things


# What untrusted content may influence


def test_a_call_is_judged_by_what_the_run_had_read_before_it(store: SqliteStore) -> None:
    flow = Policy(["read", "write"], granted_scopes=["s"], approval_effects=[], flow=Flow())
    scoped = Policy(["read", "write"], granted_scopes=["s"], approval_effects=[])
    state = ran(store, SAVE, READ, SAVE, policy=scoped)
    run = only(replay(store, tools=tools(), policy=flow))
    assert told(run) == [(2, "asks", None, None, "asks")]
    assert run.steps[2].after.told == (
        "argument /text is a target that is not endorsed; step 0 read untrusted content"
    )
    trusted = [writer([], trusted=True), writer([], "read", effect="read", trusted=True)]
    assert told(only(replay(store, tools=trusted, policy=flow))) == []
    gone = only(replay(state, tools=trusted[:1], policy=flow, trail=store))
    assert [change[:2] for change in told(gone)] == [(1, "denied"), (2, "asks")]


def test_a_goal_that_was_untrusted_still_is(store: SqliteStore) -> None:
    agent = Agent(tools(), script(SAVE), policy=FREE, store=store, audit=store)
    flow = Policy(["write"], approval_effects=[], flow=Flow())
    agent.run('save "x"')
    assert changes(replay(store, tools=tools(), policy=flow)) == []
    state = agent.run('save "x"', tainted=True)
    [step] = only(replay(state, tools=tools(), policy=flow, trail=store)).changes
    assert (step.change, step.after.told) == (
        ReplayChange.ASKS,
        "argument /text is a target that is not endorsed; the goal is untrusted",
    )


# Many runs


def test_nothing_is_called_and_nothing_is_written(store: SqliteStore) -> None:
    ran(store, SAVE, READ, policy=WRITES, answer=yes)
    before = [record.line for record in store.read()], [store.load(run) for run in store.runs()]
    calls: list[Any] = []
    again = [writer(calls, cost=0.1), writer(calls, "read", effect="read", scopes=["s"])]
    replayed = replay(store, tools=again, policy=FREE, limits=Limits())
    assert replayed.totals.calls == 2
    assert calls == []
    after = [record.line for record in store.read()], [store.load(run) for run in store.runs()]
    assert before == after


def test_the_totals_are_those_of_all_runs(store: SqliteStore) -> None:
    for _ in range(3):
        ran(store, SAVE, READ, SAVE)
    ran(store, READ, policy=Policy())
    replayed = replay(store, tools=tools(), policy=Policy(["write"]))
    assert replayed.totals == type(replayed.totals)(
        runs=4, changed_runs=4, calls=10, asks=6, denied_otherwise=4
    )
    assert sum(len(run.changes) for run in replayed) == 10


def test_runs_are_read_one_at_a_time() -> None:
    class Endless(MemoryStore):
        def runs(self, status: str | None = None) -> Any:
            return itertools.cycle(super().runs(status))

    kept = Endless()
    Agent(tools(), script(SAVE), policy=FREE, store=kept).run("goal")
    replayed = iter(replay(kept, tools=tools(), policy=Policy()))
    assert [len(run.changes) for run in itertools.islice(replayed, 3)] == [1, 1, 1]


HOSTILE = "\x1b[2K"


def test_a_run_that_cannot_be_read_is_reported_and_the_others_are_judged(
    store: SqliteStore,
) -> None:
    states = [ran(store, SAVE) for _ in range(4)]
    states.append(ran(store, SAVE, policy=WRITES))
    states.append(ran(store, SAVE))
    damage = {
        states[5].run_id: lambda saved: saved._replace(steps=saved.steps[::-1]),
        states[4].run_id: lambda saved: saved._replace(steps=states[3].steps.texts()),
        states[0].run_id: lambda saved: saved._replace(head="{}"),
        states[1].run_id: lambda saved: saved._replace(steps=("[]", *saved.steps[1:])),
        states[2].run_id: lambda saved: store.load(states[3].run_id),
    }

    class Damaged:
        def load(self, run_id: str) -> Any:
            return damage.get(run_id, lambda saved: saved)(store.load(run_id))

        def runs(self, status: str | None = None) -> Any:
            return [*store.runs(status), "0" * 64, HOSTILE]

    replayed = replay(Damaged(), tools=tools(), policy=Policy(), trail=store)  # type: ignore[arg-type]
    found = {run.run_id: run for run in replayed}
    assert found.pop(HOSTILE).error == "this is no id of a run"
    assert set(found) == {state.run_id for state in states}, "one that is gone is passed over"
    errors = [found[state.run_id].error for state in states]
    assert "answer is missing" in str(errors[0])
    assert "must be an object" in str(errors[1])
    assert "another run" in str(errors[2])
    assert errors[3] is None
    assert "does not follow" in str(errors[4])
    assert "step 0 has the index of another" in str(errors[5])
    assert len(found[states[3].run_id].changes) == 1
    assert (replayed.totals.runs, replayed.totals.damaged) == (7, 6)
    assert re.search(f"{states[0].run_id[:12]}     -  damaged +saved state: answer", str(replayed))
    assert all(line.isprintable() for line in str(replayed).splitlines())


def test_a_damaged_trail_is_reported(tmp_path: Path) -> None:
    path, kept = tmp_path / "trail.jsonl", MemoryStore()
    sink = JsonlAuditSink(path)
    Agent(tools(), script(SAVE), policy=FREE, store=kept, audit=sink).run("goal")
    whole = path.read_bytes()

    def error(content: bytes) -> str | None:
        path.write_bytes(content)
        return only(replay(kept, tools=tools(), policy=FREE, trail=JsonlAuditSink(path))).error

    assert error(whole) is None
    lines = whole.splitlines(keepends=True)
    damaged = [*lines[:2], lines[2].replace(b'"attempt"', b'"attempt'), *lines[3:]]
    assert "damaged behind record 1" in str(error(b"".join(damaged)))
    assert "ends at record 1, and the saved run knows of record 6" in str(
        error(b"".join(lines[:2]))
    )
    assert error(b"".join(lines[3:])) is None, "an earlier part may be kept elsewhere"
    for old, new in (
        (b'"cost":0.1', b'"cost":"a"'),
        (b'"max_steps":16', b'"max_steps":-1'),
        (b'"limits":', b'"limit":'),
        (b'"step":0', b'"step":[]'),
    ):
        assert old in whole
        assert "none of an agent" in str(error(whole.replace(old, new, 1)))


def test_a_trail_with_a_record_of_another_chain_is_reported(store: SqliteStore) -> None:
    state = ran(store, SAVE)
    records = list(store.read())
    records[2] = AuditRecord(**{**records[2].to_dict(), "digest": "0" * 64})
    run = only(replay(state, tools=tools(), policy=FREE, trail=records))
    assert run.error == "the trail is damaged behind record 2; verify it"


def test_an_approval_in_a_trail_that_is_none_is_reported(store: SqliteStore) -> None:
    state = ran(store, SAVE, policy=WRITES, answer=yes)
    records = list(store.read())
    [record] = [record for record in records if record.event == "approval"]
    record.data["granted"] = "yes"
    run = only(replay(state, tools=tools(), policy=WRITES, trail=records))
    assert run.steps == ()
    assert "granted must be True or False" in str(run.error)


# The table and the JSON


def test_the_table_shows_what_changes_and_why(store: SqliteStore) -> None:
    state = ran(store, SAVE, READ)
    replayed = replay(store, tools=tools(), policy=Policy(granted_scopes=["s"]), limits=Limits(2))
    assert str(replayed) == repr(replayed) == replayed.table()
    start = state.run_id[:12]
    assert str(replayed).splitlines() == [
        "Recorded runs: 1, and changed: 1; calls: 2",
        "  stopped 1, denied 1, allowed 1",
        "",
        "run           step  what changes      call",
        f"{start}     0  denied            save: allowed, now denied (effect_denied): "
        "the policy does",
        "                                    | not allow effect 'write'",
        f"{start}     1  allowed           read: denied (scope_denied), now allowed",
        f"{start}     2  stopped           max_steps ends the run here; calls not reached: 0",
    ]


def test_a_table_has_at_most_50_rows_and_says_how_many_are_missing(store: SqliteStore) -> None:
    for _ in range(4):
        ran(store, *[SAVE] * 15)
    lines = str(replay(store, tools=tools(), policy=WRITES)).splitlines()
    assert sum(" asks  " in line for line in lines) == 50
    assert lines[-1] == "and 10 more"


@pytest.mark.parametrize("name", ["\x1b[2Ksave", "save: allowed", "a" * 256, "x\nrun", "\u202e"])
def test_a_name_from_a_planner_cannot_pass_for_a_part_of_the_table(name: str) -> None:
    state = Agent([], script(Decision.act(name)), limits=Limits(1)).run("goal")
    saved = state.to_json().replace('"unknown_tool"', '"tool_denied"')
    shown = str(replay(RunState.from_json(saved), tools=[], policy=FREE))
    row = re.sub(r"\n +\| ", "", shown).splitlines()[4]
    assert row.startswith(f"{state.run_id[:12]}     0  denied otherwise  ")
    quoted = r'  "[^"]{1,60}"( \(196 more characters\))?: denied \(tool_denied\), now denied'
    assert re.search(quoted, row)
    assert shown.isascii()
    assert all(line.isprintable() for line in shown.splitlines())


def test_a_run_as_json_holds_what_changes(store: SqliteStore) -> None:
    state = ran(store, SAVE, READ)
    run = only(replay(store, tools=tools(), policy=WRITES, limits=Limits(2)))
    assert run.to_dict() == {
        "run_id": state.run_id,
        "calls": 2,
        "changes": [
            {
                "step": 0,
                "tool": "save",
                "before": {"kind": "allowed", "gate": None, "code": None, "told": ""},
                "after": {
                    "kind": "asks",
                    "gate": None,
                    "code": None,
                    "told": "effect 'write' needs approval",
                },
                "change": "asks",
            }
        ],
        "stop": {"step": 2, "reason": "max_steps"},
        "not_reached": 0,
        "goes_on": False,
        "error": None,
    }
    assert run.changes[0].change is ReplayChange.ASKS


# Arguments


def test_what_cannot_be_replayed_is_named(store: SqliteStore) -> None:
    state = ran(store)
    for name, arguments in {
        "state_or_store": (3, {}),
        "policy": (store, {"policy": {}}),
        "limits": (store, {"limits": 3}),
        "tools": (store, {"tools": [3]}),
        "trail must be an AuditSink, not": (store, {"trail": []}),
        "trail must be an AuditSink or": (state, {"trail": "path"}),
        "trail must hold": (state, {"trail": [3]}),
    }.items():
        source, more = arguments
        with pytest.raises(TypeError, match=name):
            replay(source, **{"tools": tools(), "policy": FREE, **more})  # type: ignore[arg-type]


def test_a_store_that_cannot_be_read_at_all_says_so(tmp_path: Path) -> None:
    kept = SqliteStore(tmp_path / "runs.db")
    replayed = replay(kept, tools=[], policy=FREE)
    (tmp_path / "runs.db").unlink()
    with pytest.raises(StateError):
        replayed.totals  # noqa: B018
