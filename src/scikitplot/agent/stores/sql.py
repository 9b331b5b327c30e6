"""Runs and their trails in the tables of a database.

`Tables` holds what all databases share: the statements, the pool of connections, and what is true
after a failure. `SqliteStore` and `SqlStore` open the connections. Rules that hold here:

* a commit is one transaction: the records, the head and the new steps are there together or not at
  all, and only if the revision and the trail's end are those that were expected;
* no transaction is open and no cursor is read from while anything else runs;
* every failure of the database is one `StateError` in one sentence.
"""

from __future__ import annotations

import json
import os
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from ..approval import check_run_id
from ..audit.base import check_head
from ..audit.record import AuditHead, AuditRecord, DamagedLine, parse_line
from ..errors import AuditError, StateError
from .base import SavedRun, check_revision, status_of

__all__ = ["LostConnection", "Tables"]

PAGE = 500
"""Rows that are read at a time, so that no cursor stays open between two pages."""

_STATEMENTS = {
    "find": "select key, revision from agent_run where run_id = ?",
    "add": "insert into agent_run (run_id) values (?)",
    "save": "update agent_run set revision = ?, status = ?, head = ? where key = ?",
    "step": "insert into agent_step (run, number, body) values (?, ?, ?)",
    "record": "insert into agent_record (run, seq, body) values (?, ?, ?)",
    "load": "select key, head from agent_run where run_id = ? and head is not null",
    "steps": "select body from agent_step where run = ? order by number",
    "count": "select coalesce(max(number) + 1, 0) from agent_step where run = ?",
    "last": "select body from agent_record where run = ? order by seq desc limit 1",
    "records": "select seq, body from agent_record where run = ? and seq > ?"
    f" order by seq limit {PAGE}",
    "runs": "select key, run_id, status, head from agent_run where key > ?"
    f" order by key limit {PAGE}",
    "one run": "select key, run_id, status, head from agent_run where run_id = ? and key > ?",
    "forget run": "delete from agent_run where key = ?",
    "forget steps": "delete from agent_step where run = ?",
    "forget records": "delete from agent_record where run = ?",
}

Result = TypeVar("Result")


class LostConnection(StateError):
    """The connection broke; what was being done may or may not have been done."""


def _close_idle(connections: list[Any], pid: int) -> None:
    if pid == os.getpid():
        for connection in connections:
            connection.close()


class Tables:
    """A store and a sink over connections of one kind; a dialect overrides what it differs in."""

    _mark = "?"
    _for_update = ""

    def __init__(self) -> None:
        self._idle: list[Any] = []
        self._abandoned: list[Any] = []  # of the process that this one was forked from
        self._pid = os.getpid()
        self._lock = threading.RLock()  # a signal handler may use the store too
        weakref.finalize(self, _close_idle, self._idle, self._pid).atexit = False
        self._sql = {name: text.replace("?", self._mark) for name, text in _STATEMENTS.items()}
        self._sql["find"] += self._for_update

    # What a dialect says

    def _connect(self) -> Any:
        """Return a new connection that is ready to be used."""
        raise NotImplementedError

    def _begin(self, cursor: Any, writes: bool) -> None:
        """Begin a transaction."""
        raise NotImplementedError

    def _explain(self, error: Exception, connection: Any) -> StateError | None:
        """Return what an exception means, in one sentence; None if it is none of the database."""
        raise NotImplementedError

    # Connections and transactions

    @contextmanager
    def _transaction(self, writes: bool = False) -> Iterator[Any]:
        connection = self._take()
        try:
            if connection is None:
                connection = self._connect()
            cursor = connection.cursor()
            self._begin(cursor, writes)
            yield cursor
            connection.commit()
        except BaseException as error:
            told = self._explain(error, connection) if isinstance(error, Exception) else None
            self._discard(connection)
            if told is not None:
                raise told from None
            raise
        self._give(connection)

    def _take(self) -> Any:
        with self._lock:
            if self._pid != os.getpid():
                # Connections do not survive a fork, and closing them would harm the parent's.
                self._abandoned += self._idle
                self._idle.clear()
                self._pid = os.getpid()
            return self._idle.pop() if self._idle else None

    def _give(self, connection: Any) -> None:
        with self._lock:
            self._idle.append(connection)

    def _discard(self, connection: Any) -> None:
        # Closing rolls back. A connection that cannot even be closed is gone already.
        if connection is not None:
            try:
                connection.close()
            except Exception as error:
                if self._explain(error, connection) is None:
                    raise

    def close(self) -> None:
        """Close the connections that are not in use; the next use opens new ones."""
        with self._lock:
            idle = self._idle.copy()
            self._idle.clear()
        for connection in idle:
            connection.close()

    def _attempt(self, action: Callable[[], Result], landed: Callable[[], bool]) -> Result | None:
        """Do something; where the connection breaks, find out if it was done, or do it again."""
        try:
            return action()
        except LostConnection:
            return None if landed() else action()

    # The store

    def load(self, run_id: str) -> SavedRun | None:
        """Return the latest head and steps of a run, None if it is not there."""
        check_run_id(run_id)
        return self._attempt(lambda: self._load(run_id), lambda: False)

    def _load(self, run_id: str) -> SavedRun | None:
        with self._transaction() as cursor:  # one moment for the head and all steps
            cursor.execute(self._sql["load"], (run_id,))
            row = cursor.fetchone()
            if row is None:
                return None
            key, head = row
            cursor.execute(self._sql["steps"], (key,))
            return SavedRun(head, [body for (body,) in cursor.fetchall()])

    def commit(
        self,
        run_id: str,
        head: str,
        steps: Sequence[str],
        *,
        expected: int | None,
        records: Sequence[AuditRecord] = (),
        audit_head: AuditHead | None = None,
    ) -> None:
        """Replace the head and append `steps`, and the records too; see `StateStore.commit`.

        Parameters
        ----------
        run_id, head, steps, expected
            As in `StateStore.commit`.
        records : sequence of AuditRecord, default=()
            Written in the same transaction.
        audit_head : AuditHead or None, default=None
            What the run's trail ends with before.

        Raises
        ------
        StateError
            If another revision or another end of the trail is there, or the database fails.
            Nothing is written then.
        """
        check_run_id(run_id)

        def write() -> None:
            self._write(run_id, head, steps, expected, records, audit_head)

        def landed() -> bool:
            saved = self._load(run_id)
            return saved is not None and saved.head == head

        self._attempt(write, landed)

    def _write(
        self,
        run_id: str,
        head: str,
        steps: Sequence[str],
        expected: int | None,
        records: Sequence[AuditRecord],
        audit_head: AuditHead | None,
    ) -> None:
        sql = self._sql
        with self._transaction(writes=True) as cursor:
            key, held = self._find(cursor, run_id)
            check_revision(run_id, held, expected)
            if records:
                self._append(cursor, key, records, audit_head)
            if steps:
                cursor.execute(sql["count"], (key,))
                first = cursor.fetchone()[0]
                rows = [(key, first + place, body) for place, body in enumerate(steps)]
                cursor.executemany(sql["step"], rows)
            revision = 0 if expected is None else expected + 1
            cursor.execute(sql["save"], (revision, status_of(head), head, key))

    def _find(self, cursor: Any, run_id: str) -> tuple[int, int | None]:
        """Return the key and the revision of a run, which is added if it is not there."""
        for _ in range(2):
            cursor.execute(self._sql["find"], (run_id,))
            row: tuple[int, int | None] | None = cursor.fetchone()
            if row is not None:
                return row
            cursor.execute(self._sql["add"], (run_id,))
        raise StateError(f"run {run_id[:12]}: the database does not keep what is added to it")

    def runs(self, status: str | None = None) -> list[str]:
        """Return the ids of the runs of this status, of all when it is None."""
        return [
            run_id
            for _, run_id, held, head in self._pages("runs")
            if head is not None and status in (None, held)
        ]

    def heads(self) -> dict[str, AuditHead]:
        """Return the last record of each run as its saved head names it, for `verify_audit`."""
        return {
            run_id: AuditHead(*json.loads(head)["audit_head"])
            for _, run_id, _, head in self._pages("runs")
            if head is not None
        }

    def delete(self, run_id: str) -> None:
        """Forget a run, its steps and its records; one that is not there is no error."""
        check_run_id(run_id)

        def forget() -> None:
            with self._transaction(writes=True) as cursor:
                cursor.execute(self._sql["find"], (run_id,))
                row = cursor.fetchone()
                for name in ("forget steps", "forget records", "forget run"):
                    if row is not None:
                        cursor.execute(self._sql[name], (row[0],))

        self._attempt(forget, lambda: False)

    # The sink

    def append(self, records: Sequence[AuditRecord], *, expected: AuditHead | None) -> None:
        """Write records of one run; see `AuditSink.append`."""
        last = records[-1]

        def write() -> None:
            with self._transaction(writes=True) as cursor:
                key, _ = self._find(cursor, last.run_id)
                self._append(cursor, key, records, expected)

        def landed() -> bool:
            return self.head(last.run_id) == (last.seq, last.digest)

        self._attempt(write, landed)

    def _append(
        self,
        cursor: Any,
        key: int,
        records: Sequence[AuditRecord],
        expected: AuditHead | None,
    ) -> None:
        check_head(records[0].run_id, self._last(cursor, key), expected)
        rows = [(key, record.seq, record.line) for record in records]
        cursor.executemany(self._sql["record"], rows)

    def _last(self, cursor: Any, key: int) -> AuditHead | None:
        cursor.execute(self._sql["last"], (key,))
        row = cursor.fetchone()
        if row is None:
            return None
        try:
            record = parse_line(row[0].encode())
        except (ValueError, AttributeError):
            raise AuditError(
                "the last record of the run is damaged; verify_audit says how"
            ) from None
        return AuditHead(record.seq, record.digest)

    def head(self, run_id: str) -> AuditHead | None:
        """Return the last record of a run, None if there is none."""
        check_run_id(run_id)

        def read() -> AuditHead | None:
            with self._transaction() as cursor:
                cursor.execute(self._sql["find"], (run_id,))
                row = cursor.fetchone()
                return None if row is None else self._last(cursor, row[0])

        return self._attempt(read, lambda: False)

    def read(self, run_id: str | None = None) -> Iterator[AuditRecord | DamagedLine]:
        """Yield the records of one run, or of all, in order, a page at a time.

        A row that is no record is yielded as a `DamagedLine`, so that `verify_audit` can name it.
        """
        if run_id is not None:
            check_run_id(run_id)
        for key, held, _, _ in self._pages("runs" if run_id is None else "one run", run_id):
            for seq, body in self._pages("records", key):
                yield _read_row(held, seq, body)

    def _pages(self, name: str, *key: Any) -> Iterator[Any]:
        """Yield rows a page at a time, each page in a transaction of its own."""
        last = -1

        def page() -> list[Any]:
            with self._transaction() as cursor:
                given = [part for part in (*key, last) if part is not None]
                cursor.execute(self._sql[name], given)
                rows: list[Any] = cursor.fetchall()
                return rows

        while True:
            rows = self._attempt(page, lambda: False) or []
            yield from rows
            if len(rows) < PAGE:
                return
            last = rows[-1][0]


def _read_row(run_id: str, seq: int, body: object) -> AuditRecord | DamagedLine:
    try:
        record = parse_line(body.encode()) if isinstance(body, str) else None
    except ValueError as error:
        return DamagedLine(seq + 1, "damaged", f"no record: {error}", run_id, seq)
    if record is None or (record.run_id, record.seq) != (run_id, seq):
        return DamagedLine(seq + 1, "damaged", "the record of another place", run_id, seq)
    return record
