"""What holds for `SqliteStore` alone: what is in the file before it is opened."""

from __future__ import annotations

import functools
import multiprocessing
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from scikitplot.agent import Agent, Decision, MemoryStore, SqliteStore, StateError, verify_audit

from .test_stores import RUN, head, in_threads


def no_database(path: Path) -> None:
    path.write_bytes(b"this is a text, and longer than the header of a database is\n" * 40)


def damaged(path: Path) -> None:
    fill(path)
    data = bytearray(path.read_bytes())
    data[100:] = b"\xff" * (len(data) - 100)
    path.write_bytes(data)


def damaged_in_its_schema(path: Path) -> None:
    fill(path)
    path.write_bytes(path.read_bytes().replace(b"TABLE agent_record", b"T\xe5BLE agent_record"))


def of_another_program(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("create table agent_run (mine)")
    connection.close()


def newer(path: Path) -> None:
    fill(path)
    with sqlite3.connect(path) as connection:
        connection.execute("pragma user_version = 2")
    connection.execute("pragma wal_checkpoint(truncate)")
    connection.close()


def fill(path: Path) -> None:
    with SqliteStore(path) as store:
        store.commit(RUN, head(0), ["a"], expected=None)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (no_database, "file is not a database"),
        (damaged, "database disk image is malformed"),
        (damaged_in_its_schema, "its schema is damaged"),
        (of_another_program, "it is one of another program"),
        (newer, "its version is 2, newer than 1, the newest this release reads; upgrade"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_in_one_sentence_and_is_left_as_it_is(
    tmp_path: Path, make: Any, message: str
) -> None:
    path = tmp_path / "runs.db"
    make(path)
    before = path.read_bytes()
    with pytest.raises(StateError, match=message) as caught:
        SqliteStore(path)
    assert str(caught.value).startswith(f"database {path}: ")
    assert "\n" not in str(caught.value)
    assert path.read_bytes() == before
    assert sorted(tmp_path.iterdir()) == [path]


def test_a_folder_that_is_not_there_is_one_error(tmp_path: Path) -> None:
    with pytest.raises(StateError, match="unable to open database file"):
        SqliteStore(tmp_path / "none" / "runs.db")
    assert list(tmp_path.iterdir()) == []


def test_threads_that_open_a_new_database_at_once_all_succeed(tmp_path: Path) -> None:
    def opens(number: int) -> None:
        with SqliteStore(tmp_path / "runs.db") as store:
            store.commit(f"{number:064x}", head(0), [], expected=None)

    in_threads(opens, range(8))
    with SqliteStore(tmp_path / "runs.db") as store:
        assert len(store.runs()) == 8


def test_a_database_that_another_process_makes_at_any_moment_of_opening_it_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached = set()  # those that are not in the middle of a transaction of ours
    for moment in range(1, 20):
        path = tmp_path / f"{moment}.db"

        class Watched(sqlite3.Connection):
            number = 0

            def execute(
                self, *given: Any, moment: int = moment, path: Path = path
            ) -> sqlite3.Cursor:
                self.number += 1
                if self.number == moment and not self.in_transaction:
                    reached.add(moment)
                    monkeypatch.undo()
                    SqliteStore(path).close()
                return super().execute(*given)

        connect = functools.partial(sqlite3.connect, factory=Watched)
        monkeypatch.setattr(sqlite3, "connect", connect)
        with SqliteStore(path) as store:
            monkeypatch.undo()
            store.commit(RUN, head(0), ["a"], expected=None)
    assert len(reached) >= 4


def _save(store: SqliteStore, number: int) -> None:
    store.commit(f"{number:064x}", head(0), [], expected=None)


def test_a_store_is_passed_to_a_process_that_is_spawned(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "runs.db") as store:
        context = multiprocessing.get_context("spawn")
        processes = [context.Process(target=_save, args=(store, n)) for n in range(2)]
        for process in processes:
            process.start()
        for process in processes:
            process.join(60)
        assert len(store.runs()) == 2


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        ([3], {}, TypeError, "path must be a str or a path, not int"),
        (["x"], {"synchronous": True}, TypeError, "synchronous must be a str, not bool"),
        (
            ["x"],
            {"synchronous": "FULL"},
            ValueError,
            "synchronous must be one of off, normal",
        ),
        (["x"], {"timeout": "3"}, TypeError, "timeout must be"),
        (["x"], {"timeout": -1}, ValueError, "timeout must be"),
    ],
)
def test_an_argument_that_is_none_is_refused_and_no_file_is_made(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: Any,
    options: Any,
    error: type[Exception],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=message):
        SqliteStore(*arguments, **options)
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_row_that_a_state_was_saved_after_is_one_error(tmp_path: Path) -> None:
    class Dies(MemoryStore):
        def commit(self, *args: Any, **options: Any) -> None:
            if self.runs():
                raise KeyboardInterrupt
            super().commit(*args, **options)

    store, path = Dies(), tmp_path / "trail.db"
    with SqliteStore(path) as trail:
        agent = Agent([], lambda state, tools: Decision.finish(1), store=store, audit=trail)
        with pytest.raises(KeyboardInterrupt):
            agent.run("ends in the trail alone", run_id=RUN)
        with sqlite3.connect(path) as connection:
            connection.execute("update agent_record set body = '{' where seq = 0")
        connection.close()
        with pytest.raises(StateError, match="the trail does not hold record 0"):
            agent.resume(RUN)


@pytest.mark.parametrize(
    "saved",
    [
        "{",
        "{}",
        "3",
        "[]",
        "",
        '{"audit_head":null}',
        '{"audit_head":[1,2]}',
        "[" * 100_000,
        b"\xff",
    ],
)
def test_a_damaged_state_is_a_fault_of_its_own_run_alone(tmp_path: Path, saved: Any) -> None:
    path = tmp_path / "runs.db"
    with SqliteStore(path) as store:
        agent = Agent([], lambda state, tools: Decision.finish(1), store=store, audit=store)
        sound, hurt = agent.run("one"), agent.run("two")
        with sqlite3.connect(path) as connection:
            connection.execute(
                "update agent_run set head = ? where run_id = ?", (saved, hurt.run_id)
            )
        connection.close()
        heads = store.heads()
        assert heads[sound.run_id] == sound.audit_head
        assert [p.run_id for p in verify_audit(store.read(), heads=heads)] == [hurt.run_id]
