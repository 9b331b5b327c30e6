"""The least honest work of a step: what no runtime with this trail and state can go below.

A step here is what the formats oblige to: the JSON of three records, of a saved head twice and of a
saved step, a SHA-256 a record, and the keeping of all of it: in lists, in a file with one write a
commit, or in a SQLite database with one transaction a commit. There are no checks, no copies, and
one encoder made once.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Sequence
from pathlib import Path

ENCODE = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
).encode
RUN_ID = "0f" * 32


class Floor:
    """A run of calls of ``add(a, b)`` kept in memory."""

    def __init__(self) -> None:
        self.trail: list[str] = []
        self.steps: list[str] = []
        self.head = ""
        self.prev = "0" * 64
        self.committed = 0

    def commit(self, revision: int, records: Sequence[str], steps: Sequence[str]) -> None:
        """Keep what is new; there is nothing to do in memory."""

    def close(self) -> None:
        """Let go of files."""

    def record(self, event: str, data: dict[str, object]) -> str:
        body = ENCODE(
            {
                "data": data,
                "event": event,
                "prev": self.prev,
                "run_id": RUN_ID,
                "seq": len(self.trail),
                "time": 1_700_000_000.25,
            }
        )
        self.prev = hashlib.sha256(body.encode()).hexdigest()
        self.trail.append(f'{body[:-1]},"digest":"{self.prev}"}}')
        return self.prev

    def save(self, revision: int, in_flight: object) -> None:
        usage = {"cost": 0.0, "decisions": 1, "seconds": 0.5, "tokens": 0, "tool_calls": 1}
        self.head = ENCODE(
            {
                "audit_head": [len(self.trail) - 1, self.prev],
                "in_flight": in_flight,
                "revision": revision,
                "run_id": RUN_ID,
                "status": "running",
                "steps": len(self.steps),
                "usage": usage,
            }
        )
        records, self.committed = self.trail[self.committed :], len(self.trail)
        self.commit(revision, records, [] if in_flight else self.steps[-1:])

    def run(self, steps: int) -> None:
        for index in range(steps):
            arguments = {"a": index, "b": 1}
            decision = {"arguments": arguments, "kind": "act", "tool": "add", "usage": None}
            action = self.record("decision", {"decision": decision, "step": index})
            call = {"attempt": 1, "cost": 0.0, "digest": action, "step": index, "tool": "add"}
            self.record("tool_started", call)
            self.save(2 * index, {"arguments": arguments, **call})
            result = arguments["a"] + arguments["b"]
            outcome = {"outcome": "executed", "result": result, "step": index}
            self.record("tool_finished", outcome)
            self.steps.append(
                ENCODE(
                    {
                        "attempts": 1,
                        "decision": decision,
                        "index": index,
                        "outcome": "executed",
                        "result": result,
                        "seconds": 0.000001,
                        "started": 0.5,
                    }
                )
            )
            self.save(2 * index + 1, None)


class FileFloor(Floor):
    """The trail in a file of lines."""

    def __init__(self, folder: Path, *, fsync: bool = False) -> None:
        super().__init__()
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        self.fd = os.open(folder / "trail.jsonl", flags, 0o666)
        self.fsync = fsync

    def commit(self, revision: int, records: Sequence[str], steps: Sequence[str]) -> None:
        os.write(self.fd, "".join(f"{record}\n" for record in records).encode())
        if self.fsync:
            os.fsync(self.fd)

    def close(self) -> None:
        os.close(self.fd)


class SqliteFloor(Floor):
    """The trail and the state in one database."""

    def __init__(self, folder: Path, *, synchronous: str = "normal") -> None:
        super().__init__()
        self.db = sqlite3.connect(folder / "runs.db", isolation_level=None)
        self.db.execute("pragma journal_mode = wal")
        self.db.execute(f"pragma synchronous = {synchronous}")
        self.db.execute("create table run (id text primary key, revision, head) without rowid")
        for table in ("step", "record"):
            self.db.execute(
                f"create table {table} (run text, number int, body text,"
                " primary key (run, number)) without rowid"
            )
        self.db.execute("insert into run values (?, -1, '')", [RUN_ID])

    def commit(self, revision: int, records: Sequence[str], steps: Sequence[str]) -> None:
        execute = self.db.execute
        execute("begin immediate")
        first = len(self.trail) - len(records)
        for number, record in enumerate(records, first):
            execute("insert into record values (?, ?, ?)", (RUN_ID, number, record))
        for step in steps:
            execute("insert into step values (?, ?, ?)", (RUN_ID, len(self.steps) - 1, step))
        execute(
            "update run set revision = ?, head = ? where id = ? and revision = ?",
            (revision, self.head, RUN_ID, revision - 1),
        )
        execute("commit")

    def close(self) -> None:
        self.db.close()
