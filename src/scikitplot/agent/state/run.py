"""The state of a run, as it is handed out."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from ..approval import ApprovalRequest
from ..audit import AuditHead, AuditRecord, DamagedLine
from ..errors import StateError
from ..redaction import Disclosure, argument_pointer, disclose
from ..values import JSON, MAX_NESTING, InvalidValue, admit, encode, type_name
from ..views import Shown, View
from .fields import MAX_SAVED, read_json
from .head import OpenStep, check_steps, read_head
from .status import RunStatus, RunUsage
from .step import Step
from .steps import Steps
from .timeline import timeline_of

__all__ = ["InFlight", "RunState"]

_MOST = 50  # steps that are shown of a run, the last ones


class InFlight(NamedTuple):
    """A call that was started and of which the outcome is not known yet.

    Attributes
    ----------
    step : int
        Index of its step.
    tool : str
        Name of the tool.
    arguments : dict
        Its arguments.
    attempt : int
        1, or up to 3.
    digest : str
        Digest of the action, the tool's ``idempotency_key``.
    """

    step: int
    tool: str
    arguments: dict[str, JSON]
    attempt: int
    digest: str


def _in_flight(step: OpenStep) -> InFlight | None:
    decision = step.decision
    if step.request is not None or decision.tool is None or step.digest is None:
        return None
    return InFlight(step.step, decision.tool, decision.arguments or {}, step.attempt, step.digest)


class RunState(Shown):
    """The state of a run, as it was saved last.

    A planner, a ``done`` criterion and the caller of `Agent.run` each get one of their own. It is
    not made by hand: `from_json` and `from_dict` read a saved one back.

    Attributes
    ----------
    run_id : str
        64 hexadecimal digits.
    goal : str
        What the run is for.
    status : RunStatus
        Where it stands.
    stop_reason : str or None
        The limit that stopped it, or the code of its failure.
    answer : JSON
        The accepted answer; None before there is one.
    error : str or None
        A failure in words.
    steps : list of Step
        Its finished steps.
    usage : RunUsage
        What it has used up.
    pending : ApprovalRequest or None
        What it waits for, which may be a call of a run that it delegated to (`delegate`).
    in_flight : InFlight or None
        The call that was started and has no outcome yet.
    revision : int
        Number of the commit that saved this state, from 0.
    audit_head : AuditHead
        Number and digest of the last record of its trail.
    parent : tuple of (str, int), or None
        Run id and step of the run that started this one.
    tainted : bool
        Whether the run has read untrusted content, or its goal is that. It stays so.

    Examples
    --------
    >>> from scikitplot.agent import Agent, Decision, RunState
    >>> state = Agent([], lambda state, tools: Decision.finish([1])).run("list one")
    >>> state.answer, state.usage.decisions, RunState.from_json(state.to_json()) == state
    ([1], 1, True)
    """

    __slots__ = (
        "_head",
        "answer",
        "audit_head",
        "error",
        "goal",
        "in_flight",
        "parent",
        "pending",
        "revision",
        "run_id",
        "status",
        "steps",
        "stop_reason",
        "tainted",
        "usage",
    )

    _head: str
    run_id: str
    goal: str
    status: RunStatus
    stop_reason: str | None
    answer: JSON
    error: str | None
    steps: Steps
    usage: RunUsage
    pending: ApprovalRequest | None
    in_flight: InFlight | None
    revision: int
    audit_head: AuditHead
    parent: tuple[str, int] | None
    tainted: bool

    def __init__(self) -> None:
        raise TypeError("a RunState comes from Agent.run, Agent.resume, from_json or from_dict")

    @classmethod
    def view(cls, head: str, steps: Sequence[str]) -> RunState:
        """Return the state of a head and the steps that were saved with it, nothing read yet."""
        state = object.__new__(cls)
        state._head = head
        state.steps = Steps(steps)
        return state

    def __getattr__(self, name: str) -> Any:
        # Reached only where a slot is empty: the head has not been read yet.
        if name not in RunState.__slots__ or name in ("_head", "steps"):
            raise AttributeError(f"a RunState has no attribute {name!r}")
        head = read_head(self._head)
        step = head.open
        values = {
            "run_id": head.run_id,
            "goal": head.goal,
            "status": head.status,
            "stop_reason": head.stop_reason,
            "answer": head.answer,
            "error": head.error,
            "usage": head.usage,
            "pending": None if step is None else step.request,
            "in_flight": None if step is None else _in_flight(step),
            "revision": head.revision,
            "audit_head": head.audit_head,
            "parent": head.parent,
            "tainted": head.marks.tainted is not None,
        }
        for field, value in values.items():
            try:
                object.__getattribute__(self, field)
            except AttributeError:
                object.__setattr__(self, field, value)
        return object.__getattribute__(self, name)

    def observations(self) -> list[dict[str, JSON]]:
        """Return the steps as plain JSON, ready for a prompt.

        Returns
        -------
        list of dict
            For each step ``step``, ``kind``, ``tool`` and ``arguments`` (or ``answer``),
            ``outcome``, ``result``, ``code`` and ``error``.

        Examples
        --------
        >>> from scikitplot.agent import Agent, Decision, Tool
        >>> def planner(state, tools):
        ...     if not state.steps:
        ...         return Decision.act("ping")
        ...     return Decision.finish(state.observations())
        >>> Agent([Tool("ping", lambda: "pong")], planner).run("ping").answer[0]["result"]
        'pong'
        """
        return [step.observation() for step in self.steps]

    def timeline(
        self, records: Iterable[AuditRecord | DamagedLine] | None = None, *, since: int = 0
    ) -> View:
        """Return what happened, to be shown: each step, what the gates said and what came of it.

        Parameters
        ----------
        records : iterable of AuditRecord or None, default=None
            The run's whole trail, which tells what each gate said and who was asked; records of
            other runs are passed over. None tells of the gates what the codes of the steps tell.
        since : int, default=0
            Index of the first step to show.

        Returns
        -------
        View
            A picture in a notebook; ``print()`` shows it as text.

        Examples
        --------
        >>> from scikitplot.agent import Agent, Decision, Limits
        >>> agent = Agent([], lambda state, tools: Decision.act("fly"), limits=Limits(max_steps=1))
        >>> print(agent.run("fly home").timeline(agent.audit.records))
        Run ...: "fly home"
        <BLANKLINE>
          0 call fly: {}
            Validation denied; Permissions, Scope, Budget, Approval not reached
            denied (unknown_tool), cost 0.0, ... s
            error: "there is no tool of this name; there are none at all"
        <BLANKLINE>
          stopped (max_steps): 1 decision, 0 calls, cost 0.0, 0 tokens, ... s
        """
        return View(timeline_of(self, records, since, None))

    def _view(self) -> View:
        timeline = timeline_of(self, None, 0, _MOST)
        asked = self.pending
        return View(timeline) if asked is None else View(timeline, *asked.blocks())

    def disclose(self, step: int, argument: str | None = None) -> Disclosure:
        """Return a value that the trail does not show, with what proves it.

        Parameters
        ----------
        step : int
            Index of the step.
        argument : str or None, default=None
            Name of the argument; None for the result of a call, and for an answer.

        Returns
        -------
        Disclosure
            The value and its own salt; of the other values it tells nothing.

        Raises
        ------
        ValueError, LookupError
            If nothing of the run was redacted, or there is no such step or argument.
        """
        salt = read_head(self._head).salt
        if salt is None:
            raise ValueError("nothing of the run was redacted; its trail shows all")
        done = self.steps[step]
        if argument is None:
            pointer, value = "/result", done.result
            if done.decision.kind == "finish":
                pointer, value = "/decision/answer", done.decision.answer
        else:
            arguments = done.decision.arguments or {}
            if argument not in arguments:
                raise LookupError(f"step {done.index} has no argument of this name")
            pointer, value = argument_pointer(argument), arguments[argument]
        return disclose(self.run_id, salt, done.index, pointer, value)

    def to_json(self) -> str:
        """Return the saved form as text."""
        return f'{self._head[:-1]},"steps":[{",".join(self.steps.texts())}]}}'

    def to_dict(self) -> dict[str, JSON]:
        """Return the saved form as JSON."""
        saved: dict[str, JSON] = json.loads(self.to_json())
        return saved

    def parts(self) -> tuple[str, list[str]]:
        """Return the saved head and the saved steps, as a store holds them."""
        return self._head, self.steps.texts()

    @classmethod
    def from_json(cls, text: str) -> RunState:
        """Return the state that `text` saves.

        Parameters
        ----------
        text : str
            What `to_json` gave.

        Raises
        ------
        StateError
            If it is no saved state, or one of a newer version; the message names the field.
        """
        return cls.from_dict(read_json("saved state", text))

    @classmethod
    def from_dict(cls, saved: dict[str, JSON]) -> RunState:
        """Return the state that `saved` holds.

        Parameters
        ----------
        saved : dict
            What `to_dict` gave.

        Raises
        ------
        StateError
            If it is no saved state, or one of a newer version; the message names the field.
        """
        try:
            copy = admit(saved, MAX_SAVED, max_depth=MAX_NESTING)[0]
        except InvalidValue as error:
            raise StateError(f"saved state{error.pointer}: {error.reason}") from None
        if type(copy) is not dict:
            raise StateError(f"saved state must be an object, not {type_name(saved)}")
        steps = copy.pop("steps", None)
        head = encode(copy)
        read = read_head(head)
        if type(steps) is not list:
            raise StateError("saved state: steps must be a list")
        texts = []
        for index, item in enumerate(steps):
            step = Step.from_dict(item)
            if step.index != index:
                raise StateError(f"saved state: step {index} has the index of another")
            texts.append(step.to_json())
        check_steps(read, len(texts))
        return cls.view(head, texts)

    def __eq__(self, other: object) -> bool:
        return self.parts() == other.parts() if isinstance(other, RunState) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        reason = f" ({self.stop_reason})" if self.stop_reason else ""
        count = len(self.steps)
        steps = f"{count} step{'' if count == 1 else 's'}"
        return f"<RunState {self.run_id[:12]}: {self.status.value}{reason}, {steps}>"
