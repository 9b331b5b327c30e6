"""Policy and limits: what an agent may do, and how much of it.

Imports `tools` and `values`. Both are values: they check themselves when made and never change.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields

from .tools import Tool, ToolEffect
from .values import JSON, check_amount, check_names, type_name

__all__ = ["Limits", "Policy"]


def _effects(argument: str, values: object) -> frozenset[ToolEffect]:
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise TypeError(f"{argument} must be an iterable of effects, not {type_name(values)}")
    return frozenset(ToolEffect.of(f"an item of {argument}", value) for value in values)


@dataclass(frozen=True, slots=True, init=False)
class Policy:
    """What an agent may do: least privilege unless it says otherwise.

    Parameters
    ----------
    allow_effects : iterable of ToolEffect or str, default=("read",)
        Kinds of effect that tools may have.
    granted_scopes : iterable of str, default=()
        Scopes that the agent holds; a tool runs only if it needs no other.
    allow_tools : iterable of str or None, default=None
        The only tools that may run; None is any tool that the other rules allow.
    deny_tools : iterable of str, default=()
        Tools that never run, whatever else allows them.
    approval_effects : iterable of ToolEffect or str, default=("write", "external")
        Kinds of effect of which each call needs a person's approval.
    approval_tools : iterable of str, default=()
        Tools of which each call needs approval, whatever their effect.

    Raises
    ------
    TypeError, ValueError
        If a field is not an iterable of the right kind.

    Examples
    --------
    >>> from scikitplot.agent import Policy
    >>> policy = Policy(allow_effects=["read", "write"], granted_scopes={"notes"})
    >>> policy.allows_effect("external"), policy.needs_approval_for("write")
    (False, True)
    """

    allow_effects: frozenset[ToolEffect]
    granted_scopes: frozenset[str]
    allow_tools: frozenset[str] | None
    deny_tools: frozenset[str]
    approval_effects: frozenset[ToolEffect]
    approval_tools: frozenset[str]

    def __init__(
        self,
        allow_effects: Iterable[ToolEffect | str] = (ToolEffect.READ,),
        granted_scopes: Iterable[str] = (),
        allow_tools: Iterable[str] | None = None,
        deny_tools: Iterable[str] = (),
        approval_effects: Iterable[ToolEffect | str] = (ToolEffect.WRITE, ToolEffect.EXTERNAL),
        approval_tools: Iterable[str] = (),
    ) -> None:
        put = object.__setattr__
        put(self, "allow_effects", _effects("allow_effects", allow_effects))
        put(self, "granted_scopes", check_names("granted_scopes", granted_scopes))
        only = None if allow_tools is None else check_names("allow_tools", allow_tools)
        put(self, "allow_tools", only)
        put(self, "deny_tools", check_names("deny_tools", deny_tools))
        put(self, "approval_effects", _effects("approval_effects", approval_effects))
        put(self, "approval_tools", check_names("approval_tools", approval_tools))

    def allows_tool(self, name: str) -> bool:
        """Return whether a tool of this name may run, its effect and scopes aside.

        Examples
        --------
        >>> from scikitplot.agent import Policy
        >>> Policy(allow_tools=["search"]).allows_tool("read")
        False
        """
        if name in self.deny_tools:
            return False
        return self.allow_tools is None or name in self.allow_tools

    def allows_effect(self, effect: ToolEffect | str) -> bool:
        """Return whether the policy allows `effect`."""
        return ToolEffect.of("effect", effect) in self.allow_effects

    def needs_approval_for(self, effect: ToolEffect | str) -> bool:
        """Return whether each call with `effect` needs a person's approval."""
        return ToolEffect.of("effect", effect) in self.approval_effects

    def reasons_to_ask(self, tool: Tool) -> tuple[str, ...]:
        """Return the rules that ask a person before a call of `tool`, empty when none does.

        Examples
        --------
        >>> from scikitplot.agent import Policy, Tool
        >>> Policy(approval_tools=["read"]).reasons_to_ask(Tool("read", lambda: ""))
        ("tool 'read' needs approval",)
        """
        if tool.effect not in self.approval_effects and tool.name not in self.approval_tools:
            return ()
        reasons = []
        if tool.effect in self.approval_effects:
            reasons.append(f"effect {tool.effect.value!r} needs approval")
        if tool.name in self.approval_tools:
            reasons.append(f"tool {tool.name!r} needs approval")
        return tuple(reasons)

    def to_dict(self) -> dict[str, JSON]:
        """Return a JSON-compatible mapping, every set sorted.

        Examples
        --------
        >>> from scikitplot.agent import Policy
        >>> Policy().to_dict()["approval_effects"]
        ['external', 'write']
        """
        return {
            "allow_effects": sorted(effect.value for effect in self.allow_effects),
            "granted_scopes": sorted(self.granted_scopes),
            "allow_tools": None if self.allow_tools is None else sorted(self.allow_tools),
            "deny_tools": sorted(self.deny_tools),
            "approval_effects": sorted(effect.value for effect in self.approval_effects),
            "approval_tools": sorted(self.approval_tools),
        }


@dataclass(frozen=True, slots=True)
class Limits:
    """What ends a run. Each limit is checked before the call that it bounds.

    Parameters
    ----------
    max_steps : int, default=16
        Decisions, denied ones too, over all sessions of the run. At least 1.
    max_tool_calls : int or None, default=None
        Calls that are started; one more is denied at the Budget gate.
    max_cost : float or None, default=None
        Sum of `Tool.cost` of the started calls and of the cost that the planner reports, compared
        exactly as decimals. A call that would pass it is denied; at or past it the run stops.
    max_tokens : int or None, default=None
        Tokens that the planner reports. At or past it the run stops; a planner that does not
        report them fails the run.
    max_seconds : float or None, default=None
        Running time over all sessions; time spent waiting for a person does not count.
    max_repeats : int or None, default=None
        How often the same tool may be proposed again in a row with the same arguments. One
        repetition more is denied and stops the run.
    max_result_bytes : int, default=1000000
        The most bytes of JSON that one call may return, at most 10,000,000.

    Raises
    ------
    TypeError, ValueError
        If a limit is of the wrong type (a bool is no number), negative, NaN or infinite.

    Examples
    --------
    >>> from scikitplot.agent import Limits
    >>> Limits(max_steps=4, max_cost=0.3).max_cost
    0.3
    """

    max_steps: int = 16
    max_tool_calls: int | None = None
    max_cost: float | None = None
    max_tokens: int | None = None
    max_seconds: float | None = None
    max_repeats: int | None = field(default=None, kw_only=True)
    max_result_bytes: int = field(default=1_000_000, kw_only=True)

    def __post_init__(self) -> None:
        for name, least, most in _COUNTS:
            value = getattr(self, name)
            if value is None and name not in ("max_steps", "max_result_bytes"):
                continue
            if type(value) is not int:
                raise TypeError(f"{name} must be an int, not {type_name(value)}")
            if not least <= value <= most:
                raise ValueError(f"{name} must be at least {least} and at most {most}")
        for name in ("max_cost", "max_seconds"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, check_amount(name, value))

    def to_dict(self) -> dict[str, JSON]:
        """Return a JSON-compatible mapping of all limits, None where there is none.

        Examples
        --------
        >>> from scikitplot.agent import Limits
        >>> Limits().to_dict()["max_steps"]
        16
        """
        return {limit.name: getattr(self, limit.name) for limit in fields(self)}


_MANY = 2**62
_COUNTS = (
    ("max_steps", 1, _MANY),
    ("max_tool_calls", 0, _MANY),
    ("max_tokens", 0, _MANY),
    ("max_repeats", 0, _MANY),
    ("max_result_bytes", 1, 10_000_000),
)
