"""Runs and their trails in the tables of a database.

`Tables` holds what all databases share; `SqliteStore` and `SqlStore` open the connections. The rule
that holds here: a commit is one transaction. The records, the head and the new steps are there
together or not at all, and only if the revision and the trail's end are those that were expected.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ..approval import check_run_id, is_digest
from ..audit.base import check_head, check_key
from ..audit.record import AuditHead, AuditRecord, DamagedLine, is_intact, parse_line
from ..errors import AuditError, StateError
from .base import SavedRun, check_revision, status_of
from .pool import Pool

__all__ = ["Tables"]

PAGE = 500
"""Rows that are read at a time, so that no cursor stays open between two pages."""

_STATEMENTS = {
    "find": "select key, revision from agent_run where run_id = ?",
    "add": "insert into agent_run (run_id) values (?)",
    "save": "update agent_run set revision = ?, status = ?, head = ? where key = ?",
    "go on": "update agent_run set revision = ?, status = ?, head = ?"
    " where key = ? and revision = ?",
    "step": "insert into agent_step (run, number, body) values (?, ?, ?)",
    "record": "insert into agent_record (run, seq, body) values (?, ?, ?)",
    "load": "select key, head from agent_run where run_id = ? and head is not null",
    "steps": "select body from agent_step where run = ? order by number",
    "count": "select coalesce(max(number) + 1, 0) from agent_step where run = ?",
    "last": "select seq, substr(body, length(body) - 65) from agent_record where run = ?"
    " order by seq desc limit 1",
    "records": "select seq, body from agent_record where run = ? and seq > ?"
    f" order by seq limit {PAGE}",
    "runs": f"select key, run_id, status from agent_run where key > ? order by key limit {PAGE}",
    "one run": "select key, run_id, status from agent_run where run_id = ? and key > ?",
    "heads": "select key, run_id, head from agent_run where head is not null and key > ?"
    f" order by key limit {PAGE}",
    "forget run": "delete from agent_run where key = ?",
    "forget steps": "delete from agent_step where run = ?",
    "forget records": "delete from agent_record where run = ?",
}

_DAMAGED = "the last record of the run is damaged; verify_audit says how"

_NOWHERE = AuditHead(0, "")

MAX_SAVED = 1_000
"""Runs of which a store keeps in mind what it saved last."""


class _Saved(NamedTuple):
    """What a store saved of a run in its last commit.

    As long as the run's revision is the same, nobody saved another state, and the commit that
    replaces it needs to look at nothing. Records that a sink's `append` wrote meanwhile have the
    numbers that the commit's own would have, which the table refuses.
    """

    key: int
    revision: int
    steps: int  # how many there are
    trail: AuditHead | None


class Tables(Pool):
    """A store and a sink over connections of one kind; a dialect overrides what it differs in."""

    _mark = "?"
    _for_update = ""

    def __init__(self, key: bytes | None) -> None:
        super().__init__()
        self.key = check_key(key)
        self._saved: dict[str, _Saved] = {}
        self._sql = {name: text.replace("?", self._mark) for name, text in _STATEMENTS.items()}
        self._sql["hold"] = self._sql["find"] + self._for_update

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
        if run_id not in self._saved:
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
            row = 0 if expected is None else expected + 1, status_of(head), head
            saved = self._saved.pop(run_id, None)
            if saved is not None and saved.revision == expected:
                cursor.execute(sql["go on"], (*row, saved.key, expected))
                saved = saved if cursor.rowcount == 1 else None
            else:
                saved = None
            if saved is None:
                saved = self._look_up(cursor, run_id, expected)
                cursor.execute(sql["save"], (*row, saved.key))
            key, count, trail = saved.key, saved.steps, saved.trail
            if records:
                trail = self._insert(cursor, key, records, trail, audit_head)
            if steps:
                rows = [(key, number, body) for number, body in enumerate(steps, count)]
                cursor.executemany(sql["step"], rows)
        if len(self._saved) >= MAX_SAVED:
            self._saved.clear()
        self._saved[run_id] = _Saved(key, row[0], count + len(steps), trail)

    def _look_up(self, cursor: Any, run_id: str, expected: int | None) -> _Saved:
        """Return what there is of a run, locked, and added if it is not there."""
        key, held = self._find(cursor, run_id)
        check_revision(run_id, held, expected)
        cursor.execute(self._sql["count"], (key,))
        return _Saved(key, -1, cursor.fetchone()[0], self._last(cursor, key))

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
            for _, run_id, held in self._pages("runs")
            if held is not None and status in (None, held)
        ]

    def heads(self) -> dict[str, AuditHead]:
        """Return the last record of each run as its saved head names it, for `verify_audit`.

        Of a run whose saved head is damaged it is one that no trail holds, so that `verify_audit`
        names this run.
        """
        return {run_id: _named_in(head) for _, run_id, head in self._pages("heads")}

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
        run_id = records[-1].run_id

        def write() -> None:
            with self._transaction(writes=True) as cursor:
                key, _ = self._find(cursor, run_id)
                self._insert(cursor, key, records, self._last(cursor, key), expected)

        self._attempt(write)

    def _insert(
        self,
        cursor: Any,
        key: int,
        records: Sequence[AuditRecord],
        held: AuditHead | None,
        expected: AuditHead | None,
    ) -> AuditHead:
        last = records[-1]
        if held != expected:
            check_head(last.run_id, held, expected)
        rows = [(key, record.seq, record.line) for record in records]
        cursor.executemany(self._sql["record"], rows)
        return AuditHead(last.seq, last.digest)

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
        for key, held, _ in self._pages("runs" if run_id is None else "one run", run_id):
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


def _named_in(head: Any) -> AuditHead:
    try:
        seq, own = json.loads(head)["audit_head"]
    except (KeyError, RecursionError, TypeError, ValueError):
        return _NOWHERE
    return AuditHead(seq, own) if type(seq) is int and is_digest(own) else _NOWHERE


def _read_row(run_id: str, seq: int, body: object) -> AuditRecord | DamagedLine:
    try:
        record = parse_line(body.encode()) if isinstance(body, str) else None
    except ValueError as error:
        return DamagedLine(seq + 1, "damaged", f"no record: {error}", run_id, seq)
    if record is None or (record.run_id, record.seq) != (run_id, seq):
        return DamagedLine(seq + 1, "damaged", "the record of another place", run_id, seq)
    return record
