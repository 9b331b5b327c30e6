"""What happens in a run, as an observer is told of it.

Imports `effects` and `audit`. An event is made of what was committed: it tells nothing that the
trail does not show, and of nothing that could still be undone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from .audit import AuditRecord
from .effects import Commit
from .values import JSON

__all__ = ["Event", "events_of"]


class Event(NamedTuple):
    """Something that happened in a run.

    Attributes
    ----------
    kind : str
        ``"run"`` (it started, or was resumed), ``"decision"`` (of the planner, or on its answer),
        ``"gate"`` (all passed, or one denied), ``"approval"`` (asked for, given, ignored),
        ``"call"`` (of a tool: started, finished, and what there is between), ``"commit"`` (all of
        before is saved) or ``"end"`` (of the run).
    name : str
        What it is: the event of the record in the trail, ``"passed"`` where all gates did, or
        ``"committed"``.
    run_id : str
        The run; that of one below where `delegate` has it do something.
    step : int or None
        Index of the step; None where it is about the run.
    time : float
        Wall-clock time of the record, in seconds since the epoch.
    data : dict
        A copy of the record's data, as the trail shows it. Of a commit: ``revision``, ``status``
        and ``records``, how many.

    Examples
    --------
    >>> from scikitplot.agent import Agent, Decision
    >>> agent = Agent([], lambda state, tools: Decision.finish(7))
    >>> [event.name for event in agent.stream("count")]
    ['run_started', 'committed', 'decision', 'answer', 'run_finished', 'committed']
    """

    kind: str
    name: str
    run_id: str
    step: int | None
    time: float
    data: dict[str, JSON]


_KINDS = {
    "run_started": "run",
    "resumed": "run",
    "decision": "decision",
    "answer": "decision",
    "denied": "gate",
    "approval_requested": "approval",
    "approval": "approval",
    "approval_ignored": "approval",
    "tool_started": "call",
    "tool_finished": "call",
    "reconciled": "call",
    "child_paused": "call",
    "child_finished": "call",
    "run_finished": "end",
}


def events_of(commit: Commit) -> Iterator[Event]:
    """Yield the events of a commit that was made."""
    time = 0.0
    for record in commit.records:
        time = record.time
        data = _copy(record)
        step: Any = data.get("step")
        if record.event == "tool_started":
            passed: dict[str, JSON] = {"step": step, "tool": data["tool"]}
            yield Event("gate", "passed", record.run_id, step, time, passed)
        yield Event(_KINDS[record.event], record.event, record.run_id, step, time, data)
    if commit.records:
        revision = 0 if commit.revision is None else commit.revision + 1
        told: dict[str, JSON] = {
            "records": len(commit.records),
            "revision": revision,
            "status": json.loads(commit.head)["status"],
        }
        yield Event("commit", "committed", commit.run_id, None, time, told)


def _copy(record: AuditRecord) -> dict[str, JSON]:
    data: dict[str, JSON] = json.loads(record.line)["data"]
    return data
