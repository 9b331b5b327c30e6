"""The trail: what verify_audit finds, and what the sinks promise."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
import multiprocessing
import os
import pickle
import random
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import FREE, WRITES, approve, script, writer

from scikitplot.agent import (
    Agent,
    AuditError,
    AuditHead,
    AuditRecord,
    Decision,
    JsonlAuditSink,
    MemoryAuditSink,
    MemoryStore,
    SqliteStore,
    StateError,
    Tool,
    read_audit,
    verify_audit,
)
from scikitplot.agent.audit.lines import link_of
from scikitplot.agent.audit.record import GENESIS, parse_line, seal
from scikitplot.agent.values import encode

SAVE = Decision.act("save", {"text": "grüße 🎈"})


def make_trail(path: Path, runs: int = 2) -> list[Any]:
    agent = Agent([writer([])], script(SAVE, SAVE), policy=FREE, audit=JsonlAuditSink(path))
    return [agent.run(f"goal {number} 🎈") for number in range(runs)]


def heads(states: list[Any]) -> dict[str, AuditHead]:
    return {state.run_id: state.audit_head for state in states}


def kinds(path: Path, **options: Any) -> list[tuple[str | None, int | None, str]]:
    problems = verify_audit(read_audit(path), **options)
    return [(problem.run_id, problem.seq, problem.kind) for problem in problems]


def test_a_sound_trail_has_no_problem(tmp_path: Path) -> None:
    states = make_trail(tmp_path / "t")
    assert verify_audit(read_audit(tmp_path / "t"), heads=heads(states)) == []


def test_a_line_can_be_checked_with_a_json_reader_and_sha256_alone(tmp_path: Path) -> None:
    make_trail(tmp_path / "t")
    prev: dict[str, str] = {}
    for line in (tmp_path / "t").read_bytes().splitlines():
        body, _, _ = line.rpartition(b',"digest":')
        record = json.loads(line)
        assert hashlib.sha256(body + b"}").hexdigest() == record["digest"]
        assert record["prev"] == prev.get(record["run_id"], "0" * 64)
        prev[record["run_id"]] = record["digest"]
        assert json.dumps(
            {key: value for key, value in record.items() if key != "digest"},
            sort_keys=True,
            separators=(",", ":"),
            ensure_ascii=False,
        ).encode() == (body + b"}")


def test_any_one_byte_changed_is_found_and_named(tmp_path: Path) -> None:
    path = tmp_path / "t"
    states = make_trail(path)
    data = path.read_bytes()
    lines = data.splitlines(keepends=True)
    starts = [sum(map(len, lines[:index])) for index in range(len(lines))]
    whose = [json.loads(line) for line in lines]
    rng = random.Random(7)
    ends = {start + len(line) - 1 for start, line in zip(starts, lines, strict=True)}
    places = {*ends, *range(starts[1], starts[2]), *range(starts[-1], len(data))}
    for place in sorted(places):
        for new in {data[place] ^ 1, data[place] ^ 0x20, ord('"'), ord("\n"), rng.randrange(256)}:
            if new == data[place]:
                continue
            path.write_bytes(data[:place] + bytes([new]) + data[place + 1 :])
            problems = verify_audit(read_audit(path), heads=heads(states))
            index = max(i for i, start in enumerate(starts) if start <= place)
            near = {whose[i]["run_id"] for i in (index, min(index + 1, len(lines) - 1))}
            if place == len(data) - 1 and new in b"\r":
                continue  # the last line end: the record before it is whole
            assert problems, (place, new)
            assert {problem.run_id for problem in problems if problem.run_id} <= near | {
                problem.run_id for problem in problems if problem.kind == "missing"
            }
            assert any(
                problem.run_id in near and problem.seq is not None for problem in problems
            ), (place, new, problems)


@given(data=st.data())
@settings(deadline=None, max_examples=200)
def test_verify_never_raises_whatever_happened_to_the_file(data: Any) -> None:
    sink = MemoryAuditSink()
    fixed: Any = {"clock": lambda: 1.0, "now": lambda: 1.0}
    Agent([writer([])], script(SAVE), policy=FREE, audit=sink, **fixed).run("goal")
    blob = bytearray("".join(record.line + "\n" for record in sink.records).encode())
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(blob)))
        stop = data.draw(st.integers(start, min(len(blob), start + 300)))
        blob[start:stop] = data.draw(st.binary(max_size=30) | st.just(bytes(blob[:stop])))
    path = Path(os.environ.get("TMPDIR", "/tmp")) / f"fuzz-{os.getpid()}.jsonl"
    try:
        path.write_bytes(blob)
        for problem in verify_audit(read_audit(path)):
            assert str(problem)
    finally:
        path.unlink()


@pytest.fixture(name="trail")
def _trail(tmp_path: Path) -> tuple[Path, list[bytes], list[Any]]:
    path = tmp_path / "t"
    states = make_trail(path)
    return path, path.read_bytes().splitlines(keepends=True), states


def test_a_line_removed_is_missing(trail: Any) -> None:
    path, lines, states = trail
    run_id = states[0].run_id
    for index in range(len(lines) // 2 - 1):
        path.write_bytes(b"".join(lines[:index] + lines[index + 1 :]))
        assert kinds(path) == [(run_id, index, "missing")]


def test_the_last_line_removed_is_cut_against_the_head(trail: Any) -> None:
    path, lines, states = trail
    last = states[-1]
    path.write_bytes(b"".join(lines[:-1]))
    assert kinds(path) == []
    assert kinds(path, heads=heads(states)) == [(last.run_id, last.audit_head.seq, "cut")]
    path.write_bytes(b"".join(lines[: len(lines) // 2]))
    assert kinds(path, heads=heads(states)) == [(last.run_id, last.audit_head.seq, "cut")]


def test_two_lines_swapped_are_reordered(trail: Any) -> None:
    path, lines, states = trail
    for index in range(len(lines) // 2 - 1):
        swapped = [*lines[:index], lines[index + 1], lines[index], *lines[index + 2 :]]
        path.write_bytes(b"".join(swapped))
        assert kinds(path) == [(states[0].run_id, index, "reordered")]


def test_a_line_repeated_is_repeated(trail: Any) -> None:
    path, lines, states = trail
    for index in range(len(lines) // 2):
        path.write_bytes(b"".join([*lines[: index + 1], *lines[index:]]))
        assert kinds(path) == [(states[0].run_id, index, "repeated")]


def test_a_line_cut_in_half_is_named(trail: Any) -> None:
    path, lines, states = trail
    run_id = states[0].run_id
    for index in range(len(lines) // 2 - 1):
        half = lines[index][: len(lines[index]) // 2]
        path.write_bytes(b"".join([*lines[:index], half + b"\n", *lines[index + 1 :]]))
        found = kinds(path)
        assert [kind for _, _, kind in found] == ["torn", "missing"]
        assert found[1] == (run_id, index, "missing")


def test_lines_of_one_run_put_into_another_are_named(trail: Any) -> None:
    path, lines, states = trail
    half = len(lines) // 2
    first, second = states
    # The second run's record in the place of the first's.
    path.write_bytes(b"".join([*lines[:3], lines[half + 3], *lines[4:half]]))
    assert (first.run_id, 3, "missing") in kinds(path)
    assert (second.run_id, 0, "missing") in kinds(path)
    # The same, renamed: its digest is not that of its content any more.
    renamed = lines[half + 3].replace(second.run_id.encode(), first.run_id.encode())
    path.write_bytes(b"".join([*lines[:3], renamed, *lines[4:half]]))
    assert (first.run_id, 3, "changed") in kinds(path)
    # The same, with a digest made anew: it does not follow the record before it.
    record = json.loads(renamed)
    forged = seal(
        record["run_id"],
        3,
        record["event"],
        encode(record["data"]),
        record["time"],
        record["prev"],
    )
    path.write_bytes(b"".join([*lines[:3], forged.line.encode() + b"\n", *lines[4:half]]))
    assert (first.run_id, 3, "foreign") in kinds(path)


def test_a_chain_built_anew_is_foreign_to_the_head(trail: Any) -> None:
    path, lines, states = trail
    prev, forged = GENESIS, []
    for line in lines[: len(lines) // 2]:
        old = json.loads(line)
        data = {**old["data"], "goal": "another"} if old["seq"] == 0 else old["data"]
        text = json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        new = seal(old["run_id"], old["seq"], old["event"], text, old["time"], prev)
        prev = new.digest
        forged.append(new.line.encode() + b"\n")
    path.write_bytes(b"".join(forged))
    state = states[0]
    assert kinds(path) == []
    assert kinds(path, heads=heads(states[:1])) == [(state.run_id, state.audit_head.seq, "foreign")]


def test_a_record_changed_in_memory_is_found() -> None:
    agent = Agent([writer([])], script(SAVE), policy=FREE)
    agent.run("goal")
    records = agent.audit.records
    changed = dataclasses.replace(records[2], data={**records[2].data, "attempt": 7})
    found = verify_audit([*records[:2], changed, *records[3:]])
    assert [(problem.seq, problem.kind) for problem in found] == [(2, "changed")]
    records[3].data["outcome"] = "planted"
    assert [(p.seq, p.kind) for p in verify_audit(records)] == [(3, "changed")]


def test_a_sound_record_stays_sound_when_its_data_is_read_however_deep_it_is() -> None:
    """A value of as many levels as are allowed stands some levels deep in its record."""
    value: Any = 0
    for _ in range(64):
        value = [value]
    agent = Agent([Tool("get", lambda: value)], script(Decision.act("get")))
    assert agent.run("goal").steps[0].result == value
    records = agent.audit.records
    assert records[3].data["result"] == value
    assert [record.data for record in records]
    assert verify_audit(records) == []
    assert [parse_line(record.line.encode()) for record in records] == records


@pytest.mark.parametrize("junk", [None, 3, "text", b"", {"seq": 0}, object(), [1]])
def test_an_item_that_is_no_record_is_a_problem_and_no_exception(junk: Any) -> None:
    agent = Agent([], script())
    agent.run("goal")
    problems = verify_audit([junk, *agent.audit.records])
    assert [problem.kind for problem in problems] == ["damaged"]


@pytest.mark.parametrize("bad", [None, 3, "text"])
def test_what_is_no_trail_at_all_is_a_type_error(bad: Any) -> None:
    with pytest.raises(TypeError, match="records"):
        verify_audit(bad)
    with pytest.raises(TypeError, match="heads"):
        verify_audit([], heads=[] if bad is None else bad)


def test_a_torn_last_line_is_told_once_and_healed_by_the_next_append(tmp_path: Path) -> None:
    path = tmp_path / "t"
    sink = JsonlAuditSink(path)
    agent = Agent([], lambda state, tools: Decision.finish("🎈"), audit=sink)
    agent.run("🎈🎈")
    whole = path.read_bytes()
    last = len(whole.splitlines(keepends=True)[-1])
    for cut in range(1, last):
        path.write_bytes(whole[:-cut])
        torn = [] if cut == 1 else ["torn"]  # without its line end alone the record is whole
        assert [kind for _, _, kind in kinds(path)] == torn
        agent = Agent([], script(), audit=JsonlAuditSink(path))
        states = [agent.run("after"), agent.run("after")]
        assert [kind for _, _, kind in kinds(path, heads=heads(states))] == torn, cut


def test_after_a_torn_tail_the_chain_goes_on_from_the_last_whole_record(tmp_path: Path) -> None:
    path = tmp_path / "t"
    store = MemoryStore()
    agent = Agent(
        [writer([])], script(SAVE), policy=WRITES, audit=JsonlAuditSink(path), store=store
    )
    paused = agent.run("goal")
    with path.open("ab") as file:
        file.write(b'{"data":{"step":1')
    again = Agent(
        [writer([])], script(SAVE), policy=WRITES, audit=JsonlAuditSink(path), store=store
    )
    state = again.resume(paused.run_id, approvals=approve(paused))
    assert [kind for _, _, kind in kinds(path, heads=heads([state]))] == ["torn"]
    records = [item for item in read_audit(path) if isinstance(item, AuditRecord)]
    assert [record.seq for record in records] == list(range(len(records)))
    assert all(a.digest == b.prev for a, b in itertools.pairwise(records))


def test_damage_in_one_run_is_that_run_s_alone(tmp_path: Path) -> None:
    path = tmp_path / "t"
    store = MemoryStore()

    def agent() -> Agent:
        return Agent(
            [writer([])], script(SAVE), policy=WRITES, audit=JsonlAuditSink(path), store=store
        )

    paused = [agent().run(f"goal {number}") for number in range(3)]
    lines = path.read_bytes().splitlines(keepends=True)
    lines[1] = lines[1].replace(b'"kind":"act"', b'"kind":"axt"')
    path.write_bytes(b"".join(lines))
    broken = paused[0]
    assert {(run_id, seq) for run_id, seq, _ in kinds(path)} == {(broken.run_id, 1)}
    with pytest.raises(StateError, match="damaged at line 2"):
        agent().resume(broken.run_id, approvals=approve(broken))
    for state in paused[1:]:
        assert agent().resume(state.run_id, approvals=approve(state)).status.value == "completed"
    agent().run("a new run")
    assert {(run_id, seq) for run_id, seq, _ in kinds(path)} == {(broken.run_id, 1)}
    sink = JsonlAuditSink(path)
    record = seal(broken.run_id, 3, "resumed", "{}", 0.0, broken.audit_head.digest)
    size = path.stat().st_size
    with pytest.raises(AuditError):
        sink.append([record], expected=broken.audit_head)
    assert path.stat().st_size == size


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data.replace(b"\n", b"\r\n"), "CR LF"),
        (lambda data: b"\xef\xbb\xbf" + data, "byte order mark"),
    ],
)
def test_a_file_that_an_editor_rewrote_is_one_clear_problem(
    tmp_path: Path, change: Any, message: str
) -> None:
    path = tmp_path / "t"
    make_trail(path)
    path.write_bytes(change(path.read_bytes()))
    problems = verify_audit(read_audit(path))
    assert [problem.kind for problem in problems] == ["format"]
    assert message in problems[0].message


def test_a_blank_line_is_no_record_and_no_problem(tmp_path: Path) -> None:
    path = tmp_path / "t"
    states = make_trail(path)
    path.write_bytes(path.read_bytes().replace(b"\n", b"\n\n"))
    assert kinds(path, heads=heads(states)) == []


@pytest.mark.parametrize(
    "line",
    [b"[" * 100_000, b"9" * 10_000, b'{"data":' + b"[" * 100_000, b"\xff\xfe", b'"\\ud800"', b"{}"],
)
def test_a_hostile_line_is_a_problem_and_no_exception(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "t"
    make_trail(path)
    path.write_bytes(line + b"\n" + path.read_bytes())
    assert [kind for _, _, kind in kinds(path)] in (["damaged"], ["torn"])


def test_a_cut_trail_is_refused_at_resume(tmp_path: Path) -> None:
    path = tmp_path / "t"
    agent = Agent([writer([])], script(SAVE), policy=WRITES, audit=JsonlAuditSink(path))
    paused = agent.run("goal")
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]))
    with pytest.raises(StateError, match="does not hold record 2"):
        agent.resume(paused, approvals=approve(paused))
    path.unlink()
    other = Agent([writer([])], script(SAVE), policy=WRITES, audit=JsonlAuditSink(path))
    with pytest.raises(StateError, match="does not hold record 2"):
        other.resume(paused, approvals=approve(paused))


def _append_run(path: str, number: int, start: Any) -> None:
    start.wait()
    for _ in range(10):
        agent = Agent([writer([])], script(SAVE), policy=FREE, audit=JsonlAuditSink(path))
        agent.run(f"goal {number}")


def test_processes_and_threads_share_one_file(tmp_path: Path) -> None:
    path = tmp_path / "t"
    context = multiprocessing.get_context("spawn")
    start = context.Barrier(3, timeout=60)
    processes = [
        context.Process(target=_append_run, args=(str(path), number, start)) for number in range(2)
    ]
    for process in processes:
        process.start()
    shared = JsonlAuditSink(path)
    agent = Agent([writer([])], script(SAVE), policy=FREE, audit=shared)
    start.wait()
    threads = [
        threading.Thread(target=lambda: [agent.run("thread") for _ in range(5)]) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    assert verify_audit(read_audit(path)) == []
    assert len({record.run_id for record in read_audit(path) if record.run_id}) == 40


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_takes_a_lock_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "t"
    sink = JsonlAuditSink(path)
    Agent([], script(), audit=sink).run("before")
    child = os.fork()
    if child == 0:
        code = 1
        try:
            for _ in range(20):
                Agent([], script(), audit=sink).run("child")
            code = 0
        finally:
            os._exit(code)
    for _ in range(20):
        Agent([], script(), audit=sink).run("parent")
    assert os.waitpid(child, 0)[1] == 0
    assert verify_audit(read_audit(path)) == []
    assert sum(record.event == "run_started" for record in sink.read()) == 41


def test_one_commit_is_one_write_and_with_fsync_one_sync(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[str] = []
    write, fsync = os.write, os.fsync
    monkeypatch.setattr(os, "write", lambda *args: events.append("write") or write(*args))
    monkeypatch.setattr(os, "fsync", lambda *args: events.append("fsync") or fsync(*args))
    sink = JsonlAuditSink(tmp_path / "t", fsync=True)
    assert events == ["fsync"], "the folder, since the file is new"
    events.clear()
    Agent([writer([])], script(SAVE), policy=FREE, audit=sink).run("goal")
    # run_started; the call before and after it; the answer.
    assert events == ["write", "fsync"] * 4


def test_the_file_is_not_read_again_from_its_start(tmp_path: Path) -> None:
    path = tmp_path / "t"
    make_trail(path)
    sink = JsonlAuditSink(path)
    assert sink.head("a" * 64) is None
    offset = sink._offset
    assert offset == path.stat().st_size
    # What was read stays read: damage in it is for verify_audit to find, not for each append.
    data = bytearray(path.read_bytes())
    data[40] ^= 1
    path.write_bytes(data)
    Agent([], script(), audit=sink).run("goal")
    assert sink._offset > offset


def test_a_trail_that_cannot_be_opened_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(AuditError, match="cannot be opened"):
        JsonlAuditSink(tmp_path / "no folder" / "t")
    with pytest.raises(TypeError, match="path"):
        JsonlAuditSink(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="fsync"):
        JsonlAuditSink(tmp_path / "t", fsync=1)  # type: ignore[arg-type]


def test_a_file_that_cannot_be_written_ends_the_run_and_is_resumed_later(tmp_path: Path) -> None:
    path = tmp_path / "t"
    store = MemoryStore()
    sink = JsonlAuditSink(path)
    calls: list[str] = []
    real, failing = os.write, []

    def write(fd: int, data: bytes) -> int:
        if failing and b"tool_started" in data:
            if len(failing) == 1:
                failing.append(1)
                return real(fd, data[: len(data) // 2])  # a disk that fills in the middle
            raise OSError(28, "No space left on device")
        return real(fd, data)

    agent = Agent([writer(calls)], script(SAVE), policy=FREE, audit=sink, store=store)
    failing.append(1)
    os.write = write
    try:
        with pytest.raises(AuditError, match="No space left"):
            agent.run("goal")
    finally:
        os.write = real
    assert calls == []
    (run_id,) = store.runs()
    state = agent.resume(run_id)
    assert state.status.value == "completed"
    assert len(calls) == 1
    found = [kind for _, _, kind in kinds(path, heads=heads([state]))]
    assert found in ([], ["torn"])


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("run_id", "x", ValueError),
        ("run_id", 3, ValueError),
        ("seq", True, TypeError),
        ("seq", -1, ValueError),
        ("event", 3, TypeError),
        ("event", "Bad Event", ValueError),
        ("data", [], TypeError),
        ("time", "now", TypeError),
        ("time", float("nan"), ValueError),
        ("prev", None, ValueError),
        ("digest", "x" * 64, ValueError),
    ],
)
def test_a_record_checks_its_fields(name: str, value: Any, error: type[Exception]) -> None:
    fields: dict[str, Any] = {
        "run_id": "a" * 64,
        "seq": 0,
        "event": "run_started",
        "data": {},
        "time": 0.0,
        "prev": GENESIS,
        "digest": "b" * 64,
    }
    assert AuditRecord(**fields).to_dict() == fields
    with pytest.raises(error, match=name):
        AuditRecord(**{**fields, name: value})


KEY = b"0123456789abcdef"


def test_with_a_key_nobody_can_build_the_chain_anew_without_it(tmp_path: Path) -> None:
    path = tmp_path / "t"
    store = MemoryStore()
    agent = Agent(
        [writer([])], script(SAVE), policy=WRITES, store=store, audit=JsonlAuditSink(path, key=KEY)
    )
    paused = agent.run("goal")
    again = JsonlAuditSink(path, key=KEY)
    agent = Agent([writer([])], script(SAVE), policy=WRITES, store=store, audit=again)
    state = agent.resume(paused.run_id, approvals=approve(paused))
    assert verify_audit(read_audit(path), heads=heads([state]), key=KEY) == []
    count = state.audit_head.seq + 1
    for wrong in (None, b"another key, 16 bytes"):
        problems = verify_audit(read_audit(path), key=wrong)
        assert [problem.kind for problem in problems] == ["changed"] * count
    prev, forged = GENESIS, []
    for record in again.read():
        text = json.dumps(record.data, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        new = seal(record.run_id, record.seq, record.event, text, record.time, prev)
        prev = new.digest
        forged.append(new)
    assert verify_audit(forged) == []
    assert {problem.kind for problem in verify_audit(forged, key=KEY)} == {"changed"}
    assert "0123456789abcdef" not in repr(again) + repr(agent) + path.read_text("utf-8")


@pytest.mark.parametrize(
    ("key", "error"), [("text", TypeError), (b"short", ValueError), (3, TypeError)]
)
def test_a_key_is_bytes_and_long_enough(tmp_path: Path, key: Any, error: type[Exception]) -> None:
    for make in (
        lambda: MemoryAuditSink(key=key),
        lambda: JsonlAuditSink(tmp_path / "t", key=key),
        lambda: verify_audit([], key=key),
    ):
        with pytest.raises(error, match="key") as caught:
            make()
        assert str(key) not in str(caught.value)


def test_a_pickle_never_carries_a_key(tmp_path: Path) -> None:
    for sink in (JsonlAuditSink(tmp_path / "t", key=KEY), SqliteStore(tmp_path / "d", key=KEY)):
        with pytest.raises(TypeError, match="key cannot be pickled"):
            pickle.dumps(sink)


@pytest.mark.parametrize(
    "data",
    ['{"x":NaN}', '{"x":1,"x":2}', '{"x": 1}', '{"x":"\\ud800"}', '{"x":"\\u0061"}', '{"x":1E1}'],
)
def test_a_line_that_two_readers_could_read_differently_is_no_record(
    tmp_path: Path, data: str
) -> None:
    """Its digest fits: whoever wrote it was not this library, or was made to write it so."""
    path = tmp_path / "t"
    line = seal("a" * 64, 0, "run_started", data, 1.0, GENESIS).line
    path.write_text(f"{line}\n", "utf-8", newline="\n")
    assert kinds(path) == [("a" * 64, 0, "damaged")]


@pytest.mark.parametrize("key", [None, b"k" * 32])
def test_what_a_sink_reads_of_a_line_is_what_its_record_says_and_of_a_changed_one_nothing(
    key: bytes | None,
) -> None:
    sink = MemoryAuditSink(key=key)
    said = 'x"},"event":"decision","prev":"' + "0" * 64 + '","run_id":"' + "1" * 64
    Agent([], script(Decision.finish({"é\n": said})), audit=sink).run(said)
    for record in sink.records:
        line = record.line.encode()
        assert link_of(line, key) == (record.run_id, record.seq, record.prev, record.digest)
        assert link_of(line, b"other" * 4) is None
        for place in range(len(line)):
            changed = line[:place] + bytes([line[place] ^ 1]) + line[place + 1 :]
            assert link_of(changed, key) is None
        for cut in (line[1:], line[:-1], line + b" ", b"", line[-300:]):
            assert link_of(cut, key) is None
