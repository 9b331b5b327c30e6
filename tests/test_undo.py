"""Undoing a run: each executed step once, the last one first, through all gates."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from support import (
    FREE,
    KINDS,
    TEXT,
    WRITES,
    ByHand,
    Dies,
    Fuse,
    approve,
    dying_stores,
    script,
    writer,
)

from scikitplot.agent import (
    Agent,
    Approval,
    Decision,
    Flow,
    Limits,
    MemoryAuditSink,
    MemoryStore,
    Policy,
    RunState,
    StateError,
    Tool,
    ToolError,
    Usage,
    recover,
    replay,
    verify_audit,
)
from scikitplot.agent.toolset import Toolset
from scikitplot.agent.undo import Undoing, undoing_run

USAGE = Usage(1)


def act(text: str, tool: str = "save") -> Decision:
    return Decision.act(tool, {"text": text})


def saver(undone: list[Any], name: str = "save", **options: Any) -> Tool:
    """A tool whose inverse notes what it is called with."""
    options.setdefault("undo", lambda arguments, result: undone.append((arguments["text"], result)))
    return writer([], name, **options)


def test_executed_steps_are_undone_from_the_last_to_the_first_and_the_others_are_reported() -> None:
    def fail(text: str) -> None:
        raise ToolError("no")

    undone: list[Any] = []
    tools = [
        saver(undone),
        writer([], "send", effect="external"),
        writer([], "look", effect="read"),
        Tool("fail", fail, parameters=TEXT, effect="write", undo=lambda arguments, result: None),
        saver(undone, "denied"),
    ]
    names = ["save", "look", "send", "save", "fail", "denied", "save"]
    audit = MemoryAuditSink()
    policy = Policy(
        allow_effects=["read", "write", "external"], approval_effects=(), deny_tools={"denied"}
    )
    agent = Agent(
        tools, script(*[act(f"{n}", name) for n, name in enumerate(names)]), policy=policy,
        store=MemoryStore(), audit=audit,
    )  # fmt: skip
    run = agent.run("goal")
    state = agent.undo(run.run_id)
    assert undone == [("6", "saved 3"), ("3", "saved 2"), ("0", "saved 1")]
    assert state.answer == {
        "undone": [0, 3, 6],
        "left": [
            {"step": 2, "tool": "send", "why": "no inverse"},
            {"step": 4, "tool": "fail", "why": "tool_error"},
        ],
        "unlisted": 0,
    }
    assert (state.status.value, state.run_id) == ("completed", undoing_run(run.run_id))
    records = audit.read(state.run_id)
    assert records[0].data["goal"] == f"undo run {run.run_id}"
    assert [record.event for record in records].count("tool_started") == 3
    heads = {each.run_id: each.audit_head for each in (run, state)}
    assert verify_audit(audit.records, heads=heads) == []


@pytest.mark.parametrize("again", ["undo", "resume"])
def test_a_second_undo_does_nothing_twice(again: str) -> None:
    undone: list[Any] = []
    agent = Agent([saver(undone)], script(act("a"), act("a")), policy=FREE, store=MemoryStore())
    run = agent.run("goal")
    state = agent.undo(run.run_id)
    assert undone == [("a", "saved 2"), ("a", "saved 1")]
    second = agent.undo(run.run_id) if again == "undo" else agent.resume(state.run_id)
    assert (second, len(undone)) == (state, 2)
    assert agent.resume(run.run_id) == run, "the run itself stays as it ended"


NO_MORE = {"additionalProperties": False, "properties": {"text": {"const": "b"}}}


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"policy": FREE, "tools": {"parameters": {"type": "object"}}}, None),
        ({"policy": FREE, "tools": {"parameters": {**TEXT, "maxProperties": 0}}},
         "invalid_arguments"),
        ({"policy": Policy(allow_effects=["write"], approval_effects=(), deny_tools=["save"])},
         "tool_denied"),
        ({"policy": Policy(approval_effects=())}, "effect_denied"),
        ({"policy": Policy(allow_effects=["write"], approval_effects=(),
                           arguments={"save": NO_MORE})}, "arguments_denied"),
        ({"policy": FREE, "tools": {"scopes": ["files"]}}, "scope_denied"),
        ({"policy": FREE, "tools": {"cost": 0.5}, "limits": Limits(max_cost=0.4)}, "max_cost"),
        ({"policy": FREE, "limits": Limits(max_tool_calls=0)}, "max_tool_calls"),
    ],
    ids=lambda value: str(value) if isinstance(value, (str, type(None))) else "",
)  # fmt: skip
def test_an_inverse_passes_all_gates_as_its_tool_does_under_its_name(
    options: dict[str, Any], code: str | None
) -> None:
    undone: list[Any] = []
    store, audit = MemoryStore(), MemoryAuditSink()
    tool = saver(undone)
    run = Agent([tool], script(act("a")), policy=FREE, store=store, audit=audit).run("goal")
    changed = {"parameters": TEXT, "effect": "write", "undo": tool.undo, **options.pop("tools", {})}
    agent = Agent(
        [Tool("save", lambda **arguments: None, **changed)],
        script(), store=store, audit=audit, **options,
    )  # fmt: skip
    state = agent.undo(run.run_id)
    assert [step.code for step in state.steps[:-1]] == [code]
    assert len(undone) == (code is None)
    left = [] if code is None else [{"step": 0, "tool": "save", "why": code}]
    assert (state.status.value, state.answer["left"]) == ("completed", left)  # type: ignore[index,call-overload]
    started = [record for record in audit.read(state.run_id) if record.event == "tool_started"]
    assert [record.data["tool"] for record in started] == (["save"] if code is None else [])


@pytest.mark.parametrize("by", ["undo", "resume"])
@pytest.mark.parametrize("granted", [True, False])
def test_a_person_is_asked_of_each_inverse_and_told_what_it_undoes(by: str, granted: bool) -> None:
    undone: list[Any] = []
    store, audit = MemoryStore(), MemoryAuditSink()
    tool = saver(undone)
    plan = script(act("a"), act("b"))
    run = Agent([tool], plan, policy=FREE, store=store, audit=audit).run("goal")
    agent = Agent([tool], plan, policy=WRITES, store=store, audit=audit)
    state = agent.undo(run.run_id)
    for text, result in (("b", "saved 2"), ("a", "saved 1")):
        request = state.pending
        assert request is not None
        assert request.reasons == (
            f"it undoes a call of run {run.run_id}",
            "effect 'write' needs approval",
        )
        assert undone == [], "nothing runs before it is granted"
        assert agent.undo(run.run_id).pending == request
        approvals = approve(state, granted)
        if by == "undo":
            state = agent.undo(run.run_id, approvals=approvals)
        else:
            state = agent.resume(state.run_id, approvals=approvals)
        assert undone == ([(text, result)] if granted else [])
        undone.clear()
    code = None if granted else "approval_denied"
    assert [step.code for step in state.steps] == [code, code, None]
    assert state.status.value == "completed"


def test_an_undoing_run_may_be_stopped_while_it_waits() -> None:
    undone: list[Any] = []
    store, tool = MemoryStore(), saver(undone)
    audit = MemoryAuditSink()
    run = Agent([tool], script(act("a")), policy=FREE, store=store, audit=audit).run("goal")
    agent = Agent([tool], script(act("a")), policy=WRITES, store=store, audit=audit)
    state = agent.undo(run.run_id)
    agent.stop(state.run_id, "keep it")
    stopped = agent.undo(run.run_id, approvals=approve(state))
    assert (stopped.stop_reason, stopped.error, undone) == ("cancelled", "keep it", [])


def test_neither_done_nor_limits_on_decisions_get_into_an_undoing_run() -> None:
    undone: list[Any] = []

    def never(*asked: Any) -> bool:
        raise AssertionError

    agent = Agent(
        [saver(undone)], script(act("a"), act("a"), act("a")), policy=FREE, store=MemoryStore(),
        limits=Limits(max_steps=3, max_repeats=3, max_tokens=10**6),
    )  # fmt: skip
    agent.planner = script(*[Decision.act("save", {"text": "a"}, usage=USAGE)] * 3)
    run = agent.run("goal")
    assert run.stop_reason == "max_steps"
    agent.done = never
    agent.limits = Limits(max_steps=1, max_repeats=0, max_tokens=1)
    assert agent.undo(run.run_id).answer == {"left": [], "undone": [0, 1, 2], "unlisted": 0}


@pytest.mark.parametrize("idempotent", [True, False])
@pytest.mark.parametrize(
    ("kind", "policy"), [*((kind, FREE) for kind in KINDS), ("memory", WRITES)],
    ids=[*KINDS, "memory, asks"],
)  # fmt: skip
def test_wherever_the_process_dies_each_step_is_undone_once_at_most_and_the_others_reported(
    kind: str, policy: Policy, idempotent: bool, tmp_path: Any
) -> None:
    pairs = [("a", "saved 1"), ("a", "saved 2"), ("b", "saved 3")]
    for at in itertools.count():
        fuse, undone = Fuse(), []
        store, audit = dying_stores(kind, tmp_path, fuse)

        def undo(arguments: Any, result: Any, undone: Any = undone, fuse: Fuse = fuse) -> None:
            fuse.point()
            undone.append((arguments["text"], result))
            fuse.point()

        def agent(undo: Any = undo, store: Any = store, audit: Any = audit) -> Agent:
            tool = saver([], undo=undo, idempotent=idempotent)
            plan = script(act("a"), act("a"), act("b"))
            return Agent(
                [tool], plan, policy=policy, store=store, audit=audit,
                approver=lambda request: Approval(request.digest, True, "ann"),
            )  # fmt: skip

        run = agent().run("goal", run_id=f"{at:064x}")
        fuse.left = at
        try:
            state, has_died = agent().undo(run.run_id), False
        except Dies:
            has_died, fuse.left = True, None
            for recovered in recover(store, agent):
                assert recovered.error is None
            state = agent().undo(run.run_id)
        assert state.status.value == "completed"
        expected = [0, 1, 2]
        if idempotent:
            assert list(dict.fromkeys(undone)) == pairs[::-1]
            assert len(undone) <= 4, "the one in flight may start again"
        else:
            assert len(set(undone)) == len(undone)
            left = {entry["step"]: entry["why"] for entry in state.answer["left"]}
            assert set(left.values()) <= {"interrupted"}
            assert len(left) <= 1
            assert {pair for n, pair in enumerate(pairs) if n not in left} <= set(undone)
            expected = [index for index in expected if index not in left]
        assert state.answer["undone"] == expected
        heads = {each.run_id: each.audit_head for each in (run, state)}
        records = [*audit.read(run.run_id), *audit.read(state.run_id)]
        assert verify_audit(records, heads=heads) == []
        if not has_died:
            break
    assert at > 20


def test_a_tool_that_gets_or_loses_its_inverse_meanwhile_shifts_no_step() -> None:
    undone: list[Any] = []
    store, audit = MemoryStore(), MemoryAuditSink()
    plan = script(act("0"), act("1", "other"), act("2"), act("3", "other"))

    def agent(**undos: Any) -> Agent:
        tools = [writer([], name, undo=undos.get(name)) for name in ("save", "other")]
        return Agent(tools, plan, policy=FREE, store=store, audit=audit)

    def undo(arguments: Any, result: Any) -> None:
        undone.append((arguments["text"], result))
        if len(undone) == 1:
            raise KeyboardInterrupt

    run = agent(save=undo).run("goal")
    with pytest.raises(KeyboardInterrupt):
        agent(save=undo).undo(run.run_id)
    state = agent(other=undo).undo(run.run_id)
    assert undone == [("2", "saved 2"), ("1", "saved 1")]
    assert state.answer == {
        "undone": [1],
        "left": [
            {"step": 0, "tool": "save", "why": "no inverse"},
            {"step": 2, "tool": "save", "why": "interrupted"},
            {"step": 3, "tool": "other", "why": "no inverse"},
        ],
        "unlisted": 0,
    }


@pytest.mark.parametrize("is_async", [True, False])
def test_an_inverse_that_fails_is_a_step_and_the_others_go_on(is_async: bool) -> None:
    def undo(arguments: Any, result: Any) -> Any:
        if result == "saved 2":
            raise ToolError("it is gone")
        return arguments

    async def undo_later(arguments: Any, result: Any) -> Any:
        return undo(arguments, result)

    tool = saver([], undo=undo_later if is_async else undo)
    agent = Agent([tool], script(act("a"), act("b")), policy=FREE, store=MemoryStore())
    state = agent.undo(agent.run("goal").run_id)
    assert [(step.code, step.error, step.result) for step in state.steps[:-1]] == [
        ("tool_error", "it is gone", None),
        (None, None, {"text": "a"}),
    ]


def test_what_is_undone_is_planned_the_same_by_the_bare_loop() -> None:
    undone: list[Any] = []
    tools = Toolset([saver(undone), writer([], "send")])
    first = ByHand(tools, script(act("a"), act("b", "send"), act("c")), policy=FREE)
    run = first.run()
    undoing = Undoing(run.run_id, tools, first.store[run.run_id][1], None)
    state = ByHand(
        undoing.tools, undoing.plan, policy=FREE, limits=undoing.limits(Limits(max_steps=1))
    ).run()
    assert [step.decision.reason for step in state.steps] == ["undo step 2", "undo step 0", ""]
    assert state.answer == {
        "undone": [0, 2],
        "left": [{"step": 1, "tool": "send", "why": "no inverse"}],
        "unlisted": 0,
    }


def test_an_inverse_is_to_the_gates_what_its_tool_is() -> None:
    options: Any = {"effect": "external", "scopes": ["a"], "cost": 0.5, "idempotent": True,
                    "trusted": True, "secret": True, "targets": ["text"]}  # fmt: skip
    tool = saver([], timeout=7.0, description="saves", **options)
    (inverse,) = Undoing("0" * 64, Toolset([tool]), [], None).tools
    for name in (*options, "name", "parameters", "timeout"):
        assert getattr(inverse, name) == getattr(tool, name), name
    assert inverse.digest != tool.digest, "an approval of one is none of the other"


@pytest.mark.parametrize("trusted", [True, False])
def test_what_an_untrusted_run_did_is_undone_only_if_a_person_agrees(trusted: bool) -> None:
    undone: list[Any] = []
    policy = Policy(allow_effects=["write"], approval_effects=(), flow=Flow())
    tool = saver(undone, trusted=trusted)
    agent = Agent([tool], script(act("a")), policy=policy, store=MemoryStore())
    state = agent.undo(agent.run("goal").run_id)
    assert (state.status.value, len(undone)) == (
        ("completed", 1) if trusted else ("awaiting_approval", 0)
    )
    if state.pending is not None:
        assert state.pending.reasons[1].startswith("argument /text is a target that is not")


def test_what_a_secret_may_have_got_into_is_undone_only_if_a_person_agrees() -> None:
    policy = Policy(allow_effects=["external"], approval_effects=(), flow=Flow())
    tool = saver([], effect="external", trusted=True, secret=True, targets=[])
    agent = Agent([tool], script(act("a")), policy=policy, store=MemoryStore())
    store, audit = agent.store, agent.audit
    pending = agent.undo(agent.run("goal").run_id).pending
    assert pending is not None
    assert pending.reasons[1].endswith("returned a secret")
    again = replay(store, tools=[tool], policy=policy, trail=audit)
    assert [[step.change for step in run.steps] for run in again] == [[None], [None]]


def test_a_store_that_returns_another_run_is_told_and_nothing_is_undone() -> None:
    instead: dict[str, str] = {}
    undone: list[Any] = []

    class Mixed(MemoryStore):
        def load(self, run_id: str) -> Any:
            return super().load(instead.get(run_id, run_id))

    store = Mixed()
    agent = Agent([saver(undone)], script(act("a")), policy=FREE, store=store)
    one, other = agent.run("goal"), agent.run("goal")
    instead[one.run_id] = other.run_id
    for go_on in (agent.undo, agent.resume):
        with pytest.raises(StateError, match="another run than the one it was asked for"):
            go_on(one.run_id)
    assert undone == []


def test_reconcile_which_knows_the_tool_is_not_asked_about_its_inverse() -> None:
    def undo(arguments: Any, result: Any) -> None:
        raise KeyboardInterrupt

    agent = Agent(
        [saver([], undo=undo)], script(act("a")), policy=FREE, store=MemoryStore(),
        reconcile=lambda request: "saved",
    )  # fmt: skip
    run = agent.run("goal")
    with pytest.raises(KeyboardInterrupt):
        agent.undo(run.run_id)
    state = agent.undo(run.run_id)
    assert [step.outcome.value for step in state.steps] == ["interrupted", "accepted"]


def test_what_was_reconciled_and_undone_is_judged_again_as_it_was() -> None:
    def dies(text: str) -> None:
        raise KeyboardInterrupt

    store, audit = MemoryStore(), MemoryAuditSink()
    tool = Tool(
        "save", dies, parameters=TEXT, effect="write", undo=lambda arguments, result: result
    )  # fmt: skip
    agent = Agent(
        [tool], script(act("a")), policy=WRITES, store=store, audit=audit,
        reconcile=lambda request: "saved",
        approver=lambda request: Approval(request.digest, True, "ann"),
    )  # fmt: skip
    with pytest.raises(KeyboardInterrupt):
        agent.run("goal", run_id="1" * 64)
    assert agent.resume("1" * 64).steps[0].result == "saved"
    assert agent.undo("1" * 64).steps[0].result == "saved"
    again = replay(store, tools=[tool], policy=WRITES, trail=audit)
    assert [(run.error, [step.change for step in run.steps]) for run in again] == [
        (None, [None]),
        (None, [None]),
    ]


def test_a_report_of_many_steps_is_bounded() -> None:
    tools = Toolset([writer([])])
    first = ByHand(tools, script(act("a")), policy=FREE)
    step = first.store[first.run().run_id][1][0]
    undoing = Undoing("0" * 64, tools, [step] * 5_003, None)
    answer: Any = undoing.plan(RunState.view("{}", []), []).answer
    assert (len(answer["left"]), answer["unlisted"]) == (5_000, 3)


@pytest.mark.parametrize("reason", ["", "undo step 9", "undo step x", "undo step -1"])
def test_a_saved_decision_that_names_no_step_is_refused(reason: str) -> None:
    store, tool = MemoryStore(), saver([])
    agent = Agent([tool], script(act("a")), policy=FREE, store=store)
    run = agent.run("goal")
    agent.policy = WRITES
    state = agent.undo(run.run_id)
    saved = store._runs[state.run_id]
    head = json.loads(saved.head)
    head["open"]["decision"]["reason"] = reason
    saved.head = json.dumps(head)
    with pytest.raises(StateError, match="names no step to undo"):
        agent.undo(run.run_id)


def test_what_cannot_be_undone_is_refused_and_nothing_is_written() -> None:
    store, audit = MemoryStore(), MemoryAuditSink()
    agent = Agent([saver([])], script(act("a")), policy=WRITES, store=store, audit=audit)
    paused = agent.run("goal")
    before = len(audit.records)
    with pytest.raises(StateError, match="has not ended"):
        agent.undo(paused.run_id)
    with pytest.raises(StateError, match="does not hold it"):
        agent.undo("0" * 64)
    with pytest.raises(ValueError, match="run_id"):
        agent.undo("x")
    with pytest.raises(TypeError, match="approvals"):
        agent.undo(paused.run_id, approvals=3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="with a store only"):
        Agent([], script()).undo(paused.run_id)
    agent.resume(paused.run_id, approvals=approve(paused))
    with pytest.raises(StateError, match="the trail does not hold"):
        Agent([], script(), store=store, audit=MemoryAuditSink()).undo(paused.run_id)
    assert (store.runs(), len(audit.records) > before) == ([paused.run_id], True)
    agent.policy = FREE
    undoing = agent.undo(paused.run_id)
    with pytest.raises(StateError, match="undoes another run"):
        agent.undo(undoing.run_id)
    assert len(store.runs()) == 2


@pytest.mark.parametrize(
    ("undo", "error", "told"),
    [
        (3, TypeError, "Tool 'save': undo must be callable or None, not int"),
        (lambda: None, ValueError, "Tool 'save': undo must take two arguments"),
        (lambda arguments: None, ValueError, "undo must take two arguments"),
        (lambda arguments, result, more: None, ValueError, "undo must take two arguments"),
        (lambda *, arguments, result: None, ValueError, "undo must take two arguments"),
    ],
)
def test_an_inverse_that_cannot_be_called_is_refused_when_the_tool_is_made(
    undo: Any, error: type[Exception], told: str
) -> None:
    with pytest.raises(error, match=told):
        writer([], undo=undo)
    assert saver([]).undo is not None
    assert saver([]).digest == writer([]).digest, "a planner is shown nothing of it"
    assert writer([], undo=lambda *both: None).undo is not None
