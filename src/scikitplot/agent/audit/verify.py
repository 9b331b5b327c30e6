"""Checking a trail.

`verify_audit` never raises on a damaged trail: whatever it is given, it says what is wrong with it,
in memory that grows with the number of runs and not of records.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

from ..values import JSON, type_name
from .base import check_key
from .record import (
    GENESIS,
    AuditRecord,
    DamagedLine,
    is_intact,
)

__all__ = ["AuditProblem", "verify_audit"]

_MAX_GAPS = 10_000


@dataclass(frozen=True, slots=True)
class AuditProblem:
    """One fault of a trail.

    Attributes
    ----------
    run_id : str or None
        The run, None where it cannot be told.
    seq : int or None
        Number of the record, None where it cannot be told.
    kind : str
        ``"changed"``, ``"missing"``, ``"reordered"``, ``"repeated"``, ``"foreign"``, ``"cut"``,
        ``"torn"``, ``"damaged"`` or ``"format"``.
    message : str
        What is wrong; it holds no value of the trail.

    Examples
    --------
    >>> from scikitplot.agent import AuditProblem
    >>> print(AuditProblem("ab" * 32, 3, "missing", "no record 3"))
    run abababababab, record 3: missing: no record 3
    """

    run_id: str | None
    seq: int | None
    kind: str
    message: str

    def to_dict(self) -> dict[str, JSON]:
        """Return the fault as JSON."""
        return asdict(self)

    def __str__(self) -> str:
        run = "unknown run" if self.run_id is None else f"run {self.run_id[:12]}"
        record = "" if self.seq is None else f", record {self.seq}"
        return f"{run}{record}: {self.kind}: {self.message}"


class _Chain:
    """What is known of one run while its records go by."""

    __slots__ = ("damaged", "gaps", "head_digest", "last", "prev")

    def __init__(self) -> None:
        self.last = -1
        self.prev: str | None = GENESIS  # None after a record that cannot be trusted
        self.gaps: set[int] = set()  # numbers that were skipped and may still come
        self.damaged: set[int] = set()  # numbers whose lines were there but are no records
        self.head_digest: str | None = None  # of the record that `heads` names


def verify_audit(
    records: Iterable[AuditRecord | DamagedLine],
    *,
    heads: Mapping[str, tuple[int, str]] | None = None,
    key: bytes | None = None,
) -> list[AuditProblem]:
    """Return what is wrong with a trail, an empty list when nothing is.

    Parameters
    ----------
    records : iterable of AuditRecord
        A whole trail, of one run or of many: ``agent.audit.records``, or what `read_audit` gives.
    heads : mapping of str to AuditHead, or None, default=None
        By run id, the last record as somebody else knows it, such as ``state.audit_head`` of a
        saved run: only so is a trail known to be cut after its last record.
    key : bytes or None, default=None
        The key that the trail was written with. Without one a chain shows accidents and careless
        changes: whoever can write the file can build all of it anew.

    Returns
    -------
    list of AuditProblem
        In the order of the trail.

    Raises
    ------
    TypeError
        If `records` is not iterable or `heads` is no mapping. A damaged trail never raises.

    Examples
    --------
    >>> from scikitplot.agent import Agent, Decision, verify_audit
    >>> agent = Agent([], lambda state, tools: Decision.finish(1))
    >>> records = (agent.run("one"), agent.audit.records)[1]
    >>> verify_audit(records)
    []
    >>> [(problem.seq, problem.kind) for problem in verify_audit(records[:1] + records[2:])]
    [(1, 'missing')]
    """
    if isinstance(records, (str, bytes)) or not isinstance(records, Iterable):
        raise TypeError(f"records must be an iterable of AuditRecord, not {type_name(records)}")
    if heads is not None and not isinstance(heads, Mapping):
        raise TypeError(f"heads must be a mapping or None, not {type_name(heads)}")
    check_key(key)
    for head in () if heads is None else heads.values():
        if not isinstance(head, (tuple, list)) or len(head) != 2:
            raise TypeError("heads must hold pairs of a record's number and digest")
    problems: list[AuditProblem] = []
    chains: dict[str, _Chain] = {}
    wanted = {} if heads is None else dict(heads)
    for position, record in enumerate(records):
        if isinstance(record, DamagedLine):
            message = f"line {record.number}: {record.message}"
            problems.append(AuditProblem(record.run_id, record.seq, record.kind, message))
            if record.run_id is not None and record.seq is not None:
                chains.setdefault(record.run_id, _Chain()).damaged.add(record.seq)
        elif isinstance(record, AuditRecord):
            chain = chains.setdefault(record.run_id, _Chain())
            if record.seq == wanted.get(record.run_id, (None, None))[0]:
                chain.head_digest = record.digest
            problems.extend(_check(record, chain, key))
        else:
            message = f"item {position} of the trail is no record but a {type_name(record)}"
            problems.append(AuditProblem(None, None, "damaged", message))
    for run_id, chain in chains.items():
        problems.extend(
            AuditProblem(run_id, seq, "missing", f"there is no record {seq}")
            for seq in sorted(chain.gaps - chain.damaged)
        )
    for run_id, (seq, digest) in wanted.items():
        known = chains.get(run_id)
        if known is None or known.last < seq:
            message = f"the trail ends before record {seq}, which the run's head names"
            problems.append(AuditProblem(run_id, seq, "cut", message))
        elif known.head_digest != digest:
            message = "another record than the one that the run's head names"
            problems.append(AuditProblem(run_id, seq, "foreign", message))
    return problems


def _check(record: AuditRecord, chain: _Chain, key: bytes | None) -> Iterable[AuditProblem]:
    seq = record.seq

    def problem(kind: str, message: str) -> AuditProblem:
        return AuditProblem(record.run_id, seq, kind, message)

    intact = is_intact(record, key)
    if not intact:
        yield problem("changed", "its digest is not that of its content")
    if seq <= chain.last:
        if seq in chain.gaps:
            chain.gaps.discard(seq)
            yield problem("reordered", "it stands after a later record")
        else:
            yield problem("repeated", "a record of this number stood before")
        return
    skipped = range(chain.last + 1, seq)
    if len(skipped) + len(chain.gaps) > _MAX_GAPS:
        yield problem("missing", f"records {skipped[0]} to {skipped[-1]} are not there")
    else:
        chain.gaps.update(skipped)
    if not skipped and chain.prev not in (None, record.prev):
        before = f"record {seq - 1}" if seq else "the start of a run"
        yield problem(
            "foreign", f"it does not follow {before}: one of the two was put in its place"
        )
    elif seq == 0 and record.event != "run_started":
        yield problem("foreign", "a run starts with run_started")
    chain.last, chain.prev = seq, record.digest if intact else None
