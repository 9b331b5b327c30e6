"""One finished step, and its saved form."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import Enum

from ..decision import Decision, Usage, make_decision
from ..errors import StateError
from ..values import JSON, MAX_BYTES, InvalidValue, admit, check_type, digest, encode, quote
from .fields import MAX_SAVED, Fields, optional_text, read_json

__all__ = [
    "Step",
    "StepOutcome",
    "decision_text",
    "read_decision",
    "recorded_decision",
    "step_text",
]


class StepOutcome(str, Enum):
    """How a step ended.

    Examples
    --------
    >>> from scikitplot.agent import StepOutcome
    >>> [outcome.value for outcome in StepOutcome]
    ['executed', 'denied', 'failed', 'interrupted', 'accepted', 'rejected']
    """

    EXECUTED = "executed"
    """The tool ran and its result was taken."""
    DENIED = "denied"
    """A gate said no; the tool did not run."""
    FAILED = "failed"
    """The tool raised, timed out, or returned what cannot be taken."""
    INTERRUPTED = "interrupted"
    """The call was cut off; whether it took effect is unknown."""
    ACCEPTED = "accepted"
    """The answer was taken; the run is completed."""
    REJECTED = "rejected"
    """The answer did not meet the ``done`` criterion; the run goes on."""


_STEP_TYPES: tuple[tuple[str, tuple[type, ...]], ...] = (
    ("index", (int,)),
    ("decision", (Decision,)),
    ("outcome", (StepOutcome,)),
    ("code", (str, type(None))),
    ("error", (str, type(None))),
    ("attempts", (int,)),
    ("started", (float,)),
    ("seconds", (float,)),
)


@dataclass(frozen=True, slots=True)
class Step:
    """One decision and what became of it.

    Attributes
    ----------
    index : int
        From 0.
    decision : Decision
        What the planner proposed.
    outcome : StepOutcome
        How it ended.
    result : JSON
        What the tool returned, None unless the outcome is ``executed``.
    code : str or None
        Why it was denied, failed or interrupted, such as ``"scope_denied"``.
    error : str or None
        The same in words, for the planner.
    attempts : int
        How many times the call was started.
    started : float
        Running time of the run at the start of the step, in seconds.
    seconds : float
        Running time that the step took.

    Examples
    --------
    >>> from scikitplot.agent import Agent, Decision, Limits
    >>> agent = Agent([], lambda state, tools: Decision.act("fly"), limits=Limits(max_steps=1))
    >>> step = agent.run("fly").steps[0]
    >>> step.outcome.value, step.code, step.error
    ('denied', 'unknown_tool', 'there is no tool of this name; there are none at all')
    """

    index: int
    decision: Decision
    outcome: StepOutcome
    result: JSON
    code: str | None
    error: str | None
    attempts: int
    started: float
    seconds: float

    def __post_init__(self) -> None:
        for name, kinds in _STEP_TYPES:
            check_type(name, getattr(self, name), *kinds)

    def to_dict(self) -> dict[str, JSON]:
        """Return the step as JSON, as it is saved."""
        saved: dict[str, JSON] = json.loads(self.to_json())
        return saved

    def observation(self) -> dict[str, JSON]:
        """Return what a planner needs of the step, as plain JSON."""
        decision = self.decision
        proposed: dict[str, JSON] = (
            {"tool": decision.tool, "arguments": decision.arguments}
            if decision.kind == "act"
            else {"answer": decision.answer}
        )
        return {
            "step": self.index,
            "kind": decision.kind,
            **proposed,
            "outcome": self.outcome.value,
            "result": self.result,
            "code": self.code,
            "error": self.error,
        }

    def to_json(self) -> str:
        """Return the step's canonical text, as it is saved."""
        return step_text(
            self.index,
            saved_decision(self.decision),
            self.outcome.value,
            admit(self.result, MAX_SAVED)[1],
            self.code,
            self.error,
            self.attempts,
            repr(self.started),
            self.seconds,
        )

    @classmethod
    def from_json(cls, text: str) -> Step:
        """Return the step that `text` saves.

        Raises
        ------
        StateError
            If the text is no saved step.
        """
        return cls.from_dict(read_json("a saved step", text))

    @classmethod
    def from_dict(cls, saved: JSON) -> Step:
        """Return the step that `saved` holds.

        Raises
        ------
        StateError
            If it is no saved step; the message names the field.
        """
        fields = Fields("saved step", saved, _STEP_FIELDS)
        decision = read_decision(fields.value("decision"))
        outcome = StepOutcome(fields.one_of("outcome", [outcome.value for outcome in StepOutcome]))
        finished = outcome in (StepOutcome.ACCEPTED, StepOutcome.REJECTED)
        if finished != (decision.kind == "finish"):
            raise fields.wrong("outcome", "does not fit the decision")
        return cls(
            fields.count("index"),
            decision,
            outcome,
            fields.value("result"),
            fields.text("code", optional=True),
            fields.text("error", optional=True),
            fields.count("attempts"),
            fields.number("started"),
            fields.number("seconds"),
        )

    def __repr__(self) -> str:
        what = self.decision.tool if self.decision.kind == "act" else "finish"
        code = f" {self.code}" if self.code else ""
        return f"<Step {self.index}: {what} {self.outcome.value}{code}>"


_STEP_FIELDS = (
    "attempts",
    "code",
    "decision",
    "error",
    "index",
    "outcome",
    "result",
    "seconds",
    "started",
)


def step_text(
    index: int,
    decision: str,
    outcome: str,
    result: str,
    code: str | None,
    error: str | None,
    attempts: int,
    started: str,
    seconds: float,
) -> str:
    """Return the canonical text of a step; `decision`, `result` and `started` are texts already."""
    return (
        f'{{"attempts":{attempts},"code":{optional_text(code)},"decision":{decision},'
        f'"error":{optional_text(error)},"index":{index},"outcome":"{outcome}","result":{result},'
        f'"seconds":{seconds!r},"started":{started}}}'
    )


def usage_text(usage: Usage | None) -> str:
    """Return the canonical text of what a decision consumed."""
    if usage is None:
        return "null"
    return (
        f'{{"cached_tokens":{usage.cached_tokens},"cost":{usage.cost!r},"tokens":{usage.tokens}}}'
    )


def decision_text(decision: Decision, payload: str) -> str:
    """Return the canonical text of a decision; `payload` is that of its arguments or answer."""
    return _decision_text(decision, payload, decision.extra_text)


def recorded_decision(decision: Decision, payload: str) -> str:
    """Return the same text as the trail holds it: with the digest of what it has extra."""
    return _decision_text(decision, payload, f'"{digest(decision.extra_text)}"')


def _decision_text(decision: Decision, payload: str, extra: str) -> str:
    repairs = encode(decision.repairs) if decision.repairs else "[]"
    middle = f'"reason":{quote(decision.reason)},"repairs":{repairs},'
    usage = usage_text(decision.usage)
    if decision.tool is None:
        return f'{{"answer":{payload},"extra":{extra},"kind":"finish",{middle}"usage":{usage}}}'
    return (
        f'{{"arguments":{payload},"extra":{extra},"kind":"act",{middle}'
        f'"tool":{quote(decision.tool)},"usage":{usage}}}'
    )


def saved_decision(decision: Decision) -> str:
    """Return the canonical text of a decision whose arguments or answer were admitted before."""
    payload = decision.arguments if decision.kind == "act" else decision.answer
    return decision_text(decision, encode(payload))


_DECISION = ("extra", "kind", "reason", "repairs", "usage")


def read_decision(saved: JSON) -> Decision:
    """Return the decision that `saved` holds, or raise `StateError`."""
    name = "saved decision"
    kind = saved.get("kind") if type(saved) is dict else None
    if kind == "act":
        fields = Fields(name, saved, ("arguments", *_DECISION, "tool"))
        arguments = fields.value("arguments")
        if arguments is not None and type(arguments) is not dict:
            raise fields.wrong("arguments", "must be an object or null")
        tool, answer = fields.text("tool"), None
    elif kind == "finish":
        fields = Fields(name, saved, ("answer", *_DECISION))
        tool, arguments, answer = None, None, fields.value("answer")
    else:
        raise StateError(f"{name}: kind must be 'act' or 'finish'")
    usage = fields.value("usage")
    if usage is not None:
        parts = Fields(f"{name}: usage", usage, ("cached_tokens", "cost", "tokens"))
        counts = parts.count("tokens"), parts.number("cost"), parts.count("cached_tokens")
        if counts[2] > counts[0]:
            raise parts.wrong("cached_tokens", "must be at most tokens")
        usage = Usage(*counts)
    try:
        extra = admit(fields.value("extra"), MAX_BYTES)[1]
    except InvalidValue as error:
        raise fields.wrong("extra", error.reason) from None
    reason, repairs = fields.text("reason") or "", fields.texts("repairs")
    try:
        return make_decision(kind, tool, arguments, answer, reason, usage, repairs, extra)
    except ValueError as error:
        raise StateError(f"{name}: {error}") from None
