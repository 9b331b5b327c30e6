"""Answers to a request: how many, by whom, when, and how that is proved."""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from support import TEXT, WRITES, ByAgent, ByAsync, ByHand, approve, script, writer

from scikitplot.agent import (
    Agent,
    Approval,
    Decision,
    MemoryAuditSink,
    MemoryStore,
    Policy,
    RunState,
    SqliteStore,
    StateError,
    Tool,
    sign_approval,
    verify_audit,
)
from scikitplot.agent.keeper import Keeper

both = pytest.mark.parametrize("driver", [ByAgent, ByAsync, ByHand])

SAVE = Decision.act("save", {"text": "x"})
TWO = Policy({"write"}, approvals_needed=2)
ANN, BOB = b"a" * 16, b"b" * 16
KEYS = {"ann": ANN, "bob": BOB}


def yes(state: RunState, approver: str = "ann", **options: Any) -> Approval:
    assert state.pending is not None
    return Approval(state.pending.digest, True, approver, **options)


def no(state: RunState, approver: str = "ann", **options: Any) -> Approval:
    return replace(yes(state, approver, **options), granted=False)


def codes(state: RunState) -> list[str | None]:
    return [step.code for step in state.steps]


def events(runner: Any, *names: str) -> list[dict[str, Any]]:
    return [record.data for record in runner.records if record.event in names]


def another(first: Any, driver: Any, *arguments: Any, **options: Any) -> Any:
    """A driver of the same runs, as another process would have it."""
    trail = getattr(first, "audit", first.records)
    return driver(*arguments, store=first.store, audit=trail, **options)


def waits(state: RunState, before: RunState) -> bool:
    return state.status.value == "awaiting_approval" and state.pending == before.pending


# How many


@both
def test_approvers_count_once_each_and_their_answers_add_up_over_resumes(driver: Any) -> None:
    calls: list[str] = []
    runner = driver([writer(calls)], script(SAVE), policy=TWO)
    paused = runner.run()
    state = runner.resume(paused, [yes(paused), yes(paused)])
    assert waits(state, paused)
    state = runner.resume(state, [yes(paused)])
    state = runner.resume(state)
    assert waits(state, paused)
    assert calls == []
    runner = another(runner, driver, [writer(calls)], script(SAVE), policy=TWO)
    state = runner.resume(state, [yes(paused, "bob")])
    assert (state.status.value, calls) == ("completed", ["x"])
    assert [data["approver"] for data in events(runner, "approval")] == ["ann", "bob"]
    ignored = events(runner, "approval_ignored")
    assert [(data["approver"], data["error"]) for data in ignored] == 2 * [
        ("ann", "this approver answered already")
    ]


@both
def test_enough_answers_may_be_handed_in_together(driver: Any) -> None:
    calls: list[str] = []
    runner = driver([writer(calls)], script(SAVE), policy=TWO)
    paused = runner.run()
    assert runner.resume(paused, [yes(paused), yes(paused, "bob")]).status.value == "completed"
    assert calls == ["x"]


@both
def test_answers_that_disagree_are_refused_together_and_change_nothing(driver: Any) -> None:
    runner = driver([writer([])], script(SAVE), policy=TWO)
    paused = runner.run()
    before = len(runner.records)
    with pytest.raises(ValueError, match="disagree"):
        runner.resume(paused, [yes(paused), no(paused, "bob")])
    assert len(runner.records) == before
    assert waits(runner.resume(paused), paused)


@both
@pytest.mark.parametrize("refuser", ["bob", "ann"])
def test_a_refusal_after_a_grant_ends_it_and_its_reason_is_read(driver: Any, refuser: str) -> None:
    calls: list[str] = []
    runner = driver([writer(calls)], script(SAVE), policy=TWO)
    paused = runner.run()
    state = runner.resume(paused, [yes(paused)])
    state = runner.resume(state, [no(paused, refuser, reason="not on a Friday")])
    assert codes(state) == ["approval_denied", None]
    told = state.observations()[0]["error"]
    assert told == "a person refused this call: not on a Friday"
    assert calls == []
    assert [data["granted"] for data in events(runner, "approval")] == [True, False]


@both
def test_an_approver_that_is_asked_is_one_and_is_asked_on_while_its_answers_count(
    driver: Any,
) -> None:
    calls: list[str] = []
    names = iter(["ann", "ann", "bob"])

    def approver(request: Any) -> Approval:
        return Approval(request.digest, True, next(names))

    runner = driver([writer(calls)], script(SAVE), policy=TWO, approver=approver)
    state = runner.run()
    assert state.status.value == "awaiting_approval"
    assert [data["approver"] for data in events(runner, "approval")] == ["ann"]
    assert [data["approver"] for data in events(runner, "approval_ignored")] == ["ann"]
    assert calls == []
    assert runner.resume(state).status.value == "completed"
    assert [data["identity"] for data in events(runner, "approval")] == ["asked", "asked"]
    assert calls == ["x"]


@both
def test_whoever_is_asked_anew_answers_anew(driver: Any) -> None:
    """A call was approved by one and cut off; now the policy needs two."""
    calls: list[str] = []

    def dies(text: str) -> None:
        calls.append(text)
        if len(calls) == 1:
            raise KeyboardInterrupt

    tool = Tool("save", dies, parameters=TEXT, effect="write", idempotent=True)
    runner = driver([tool], script(SAVE), policy=WRITES)
    paused = runner.run()
    with pytest.raises(KeyboardInterrupt):
        runner.resume(paused, [yes(paused)])
    policy = Policy({"write"}, approvals_needed=2, approval_seconds=1000)
    runner = another(runner, driver, [tool], script(SAVE), policy=policy)
    state = runner.resume(paused)
    assert state.status.value == "awaiting_approval"
    state = runner.resume(state, [yes(state, "bob")])
    assert state.status.value == "awaiting_approval"
    assert runner.resume(state, [yes(state)]).status.value == "completed"
    assert calls == ["x", "x"]


# By whom


@both
@pytest.mark.parametrize("name", ["bob", "Ann", "ann ", "\u0430nn", "a\u200bnn"])
@pytest.mark.parametrize("granted", [True, False])
def test_the_answer_of_somebody_else_is_recorded_and_changes_nothing(
    driver: Any, name: str, granted: bool
) -> None:
    calls: list[str] = []
    policy = Policy({"write"}, approvers={"ann"})
    runner = driver([writer(calls)], script(SAVE), policy=policy)
    paused = runner.run()
    answer = replace(yes(paused, name), granted=granted)
    state = runner.resume(paused, [answer])
    assert waits(state, paused)
    assert calls == []
    assert events(runner, "approval") == []
    assert events(runner, "approval_ignored") == [
        {
            "approver": name,
            "error": "the policy does not name this approver",
            "granted": granted,
            "step": 0,
        }
    ]
    assert runner.resume(state, [yes(paused)]).status.value == "completed"
    assert calls == ["x"]


@both
def test_an_approver_that_is_asked_must_be_one_who_may_answer(driver: Any) -> None:
    calls: list[str] = []
    policy = Policy({"write"}, approvers={"ann"})
    bob = lambda request: Approval(request.digest, True, "bob")  # noqa: E731
    runner = driver([writer(calls)], script(SAVE), policy=policy, approver=bob)
    assert runner.run().status.value == "awaiting_approval"
    assert [data["approver"] for data in events(runner, "approval_ignored")] == ["bob"]
    assert calls == []


@both
def test_who_may_answer_is_judged_again_by_the_policy_as_it_is_now(driver: Any) -> None:
    calls: list[str] = []
    runner = driver([writer(calls)], script(SAVE), policy=TWO)
    paused = runner.run()
    state = runner.resume(paused, [yes(paused, "eve")])
    narrowed = Policy({"write"}, approvals_needed=2, approvers={"ann", "bob"})
    runner = another(runner, driver, [writer(calls)], script(SAVE), policy=narrowed)
    state = runner.resume(state, [yes(paused)])
    assert waits(state, paused)
    assert runner.resume(state, [yes(paused, "bob")]).status.value == "completed"
    assert calls == ["x"]


# How that is proved

FORGED: dict[str, Callable[[RunState], Approval]] = {
    "unsigned": yes,
    "signed with another key": lambda paused: sign_approval(yes(paused), b"c" * 16),
    "signed as another": lambda paused: replace(
        sign_approval(yes(paused, "bob"), BOB), approver="ann"
    ),
    "signed for another request": lambda paused: replace(
        sign_approval(Approval("0" * 64, True, "ann"), ANN), digest=yes(paused).digest
    ),
    "a refusal turned round": lambda paused: replace(sign_approval(no(paused), ANN), granted=True),
    "a reason changed": lambda paused: replace(
        sign_approval(yes(paused, reason="up to 5"), ANN), reason="any"
    ),
    "nobody's": lambda paused: sign_approval(yes(paused, "eve"), b"c" * 16),
}


@both
@pytest.mark.parametrize("forged", FORGED)
def test_an_answer_without_a_valid_signature_is_recorded_and_changes_nothing(
    driver: Any, forged: str
) -> None:
    calls: list[str] = []
    runner = driver([writer(calls)], script(SAVE), policy=WRITES, approval_keys=KEYS)
    paused = runner.run()
    answer = FORGED[forged](paused)
    state = runner.resume(paused, [answer])
    assert waits(state, paused)
    assert calls == []
    assert events(runner, "approval") == []
    (ignored,) = events(runner, "approval_ignored")
    assert ignored["error"] == "it has no valid signature of its approver"
    assert ignored["approver"] == answer.approver
    state = runner.resume(state, [sign_approval(yes(paused), ANN)])
    assert state.status.value == "completed"
    assert [data["identity"] for data in events(runner, "approval")] == ["signed"]
    assert calls == ["x"]


@both
def test_a_refusal_needs_a_signature_too(driver: Any) -> None:
    runner = driver([writer([])], script(SAVE), policy=WRITES, approval_keys=KEYS)
    paused = runner.run()
    state = runner.resume(paused, [no(paused)])
    assert waits(state, paused)
    assert codes(runner.resume(state, [sign_approval(no(paused), ANN)]))[0] == "approval_denied"


@both
@pytest.mark.parametrize("signature", [None, "valid", "0" * 64])
def test_an_approver_that_is_asked_answers_for_itself_but_not_with_a_false_signature(
    driver: Any, signature: str | None
) -> None:
    calls: list[str] = []

    def approver(request: Any) -> Approval:
        answer = Approval(request.digest, True, "ann")
        if signature == "valid":
            return sign_approval(answer, ANN)
        return replace(answer, signature=signature)

    runner = driver(
        [writer(calls)], script(SAVE), policy=WRITES, approver=approver, approval_keys=KEYS
    )
    state = runner.run()
    identities = [data["identity"] for data in events(runner, "approval")]
    if signature == "0" * 64:
        assert (state.status.value, calls, identities) == ("awaiting_approval", [], [])
    else:
        expected = "asked" if signature is None else "signed"
        assert (state.status.value, calls, identities) == ("completed", ["x"], [expected])


@both
def test_without_keys_the_record_says_that_the_name_was_only_claimed(driver: Any) -> None:
    runner = driver([writer([])], script(SAVE), policy=WRITES)
    paused = runner.run()
    runner.resume(paused, [sign_approval(yes(paused), ANN)])
    assert [data["identity"] for data in events(runner, "approval")] == ["claimed"]


@both
def test_what_was_claimed_without_keys_counts_no_more_where_there_are_some(driver: Any) -> None:
    calls: list[str] = []
    runner = driver([writer(calls)], script(SAVE), policy=TWO)
    paused = runner.run()
    state = runner.resume(paused, [yes(paused)])
    runner = another(runner, driver, [writer(calls)], script(SAVE), policy=TWO, approval_keys=KEYS)
    state = runner.resume(state, [sign_approval(yes(paused, "bob"), BOB)])
    assert waits(state, paused)
    state = runner.resume(state, [sign_approval(yes(paused), ANN)])
    assert state.status.value == "completed"
    assert calls == ["x"]


@pytest.mark.parametrize("started", [False, True])
@pytest.mark.parametrize("identity", ["asked", "signed", "claimed"])
def test_without_a_store_the_caller_cannot_write_an_answer_into_the_state(
    identity: str, started: bool
) -> None:
    calls: list[str] = []
    tool, audit = writer(calls, idempotent=True), MemoryAuditSink()
    agent = Agent([tool], script(SAVE), policy=WRITES, audit=audit, approval_keys=KEYS)
    paused = agent.run("goal")
    saved = paused.to_dict()
    forged = {**yes(paused).to_dict(), "identity": identity, "received_at": 0.0}
    saved["open"]["answers"], saved["open"]["recorded"] = [forged], 1
    if started:
        saved["open"]["request"], saved["open"]["attempt"] = None, 1
        saved["status"] = "running"
    state = agent.resume(RunState.from_dict(saved))
    assert state.status.value == "awaiting_approval"
    assert calls == []


@pytest.mark.parametrize("started", [False, True])
def test_without_a_store_no_call_starts_by_an_answer_that_is_not_in_the_trail(
    started: bool,
) -> None:
    calls: list[str] = []
    tool, audit = writer(calls, idempotent=True), MemoryAuditSink()
    agent = Agent([tool], script(SAVE), policy=WRITES, audit=audit)
    paused = agent.run("goal")
    saved = paused.to_dict()
    claimed = {**yes(paused).to_dict(), "identity": "claimed", "received_at": 0.0}
    saved["open"]["answers"], saved["open"]["recorded"] = [claimed], 1
    if started:
        saved["open"]["request"], saved["open"]["attempt"] = None, 1
        saved["status"] = "running"
    assert agent.resume(RunState.from_dict(saved)).status.value == "completed"
    events = [record.event for record in audit.records]
    assert events.index("approval") < events.index("tool_started")


def test_one_signed_answer_counts_once_however_often_the_state_has_it() -> None:
    calls: list[str] = []
    audit = MemoryAuditSink()
    agent = Agent([writer(calls)], script(SAVE), policy=TWO, audit=audit, approval_keys=KEYS)
    paused = agent.run("goal")
    saved = agent.resume(paused, approvals=[sign_approval(yes(paused), ANN)]).to_dict()
    saved["open"]["answers"] *= 2
    assert waits(agent.resume(RunState.from_dict(saved)), paused)
    assert calls == []


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("answers", None),
        ("answers", [3]),
        ("recorded", 2),
        ("recorded", -1),
        ("recorded", True),
        ("identity", "proved"),
        ("identity", None),
        ("received_at", "now"),
        ("received_at", 10**400),
        ("granted", 1),
        ("signature", "x"),
        ("approver", ""),
        ("digest", "x"),
        ("more", 1),
    ],
)
def test_saved_answers_are_judged_before_they_are_read(field: str, value: Any) -> None:
    runner = ByAgent([writer([])], script(SAVE), policy=TWO)
    paused = runner.run()
    saved = runner.resume(paused, [yes(paused)]).to_dict()
    assert RunState.from_dict(saved).pending == paused.pending
    where = saved["open"] if field in ("answers", "recorded") else saved["open"]["answers"][0]
    where[field] = value
    with pytest.raises(StateError, match="saved state"):
        RunState.from_dict(saved).pending  # noqa: B018


def test_digests_are_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    runner = ByAgent([writer([])], script(SAVE), policy=WRITES)
    paused = runner.run()
    compared: list[Any] = []
    real = hmac.compare_digest
    monkeypatch.setattr(hmac, "compare_digest", lambda a, b: compared.append((a, b)) or real(a, b))
    own, other = yes(paused), Approval("0" * 64, True, "ann")
    assert runner.resume(paused, [other, own]).status.value == "completed"
    assert (other.digest, own.digest) in compared  # is it an answer?
    assert compared.count((own.digest, own.digest)) == 3  # the same, in the gate, and is it stale?


# When


class Now:
    """A wall clock that is set by hand."""

    def __init__(self) -> None:
        self.time = 1_000.0

    def __call__(self) -> float:
        return self.time


HOUR = Policy({"write"}, approval_seconds=3600)


@both
@pytest.mark.parametrize(
    ("passed", "code"),
    [
        (0.0, None),
        (3600.0, None),
        (3600.5, "approval_expired"),
        (1e9, "approval_expired"),
        (-0.5, "approval_expired"),
    ],
)
@pytest.mark.parametrize("granted", [True, False])
def test_an_answer_counts_up_to_approval_seconds_after_the_request(
    driver: Any, passed: float, code: str | None, granted: bool
) -> None:
    calls: list[str] = []
    now = Now()
    runner = driver([writer(calls)], script(SAVE), policy=HOUR, now=now)
    paused = runner.run()
    now.time += passed
    state = runner.resume(paused, [replace(yes(paused), granted=granted)])
    assert codes(state) == [code if granted or code else "approval_denied", None]
    assert calls == (["x"] if granted and code is None else [])
    (answer,) = events(runner, "approval")
    assert answer["received_at"] == 1_000.0 + passed
    if code is not None:
        error = state.observations()[0]["error"]
        assert "too late" in error
        assert "refused" not in error
        told = "the clock went back" if passed < 0 else f"{passed:.1f} seconds after the request"
        assert told in error


@both
@pytest.mark.parametrize(
    ("passed", "expires"), [(0.0, False), (3600.0, False), (3601.0, True), (-1e6, False)]
)
def test_a_run_that_is_resumed_too_late_without_an_answer_waits_no_more(
    driver: Any, passed: float, expires: bool
) -> None:
    now, asked = Now(), []
    first = driver([writer([])], script(SAVE), policy=HOUR, now=now)
    paused = first.run()
    now.time += passed
    runner = another(
        first, driver, [writer([])], script(SAVE), policy=HOUR, now=now, approver=asked.append
    )
    state = runner.resume(paused)
    if expires:
        assert codes(state) == ["approval_expired", None]
        assert state.steps[0].error.startswith("0 of 1 approvals came in time: 3601.0 seconds")
        assert asked == []  # nobody is asked what could not count
    else:
        assert waits(state, paused)
        assert len(asked) == 1
    assert events(runner, "approval") == []


@both
def test_one_answer_in_time_and_one_too_late_are_too_few(driver: Any) -> None:
    calls: list[str] = []
    now = Now()
    policy = Policy({"write"}, approval_seconds=3600, approvals_needed=2)
    runner = driver([writer(calls)], script(SAVE), policy=policy, now=now)
    paused = runner.run()
    now.time += 3000
    state = runner.resume(paused, [yes(paused)])
    assert waits(state, paused)
    now.time += 3000
    state = runner.resume(state, [yes(paused, "bob")])
    assert codes(state) == ["approval_expired", None]
    assert calls == []


@both
def test_the_time_that_an_approver_takes_counts(driver: Any) -> None:
    calls: list[str] = []
    now = Now()

    def approver(request: Any) -> Approval:
        now.time += 3601
        return Approval(request.digest, True, "ann")

    runner = driver([writer(calls)], script(SAVE), policy=HOUR, now=now, approver=approver)
    assert codes(runner.run()) == ["approval_expired", None]
    assert calls == []


def test_an_answer_that_came_in_time_counts_however_long_the_process_was_dead() -> None:
    """It died between the claim, which saves the answer, and the call."""
    calls: list[str] = []
    now, store = Now(), MemoryStore()
    audit = MemoryAuditSink()

    class Dying(MemoryAuditSink):
        def append(self, records: Any, *, expected: Any) -> None:
            raise KeyboardInterrupt

    tools, options = [writer(calls)], {"policy": HOUR, "store": store, "now": now}
    paused = Agent(tools, script(SAVE), audit=audit, **options).run("goal")
    dying = Dying()
    dying.head, dying.read = audit.head, audit.read  # type: ignore[method-assign]
    now.time += 60
    with pytest.raises(KeyboardInterrupt):
        Agent(tools, script(SAVE), audit=dying, **options).resume(
            paused.run_id, approvals=[yes(paused)]
        )
    now.time += 1e6
    state = Agent(tools, script(SAVE), audit=audit, **options).resume(paused.run_id)
    assert (state.status.value, calls) == ("completed", ["x"])
    (answer,) = [record.data for record in audit.records if record.event == "approval"]
    assert answer["received_at"] == 1_060.0


def test_a_clock_before_the_epoch_leaves_a_run_that_resumes() -> None:
    runner = ByAgent([writer([])], script(SAVE), policy=TWO, now=lambda: -5.0)
    paused = runner.run()
    state = runner.resume(paused, [yes(paused)])
    assert runner.resume(state, [yes(paused, "bob")]).status.value == "completed"


def test_a_run_that_is_stopped_while_it_waits_was_refused_by_nobody() -> None:
    runner = ByAgent([writer([])], script(SAVE), policy=HOUR)
    paused = runner.run()
    runner.agent.stop(paused.run_id)
    assert events(runner, "approval", "approval_ignored", "denied") == []


# Exactly this action


@both
def test_no_arguments_are_an_object_without_members_and_no_wildcard(driver: Any) -> None:
    calls: list[Any] = []
    tool = Tool(
        "wipe",
        lambda **given: calls.append(given),
        parameters={"type": "object", "properties": {"path": {"type": "string"}}},
        effect="write",
    )
    empty, full = Decision.act("wipe"), Decision.act("wipe", {"path": "/"})
    first = driver([tool], script(empty), policy=WRITES)
    other = driver([tool], script(full), policy=WRITES)
    paused, second = first.run(), other.run()
    assert waits(other.resume(second, approve(paused)), second)
    first.resume(paused, approve(paused))
    assert calls == [{}]


@both
def test_what_is_approved_is_what_is_called_whoever_changes_an_object_later(driver: Any) -> None:
    calls: list[str] = []
    given = {"text": "x"}

    def approver(request: Any) -> Approval:
        given["text"] = request.arguments["text"] = "rm -rf /"
        return Approval(request.digest, True, "ann")

    runner = driver(
        [writer(calls)], script(lambda state: Decision.act("save", given)), policy=WRITES,
        approver=approver,
    )  # fmt: skip
    state = runner.run()
    assert calls == ["x"]
    assert state.steps[0].decision.arguments == {"text": "x"}


@both
def test_an_answer_to_another_run_is_no_answer_and_no_refusal(driver: Any) -> None:
    calls: list[str] = []
    runner = driver([writer(calls)], script(SAVE), policy=WRITES)
    first, second = runner.run(), runner.run()
    state = runner.resume(first, [no(second)])
    assert waits(state, first)
    assert events(runner, "approval", "approval_ignored") == []
    assert runner.resume(state, [yes(first)]).status.value == "completed"
    assert calls == ["x"]


@both
@pytest.mark.parametrize(
    "change",
    [
        {"description": "Saves it!"},
        {"default": "y"},
        {"optional": True},
    ],
)
def test_any_change_of_a_definition_makes_the_approval_stale(driver: Any, change: Any) -> None:
    calls: list[str] = []
    text = {"type": "string", "default": "x"}

    def tool(properties: dict[str, Any], description: str = "Saves it.") -> Tool:
        return Tool(
            "save",
            lambda text, more="": calls.append(text),
            description=description,
            parameters={"type": "object", "properties": properties, "required": ["text"]},
            effect="write",
        )

    first = driver([tool({"text": text})], script(SAVE), policy=WRITES)
    paused = first.run()
    properties: dict[str, Any] = {"text": {**text, "default": change.get("default", "x")}}
    if "optional" in change:
        properties["more"] = {"type": "string"}
    changed = tool(properties, change.get("description", "Saves it."))
    second = another(first, driver, [changed], script(SAVE), policy=WRITES)
    state = second.resume(paused, [yes(paused)])
    assert codes(state) == ["approval_stale", None]
    assert calls == []
    digests = [data["tools"] for data in events(second, "run_started", "resumed")]
    assert len(set(digests)) == 2


# Whenever the process dies


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
@pytest.mark.parametrize("dies", ["before", "after"])
@pytest.mark.parametrize("commit", range(4))
def test_whenever_a_process_dies_no_answer_that_was_claimed_is_lost(
    kind: str, dies: str, commit: int, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    store: Any = MemoryStore() if kind == "memory" else SqliteStore(tmp_path / "runs.db")
    audit: Any = MemoryAuditSink() if kind == "memory" else store
    agent = Agent([writer(calls)], script(SAVE), policy=TWO, store=store, audit=audit)
    paused = agent.run("goal")
    real, left = Keeper.commit, [commit]

    def perform(keeper: Any, effect: Any) -> Any:
        left[0] -= 1
        if left[0] == -1 and dies == "before":
            raise KeyboardInterrupt
        result = yield from real(keeper, effect)
        if left[0] == -1:
            raise KeyboardInterrupt
        return result

    def resume(*answers: Approval) -> RunState | None:
        try:
            return agent.resume(paused.run_id, approvals=answers)
        except KeyboardInterrupt:
            return None

    monkeypatch.setattr(Keeper, "commit", perform)
    resume(yes(paused))
    saved = json.loads(store.load(paused.run_id).head)["open"]["answers"]
    assert bool(saved) == ((dies, commit) != ("before", 0))
    resume(yes(paused))
    resume(yes(paused, "bob"))
    state = resume(yes(paused, "bob"))
    assert state is not None
    assert left[0] < -1
    assert state.status.value in ("completed", "awaiting_approval")
    assert calls == ["x"] or state.steps[0].code == "interrupted"
    records = list(audit.read(paused.run_id))
    assert verify_audit(records, heads={paused.run_id: state.audit_head}) == []
    place = [record.event for record in records].index("tool_started")
    granted = {r.data["approver"] for r in records[:place] if r.event == "approval"}
    assert granted == {"ann", "bob"}
