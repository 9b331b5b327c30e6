"""A state machine: random planners, tools, policies, limits, answers, crashes and resumes.

A crash strikes before or after any effect: a write of the trail, a write of the state, the planner,
the approver, a call. What the tools really did is kept by an oracle outside the runtime, and every
start of a call is judged anew from the trail, by rules written down here a second time.
"""

from __future__ import annotations

import copy
import json
from collections import Counter
from decimal import Decimal
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, precondition, rule
from support import Dies, Fuse

from scikitplot.agent import (
    Agent,
    Approval,
    Decision,
    Limits,
    MemoryAuditSink,
    MemoryStore,
    Policy,
    RunState,
    Tool,
    ToolError,
    Usage,
    current_call,
    verify_audit,
)
from scikitplot.agent.approval import action_digest


class BrokenRule(BaseException):
    """A call started that should not have."""


class Store(MemoryStore):
    def __init__(self, fuse: Fuse) -> None:
        super().__init__()
        self.fuse = fuse

    def commit(self, *args: Any, **kwargs: Any) -> None:
        self.fuse.point()
        super().commit(*args, **kwargs)
        self.fuse.point()


class Sink(MemoryAuditSink):
    def __init__(self, fuse: Fuse) -> None:
        super().__init__()
        self.fuse = fuse

    def append(self, *args: Any, **kwargs: Any) -> None:
        self.fuse.point()
        super().append(*args, **kwargs)
        self.fuse.point()


effects = st.sampled_from(["read", "write", "external"])
scopes = st.sets(st.sampled_from(["a", "b"]))
NAMES = ["one", "two", "three"]
SCHEMA = {
    "type": "object",
    "properties": {"n": {"type": "integer", "minimum": 0, "maximum": 2}},
    "required": ["n"],
    "additionalProperties": False,
}
tool_specs = st.fixed_dictionaries(
    {
        "effect": effects,
        "scopes": scopes,
        "cost": st.sampled_from([0.0, 0.1, 0.25, 1.0]),
        "idempotent": st.sampled_from([None, True, False]),
        "ends": st.sampled_from(["returns", "returns", "raises", "returns a set"]),
    }
)
ALL = ["read", "write", "external"]
# Most policies let most calls through, or there would be little to see.
policies = st.builds(
    Policy,
    allow_effects=st.just(ALL) | st.just(ALL) | st.sets(effects, min_size=1),
    granted_scopes=st.just(["a", "b"]) | st.just(["a", "b"]) | scopes,
    allow_tools=st.none() | st.none() | st.sets(st.sampled_from(NAMES)),
    deny_tools=st.just(()) | st.just(()) | st.sets(st.sampled_from(NAMES), max_size=1),
    approval_effects=st.just(["write", "external"]) | st.sets(effects),
    approval_tools=st.sets(st.sampled_from(NAMES), max_size=1),
    arguments=st.just({}) | st.just({key: {"properties": {"n": {"maximum": 1}}} for key in NAMES}),
    approval_arguments=st.just({})
    | st.just({key: {"properties": {"n": {"const": 1}}} for key in NAMES}),
    approvals_needed=st.sampled_from([1, 1, 2]),
    approvers=st.none() | st.just({"person", "approver", "other"}) | st.just({"person"}),
)
limits = st.builds(
    Limits,
    max_steps=st.integers(3, 8),
    max_tool_calls=st.none() | st.integers(1, 5),
    max_cost=st.none() | st.sampled_from([0.3, 0.5, 2.0]),
    max_tokens=st.none() | st.none() | st.integers(10, 40),
    max_repeats=st.none() | st.none() | st.integers(0, 2),
)
acts = st.tuples(
    st.just("act"),
    st.sampled_from([*NAMES, *NAMES, *NAMES, "none"]),
    st.sampled_from([*[{"n": n} for n in (0, 1, 2)] * 3, {"n": 3}, {}, {"n": {1}}]),
    st.sampled_from([5, 5, 5, 5, None]),
)
finishes = st.tuples(st.just("finish"), st.sampled_from(["no", "yes", {1}]), st.none(), st.just(5))
fails = st.just(("raise", None, None, None))
decisions = st.sampled_from([acts] * 12 + [finishes] * 2 + [fails]).flatmap(lambda kind: kind)


class Runs(RuleBasedStateMachine):
    runs = Bundle("runs")

    def __init__(self) -> None:
        super().__init__()
        self.fuse = Fuse()
        self.store, self.audit = Store(self.fuse), Sink(self.fuse)
        self.starts: list[tuple[str, str, bool]] = []  # run, action, idempotent
        self.count = 0
        self.session: tuple[Policy, Limits, dict[str, Tool]] | None = None

    # One session

    def agent(
        self, specs: dict[str, Any], policy: Policy, limit: Limits, plan: Any, answers: Any
    ) -> Agent:
        tools = {name: self.tool(name, spec) for name, spec in specs.items()}
        self.session = policy, limit, tools

        def planner(state: RunState, described: Any) -> Decision:
            self.fuse.point()
            kind, what, arguments, tokens = plan[len(state.steps) % len(plan)]
            usage = None if tokens is None else Usage(tokens, 0.1)
            if kind == "raise":
                raise ValueError("the planner's own")
            if kind == "finish":
                return Decision.finish(what, usage=usage)
            return Decision.act(what, copy.deepcopy(arguments), usage=usage)

        def approver(request: Any) -> Any:
            self.fuse.point()
            answer = answers[request.step % len(answers)]
            if answer == "raises":
                raise ValueError
            if answer in (True, False):
                return Approval(request.digest, answer, "approver")
            return answer

        return Agent(
            tools.values(),
            planner,
            policy=policy,
            limits=limit,
            approver=approver if answers else None,
            done=lambda answer, state: answer == "yes" or "say yes",
            reconcile=self.reconcile,
            store=self.store,
            audit=self.audit,
        )

    def reconcile(self, request: Any) -> Any:
        """Tell what the oracle knows, or nothing."""
        self.fuse.point()
        if request.arguments["n"] == 2:
            return NotImplemented
        if any(start[1] == request.idempotency_key for start in self.starts):
            return ["it took effect"]
        raise ToolError("it did not")

    def tool(self, name: str, spec: dict[str, Any]) -> Tool:
        def function(n: int) -> Any:
            try:
                self.started(name, n)
            except AssertionError as error:  # which the runtime would take for the tool's own
                raise BrokenRule from error
            self.fuse.point()
            if spec["ends"] == "raises":
                raise ValueError
            return {n} if spec["ends"] == "returns a set" else [n]

        return Tool(
            name,
            function,
            parameters=SCHEMA,
            effect=spec["effect"],
            scopes=spec["scopes"],
            cost=spec["cost"],
            idempotent=spec["idempotent"],
        )

    def started(self, name: str, n: int) -> None:
        """Judge a call that has just started, from the trail and the saved state alone."""
        assert self.session is not None
        policy, limit, tools = self.session
        tool, call = tools[name], current_call()
        records = self.audit.read(call.run_id)
        last = records[-1]
        assert last.event == "tool_started"
        assert last.data["step"] == call.step
        assert last.data["digest"] == call.idempotency_key
        proposed = [r for r in records if r.event == "decision" and r.data["step"] == call.step]
        decision = proposed[-1].data["decision"]
        assert (decision["tool"], decision["arguments"]) == (name, {"n": n})
        assert isinstance(n, int)
        assert 0 <= n <= 2
        assert tool.effect in policy.allow_effects
        assert tool.scopes <= policy.granted_scopes
        assert name not in policy.deny_tools
        assert policy.allow_tools is None or name in policy.allow_tools
        saved = json.loads(self.store.load(call.run_id).head)  # type: ignore[union-attr]
        assert saved["open"]["attempt"] == call.attempt
        assert saved["open"]["digest"] == call.idempotency_key
        assert saved["open"]["request"] is None
        if limit.max_tool_calls is not None:
            assert saved["usage"]["tool_calls"] <= limit.max_tool_calls
        if limit.max_cost is not None:
            assert Decimal(saved["usage"]["cost"]) <= Decimal(repr(limit.max_cost))
        assert policy.arguments.problems(name, {"n": n}) == []
        if policy.reasons_to_ask(tool, {"n": n}):
            given = [
                r.data
                for r in records
                if r.event == "approval" and r.data["digest"] == call.idempotency_key
            ]
            answers = [data["granted"] for data in given]
            granted = {data["approver"] for data in given if data["granted"]}
            if policy.approvers is not None:
                granted &= policy.approvers
            assert len(granted) >= policy.approvals_needed
            # The last one: a refusal may stand before it that a crash kept out of the state, so
            # that the person was asked again.
            assert answers[-1:] == [True]
            assert call.idempotency_key == action_digest(
                call.run_id, call.step, tool, f'{{"n":{n}}}', proposed[-1].digest
            )
        self.starts.append((call.run_id, call.idempotency_key, tool.idempotent))

    def drive(self, function: Any, *args: Any, **kwargs: Any) -> None:
        try:
            function(*args, **kwargs)
        except Dies:
            pass
        finally:
            self.fuse.left = None

    # What may happen

    @rule(
        target=runs,
        specs=st.fixed_dictionaries(dict.fromkeys(NAMES, tool_specs)),
        policy=policies,
        limit=limits,
        plan=st.lists(decisions, min_size=1, max_size=5),
        answers=st.just([])
        | st.lists(st.sampled_from([True, True, False, None, "raises", 1]), max_size=3),
        crash=st.none() | st.integers(0, 20) | st.just(9),
    )
    @precondition(lambda self: self.count < 3)
    def start(
        self,
        specs: Any,
        policy: Policy,
        limit: Limits,
        plan: Any,
        answers: Any,
        crash: int | None,
    ) -> Any:
        self.count += 1
        run_id = f"{self.count:064x}"
        agent = self.agent(specs, policy, limit, plan, answers)
        self.fuse.left = crash
        self.drive(agent.run, "goal", run_id=run_id)
        return run_id, specs, policy, limit, plan

    @rule(
        run=runs,
        change=st.sampled_from(
            [*["nothing"] * 6, "policy", "tools", "limits", "definition", "definition"]
        ),
        policy=policies,
        limit=limits,
        drop=st.sampled_from(NAMES),
        answers=st.just([]) | st.lists(st.sampled_from([True, False, None]), max_size=2),
        given=st.sampled_from(["grant", "grant", "grant", "refuse", "other", "none"]),
        person=st.sampled_from(["person", "person", "other", "nobody"]),
        crash=st.none() | st.integers(0, 14) | st.just(10),
    )
    def resume(
        self,
        run: Any,
        change: str,
        policy: Policy,
        limit: Limits,
        drop: str,
        answers: Any,
        given: str,
        person: str,
        crash: int | None,
    ) -> None:
        run_id, specs, old_policy, old_limit, plan = run
        saved = self.store.load(run_id)
        if saved is None:  # it died before its first commit
            return
        if change == "tools":
            specs = {name: spec for name, spec in specs.items() if name != drop}
        if change == "definition":
            specs = {name: {**spec, "cost": spec["cost"] + 0.5} for name, spec in specs.items()}
        agent = self.agent(
            specs,
            policy if change == "policy" else old_policy,
            limit if change == "limits" else old_limit,
            plan,
            answers,
        )
        before = RunState.view(saved.head, list(saved.steps))
        handed: list[Approval] = []
        if before.pending is not None and given in ("grant", "refuse"):
            handed.append(Approval(before.pending.digest, given == "grant", person))
        elif given == "other":
            handed.append(Approval("0" * 64, True, "person"))
        self.fuse.left = crash
        self.drive(agent.resume, run_id, approvals=handed)
        after = self.store.load(run_id)
        assert after is not None
        assert after.steps[: len(saved.steps)] == saved.steps, "a committed step was lost"
        if before.status.has_ended:
            assert after == saved

    # What always holds

    @invariant()
    def the_trail_verifies(self) -> None:
        assert verify_audit(self.audit.records, heads=self.heads()) == []

    def heads(self) -> dict[str, Any]:
        states = {run_id: self.store.load(run_id) for run_id in self.store.runs()}
        return {
            run_id: tuple(json.loads(saved.head)["audit_head"])
            for run_id, saved in states.items()
            if saved is not None
        }

    @invariant()
    def no_call_starts_too_often(self) -> None:
        for (_, _, idempotent), count in Counter(self.starts).items():
            assert count <= (3 if idempotent else 1)

    @invariant()
    def each_saved_run_reads_back_and_adds_up(self) -> None:
        for run_id in self.store.runs():
            saved = self.store.load(run_id)
            assert saved is not None
            state = RunState.view(saved.head, list(saved.steps))
            assert RunState.from_json(state.to_json()) == state
            records = self.audit.read(run_id)
            known = records[: state.audit_head.seq + 1]
            events = Counter(record.event for record in known)
            open_steps = 1 if state.pending or state.in_flight else 0
            assert len(state.steps) + open_steps <= state.usage.decisions
            closed = events["denied"] + events["tool_finished"] + events["answer"]
            assert closed >= len(state.steps)
            assert state.usage.tool_calls <= events["tool_started"]
            # A call whose commit never came was recorded and never started.
            started = sum(1 for start in self.starts if start[0] == run_id)
            assert started <= state.usage.tool_calls

    @precondition(lambda self: self.starts)
    @invariant()
    def every_executed_step_was_started(self) -> None:
        started = Counter(start[0] for start in self.starts)
        for run_id in self.store.runs():
            saved = self.store.load(run_id)
            assert saved is not None
            executed = sum(json.loads(step)["outcome"] == "executed" for step in saved.steps)
            assert executed <= started[run_id]


Runs.TestCase.settings = settings(
    max_examples=150,
    stateful_step_count=20,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
TestRuns = Runs.TestCase
