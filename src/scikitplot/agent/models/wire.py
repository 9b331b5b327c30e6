"""What the forms of the providers have in common.

Imports `decision`, `state`, `values` and `wording`. A form says how a run is written as a prompt
and how a reply is read. Whatever it returns follows from the steps alone, so that another process
writes the same bytes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping

from ..decision import Decision
from ..state import Step
from ..values import JSON, InvalidValue, admit, check_text, check_type, type_name
from .replies import Reply
from .wording import describe_schema, describe_text, shorten

__all__ = [
    "Marks",
    "Wire",
    "action_text",
    "answer_text",
    "called",
    "check_count",
    "write",
]

write: Callable[[JSON], str] = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, check_circular=False, separators=(",", ":")
).encode
"""The text of a part of a request; keys stay in the order in which a schema was given."""

MAX_DESCRIPTION = 1_024
"""Characters of a tool's description that a model is shown."""

_MADE = re.compile(r"c[0-9]+", re.ASCII)
_NO_NAME = re.compile(r"[^A-Za-z0-9_-]")
_OWN = frozenset(("messages", "model", "n", "stream", "stream_options", "system", "tools"))


class Marks:
    """What holds for all turns of a prompt.

    Parameters
    ----------
    under : str
        Names the part of the prompt that stands before all turns.
    """

    __slots__ = ("_used", "under")

    def __init__(self, under: str) -> None:
        self.under = under
        self._used: set[str] = set()  # ids of calls, none of which may stand twice

    def forget(self) -> None:
        """Let all ids be free again: the turns are written anew."""
        self._used.clear()

    def call_id(self, wanted: object, index: int, allowed: re.Pattern[str]) -> str:
        """Return the id of a step's call: the provider's own if it can stand, or one made of it."""
        made = f"c{index:08d}"  # nine letters and digits, which every provider takes
        if (
            type(wanted) is not str
            or not allowed.fullmatch(wanted)
            or _MADE.fullmatch(wanted)  # it may be another step's
            or wanted in self._used
        ):
            return made
        self._used.add(wanted)
        return wanted


class Wire:
    """One form of prompt and reply.

    Parameters
    ----------
    model : str
        The provider's name of the model.
    instructions : str
        What the user adds to the rules.
    options : mapping or None
        Further fields of the request; one of None takes a field out.
    max_observation : int
        Characters of one result that are shown.
    """

    name: str
    form: str

    def __init__(
        self,
        model: str,
        instructions: str,
        options: Mapping[str, JSON] | None,
        max_observation: int,
    ) -> None:
        if not check_text("model", model, 300):
            raise ValueError("model is empty")
        self.model = model
        self._instructions = check_text("instructions", instructions)
        self._options = _check_options(options)
        self.max_observation = check_count("max_observation", max_observation)

    def instructed(self, rules: str, tools: list[dict[str, JSON]] | None = None) -> str:
        """Return the rules, the tools where they stand in the text, and the instructions."""
        parts = [rules]
        if tools is not None:
            shown = "\n".join(write(self.describe(tool)) for tool in tools)
            parts.append(f"Tools, one a line:\n{shown}" if tools else "There are no tools.")
        if self._instructions:
            parts.append(self._instructions)
        return "\n\n".join(parts)

    def describe(self, tool: dict[str, JSON]) -> dict[str, JSON]:
        """Return what a model is shown of a tool."""
        shown: dict[str, JSON] = {"name": tool["name"]}
        if tool["description"]:
            shown["description"] = shorten(describe_text(tool["description"]), MAX_DESCRIPTION)
        return {**shown, "parameters": describe_schema(tool["parameters"])}

    def with_options(self, fields: dict[str, JSON]) -> str:
        """Return fields of a request and the user's, as JSON text."""
        merged = {**fields, **json.loads(self._options)}
        return write({name: value for name, value in merged.items() if value is not None})

    # What each form defines

    def rest(self, tools: list[dict[str, JSON]]) -> str:
        """Return all of a request but what grows."""
        raise NotImplementedError

    def opening(self, goal: str, tools: list[dict[str, JSON]], hidden: int) -> str:
        """Return the beginning of what grows; the first `hidden` steps are not shown."""
        raise NotImplementedError

    def turn(self, step: Step, marks: Marks, is_cut: bool) -> str:
        """Return what a finished step adds; `is_cut` says that what stood before it is gone."""
        raise NotImplementedError

    def repair(self, note: str) -> str:
        """Return what a reply that could not be used adds."""
        raise NotImplementedError

    def request(self, history: str, rest: str) -> str:
        """Return the request of all that grew."""
        raise NotImplementedError

    def read(self, body: JSON, under: str) -> Reply:
        """Return what a reply to a prompt says, or raise `Unusable`."""
        raise NotImplementedError


def called(decision: Decision) -> str:
    """Return the name of a tool as a call in the prompt may have it, also where it is made up."""
    return _NO_NAME.sub("_", decision.tool or "")[:64] or "_"


def answer_text(decision: Decision) -> str:
    """Return an answer as the text of a turn, never an empty one."""
    answer = decision.answer
    if type(answer) is dict and answer.keys() == {"refusal"} and type(answer["refusal"]) is str:
        answer = answer["refusal"]
    text = answer if type(answer) is str else write(answer)
    return text if text.strip() else "(an empty answer)"


def action_text(decision: Decision) -> str:
    """Return a decision in the JSON form."""
    if decision.kind == "act":
        return write({"tool": decision.tool, "arguments": decision.arguments or {}})
    answer = decision.answer
    if type(answer) is dict and answer.keys() == {"refusal"}:
        return write(answer)
    return write({"answer": answer})


def _check_options(options: object) -> str:
    if options is None:
        return "{}"
    if not isinstance(options, Mapping):
        raise TypeError(f"options must be a mapping or None, not {type_name(options)}")
    try:
        text = admit(dict(options), allow_tuples=True)[1]
    except InvalidValue as error:
        raise ValueError(f"options{error.pointer}: {error.reason}") from None
    own = sorted(_OWN & options.keys())
    if own:
        raise ValueError(f"options must not hold {', '.join(own)}, which the planner sets")
    return text


def check_count(name: str, value: int) -> int:
    """Return a number of characters, or raise an error that names the argument."""
    check_type(name, value, int)
    if not 100 <= value <= 100_000_000:
        raise ValueError(f"{name} must be 100 to 100,000,000 characters")
    return value
