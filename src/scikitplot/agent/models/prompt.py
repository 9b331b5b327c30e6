"""A run as a prompt that only grows at its end.

Imports `state` and the forms. Rules that hold here:

* a prompt follows from the run's goal, its finished steps and the tools, and from nothing else: a
  planner in another process writes the same bytes;
* a step costs what is new in it: what was written before is kept, once for each run;
* where the history grows too long, its older half is left out at once, so that the beginning of the
  prompt changes seldom and a provider's cache of prompts hits in between.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict, deque
from collections.abc import Sequence

from ..state import RunState
from ..values import JSON, digest
from .repair import note_of, notes_in
from .wire import Marks, Wire, write

__all__ = ["MAX_PROMPTS", "Prompt", "Prompts"]

MAX_PROMPTS = 32
"""Runs of which a planner keeps the prompt; that of another is written anew when it goes on."""


class Prompt:
    """The prompt of one run.

    Parameters
    ----------
    wire : Wire
        The form.
    goal : str
        The run's goal.
    tools : str
        JSON text of what the planner is shown of the tools.
    max_history : int
        Characters that the finished steps may take.
    """

    def __init__(self, wire: Wire, goal: str, tools: str, max_history: int) -> None:
        self.tools = tools
        self._wire = wire
        self._goal = goal
        self._descriptions: list[dict[str, JSON]] = json.loads(tools)
        self._max_history = max_history
        self._rest = wire.rest(self._descriptions)
        self._turns: deque[str] = deque()
        self._marks = Marks(digest(write([self._rest, goal]))[:32])
        self._size = 0
        self._first = 0  # the first step that is shown
        self._count = 0  # steps that were written
        self._opening = wire.opening(goal, self._descriptions, 0)

    @property
    def under(self) -> str:
        """What names the part of the prompt that stands before all steps."""
        return self._marks.under

    def add(self, state: RunState) -> None:
        """Write the steps that are new."""
        steps = state.steps
        for index in range(self._count, len(steps)):
            step = steps[index]
            notes = "".join(
                self._wire.repair(note_of(kind, self._wire.form))
                for kind in notes_in(step.decision.repairs)
            )
            turn = notes + self._wire.turn(step, self._marks, False)
            self._turns.append(turn)
            self._size += len(turn)
            self._count = index + 1
            if self._size > self._max_history:
                self._leave_out(state)

    def _leave_out(self, state: RunState) -> None:
        while len(self._turns) > 1 and self._size > self._max_history // 2:
            self._size -= len(self._turns.popleft())
            self._first += 1
        self._opening = self._wire.opening(self._goal, self._descriptions, self._first)
        # What stood before them is gone, so those that are left are written once more.
        self._marks.forget()
        self._turns.clear()
        for index in range(self._first, self._count):
            self._turns.append(self._wire.turn(state.steps[index], self._marks, True))
        self._size = sum(map(len, self._turns))

    def text(self) -> str:
        """Return what grows, as it stands now."""
        return "".join((self._opening, *self._turns))

    def request(self, history: str) -> str:
        """Return the request of a history."""
        return self._wire.request(history, self._rest)


class Prompts:
    """The prompts of the runs that a planner saw last; threads may share it."""

    def __init__(self, wire: Wire, max_history: int) -> None:
        self._wire = wire
        self._max_history = max_history
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, tuple[Prompt, Sequence[str], int]] = OrderedDict()

    def take(self, state: RunState, tools: list[dict[str, JSON]]) -> Prompt:
        """Return the prompt of a run; it is the caller's until it is kept again."""
        shown = write(tools)
        with self._lock:
            kept = self._kept.pop(state.run_id, None)
        if kept is not None and kept[0].tools == shown and _goes_on(state, *kept[1:]):
            prompt = kept[0]
        else:
            prompt = Prompt(self._wire, state.goal, shown, self._max_history)
        prompt.add(state)
        return prompt

    def keep(self, state: RunState, prompt: Prompt) -> None:
        """Keep a prompt for the run's next step."""
        texts = state.steps.source()
        if texts is None:  # the steps are not those of the run: somebody changed this copy
            return
        with self._lock:
            self._kept[state.run_id] = prompt, texts, len(state.steps)
            self._kept.move_to_end(state.run_id)
            while len(self._kept) > MAX_PROMPTS:
                self._kept.popitem(last=False)


def _goes_on(state: RunState, texts: Sequence[str], count: int) -> bool:
    """Return whether the first steps of a run are those that a prompt was written of."""
    now = state.steps.source()
    if now is None or len(state.steps) < count:
        return False
    # In one session the list is the same one, to which steps are only added. In another one, or
    # in a fork of the run, the texts themselves tell.
    return now is texts or list(now[:count]) == list(texts[:count])
