"""A call that was cut off: who is asked what became of it, when, and what answer is believed."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
from support import (
    FREE,
    KINDS,
    WRITES,
    ByAgent,
    ByAsync,
    ByHand,
    Dies,
    Fuse,
    dying_stores,
    script,
    writer,
)

from scikitplot.agent import (
    Agent,
    Decision,
    Flow,
    Limits,
    MemoryStore,
    Policy,
    ReconcileRequest,
    RunState,
    Tool,
    ToolError,
    verify_audit,
)

SAVE = Decision.act("save", {"text": "x"})
both = pytest.mark.parametrize("driver", [ByAgent, ByAsync, ByHand])


def dying(started: list[str], **options: Any) -> Tool:
    def save(text: str) -> str:
        started.append(text)
        raise KeyboardInterrupt

    return Tool("save", save, parameters=writer([]).parameters, effect="write", **options)


def cut_off(driver: Any, tool: Tool) -> tuple[dict[str, Any], Any]:
    """Return what holds a run of which a call was cut off, and what names it."""
    first = driver([tool], script(SAVE), policy=FREE)
    with pytest.raises(KeyboardInterrupt):
        first.run()
    state: Any = RunState.view("{}", [])
    (state.run_id,) = first.store.runs() if isinstance(first.store, MemoryStore) else first.store
    return {"store": first.store, "audit": getattr(first, "audit", first.records)}, state


def events(runner: Any) -> list[str]:
    return [record.event for record in runner.records]


@both
def test_what_reconcile_tells_is_the_result_of_the_call_and_the_call_does_not_start_again(
    driver: Any,
) -> None:
    started: list[str] = []
    asked: list[ReconcileRequest] = []
    seen: list[Any] = []
    kept, state = cut_off(driver, dying(started))

    def reconcile(request: ReconcileRequest) -> Any:
        asked.append(request)
        assert events(second)[-1] == "resumed", "the run is claimed before anybody is asked"
        return {"saved": ("x", 1)}

    def planner(state: RunState, tools: Any) -> Decision:
        seen.append((state.steps[0].result, events(second)[-2:]))
        return Decision.finish("end")

    second = driver([dying(started)], planner, policy=FREE, reconcile=reconcile, **kept)
    state = second.resume(state)
    step = state.steps[0]
    assert (step.outcome.value, step.code, step.error) == ("executed", None, None)
    assert (step.result, step.attempts, started) == ({"saved": ["x", 1]}, 1, ["x"])
    assert seen == [(step.result, ["reconciled", "tool_finished"])]
    (start,) = [record for record in second.records if record.event == "tool_started"]
    assert asked == [
        ReconcileRequest(state.run_id, 0, "save", {"text": "x"}, 1, start.data["digest"])
    ]
    (told,) = [record.data for record in second.records if record.event == "reconciled"]
    assert told == {
        "attempt": 1, "digest": start.data["digest"], "outcome": "executed", "step": 0,
    }  # fmt: skip
    assert state.usage.tool_calls == 1
    assert verify_audit(second.records, heads={state.run_id: state.audit_head}) == []


def raises(error: BaseException) -> Callable[[Any], Any]:
    def reconcile(request: Any) -> Any:
        raise error

    return reconcile


UNKNOWN = "the call was cut off and is not idempotent; whether it took effect is unknown"


@both
@pytest.mark.parametrize(
    ("reconcile", "outcome", "code", "error"),
    [
        (None, "interrupted", "interrupted", UNKNOWN),
        (lambda request: NotImplemented, "interrupted", "interrupted", UNKNOWN),
        (
            raises(ValueError("secret")),
            "interrupted", "interrupted",
            f"{UNKNOWN}: the reconcile function raised ValueError",
        ),
        (
            lambda request: [{1}],
            "interrupted", "invalid_result",
            f"{UNKNOWN}: the result/0: a set is no JSON value",
        ),
        (lambda request: "x" * 100, "interrupted", "result_too_large", None),
        (raises(ToolError("it never arrived")), "failed", "tool_error", "it never arrived"),
        (lambda request: None, "executed", None, None),
    ],
    ids=["none", "unknown", "raises", "no json", "too large", "did not", "null"],
)  # fmt: skip
def test_only_a_sound_answer_is_believed_and_the_call_never_starts_twice(
    driver: Any, reconcile: Any, outcome: str, code: str | None, error: str | None
) -> None:
    started: list[str] = []
    kept, state = cut_off(driver, dying(started))
    limits = Limits(max_result_bytes=50)
    second = driver(
        [dying(started)], script(SAVE), policy=FREE, limits=limits, reconcile=reconcile, **kept
    )
    step = second.resume(state).steps[0]
    assert (step.outcome.value, step.code, step.result) == (outcome, code, None)
    if code == "result_too_large":
        assert step.error is not None
        assert step.error.startswith(f"{UNKNOWN}: the result is too large")
    else:
        assert step.error == error
    assert started == ["x"]
    assert events(second).count("reconciled") == (reconcile is not None)
    assert "secret" not in repr(second.records)


@both
def test_a_call_that_starts_again_is_asked_about_only_when_it_was_cut_off_three_times(
    driver: Any,
) -> None:
    started: list[str] = []
    asked: list[int] = []

    def reconcile(request: ReconcileRequest) -> str:
        asked.append(request.attempt)
        return "saved"

    kept, state = cut_off(driver, dying(started, idempotent=True))
    for count in (2, 3):
        second = driver(
            [dying(started, idempotent=True)], script(SAVE), policy=FREE,
            reconcile=reconcile, **kept,
        )  # fmt: skip
        with pytest.raises(KeyboardInterrupt):
            second.resume(state)
        assert (len(started), asked) == (count, [])
    state = second.resume(state)
    assert (len(started), asked, state.steps[0].result) == (3, [3], "saved")


@both
@pytest.mark.parametrize("tools", ["gone", "changed"])
def test_a_call_is_asked_about_also_where_its_tool_is_gone_or_changed(
    driver: Any, tools: str
) -> None:
    started: list[str] = []
    kept, state = cut_off(driver, dying(started, idempotent=True))
    now = [] if tools == "gone" else [dying(started, idempotent=True, description="saves")]
    second = driver(now, script(SAVE), policy=FREE, reconcile=lambda request: 7, **kept)
    assert (second.resume(state).steps[0].result, started) == (7, ["x"])


@pytest.mark.parametrize("idempotent", [True, False])
def test_of_a_run_that_is_to_stop_reconcile_is_asked_and_nothing_starts(idempotent: bool) -> None:
    started: list[str] = []
    kept, state = cut_off(ByAgent, dying(started, idempotent=idempotent))
    tool = dying(started, idempotent=idempotent)
    agent = Agent([tool], script(SAVE), policy=FREE, reconcile=lambda request: 7, **kept)
    agent.stop(state.run_id)
    state = agent.resume(state.run_id)
    assert (state.stop_reason, state.steps[0].result, started) == ("cancelled", 7, ["x"])


def test_nobody_is_asked_about_a_call_that_waits_for_a_person_or_never_started() -> None:
    store, asked = MemoryStore(), []
    agent = Agent([writer([])], script(SAVE), policy=WRITES, store=store, reconcile=asked.append)
    paused = agent.run("save")
    assert agent.resume(paused.run_id).pending == paused.pending
    agent.stop(paused.run_id)
    assert (agent.resume(paused.run_id).stop_reason, asked) == ("cancelled", [])


@both
@pytest.mark.parametrize("trusted", [True, False])
@pytest.mark.parametrize(("is_gone", "says"), [(True, 7), (False, 7), (False, None)])
def test_what_reconcile_tells_is_as_untrusted_as_its_tool(
    driver: Any, trusted: bool, is_gone: bool, says: Any
) -> None:
    tool = dying([], trusted=trusted)
    kept, state = cut_off(driver, tool)

    def reconcile(request: ReconcileRequest) -> Any:
        if says is None:
            raise ToolError("what the service said")
        return says

    policy = Policy(allow_effects=["write"], approval_effects=(), flow=Flow())
    tools = [writer([], "act"), *([] if is_gone else [tool])]
    plan = script(SAVE, Decision.act("act", {"text": "b"}))
    second = driver(tools, plan, policy=policy, reconcile=reconcile, **kept)
    state = second.resume(state)
    assert (state.pending is None) == (trusted and not is_gone)


@both
def test_changing_the_request_changes_nothing(driver: Any) -> None:
    kept, state = cut_off(driver, dying([]))

    def reconcile(request: ReconcileRequest) -> Any:
        request.arguments["text"] = "y"
        return request.arguments

    second = driver([], script(SAVE), policy=FREE, reconcile=reconcile, **kept)
    step = second.resume(state).steps[0]
    assert (step.decision.arguments, step.result) == ({"text": "x"}, {"text": "y"})


@pytest.mark.parametrize("kind", KINDS)
def test_wherever_the_process_dies_the_answer_is_asked_for_again_or_kept(
    kind: str, tmp_path: Any
) -> None:
    for at in itertools.count():
        fuse, started = Fuse(), []
        store, audit = dying_stores(kind, tmp_path, fuse)

        def reconcile(request: ReconcileRequest, fuse: Fuse = fuse) -> str:
            fuse.point()
            assert request.attempt == 1
            return "saved"

        options = {"policy": FREE, "store": store, "audit": audit, "reconcile": reconcile}
        agent = Agent([dying(started)], script(SAVE), **options)
        run_id = f"{at:064x}"
        with pytest.raises(KeyboardInterrupt):
            agent.run("save", run_id=run_id)
        fuse.left = at
        has_died = False
        try:
            state = agent.resume(run_id)
        except Dies:
            has_died, fuse.left = True, None
            state = agent.resume(run_id)
        step = state.steps[0]
        assert (step.outcome.value, step.result, started) == ("executed", "saved", ["x"])
        records = list(audit.read(run_id))
        assert verify_audit(records, heads={run_id: state.audit_head}) == []
        told = [record.data for record in records if record.event == "tool_finished"]
        assert {data["result"] for data in told} == {"saved"}
        if not has_died:
            break
    assert at > 7
