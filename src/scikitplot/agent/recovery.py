"""Going on with the runs that a crash cut off.

Imports `agent` and what stands below it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from .agent import Agent
from .children import IsChild
from .errors import AgentError
from .state import RunState, RunStatus
from .stores import StateStore
from .values import type_name

__all__ = ["Recovered", "recover"]


class Recovered(NamedTuple):
    """What became of one run.

    Attributes
    ----------
    run_id : str
        The run.
    state : RunState or None
        Its last state; None where it could not be resumed.
    error : AgentError or None
        Why it could not: another process went on with it, or its state or trail is damaged.
    """

    run_id: str
    state: RunState | None
    error: AgentError | None


def recover(store: StateStore, make_agent: Callable[[], Agent]) -> Iterator[Recovered]:
    """Resume each run of a store that was cut off, one after the other.

    Runs that wait for a person are left alone; those that others delegate to go on with these. A
    run that another process is in the middle of is taken from it: that process is refused at its
    next commit, before its next call. So recover when the processes that drove these runs are gone.

    Parameters
    ----------
    store : StateStore
        Where the runs are.
    make_agent : callable
        ``make_agent() -> Agent``, with this store, and the tools, the planner and the trail that
        the runs were started with. Called once for each run.

    Yields
    ------
    Recovered
        For each run, when it has ended or paused. One that cannot be resumed does not keep the
        others from it.

    Raises
    ------
    TypeError
        If `make_agent` is not callable or makes something else than an `Agent`.

    Examples
    --------
    >>> from scikitplot.agent import Agent, Decision, MemoryStore, recover
    >>> store, asked = MemoryStore(), []
    >>> def planner(state, tools):
    ...     asked.append(1)
    ...     if len(asked) == 1:
    ...         raise KeyboardInterrupt  # the process dies
    ...     return Decision.finish("done")
    >>> agent = Agent([], planner, store=store)
    >>> try:
    ...     state = agent.run("survive")
    ... except KeyboardInterrupt:
    ...     pass
    >>> [recovered.state.answer for recovered in recover(store, lambda: agent)]
    ['done']
    """
    if not callable(make_agent):
        raise TypeError(f"make_agent must be callable, not {type_name(make_agent)}")
    return _recover(store, make_agent)


def _recover(store: StateStore, make_agent: Callable[[], Agent]) -> Iterator[Recovered]:
    for run_id in list(store.runs(RunStatus.RUNNING.value)):
        agent = make_agent()
        if not isinstance(agent, Agent):
            raise TypeError(f"make_agent must make an Agent, not {type_name(agent)}")
        try:
            yield Recovered(run_id, agent.resume(run_id), None)
        except IsChild:
            continue  # it is resumed with the run that delegates to it
        except AgentError as error:
            yield Recovered(run_id, None, error)
