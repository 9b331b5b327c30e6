"""A run in one file: the state, the trail and the heads, of it and of those it delegated to.

Imports `audit`, `children`, `state` and what stands below them. Rules that hold here:

* a record stands in the file as the line that its digest covers, so any program can check it;
* what a file says is judged before it is believed: its size, its form, each state, each record, and
  that the three tell the same.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from .approval import is_digest
from .audit import AuditProblem, AuditRecord, DamagedLine, verify_audit
from .audit.record import parse_line
from .children import MAX_DEPTH, child_run
from .errors import StateError
from .state import RunState
from .state.head import check_steps, read_head
from .values import JSON, type_name

__all__ = ["Export", "export_run", "is_export", "read_export"]

_FORMAT = "scikitplot.agent run"
_VERSION = 1
_MAX_FILE = 500_000_000  # bytes
_START = re.compile(rb'\s*\{\s*"format"\s*:\s*"scikitplot\.agent run"')

Line = AuditRecord | DamagedLine


class Export(NamedTuple):
    """What a file holds of a run, and what is wrong with it."""

    states: list[RunState]
    records: int
    problems: list[AuditProblem]


def export_run(
    store: Any, run_id: str, read: Callable[[str], Iterable[Line]], write: Callable[[str], object]
) -> None:
    """Write one JSON object that verifies on its own.

    Parameters
    ----------
    store : StateStore
        Where the run is.
    run_id : str
        The run.
    read : callable
        ``read(run_id)`` gives the run's records.
    write : callable
        Takes the text, piece by piece.

    Raises
    ------
    StateError
        If the store does not hold the run, it is damaged, or a line of its trail is no record.
    """
    family = list(_family(store, run_id, 0))
    heads = {state.run_id: list(state.audit_head) for state in family}
    about = {"format": _FORMAT, "heads": heads, "run_id": run_id, "version": _VERSION}
    write(json.dumps(about)[:-1] + ', "runs": [')
    for index, state in enumerate(family):
        write(f'{"," if index else ""}\n{{"state": {json.dumps(state.to_dict())}, "trail": [')
        for number, line in enumerate(read(state.run_id)):
            if isinstance(line, DamagedLine):
                told = f"run {state.run_id[:12]}: its trail is damaged; verify says how"
                raise StateError(told)
            write(f"{',' if number else ''}\n{json.dumps(line.line)}")
        write("]}")
    write("]}\n")


def _family(store: Any, run_id: str, depth: int) -> Iterator[RunState]:
    """Yield a run and those that it delegated to."""
    saved = store.load(run_id)
    if saved is None:
        if depth == 0:
            raise StateError(f"run {run_id[:12]}: the store does not hold it")
        return
    check_steps(read_head(saved[0]), len(saved[1]))
    yield RunState.view(saved[0], list(saved[1]))
    if depth < MAX_DEPTH:
        for step in range(len(saved[1]) + 1):
            yield from _family(store, child_run(run_id, step), depth + 1)


def is_export(path: str | os.PathLike[str]) -> bool:
    """Return whether a file says that it is one of `export_run`."""
    with open(path, "rb") as file:
        return _START.match(file.read(200)) is not None


def read_export(path: str | os.PathLike[str], key: bytes | None = None) -> Export:
    """Return what a file of `export_run` holds.

    Parameters
    ----------
    path : str or path-like
        The file, of at most 500,000,000 bytes.
    key : bytes or None, default=None
        The key that the trail was sealed with.

    Raises
    ------
    OSError
        If it cannot be read.
    ValueError
        If it is no such file, or one of a newer version.
    """
    if os.stat(path).st_size > _MAX_FILE:
        raise ValueError(f"it has more than {_MAX_FILE:,} bytes")
    with open(path, "rb") as file:
        try:
            saved = json.loads(file.read(_MAX_FILE).decode())
        except (ValueError, RecursionError):
            raise ValueError("it is no JSON") from None
    runs = _checked(saved)
    states: list[RunState] = []
    problems: list[AuditProblem] = []
    lines: list[Line] = []
    for run in runs:
        own = [_line(number, text) for number, text in enumerate(run["trail"], 1)]
        lines += own
        try:
            state = RunState.from_dict(run["state"])
            told = _disagreement(state, own)
        except StateError as error:
            problems.append(AuditProblem(None, None, "damaged", str(error)))
            continue
        states.append(state)
        if told is not None:
            problems.append(AuditProblem(state.run_id, None, "changed", told))
    heads = {state.run_id: state.audit_head for state in states}
    known = {run_id: tuple(head) for run_id, head in saved["heads"].items()}
    if len(heads) != len(states) or (not problems and known != heads):
        told = "the states and the heads of the file are not of the same runs and records"
        problems.append(AuditProblem(saved["run_id"], None, "changed", told))
    records = sum(isinstance(line, AuditRecord) for line in lines)
    return Export(states, records, [*problems, *verify_audit(lines, heads=known, key=key)])


def _checked(saved: Any) -> list[dict[str, Any]]:
    """Return the runs of a file of which the form was checked; raise `ValueError`."""
    if type(saved) is not dict or saved.get("format") != _FORMAT:
        raise ValueError("it is no exported run")
    version = saved.get("version")
    if type(version) is int and version > _VERSION:
        raise ValueError(f"its version is {version}, newer than {_VERSION}; upgrade the package")
    names = {"format", "heads", "run_id", "runs", "version"}
    if saved.keys() != names or type(version) is not int or version != _VERSION:
        raise ValueError("its fields are not those of an exported run")
    heads, runs = saved["heads"], saved["runs"]
    if type(heads) is not dict or not all(map(_is_head, heads.items())):
        raise ValueError("heads must hold the number and the digest of a record by run id")
    if not is_digest(saved["run_id"]) or saved["run_id"] not in heads:
        raise ValueError("run_id must be one of the heads")
    if type(runs) is not list:
        raise ValueError(f"runs must be a list, not {type_name(runs)}")
    for run in runs:
        if type(run) is not dict or run.keys() != {"state", "trail"}:
            raise ValueError("a run must have a state and a trail")
        if type(run["trail"]) is not list or not all(type(line) is str for line in run["trail"]):
            raise ValueError("a trail must be a list of lines")
    return runs


def _is_head(item: tuple[str, JSON]) -> bool:
    run_id, head = item
    is_pair = type(head) is list and len(head) == 2
    return is_digest(run_id) and is_pair and type(head[0]) is int and is_digest(head[1])


def _line(number: int, text: str) -> Line:
    try:
        return parse_line(text.encode("utf-8", "surrogatepass"))
    except ValueError as error:
        return DamagedLine(number, "damaged", str(error))


def _disagreement(state: RunState, lines: Iterable[Line]) -> str | None:
    """Return how a state tells another story than the trail that it comes with."""
    records = [line for line in lines if isinstance(line, AuditRecord)]
    if any(record.run_id != state.run_id for record in records):
        return "its trail holds records of another run"
    if read_head(state.parts()[0]).salt is not None:
        return None  # the records show digests of what the state holds
    told: dict[Any, tuple[JSON, ...]] = {}
    proposed: dict[Any, JSON] = {}
    for record in records:
        data = record.data
        if record.event == "decision":
            proposed[data.get("step")] = data.get("decision")
        elif record.event == "tool_finished":
            names = ("outcome", "code", "error", "result")
            told[data.get("step")] = tuple(data.get(name) for name in names)
    for step in state.steps:
        saved = json.loads(step.to_json())
        if proposed.get(step.index) != saved["decision"]:
            return f"step {step.index} has another decision than its record"
        ends = (step.outcome.value, step.code, step.error, step.result)
        if step.index in told and told[step.index] != ends:
            return f"step {step.index} has another outcome than its record"
    return None
