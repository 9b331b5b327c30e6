"""The saved form: what was saved reads back equal, and nothing else reads at all."""

from __future__ import annotations

import ast
import contextlib
import copy
import functools
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import FREE, WRITES, approve, script, writer

import scikitplot.agent
from scikitplot.agent import (
    Agent,
    Approval,
    Decision,
    Limits,
    MemoryAuditSink,
    MemoryStore,
    RunState,
    StateError,
    Step,
    Tool,
    Toolset,
    Usage,
)

SAVE = Decision.act(
    "save",
    {"text": "x\x00\u2028🎈"},
    reason="why",
    usage=Usage(3, 0.1, 2),
    repairs=["mended"],
    extra={"signature": "s"},
)


def states() -> dict[str, RunState]:
    """A state of each kind."""

    def cut(text: str) -> None:
        raise KeyboardInterrupt

    found = {}
    made = {
        "completed": Agent([writer([])], script(SAVE, Decision.act("no")), policy=FREE),
        "stopped": Agent([], lambda s, t: Decision.act("no"), limits=Limits(max_steps=2)),
        "failed": Agent([], lambda s, t: 3),  # type: ignore[arg-type, return-value]
        "awaiting": Agent([writer([])], script(SAVE), policy=WRITES),
        "rejected": Agent([], script(), done=lambda a, s: len(s.steps) > 0),
    }
    for name, agent in made.items():
        found[name] = agent.run("goal")
    parts = [
        Agent([writer([])], script(SAVE), policy=WRITES, approver=lambda asked: None),
        Agent(
            [Tool("save", cut, parameters=writer([]).parameters, effect="write")],
            script(SAVE),
            policy=FREE,
        ),
        Agent([], script(), done=lambda a, s: cut("")),  # type: ignore[arg-type, return-value, func-returns-value]
    ]
    for name, agent in zip(["asked", "in flight", "being checked"], parts, strict=True):
        store = agent.store = MemoryStore()
        with contextlib.suppress(KeyboardInterrupt):
            agent.run("goal")
        saved = store.load(store.runs()[0])
        assert saved is not None
        found[name] = RunState.view(*saved)
    return found


STATES = states()
each_state = pytest.mark.parametrize("state", list(STATES.values()), ids=list(STATES))


@each_state
def test_a_saved_state_reads_back_equal(state: RunState) -> None:
    assert RunState.from_json(state.to_json()) == state
    assert RunState.from_dict(state.to_dict()) == state
    again = RunState.from_json(state.to_json())
    for name in (
        "run_id", "goal", "status", "stop_reason", "answer", "error", "steps", "usage", "pending",
        "in_flight", "revision", "audit_head", "parent",
    ):  # fmt: skip
        assert getattr(again, name) == getattr(state, name), name
    for step in state.steps:
        assert Step.from_json(step.to_json()) == step
        assert Step.from_dict(step.to_dict()) == step


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path]
    if isinstance(value, dict):
        for key, item in value.items():
            found += places(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            found += places(item, (*path, index))
    return found


JUNK = [None, True, 0, -1, 1.5, "", "x", "\ud800", [], {}, [1], {"lc": 1}, 2**5_000, float("nan")]


@each_state
def test_a_field_of_another_type_is_a_state_error_and_no_other_exception(state: RunState) -> None:
    saved = state.to_dict()
    for path in places(saved):
        old = functools.reduce(lambda value, part: value[part], path, saved)
        for junk in JUNK:
            changed: Any = copy.deepcopy(saved)
            if path:
                functools.reduce(lambda value, part: value[part], path[:-1], changed)[path[-1]] = (
                    junk
                )
            else:
                changed = junk
            try:
                read = RunState.from_dict(changed)
            except StateError as error:
                message = str(error)
            else:
                assert RunState.from_json(read.to_json()) == read
                optional = old is None or junk is None
                any_json = {"result", "arguments", "answer", "extra"} & set(map(str, path))
                assert optional or any_json or type(old) is type(junk), (path, junk)
                continue
            assert len(message) < 400


@each_state
def test_a_missing_or_an_extra_field_is_named(state: RunState) -> None:
    saved = state.to_dict()
    for path in places(saved):
        if not path or not isinstance(path[-1], str) or {"arguments", "extra"} & set(path[:-1]):
            continue
        changed = copy.deepcopy(saved)
        inner: Any = changed
        for part in path[:-1]:
            inner = inner[part]
        del inner[path[-1]]
        with pytest.raises(StateError, match=path[-1]):
            RunState.from_dict(changed)
        inner["__reduce__"] = inner["more"] = 1
        with pytest.raises(StateError):
            RunState.from_dict(changed)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "3", "null", "[" * 100_000, '"x"', "{}", None, b"{}"]
)
def test_a_text_that_is_no_state_is_a_state_error(text: Any) -> None:
    with pytest.raises(StateError):
        RunState.from_json(text)
    with pytest.raises(StateError):
        Step.from_json(text)


def test_a_newer_version_is_refused_in_one_sentence_and_nothing_is_written() -> None:
    store = MemoryStore()
    agent = Agent([writer([])], script(SAVE), policy=WRITES, store=store)
    paused = agent.run("goal")
    saved = paused.to_dict()
    saved["version"] = 99
    with pytest.raises(StateError, match="version is 99, newer than 1"):
        RunState.from_dict(saved)
    head = json.loads(store.load(paused.run_id).head)  # type: ignore[union-attr]
    head["version"] = 99
    store._runs[paused.run_id].head = json.dumps(head)
    before = store.load(paused.run_id), len(agent.audit.records)
    with pytest.raises(StateError, match="upgrade the package"):
        agent.resume(paused.run_id)
    assert (store.load(paused.run_id), len(agent.audit.records)) == before


def test_nothing_in_the_package_builds_code_or_classes_from_data() -> None:
    folder = Path(scikitplot.agent.__file__).parent
    known = {"pickle", "marshal", "shelve", "eval", "exec", "__import__", "import_module"}
    for path in folder.rglob("*.py"):
        # A module is imported where whoever is at the command line names one, and nowhere else.
        banned = known if path == folder / "commands" / "trails.py" else {*known, "resolve_name"}
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = set()
            if isinstance(node, ast.Name):
                names = {node.id}
            elif isinstance(node, ast.Attribute):
                names = {node.attr}
            elif isinstance(node, ast.Import):
                names = {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                names = {node.module or "", *(alias.name for alias in node.names)}
            elif isinstance(node, ast.keyword) and path.name != "policy_file.py":
                # There a hook refuses keys that are given twice, and makes dicts.
                names = {node.arg or ""} & {"object_hook", "object_pairs_hook"}
                if isinstance(node.value, ast.Name) and node.value.id == "_no_key_twice":
                    names = set()  # it builds nothing, it refuses a key that stands twice
                assert not names, (path, node.lineno)
            assert not names & banned, (path, node.lineno)


def canonical(value: Any) -> str:
    """Tells 1, 1.0 and True apart, and -0.0 from 0.0, and no order of keys."""
    return json.dumps(value, sort_keys=True)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**30), 10**30) | st.text()
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)  # fmt: skip


@given(result=json_values, answer=json_values)
@settings(deadline=None)
def test_any_json_value_goes_through_a_run_and_its_saved_form_unchanged(
    result: Any, answer: Any
) -> None:
    def planner(state: RunState, tools: Any) -> Decision:
        return Decision.finish(answer) if state.steps else Decision.act("get")

    agent = Agent([Tool("get", lambda: result)], planner)
    state = RunState.from_json(agent.run("goal").to_json())
    assert canonical(state.steps[0].result) == canonical(result)
    assert canonical(state.answer) == canonical(answer)


EXTRA = {"blocks": [{"signature": "c2lnbmF0dXJl", "thinking": "hmm"}], "id": None}


def test_what_a_planner_needs_back_is_saved_and_stands_in_the_trail_as_its_digest() -> None:
    decisions = [
        Decision.act("save", {"text": "a"}, extra=EXTRA, repairs=("a", "b")),
        Decision.finish("end", extra=[EXTRA], repairs=iter(["c"])),
    ]
    store, audit = MemoryStore(), MemoryAuditSink()
    agent = Agent([writer([])], script(*decisions), policy=FREE, store=store, audit=audit)
    state = RunState.from_json(agent.run("goal").to_json())
    assert [step.decision for step in state.steps] == decisions
    assert [step.decision.extra for step in state.steps] == [EXTRA, [EXTRA]]
    assert [step.decision.repairs for step in state.steps] == [("a", "b"), ("c",)]
    recorded = [record for record in audit.records if record.event == "decision"]
    for record, extra in zip(recorded, [EXTRA, [EXTRA]], strict=True):
        assert "hmm" not in record.line
        text = json.dumps(extra, separators=(",", ":"), sort_keys=True)
        expected = hashlib.sha256(text.encode()).hexdigest()
        assert record.data["decision"]["extra"] == expected
    assert [record.data["decision"]["repairs"] for record in recorded] == [["a", "b"], ["c"]]


def test_a_decision_waits_for_a_person_with_all_that_it_has() -> None:
    store = MemoryStore()
    decision = Decision.act("save", {"text": "a"}, extra=EXTRA, repairs=["a"], usage=Usage(9, 1, 4))
    agent = Agent([writer([])], script(decision), policy=WRITES, store=store)
    paused = agent.run("goal")
    state = agent.resume(paused.run_id, approvals=approve(paused))
    assert state.steps[0].decision == decision
    assert state.steps[0].decision.usage == Usage(9, 1, 4)


def test_what_a_planner_keeps_of_its_own_extra_changes_nothing() -> None:
    extra = {"a": [1]}
    decision = Decision.act("save", {"text": "a"}, extra=extra)
    extra["a"].append({2})  # type: ignore[arg-type]
    decision.extra["a"].append({3})
    assert decision.extra == {"a": [1]}
    state = Agent([writer([])], script(decision), policy=FREE).run("goal")
    assert state.steps[0].decision.extra == {"a": [1]}


def test_the_steps_of_a_state_behave_as_a_list_and_are_their_holder_s_own() -> None:
    state = STATES["completed"]
    steps = RunState.from_json(state.to_json()).steps
    assert steps == list(steps) == state.steps
    assert [step.index for step in steps[::-1]] == [2, 1, 0]
    assert steps[-1].outcome.value == "accepted"
    with pytest.raises(IndexError):
        steps[3]
    steps.reverse()
    del steps[0]
    steps.append(steps[0])
    assert [step.index for step in steps] == [1, 0, 1]
    steps.clear()
    assert len(steps) == 0
    assert len(state.steps) == 3
    assert repr(state.steps[0]) == "<Step 0: save executed>"
    with pytest.raises(TypeError):
        hash(steps)


def test_an_unknown_attribute_is_an_attribute_error() -> None:
    state = STATES["completed"]
    with pytest.raises(AttributeError, match="no attribute 'stat'"):
        state.stat  # noqa: B018
    assert not hasattr(state, "__deepcopy__")
    assert copy.deepcopy(state) == state
    assert copy.copy(state) == state


# Which copy may be resumed


def test_a_copy_older_than_the_stored_state_is_refused() -> None:
    calls: list[str] = []
    agent = Agent([writer(calls)], script(SAVE, SAVE), policy=WRITES, store=MemoryStore())
    first = agent.run("goal")
    second = agent.resume(first, approvals=approve(first))
    with pytest.raises(StateError, match="holds another state"):
        agent.resume(first, approvals=approve(first))
    assert len(calls) == 1
    done = agent.resume(second, approvals=approve(second))
    assert (done.status.value, len(calls)) == ("completed", 2)
    assert agent.resume(done.run_id) == done
    assert agent.resume(done) == done


def test_a_copy_that_was_altered_is_refused() -> None:
    agent = Agent([writer([])], script(SAVE), policy=WRITES, store=MemoryStore())
    paused = agent.run("goal")
    saved = paused.to_dict()
    saved["open"]["decision"]["arguments"]["text"] = "another"
    with pytest.raises(StateError, match="holds another state"):
        agent.resume(RunState.from_dict(saved), approvals=approve(paused))


def test_without_a_store_altered_arguments_make_the_approval_stale() -> None:
    calls: list[str] = []
    agent = Agent([writer(calls)], script(SAVE), policy=WRITES)
    paused = agent.run("goal")
    saved = paused.to_dict()
    saved["open"]["decision"]["arguments"]["text"] = "another"
    state = agent.resume(RunState.from_dict(saved), approvals=approve(paused))
    assert (state.steps[0].code, calls) == ("approval_stale", [])


def test_a_store_that_does_not_hold_the_run_is_refused() -> None:
    paused = Agent([writer([])], script(SAVE), policy=WRITES).run("goal")
    agent = Agent([writer([])], script(SAVE), policy=WRITES, store=MemoryStore())
    with pytest.raises(StateError, match="does not hold"):
        agent.resume(paused, approvals=approve(paused))


def test_a_run_id_needs_a_store() -> None:
    with pytest.raises(ValueError, match="with a store"):
        Agent([], script()).resume("a" * 64)


def test_a_trail_given_by_the_caller_must_hold_the_state_s_record() -> None:
    store = MemoryStore()
    agent = Agent([writer([])], script(SAVE), policy=WRITES, store=store)
    paused = agent.run("goal")
    other = Agent([], script(), store=store, audit=MemoryAuditSink())
    with pytest.raises(StateError, match="does not hold record 2"):
        other.resume(paused.run_id)
    # A trail that the agent makes for itself has nothing to compare with: it goes on from there.
    calls: list[str] = []
    fresh = Agent([writer(calls)], script(SAVE), policy=WRITES, store=store)
    state = fresh.resume(paused.run_id, approvals=approve(paused))
    assert (state.status.value, len(calls)) == ("completed", 1)
    assert fresh.audit.records[0].seq == paused.audit_head.seq + 1
    assert fresh.audit.records[0].prev == paused.audit_head.digest


def test_a_paused_run_that_gets_no_answer_stays_paused_and_each_resume_is_recorded() -> None:
    agent = Agent([writer([])], script(SAVE), policy=WRITES)
    state = agent.run("goal")
    pending = state.pending
    for number in range(3):
        old, state = state, agent.resume(state, approvals=[Approval("0" * 64, False, "bob")])
        assert (state.status.value, state.pending) == ("awaiting_approval", pending)
        assert agent.audit.records[-1].event == "resumed"
        with pytest.raises(StateError, match="resumed already"):
            agent.resume(old)
        assert sum(record.event == "resumed" for record in agent.audit.records) == number + 1
    assert agent.resume(state, approvals=approve(state)).status.value == "completed"


def test_an_answer_saved_by_a_claim_is_used_after_a_crash() -> None:
    """The process died between the claim and the call: the approval is not lost, nor used twice."""
    calls: list[str] = []
    store, audit = MemoryStore(), MemoryAuditSink()
    append, dead = audit.append, []

    def dies(records: Any, **options: Any) -> None:
        if records[0].event == "resumed" and not dead:
            dead.append(1)
            raise KeyboardInterrupt
        append(records, **options)

    audit.append = dies  # type: ignore[method-assign]
    agent = Agent([writer(calls)], script(SAVE), policy=WRITES, store=store, audit=audit)
    paused = agent.run("goal")
    with pytest.raises(KeyboardInterrupt):
        agent.resume(paused.run_id, approvals=approve(paused))
    assert calls == []
    state = agent.resume(paused.run_id)
    assert (state.status.value, len(calls)) == ("completed", 1)


def test_a_tool_that_is_gone_denies_the_pending_action_and_the_run_goes_on() -> None:
    store, audit = MemoryStore(), MemoryAuditSink()
    paused = Agent([writer([])], script(SAVE), policy=WRITES, store=store, audit=audit).run("goal")
    agent = Agent(Toolset([]), script(SAVE), policy=WRITES, store=store, audit=audit)
    state = agent.resume(paused.run_id)
    assert (state.status.value, state.steps[0].code) == ("completed", "unknown_tool")


def test_the_same_call_again_and_again_is_stopped_whatever_the_order_of_its_keys() -> None:
    calls: list[int] = []
    tool = Tool(
        "poll",
        lambda a, b: calls.append(a),
        parameters={
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
            "required": ["a", "b"],
            "additionalProperties": False,
        },
    )

    def planner(state: RunState, tools: Any) -> Decision:
        flip = len(state.steps) % 2
        return Decision.act("poll", {"a": 1, "b": 2} if flip else {"b": 2, "a": 1})

    agent = Agent([tool], planner, limits=Limits(max_steps=50, max_repeats=2))
    state = agent.run("goal")
    assert (state.status.value, state.stop_reason) == ("stopped", "max_repeats")
    assert len(calls) == 3
    assert [step.code for step in state.steps] == [None, None, None, "max_repeats"]


def test_repetitions_are_counted_over_sessions() -> None:
    calls: list[str] = []
    agent = Agent(
        [writer(calls)],
        lambda state, tools: SAVE,
        policy=WRITES,
        limits=Limits(max_repeats=1, max_steps=50),
        store=MemoryStore(),
    )
    state = agent.run("goal")
    while state.pending:
        state = agent.resume(state.run_id, approvals=approve(state))
    assert (state.stop_reason, len(calls)) == ("max_repeats", 2)
