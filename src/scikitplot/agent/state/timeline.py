"""What a run is shown as: each step, what the gates said of it and what came of it.

Imports `step` and what stands below the state. Rules that hold here:

* what the trail tells, who was asked among it, is shown where the trail is there, and not guessed
  where it is not;
* what of a value is not shown is counted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from ..answers import CLAIMED
from ..audit import AuditRecord, DamagedLine
from ..decision import Decision
from ..errors import StateError
from ..values import add_exactly, exact
from ..views import Fact, StepRow, Timeline
from ..views.visible import is_name
from .step import Step, StepOutcome, read_decision

__all__ = ["GATE_OF", "timeline_of"]

_GATES = ("validation", "permissions", "scope", "budget", "approval")
GATE_OF = {
    "unknown_tool": "validation",
    "invalid_arguments": "validation",
    "tool_denied": "permissions",
    "effect_denied": "permissions",
    "arguments_denied": "permissions",
    "scope_denied": "scope",
    "max_tool_calls": "budget",
    "max_cost": "budget",
    "max_tokens": "budget",
    "max_steps": "budget",
    "max_seconds": "budget",
    "max_repeats": "budget",
    "max_depth": "budget",
    "approval_denied": "approval",
    "approval_expired": "approval",
    "approval_stale": "approval",
}
"""The gate that denies with a code."""

_JUDGED = ("denied", "tool_started", "approval_requested")


def timeline_of(
    state: Any,
    records: Iterable[AuditRecord | DamagedLine] | None,
    since: int,
    most: int | None,
) -> Timeline:
    """Return what is shown of a run.

    Parameters
    ----------
    state : RunState
        The run.
    records : iterable of AuditRecord, or None
        Its whole trail; records of other runs are passed over.
    since : int
        Index of the first step to show.
    most : int or None
        How many steps to show, the last ones.
    """
    told: dict[str, list[AuditRecord]] = defaultdict(list)
    for record in records or ():
        if isinstance(record, AuditRecord) and record.run_id == state.run_id:
            told[repr(record.data.get("step"))].append(record)
    count = len(state.steps)
    start = since if most is None else max(since, count - most)
    rows = [
        _row(step.index, step.decision, None if records is None else told[str(step.index)], step)
        for step in state.steps[start:]
    ]
    if str(count) in told:
        rows.append(_row(count, _proposed(told[str(count)]), told[str(count)], None))
    elif records is None and (state.pending or state.in_flight):
        rows.append(_open_row(count, state))
    usage = state.usage
    return Timeline(
        state.run_id,
        state.goal,
        state.status.value,
        state.stop_reason,
        state.error,
        (
            _count(usage.decisions, "decision"),
            _count(usage.tool_calls, "call"),
            f"cost {usage.cost}",
            _count(usage.tokens, "token"),
        ),
        usage.seconds,
        rows,
        start - since,
    )


def _row(
    index: int, decision: Decision | None, records: Sequence[AuditRecord] | None, step: Step | None
) -> StepRow:
    ends = []
    if step is not None and step.error is not None:
        ends.append(Fact("error", step.error, 30))
    if step is not None and step.result is not None:
        ends.append(Fact("result", step.result, 3))
    gates: Sequence[tuple[str, str]] = ()
    not_reached: Sequence[str] = ()
    gates_told = ""
    if decision is not None and decision.kind == "act":
        if records is None:
            gates, not_reached = _gates_by_code(step)
        else:
            gates, not_reached = _gates_by_trail(records)
        gates_told = "" if gates else "what the gates said is not in the trail"
    facts, cost = _facts(records or (), decision)
    return StepRow(
        index,
        None if decision is None else _shown(decision),
        "" if decision is None else decision.reason,
        gates,
        not_reached,
        gates_told,
        facts,
        None if step is None else step.outcome.value,
        None if step is None else step.code,
        0 if step is None else step.attempts,
        cost if records is not None or (step is not None and not step.attempts) else None,
        0.0 if step is None else step.started,
        0.0 if step is None else step.seconds,
        ends,
    )


def _open_row(index: int, state: Any) -> StepRow:
    """Return the row of a step that has not ended, as far as the state alone tells it."""
    asked, call = state.pending, state.in_flight
    if asked is None:
        decision = Decision.act(call.tool, call.arguments)
        told: list[Fact | str] = ["it was started, and has no outcome yet"]
        return _row(index, decision, None, None)._replace(facts=told)
    facts: list[Fact | str] = [Fact("asked because", "; ".join(asked.reasons), 4)]
    if asked.run_id != state.run_id:
        facts.insert(0, f"a run that it delegated to waits: {asked.run_id[:12]}")
    row = _row(index, Decision.act(asked.tool, asked.arguments), None, None)
    gates = [(gate.capitalize(), "ok") for gate in _GATES[:-1]]
    waits = [*gates, (_GATES[-1].capitalize(), "waits")]
    return row._replace(gates=waits, not_reached=(), gates_told="", facts=facts)


def _shown(decision: Decision) -> Fact:
    if decision.kind == "finish":
        return Fact("answer", decision.answer, 12)
    if is_name(decision.tool):
        return Fact(f"call {decision.tool}", decision.arguments, 2)
    return Fact("call", [decision.tool, decision.arguments], 4)


def _facts(
    records: Sequence[AuditRecord], decision: Decision | None
) -> tuple[list[Fact | str], float]:
    """Return who was asked of a step and what they said, and what its decision and starts cost."""
    facts: list[Fact | str] = []
    usage = None if decision is None else decision.usage
    cost = exact(0.0 if usage is None else usage.cost)
    for record in records:
        data = record.data
        if record.event == "approval_requested":
            reasons = data.get("reasons")
            told = "; ".join(map(str, reasons)) if type(reasons) is list else ""
            facts.append(Fact("asked because", told, 4))
        elif record.event == "approval_ignored":
            if data.get("approver") is not None:
                facts.append(Fact("answer of", data["approver"], 1))
            facts.append(Fact("answer ignored", data.get("error"), 2))
        elif record.event == "approval":
            said = "granted" if data.get("granted") is True else "refused"
            facts.append(Fact(f"{said} by", data.get("approver"), 1))
            if data.get("identity") == CLAIMED:
                facts.append("nothing proves that name")
        elif record.event == "reconciled":
            facts.append("it was cut off; reconcile was asked what became of it")
        elif record.event == "tool_started" and type(data.get("cost")) is float:
            cost = add_exactly(cost, exact(data["cost"]))
    return facts, float(cost)


def _proposed(records: Sequence[AuditRecord]) -> Decision | None:
    try:
        return read_decision(records[0].data.get("decision"))
    except StateError:
        return None


def _gates_by_trail(
    records: Sequence[AuditRecord],
) -> tuple[list[tuple[str, str]], Sequence[str]]:
    """Return what each gate said when the call was judged last, and those not reached."""
    last = next((record for record in reversed(records) if record.event in _JUDGED), None)
    if last is None:
        return [], ()
    if last.event == "denied":
        gate = last.data.get("gate")
        return _gates(gate if gate in _GATES else _GATES[0], "denied")
    if last.event == "approval_requested":
        return _gates(_GATES[-1], "waits")
    asked = any(record.event == "approval" for record in records)
    return _gates(_GATES[-1], "granted" if asked else "not needed")


def _gates_by_code(step: Step | None) -> tuple[list[tuple[str, str]], Sequence[str]]:
    """Return the same as far as the code of a finished step tells it."""
    if step is not None and step.outcome is StepOutcome.DENIED and step.code in GATE_OF:
        return _gates(GATE_OF[step.code], "denied")
    return _gates(_GATES[-1], "ok")


def _gates(last: str, word: str) -> tuple[list[tuple[str, str]], Sequence[str]]:
    names = [name.capitalize() for name in _GATES]
    passed = _GATES.index(last)
    said = [*((name, "ok") for name in names[:passed]), (names[passed], word)]
    return said, names[passed + 1 :]


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
