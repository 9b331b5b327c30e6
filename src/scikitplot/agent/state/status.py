"""Where a run stands, and what it has used up."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

__all__ = ["RunStatus", "RunUsage"]


class RunStatus(str, Enum):
    """Where a run stands.

    Examples
    --------
    >>> from scikitplot.agent import RunStatus
    >>> RunStatus("completed").has_ended, RunStatus("awaiting_approval").has_ended
    (True, False)
    """

    RUNNING = "running"
    """It goes on, or was cut off and can be resumed."""
    AWAITING_APPROVAL = "awaiting_approval"
    """It waits for a person; see ``RunState.pending``."""
    COMPLETED = "completed"
    """The planner's answer was accepted."""
    STOPPED = "stopped"
    """A limit ended it; ``RunState.stop_reason`` names it."""
    FAILED = "failed"
    """The planner or the ``done`` criterion failed; ``RunState.stop_reason`` says how."""

    @property
    def has_ended(self) -> bool:
        """Whether nothing more can happen in the run."""
        return self not in (RunStatus.RUNNING, RunStatus.AWAITING_APPROVAL)


class RunUsage(NamedTuple):
    """What a run has used up, over all its sessions.

    Attributes
    ----------
    decisions : int
        Decisions of the planner, and of those of the runs that it delegated to; so for all of it.
    tool_calls : int
        Calls that were started.
    cost : float
        Sum of the started calls' and the decisions' cost; it is kept exactly.
    tokens : int
        Tokens that the planner reported.
    seconds : float
        Running time, in seconds.
    """

    decisions: int
    tool_calls: int
    cost: float
    tokens: int
    seconds: float
