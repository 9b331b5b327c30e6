"""What became of many runs, counted.

Imports `state`.
"""

from __future__ import annotations

from decimal import Decimal
from typing import NamedTuple

from .state import RunState, RunStatus
from .values import add_exactly, exact

__all__ = ["BatchTotals"]


class BatchTotals(NamedTuple):
    """How many runs of a batch ended in which way, and what they have used up.

    Attributes
    ----------
    completed, stopped, failed, waiting : int
        Runs, by how they ended; those that wait for a person.
    errors : int
        Goals whose run neither ended nor waits.
    decisions, tool_calls, tokens : int
        Of all these runs, in earlier calls too.
    exact_cost : Decimal
        Of all these runs.
    seconds : float
        Running time of all these runs.
    has_ended : bool
        Whether these are the totals of the whole batch.

    Examples
    --------
    >>> from scikitplot.agent import Agent, BatchTotals, Decision
    >>> state = Agent([], lambda state, tools: Decision.finish(7)).run("count")
    >>> print(BatchTotals().with_result(state, None))
    1 goal: 1 completed; 1 decision, 0 calls, 0 tokens, cost 0
    """

    completed: int = 0
    stopped: int = 0
    failed: int = 0
    waiting: int = 0
    errors: int = 0
    decisions: int = 0
    tool_calls: int = 0
    tokens: int = 0
    exact_cost: Decimal = Decimal(0)
    seconds: float = 0.0
    has_ended: bool = False

    @property
    def goals(self) -> int:
        """How many goals these are of."""
        return self.completed + self.stopped + self.failed + self.waiting + self.errors

    @property
    def cost(self) -> float:
        """The cost of all these runs."""
        return float(self.exact_cost)

    def with_result(self, state: RunState | None, error: str | None) -> BatchTotals:
        """Return these totals with one goal more.

        Parameters
        ----------
        state : RunState or None
            The last state of its run.
        error : str or None
            Why the run neither ended nor waits.
        """
        ended = "errors" if state is None or error is not None else _NAMES[state.status]
        changed = {ended: getattr(self, ended) + 1}
        if state is None:
            return self._replace(**changed)
        used = state.usage
        return self._replace(
            **changed,
            decisions=self.decisions + used.decisions,
            tool_calls=self.tool_calls + used.tool_calls,
            tokens=self.tokens + used.tokens,
            exact_cost=add_exactly(self.exact_cost, exact(used.cost)),
            seconds=self.seconds + used.seconds,
        )

    def __str__(self) -> str:
        named = zip(("completed", "stopped", "failed", "waiting", "not run"), self, strict=False)
        ended = ", ".join(f"{count:,} {name}" for name, count in named if count) or "none yet"
        decisions, calls, tokens, goals = (
            f"{count:,} {noun}{'' if count == 1 else 's'}"
            for noun, count in (
                ("decision", self.decisions),
                ("call", self.tool_calls),
                ("token", self.tokens),
                ("goal", self.goals),
            )
        )
        return f"{goals}: {ended}; {decisions}, {calls}, {tokens}, cost {self.cost:g}"


_NAMES = {
    RunStatus.COMPLETED: "completed",
    RunStatus.STOPPED: "stopped",
    RunStatus.FAILED: "failed",
    RunStatus.AWAITING_APPROVAL: "waiting",
    RunStatus.RUNNING: "errors",
}
