"""Agents that delegate to agents: one tree, one budget, one policy, one person to ask."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import FREE, KINDS, WRITES, Dies, Fuse, approve, dying_stores, script, writer

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
    current_call,
    delegate,
    recover,
    replay,
    verify_audit,
)
from scikitplot.agent.children import child_run
from scikitplot.agent.state.head import read_head

TEXT = {
    "type": "object",
    "properties": {"text": {"type": "string"}},
    "required": ["text"],
    "additionalProperties": False,
}


def save(text: str = "x", **more: Any) -> Decision:
    return Decision.act("save", {"text": text}, **more)


def ask_for(name: str = "child", goal: str = "do it", **more: Any) -> Decision:
    return Decision.act(name, {"goal": goal}, **more)


class Family:
    """A parent, its child and its grandchild over one store; the grandchild writes."""

    def __init__(
        self,
        *,
        policy: Policy = WRITES,
        depth: int = 2,
        bottom: Any = None,
        store: Any = None,
        audit: Any = None,
        **options: Any,
    ) -> None:
        self.store = MemoryStore() if store is None else store
        self.audit = MemoryAuditSink() if audit is None else audit
        self.calls: list[Any] = []
        self.keys: list[str] = []
        self.options = options
        self.policy, self.depth = policy, depth
        self.bottom = script(save()) if bottom is None else bottom

    def agent(self, **more: Any) -> Agent:
        """Return the agent anew, as another process would make it."""

        def note(text: str) -> str:
            self.calls.append(text)
            self.keys.append(current_call().idempotency_key)
            return "saved"

        tool = Tool("save", note, parameters=TEXT, effect="write", idempotent=True)
        agent = Agent([tool], self.bottom, policy=self.policy)
        for _ in range(self.depth - 1):
            agent = Agent([delegate(agent, "child", "Does it.")], script(ask_for()), policy=FREE)
        return Agent(
            [delegate(agent, "child", "Does it.")],
            script(ask_for()),
            policy=FREE,
            store=self.store,
            audit=self.audit,
            **{**self.options, **more},
        )

    def heads(self) -> dict[str, Any]:
        return {run_id: read_head(self.store.load(run_id).head) for run_id in self.store.runs()}

    def below(self, run_id: str, depth: int = 1, step: int = 0) -> Any:
        for _ in range(depth):
            run_id = child_run(run_id, step)
        saved = self.store.load(run_id)
        return None if saved is None else RunState.view(saved.head, saved.steps)

    def events(self, run_id: str) -> list[str]:
        return [record.event for record in self.audit.records if record.run_id == run_id]


def is_sound(family: Family) -> bool:
    heads = {run_id: head.audit_head for run_id, head in family.heads().items()}
    return verify_audit(family.audit.read(), heads=heads) == []


# What a delegated run is


def test_the_answer_of_the_child_is_the_result_of_the_step() -> None:
    family = Family(policy=FREE)
    state = family.agent().run("goal")
    assert (state.status.value, state.steps[0].result) == ("completed", "end")
    assert family.calls == ["x"]
    child, grandchild = family.below(state.run_id), family.below(state.run_id, 2)
    assert child.parent == (state.run_id, 0)
    assert grandchild.parent == (child.run_id, 0)
    assert (state.parent, child.goal, grandchild.goal) == (None, "do it", "do it")
    assert is_sound(family)
    started = [r.data for r in family.audit.records if r.event == "run_started"]
    assert [data.get("parent") for data in started] == [
        None,
        [state.run_id, 0],
        [child.run_id, 0],
    ]


def test_what_the_child_used_is_charged_to_its_parent_once() -> None:
    usage = Usage(tokens=10, cost=0.1)
    store = MemoryStore()
    tool = Tool("look", lambda: "seen", cost=0.2)
    child = Agent(
        [tool],
        lambda state, tools: (
            Decision.finish("end", usage=usage)
            if len(state.steps) == 2
            else Decision.act("look", usage=usage)
        ),
    )
    ticks = iter(range(1_000))
    agent = Agent(
        [delegate(child, "child", "Does it.")],
        lambda state, tools: (
            Decision.finish("end", usage=usage) if state.steps else ask_for(usage=usage)
        ),
        store=store,
        clock=lambda: float(next(ticks)),
    )
    state = agent.run("goal")
    used = state.usage
    assert (used.decisions, used.tool_calls, used.tokens) == (5, 3, 50)
    head = read_head(store.load(state.run_id).head)
    assert head.cost == Decimal("0.9")
    child_head = read_head(store.load(child_run(state.run_id, 0)).head)
    assert (head.delegated, child_head.usage.decisions) == (3, 3)
    # Its time is in the parent's once, and whatever passed is in no more than one of the two.
    assert child_head.usage.seconds < used.seconds < next(ticks)
    (told,) = [r.data for r in agent.audit.records if r.event == "child_finished"]
    assert told["usage"]["decisions"] == 3
    assert told["usage"]["cost"] == "0.7"


@pytest.mark.parametrize(
    ("planner", "options", "told"),
    [
        (script(*[save()] * 9), {"limits": Limits(max_steps=3)}, "stopped: max_steps"),
        (lambda state, tools: 1 / 0, {}, "failed: planner_failed"),
        (
            script(save()),
            {"done": lambda answer, state: "never", "limits": Limits(max_steps=2)},
            "stopped: max_steps",
        ),
    ],
)
def test_a_child_that_does_not_complete_fails_the_step_and_is_charged(
    planner: Any, options: Any, told: str
) -> None:
    calls: list[Any] = []
    child = Agent([writer(calls)], planner, policy=FREE, **options)
    agent = Agent(
        [delegate(child, "child", "Does it.")],
        script(ask_for()),
        policy=FREE,
        store=MemoryStore(),
    )
    state = agent.run("goal")
    (step, _) = state.steps
    assert (step.outcome.value, step.code) == ("failed", "tool_error")
    assert step.error == f"the run that it delegated to is {told}"
    below = RunState.view(*agent.store.load(child_run(state.run_id, 0)))  # type: ignore[union-attr]
    assert state.usage.decisions == 2 + below.usage.decisions
    assert state.usage.tool_calls == 1 + below.usage.tool_calls


def test_a_result_that_is_too_large_for_the_parent_fails_the_step() -> None:
    child = Agent([], lambda state, tools: Decision.finish("x" * 200))
    agent = Agent(
        [delegate(child, "child", "Does it.")],
        script(ask_for()),
        store=MemoryStore(),
        limits=Limits(max_result_bytes=100),
    )
    assert agent.run("goal").steps[0].code == "result_too_large"


def test_the_child_is_in_the_parents_trail_and_store_not_in_its_own() -> None:
    own_store, own_trail = MemoryStore(), MemoryAuditSink()
    asked: list[Any] = []

    def answers(request: Any) -> Approval:
        asked.append("the parent's")
        return Approval(request.digest, True, "ann")

    child = Agent(
        [writer([])],
        script(save()),
        policy=WRITES,
        store=own_store,
        audit=own_trail,
        approver=lambda request: asked.append("the child's"),
        now=lambda: 7.0,
    )
    agent = Agent(
        [delegate(child, "child", "Does it.")],
        script(ask_for()),
        policy=FREE,
        store=MemoryStore(),
        approver=lambda request: (
            asked.append("the parent's") or Approval(request.digest, True, "a")
        ),
        now=lambda: 5.0,
    )
    assert agent.run("goal").status.value == "completed"
    assert (list(own_store.runs()), own_trail.records, asked) == ([], [], ["the parent's"])
    assert {record.time for record in agent.audit.records} == {5.0}
    assert len(list(agent.store.runs())) == 2  # type: ignore[union-attr]


def test_what_either_hides_is_not_in_the_trail() -> None:
    def hide(word: str) -> Any:
        return lambda tool, argument, value: "***" if word in str(value) else value

    tools = [Tool("look", lambda text: f"seen {text}", parameters=TEXT)]
    child = Agent(
        tools,
        script(*(Decision.act("look", {"text": word}) for word in ("plum", "pear", "fig"))),
        redact=hide("plum"),
    )
    agent = Agent(
        [delegate(child, "child", "Does it.")],
        script(ask_for()),
        store=MemoryStore(),
        redact=hide("pear"),
    )
    agent.run("goal")
    told = "".join(record.line for record in agent.audit.records)
    assert ("plum" in told, "pear" in told, "fig" in told) == (False, False, True)


def test_the_depth_of_a_call_is_told_to_its_tool() -> None:
    seen: list[int] = []
    tool = Tool("look", lambda: seen.append(current_call().depth))
    agent = Agent([tool], script(Decision.act("look")))
    for _ in range(3):
        agent = Agent(
            [tool, delegate(agent, "child", "Does it.")],
            script(Decision.act("look"), ask_for()),
            store=MemoryStore(),
            limits=Limits(max_steps=50),
        )
    assert agent.run("goal").status.value == "completed"
    assert seen == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="4 deep; 3 is the most"):
        delegate(agent, "deeper", "Too deep.")


def test_agents_that_were_tied_to_a_ring_are_denied_at_the_fourth() -> None:
    agent = Agent([], script(ask_for()), store=MemoryStore(), limits=Limits(max_steps=50))
    ring = delegate(agent, "child", "Does it.")
    agent.tools = type(agent.tools)([ring])
    state = agent.run("goal")
    for _ in range(3):
        state = RunState.view(*agent.store.load(child_run(state.run_id, 0)))  # type: ignore[union-attr]
    assert (state.steps[0].outcome.value, state.steps[0].code) == ("denied", "max_depth")


# What it may do


@pytest.mark.parametrize("denies", ["parent", "child"])
def test_what_either_policy_denies_is_denied(denies: str) -> None:
    calls: list[Any] = []
    strict = Policy(approval_effects=())  # reads alone
    child = Agent([writer(calls)], script(save()), policy=strict if denies == "child" else FREE)
    agent = Agent(
        [delegate(child, "child", "Does it.")],
        script(ask_for()),
        policy=strict if denies == "parent" else FREE,
        store=MemoryStore(),
    )
    run_id = agent.run("goal").run_id
    below = RunState.view(*agent.store.load(child_run(run_id, 0)))  # type: ignore[union-attr]
    assert (calls, below.steps[0].code) == ([], "effect_denied")


def test_a_policy_that_names_its_tools_names_those_of_the_child_too() -> None:
    family = Family(policy=FREE, depth=1)
    agent = family.agent()
    agent.policy = Policy({"read", "write"}, allow_tools={"child"}, approval_effects=())
    run_id = agent.run("goal").run_id
    assert family.below(run_id).steps[0].code == "tool_denied"


def spends(child: Limits | None, parent: Limits, call: Limits | None = None) -> tuple[Any, Any]:
    """Return the states of a parent and a child that never ends by itself."""
    usage = Usage(tokens=7, cost=0.3)

    def plan(state: RunState, tools: Any) -> Decision:
        return Decision.act("look", usage=usage)

    ticks = iter(range(100_000))
    tool = Tool("look", lambda: None, cost=0.25)
    agent = Agent(
        [delegate(Agent([tool], plan, limits=child), "child", "Does it.", limits=call), tool],
        lambda state, tools: (
            ask_for(usage=usage) if len(state.steps) == 1 else Decision.act("look", usage=usage)
        ),
        limits=parent,
        store=MemoryStore(),
        clock=lambda: float(next(ticks)),
    )
    state = agent.run("goal")
    saved = agent.store.load(child_run(state.run_id, 1))  # type: ignore[union-attr]
    return state, None if saved is None else RunState.view(*saved)


MANY = Limits(max_steps=500)


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        (Limits(max_steps=9), "max_steps"),
        (Limits(500, max_tokens=50), "max_tokens"),
        (Limits(500, max_cost=3.0), "max_cost"),
        (Limits(500, max_seconds=90.0), "max_seconds"),
    ],
)
def test_a_child_uses_no_more_than_is_left_whichever_bound_is_the_smallest(
    limits: Limits, reason: str
) -> None:
    state, below = spends(MANY, limits)
    assert (state.stop_reason, below.stop_reason) == (reason, reason)
    for bounds in ((limits, MANY, None), (MANY, MANY, limits)):
        state, below = spends(*bounds)
        assert below.stop_reason == reason
        assert state.steps[1].outcome.value == "failed"


def test_calls_that_are_not_left_are_denied_in_the_child() -> None:
    state, below = spends(Limits(6), Limits(30, max_tool_calls=5))
    codes = [step.code for step in below.steps]
    assert codes == [None, None, None, "max_tool_calls", "max_tool_calls", "max_tool_calls"]
    assert state.usage.tool_calls == 5  # one before, the call itself, and three


@pytest.mark.parametrize(
    ("limits", "code"),
    [
        (Limits(max_steps=2), "max_steps"),
        (Limits(max_tool_calls=1), "max_tool_calls"),
        (Limits(max_tokens=14), "max_tokens"),
        (Limits(max_cost=0.85), "max_cost"),
        (Limits(max_seconds=5.0), "max_seconds"),
    ],
)
def test_where_nothing_is_left_the_call_is_denied_at_the_budget_gate(
    limits: Limits, code: str
) -> None:
    state, below = spends(None, limits)
    assert below is None
    assert (state.steps[1].outcome.value, state.steps[1].code) == ("denied", code)


amounts = st.integers(1, 40)


@given(
    st.lists(st.lists(st.sampled_from(["look", "child"]), max_size=5), min_size=4, max_size=4),
    st.integers(1, 30),
    st.one_of(st.none(), st.integers(0, 12)),
    st.one_of(st.none(), st.sampled_from([0.3, 1.1, 2.0, 7.7])),
    st.one_of(st.none(), st.integers(0, 60)),
)
@settings(max_examples=60, deadline=None)
def test_no_unit_is_overspent_over_any_tree(
    plans: list[list[str]],
    steps: int,
    calls: int | None,
    cost: float | None,
    tokens: int | None,
) -> None:
    started: list[float] = []
    usage = Usage(tokens=1)

    def plan_of(names: list[str]) -> Any:
        def plan(state: RunState, tools: Any) -> Decision:
            index = len(state.steps)
            if index >= len(names):
                return Decision.finish("end", usage=usage)
            if names[index] == "child" and len(tools) > 1:
                return ask_for(usage=usage)
            return Decision.act("look", usage=usage)

        return plan

    decided: list[int] = []

    def counted(plan: Any) -> Any:
        return lambda state, tools: decided.append(1) or plan(state, tools)

    look = Tool("look", lambda: started.append(0.1), cost=0.1)
    agent = Agent([look], counted(plan_of(plans[0])), limits=MANY)
    limits = Limits(steps, max_tool_calls=calls, max_cost=cost, max_tokens=tokens)
    for names in plans[1:]:
        agent = Agent(
            [look, delegate(agent, "child", "Does it.")],
            counted(plan_of(names)),
            limits=limits,
            store=MemoryStore(),
        )
    state = agent.run("goal")
    assert state.usage.decisions == len(decided) <= steps
    assert state.usage.tokens == len(decided)
    assert state.usage.tool_calls <= (1_000 if calls is None else calls)
    if cost is not None:
        assert len(started) * Decimal("0.1") <= Decimal(str(cost))
    # Each run of the tree holds what those below it used, and nothing is counted twice.
    heads = [read_head(agent.store.load(run).head) for run in agent.store.runs()]  # type: ignore[union-attr]
    root = next(head for head in heads if head.parent is None)
    assert root.cost == len(started) * Decimal("0.1")
    assert sum(head.usage.decisions - head.delegated for head in heads) == len(decided)


# Asking


def test_what_the_grandchild_asks_is_asked_of_the_parents_caller_and_runs_once() -> None:
    family = Family()
    paused = family.agent().run("goal")
    assert paused.status.value == "awaiting_approval"
    request = paused.pending
    assert request is not None
    grandchild = family.below(paused.run_id, 2)
    assert (request.run_id, request.tool, request.arguments) == (
        grandchild.run_id,
        "save",
        {"text": "x"},
    )
    child = family.below(paused.run_id)
    told = [f"step 0 of run {run} delegates to the run" for run in (paused.run_id, child.run_id)]
    assert request.reasons == (*told, "effect 'write' needs approval")
    assert family.below(paused.run_id).pending == grandchild.pending == request
    assert RunState.from_json(paused.to_json()) == paused
    assert RunState.from_json(paused.to_json()).pending == request
    assert family.calls == []
    yes = approve(paused)
    state = family.agent().resume(paused.run_id, approvals=yes)
    assert (state.status.value, family.calls) == ("completed", ["x"])
    assert family.agent().resume(paused.run_id, approvals=yes) == state
    assert family.calls == ["x"]
    assert is_sound(family)
    assert family.events(paused.run_id) == [
        "run_started",
        "decision",
        "tool_started",
        "child_paused",
        "resumed",
        "child_finished",
        "tool_finished",
        "decision",
        "answer",
        "run_finished",
    ]


def test_an_approval_of_another_request_or_a_refusal_runs_nothing() -> None:
    family = Family()
    paused = family.agent().run("goal")
    other = Approval("ab" * 32, True, "ann")
    still = family.agent().resume(paused.run_id, approvals=[other])
    assert (still.status, still.pending) == (paused.status, paused.pending)
    state = family.agent().resume(paused.run_id, approvals=approve(paused, granted=False))
    assert (state.status.value, family.calls) == ("completed", [])
    assert family.below(paused.run_id, 2).steps[0].code == "approval_denied"


def test_an_answer_of_who_may_not_answer_is_ignored_where_it_is_judged() -> None:
    family = Family(policy=Policy({"read", "write"}, approvers=["ann"]))
    paused = family.agent().run("goal")
    still = family.agent().resume(paused.run_id, approvals=approve(paused, approver="eve"))
    assert (still.status.value, family.calls) == ("awaiting_approval", [])
    assert "approval_ignored" in family.events(child_run(child_run(paused.run_id, 0), 0))
    assert read_head(family.store.load(paused.run_id).head).open.answers == ()  # type: ignore[union-attr]
    state = family.agent().resume(paused.run_id, approvals=approve(paused))
    assert (state.status.value, family.calls) == ("completed", ["x"])


def test_several_approvals_may_come_one_after_the_other() -> None:
    family = Family(policy=Policy({"read", "write"}, approvals_needed=2))
    paused = family.agent().run("goal")
    still = family.agent().resume(paused.run_id, approvals=approve(paused))
    assert still.pending == paused.pending
    state = family.agent().resume(paused.run_id, approvals=approve(paused, approver="bob"))
    assert (state.status.value, family.calls) == ("completed", ["x"])


def test_keys_of_the_child_hold_where_its_parent_has_none() -> None:
    key = b"k" * 32
    child = Agent([writer([])], script(save()), policy=WRITES, approval_keys={"ann": key})
    agent = Agent(
        [delegate(child, "child", "Does it.")], script(ask_for()), policy=FREE, store=MemoryStore()
    )
    paused = agent.run("goal")
    assert agent.resume(paused.run_id, approvals=approve(paused)).status == paused.status


def test_a_call_that_delegates_may_need_approval_itself() -> None:
    family = Family(policy=FREE, depth=1)
    agent = family.agent()
    agent.policy = Policy({"read", "write"}, approval_effects=(), approval_tools={"child"})
    paused = agent.run("goal")
    assert (paused.pending.run_id, family.below(paused.run_id)) == (paused.run_id, None)  # type: ignore[union-attr]
    state = agent.resume(paused.run_id, approvals=approve(paused))
    assert (state.status.value, family.calls) == ("completed", ["x"])


def test_time_in_which_a_person_is_asked_is_counted_nowhere() -> None:
    clock = [0.0]

    def approver(request: Any) -> Approval:
        clock[0] += 1_000.0
        return Approval(request.digest, True, "ann")

    family = Family(approver=approver, clock=lambda: clock[0])
    assert family.agent().run("goal").usage.seconds == 0.0


def test_a_call_that_goes_on_is_counted_once() -> None:
    family = Family(depth=1, limits=Limits(max_tool_calls=2))
    paused = family.agent().run("goal")
    state = family.agent().resume(paused.run_id, approvals=approve(paused))
    assert (state.usage.tool_calls, family.calls) == (2, ["x"])


# What it has read


def sends(text: str = "x") -> Decision:
    return Decision.act("send", {"text": text})


def send_tool(calls: list[Any]) -> Tool:
    return writer(calls, "send", effect="external", targets=["text"], trusted=True)


UNTRUSTED = Tool("look", lambda: "call 555")
WITH_FLOW = Policy({"read", "write", "external"}, approval_effects=(), flow=Flow())


def test_what_a_tainted_child_returns_taints_its_parent() -> None:
    calls: list[Any] = []
    for tool, tainted in ((UNTRUSTED, True), (Tool("look", lambda: "y", trusted=True), False)):
        child = Agent([tool], script(Decision.act("look")), policy=WITH_FLOW)
        agent = Agent(
            [delegate(child, "child", "Does it."), send_tool(calls)],
            script(ask_for(), sends()),
            policy=WITH_FLOW,
            store=MemoryStore(),
        )
        state = agent.run("goal")
        assert (state.tainted, len(calls)) == (tainted, 0 if tainted else 1)
        assert (state.status.value == "awaiting_approval") is tainted


def test_the_goal_of_a_child_of_a_tainted_parent_is_untrusted() -> None:
    calls: list[Any] = []
    child = Agent([send_tool(calls)], script(sends("555")), policy=WITH_FLOW)
    agent = Agent(
        [delegate(child, "child", "Does it."), UNTRUSTED],
        script(Decision.act("look"), ask_for(goal="send to 555")),
        policy=WITH_FLOW,
        store=MemoryStore(),
    )
    state = agent.run("goal")
    assert (state.status.value, calls) == ("awaiting_approval", [])
    assert "the goal is untrusted" in state.pending.reasons[-1]  # type: ignore[union-attr]


def test_what_a_tainted_child_returns_endorses_nothing_whatever_is_looked_up() -> None:
    calls: list[Any] = []
    child = Agent(
        [UNTRUSTED],
        lambda state, tools: (
            Decision.finish({"phone": "555"}) if state.steps else Decision.act("look")
        ),
        policy=WITH_FLOW,
    )
    flow = Flow({"send.text": ["child.phone"]})
    policy = Policy({"read", "write", "external"}, approval_effects=(), flow=flow)
    agent = Agent(
        [delegate(child, "child", "Does it."), send_tool(calls)],
        script(ask_for(goal="Bob"), sends("555")),
        policy=policy,
        store=MemoryStore(),
    )
    assert agent.run("call Bob").status.value == "awaiting_approval"
    assert calls == []


def test_what_was_delegated_is_used_as_what_is_read_from_is() -> None:
    calls: list[Any] = []
    child = Agent([UNTRUSTED], script(Decision.act("look")), policy=WITH_FLOW)
    agent = Agent(
        [delegate(child, "child", "Does it."), send_tool(calls)],
        script(ask_for(goal="look at evil.org"), sends("evil.org")),
        policy=WITH_FLOW,
        store=MemoryStore(),
    )
    assert agent.run("look at evil.org").status.value == "awaiting_approval"
    assert calls == []


@pytest.mark.parametrize("below", [False, True])
def test_a_secret_is_known_above_and_below(below: bool) -> None:
    calls: list[Any] = []
    secret = Tool("look", lambda: "s", trusted=True, secret=True)
    tell = Tool(
        "tell",
        lambda text: calls.append(text),
        parameters=TEXT,
        effect="external",
        targets=[],
    )
    tools, plan = [tell], script(Decision.act("tell", {"text": "s"}))
    if below:
        child = Agent([secret], script(Decision.act("look")), policy=WITH_FLOW)
        mine, first = [*tools], [ask_for(), Decision.act("tell", {"text": "s"})]
    else:
        child = Agent(tools, plan, policy=WITH_FLOW)
        mine, first = [secret], [Decision.act("look"), ask_for()]
    agent = Agent(
        [delegate(child, "child", "Does it."), *mine],
        script(*first),
        policy=WITH_FLOW,
        store=MemoryStore(),
    )
    state = agent.run("goal")
    assert (state.status.value, calls) == ("awaiting_approval", [])
    assert "secret" in state.pending.reasons[-1]  # type: ignore[union-attr]


# Dying


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("answered", [False, True])
def test_a_tree_that_dies_at_any_write_is_resumed_to_the_same_result(
    kind: str, answered: bool, tmp_path: Path
) -> None:
    points, result = 0, None
    while True:
        fuse, folder = Fuse(), tmp_path / str(points)
        folder.mkdir()
        store, audit = dying_stores(kind, folder, fuse)
        family = Family(store=store, audit=audit)
        run_id = f"{points + 1:064x}"
        if answered:
            paused = family.agent().run("goal", run_id=run_id)
        fuse.left = points
        try:
            if answered:
                family.agent().resume(run_id, approvals=approve(paused))
            else:
                family.agent().run("goal", run_id=run_id)
            blew = False
        except Dies:
            blew = True
        fuse.left = None
        state = None
        for _ in range(4):
            saved = store.load(run_id)
            if saved is None:
                state = family.agent().run("goal", run_id=run_id)
                continue
            view = RunState.view(saved.head, saved.steps)
            # What was answered is kept from the claim on, whichever process goes on with it.
            is_held = answered and view.revision > paused.revision
            yes = approve(view) if view.pending and not is_held else []
            state = family.agent().resume(run_id, approvals=yes)
        assert state is not None
        views = [RunState.view(*store.load(run)) for run in sorted(store.runs())]
        told = [
            (view.status, view.answer, [(step.outcome, step.result) for step in view.steps])
            for view in views
        ]
        result = told if result is None else result
        assert sorted(map(repr, told)) == sorted(map(repr, result)), f"point {points}"
        assert state.usage.decisions == 6, f"point {points}"
        again = sum(step.attempts > 1 for view in views for step in view.steps)
        assert state.usage.tool_calls == 3 + again, f"point {points}"
        assert len(set(family.keys)) == 1, f"point {points}"
        assert len(family.keys) <= 1 + again, f"point {points}"
        assert is_sound(family), f"point {points}"
        assert not any(record.event == "approval_ignored" for record in audit.read())
        if not blew:
            break
        points += 1
    assert points > 10


def test_a_child_that_was_cut_off_goes_on_and_none_begins_in_its_place() -> None:
    died: list[int] = []

    def bottom(state: RunState, tools: Any) -> Decision:
        if len(state.steps) == 1 and not died:
            died.append(1)
            raise KeyboardInterrupt
        return script(save(), save("y"))(state, tools)

    family = Family(policy=FREE, bottom=bottom)
    with pytest.raises(KeyboardInterrupt):
        family.agent().run("goal", run_id="1" * 64)
    assert family.calls == ["x"]
    (recovered,) = recover(family.store, family.agent)
    assert recovered.state is not None
    assert recovered.state.status.value == "completed"
    assert family.calls == ["x", "y"]
    assert len(family.heads()) == 3


def test_a_child_is_resumed_with_its_parent_only() -> None:
    family = Family(depth=1)
    paused = family.agent().run("goal")
    child = child_run(paused.run_id, 0)
    with pytest.raises(StateError, match=f"step 0 of run {paused.run_id} delegates to it"):
        family.agent().resume(child, approvals=approve(paused))
    assert family.calls == []


def test_a_run_that_bears_the_childs_id_and_is_none_is_refused() -> None:
    family = Family(policy=FREE, depth=1)
    family.agent().run("goal", run_id=child_run("2" * 64, 0))
    with pytest.raises(StateError, match="says otherwise"):
        family.agent().run("goal", run_id="2" * 64)


def test_a_policy_that_denies_it_meanwhile_stops_what_was_delegated() -> None:
    family = Family()
    paused = family.agent().run("goal")
    denies = Policy({"read", "write"}, deny_tools={"child"})
    agent = family.agent()
    agent.policy = denies
    ended = agent.resume(paused.run_id, approvals=approve(paused))
    step = ended.steps[0]
    assert (step.outcome.value, step.code) == ("denied", "tool_denied")
    assert family.calls == []
    assert [head.status.value for head in family.heads().values()].count("stopped") == 2
    assert ended.usage.decisions == 4  # those below it too


def test_a_child_whose_tool_is_gone_is_stopped_and_charged() -> None:
    family = Family()
    paused = family.agent().run("goal")
    agent = Agent([], script(ask_for()), policy=FREE, store=family.store, audit=family.audit)
    state = agent.resume(paused.run_id, approvals=approve(paused))
    step = state.steps[0]
    assert (step.outcome.value, step.code) == ("interrupted", "interrupted")
    assert state.usage.decisions == 4
    statuses = [head.status.value for head in family.heads().values()]
    assert sorted(statuses) == ["completed", "stopped", "stopped"]


# Stopping


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_a_run_that_waits_is_stopped_with_all_below_it(depth: int) -> None:
    family = Family(depth=depth)
    paused = family.agent().run("goal")
    family.agent().stop(paused.run_id, "enough")
    heads = family.heads().values()
    assert [(head.status.value, head.stop_reason, head.error) for head in heads] == [
        ("stopped", "cancelled", "enough")
    ] * (depth + 1)
    assert family.calls == []
    assert family.heads()[paused.run_id].usage.decisions == depth + 1


@pytest.mark.parametrize("by", ["who drives it", "another process"])
def test_a_run_that_goes_on_is_stopped_with_all_below_it(by: str) -> None:
    runs = "3" * 64

    def bottom(state: RunState, tools: Any) -> Decision:
        if len(state.steps) == 1:
            (agent if by == "who drives it" else family.agent()).stop(runs, "enough")
        return save()

    family = Family(policy=FREE, bottom=bottom)
    agent = family.agent()
    state = agent.run("goal", run_id=runs)
    assert (state.status.value, state.stop_reason, state.error) == (
        "stopped",
        "cancelled",
        "enough",
    )
    assert family.calls == ["x"]
    assert {head.status.value for head in family.heads().values()} == {"stopped"}


def test_a_stop_that_comes_while_the_child_begins_reaches_it() -> None:
    family = Family(policy=FREE, depth=1)
    run_id = "4" * 64
    child = child_run(run_id, 0)
    commit = family.store.commit

    def stops(run: str, *args: Any, **kwargs: Any) -> None:
        if run == child and kwargs["expected"] is None:
            family.agent().stop(run_id, "enough")  # it finds no child yet
        commit(run, *args, **kwargs)

    family.store.commit = stops
    state = family.agent().run("goal", run_id=run_id)
    assert (state.stop_reason, family.calls) == ("cancelled", [])


def test_one_below_may_be_stopped_alone() -> None:
    family = Family()
    paused = family.agent().run("goal")
    grandchild = child_run(child_run(paused.run_id, 0), 0)
    family.agent().stop(grandchild)
    state = family.agent().resume(paused.run_id)
    assert (state.status.value, family.calls) == ("completed", [])
    assert family.below(paused.run_id).steps[0].code == "tool_error"


# After the end


def test_what_was_delegated_is_undone_by_itself_and_named_until_then() -> None:
    there: set[str] = set()
    tool = Tool(
        "make",
        lambda: there.add("file"),
        effect="write",
        undo=lambda arguments, result: there.remove("file"),
    )
    store, audit = MemoryStore(), MemoryAuditSink()
    options: dict[str, Any] = {"policy": FREE, "store": store, "audit": audit}
    child = Agent([tool], script(Decision.act("make")), **options)
    agent = Agent([delegate(child, "child", "Makes it.")], script(ask_for()), **options)
    state = agent.run("goal")
    below = child_run(state.run_id, 0)
    assert agent.undo(state.run_id).answer == {
        "left": [{"step": 0, "tool": "child", "why": f"delegated to run {below}"}],
        "undone": [],
        "unlisted": 0,
    }
    assert child.undo(below).answer == {"left": [], "undone": [0], "unlisted": 0}
    assert there == set()


def test_a_replay_counts_what_was_delegated() -> None:
    child = Agent([UNTRUSTED], script(*[Decision.act("look")] * 3))
    tools = [delegate(child, "child", "Does it."), UNTRUSTED]
    agent = Agent(tools, script(ask_for(), Decision.act("look")), store=MemoryStore())
    state = agent.run("goal")
    assert state.usage.decisions == 7

    def judged(most: int) -> Any:
        (run,) = replay(state, tools=tools, policy=Policy(), limits=Limits(most), trail=agent.audit)
        return run.stop

    assert judged(7) is None
    assert judged(6) == (2, "max_steps")
    assert judged(5) == (1, "max_steps")


def test_a_replay_judges_what_was_delegated_with_the_tools_and_policy_of_its_agent() -> None:
    family = Family(policy=FREE)
    tools = list(family.agent().tools)
    family.agent().run("goal")

    def codes(policy: Policy) -> list[Any]:
        found = replay(family.store, tools=tools, policy=policy, trail=family.audit)
        return sorted(step.after.code for run in found for step in run.changes)

    assert codes(FREE) == []
    assert codes(Policy({"read"})) == ["effect_denied"]
    assert codes(Policy({"read", "write"}, deny_tools={"save"}, approval_effects=())) == [
        "tool_denied"
    ]
    other = Family(policy=Policy({"read"}))
    found = replay(family.store, tools=other.agent().tools, policy=FREE, trail=family.audit)
    assert [s.after.code for run in found for s in run.changes] == ["effect_denied"]


# What is wrong


def test_an_agent_that_delegates_needs_a_store() -> None:
    agent = Agent([delegate(Agent([], script()), "child", "Does it.")], script())
    with pytest.raises(ValueError, match=r"needs a store.*MemoryStore"):
        agent.run("goal")


def test_a_tool_that_delegates_is_called_by_a_run_only() -> None:
    with pytest.raises(RuntimeError, match="inside a run only"):
        delegate(Agent([], script()), "child", "Does it.")(goal="x")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((None, "a", "b"), "agent must be an Agent, not NoneType"),
        ((Agent([], script()), "a b", "c"), "name must be 1 to 64"),
        ((Agent([], script()), "a", None), "description must be a str"),
    ],
)
def test_what_is_no_delegation_is_refused(arguments: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        delegate(*arguments)
    with pytest.raises(TypeError, match="limits must be a Limits or None"):
        delegate(Agent([], script()), "a", "b", limits=3)  # type: ignore[arg-type]


@pytest.mark.parametrize("goal", [{}, {"goal": ""}, {"goal": 1}, {"goal": "x", "more": 1}])
def test_a_goal_that_is_none_is_denied(goal: Any) -> None:
    agent = Agent(
        [delegate(Agent([], script()), "child", "Does it.")],
        script(Decision.act("child", goal)),
        store=MemoryStore(),
    )
    assert agent.run("goal").steps[0].code == "invalid_arguments"


def test_an_error_of_a_tool_below_stays_below() -> None:
    def fails() -> None:
        raise ToolError("told to the child's planner")

    child = Agent(
        [Tool("look", fails)],
        lambda state, tools: Decision.act("look"),
        limits=Limits(max_steps=1),
    )
    agent = Agent([delegate(child, "child", "Does it.")], script(ask_for()), store=MemoryStore())
    assert "told" not in str(agent.run("goal").steps[0].error)
