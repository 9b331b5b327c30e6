"""The five gates.

Rules that hold here:

* every proposed call passes all of `GATES`, in their order, whenever it is about to start: when it
  is proposed, when its approval arrives and when it starts again after a crash;
* the first gate that says no decides, and no later one is asked;
* a gate reads and decides; it changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import NamedTuple, TypeAlias

from .account import Spent
from .answers import Answer, counted, why_late
from .approval import ApprovalRequest, action_digest, same_digest
from .children import MAX_DEPTH, Delegation, child_limits
from .influence import Influence
from .limits import Limits
from .policy import Policy
from .schema import Problem
from .signing import ApprovalKeys
from .state.head import OpenStep
from .state.marks import NO_MARKS, Marks
from .tools import Tool
from .toolset import Toolset
from .values import JSON, add_exactly, clean_text, digest, exact, quote

__all__ = [
    "GATES",
    "MAX_ATTEMPTS",
    "UNKNOWN",
    "Ask",
    "Denial",
    "Proposal",
    "Rules",
    "judge",
    "why_not_again",
]

MAX_ATTEMPTS = 3
"""How often one call is started in all."""

UNKNOWN = "; whether it took effect is unknown"

_MAX_PROBLEMS = 10


class Rules(NamedTuple):
    """What a session judges by."""

    tools: Toolset
    policy: Policy
    limits: Limits
    keys: ApprovalKeys | None = None  # what proves who answers
    notes: tuple[str, ...] = ()  # what else who is asked is told of each call
    depth: int = 0  # how many runs are above this one


class Denial(NamedTuple):
    """A gate's no."""

    gate: str
    code: str
    error: str


class Ask(NamedTuple):
    """The Approval gate's question: these rules want a person to decide."""

    reasons: tuple[str, ...]


@dataclass(slots=True)
class Proposal:
    """A call as the gates see it."""

    run_id: str
    step: int
    history: str  # digest of the record of the decision
    name: str
    arguments: dict[str, JSON] | None  # a strict copy, None if they are no JSON
    text: str  # their canonical text
    fault: str  # why there is no copy
    spent: Spent  # so far
    repeats: int  # how often the same was proposed directly before
    salt: str | None = None  # of the run, where its trail does not show all
    request: ApprovalRequest | None = None  # what a person was asked
    answers: Sequence[Answer] = ()  # to the request, or to this very action
    now: float = 0.0  # wall-clock time, where there is a request
    tool: Tool | None = None  # put in by Validation
    influence: Influence | None = None  # where the policy has a flow
    marks: Marks = NO_MARKS  # of the run
    _digest: str = ""

    def digest(self) -> str:
        """Return the digest of this action with the tool as it is now."""
        if not self._digest:
            assert self.tool is not None, "Validation finds the tool"
            text = self.text
            if self.salt is not None:  # or an argument could be guessed from the digest
                text = quote(digest(text, bytes.fromhex(self.salt)))
            self._digest = action_digest(self.run_id, self.step, self.tool, text, self.history)
        return self._digest

    def passed(self) -> tuple[Tool, dict[str, JSON]]:
        """Return the tool and the arguments of a call that passed Validation."""
        assert self.tool is not None, "Validation passed"
        assert self.arguments is not None, "Validation passed"
        return self.tool, self.arguments

    def ask(self, reasons: tuple[str, ...], time: float) -> ApprovalRequest:
        """Return the request that a person decide this action."""
        tool, arguments = self.passed()
        return ApprovalRequest(
            self.digest(),
            self.run_id,
            self.step,
            tool.name,
            arguments,
            tool.effect,
            tuple(sorted(tool.scopes)),
            reasons,
            self.history,
            time,
        )


Gate: TypeAlias = "Callable[[Proposal, Rules], Denial | Ask | None]"


def validation(proposal: Proposal, rules: Rules) -> Denial | None:
    """Ask whether the tool exists and the arguments match its schema."""
    tool = rules.tools.get(proposal.name)
    if tool is None:
        return Denial("validation", "unknown_tool", _unknown(proposal.name, rules.tools))
    proposal.tool = tool
    if proposal.arguments is None:
        return Denial("validation", "invalid_arguments", f"arguments{proposal.fault}")
    problems = tool.problems(proposal.arguments)
    return Denial("validation", "invalid_arguments", _told(problems)) if problems else None


def permissions(proposal: Proposal, rules: Rules) -> Denial | None:
    """Ask whether the policy allows the tool, its kind of effect and these arguments."""
    (tool, arguments), policy = proposal.passed(), rules.policy
    if not policy.allows_tool(tool.name):
        return Denial("permissions", "tool_denied", "the policy does not allow this tool")
    if tool.effect not in policy.allow_effects:
        return Denial(
            "permissions",
            "effect_denied",
            f"the policy does not allow effect {tool.effect.value!r}",
        )
    problems = policy.arguments.problems(tool.name, arguments)
    if problems:
        told = f"the policy's rule on the arguments of {tool.name!r}: {_told(problems)}"
        return Denial("permissions", "arguments_denied", told)
    return None


def scope(proposal: Proposal, rules: Rules) -> Denial | None:
    """Ask whether the policy grants every scope that the tool needs."""
    missing = _tool(proposal).scopes - rules.policy.granted_scopes
    if missing:
        told = ", ".join(repr(name) for name in sorted(missing))
        return Denial("scope", "scope_denied", f"the policy does not grant {told}")
    return None


def budget(proposal: Proposal, rules: Rules) -> Denial | None:
    """Ask whether one more call stays within the limits."""
    limits, spent, tool = rules.limits, proposal.spent, _tool(proposal)
    if limits.max_tool_calls is not None and spent.tool_calls >= limits.max_tool_calls:
        return Denial(
            "budget", "max_tool_calls", f"{spent.tool_calls} calls of {limits.max_tool_calls}"
        )
    if limits.max_cost is not None:
        cost = exact(tool.cost)
        if add_exactly(spent.cost, cost) > exact(limits.max_cost):
            return Denial(
                "budget",
                "max_cost",
                f"the call costs {float(cost)}; {float(spent.cost)} of {limits.max_cost} are spent",
            )
    if limits.max_repeats is not None and proposal.repeats > limits.max_repeats:
        return Denial(
            "budget", "max_repeats", f"the same call was proposed {proposal.repeats} times before"
        )
    if isinstance(tool, Delegation):
        if rules.depth >= MAX_DEPTH:
            told = f"{rules.depth} runs are above this one, and {MAX_DEPTH} is the most"
            return Denial("budget", "max_depth", told)
        left = child_limits(tool, limits, spent)
        if isinstance(left, str):
            return Denial("budget", left, "nothing is left of it for a run that is delegated to")
    return None


def approval(proposal: Proposal, rules: Rules) -> Denial | Ask | None:
    """Ask whether enough people approved this exact action in time, where something asks for that.

    Who was asked once must answer, even if nothing asks any more.
    """
    request, policy = proposal.request, rules.policy
    reasons = _reasons_to_ask(proposal, rules) if request is None else request.reasons
    if request is None and not reasons:
        return None
    wanted = proposal.digest() if request is None else request.digest
    granted = set()
    for answer in counted(proposal.answers, wanted, policy, rules.keys):
        said = answer.approval
        late = None if request is None else why_late(answer.received_at, request, policy)
        if late is not None:
            return Denial("approval", "approval_expired", f"the answer came too late: {late}")
        if said.granted is not True:
            reason = f": {said.reason}" if said.reason else ""
            error = clean_text(f"a person refused this call{reason}")
            return Denial("approval", "approval_denied", error)
        granted.add(said.approver)
    if len(granted) < policy.approvals_needed:
        late = None if request is None else why_late(proposal.now, request, policy)
        if request is not None and late is not None and proposal.now > request.requested_at:
            told = f"{len(granted)} of {policy.approvals_needed} approvals came in time: {late}"
            return Denial("approval", "approval_expired", told)
        return Ask(reasons)
    if not same_digest(wanted, proposal.digest()):
        return Denial(
            "approval",
            "approval_stale",
            "the action changed since it was approved; propose it again",
        )
    return None


def _reasons_to_ask(proposal: Proposal, rules: Rules) -> tuple[str, ...]:
    """Return why a person must decide, from all that may ask; empty where nothing does."""
    policy = rules.policy
    reasons = policy.reasons_to_ask(*proposal.passed())
    if proposal.influence is not None:
        reasons += proposal.influence.reasons(*proposal.passed(), proposal.marks)
    may = policy.approvals_needed if policy.approvers is None else len(policy.approvers)
    if reasons and may < policy.approvals_needed:
        told = f"too few approvers: {policy.approvals_needed} needed, {may} named"
        reasons = (*reasons, told)
    return (*rules.notes, *reasons) if reasons else ()


GATES: tuple[tuple[str, Gate], ...] = (
    ("validation", validation),
    ("permissions", permissions),
    ("scope", scope),
    ("budget", budget),
    ("approval", approval),
)
"""The gates by name, in the order in which each call passes them."""


def judge(proposal: Proposal, rules: Rules) -> Denial | Ask | None:
    """Return the first verdict that is not a yes; None when all gates passed."""
    for _, gate in GATES:
        verdict = gate(proposal, rules)
        if verdict is not None:
            return verdict
    return None


def why_not_again(saved: OpenStep, proposal: Proposal, tools: Toolset) -> str | None:
    """Return why a call that was cut off does not start again; None if it may, through all gates.

    Parameters
    ----------
    saved : OpenStep
        The call as it was saved.
    proposal : Proposal
        The same call with the tool as it is now, which is put in here.
    tools : Toolset
        The tools as they are now.
    """
    tool = proposal.tool = tools.get(proposal.name)
    if saved.attempt >= MAX_ATTEMPTS:
        return f"the call was cut off {saved.attempt} times{UNKNOWN}"
    if tool is None:
        return f"the call was cut off and its tool is gone{UNKNOWN}"
    if not tool.idempotent:
        return f"the call was cut off and is not idempotent{UNKNOWN}"
    if saved.digest is None or not same_digest(proposal.digest(), saved.digest):
        return f"the call was cut off and its tool changed since{UNKNOWN}"
    return None


def _tool(proposal: Proposal) -> Tool:
    assert proposal.tool is not None, "Validation comes first"
    return proposal.tool


def _told(problems: Sequence[Problem]) -> str:
    told = "; ".join(str(problem) for problem in problems[:_MAX_PROBLEMS])
    more = len(problems) - _MAX_PROBLEMS
    return clean_text(f"{told}; and {more} more" if more > 0 else told)


def _unknown(name: str, tools: Toolset) -> str:
    known = [tool.name for tool in tools]
    if not known:
        return "there is no tool of this name; there are none at all"
    near = get_close_matches(name, known, 1)
    if near:
        return f"there is no tool of this name; did you mean {near[0]!r}?"
    more = f" and {len(known) - 20} more" if len(known) > 20 else ""
    return f"there is no tool of this name; there are {', '.join(known[:20])}{more}"
