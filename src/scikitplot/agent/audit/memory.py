"""A trail kept in this process."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import NoReturn

from ..approval import check_run_id
from ..views import Shown, View
from .base import check_head, check_key
from .record import AuditHead, AuditRecord
from .shown import trail_of

__all__ = ["MemoryAuditSink"]


class MemoryAuditSink(Shown):
    """A trail in memory, safe for threads; it lives as long as the process.

    Parameters
    ----------
    key : bytes or None, default=None
        Seals the records: each digest is then an HMAC, which nobody can make without the key.

    Raises
    ------
    TypeError, ValueError
        If the key is no bytes, or has fewer than 16.

    Examples
    --------
    >>> from scikitplot.agent import Agent, Decision, MemoryAuditSink, verify_audit
    >>> trail = MemoryAuditSink()
    >>> state = Agent([], lambda state, tools: Decision.finish(1), audit=trail).run("one")
    >>> trail.head(state.run_id) == state.audit_head, verify_audit(trail.records)
    (True, [])
    >>> trail
    MemoryAuditSink(4 records, 1 run)
    """

    def __init__(self, *, key: bytes | None = None) -> None:
        self.key = check_key(key)
        self._records: list[AuditRecord] = []
        self._last: dict[str, AuditRecord] = {}
        self._lock = threading.Lock()

    @property
    def records(self) -> list[AuditRecord]:
        """All records, in the order of writing, in a new list."""
        with self._lock:
            return self._records.copy()

    def append(self, records: Sequence[AuditRecord], *, expected: AuditHead | None) -> None:
        """Keep records of one run; see `AuditSink.append`."""
        last = records[-1]
        with self._lock:
            held = self._last.get(last.run_id)
            if (None if held is None else (held.seq, held.digest)) != expected:
                check_head(last.run_id, _head(held), expected)
            self._records.extend(records)
            self._last[last.run_id] = last

    def head(self, run_id: str) -> AuditHead | None:
        """Return the last record of a run, None if there is none."""
        check_run_id(run_id)
        return _head(self._last.get(run_id))

    def read(self, run_id: str | None = None) -> list[AuditRecord]:
        """Return the records of one run, or of all."""
        if run_id is not None:
            check_run_id(run_id)
        return [record for record in self.records if run_id is None or record.run_id == run_id]

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a MemoryAuditSink is neither copied nor pickled, since it is in the memory of one "
            "process; a JsonlAuditSink or a SqliteStore is shared by processes"
        )

    def _view(self) -> View:
        return trail_of(repr(self), self._records)

    def __repr__(self) -> str:
        records, runs = len(self._records), len(self._last)
        return f"MemoryAuditSink({records} records, {runs} run{'' if runs == 1 else 's'})"


def _head(last: AuditRecord | None) -> AuditHead | None:
    return None if last is None else AuditHead(last.seq, last.digest)
