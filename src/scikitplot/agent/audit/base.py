"""The protocol of a sink."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from ..errors import StateError
from ..values import type_name
from .record import AuditHead, AuditRecord

__all__ = ["AuditSink", "check_head", "check_key", "refuse_to_pickle"]


class AuditSink(Protocol):
    """What `Agent` needs of an ``audit=``.

    A sink may have an attribute ``key``: bytes that seal what is written to it.
    """

    def append(self, records: Sequence[AuditRecord], *, expected: AuditHead | None) -> None:
        """Write records of one run, all or nothing.

        Parameters
        ----------
        records : sequence of AuditRecord
            One or more, already chained; ``record.line`` is what to write.
        expected : AuditHead or None
            The run's last record, as the caller knows it; None where the run has none.

        Raises
        ------
        StateError
            If the run's last record is another one. Nothing is written then.
        AuditError
            If the trail cannot be written.
        """

    def head(self, run_id: str) -> AuditHead | None:
        """Return the last record of a run, None if the sink knows none."""

    def read(self, run_id: str | None = None) -> Iterable[AuditRecord]:
        """Return the records of one run in order, or of all runs in the order of writing."""


def check_key(key: object) -> bytes | None:
    """Return a key that may seal a trail, or raise an error that does not show it."""
    if key is None:
        return None
    if not isinstance(key, bytes):
        raise TypeError(f"key must be bytes or None, not {type_name(key)}")
    if len(key) < 16:
        raise ValueError("key must have at least 16 bytes; secrets.token_bytes(32) makes one")
    return key


def refuse_to_pickle(sink: object, key: bytes | None) -> None:
    """Raise `TypeError` where a pickle would carry a key."""
    if key is not None:
        raise TypeError(
            f"a {type_name(sink)} with a key cannot be pickled, the key would be in the pickle; "
            "pass a function that makes it"
        )


def check_head(run_id: str, held: AuditHead | None, expected: AuditHead | None) -> None:
    """Raise `StateError` unless the head that is held is the one that is expected."""
    if held != expected:
        ends, wanted = (None if head is None else head.seq for head in (held, expected))
        raise StateError(
            f"run {run_id[:12]}: the trail ends at record {ends}, not {wanted}; "
            "another process went on with it"
        )
