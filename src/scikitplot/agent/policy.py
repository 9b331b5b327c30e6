"""Policies: what an agent may do.

Imports `flow`, `rules`, `tools`, `values` and `views`. A policy is a value: it checks itself when
made and never changes.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from difflib import get_close_matches

from .flow import Flow
from .policy_file import read_policy_file
from .policy_view import view_of
from .rules import ArgumentRules
from .tools import Tool, ToolEffect
from .values import JSON, InvalidValue, admit, check_amount, check_names, pointer, type_name
from .views import Shown, View

__all__ = ["Policy"]


def _effects(argument: str, values: object) -> frozenset[ToolEffect]:
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise TypeError(f"{argument} must be an iterable of effects, not {type_name(values)}")
    return frozenset(ToolEffect.of(f"an item of {argument}", value) for value in values)


def _rules(name: str, rules: Mapping[str, JSON]) -> ArgumentRules:
    return rules if isinstance(rules, ArgumentRules) else ArgumentRules(name, rules)


def _common(one: frozenset[str] | None, other: frozenset[str] | None) -> frozenset[str] | None:
    """Return the names in both, where None is all names."""
    if one is None or other is None:
        return other if one is None else one
    return one & other


def _both_flows(one: Flow | None, other: Flow | None) -> Flow | None:
    if one is None or other is None:
        return other if one is None else one
    return one & other


_NO_RULES = ArgumentRules("arguments", {})


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Policy(Shown):
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
    arguments : mapping of str to (dict, bool, or list of these), default={}
        For a tool's name a JSON Schema that its arguments must meet too, or a list of schemas of
        which they must meet all. What a schema does not mention it allows: name what must be there
        in ``required``.
    approval_arguments : mapping of str to (dict, bool, or list of these), default={}
        For a tool's name a JSON Schema of arguments with which a call runs without a person
        although its effect would ask. Tools in `approval_tools` ask all the same.
    approvals_needed : int, default=1
        How many approvers must grant a call that asks, 1 to 100. One refusal ends it.
    approvers : iterable of str or None, default=None
        Who may answer, exactly as written; the answers of others are ignored. None is anybody.
        Where it names fewer than `approvals_needed`, what asks waits until it is resumed under
        another policy.
    approval_seconds : float or None, default=None
        How long after the request an answer counts, by the wall clock (`Agent`'s ``now``).
    flow : Flow, mapping or None, default=None
        What untrusted content may influence: asks, besides the two above, where a run that has read
        such content is about to act on what nothing endorses. None asks nothing. A mapping is what
        `Flow.to_dict` gives.

    Raises
    ------
    TypeError, ValueError
        If a field is of the wrong type or value. `SchemaError` if a schema cannot be enforced.

    Notes
    -----
    ``a & b`` is the policy that allows only what both allow and asks wherever either asks: as many
    approvers as the stricter needs, those that both name, for as long as the shorter says. If both
    ask for effects, and for different ones, a call is freed only by the `approval_arguments` of
    both, even where one of them would not ask for it.

    Examples
    --------
    >>> from scikitplot.agent import Policy
    >>> policy = Policy(allow_effects=["read", "write"], granted_scopes={"notes"})
    >>> policy.allows_effect("external"), policy.needs_approval_for("write")
    (False, True)
    >>> (policy & Policy(allow_effects=["write"])).allows_effect("read")
    False
    """

    allow_effects: frozenset[ToolEffect]
    granted_scopes: frozenset[str]
    allow_tools: frozenset[str] | None
    deny_tools: frozenset[str]
    approval_effects: frozenset[ToolEffect]
    approval_tools: frozenset[str]
    arguments: ArgumentRules
    approval_arguments: ArgumentRules
    approvals_needed: int
    approvers: frozenset[str] | None
    approval_seconds: float | None
    flow: Flow | None

    def __init__(
        self,
        allow_effects: Iterable[ToolEffect | str] = (ToolEffect.READ,),
        granted_scopes: Iterable[str] = (),
        allow_tools: Iterable[str] | None = None,
        deny_tools: Iterable[str] = (),
        approval_effects: Iterable[ToolEffect | str] = (ToolEffect.WRITE, ToolEffect.EXTERNAL),
        approval_tools: Iterable[str] = (),
        *,
        arguments: Mapping[str, JSON] = _NO_RULES,
        approval_arguments: Mapping[str, JSON] = _NO_RULES,
        approvals_needed: int = 1,
        approvers: Iterable[str] | None = None,
        approval_seconds: float | None = None,
        flow: Flow | Mapping[str, JSON] | None = None,
    ) -> None:
        put = object.__setattr__
        put(self, "allow_effects", _effects("allow_effects", allow_effects))
        put(self, "granted_scopes", check_names("granted_scopes", granted_scopes))
        only = None if allow_tools is None else check_names("allow_tools", allow_tools)
        put(self, "allow_tools", only)
        put(self, "deny_tools", check_names("deny_tools", deny_tools))
        put(self, "approval_effects", _effects("approval_effects", approval_effects))
        put(self, "approval_tools", check_names("approval_tools", approval_tools))
        put(self, "arguments", _rules("arguments", arguments))
        put(self, "approval_arguments", _rules("approval_arguments", approval_arguments))
        if type(approvals_needed) is not int:
            raise TypeError(f"approvals_needed must be an int, not {type_name(approvals_needed)}")
        if not 1 <= approvals_needed <= 100:
            raise ValueError("approvals_needed must be 1 to 100")
        put(self, "approvals_needed", approvals_needed)
        named = None if approvers is None else check_names("approvers", approvers)
        put(self, "approvers", named)
        if approval_seconds is not None:
            approval_seconds = check_amount("approval_seconds", approval_seconds)
            if approval_seconds == 0:
                raise ValueError("approval_seconds must be more than 0; None sets no limit")
        put(self, "approval_seconds", approval_seconds)
        put(self, "flow", flow if flow is None or isinstance(flow, Flow) else Flow.from_dict(flow))

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

    def reasons_to_ask(self, tool: Tool, arguments: dict[str, JSON]) -> tuple[str, ...]:
        """Return the rules that ask a person before a call, empty when none does.

        Examples
        --------
        >>> from scikitplot.agent import Policy, Tool
        >>> Policy(approval_tools=["read"]).reasons_to_ask(Tool("read", lambda: ""), {})
        ("tool 'read' needs approval",)
        """
        name, asks = tool.name, tool.effect in self.approval_effects
        if not asks and name not in self.approval_tools:
            return ()
        reasons = []
        if asks and not self.approval_arguments.meets(name, arguments):
            reasons.append(f"effect {tool.effect.value!r} needs approval")
        if name in self.approval_tools:
            reasons.append(f"tool {name!r} needs approval")
        return tuple(reasons)

    def __and__(self, other: object) -> Policy:
        if not isinstance(other, Policy):
            return NotImplemented
        allowed = self.allow_effects & other.allow_effects
        # Who asks for none of the effects that are left has nothing to free a call from.
        asking = [policy for policy in (self, other) if policy.approval_effects & allowed]
        free = self.approval_arguments.of_both(other.approval_arguments)
        if len(asking) == 1:
            free = asking[0].approval_arguments
        seconds = [s for s in (self.approval_seconds, other.approval_seconds) if s is not None]
        return Policy(
            allowed,
            self.granted_scopes & other.granted_scopes,
            _common(self.allow_tools, other.allow_tools),
            self.deny_tools | other.deny_tools,
            self.approval_effects | other.approval_effects,
            self.approval_tools | other.approval_tools,
            arguments=self.arguments.of_either(other.arguments),
            approval_arguments=free,
            approvals_needed=max(self.approvals_needed, other.approvals_needed),
            approvers=_common(self.approvers, other.approvers),
            approval_seconds=min(seconds, default=None),
            flow=_both_flows(self.flow, other.flow),
        )

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
            "arguments": self.arguments.to_dict(),
            "approval_arguments": self.approval_arguments.to_dict(),
            "approvals_needed": self.approvals_needed,
            "approvers": None if self.approvers is None else sorted(self.approvers),
            "approval_seconds": self.approval_seconds,
            "flow": None if self.flow is None else self.flow.to_dict(),
        }

    @classmethod
    def from_dict(cls, saved: Mapping[str, JSON]) -> Policy:
        """Return the policy that `to_dict` gave; what is left out has its default.

        Parameters
        ----------
        saved : mapping
            Fields by name, as JSON.

        Raises
        ------
        TypeError, ValueError
            If it is no JSON object, a field is unknown, or a value is of the wrong type or value.

        Examples
        --------
        >>> from scikitplot.agent import Policy
        >>> Policy.from_dict({"allow_efects": ["write"]})
        Traceback (most recent call last):
            ...
        ValueError: policy/allow_efects: there is no such field; did you mean 'allow_effects'?
        """
        if not isinstance(saved, Mapping):
            raise TypeError(f"a policy must be a mapping of its fields, not {type_name(saved)}")
        try:
            copy: dict[str, JSON] = admit(dict(saved))[0]
        except InvalidValue as error:
            raise ValueError(f"policy{error.pointer}: {error.reason}") from None
        known = [field.name for field in fields(cls)]
        for name in copy:
            if name not in known:
                near = get_close_matches(name[:100], known, 1)
                told = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
                raise ValueError(f"policy{pointer([name])}: there is no such field; {told}")
        return cls(**copy)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Policy:
        """Return the policy that a file holds.

        Parameters
        ----------
        path : str or path-like
            A file of the fields of `to_dict`, in UTF-8, of at most 1,000,000 bytes: TOML if its
            name ends in ``.toml`` (from Python 3.11 on), JSON if it ends in ``.json``. TOML has no
            null: a field that is to be None is left out.

        Raises
        ------
        OSError
            If the file cannot be read.
        TypeError, ValueError
            If it cannot be parsed, or as in `from_dict`.

        Examples
        --------
        >>> import json, pathlib, tempfile
        >>> from scikitplot.agent import Policy
        >>> policy = Policy(["read", "write"], approvers=["ann", "bob"])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "policy.json")
        ...     _ = path.write_text(json.dumps(policy.to_dict()))
        ...     Policy.load(path) == policy
        True
        """
        return cls.from_dict(read_policy_file(path))

    def __repr__(self) -> str:
        own, usual = self.to_dict(), Policy().to_dict()
        told = (f"{name}={value!r}" for name, value in own.items() if value != usual[name])
        return f"Policy({', '.join(told)})"

    def _view(self) -> View:
        return view_of(self.to_dict())
