"""The form for any function that takes a text and returns one.

Imports the modules of this folder that read and word things. The prompt ends where the model is to
write, so that what it wrote and what came of it can stand behind it in the next one.
"""

from __future__ import annotations

from ..state import Step
from ..values import JSON
from .replies import Reply, read_json_action
from .wire import Marks, Wire, action_text
from .wording import JSON_FORM, JSON_RULES, left_out, neutralise, observation

__all__ = ["PlainText"]

_CUE = "\n\nReply: "


class PlainText(Wire):
    """One JSON object as the text of each reply."""

    name = "text"
    form = JSON_FORM

    def rest(self, tools: list[dict[str, JSON]]) -> str:
        return ""

    def opening(self, goal: str, tools: list[dict[str, JSON]], hidden: int) -> str:
        told = self.instructed(JSON_RULES, tools)
        return f"{told}\n\nThe user's goal:\n{goal or '(no goal)'}{left_out(hidden)}{_CUE}"

    def turn(self, step: Step, marks: Marks, is_cut: bool) -> str:
        # Nothing but the fences tells here who wrote what, so none may come from the model either.
        said = neutralise(action_text(step.decision))
        return f"{said}\n\n{observation(step, self.max_observation)}{_CUE}"

    def repair(self, note: str) -> str:
        return f"(no usable reply)\n\n{note}{_CUE}"

    def request(self, history: str, rest: str) -> str:
        return history

    def read(self, body: JSON, under: str) -> Reply:
        return read_json_action(body)
