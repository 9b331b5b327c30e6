"""What a run has used up, exactly.

Imports `decision`, `watch` and `values`. Rules that hold here:

* costs are added exactly;
* what a run used up that a step delegated to is added to the account once, when that run has ended.
"""

from __future__ import annotations

from decimal import Decimal
from typing import NamedTuple

from .decision import Usage
from .values import add_exactly, exact
from .watch import Watch

__all__ = ["Account", "Spent"]


class Spent(NamedTuple):
    """What was used up so far; `seconds` is running time."""

    decisions: int = 0
    tool_calls: int = 0  # that were started
    cost: Decimal = Decimal(0)
    tokens: int = 0
    seconds: float = 0.0


class Account:
    """The account of one run.

    Parameters
    ----------
    watch : Watch
        Counts its running time.
    """

    def __init__(self, watch: Watch) -> None:
        self.watch = watch
        self.decisions = 0
        self.delegated = 0  # of them, those of runs that it delegated to
        self.tool_calls = 0
        self.cost = Decimal(0)
        self.tokens = 0

    def spent(self) -> Spent:
        """Return what was used up so far."""
        return Spent(self.decisions, self.tool_calls, self.cost, self.tokens, self.watch.seconds)

    def count_decision(self, usage: Usage | None) -> None:
        """Count a decision and what it consumed."""
        self.decisions += 1
        self.count_usage(usage)

    def count_usage(self, usage: Usage | None) -> None:
        """Count what a planner consumed."""
        if usage is not None:
            self.tokens += usage.tokens
            if usage.cost:
                self.cost = add_exactly(self.cost, exact(usage.cost))

    def count_call(self, cost: float) -> None:
        """Count a call that starts."""
        self.tool_calls += 1
        if cost:
            self.cost = add_exactly(self.cost, exact(cost))

    def count_child(self, spent: Spent) -> None:
        """Count what a run used up that a step delegated to."""
        decisions, calls, cost, tokens, seconds = spent
        self.decisions += decisions
        self.delegated += decisions
        self.tool_calls += calls
        self.cost = add_exactly(self.cost, cost)
        self.tokens += tokens
        self.watch.seconds += seconds

    def usage_text(self) -> str:
        """Return the canonical text of what was used up."""
        delegated = f'"delegated":{self.delegated},' if self.delegated else ""
        return (
            f'{{"cost":"{self.cost!s}","decisions":{self.decisions},{delegated}'
            f'"seconds":{self.watch.seconds!r},"tokens":{self.tokens},'
            f'"tool_calls":{self.tool_calls}}}'
        )
