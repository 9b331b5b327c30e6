"""What is told of a call: to the tool that runs in it, and to who knows what became of it.

Imports nothing of this package.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any, NamedTuple

__all__ = ["Call", "ReconcileRequest", "current_call", "running"]


class Call(NamedTuple):
    """The call that a tool is running in, as `current_call` gives it.

    Attributes
    ----------
    run_id : str
        The run.
    step : int
        Index of the step.
    attempt : int
        1, or up to 3 where an idempotent call was cut off and starts again.
    idempotency_key : str
        64 hexadecimal digits, the same for every attempt of one action and different for every
        other step and run: hand it to an API that refuses repeats.
    deadline : float or None
        Reading of `time.monotonic`, in seconds, at which the tool's timeout ends.
    depth : int
        How many runs are above this one; 0 in a run that none delegated to.
    """

    run_id: str
    step: int
    attempt: int
    idempotency_key: str
    deadline: float | None
    depth: int = 0


class ReconcileRequest(NamedTuple):
    """A call that was cut off, as ``Agent(reconcile=...)`` is asked about it.

    Attributes
    ----------
    run_id : str
        The run.
    step : int
        Index of the step.
    tool : str
        Name of the tool, which may be gone or changed by now.
    arguments : dict
        A copy of its arguments.
    attempt : int
        How many times the call was started.
    idempotency_key : str
        What `Call.idempotency_key` was inside the tool.
    """

    run_id: str
    step: int
    tool: str
    arguments: dict[str, Any]
    attempt: int
    idempotency_key: str


running: ContextVar[Call] = ContextVar("scikitplot.agent.call")


def current_call() -> Call:
    """Return the call that is running, from inside a tool.

    Returns
    -------
    Call
        Which run, step and attempt this is.

    Raises
    ------
    RuntimeError
        Outside a tool that an agent called.

    Examples
    --------
    >>> from scikitplot.agent import Agent, Decision, Tool, current_call
    >>> pay = Tool("pay", lambda: current_call().attempt)
    >>> def planner(state, tools):
    ...     return Decision.finish(state.steps[0].result) if state.steps else Decision.act("pay")
    >>> Agent([pay], planner).run("pay once").answer
    1
    """
    try:
        return running.get()
    except LookupError:
        raise RuntimeError("current_call() works inside a tool that an agent called") from None
