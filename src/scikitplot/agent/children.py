"""Runs that a step delegates to: their tool, their ids, and what they may use up.

Imports `account`, `policy` and `tools`. Rules that hold here:

* a step delegates to one run, whose id follows from the step, so that there is one at most;
* such a run may use up what its agent may, and never more than is left to the run that it is for.
"""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any

from .account import Spent
from .errors import StateError
from .limits import Limits
from .tools import Tool
from .values import JSON, add_exactly, digest, encode, exact

__all__ = ["MAX_DEPTH", "Delegation", "IsChild", "child_limits", "child_run"]

MAX_DEPTH = 3
"""How many runs may be above one."""

_PARAMETERS: dict[str, JSON] = {
    "type": "object",
    "properties": {
        "goal": {
            "type": "string",
            "minLength": 1,
            "maxLength": 100_000,
            "description": "What is to be done, with all that must be known for it.",
        }
    },
    "required": ["goal"],
    "additionalProperties": False,
}


class IsChild(StateError):
    """What is asked for is a run that another one delegated to; it goes on with that one only."""


class Delegation(Tool):
    """A tool that has another agent do something; `delegate` makes it.

    It does nothing itself, so that it needs no approval and taints nothing: what its run does and
    reads does.
    """

    __slots__ = ("agent", "depth", "limits")

    agent: Any  # with its tools, its policy and its limits
    limits: Limits | None
    depth: int  # how many runs may be below the one that calls it

    def __init__(self, agent: Any, name: str, description: str, limits: Limits | None) -> None:
        super().__init__(
            name,
            _do_apart,
            description=description,
            parameters=_PARAMETERS,
            trusted=True,
            targets=(),
        )
        below = (tool.depth for tool in agent.tools if isinstance(tool, Delegation))
        depth = 1 + max(below, default=0)
        if depth > MAX_DEPTH:
            raise ValueError(
                f"Tool {name!r}: agents delegate {depth} deep; {MAX_DEPTH} is the most"
            )
        put = object.__setattr__
        put(self, "agent", agent)
        put(self, "limits", limits)
        put(self, "depth", depth)
        put(self, "digest", digest(encode({"tool": self.digest, "tools": agent.tools.digest})))


def _do_apart(goal: str) -> None:
    raise RuntimeError("a tool that delegates works inside a run only; call the agent's run()")


def child_run(run_id: str, step: int) -> str:
    """Return the id of the run that a step delegates to."""
    return digest(f'{{"parent":"{run_id}","step":{step}}}')


def child_limits(tool: Delegation, limits: Limits, spent: Spent) -> Limits | str:
    """Return the limits of the run that a call delegates to.

    Parameters
    ----------
    tool : Delegation
        What is called.
    limits : Limits
        Those of the run that calls.
    spent : Spent
        What that run has used up before the call, which is not counted yet.

    Returns
    -------
    Limits or str
        Of each the smallest; or the name of a limit of which nothing is left.
    """
    left: dict[str, Any] = limits.to_dict()
    left["max_steps"] -= spent.decisions
    if limits.max_tool_calls is not None:
        left["max_tool_calls"] = max(0, limits.max_tool_calls - spent.tool_calls - 1)
    if limits.max_cost is not None:
        left["max_cost"] = _at_most(limits.max_cost, spent)
    if limits.max_tokens is not None:
        left["max_tokens"] -= spent.tokens
    if limits.max_seconds is not None:
        left["max_seconds"] = limits.max_seconds - spent.seconds
    for name in ("max_steps", "max_cost", "max_tokens", "max_seconds"):
        if left[name] is not None and left[name] <= 0:
            return name
    smallest: dict[str, Any] = {}
    for name in (field.name for field in fields(Limits)):
        known = (getattr(tool.agent.limits, name), getattr(tool.limits, name, None), left[name])
        smallest[name] = min((value for value in known if value is not None), default=None)
    return Limits(**smallest)


def _at_most(max_cost: float, spent: Spent) -> float:
    """Return the largest number that is not more than what is left."""
    left = add_exactly(exact(max_cost), spent.cost.copy_negate())
    nearest = float(left)
    return nearest if exact(nearest) <= left else math.nextafter(nearest, -math.inf)
