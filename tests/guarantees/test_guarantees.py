"""The rules of the runtime, each as a test that fails when the rule is broken.

Every rule is driven in three ways: through `Agent`, through `AsyncAgent`, and through the loop's
generator with no I/O.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest
from support import FREE, WRITES, ByAgent, ByAsync, ByHand, approve, script, writer

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
    StateError,
    Tool,
    ToolError,
    Usage,
    verify_audit,
)
from scikitplot.agent.approval import action_digest
from scikitplot.agent.audit import AuditHead
from scikitplot.agent.audit.record import seal
from scikitplot.agent.gates import GATES

DRIVERS = [ByAgent, ByAsync, ByHand]
SAVE = Decision.act("save", {"text": "x"})
each = pytest.mark.parametrize("driver", DRIVERS)


def codes(state: RunState) -> list[str | None]:
    return [step.code for step in state.steps]


# Rule 1: no tool runs unless all five gates passed for exactly this action, in order.

REFUSED = {
    "unknown_tool": (Decision.act("nothing"), {}),
    "invalid_arguments": (Decision.act("save", {"text": 3}), {}),
    "tool_denied": (SAVE, {"policy": Policy(["write"], ["s"], deny_tools=["save"])}),
    "effect_denied": (SAVE, {"policy": Policy(["read"], ["s"])}),
    "scope_denied": (SAVE, {"policy": Policy(["write"])}),
    "max_tool_calls": (SAVE, {"limits": Limits(max_tool_calls=0)}),
    "max_cost": (SAVE, {"limits": Limits(max_cost=0.5)}),
    "approval_denied": (SAVE, {"approver": lambda asked: Approval(asked.digest, False, "ann")}),
}


@each
@pytest.mark.parametrize("code", REFUSED)
def test_rule_1_a_gate_that_says_no_keeps_the_tool_from_running(driver: Any, code: str) -> None:
    decision, options = REFUSED[code]
    calls: list[str] = []
    options = {
        "policy": Policy(["write"], ["s"]),
        "approver": lambda asked: Approval(asked.digest, True, "ann"),
        **options,
    }
    runner = driver([writer(calls, scopes={"s"}, cost=1.0)], script(decision), **options)
    state = runner.run()
    assert codes(state)[0] == code
    assert calls == []
    assert state.usage.tool_calls == 0


@each
def test_rule_1_the_first_gate_in_order_decides(driver: Any) -> None:
    assert [name for name, _ in GATES] == [
        "validation",
        "permissions",
        "scope",
        "budget",
        "approval",
    ]
    wrong = Decision.act("save", {"text": 3})
    everything = {"policy": Policy(["read"]), "limits": Limits(max_tool_calls=0)}
    ladder = [
        ("invalid_arguments", wrong, everything),
        ("effect_denied", SAVE, everything),
        ("scope_denied", SAVE, {**everything, "policy": Policy(["write"])}),
        ("max_tool_calls", SAVE, {**everything, "policy": Policy(["write"], ["s"])}),
    ]
    for code, decision, options in ladder:
        runner = driver(
            [writer([], scopes={"s"})],
            script(decision),
            approver=lambda asked: pytest.fail("asked although an earlier gate refuses"),
            **options,
        )
        assert codes(runner.run())[0] == code


@each
def test_rule_1_what_runs_is_exactly_what_was_judged(driver: Any) -> None:
    """The planner's object is copied before it is judged; changing it later changes nothing."""
    calls: list[Any] = []
    send = Tool(
        "send",
        lambda to: calls.append(to),
        parameters={
            "type": "object",
            "properties": {"to": {"type": "array", "items": {"type": "string"}}},
            "required": ["to"],
            "additionalProperties": False,
        },
        effect="external",
    )
    decision = Decision.act("send", {"to": ["ann"]})

    def approver(asked: Any) -> Approval:
        decision.arguments["to"].append("swapped by the planner")
        asked.arguments["to"].append("swapped by the approver")
        return Approval(asked.digest, True, "ann")

    state = driver([send], script(decision), policy=WRITES, approver=approver).run()
    assert calls == [["ann"]]
    assert state.steps[0].decision.arguments == {"to": ["ann"]}


@each
@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"tools": []}, "unknown_tool"),
        ({"tools": [Tool("save", lambda: 0, effect="write")]}, "invalid_arguments"),
        ({"policy": Policy(["write"], deny_tools=["save"])}, "tool_denied"),
        ({"policy": Policy(["read"])}, "effect_denied"),
        ({"limits": Limits(max_tool_calls=0)}, "max_tool_calls"),
    ],
)
def test_rule_1_all_gates_run_again_when_the_approval_arrives(
    driver: Any, change: dict[str, Any], code: str
) -> None:
    calls: list[str] = []
    tools = [writer(calls)]
    first = driver(tools, script(SAVE), policy=WRITES)
    paused = first.run()
    options = {"policy": WRITES, **{k: v for k, v in change.items() if k != "tools"}}
    second = driver(
        change.get("tools", tools),
        script(SAVE),
        store=first.store,
        audit=getattr(first, "audit", first.records),
        **options,
    )
    state = second.resume(paused, approve(paused))
    assert codes(state)[0] == code
    assert calls == []


# Rule 2: a denial is the step's outcome, never an exception. The planner reads it and goes on.


@each
def test_rule_2_the_planner_reads_a_denial_and_goes_on(driver: Any) -> None:
    seen: list[Any] = []

    def planner(state: RunState, tools: Any) -> Decision:
        seen.append(state.observations())
        if len(state.steps) == 0:
            return Decision.act("nothing")
        return Decision.finish(state.steps[-1].code)

    state = driver([writer([])], planner).run()
    assert state.status.value == "completed"
    assert state.answer == "unknown_tool"
    assert seen[1][0]["outcome"] == "denied"
    assert "save" in seen[1][0]["error"]


# Rule 3: every run ends or pauses. max_steps bounds it, whatever else is unlimited.


@each
@pytest.mark.parametrize(
    ("decision", "options"),
    [
        (Decision.act("nothing"), {}),
        (SAVE, {"policy": FREE}),
        (SAVE, {"policy": Policy()}),
        (Decision.finish("no"), {"done": lambda answer, state: False}),
        (Decision.act("save", {"text": float("nan")}), {"policy": FREE}),
    ],
)
def test_rule_3_max_steps_ends_a_planner_that_never_does(
    driver: Any, decision: Decision, options: dict[str, Any]
) -> None:
    asked: list[int] = []

    def planner(state: RunState, tools: Any) -> Decision:
        asked.append(1)
        assert len(asked) < 100, "asked for ever"
        return decision

    state = driver([writer([])], planner, limits=Limits(max_steps=5), **options).run()
    assert (state.status.value, state.stop_reason) == ("stopped", "max_steps")
    assert len(state.steps) == len(asked) == state.usage.decisions == 5
    assert state.answer is None


@each
def test_rule_3_max_steps_counts_over_all_sessions(driver: Any) -> None:
    calls: list[str] = []
    runner = driver(
        [writer(calls)], lambda state, tools: SAVE, policy=WRITES, limits=Limits(max_steps=3)
    )
    state = runner.run()
    for _ in range(3):
        assert state.status.value == "awaiting_approval"
        state = runner.resume(state, approve(state))
    assert (state.stop_reason, len(calls)) == ("max_steps", 3)


# Rule 4: every decision, denial, approval and call is in the trail before its effect can be seen.


@each
def test_rule_4_the_trail_holds_each_event_before_its_effect(driver: Any) -> None:
    runner: Any = None

    def last(event: str, **data: Any) -> bool:
        return any(
            record.event == event and data.items() <= record.data.items()
            for record in runner.records[-4:]
        )

    def tool(text: str) -> str:
        assert last("decision", step=len(seen))
        assert last("tool_started", step=len(seen), attempt=1)
        return "saved"

    def approver(asked: Any) -> Approval:
        assert last("decision", step=asked.step)
        assert last("approval_requested", digest=asked.digest)
        return Approval(asked.digest, len(seen) == 0, "ann")

    def done(answer: Any, state: RunState) -> bool:
        assert last("decision", step=3)
        return True

    seen: list[str] = []

    def planner(state: RunState, tools: Any) -> Decision:
        if state.steps:
            step = state.steps[-1]
            seen.append(step.outcome.value)
            event = {"executed": "tool_finished", "denied": "denied"}[step.outcome.value]
            assert last(event, step=step.index)
        else:
            assert last("run_started")
        if len(seen) < 2:
            return SAVE
        return Decision.act("nothing") if len(seen) == 2 else Decision.finish("end")

    save = Tool("save", tool, parameters=writer([]).parameters, effect="write")
    runner = driver([save], planner, policy=WRITES, approver=approver, done=done)
    state = runner.run()
    assert seen == ["executed", "denied", "denied"]
    assert codes(state) == [None, "approval_denied", "unknown_tool", None]
    events = [record.event for record in runner.records]
    assert events[-2:] == ["answer", "run_finished"]
    approvals = [record.data for record in runner.records if record.event == "approval"]
    assert [(data["granted"], data["approver"]) for data in approvals] == [
        (True, "ann"),
        (False, "ann"),
    ]
    assert verify_audit(runner.records, heads={state.run_id: state.audit_head}) == []


def test_rule_4_the_trail_is_written_before_the_state() -> None:
    """A crash between the two leaves the trail ahead by one commit, and never behind."""
    calls: list[str] = []
    audit = MemoryAuditSink()

    class Dies(MemoryStore):
        alive = True

        def commit(self, run_id: str, head: str, steps: Any, *, expected: int | None) -> None:
            if '"attempt":1' in head and self.alive:
                self.alive = False
                raise KeyboardInterrupt
            super().commit(run_id, head, steps, expected=expected)

    store = Dies()
    agent = Agent([writer(calls)], script(SAVE), policy=FREE, store=store, audit=audit)
    with pytest.raises(KeyboardInterrupt):
        agent.run("save")
    assert audit.records[-1].event == "tool_started"
    assert calls == []
    (run_id,) = store.runs()
    state = agent.resume(run_id)
    assert calls == ["x"]
    (resumed,) = [record for record in audit.records if record.event == "resumed"]
    assert resumed.data["ahead"] == 2
    assert verify_audit(audit.records, heads={run_id: state.audit_head}) == []


# Rule 5: an approval runs its action once: one run, one step, one set of arguments, one history.


@each
def test_rule_5_an_approval_does_not_count_for_the_same_call_at_a_later_step(driver: Any) -> None:
    calls: list[str] = []
    runner = driver([writer(calls)], script(SAVE, SAVE), policy=WRITES)
    first = runner.run()
    answer = approve(first)
    second = runner.resume(first, answer)
    assert second.pending.digest != first.pending.digest
    third = runner.resume(second, answer)
    assert third.status.value == "awaiting_approval"
    assert third.pending.digest == second.pending.digest
    assert calls == ["x"]


@each
def test_rule_5_an_approval_does_not_count_for_another_run(driver: Any) -> None:
    calls: list[str] = []
    runner = driver([writer(calls)], script(SAVE), policy=WRITES)
    first, second = runner.run(), runner.run()
    assert runner.resume(second, approve(first)).status.value == "awaiting_approval"
    assert calls == []
    assert runner.resume(second, approve(second)).status.value == "completed"
    assert runner.resume(first, approve(first)).status.value == "completed"
    assert calls == ["x", "x"]


@each
@pytest.mark.parametrize(
    "changed",
    [
        {"description": "saves!"},
        {"cost": 1.0},
        {"idempotent": True},
        {"effect": "external"},
        {"scopes": {"s"}},
    ],
)
def test_rule_5_an_approval_of_a_tool_that_changed_is_stale(
    driver: Any, changed: dict[str, Any]
) -> None:
    calls: list[str] = []
    policy = Policy(["write", "external"], ["s"])
    first = driver([writer(calls)], script(SAVE), policy=policy)
    paused = first.run()
    second = driver(
        [writer(calls, **changed)],
        script(SAVE),
        policy=policy,
        store=first.store,
        audit=getattr(first, "audit", first.records),
    )
    state = second.resume(paused, approve(paused))
    assert codes(state)[0] == "approval_stale"
    assert calls == []


@each
def test_rule_5_a_refusal_is_the_outcome_and_the_tool_never_runs(driver: Any) -> None:
    calls: list[str] = []
    runner = driver([writer(calls)], script(SAVE), policy=WRITES)
    paused = runner.run()
    no = [Approval(paused.pending.digest, False, "ann", reason="not today")]
    state = runner.resume(paused, no)
    assert codes(state)[0] == "approval_denied"
    assert "not today" in state.steps[0].error
    assert calls == []


def test_rule_5_the_digest_covers_all_that_makes_the_action() -> None:
    tool = writer([])
    action: dict[str, Any] = {
        "run_id": "a" * 64,
        "step": 1,
        "tool": tool,
        "arguments": "{}",
        "history": "b" * 64,
    }
    others = {
        "run_id": "c" * 64,
        "step": 2,
        "tool": writer([], "other"),
        "arguments": '{"a":1}',
        "history": "d" * 64,
    }
    digests = {action_digest(**action)}
    for name, other in others.items():
        digests.add(action_digest(**{**action, name: other}))
    assert len(digests) == 1 + len(others)


@pytest.mark.parametrize("holder", ["store", "audit"])
def test_rule_5_a_run_id_is_used_once(holder: str) -> None:
    options: Any = {"store": MemoryStore()} if holder == "store" else {"audit": MemoryAuditSink()}
    run_id = "a" * 64
    Agent([], script(), **options).run("first", run_id=run_id)
    with pytest.raises(ValueError, match=f"run_id .*{'store' if holder == 'store' else 'trail'}"):
        Agent([], script(), **options).run("second", run_id=run_id)


def test_rule_5_a_paused_copy_is_resumed_once() -> None:
    """With a store or a trail; without either the copy is the caller's own."""
    calls: list[str] = []
    for options in ({"store": MemoryStore()}, {"audit": MemoryAuditSink()}):
        calls.clear()
        agent = Agent([writer(calls)], script(SAVE), policy=WRITES, **options)
        paused = agent.run("save")
        assert agent.resume(paused, approvals=approve(paused)).status.value == "completed"
        with pytest.raises(StateError):
            agent.resume(paused, approvals=approve(paused))
        assert calls == ["x"]
    calls.clear()
    paused = Agent([writer(calls)], script(SAVE), policy=WRITES).run("save")
    for _ in range(2):
        other = Agent([writer(calls)], script(SAVE), policy=WRITES)
        other.resume(paused, approvals=approve(paused))
    assert calls == ["x", "x"]


# Rule 6: a non-idempotent call is never started twice. An idempotent one starts at most 3 times.


@each
@pytest.mark.parametrize("idempotent", [True, False])
def test_rule_6_a_call_that_was_cut_off_starts_again_only_if_idempotent(
    driver: Any, idempotent: bool
) -> None:
    started: list[str] = []

    def cut_off(text: str) -> str:
        started.append(text)
        raise KeyboardInterrupt

    tool = Tool(
        "save", cut_off, parameters=writer([]).parameters, effect="write", idempotent=idempotent
    )
    runner = driver([tool], script(SAVE), policy=FREE)
    with pytest.raises(KeyboardInterrupt):
        runner.run()
    (run_id,) = runner.store.runs() if isinstance(runner.store, MemoryStore) else runner.store
    state: Any = RunState.view("{}", [])
    state.run_id = run_id
    for _ in range(6):
        try:
            state = runner.resume(state)
        except KeyboardInterrupt:
            continue
    assert len(started) == (3 if idempotent else 1)
    assert state.status.value == "completed"
    step = state.steps[0]
    assert (step.outcome.value, step.code) == ("interrupted", "interrupted")
    assert step.attempts == len(started)
    assert state.usage.tool_calls == len(started)


@each
@pytest.mark.parametrize("changed", ["description", "gone", "not idempotent"])
def test_rule_6_a_call_that_was_cut_off_does_not_start_again_as_another(
    driver: Any, changed: str
) -> None:
    calls: list[str] = []

    def cut_off(text: str) -> str:
        calls.append(text)
        raise KeyboardInterrupt

    def tool(description: str, idempotent: bool = True) -> Tool:
        return Tool(
            "save", cut_off, parameters=writer([]).parameters, effect="write",
            description=description, idempotent=idempotent,
        )  # fmt: skip

    first = driver([tool("saves")], script(SAVE), policy=FREE)
    with pytest.raises(KeyboardInterrupt):
        first.run()
    tools = {
        "description": [tool("saves elsewhere")],
        "gone": [],
        "not idempotent": [tool("saves", idempotent=False)],
    }
    again = {"store": first.store, "audit": getattr(first, "audit", first.records)}
    second = driver(tools[changed], script(SAVE), policy=FREE, **again)
    state: Any = RunState.view("{}", [])
    (state.run_id,) = first.store.runs() if isinstance(first.store, MemoryStore) else first.store
    state = second.resume(state)
    assert (state.steps[0].outcome.value, len(calls)) == ("interrupted", 1)


@each
def test_rule_6_a_call_cut_off_is_charged_when_it_starts_and_judged_when_it_starts_again(
    driver: Any,
) -> None:
    calls: list[int] = []

    def flaky(text: str) -> str:
        calls.append(1)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return "saved"

    def tool() -> Tool:
        return Tool(
            "save",
            flaky,
            parameters=writer([]).parameters,
            effect="write",
            idempotent=True,
            cost=0.25,
        )

    first = driver([tool()], script(SAVE), policy=WRITES)
    paused = first.run()
    with pytest.raises(KeyboardInterrupt):
        first.resume(paused, approve(paused))
    again = {"store": first.store, "audit": getattr(first, "audit", first.records)}
    denied = driver([tool()], script(SAVE), policy=Policy(["read"]), **again)
    allowed = driver([tool()], script(SAVE), policy=WRITES, **again)
    state = (denied if len(calls) == 2 else allowed).resume(paused)
    # The approval that was given is for this action, so nobody is asked a second time.
    assert state.status.value == "completed"
    assert (state.steps[0].outcome.value, state.steps[0].attempts) == ("executed", 2)
    assert (state.usage.tool_calls, state.usage.cost) == (2, 0.5)
    assert sum(record.event == "approval" for record in first.records) == 1


# Rule 8: two processes that resume one run: exactly one goes on, the other gets StateError.


@pytest.mark.parametrize("shared", ["store and trail", "trail"])
def test_rule_8_of_many_that_resume_one_run_one_goes_on(shared: str) -> None:
    calls: list[str] = []
    audit = MemoryAuditSink()
    options: dict[str, Any] = {"audit": audit, "policy": WRITES}
    if shared == "store and trail":
        options["store"] = MemoryStore()
    paused = Agent([writer(calls)], script(SAVE), **options).run("save")
    barrier = threading.Barrier(16)
    won: list[RunState] = []
    lost: list[StateError] = []

    def resume(number: int) -> None:
        agent = Agent([writer(calls)], script(SAVE), **options)
        answers = [Approval(paused.pending.digest, number % 2 == 0, f"p{number}")]
        barrier.wait()
        try:
            won.append(agent.resume(paused, approvals=answers))
        except StateError as error:
            lost.append(error)

    threads = [threading.Thread(target=resume, args=[number]) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(won), len(lost)) == (1, 15)
    approvals = [record.data for record in audit.records if record.event == "approval"]
    assert len(approvals) == 1
    assert len(calls) == (1 if approvals[0]["granted"] else 0)
    assert verify_audit(audit.records) == []


def test_rule_8_a_store_replaces_the_revision_that_is_expected_and_no_other() -> None:
    store, run_id = MemoryStore(), 64 * "a"
    store.commit(run_id, "{}", [], expected=None)
    for wrong in (None, 1, -1):
        with pytest.raises(StateError):
            store.commit(run_id, '{"new":1}', ["step"], expected=wrong)
    assert store.load(run_id) == ("{}", ())
    store.commit(run_id, '{"new":1}', ["step"], expected=0)
    assert store.load(run_id) == ('{"new":1}', ("step",))


def test_rule_8_the_claim_comes_before_anything_is_written_or_called() -> None:
    """By hand: of two loops at the same state, the second is refused at its first effect."""
    calls: list[str] = []
    runner = ByHand([writer(calls)], script(SAVE), policy=WRITES)
    paused = runner.run()
    late: list[Any] = []
    perform = runner._perform

    def perform_late(effect: Any) -> Any:
        if not late:
            late.append(effect)
            runner._perform = perform  # type: ignore[method-assign]
            assert runner.resume(paused, approve(paused)).status.value == "completed"
            late.append(len(runner.records))
        return perform(effect)

    runner._perform = perform_late  # type: ignore[method-assign]
    with pytest.raises(StateError):
        runner.resume(paused, approve(paused))
    assert calls == ["x"]
    assert late[0].records == []
    assert len(runner.records) == late[1]


def test_rule_8_a_claim_taken_from_a_slow_session_stops_it_before_its_next_call() -> None:
    calls: list[str] = []
    store, audit = MemoryStore(), MemoryAuditSink()

    def other(state: RunState, tools: Any) -> Decision:
        return Decision.finish("taken")

    def slow(state: RunState, tools: Any) -> Decision:
        Agent([writer(calls)], other, policy=FREE, store=store, audit=audit).resume(state.run_id)
        return SAVE

    agent = Agent([writer(calls)], slow, policy=FREE, store=store, audit=audit)
    with pytest.raises(StateError):
        agent.run("save")
    assert calls == []
    (run_id,) = store.runs()
    assert agent.resume(run_id).answer == "taken"
    assert verify_audit(audit.records) == []


class Interrupted(MemoryAuditSink):
    """A trail in which something happens right before a session's first records are written."""

    meanwhile: list[Callable[[str], object]]

    def append(self, records: Any, *, expected: Any) -> None:
        if records[0].event == "resumed" and self.meanwhile:
            self.meanwhile.pop(0)(records[0].run_id)
        super().append(records, expected=expected)

    def write_late(self, run_id: str) -> None:
        """Write as a process does that lost the run and does not know it yet."""
        seq, prev = self.head(run_id) or (-1, "")
        late = seal(run_id, seq + 1, "decision", "{}", 0.0, prev)
        super().append([late], expected=AuditHead(seq, prev))


def cut_off(calls: list[str], store: MemoryStore, audit: Interrupted) -> tuple[str, Agent]:
    """A run of which the process died before its first decision, and an agent to resume it."""
    audit.meanwhile = []

    def dies(state: RunState, tools: Any) -> Decision:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Agent([], dies, store=store, audit=audit).run("save")
    agent = Agent([writer(calls)], script(SAVE), policy=FREE, store=store, audit=audit)
    return store.runs()[0], agent


@pytest.mark.parametrize("times", [1, 3])
def test_rule_8_who_took_a_run_goes_on_whatever_the_loser_still_wrote(times: int) -> None:
    calls: list[str] = []
    store, audit = MemoryStore(), Interrupted()
    run_id, agent = cut_off(calls, store, audit)
    audit.meanwhile = [audit.write_late] * times
    state = agent.resume(run_id)
    assert (state.status.value, calls) == ("completed", ["x"])
    (resumed,) = [record for record in audit.records if record.event == "resumed"]
    assert (resumed.seq, resumed.data["ahead"]) == (1 + times, times)
    assert verify_audit(audit.records, heads={run_id: state.audit_head}) == []


def test_rule_8_who_took_a_run_goes_on_when_it_is_to_stop_too() -> None:
    store, audit = MemoryStore(), Interrupted()
    run_id, agent = cut_off([], store, audit)
    other = Agent([], script(), store=store, audit=audit)
    audit.meanwhile = [lambda run_id: (other.stop(run_id, "enough"), audit.write_late(run_id))]
    state = agent.resume(run_id)
    assert (state.stop_reason, state.error) == ("cancelled", "enough")
    assert verify_audit(audit.records, heads={run_id: state.audit_head}) == []


def test_rule_8_who_lost_a_run_writes_nothing_more() -> None:
    calls: list[str] = []
    store, audit = MemoryStore(), Interrupted()
    run_id, agent = cut_off(calls, store, audit)
    other = Agent([], script(), store=store, audit=audit)
    audit.meanwhile = [other.resume]
    with pytest.raises(StateError):
        agent.resume(run_id)
    assert calls == []
    assert [record.event for record in audit.records].count("resumed") == 1
    assert other.resume(run_id).answer == "end"


@pytest.mark.parametrize("moved", [True, False])
def test_rule_8_a_trail_that_refuses_for_another_reason_ends_the_session(moved: bool) -> None:
    """Where the records that the state was saved after are gone, or nothing moved at all."""
    store, audit = MemoryStore(), Interrupted()
    run_id, agent = cut_off([], store, audit)

    def damage(run_id: str) -> None:
        if not moved:
            raise StateError("no")
        audit._records.clear()
        audit._last[run_id] = seal(run_id, 5, "decision", "{}", 0.0, "f" * 64)

    audit.meanwhile = [damage]
    with pytest.raises(StateError):
        agent.resume(run_id)


@pytest.mark.parametrize("times", [1, 3])
def test_rule_7_a_start_that_was_cut_off_between_the_trail_and_the_store_is_made_again(
    times: int,
) -> None:
    class Dies(MemoryStore):
        def commit(self, *args: Any, **options: Any) -> None:
            raise KeyboardInterrupt

    calls: list[str] = []
    audit, run_id = MemoryAuditSink(), 64 * "5"
    for _ in range(times):
        with pytest.raises(KeyboardInterrupt):
            Agent([], script(), store=Dies(), audit=audit).run("save", run_id=run_id)
    assert [record.event for record in audit.records] == ["run_started"] * times
    agent = Agent([writer(calls)], script(SAVE), policy=FREE, store=MemoryStore(), audit=audit)
    state = agent.run("save", run_id=run_id)
    assert (state.status.value, calls) == ("completed", ["x"])
    assert verify_audit(audit.records, heads={run_id: state.audit_head}) == []
    with pytest.raises(ValueError, match="used once"):
        agent.run("save", run_id=run_id)
    for other in ({"store": MemoryStore()}, {}):  # the trail shows that something happened in it
        with pytest.raises(ValueError, match="used once"):
            Agent([], script(), audit=audit, **other).run("save", run_id=run_id)


# Rule 9: what the planner, the approver or an observer gets is a copy.


@each
def test_rule_9_changing_what_was_handed_out_changes_nothing(driver: Any) -> None:
    shown: list[Any] = []

    def planner(state: RunState, tools: Any) -> Decision:
        shown.append((json.loads(json.dumps(tools)), state.to_json()))
        tools[0]["name"] = "other"
        tools[0]["parameters"].clear()
        tools.append(object())
        state.goal = "another goal"
        state.usage = None  # type: ignore[assignment]
        if len(state.steps) == 0:
            return Decision.act("look", {"text": "a"})
        state.observations().clear()
        state.steps[0].result["list"].append("planted")
        state.steps[0].decision.arguments["text"] = "planted"
        if len(state.steps) == 1:
            state.steps.clear()
            return Decision.act("save", {"text": "b"})
        return Decision.finish(state.steps[0].result)

    def done(answer: Any, state: RunState) -> bool:
        answer["list"].append("planted")
        state.steps[0].result["list"].append("planted")
        return True

    def approver(asked: Any) -> Approval:
        asked.arguments.clear()
        return Approval(asked.digest, True, "ann")

    kept = {"list": [1]}
    calls: list[str] = []
    look = Tool("look", lambda text: kept, parameters=writer([]).parameters)
    runner = driver(
        [look, writer(calls)],
        planner,
        policy=WRITES,
        approver=approver,
        done=done,
    )
    state = runner.run()
    assert state.status.value == "completed"
    assert [tools[0]["name"] for tools, _ in shown] == ["look"] * 3
    assert all(tools == shown[0][0] for tools, _ in shown)
    assert calls == ["b"]
    kept["list"].append("planted by the tool later")
    assert state.steps[0].result == {"list": [1]}
    assert state.steps[0].decision.arguments == {"text": "a"}
    assert state.answer == {"list": [1, "planted"]}, "the planner's own answer, as it gave it"
    assert state.goal == "goal"
    assert len(state.steps) == 3


# Rule 10: the text of an exception reaches neither the planner nor the trail; its type does.


class Leaky(RuntimeError):
    pass


@each
def test_rule_10_of_an_exception_only_the_type_is_told(driver: Any) -> None:
    def tool(text: str) -> str:
        try:
            raise KeyError("s3cret-key")
        except KeyError as cause:
            error = Leaky("s3cret-text", "s3cret-argument")
            if hasattr(error, "add_note"):
                error.add_note("s3cret-note")
            raise error from cause

    def leak(*anything: Any) -> Any:
        raise Leaky("s3cret-text")

    failing = Tool("save", tool, parameters=writer([]).parameters)
    states = []
    runners = [
        driver([failing], script(SAVE)),
        driver([], leak),
        driver([], script(), done=leak),
        driver([writer([])], script(SAVE), policy=WRITES, approver=leak),
    ]
    for runner in runners:
        states.append(runner.run())
    written = "".join(
        state.to_json() + repr(state) + repr(list(state.steps)) for state in states
    ) + "".join(record.line for runner in runners for record in runner.records)
    assert "s3cret" not in written
    assert written.count("Leaky") >= 4
    assert codes(states[0])[0] == "tool_failed"
    assert [state.stop_reason for state in states[1:3]] == ["planner_failed", "done_failed"]
    assert states[3].status.value == "awaiting_approval"


def test_rule_10_a_tool_speaks_to_the_planner_with_tool_error() -> None:
    def tool(text: str) -> str:
        raise ToolError("try another text")

    agent = Agent([Tool("save", tool, parameters=writer([]).parameters)], script(SAVE))
    step = agent.run("save").steps[0]
    assert (step.code, step.error) == ("tool_error", "try another text")


# Rule 11: bad input gets one clear error that names the argument, and changes nothing.


@pytest.mark.parametrize(
    ("call", "error", "named"),
    [
        (lambda agent: agent.run(3), TypeError, "goal"),
        (lambda agent: agent.run("\ud800"), ValueError, "goal"),
        (lambda agent: agent.run("x" * 100_001), ValueError, "goal"),
        (lambda agent: agent.run("g", run_id=3), TypeError, "run_id"),
        (lambda agent: agent.run("g", run_id="a" * 64 + "\n"), ValueError, "run_id"),
        (lambda agent: agent.run("g", run_id="A" * 64), ValueError, "run_id"),
        (lambda agent: agent.run("g", run_id="a" * 63), ValueError, "run_id"),
        (lambda agent: agent.run("g", run_id="\uff11" * 64), ValueError, "run_id"),
        (lambda agent: agent.run("g", run_id="../x"), ValueError, "run_id"),
        (lambda agent: agent.resume(3), TypeError, "state"),
        (lambda agent: agent.resume("../x"), ValueError, "run_id"),
        (lambda agent: agent.resume("a" * 64), StateError, "store"),
        (lambda agent: agent.resume(agent.paused, approvals=3), TypeError, "approvals"),
        (lambda agent: agent.resume(agent.paused, approvals=[True]), TypeError, "approvals"),
        (lambda agent: agent.resume(agent.paused, approvals={"a": True}), TypeError, "approvals"),
        (
            lambda agent: agent.resume(
                agent.paused, approvals=approve(agent.paused) + approve(agent.paused, False)
            ),
            ValueError,
            "approvals",
        ),
        (lambda agent: agent.run("g", run_id=agent.paused.run_id), ValueError, "run_id"),
    ],
)
def test_rule_11_a_bad_argument_is_named_and_changes_nothing(
    call: Any, error: type[Exception], named: str
) -> None:
    calls: list[str] = []
    store, audit = MemoryStore(), MemoryAuditSink()
    agent: Any = Agent([writer(calls)], script(SAVE), policy=WRITES, store=store, audit=audit)
    agent.paused = agent.run("save")
    before = [store.load(run_id) for run_id in store.runs()], [r.line for r in audit.records]
    with pytest.raises(error, match=named):
        call(agent)
    assert ([store.load(run_id) for run_id in store.runs()], [r.line for r in audit.records]) == (
        before
    )
    assert calls == []
    assert agent.resume(agent.paused, approvals=approve(agent.paused)).status.value == "completed"


# Rule 13: the import takes the standard library alone, opens nothing, starts nothing.


def test_rule_13_the_import_opens_nothing_and_starts_nothing() -> None:
    code = """
import sys, threading
import scikitplot                     # the namespace itself, so that only ours is watched
before = set(sys.modules)
opened = []
def hook(event, args):
    if event == 'open' and not str(args[0]).endswith(('.py', '.pyc')):
        opened.append(args[0])
    elif event.split('.')[0] in ('socket', 'subprocess', 'sqlite3', 'ctypes'):
        opened.append(event)
sys.addaudithook(hook)
import scikitplot.agent
names = {name.split('.')[0] for name in set(sys.modules) - before} - {'scikitplot'}
foreign = sorted(name for name in names if name not in sys.stdlib_module_names)
opened = [what for what in opened if '.pyc.' not in str(what)]
assert foreign == [], foreign
assert opened == [], opened
assert threading.active_count() == 1
print('ok')
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.stdout.strip() == "ok", ran.stderr


# The account: what is spent is counted exactly, whatever the driver.


@each
def test_costs_are_added_exactly_as_decimals(driver: Any) -> None:
    calls: list[str] = []
    runner = driver(
        [writer(calls, cost=0.1)],
        lambda state, tools: SAVE,
        policy=FREE,
        limits=Limits(max_cost=0.3),
    )
    state = runner.run()
    assert (len(calls), state.usage.cost, state.stop_reason) == (3, 0.3, "max_cost")


@each
def test_tokens_stop_the_run_and_must_be_reported(driver: Any) -> None:
    used = Decision.act("nothing", usage=Usage(tokens=4))
    state = driver([], lambda state, tools: used, limits=Limits(max_tokens=10)).run()
    assert (state.stop_reason, state.usage.tokens, len(state.steps)) == ("max_tokens", 12, 3)
    silent = driver([], script(SAVE), limits=Limits(max_tokens=10)).run()
    assert (silent.status.value, silent.stop_reason) == ("failed", "usage_not_reported")


def test_a_trail_in_a_file_holds_the_same_records(tmp_path: Any) -> None:
    sink = JsonlAuditSink(tmp_path / "trail.jsonl")
    state = Agent([writer([])], script(SAVE), policy=FREE, audit=sink).run("save")
    records = list(sink.read(state.run_id))
    assert [record.event for record in records] == [
        "run_started",
        "decision",
        "tool_started",
        "tool_finished",
        "decision",
        "answer",
        "run_finished",
    ]
    assert verify_audit(records, heads={state.run_id: state.audit_head}) == []
