"""What ends a run before its next decision.

Imports `ledger` and `policy`. Each limit is looked at here before the decision that it bounds; the
gates look at those that bound a call.
"""

from __future__ import annotations

from typing import NamedTuple

from .decision import Usage
from .ledger import Ledger
from .limits import Limits
from .state import RunStatus, Step
from .values import encode, exact

__all__ = ["Stop", "lacks_usage", "repeats", "stop_for"]


class Stop(NamedTuple):
    """How a run ends, and why."""

    status: RunStatus
    stop_reason: str
    error: str | None = None


def stop_for(ledger: Ledger, limits: Limits) -> Stop | None:
    """Return why no further decision is asked for, None when one is."""
    if ledger.stop is not None:
        return Stop(RunStatus.STOPPED, "cancelled", ledger.stop or None)
    if ledger.watch.fault is not None:
        return Stop(RunStatus.FAILED, "clock_failed", ledger.watch.fault)
    reached = _reached(ledger, limits)
    return None if reached is None else Stop(RunStatus.STOPPED, reached)


def lacks_usage(usage: Usage | None, limits: Limits) -> bool:
    """Return whether a planner did not report what a limit bounds."""
    return limits.max_tokens is not None and usage is None


def repeats(ledger: Ledger, limits: Limits, tool: str | None, text: str) -> int:
    """Return how often the same call was proposed directly before, as far as it matters.

    Parameters
    ----------
    tool : str or None
        Name of the tool.
    text : str
        Canonical text of the arguments.
    """
    most = limits.max_repeats
    if most is None:
        return 0
    count = 0
    for saved in reversed(ledger.steps):
        decision = Step.from_json(saved).decision
        if count > most or decision.tool != tool or encode(decision.arguments) != text:
            break
        count += 1
    return count


def _reached(ledger: Ledger, limits: Limits) -> str | None:
    if ledger.decisions >= limits.max_steps:
        return "max_steps"
    if limits.max_cost is not None and ledger.cost >= exact(limits.max_cost):
        return "max_cost"
    if limits.max_tokens is not None and ledger.tokens >= limits.max_tokens:
        return "max_tokens"
    if limits.max_seconds is not None and ledger.watch.seconds >= limits.max_seconds:
        return "max_seconds"
    if limits.max_repeats is not None and _last_code(ledger) == "max_repeats":
        return "max_repeats"
    return None


def _last_code(ledger: Ledger) -> str | None:
    return Step.from_json(ledger.steps[-1]).code if ledger.steps else None
