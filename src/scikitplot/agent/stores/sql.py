"""Runs and their trails in the tables of a database.

`Tables` holds what all databases share: the statements, the pool of connections, and what is true
after a failure. `SqliteStore` and `SqlStore` open the connections. Rules that hold here:

* a commit is one transaction: the records, the head and the new steps are there together or not at
  all, and only if the revision and the trail's end are those that were expected;
* no transaction is open and no cursor is read from while anything else runs;
* a connection that breaks is replaced, and what was being done is done once: again if it was not
  committed, and not again if it was;
* every failure of the database is one `StateError` in one sentence.
"""

from __future__ import annotations

import json
import os
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from ..approval import check_run_id, is_digest
from ..audit.base import check_head, check_key
from ..audit.record import AuditHead, AuditRecord, DamagedLine, is_intact, parse_line
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
    "last": "select seq, substr(body, length(body) - 65) from agent_record where run = ?"
    " order by seq desc limit 1",
    "records": "select seq, body from agent_record where run = ? and seq > ?"
    f" order by seq limit {PAGE}",
    "runs": "select key, run_id, status, head from agent_run where key > ?"
    f" order by key limit {PAGE}",
    "one run": "select key, run_id, status, head from agent_run where run_id = ? and key > ?",
    "forget run": "delete from agent_run where key = ?",
    "forget steps": "delete from agent_step where run = ?",
    "forget records": "delete from agent_record where run = ?",
}

_DAMAGED = "the last record of the run is damaged; verify_audit says how"

Result = TypeVar("Result")
Self = TypeVar("Self", bound="Tables")


class LostConnection(StateError):
    """The connection broke; what was being done may or may not have been done.

    Attributes
    ----------
    transaction : str or None
        What names the transaction at the database; None where nothing was written in it.
    """

    transaction: str | None = None


def _close(connection: Any) -> None:
    with suppress(Exception):  # one that cannot even be closed is gone already
        connection.close()


def _close_all(connections: list[Any], pid: int) -> None:
    if pid == os.getpid():
        with suppress(IndexError):  # another thread may take the last one
            while True:
                _close(connections.pop())


class Tables:
    """A store and a sink over connections of one kind; a dialect overrides what it differs in."""

    _mark = "?"
    _for_update = ""

    def __init__(self, key: bytes | None) -> None:
        self.key = check_key(key)
        self._abandoned: list[Any] = []  # of the process that this one was forked from
        self._start_pool()
        self._sql = {name: text.replace("?", self._mark) for name, text in _STATEMENTS.items()}
        self._sql["hold"] = self._sql["find"] + self._for_update

    # What a dialect says

    def _connect(self) -> Any:
        """Return a new connection that is ready to be used."""
        raise NotImplementedError

    def _begin(self, cursor: Any, writes: bool) -> str | None:
        """Begin a transaction; return what names it at the database, if `_has_landed` is to ask."""
        raise NotImplementedError

    def _has_landed(self, transaction: str) -> bool:
        """Return whether a transaction, whose connection was lost, was committed."""
        raise NotImplementedError

    def _explain(self, error: Exception, connection: Any) -> StateError | None:
        """Return what an exception means, in one sentence; None if it is none of the database."""
        raise NotImplementedError

    # Connections and transactions

    @contextmanager
    def _transaction(self, writes: bool = False) -> Iterator[Any]:
        connection, name = self._take(), None
        try:
            if connection is None:
                connection = self._connect()
            cursor = connection.cursor()
            name = self._begin(cursor, writes)
            yield cursor
            connection.commit()
        except BaseException as error:
            told = self._explain(error, connection) if isinstance(error, Exception) else None
            self._discard(connection)
            if isinstance(told, LostConnection):
                told.transaction = name
                self.close()  # what broke it has most often broken the idle ones too
            if told is not None:
                raise told from error
            raise
        self._give(connection)

    def _start_pool(self) -> None:
        self._idle: list[Any] = []
        self._pid = os.getpid()
        weakref.finalize(self, _close_all, self._idle, self._pid).atexit = False

    def _take(self) -> Any:
        if self._pid != os.getpid():
            # Connections do not survive a fork, and closing them would harm the parent's.
            self._abandoned.append(self._idle)
            self._start_pool()
        try:
            return self._idle.pop()
        except IndexError:
            return None

    def _give(self, connection: Any) -> None:
        self._idle.append(connection)

    def _discard(self, connection: Any) -> None:
        if connection is not None:
            _close(connection)  # which rolls back

    def close(self) -> None:
        """Close the connections that are not in use; the next use opens new ones."""
        _close_all(self._idle, self._pid)

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _attempt(self, action: Callable[[], Result]) -> Result | None:
        """Do something; where the connection breaks, do it again unless it was done."""
        try:
            return action()
        except LostConnection as lost:
            transaction = lost.transaction
        try:
            # Waits for what is left of the first transaction. If that was committed, this one finds
            # another revision than it expects, or another end of the trail.
            return action()
        except StateError:
            if transaction is not None and self._has_landed(transaction):
                return None
            raise

    # The store

    def load(self, run_id: str) -> SavedRun | None:
        """Return the latest head and steps of a run, None if it is not there."""
        check_run_id(run_id)
        return self._attempt(lambda: self._load(run_id))

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
        self._attempt(lambda: self._write(run_id, head, steps, expected, records, audit_head))

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
        """Return the key and the revision of a run, locked, and added if it is not there."""
        for _ in range(2):
            cursor.execute(self._sql["hold"], (run_id,))
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
                cursor.execute(self._sql["hold"], (run_id,))
                row = cursor.fetchone()
                for name in ("forget steps", "forget records", "forget run"):
                    if row is not None:
                        cursor.execute(self._sql[name], (row[0],))

        self._attempt(forget)

    # The sink

    def append(self, records: Sequence[AuditRecord], *, expected: AuditHead | None) -> None:
        """Write records of one run; see `AuditSink.append`."""
        last = records[-1]

        def write() -> None:
            with self._transaction(writes=True) as cursor:
                key, _ = self._find(cursor, last.run_id)
                self._append(cursor, key, records, expected)

        self._attempt(write)

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
        seq, end = row
        if type(end) is not str or not is_digest(end[:64]) or end[64:] != '"}':
            raise AuditError(_DAMAGED)
        return AuditHead(seq, end[:64])

    def head(self, run_id: str) -> AuditHead | None:
        """Return the last record of a run, None if there is none.

        Raises
        ------
        AuditError
            If that record is damaged.
        """
        check_run_id(run_id)

        def read() -> AuditHead | None:
            with self._transaction() as cursor:
                cursor.execute(self._sql["find"], (run_id,))
                row = cursor.fetchone()
                last = None if row is None else self._last(cursor, row[0])
                if last is not None:
                    cursor.execute(self._sql["records"], (row[0], last.seq - 1))
                    record = _read_row(run_id, *cursor.fetchone())
                    if not isinstance(record, AuditRecord) or not is_intact(record, self.key):
                        raise AuditError(_DAMAGED)
                return last

        return self._attempt(read)

    def read(self, run_id: str | None = None) -> Iterator[AuditRecord | DamagedLine]:
        """Return an iterator over the records of one run, or of all, a page at a time.

        A row that is no record comes as a `DamagedLine`, so that `verify_audit` can name it.
        """
        if run_id is not None:
            check_run_id(run_id)
        return self._read(run_id)

    def _read(self, run_id: str | None) -> Iterator[AuditRecord | DamagedLine]:
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
            rows = self._attempt(page) or []
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
