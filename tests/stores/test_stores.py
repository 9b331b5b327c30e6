"""What holds for every store: one suite, run on all of them."""

from __future__ import annotations

import json
import math
import os
import pickle
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import FREE, WRITES, approve, script, writer

from scikitplot.agent import (
    Agent,
    Approval,
    AuditHead,
    AuditRecord,
    Decision,
    JsonlAuditSink,
    Limits,
    MemoryAuditSink,
    MemoryStore,
    Policy,
    RunState,
    SqliteStore,
    SqlStore,
    StateError,
    Tool,
    verify_audit,
)
from scikitplot.agent.stores import sql

RUN, OTHER = "1" * 64, "2" * 64
SAVE = Decision.act("save", {"text": "a"})


def head(revision: int, status: str = "running") -> str:
    """Return a text that stores read of a head what they may read."""
    return json.dumps({"status": status, "revision": revision, "audit_head": [revision, "f" * 64]})


def agent_on(store: Any, *arguments: Any, **options: Any) -> Agent:
    """Return an agent with this store, and with this sink where it is one."""
    audit = store if hasattr(store, "append") else MemoryAuditSink()
    return Agent(*arguments, store=store, audit=options.pop("audit", audit), **options)


# The revision


@pytest.mark.parametrize("expected", [None, 0, 2, -1])
def test_a_commit_replaces_the_revision_it_expects_and_no_other(
    any_store: Any, expected: int | None
) -> None:
    store = any_store.open()
    store.commit(RUN, head(0), ["a"], expected=None)
    store.commit(RUN, head(1), ["b"], expected=0)
    with pytest.raises(StateError, match="another process went on"):
        store.commit(RUN, head(2), ["c"], expected=expected)
    assert tuple(map(_listed, any_store.open().load(RUN))) == (head(1), ["a", "b"])
    store.commit(RUN, head(2), ["c"], expected=1)
    assert _listed(store.load(RUN)[1]) == ["a", "b", "c"]


def test_a_run_that_is_not_there_has_no_revision(any_store: Any) -> None:
    store = any_store.open()
    with pytest.raises(StateError, match="another process went on"):
        store.commit(RUN, head(1), ["a"], expected=0)
    assert store.load(RUN) is None
    assert list(store.runs()) == []
    store.commit(RUN, head(0), [], expected=None)
    assert _listed(store.load(RUN)[1]) == []


def test_of_many_threads_that_replace_one_revision_one_does(any_store: Any) -> None:
    store = any_store.open()
    store.commit(RUN, head(0), [], expected=None)
    won: list[str] = []
    for revision in range(5):

        def replace(name: str, revision: int = revision) -> None:
            try:
                store.commit(RUN, head(revision + 1), [name], expected=revision)
            except StateError:
                return
            won.append(name)

        in_threads(replace, [f"{revision} {number}" for number in range(8)])
        assert len(won) == revision + 1
    assert _listed(store.load(RUN)[1]) == won


def test_of_many_threads_that_add_one_run_one_does(any_store: Any) -> None:
    stores = [any_store.open() for _ in range(6)]
    won: list[int] = []
    refused: list[str] = []

    def add(number: int) -> None:
        try:
            stores[number].commit(RUN, head(0), [str(number)], expected=None)
            won.append(number)
        except StateError as error:
            refused.append(str(error))

    in_threads(add, range(6))
    [winner] = won
    assert ["another process went on" in message for message in refused] == [True] * 5
    assert _listed(stores[0].load(RUN)[1]) == [str(winner)]


def in_threads(function: Callable[..., None], arguments: Any) -> None:
    """Call a function in a thread for each argument, all at once; what one raises is raised."""
    arguments = list(arguments)
    gate = threading.Barrier(len(arguments))
    raised: list[BaseException] = []

    def work(argument: Any) -> None:
        gate.wait(60)
        try:
            function(argument)
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=work, args=(argument,)) for argument in arguments]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if raised:
        raise raised[0]


def _listed(value: Any) -> Any:
    return value if isinstance(value, str) else list(value)


# What is kept, listed and forgotten


def test_texts_come_back_as_they_were_given_and_in_order(any_store: Any) -> None:
    store = any_store.open()
    texts = ['{"a":"\\u0000"}', "\u2028\u2029\x85", "\U0001f600", "'\"\\%s ?", "", "\r\n"]
    texts.append("x" * 900_000)
    body = head(0)[:-1] + ', "goal": "\U0001f600\u2028%s"}'
    store.commit(RUN, body, texts, expected=None)
    for revision, text in enumerate(texts):
        store.commit(RUN, body, [text], expected=revision)
    assert tuple(map(_listed, any_store.open().load(RUN))) == (body, [*texts, *texts])


def test_runs_are_listed_by_status_whatever_their_number(any_store: Any) -> None:
    store = any_store.open()
    ids = [f"{number:064x}" for number in range(503)]
    for number, run_id in enumerate(ids):
        store.commit(run_id, head(0, "completed" if number % 100 else "running"), [], expected=None)
    assert sorted(store.runs()) == ids
    assert sorted(store.runs("running")) == ids[::100]
    assert list(store.runs("failed")) == []
    store.commit(ids[0], head(1, "failed"), [], expected=0)
    assert list(store.runs("failed")) == ids[:1]


def test_a_deleted_run_is_gone_and_no_other_and_its_id_may_be_used_again(any_store: Any) -> None:
    store = any_store.open()
    for run_id in (RUN, OTHER):
        store.commit(run_id, head(0), ["a", "b"], expected=None)
    store.delete(RUN)
    store.delete(RUN)
    assert store.load(RUN) is None
    assert list(store.runs()) == [OTHER]
    assert _listed(store.load(OTHER)[1]) == ["a", "b"]
    store.commit(RUN, head(0), ["c"], expected=None)
    assert _listed(store.load(RUN)[1]) == ["c"]


def test_deleting_a_run_deletes_its_records_too(table_store: Any) -> None:
    store = table_store.open()
    kept, gone = (agent_on(store, [], script()).run("goal") for _ in range(2))
    store.delete(gone.run_id)
    assert store.head(gone.run_id) is None
    assert store.heads() == {kept.run_id: kept.audit_head}
    assert {record.run_id for record in store.read()} == {kept.run_id}
    assert verify_audit(store.read(), heads=store.heads()) == []
    store.delete(kept.run_id)
    for table in ("agent_run", "agent_step", "agent_record"):
        with store._transaction() as cursor:
            cursor.execute(f"select count(*) from {table}")
            assert cursor.fetchone()[0] == 0


BAD_IDS = [
    "A" * 64,
    "a" * 63,
    "a" * 65,
    "a" * 64 + "\n",
    "\n" + "a" * 64,
    "../x",
    "../" + "a" * 61,
    "\uff11" * 64,
    "a" * 63 + "\0",
    "",
]


@pytest.mark.parametrize("run_id", BAD_IDS)
def test_a_run_id_that_is_none_is_refused_by_every_method_of_a_store(
    own_store: Any, run_id: str
) -> None:
    store = own_store.open()
    refused: list[Callable[[], Any]] = [
        lambda: store.load(run_id),
        lambda: store.commit(run_id, head(0), [], expected=None),
        lambda: store.delete(run_id),
    ]
    for call in refused:
        with pytest.raises(ValueError, match="run_id must be 64 lower-case hexadecimal digits"):
            call()
    assert list(store.runs()) == []


@pytest.mark.parametrize("run_id", BAD_IDS)
def test_a_run_id_that_is_none_is_refused_by_every_method_of_a_sink(
    any_sink: Any, run_id: str
) -> None:
    sink = any_sink.open()
    for method in (sink.head, sink.read):
        with pytest.raises(ValueError, match="run_id must be 64 lower-case hexadecimal digits"):
            method(run_id)


@pytest.mark.parametrize("run_id", BAD_IDS)
def test_a_run_id_that_is_none_is_refused_by_an_agent(any_store: Any, run_id: str) -> None:
    agent = agent_on(any_store.open(), [], script())
    for call in (lambda: agent.run("goal", run_id=run_id), lambda: agent.resume(run_id)):
        with pytest.raises(ValueError, match="run_id must be 64 lower-case hexadecimal digits"):
            call()


# The trail


def records_of(steps: int) -> list[AuditRecord]:
    sink = MemoryAuditSink()
    planner = script(*[Decision.act("none", reason=str(n)) for n in range(steps)])
    Agent([], planner, audit=sink, limits=Limits(max_steps=steps + 1)).run("goal", run_id=RUN)
    return sink.records


def test_records_are_appended_to_the_end_that_is_expected_and_to_no_other(any_sink: Any) -> None:
    sink = any_sink.open()
    records = records_of(2)
    assert sink.head(RUN) is None
    sink.append(records[:2], expected=None)
    ends = [None, AuditHead(0, records[0].digest), AuditHead(1, "0" * 64), AuditHead(2, "0" * 64)]
    for expected in ends:
        with pytest.raises(StateError, match="another process went on"):
            sink.append(records[2:], expected=expected)
    assert sink.head(RUN) == (1, records[1].digest)
    any_sink.open().append(records[2:], expected=AuditHead(1, records[1].digest))
    assert list(sink.read(RUN)) == list(sink.read()) == records
    assert list(sink.read(OTHER)) == []


def test_a_trail_of_many_pages_is_read_whole_and_may_grow_meanwhile(any_sink: Any) -> None:
    sink = any_sink.open()
    records = records_of(400)
    assert len(records) > 800
    sink.append(records[:600], expected=None)
    reading = iter(sink.read(RUN))
    begun = [next(reading) for _ in range(10)]
    sink.append(records[600:], expected=AuditHead(599, records[599].digest))
    rest = list(reading)
    assert [*begun, *rest] == records[: 10 + len(rest)]
    assert list(sink.read(RUN)) == records


def test_the_heads_of_a_database_show_that_its_trail_was_cut(table_store: Any) -> None:
    store = table_store.open()
    state = agent_on(store, [writer([])], script(SAVE), policy=FREE).run("goal")
    assert store.heads() == {state.run_id: state.audit_head}
    records = list(store.read())
    assert verify_audit(records, heads=store.heads()) == []
    assert [p.kind for p in verify_audit(records[:-1], heads=store.heads())] == ["cut"]


def test_a_store_knows_of_what_others_did_to_a_run_that_it_saved_itself(table_store: Any) -> None:
    """What it keeps in mind of its last commit is good as long as nobody came in between."""
    ours, theirs = table_store.open(), table_store.open()
    ours.commit(RUN, head(0), ["a"], expected=None)
    theirs.commit(RUN, head(1), ["b", "c"], expected=0)
    with pytest.raises(StateError, match="another process went on"):
        ours.commit(RUN, head(1), ["b"], expected=0)
    ours.commit(RUN, head(2), ["d"], expected=1)
    theirs.commit(RUN, head(3), ["e"], expected=2)
    assert _listed(ours.load(RUN)[1]) == ["a", "b", "c", "d", "e"]
    theirs.delete(RUN)
    with pytest.raises(StateError, match="another process went on"):
        theirs.commit(RUN, head(4), ["f"], expected=3)
    ours.delete(RUN)
    ours.commit(RUN, head(0), ["a"], expected=None)
    theirs.delete(RUN)
    theirs.commit(RUN, head(0), ["x"], expected=None)
    ours.commit(RUN, head(1), ["y"], expected=0)  # the revision is as it was, the run is another
    assert _listed(ours.load(RUN)[1]) == ["x", "y"]


def test_records_that_a_sink_wrote_between_two_commits_refuse_the_second(table_store: Any) -> None:
    ours, theirs = table_store.open(), table_store.open()
    records = records_of(2)
    ours.commit(RUN, head(0), [], expected=None, records=records[:1])
    end = AuditHead(0, records[0].digest)
    theirs.append(records[1:2], expected=end)
    for _ in range(2):
        with pytest.raises(StateError, match="another process went on"):
            ours.commit(RUN, head(1), ["a"], expected=0, records=records[1:], audit_head=end)
    assert list(ours.read()) == records[:2]
    assert ours.load(RUN).steps == []
    end = AuditHead(1, records[1].digest)
    ours.commit(RUN, head(1), ["a"], expected=0, records=records[2:], audit_head=end)
    assert list(ours.read()) == records


def test_a_store_keeps_no_more_in_mind_than_it_is_to(
    table_store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sql, "MAX_SAVED", 3)
    store = table_store.open()
    ids = [f"{number:064x}" for number in range(7)]
    for revision in range(3):
        for run_id in ids:
            expected = revision - 1 if revision else None
            store.commit(run_id, head(revision), [str(revision)], expected=expected)
            assert len(store._saved) <= 3
    assert all(_listed(store.load(run_id)[1]) == ["0", "1", "2"] for run_id in ids)


def test_a_commit_that_is_refused_for_its_trail_writes_no_state(table_store: Any) -> None:
    store = table_store.open()
    records = records_of(1)
    with pytest.raises(StateError, match="the trail ends at record None, not 3"):
        store.commit(
            RUN, head(0), ["a"], expected=None, records=records, audit_head=AuditHead(3, "f" * 64)
        )
    assert store.load(RUN) is None
    assert list(store.read()) == []
    store.commit(RUN, head(0), ["a"], expected=None, records=records[:1], audit_head=None)
    end = AuditHead(0, records[0].digest)
    with pytest.raises(StateError, match="the store holds revision 0, not 5"):
        store.commit(RUN, head(6), ["b"], expected=5, records=records[1:], audit_head=end)
    assert list(store.read()) == records[:1]


# Whole runs


def deep(levels: int) -> Any:
    value: Any = "deep"
    for level in range(levels):
        value = [value] if level % 2 else {"in": value}
    return value


HOSTILE = [
    "nul \0 nul",
    {"key \0": {"\0": ["\0"]}, "": None},
    "\u2028 \u2029 \x85 \x1f \x7f \ufeff \ufffe",
    "\U0001f600 \U0010ffff e\u0301 \u202e",
    10**639 + 7,
    -(10**639),
    [-0.0, 0.0, 1e308, 5e-324, 1e22, 0.1],
    deep(60),
    "x" * 900_000,
    "\\u0000 %s %% ? :a $1 ' \" \\ ; --",
    [True, False, None, 1, 1.0, "1"],
]


def hostile_run(store: Any) -> tuple[RunState, list[str]]:
    """Return the end of a run, each of whose steps takes and gives back a hostile value."""
    echo = Tool(
        "echo",
        lambda value: value,
        effect="write",
        parameters={"type": "object", "properties": {"value": {}}, "required": ["value"]},
    )
    decisions = [Decision.act("echo", {"value": v}, reason="nul \0") for v in HOSTILE]
    agent = agent_on(
        store,
        [echo],
        script(*decisions, Decision.finish(HOSTILE[:-3])),
        policy=FREE,
        limits=Limits(max_steps=20),
        clock=lambda: 1.0,
        now=lambda: 1.0,
    )
    state = agent.run("goal \0 \u2028 \U0001f600", run_id=RUN)
    return state, _listed(store.load(RUN)[1])


def test_what_one_store_takes_every_store_takes_and_gives_back_equal(any_store: Any) -> None:
    state, steps = hostile_run(any_store.open())
    assert state.status.value == "completed"
    assert {step.outcome.value for step in state.steps[:-1]} == {"executed"}
    assert steps == hostile_run(MemoryStore())[1]
    store = any_store.open()
    loaded = RunState.from_json(state.to_json())
    read = agent_on(store, [], script()).resume(RUN)
    for there in (loaded, read):
        assert there.goal == "goal \0 \u2028 \U0001f600"
        assert [step.result for step in there.steps[:-1]] == HOSTILE
        assert [step.decision.arguments["value"] for step in there.steps[:-1]] == HOSTILE
        assert there.answer == HOSTILE[:-3]
        assert math.copysign(1, there.steps[6].result[0]) == -1
        assert [type(value) for value in there.steps[10].result] == [
            bool,
            bool,
            type(None),
            int,
            float,
            str,
        ]
    if hasattr(store, "heads"):
        assert verify_audit(store.read(), heads=store.heads()) == []


def test_a_paused_run_is_resumed_through_another_store_object(any_store: Any) -> None:
    calls: list[str] = []
    audit = MemoryAuditSink()

    def agent() -> Agent:
        store = any_store.open()
        own = {} if hasattr(store, "append") else {"audit": audit}
        return agent_on(store, [writer(calls)], script(SAVE), policy=WRITES, **own)

    paused = agent().run("goal")
    assert list(any_store.open().runs("awaiting_approval")) == [paused.run_id]
    done = agent().resume(paused.run_id, approvals=approve(paused))
    assert (done.status.value, calls) == ("completed", ["a"])
    assert agent().resume(paused.run_id).to_json() == done.to_json()
    assert list(any_store.open().runs("completed")) == [paused.run_id]


def test_of_many_that_resume_one_run_with_its_approval_one_runs_the_action(any_store: Any) -> None:
    calls: list[str] = []
    first = any_store.open()
    audit = first if hasattr(first, "append") else MemoryAuditSink()
    paused = agent_on(first, [writer(calls)], script(SAVE), policy=WRITES, audit=audit).run("goal")
    ended: list[str] = []

    def resume(store: Any) -> None:
        sink = store if hasattr(store, "append") else audit
        agent = agent_on(store, [writer(calls)], script(SAVE), policy=WRITES, audit=sink)
        try:
            state = agent.resume(paused.run_id, approvals=approve(paused))
        except StateError:
            return
        ended.append(state.status.value)

    in_threads(resume, [any_store.open() for _ in range(8)])
    assert calls == ["a"]
    assert set(ended) == {"completed"}
    assert verify_audit(audit.read(), heads=None) == []


def test_threads_share_a_store_and_lose_nothing(any_store: Any) -> None:
    store = any_store.open()
    audit = store if hasattr(store, "append") else MemoryAuditSink()
    calls: list[str] = []
    states: list[RunState] = []

    def work(_: int) -> None:
        agent = agent_on(store, [writer(calls)], script(SAVE, SAVE, SAVE), policy=FREE, audit=audit)
        states.extend(agent.run("goal") for _ in range(3))

    in_threads(work, range(8))
    assert len(calls) == 72
    assert sorted(store.runs("completed")) == sorted(state.run_id for state in states)
    heads = {state.run_id: state.audit_head for state in states}
    assert verify_audit(audit.read(), heads=heads) == []


def test_no_transaction_is_open_while_a_planner_an_approver_or_a_tool_runs(
    any_store: Any, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    store = any_store.open()
    seen: list[str] = []

    def check(place: str) -> None:
        # With a lock held this waits for itself, or is refused.
        other = SqliteStore(tmp_path / "runs.db", timeout=0) if any_store.kind == "sqlite" else None
        (other or any_store.open()).commit(f"{len(seen):064x}", head(0), [], expected=None)
        if other is not None:
            other.close()
        if any_store.kind == "postgresql":
            with request.getfixturevalue("postgres")() as connection:
                query = (
                    "select count(*) from pg_stat_activity where state like 'idle in transaction%' "
                    "or (pid in (select pid from pg_locks where locktype = 'transactionid') "
                    "and pid <> pg_backend_pid())"
                )
                assert connection.execute(query).fetchone() == (0,)
        seen.append(place)

    def planner(state: RunState, tools: Any) -> Decision:
        check("planner")
        return Decision.finish("end") if state.steps else Decision.act("look")

    def approver(asked: Any) -> Any:
        check("approver")
        [yes] = approve(type("Paused", (), {"pending": asked})())
        return yes

    def done(answer: Any, state: RunState) -> bool:
        check("done")
        return True

    tool = Tool("look", lambda: check("tool"), effect="write")
    agent = agent_on(
        store,
        [tool],
        planner,
        policy=WRITES,
        approver=approver,
        done=done,
    )
    assert agent.run("goal").status.value == "completed"
    assert seen == ["planner", "approver", "tool", "planner", "done"]


# Processes


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this machine has no fork")
def test_a_store_works_in_a_forked_process_and_goes_on_in_its_parent(shared_store: Any) -> None:
    calls: list[str] = []
    store = shared_store.open()

    def agent() -> Agent:
        return agent_on(store, [writer(calls)], script(SAVE), policy=WRITES)

    paused = agent().run("goal")
    child = os.fork()
    if child == 0:
        signal.alarm(60)  # so that it ends, whatever happens
        try:
            agent().run("goal", run_id=OTHER)
            done = agent().resume(paused.run_id, approvals=approve(paused))
            os._exit(0 if done.status.value == "completed" else 1)
        finally:
            os._exit(2)
    with pytest.raises(StateError, match="does not hold it"):
        agent().resume("3" * 64)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert store.runs("completed") == [paused.run_id]
    assert store.runs("awaiting_approval") == [OTHER]
    assert agent().resume(OTHER, approvals=approve(agent().resume(OTHER))).answer == "end"
    assert verify_audit(store.read(), heads=store.heads()) == []


def test_a_store_or_a_sink_in_a_file_is_pickled_as_its_path_and_options(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "runs.db", synchronous="full", timeout=7)
    sink = JsonlAuditSink(tmp_path / "trail.jsonl", fsync=True)
    store.commit(RUN, head(0), ["a"], expected=None)
    sink.append(records_of(1), expected=None)
    with pickle.loads(pickle.dumps(store)) as copied, store:
        assert repr(copied) == repr(store)
        assert copied.timeout == 7
        assert copied.load(RUN) == store.load(RUN)
    copy = pickle.loads(pickle.dumps(sink))
    assert repr(copy) == repr(sink)
    assert list(copy.read()) == list(sink.read())


def test_a_database_in_memory_is_not_pickled() -> None:
    with (
        SqliteStore(":memory:") as store,
        pytest.raises(TypeError, match=r"':memory:' cannot be pickled; give it a path"),
    ):
        pickle.dumps(store)


def test_a_store_that_connects_is_not_pickled_and_says_what_to_pass(postgres: Any) -> None:
    with SqlStore(postgres) as store, pytest.raises(TypeError, match="pass a function that makes"):
        pickle.dumps(store)


def test_answers_add_up_whichever_process_they_are_handed_to(any_store: Any) -> None:
    calls: list[str] = []
    policy = Policy({"write"}, approvals_needed=3, approval_seconds=60)
    audit = MemoryAuditSink()

    def agent() -> Agent:
        store = any_store.open()
        sink = store if hasattr(store, "append") else audit
        return Agent([writer(calls)], script(SAVE), policy=policy, store=store, audit=sink)

    paused = agent().run("goal")
    assert paused.pending is not None
    for name in ("ann", "bø\u0000b", "eve"):
        assert calls == []
        yes = Approval(paused.pending.digest, True, name, reason="\x00é")
        state = agent().resume(paused.run_id, approvals=[yes])
    assert (state.status.value, calls) == ("completed", ["a"])
    records = list(agent().audit.read(paused.run_id))
    names = [record.data["approver"] for record in records if record.event == "approval"]
    assert names == ["ann", "bø\u0000b", "eve"]
    assert verify_audit(records, heads={paused.run_id: state.audit_head}) == []
