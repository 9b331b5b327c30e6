"""What a replay finds: what was said of each call, what would be said now, and what changes.

Imports `values` and `visible`. Nothing from outside is shown as it is: a name that is no
plain one stands quoted, and all of a table goes through `visible`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from .values import JSON, clean_text, quote
from .views.visible import Page, escape, is_name

__all__ = [
    "ASKED_CODES",
    "ReplayChange",
    "ReplayTotals",
    "ReplayVerdict",
    "ReplayedRun",
    "ReplayedStep",
    "Summary",
]

ASKED_CODES = frozenset(("approval_denied", "approval_expired", "approval_stale"))
"""Codes of a denial before which a person was asked."""

_ROWS = 50
_NAME = 60  # characters of a name that is no plain one
_TOLD = 200  # characters of a reason in a row


class ReplayChange(str, Enum):
    """What becomes of a call that would have gone another way.

    Examples
    --------
    >>> from scikitplot.agent import ReplayChange
    >>> [change.value for change in ReplayChange][:3]
    ['denied', 'denied_otherwise', 'allowed']
    """

    DENIED = "denied"
    """A gate would deny what none denied."""
    DENIED_OTHERWISE = "denied_otherwise"
    """It was denied and would be, with another code."""
    ALLOWED = "allowed"
    """It was denied, or waited, and would run."""
    ASKS = "asks"
    """A person would be asked who was not."""
    ASKS_AGAIN = "asks_again"
    """A person was asked and would be, and the recorded answers would not settle it."""
    NO_LONGER_ASKS = "no_longer_asks"
    """A person was asked, and it would run with nobody asked."""
    MAY_ASK = "may_ask"
    """A person would be asked; whether one was is not known without the trail."""


class ReplayVerdict(NamedTuple):
    """What was said of a call, or would be.

    Attributes
    ----------
    kind : str
        ``"allowed"`` with nobody asked, ``"granted"`` by a person, ``"passed"`` with or without a
        person (which of the two is not known), ``"asks"`` a person whose answer is not there, or
        ``"denied"``.
    gate : str or None
        The gate that denies; None also where a trail would have to tell it.
    code : str or None
        The code of a denial.
    told : str
        Why it is denied or asks, in words.
    """

    kind: str
    gate: str | None = None
    code: str | None = None
    told: str = ""

    @property
    def asked(self) -> bool:
        """Whether a person is asked, as far as is known."""
        return self.kind in ("granted", "asks") or self.code in ASKED_CODES


@dataclass(frozen=True, slots=True)
class ReplayedStep:
    """One recorded call, judged again.

    Attributes
    ----------
    index : int
        Index of the step in its run.
    tool : str
        Name of the tool, as the planner gave it.
    before, after : ReplayVerdict
        What was recorded, and what would be said now.
    """

    index: int
    tool: str
    before: ReplayVerdict
    after: ReplayVerdict

    @property
    def change(self) -> ReplayChange | None:
        """What changes, None if nothing does."""
        before, after = self.before, self.after
        if after.kind == "denied":
            if before.kind != "denied":
                return ReplayChange.DENIED
            return None if before.code == after.code else ReplayChange.DENIED_OTHERWISE
        if before.kind == after.kind:
            return None
        if before.kind == "passed":
            return ReplayChange.MAY_ASK if after.asked else None
        if after.kind == "asks":
            return ReplayChange.ASKS_AGAIN if before.asked else ReplayChange.ASKS
        if after.kind == "allowed" and before.asked:
            return ReplayChange.NO_LONGER_ASKS
        return ReplayChange.ALLOWED

    def to_dict(self) -> dict[str, JSON]:
        """Return the step as JSON."""
        change = self.change
        return {
            "step": self.index,
            "tool": self.tool,
            "before": self.before._asdict(),
            "after": self.after._asdict(),
            "change": None if change is None else change.value,
        }


@dataclass(frozen=True, slots=True)
class ReplayedRun:
    """One recorded run, judged again.

    Attributes
    ----------
    run_id : str
        The run.
    steps : tuple of ReplayedStep
        Its calls, up to where the limits would stop it.
    stop : tuple of (int, str), or None
        Index of the step that would not be reached any more, and the limit; None if all are.
    not_reached : int
        Recorded calls from there on.
    goes_on : bool
        Whether a limit stopped it that would not do so now.
    error : str or None
        Why it could not be judged: its state or its trail is damaged. It has no steps then.
    """

    run_id: str
    steps: tuple[ReplayedStep, ...] = ()
    stop: tuple[int, str] | None = None
    not_reached: int = 0
    goes_on: bool = False
    error: str | None = None

    @property
    def changes(self) -> list[ReplayedStep]:
        """The steps that change."""
        return [step for step in self.steps if step.change is not None]

    @property
    def has_changed(self) -> bool:
        """Whether anything would go another way."""
        return self.stop is not None or self.goes_on or bool(self.changes)

    def to_dict(self) -> dict[str, JSON]:
        """Return the run as JSON, with the steps that change."""
        stop = None if self.stop is None else {"step": self.stop[0], "reason": self.stop[1]}
        return {
            "run_id": self.run_id,
            "calls": len(self.steps),
            "changes": [step.to_dict() for step in self.changes],
            "stop": stop,
            "not_reached": self.not_reached,
            "goes_on": self.goes_on,
            "error": self.error,
        }


class ReplayTotals(NamedTuple):
    """How much changes, over all runs.

    Attributes
    ----------
    runs, changed_runs : int
        All runs, and those in which something changes.
    damaged : int
        Runs that could not be judged.
    stopped, go_on : int
        Runs that a limit would stop earlier, and those that one stopped and would not.
    calls, not_reached : int
        Calls that were judged, and those behind an earlier stop.
    denied, denied_otherwise, allowed, asks, asks_again, no_longer_asks, may_ask : int
        Calls by what changes; see `ReplayChange`.
    """

    runs: int = 0
    changed_runs: int = 0
    damaged: int = 0
    stopped: int = 0
    go_on: int = 0
    calls: int = 0
    not_reached: int = 0
    denied: int = 0
    denied_otherwise: int = 0
    allowed: int = 0
    asks: int = 0
    asks_again: int = 0
    no_longer_asks: int = 0
    may_ask: int = 0


class Summary:
    """The totals of runs, and as many of their changes as a table shows."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._rows: list[tuple[str, str]] = []
        self._more = 0

    @property
    def totals(self) -> ReplayTotals:
        """How much changes."""
        return ReplayTotals(**self._counts)

    def add(self, run: ReplayedRun) -> None:
        """Count a run."""
        self._counts.update(
            runs=1,
            changed_runs=run.has_changed,
            damaged=run.error is not None,
            stopped=run.stop is not None,
            go_on=run.goes_on,
            calls=len(run.steps),
            not_reached=run.not_reached,
        )
        start = escape(run.run_id)[:12].ljust(12)
        if run.error is not None:
            self._row(f"{start}     -  damaged           ", run.error)
        for step in run.steps:
            change = step.change
            if change is not None:
                self._counts[change.value] += 1
                name = change.value.replace("_", " ")
                self._row(f"{start}  {step.index:>4}  {name:<16}  ", _told(step))
        if run.stop is not None:
            index, reason = run.stop
            told = f"{reason} ends the run here; calls not reached: {run.not_reached}"
            self._row(f"{start}  {index:>4}  {'stopped':<16}  ", told)
        if run.goes_on:
            self._row(f"{start}     -  {'goes on':<16}  ", "what stopped the run would not")

    def _row(self, start: str, told: str) -> None:
        if len(self._rows) < _ROWS:
            self._rows.append((start, clean_text(told, 2 * _TOLD)))
        else:
            self._more += 1

    def table(self, width: int, encoding: str) -> str:
        """Return the totals and the changes as lines of text."""
        totals = self.totals
        page = Page(width, encoding)
        page.text(
            "",
            f"Recorded runs: {totals.runs:,}, and changed: {totals.changed_runs:,}; "
            f"calls: {totals.calls:,}",
        )
        counted = [
            f"{name.replace('_', ' ')} {count:,}"
            for name, count in totals._asdict().items()
            if count and name not in ("runs", "changed_runs", "calls")
        ]
        if counted:
            page.text("  ", ", ".join(counted))
        if self._rows:
            page.lines += ["", "run           step  what changes      call"]
        for start, told in self._rows:
            page.text(start, told)
        if self._more:
            page.lines.append(f"and {self._more:,} more")
        return "\n".join(page.lines)


def _told(step: ReplayedStep) -> str:
    tool, more = step.tool, len(step.tool) - _NAME
    if not is_name(tool):
        tool = quote(tool[:_NAME]) + (f" ({more} more characters)" if more > 0 else "")
    told = f"{tool}: {_shown(step.before)}, now {_shown(step.after)}"
    return f"{told}: {clean_text(step.after.told, _TOLD)}" if step.after.told else told


def _shown(verdict: ReplayVerdict) -> str:
    if verdict.kind != "denied":
        return verdict.kind
    return f"denied ({verdict.code})"
