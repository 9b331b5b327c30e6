"""What a trail does not show, and what proves it."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from support import WRITES, approve, script, writer

from scikitplot.agent import (
    Agent,
    Decision,
    Disclosure,
    MemoryAuditSink,
    MemoryStore,
    RunState,
    Tool,
    verify_audit,
)
from scikitplot.agent.approval import action_digest
from scikitplot.agent.redaction import argument_pointer

PIN = "pin-4711"
SAVE = Decision.act("save", {"text": PIN})
END = Decision.finish({"said": PIN})


def hide(tool: str | None, argument: str | None, value: Any) -> Any:
    return json.loads(json.dumps(value).replace(PIN, "***"))


def agent_with(calls: list[Any], **options: Any) -> Agent:
    options = {"policy": WRITES, "store": MemoryStore(), "redact": hide, **options}
    tool = Tool(
        "save",
        lambda text: calls.append(text) or {"saved": text},  # type: ignore[func-returns-value]
        parameters=writer([]).parameters,
        effect="write",
    )
    return Agent([tool], script(SAVE, END), **options)


def text_of(trail: Any) -> str:
    return "\n".join(record.line for record in trail.records)


def paused_and_done(**options: Any) -> tuple[Agent, list[Any], RunState, RunState]:
    calls: list[Any] = []
    agent = agent_with(calls, **options)
    paused = agent.run("save it")
    return agent, calls, paused, agent.resume(paused.run_id, approvals=approve(paused))


def test_the_trail_shows_what_redact_gives_and_all_else_is_as_without_it() -> None:
    agent, calls, paused, state = paused_and_done()
    assert calls == [PIN]
    assert paused.pending is not None
    assert paused.pending.arguments == {"text": PIN}
    assert (state.steps[0].result, state.answer) == ({"saved": PIN}, {"said": PIN})
    trail = text_of(agent.audit)
    assert PIN not in trail
    assert trail.count("***") == 3
    places = [
        list(record.data["redacted"]) for record in agent.audit.records if "redacted" in record.data
    ]
    assert places == [["/decision/arguments/text"], ["/result"], ["/decision/answer"]]
    assert verify_audit(agent.audit.records, heads={state.run_id: state.audit_head}) == []


def test_what_redact_leaves_as_it_is_has_no_commitment() -> None:
    agent, _, _, state = paused_and_done(redact=lambda tool, argument, value: value)
    plain, _, _, _ = paused_and_done(redact=None)
    assert [record.data.keys() for record in agent.audit.records] == [
        record.data.keys() for record in plain.audit.records
    ]
    assert state.status.value == "completed"


def test_redact_is_asked_of_each_argument_each_result_and_the_answer() -> None:
    asked: list[Any] = []

    def redact(*place: Any) -> Any:
        asked.append(place)
        return place[2]

    paused_and_done(redact=redact)
    assert asked == [
        ("save", "text", PIN),
        ("save", None, {"saved": PIN}),
        (None, None, {"said": PIN}),
    ]


@pytest.mark.parametrize(
    ("step", "argument", "event"),
    [(0, "text", "decision"), (0, None, "tool_finished"), (1, None, "decision")],
)
def test_a_value_is_proved_by_its_disclosure_and_by_no_other(
    step: int, argument: str | None, event: str
) -> None:
    agent, _, _, state = paused_and_done()
    state = RunState.from_json(state.to_json())
    [record] = [r for r in agent.audit.records if r.event == event and r.data["step"] == step]
    disclosure = state.disclose(step, argument)
    assert disclosure.proves(record)
    assert PIN in json.dumps(disclosure.value)
    for wrong in (
        disclosure._replace(value="pin-4712"),
        disclosure._replace(salt="0" * 64),
        disclosure._replace(step=5),
        disclosure._replace(pointer="/goal"),
        disclosure._replace(run_id="0" * 64),
    ):
        assert not wrong.proves(record)
    proved = [other for other in agent.audit.records if disclosure.proves(other)]
    assert proved == [record]
    value = json.dumps(disclosure.value, separators=(",", ":"))
    text = f'{{"salt":"{disclosure.salt}","value":{value}}}'
    held = record.data["redacted"][disclosure.pointer]
    assert hashlib.sha256(text.encode()).hexdigest() == held


def test_nothing_in_the_trail_lets_a_value_be_guessed() -> None:
    """Who knows all but the value can compute no digest of the trail from a guess."""
    agent, _, paused, state = paused_and_done()
    assert paused.pending is not None
    trail = text_of(agent.audit)
    tool, history = agent.tools["save"], paused.pending.history
    guess = json.dumps({"text": PIN}, separators=(",", ":"))
    assert action_digest(state.run_id, 0, tool, guess, history) not in trail
    for text in (PIN, f'"{PIN}"', guess):
        assert hashlib.sha256(text.encode()).hexdigest() not in trail
    salt = json.loads(state.to_json())["salt"]
    assert len(salt) == 64
    assert salt not in trail
    again = paused_and_done()[0]
    seen = [
        {v for r in a.audit.records for v in r.data.get("redacted", {}).values()}
        for a in (agent, again)
    ]
    assert len(seen[0] | seen[1]) == 6, "equal values in two runs have other commitments"


def test_one_disclosure_tells_nothing_of_the_other_values() -> None:
    state = paused_and_done()[3]
    salts = {state.disclose(*place).salt for place in ((0, "text"), (0, None), (1, None))}
    assert len(salts) == 3
    assert json.loads(state.to_json())["salt"] not in salts


@pytest.mark.parametrize("answer", [ValueError(PIN), {1}, float("nan"), "\ud800", "x" * 1_100_000])
def test_where_redact_fails_nothing_is_shown(answer: Any) -> None:
    def redact(*place: Any) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    agent, calls, _, state = paused_and_done(redact=redact)
    assert (calls, state.status.value) == ([PIN], "completed")
    assert PIN not in text_of(agent.audit)
    [decision, end] = [r.data["decision"] for r in agent.audit.records if r.event == "decision"]
    assert (decision["arguments"], end["answer"]) == ({"text": None}, None)
    assert state.disclose(0, "text").proves(agent.audit.records[1])


def test_a_redact_that_is_interrupted_leaves_a_run_that_resumes() -> None:
    store, audit, calls = MemoryStore(), MemoryAuditSink(), []

    def interrupted(*place: Any) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        agent_with(calls, store=store, audit=audit, redact=interrupted).run("save it")
    [run_id] = store.runs()
    agent = agent_with(calls, store=store, audit=audit)
    paused = agent.resume(run_id)
    assert agent.resume(run_id, approvals=approve(paused)).answer == {"said": PIN}


def test_what_redact_does_to_its_value_changes_nothing() -> None:
    def redact(tool: Any, argument: Any, value: Any) -> Any:
        if isinstance(value, dict):
            value.clear()
        return value

    _, calls, _, state = paused_and_done(redact=redact)
    assert (calls, state.steps[0].result, state.answer) == ([PIN], {"saved": PIN}, {"said": PIN})


@pytest.mark.parametrize(("before", "after"), [(hide, None), (None, hide), (hide, hide)])
def test_an_approval_holds_whoever_resumes(before: Any, after: Any) -> None:
    store, audit, calls = MemoryStore(), MemoryAuditSink(), []
    options = {"store": store, "audit": audit}
    paused = agent_with(calls, redact=before, **options).run("save it")
    state = agent_with(calls, redact=after, **options).resume(
        paused.run_id, approvals=approve(paused)
    )
    assert (calls, state.status.value) == ([PIN], "completed")
    assert [step.code for step in state.steps] == [None, None]


def test_a_call_in_flight_starts_again_under_its_salt() -> None:
    store, audit, starts = MemoryStore(), MemoryAuditSink(), []

    def read(text: str) -> str:
        starts.append(text)
        if len(starts) == 1:
            raise KeyboardInterrupt
        return text

    tool = Tool("read", read, parameters=writer([]).parameters)
    planner = script(Decision.act("read", {"text": PIN}))
    agent = Agent([tool], planner, store=store, audit=audit, redact=hide)
    with pytest.raises(KeyboardInterrupt):
        agent.run("read it")
    [run_id] = store.runs()
    state = Agent([tool], planner, store=store, audit=audit).resume(run_id)
    assert (state.steps[0].outcome.value, state.steps[0].attempts) == ("executed", 2)


def test_arguments_that_no_tool_takes_are_hidden_too() -> None:
    calls: list[Any] = []
    agent = agent_with(calls)
    agent.planner = script(
        Decision.act("nothing", {"a/b~c": PIN, "ok": 1}), Decision.act("save", {"text": [PIN]})
    )
    state = agent.run("goal")
    assert PIN not in text_of(agent.audit)
    assert argument_pointer("a/b~c") == "/decision/arguments/a~1b~0c"
    assert state.disclose(0, "a/b~c").proves(agent.audit.records[1])
    assert not state.disclose(0, "ok").proves(agent.audit.records[1])


def test_what_cannot_be_disclosed_is_said() -> None:
    state = paused_and_done()[3]
    with pytest.raises(LookupError, match="step 0 has no argument of this name"):
        state.disclose(0, "txt")
    with pytest.raises(LookupError):
        state.disclose(7)
    with pytest.raises(ValueError, match="its trail shows all"):
        paused_and_done(redact=None)[3].disclose(0)
    with pytest.raises(TypeError, match="redact must be callable or None, not str"):
        Agent([], script(), redact="***")  # type: ignore[arg-type]


def test_a_disclosure_is_judged_by_what_the_record_holds() -> None:
    agent, _, _, state = paused_and_done()
    plain = [record for record in agent.audit.records if "redacted" not in record.data]
    disclosure = state.disclose(0, "text")
    assert not any(disclosure.proves(record) for record in plain)
    assert Disclosure(*disclosure).proves(agent.audit.records[1])
