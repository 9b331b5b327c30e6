"""Undoing a run: the inverses of its executed steps, called in a run of its own.

Imports `toolset`, `policy`, `state` and what stands below them. Rules that hold here:

* steps are undone from the last one to the first, and none twice: the decision before says where to
  go on, whatever became of it;
* an inverse is called as its tool was, with the same name, arguments, effect, scopes and cost, so
  that each rule of a policy holds for it too;
* the undoing run's id follows from that of the run that it undoes, so that there is one at most.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from .approval import is_digest
from .children import Delegation, child_run
from .decision import Decision, Usage
from .errors import StateError
from .limits import Limits
from .signature import Adapted
from .state import RunState, Step, StepOutcome
from .tools import Tool, ToolEffect
from .toolset import Toolset
from .values import JSON, digest

__all__ = ["Undoing", "goal_of", "undoing_run", "undone_run"]

_GOAL = "undo run "
_REASON = re.compile("undo step ([0-9]{1,18})", re.ASCII)
_MOST = 5_000  # of the steps of one kind that a report lists


def undoing_run(run_id: str) -> str:
    """Return the id of the run that undoes the run of this id."""
    return digest(f'{{"undoes":"{run_id}"}}')


def goal_of(run_id: str) -> str:
    """Return the goal of the run that undoes the run of this id."""
    return _GOAL + run_id


def undone_run(run_id: str, goal: str) -> str | None:
    """Return the id of the run that a run of this id and goal undoes; None where it undoes none."""
    undone = goal.removeprefix(_GOAL)
    return undone if is_digest(undone) and undoing_run(undone) == run_id else None


class Undoing:
    """What an undoing run calls, and who plans it.

    Parameters
    ----------
    run_id : str
        The run that is undone.
    tools : Toolset
        The agent's own tools.
    steps : sequence of str
        The saved steps of the run that is undone, which has ended.
    proposed : Decision or None
        That of the undoing run's open step, where there is one.
    """

    def __init__(
        self, run_id: str, tools: Toolset, steps: Sequence[str], proposed: Decision | None
    ) -> None:
        self._run_id = run_id
        self._known = tools
        self._steps = steps
        self._result: JSON = None  # of the step that is being undone
        if proposed is not None and proposed.kind == "act":
            self._result = Step.from_json(steps[self._index(proposed)]).result
        self.tools = Toolset(
            self._inverse(tool, tool.undo) for tool in tools if tool.undo is not None
        )

    def _inverse(self, tool: Tool, undo: Callable[[dict[str, JSON], JSON], Any]) -> Tool:
        func: Any = Adapted(undo, lambda arguments: undo(arguments, self._result))
        return Tool(
            tool.name,
            func,
            description=f"The inverse of tool {tool.name!r}.",
            parameters=tool.parameters,
            effect=tool.effect,
            scopes=tool.scopes,
            cost=tool.cost,
            idempotent=tool.idempotent,
            timeout=tool.timeout,
            trusted=tool.trusted,
            secret=tool.secret,
            targets=tool.targets,
        )

    def limits(self, limits: Limits) -> Limits:
        """Return the limits of the undoing run: as many steps as there may be to undo."""
        return replace(limits, max_steps=len(self._steps) + 1, max_repeats=None)

    def plan(self, state: RunState, tools: object) -> Decision:
        """Propose to undo the last step that was not looked at yet."""
        index = self._index(state.steps[-1].decision) if state.steps else len(self._steps)
        while index > 0:
            index -= 1
            step = Step.from_json(self._steps[index])
            name = step.decision.tool
            if step.outcome is StepOutcome.EXECUTED and name is not None and name in self.tools:
                self._result = step.result
                arguments, reason = step.decision.arguments, f"undo step {index}"
                return Decision.act(name, arguments, reason=reason, usage=Usage())
        return Decision.finish(self._report(state), usage=Usage())

    def _report(self, state: RunState) -> dict[str, JSON]:
        inverses = {self._index(step.decision): step for step in state.steps}
        undone: list[JSON] = []
        left: list[JSON] = []
        for index, step in enumerate(map(Step.from_json, self._steps)):
            why = self._why_left(step, inverses.get(index))
            if why is not None:
                left.append({"step": index, "tool": step.decision.tool, "why": why})
            elif index in inverses:
                undone.append(index)
        unlisted = max(0, len(undone) - _MOST) + max(0, len(left) - _MOST)
        return {"undone": undone[:_MOST], "left": left[:_MOST], "unlisted": unlisted}

    def _why_left(self, step: Step, inverse: Step | None) -> str | None:
        """Return why what a step did may still be there; None where it is not."""
        if inverse is not None:
            return None if inverse.outcome is StepOutcome.EXECUTED else inverse.code
        tool = self._known.get(step.decision.tool or "")
        if isinstance(tool, Delegation):
            return (
                f"delegated to run {child_run(self._run_id, step.index)}" if step.attempts else None
            )
        if step.attempts == 0 or (tool is not None and tool.effect is ToolEffect.READ):
            return None
        return "no inverse" if step.outcome is StepOutcome.EXECUTED else step.code

    def _index(self, decision: Decision) -> int:
        """Return which step a decision proposed to undo."""
        found = _REASON.fullmatch(decision.reason)
        if found is None or int(found[1]) >= len(self._steps):
            raise StateError("saved state: a decision of an undoing run names no step to undo")
        return int(found[1])
