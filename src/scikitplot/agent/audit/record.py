"""One record of a trail, and its line.

A record is either made from its parts or from its line. The other of the two is derived when it is
asked for, so that writing a record parses nothing and reading one re-encodes nothing.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, field
from hashlib import sha256
from hmac import compare_digest
from typing import Any, NamedTuple

from ..approval import is_digest
from ..values import JSON, MAX_NESTING, admit, digest, type_name

__all__ = [
    "DIGEST_TAIL",
    "GENESIS",
    "MAX_LINE",
    "AuditHead",
    "AuditRecord",
    "DamagedLine",
    "is_intact",
    "parse_line",
    "seal",
]

GENESIS = "0" * 64
"""What stands in ``prev`` of a run's first record, and nowhere else."""

MAX_LINE = 16_000_000
"""Bytes of one line; a longer one is no record."""

_EVENT = re.compile(r"[a-z_]{1,40}", re.ASCII)
_FIELDS = ("run_id", "seq", "event", "data", "time", "prev", "digest")
DIGEST_TAIL = len(',"digest":""}') + 64
"""Bytes of a line that its digest does not cover."""


class AuditHead(NamedTuple):
    """The last record of a run: its number and its digest."""

    seq: int
    digest: str


@dataclass(frozen=True, slots=True)
class AuditRecord:
    """One record of a run's trail.

    Parameters
    ----------
    run_id : str
        The run, 64 hexadecimal digits.
    seq : int
        Number of the record in its run, from 0.
    event : str
        What happened, such as ``"decision"`` or ``"tool_started"``.
    data : dict
        What is told of it, JSON.
    time : float
        Wall-clock time, in seconds since the epoch.
    prev : str
        Digest of the run's record before, 64 zeros in the first.
    digest : str
        SHA-256 of the record's line up to the digest, or its HMAC where the trail has a key.

    Raises
    ------
    TypeError, ValueError
        If a field is of the wrong type or value. Whether the digest is right is not asked here but
        by `verify_audit`.

    Examples
    --------
    >>> from scikitplot.agent import Agent, Decision
    >>> agent = Agent([], lambda state, tools: Decision.finish(None))
    >>> state = agent.run("nothing")
    >>> [record.event for record in agent.audit.records]
    ['run_started', 'decision', 'answer', 'run_finished']
    """

    run_id: str
    seq: int
    event: str
    data: dict[str, JSON]
    time: float
    prev: str
    digest: str
    line: str = field(init=False, repr=False, compare=False)
    """The canonical line, without its line end."""

    def __post_init__(self) -> None:
        for name in ("run_id", "prev", "digest"):
            if not is_digest(getattr(self, name)):
                raise ValueError(f"{name} must be 64 lower-case hexadecimal digits")
        if type(self.seq) is not int:
            raise TypeError(f"seq must be an int, not {type_name(self.seq)}")
        if not 0 <= self.seq < 2**63:
            raise ValueError("seq must be at least 0 and less than 2**63")
        if type(self.event) is not str:
            raise TypeError(f"event must be a str, not {type_name(self.event)}")
        if not _EVENT.fullmatch(self.event):
            raise ValueError("event must be 1 to 40 lower-case letters and underscores")
        if type(self.data) is not dict:
            raise TypeError(f"data must be a dict, not {type_name(self.data)}")
        if type(self.time) not in (int, float):
            raise TypeError(f"time must be a float, not {type_name(self.time)}")
        if not math.isfinite(self.time):
            raise ValueError("time must be finite")
        object.__setattr__(self, "time", float(self.time))

    def __getattr__(self, name: str) -> Any:
        # Reached only where a slot is empty: `data` of a record made from its line, or `line` of
        # one made from its parts.
        if name == "data":
            value: Any = json.loads(self.line)["data"]
        elif name == "line":
            value = f'{self.body()[:-1]},"digest":"{self.digest}"}}'
        else:
            raise AttributeError(name)
        object.__setattr__(self, name, value)
        return value

    def body(self) -> str:
        """Return the canonical text over which the digest is taken, made from the fields."""
        data = admit(self.data, MAX_LINE, max_depth=MAX_NESTING)[1]
        return _body(self.run_id, self.seq, self.event, data, self.time, self.prev)

    def to_dict(self) -> dict[str, JSON]:
        """Return the record as JSON."""
        return {name: getattr(self, name) for name in _FIELDS}


class DamagedLine(NamedTuple):
    """A line of a trail that is no record.

    Attributes
    ----------
    number : int
        Number of the line in its file, from 1.
    kind : str
        ``"torn"`` for what a crash in the middle of a write leaves, ``"format"`` for a file that
        something else rewrote, ``"damaged"`` otherwise.
    message : str
        What is wrong. It holds nothing of the line.
    run_id, seq : str or None, int or None
        The run and the record's number, where they can still be read.
    """

    number: int
    kind: str
    message: str
    run_id: str | None = None
    seq: int | None = None


def _body(run_id: str, seq: int, event: str, data: str, time: float, prev: str) -> str:
    return (
        f'{{"data":{data},"event":"{event}","prev":"{prev}",'
        f'"run_id":"{run_id}","seq":{seq},"time":{time!r}}}'
    )


# What a frozen record's slots are filled by; by `object.__setattr__` it takes twice as long.
_put_run_id, _put_seq, _put_event, _put_time, _put_prev, _put_digest, _put_line = (
    getattr(AuditRecord, name).__set__
    for name in ("run_id", "seq", "event", "time", "prev", "digest", "line")
)


def _bare(
    run_id: str, seq: int, event: str, time: float, prev: str, own: str, line: str
) -> AuditRecord:
    record = object.__new__(AuditRecord)
    _put_run_id(record, run_id)
    _put_seq(record, seq)
    _put_event(record, event)
    _put_time(record, time)
    _put_prev(record, prev)
    _put_digest(record, own)
    _put_line(record, line)
    return record


def seal(
    run_id: str,
    seq: int,
    event: str,
    data: str,
    time: float,
    prev: str,
    key: bytes | None = None,
) -> AuditRecord:
    """Return the record with this data (canonical text), chained to the digest `prev`."""
    body = _body(run_id, seq, event, data, time, prev)
    own = sha256(body.encode()).hexdigest() if key is None else digest(body, key)
    return _bare(run_id, seq, event, time, prev, own, f'{body[:-1]},"digest":"{own}"}}')


def parse_line(line: bytes) -> AuditRecord:
    """Return the record of a line, which keeps the line as it is.

    Raises
    ------
    ValueError
        If the line is no record. Whether its digest is right is not asked here.
    """
    if len(line) > MAX_LINE:
        raise ValueError(f"more than {MAX_LINE} bytes")
    try:
        text = line.decode()
        fields = json.loads(text)
    except UnicodeDecodeError:
        raise ValueError("no UTF-8") from None
    except (ValueError, RecursionError):
        raise ValueError("no JSON") from None
    if type(fields) is not dict or fields.keys() != set(_FIELDS):
        raise ValueError("its fields are not those of a record")
    try:
        record = AuditRecord(**fields)
    except (TypeError, ValueError) as error:
        raise ValueError(f"its field {error}") from None
    # Two readers of one line must see one record: no name twice, no NaN, no other way to write it.
    if record.line != text:
        raise ValueError("it is not written as a record is")
    # Only the line is kept, so that a long trail in memory is not held twice.
    return _bare(
        record.run_id, record.seq, record.event, record.time, record.prev, record.digest, text
    )


def is_intact(record: AuditRecord, key: bytes | None = None) -> bool:
    """Return whether the record's digest is that of its line, and of its data where that was read.

    A record in memory holds both, and its data is a dict that somebody may have changed.
    """
    if not compare_digest(digest(record.line[:-DIGEST_TAIL] + "}", key), record.digest):
        return False
    try:
        _data.__get__(record)
    except AttributeError:
        return True
    try:
        return compare_digest(digest(record.body(), key), record.digest)
    except ValueError:
        return False


_data = AuditRecord.__dict__["data"]
