"""Approvals: what a person is asked, what the person says, and the digest that binds the two.

Imports `tools`, `values` and `views`. The rule that holds here: an approval names one digest, and
the digest covers the run, the step, the tool as it is defined, the arguments, and the history of
the run up to the request. Whatever changes among these, the approval authorises nothing.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timezone

from .tools import Tool, ToolEffect
from .values import JSON, check_text, check_type, digest, type_name
from .views import Block, Fields, Heading, Shown, Values, View

__all__ = [
    "Approval",
    "ApprovalRequest",
    "action_digest",
    "agreed_answers_to",
    "check_approvals",
    "check_run_id",
    "is_digest",
    "same_digest",
]

_DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)


def is_digest(value: object) -> bool:
    """Return whether `value` is 64 lower-case hexadecimal digits, as run ids and digests are."""
    return type(value) is str and _DIGEST.fullmatch(value) is not None


def same_digest(one: str, other: str) -> bool:
    """Return whether two digests are the same, compared in constant time."""
    return hmac.compare_digest(one, other)


def check_run_id(run_id: object) -> str:
    """Return a run id that is one, or raise an error."""
    if type(run_id) is not str:
        raise TypeError(f"run_id must be a str, not {type_name(run_id)}")
    if not is_digest(run_id):
        raise ValueError("run_id must be 64 lower-case hexadecimal digits")
    return run_id


def action_digest(run_id: str, step: int, tool: Tool, arguments: str, history: str) -> str:
    """Return the digest that names one exact action.

    Parameters
    ----------
    run_id, history : str
        The run, and the digest of the record of its decision, which covers all that came before.
    step : int
        Index of the step.
    tool : Tool
        The tool as it is defined now.
    arguments : str
        Canonical text of the validated arguments, or what stands for it where they are salted.
    """
    return digest(
        f'{{"arguments":{arguments},"definition":"{tool.digest}","effect":"{tool.effect.value}",'
        f'"history":"{history}","run_id":"{run_id}","scopes":{tool.scopes_text},'
        f'"step":{step},"tool":"{tool.name}"}}'
    )


_REQUEST = (
    ("step", int),
    ("tool", str),
    ("arguments", dict),
    ("effect", ToolEffect),
    ("scopes", tuple),
    ("reasons", tuple),
    ("requested_at", float),
)


@dataclass(frozen=True, slots=True)
class ApprovalRequest(Shown):
    """What a person must decide: one exact action, and why it needs a person.

    Attributes
    ----------
    digest : str
        Names the action; an `Approval` repeats it.
    run_id : str
        The run.
    step : int
        Index of the step.
    tool : str
        Name of the tool.
    arguments : dict
        A copy of the exact arguments.
    effect : ToolEffect
        The tool's effect.
    scopes : tuple of str
        The tool's scopes, sorted.
    reasons : tuple of str
        The rules that ask.
    history : str
        Digest of the trail's record of the decision.
    requested_at : float
        Wall-clock time of the request, in seconds since the epoch.

    Examples
    --------
    >>> from scikitplot.agent import Agent, Decision, Policy, Tool
    >>> agent = Agent([Tool("save", lambda: "saved", effect="write")],
    ...               lambda state, tools: Decision.act("save"),
    ...               policy=Policy(allow_effects={"write"}))
    >>> request = agent.run("save").pending
    >>> request.tool, request.arguments, request.reasons
    ('save', {}, ("effect 'write' needs approval",))
    >>> print(request.to_text())
    A call waits for a person
      tool       save
      effect     write
      scopes     none
      because    effect 'write' needs approval
      run        ..., step 0, asked on ... UTC
      follows    the decision with the record ...
      digest     ...
      arguments  none
    """

    digest: str
    run_id: str
    step: int
    tool: str
    arguments: dict[str, JSON]
    effect: ToolEffect
    scopes: tuple[str, ...]
    reasons: tuple[str, ...]
    history: str
    requested_at: float

    def __post_init__(self) -> None:
        for name in ("digest", "run_id", "history"):
            if not is_digest(getattr(self, name)):
                raise ValueError(f"{name} must be 64 lower-case hexadecimal digits")
        for name, kind in _REQUEST:
            check_type(name, getattr(self, name), kind)

    def to_dict(self) -> dict[str, JSON]:
        """Return the request as JSON, to be shown or sent to the person who decides."""
        return {
            "digest": self.digest,
            "run_id": self.run_id,
            "step": self.step,
            "tool": self.tool,
            "arguments": self.arguments,
            "effect": self.effect.value,
            "scopes": list(self.scopes),
            "reasons": list(self.reasons),
            "history": self.history,
            "requested_at": self.requested_at,
        }

    def blocks(self) -> list[Block]:
        """Return what a view shows of it; nothing is cut."""
        asked = f"step {self.step}, asked on {_date(self.requested_at)}"
        facts = [
            ("tool", self.tool),
            ("effect", self.effect.value),
            ("scopes", ", ".join(self.scopes) or "none"),
            ("because", "; ".join(self.reasons)),
            ("run", f"{self.run_id[:12]}, {asked}"),
            ("follows", f"the decision with the record {self.history[:12]}"),
            ("digest", self.digest),
        ]
        title = Heading("A call waits for a person")
        return [title, Fields(facts), Values("arguments", self.arguments)]

    def _view(self) -> View:
        return View(*self.blocks())


def _date(seconds: float) -> str:
    try:
        return f"{datetime.fromtimestamp(seconds, timezone.utc):%Y-%m-%d at %H:%M:%S} UTC"
    except (ValueError, OverflowError, OSError):
        return f"second {seconds}"


@dataclass(frozen=True, slots=True)
class Approval:
    """An answer to an `ApprovalRequest`.

    Parameters
    ----------
    digest : str
        The request's digest.
    granted : bool
        True runs the action once; False refuses it.
    approver : str
        Who says so. Without a signature nothing here proves it, and the record says so.
    reason : str, default=""
        Why; the planner reads the reason of a refusal.
    signature : str or None, default=None
        What `sign_approval` adds: 64 hexadecimal digits.

    Raises
    ------
    TypeError, ValueError
        If a field is of the wrong type or value; `granted` is a bool and nothing else.

    Examples
    --------
    >>> from scikitplot.agent import Approval
    >>> Approval("ab" * 32, granted=False, approver="ann", reason="not on a Friday").granted
    False
    """

    digest: str
    granted: bool
    approver: str
    reason: str = field(default="", kw_only=True)
    signature: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if type(self.digest) is not str:
            raise TypeError(f"digest must be a str, not {type_name(self.digest)}")
        if not is_digest(self.digest):
            raise ValueError("digest must be 64 lower-case hexadecimal digits, as the request has")
        if type(self.granted) is not bool:
            raise TypeError(f"granted must be True or False, not a {type_name(self.granted)}")
        if not check_text("approver", self.approver, 1_000):
            raise ValueError("approver is empty; name who answers")
        check_text("reason", self.reason)
        check_type("signature", self.signature, str, type(None))
        if self.signature is not None and not is_digest(self.signature):
            raise ValueError("signature must be 64 lower-case hexadecimal digits")

    def to_dict(self) -> dict[str, JSON]:
        """Return the answer as JSON."""
        return {
            "digest": self.digest,
            "granted": self.granted,
            "approver": self.approver,
            "reason": self.reason,
            "signature": self.signature,
        }


def check_approvals(approvals: object) -> list[Approval]:
    """Return the approvals that were handed in, or raise an error that names the argument."""
    if isinstance(approvals, (str, bytes, Approval)) or not isinstance(approvals, Iterable):
        raise TypeError(f"approvals must be an iterable of Approval, not {type_name(approvals)}")
    checked = []
    for approval in approvals:
        if type(approval) is not Approval:
            raise TypeError(f"approvals must hold Approval objects, not {type_name(approval)}")
        checked.append(approval)
    return checked


def agreed_answers_to(wanted: str, answers: Iterable[Approval]) -> list[Approval]:
    """Return the answers to the request of digest `wanted`.

    Raises
    ------
    ValueError
        If two of them disagree.
    """
    found = [answer for answer in answers if same_digest(answer.digest, wanted)]
    if len({answer.granted for answer in found}) > 1:
        raise ValueError("approvals: two answers to one request disagree; pass the one that holds")
    return found
