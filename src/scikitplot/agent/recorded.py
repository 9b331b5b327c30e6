"""A recorded run as a replay judges it: its steps, and what its trail tells of each.

Imports `replayed` and what stands below `ledger`. Rules that hold here:

* what a trail tells is checked where it is read; what is wrong in it is a `StateError`;
* what only a trail can tell is not known without one, and never guessed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias, TypeGuard

from .account import Spent
from .answers import Answer
from .approval import ApprovalRequest
from .audit import AuditHead, AuditRecord, AuditSink, DamagedLine
from .children import MAX_DEPTH, Delegation
from .decision import Decision
from .errors import StateError
from .limits import Limits
from .replayed import ReplayVerdict
from .state import Step, StepOutcome
from .state.head import Head, read_answer, read_head, read_usage
from .state.marks import NO_MARKS, Marks
from .toolset import Toolset
from .values import JSON, check_amount, exact, type_name

__all__ = [
    "Called",
    "Trail",
    "called_in",
    "check_trail",
    "delegations_above",
    "is_sink",
    "read_trail",
    "verdict_of",
]

Records: TypeAlias = "Iterable[AuditRecord | DamagedLine]"
Trail: TypeAlias = "AuditSink | Records"


class Told:
    """What the trail tells of a step."""

    __slots__ = (
        "answers",
        "asked_at",
        "child",
        "child_marks",
        "costs",
        "denied_at",
        "gate",
        "history",
        "judged_by",
    )

    def __init__(self, limits: Limits | None, history: str) -> None:
        self.judged_by = limits  # the last time
        self.history = history
        self.asked_at: float | None = None  # wall-clock time
        self.answers: list[Answer] = []  # to the last request
        self.denied_at: float | None = None
        self.gate: str | None = None  # that denied
        self.costs: list[Decimal] = []  # of each start
        self.child: Spent | None = None  # by the run that it delegated to
        self.child_marks = NO_MARKS  # of that run


@dataclass(frozen=True, slots=True)
class Called:
    """A recorded step: a finished one, or the one that the run works on."""

    index: int
    decision: Decision
    started: float
    attempts: int
    outcome: StepOutcome | None  # None while it is open
    code: str | None
    request: ApprovalRequest | None  # that waits for a person
    answers: Sequence[Answer] | None  # None where they are not known
    asked_at: float | None
    told: Told | None
    text: str | None  # as it is saved, if it is finished


def called_in(head: Head, texts: Iterable[str], told: dict[int, Told]) -> Iterator[Called]:
    """Yield the steps of a saved run, with what its trail tells of them."""
    for index, text in enumerate(texts):
        step = Step.from_json(text)
        if step.index != index:
            raise StateError(f"saved state: step {index} has the index of another")
        known = told.get(step.index)
        yield Called(
            step.index,
            step.decision,
            step.started,
            step.attempts,
            step.outcome,
            step.code,
            None,
            None if known is None else known.answers,
            None if known is None else known.asked_at,
            known,
            text,
        )
    if head.open is not None:
        saved = head.open
        known = told.get(saved.step)
        request = saved.request
        if request is not None and request.run_id != head.run_id:
            request = None  # of the run that it delegates to
        asked_at = None if known is None else known.asked_at
        yield Called(
            saved.step,
            saved.decision,
            saved.started,
            saved.attempt,
            None,
            None,
            request,
            saved.answers,
            asked_at if request is None else request.requested_at,
            known,
            None,
        )


def delegations_above(head: Head, tools: Toolset, store: Any) -> list[Delegation]:
    """Return what delegated to a run, the topmost first; nothing where that is not known.

    Parameters
    ----------
    head : Head
        The run.
    tools : Toolset
        Those of the topmost run.
    store : StateStore or None
        Where the runs above it are.
    """
    names: list[str] = []
    above = head.parent
    while above is not None and store is not None and len(names) < MAX_DEPTH:
        saved = store.load(above[0])
        if saved is None:
            return []
        names.append(_called_at(read_head(saved.head), saved.steps, above[1]))
        above = read_head(saved.head).parent
    found: list[Delegation] = []
    for name in reversed(names):
        tool = tools.get(name)
        if not isinstance(tool, Delegation):
            return []
        found.append(tool)
        tools = tool.agent.tools
    return found


def _called_at(head: Head, texts: Sequence[str], index: int) -> str:
    """Return the name of the tool that a step of a saved run called."""
    if index < len(texts):
        return Step.from_json(texts[index]).decision.tool or ""
    return "" if head.open is None else head.open.decision.tool or ""


def verdict_of(called: Called) -> ReplayVerdict:
    """Return what was said of a recorded call."""
    if called.outcome is StepOutcome.DENIED:
        gate = None if called.told is None else called.told.gate
        return ReplayVerdict("denied", gate, called.code)
    if called.request is not None:
        return ReplayVerdict("asks", told="; ".join(called.request.reasons))
    if called.answers is None:
        return ReplayVerdict("passed")
    return ReplayVerdict("granted" if called.answers else "allowed")


def is_sink(trail: object) -> TypeGuard[AuditSink]:
    """Return whether a trail can be read from this."""
    return all(callable(getattr(trail, name, None)) for name in ("append", "head", "read"))


def check_trail(trail: object, run_id: str | None) -> Any:
    """Return a trail that can be read: a sink, or the records of one run; None means any run."""
    if is_sink(trail):
        return trail
    if run_id is None or isinstance(trail, (str, bytes)) or not isinstance(trail, Iterable):
        wanted = "an AuditSink" if run_id is None else "an AuditSink or an iterable of AuditRecord"
        raise TypeError(f"trail must be {wanted}, not {type_name(trail)}")
    kept = []
    for item in trail:
        if not isinstance(item, (AuditRecord, DamagedLine)):
            raise TypeError(f"trail must hold AuditRecord objects, not {type_name(item)}")
        if item.run_id == run_id:
            kept.append(item)
    return kept


def read_trail(trail: Any, run_id: str, known: AuditHead) -> dict[int, Told]:
    """Return what a trail tells of each step of a run; nothing where it has no record of it.

    Parameters
    ----------
    trail : AuditSink, iterable of AuditRecord, or None
        As `check_trail` gave it.
    run_id : str
        The run.
    known : AuditHead
        The last record that the saved run knows of.

    Raises
    ------
    StateError
        If a record is missing, or one holds what no agent records. Whether a record was changed is
        not asked here but by `verify_audit`.
    """
    steps: dict[int, Told] = {}
    limits: Limits | None = None
    last: AuditRecord | None = None
    records = trail.read(run_id) if hasattr(trail, "read") else trail
    for record in records or ():
        if isinstance(record, DamagedLine):
            continue  # then a record is missing
        if not isinstance(record, AuditRecord):
            raise StateError(f"the trail holds a {type_name(record)}, which is no record")
        if last is not None and (record.seq, record.prev) != (last.seq + 1, last.digest):
            raise StateError(f"the trail is damaged behind record {last.seq}; verify it")
        last = record
        try:
            if record.event in ("run_started", "resumed"):
                limits = Limits(**record.data["limits"])
            elif record.event == "decision":
                steps[record.data["step"]] = Told(limits, record.digest)
            else:
                index = record.data.get("step")
                if type(index) is int and index in steps:
                    _learn(steps[index], record, limits)
        except (KeyError, TypeError, ValueError) as error:
            told = f"record {record.seq} of the trail ({record.event}) is none of an agent"
            raise StateError(f"{told}: {type_name(error)}") from None
    if last is not None and last.seq < known.seq:
        raise StateError(
            f"the trail ends at record {last.seq}, and the saved run knows of record {known.seq}"
        )
    return steps


def _learn(step: Told, record: AuditRecord, limits: Limits | None) -> None:
    event, data = record.event, record.data
    if event == "approval_requested":
        step.asked_at, step.answers, step.judged_by = record.time, [], limits
    elif event == "approval":
        saved: dict[str, JSON] = {name: data[name] for name in data if name != "step"}
        step.answers.append(read_answer(saved))
    elif event == "denied":
        step.denied_at, step.judged_by = record.time, limits
        step.gate = data["gate"] if type(data["gate"]) is str else None
    elif event == "tool_started":
        step.costs.append(exact(check_amount("cost", data["cost"])))
        step.judged_by = limits
    elif event == "child_finished":
        used, cost, _ = read_usage(data["usage"])
        calls = used.decisions, used.tool_calls
        step.child = Spent(*calls, cost, used.tokens, used.seconds)
        step.child_marks = Marks(
            "goal" if data["tainted"] is True else None,
            "goal" if data["read_secret"] is True else None,
        )
