"""Decisions: what a planner proposes, and what it spent on it.

Imports `values`. A decision checks the types of its fields when it is
made. What its arguments and its answer hold is judged by the runtime, so that a planner that
proposes nonsense gets a denial to read and not an exception to handle.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from .values import JSON, InvalidValue, admit, check_amount, check_text, type_name

__all__ = ["Decision", "Usage", "make_decision"]

_MAX_TOKENS = 2**63 - 1
_MAX_TOOL_NAME = 256
_MAX_REPAIRS = 16
_MAX_REPAIR = 200


@dataclass(frozen=True, slots=True)
class Usage:
    """What one decision consumed.

    Parameters
    ----------
    tokens : int, default=0
        Tokens in and out, at least 0.
    cost : float, default=0.0
        In the unit of `Limits.max_cost`, finite and at least 0.
    cached_tokens : int, default=0
        How many of `tokens` the provider read from its cache of prompts.

    Raises
    ------
    TypeError, ValueError
        If a field is of the wrong type (a bool is no number), negative, NaN or infinite, or more
        tokens are cached than there are.

    Examples
    --------
    >>> from scikitplot.agent import Usage
    >>> Usage(tokens=120, cost=0.002)
    Usage(tokens=120, cost=0.002, cached_tokens=0)
    """

    tokens: int = 0
    cost: float = 0.0
    cached_tokens: int = 0

    def __post_init__(self) -> None:
        for name, count in (("tokens", self.tokens), ("cached_tokens", self.cached_tokens)):
            if type(count) is not int:
                raise TypeError(f"{name} must be an int, not {type_name(count)}")
            if not 0 <= count <= _MAX_TOKENS:
                raise ValueError(f"{name} must be at least 0 and less than 2**63")
        if self.cached_tokens > self.tokens:
            raise ValueError("cached_tokens must be at most tokens, of which they are a part")
        object.__setattr__(self, "cost", check_amount("cost", self.cost))


@dataclass(frozen=True, slots=True, init=False)
class Decision:
    """One proposed step: call a tool, or finish. Made by `act` and `finish`.

    Attributes
    ----------
    kind : str
        ``"act"`` or ``"finish"``.
    tool : str or None
        Name of the tool to call.
    arguments : dict or None
        Its arguments. None in a finish, and in a saved step whose arguments were no JSON values
        and so could not be kept.
    answer : JSON
        The answer of a finish.
    reason : str
        Why, in the planner's words.
    usage : Usage or None
        What the decision consumed, None where the planner did not report it.
    repairs : tuple of str
        What a planner mended to read the decision out of a model's reply, in its words.
    extra_text : str
        Canonical JSON text of `extra`.

    Examples
    --------
    >>> from scikitplot.agent import Decision
    >>> Decision.act("search", {"query": "yield"})
    Decision.act('search', {'query': 'yield'})
    >>> Decision.finish("done").kind
    'finish'
    """

    kind: str
    tool: str | None
    arguments: dict[str, JSON] | None
    answer: JSON
    reason: str
    usage: Usage | None
    repairs: tuple[str, ...]
    extra_text: str

    def __init__(self) -> None:
        raise TypeError("make a decision with Decision.act(...) or Decision.finish(...)")

    @classmethod
    def act(
        cls,
        tool: str,
        arguments: Mapping[str, JSON] | None = None,
        *,
        reason: str = "",
        usage: Usage | None = None,
        repairs: Iterable[str] = (),
        extra: JSON = None,
    ) -> Decision:
        """Propose to call a tool.

        Parameters
        ----------
        tool : str
            Its name.
        arguments : mapping or None, default=None
            JSON values by argument name; None means no arguments. What does not fit the tool's
            schema is denied when the decision is judged, not refused here.
        reason : str, default=""
            Why; kept in the trail.
        usage : Usage or None, default=None
            What the decision consumed; required of a planner when `Limits.max_tokens` is set.
        repairs : iterable of str, default=()
            What was mended to read the decision, at most 16 texts of at most 200 characters; saved
            and recorded.
        extra : JSON, default=None
            What the planner needs back with this step, in whichever process the run goes on: any
            JSON value of at most 1,000,000 bytes. It is saved; the trail holds its digest alone.

        Returns
        -------
        Decision

        Raises
        ------
        TypeError, ValueError
            If an argument is of the wrong type or too large, or cannot be written.
        """
        check_text("tool", tool, _MAX_TOOL_NAME)
        if arguments is None:
            arguments = {}
        elif not isinstance(arguments, Mapping):
            raise TypeError(f"arguments must be a mapping or None, not {type_name(arguments)}")
        extra_text = _admit_extra(extra)
        return make_decision("act", tool, dict(arguments), None, reason, usage, repairs, extra_text)

    @classmethod
    def finish(
        cls,
        answer: JSON,
        *,
        reason: str = "",
        usage: Usage | None = None,
        repairs: Iterable[str] = (),
        extra: JSON = None,
    ) -> Decision:
        """Propose to end the run with an answer.

        Parameters
        ----------
        answer : JSON
            Any JSON value of at most 1,000,000 bytes.
        reason : str, default=""
            Why; kept in the trail.
        usage : Usage or None, default=None
            What the decision consumed.
        repairs : iterable of str, default=()
            What was mended to read the decision, as in `act`.
        extra : JSON, default=None
            What the planner needs back with this step, as in `act`.

        Returns
        -------
        Decision

        Raises
        ------
        TypeError, ValueError
            If an argument but `answer` is of the wrong type or too large, or cannot be written.
        """
        extra_text = _admit_extra(extra)
        return make_decision("finish", None, None, answer, reason, usage, repairs, extra_text)

    @property
    def extra(self) -> JSON:
        """A new copy of what the planner needs back with this step."""
        return json.loads(self.extra_text)

    def __repr__(self) -> str:
        if self.kind == "act":
            return f"Decision.act({self.tool!r}, {self.arguments!r})"
        return f"Decision.finish({self.answer!r})"


def make_decision(
    kind: str,
    tool: str | None,
    arguments: dict[str, Any] | None,
    answer: JSON,
    reason: str,
    usage: Usage | None,
    repairs: Iterable[str] = (),
    extra_text: str = "null",
) -> Decision:
    """Return a decision; one that was saved, whose arguments may be None, is made here too."""
    check_text("reason", reason)
    if usage is not None and type(usage) is not Usage:
        raise TypeError(f"usage must be a Usage or None, not {type_name(usage)}")
    if repairs != ():
        repairs = _check_repairs(repairs)
    decision = object.__new__(Decision)
    put = object.__setattr__
    put(decision, "kind", kind)
    put(decision, "tool", tool)
    put(decision, "arguments", arguments)
    put(decision, "answer", answer)
    put(decision, "reason", reason)
    put(decision, "usage", usage)
    put(decision, "repairs", repairs)
    put(decision, "extra_text", extra_text)
    return decision


def _check_repairs(repairs: object) -> tuple[str, ...]:
    if isinstance(repairs, (str, bytes)) or not isinstance(repairs, Iterable):
        raise TypeError(f"repairs must be an iterable of str, not {type_name(repairs)}")
    checked: list[str] = []
    for repair in repairs:
        if len(checked) == _MAX_REPAIRS:
            raise ValueError(f"repairs must hold at most {_MAX_REPAIRS} texts")
        checked.append(check_text("an item of repairs", repair, _MAX_REPAIR))
    return tuple(checked)


def _admit_extra(extra: object) -> str:
    if extra is None:
        return "null"
    try:
        return admit(extra)[1]
    except InvalidValue as error:
        raise ValueError(f"extra{error.pointer}: {error.reason}") from None
