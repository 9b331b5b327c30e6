"""An agent as a tool of another.

Imports `settings` and what stands below it. What holds for the run of such an agent:

* it is in the store and the trail of the run that delegates, asks the same people, and goes on with
  that run only;
* what either of the two policies denies is denied, where either asks a person is asked, and what
  either ``redact`` hides is hidden.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, TypeVar

from .children import Delegation
from .effects import RunChild
from .limits import Limits
from .settings import Settings
from .tools import Tool
from .values import JSON, type_name

__all__ = ["child_of", "delegate"]

SettingsT = TypeVar("SettingsT", bound=Settings)


def delegate(agent: Settings, name: str, description: str, *, limits: Limits | None = None) -> Tool:
    """Return a tool that has another agent do something; its one argument is the goal.

    Each call is a run of its own, in the store and the trail of the run that calls, with `parent`
    naming that run and its step. The result is its answer; where it ends otherwise the call fails
    (``tool_error``) and says how. Where it waits for a person, so does the run that calls, with its
    request in `pending`; what is handed to `Agent.resume` of that run is passed on. It is stopped
    with that run, and goes on with it where both were cut off.

    Parameters
    ----------
    agent : Agent
        Who does it, with its own tools, planner, ``done`` and ``reconcile``. Its store, its trail,
        its approver and its clocks are not used, but those of the agent that calls; its
        ``approval_keys`` only if that one has none. It works under both policies (``&``), so what
        it calls must be allowed by both. A goal is untrusted where the run that calls has read
        untrusted content, and what comes back is where its run has.
    name : str
        Name of the tool.
    description : str
        What the planner is told about it.
    limits : Limits or None, default=None
        What one call may use up at most. It never uses more than `agent.limits` or than is left to
        the run that calls, of which all it uses is part: decisions, calls, cost, tokens and time.
        Where nothing is left the call is denied at the Budget gate.

    Returns
    -------
    Tool
        For an agent that has a store. Its effect is ``read``: what its run does has its own.

    Raises
    ------
    TypeError, ValueError
        If an argument is of the wrong type or value, or agents would delegate more than 3 deep.

    Examples
    --------
    >>> from scikitplot.agent import Agent, Decision, MemoryStore, Tool, delegate
    >>> def count(state, tools):
    ...     if state.steps:
    ...         return Decision.finish(state.steps[0].result)
    ...     return Decision.act("stock", {})
    >>> counter = Agent([Tool("stock", lambda: 7)], count)
    >>> def plan(state, tools):
    ...     if state.steps:
    ...         return Decision.finish(f"there are {state.steps[0].result}")
    ...     return Decision.act("counter", {"goal": "count the packets"})
    >>> agent = Agent([delegate(counter, "counter", "Counts.")], plan, store=MemoryStore())
    >>> state = agent.run("how many are there?")
    >>> state.answer, state.usage.decisions, state.usage.tool_calls
    ('there are 7', 4, 2)
    """
    if not isinstance(agent, Settings):
        raise TypeError(f"agent must be an Agent, not {type_name(agent)}")
    if limits is not None and not isinstance(limits, Limits):
        raise TypeError(f"limits must be a Limits or None, not {type_name(limits)}")
    return Delegation(agent, name, description, limits)


def child_of(parent: SettingsT, effect: RunChild) -> SettingsT:
    """Return who drives the run that a step of a run of `parent` delegates to."""
    assert effect.tool is not None, "a run whose tool is gone has nobody to drive it"
    agent: Any = effect.tool.agent
    run_id, step = effect.parent
    child = copy.copy(agent)
    child.policy = parent.policy & agent.policy
    child.limits = agent.limits if effect.limits is None else effect.limits
    child.redact = _redact_both(parent.redact, agent.redact)
    child.store, child.audit, child.approver = parent.store, parent.audit, parent.approver
    child._has_own_trail = parent._has_own_trail
    child._keys = agent._keys if parent._keys is None else parent._keys
    child._clock, child._now = parent._clock, parent._now
    child.observer, child._warned = parent.observer, parent._warned
    child._driven, child._stops = parent._driven, parent._stops
    child._shared = parent._shared
    child._above = (*parent._above, run_id)
    child._notes = (*parent._notes, f"step {step} of run {run_id} delegates to the run")
    return child  # type: ignore[no-any-return]


_Redact = Callable[["str | None", "str | None", JSON], JSON]


def _redact_both(one: _Redact | None, other: _Redact | None) -> _Redact | None:
    """Return what hides what either hides."""
    if one is None or other is None or one is other:
        return other if one is None else one
    return lambda tool, argument, value: other(tool, argument, one(tool, argument, value))
