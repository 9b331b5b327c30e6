"""What a person is shown of a policy: what runs, what asks, what is denied.

Imports `tools`, `values` and `views`.
"""

from __future__ import annotations

from typing import Any

from .tools import ToolEffect
from .values import JSON
from .views import Fields, Heading, Table, Values, View

__all__ = ["view_of"]


def view_of(policy: dict[str, Any]) -> View:
    """Return what is shown of what `Policy.to_dict` gives."""
    effects = [
        (effect.value, _fate(effect.value, policy), _exceptions(effect.value, policy))
        for effect in ToolEffect
    ]
    seconds, count = policy["approval_seconds"], policy["approvals_needed"]
    rows = [
        ("tools", _tools(policy)),
        ("scopes", ", ".join(policy["granted_scopes"]) or "none is granted"),
        ("asks for", ", ".join(policy["approval_tools"])),
        ("approvers", _approvers(policy["approvers"], count)),
        ("in time", "" if seconds is None else f"within {seconds:,g} seconds of the request"),
    ]
    blocks: list[Any] = [
        Heading("Policy"),
        Table(("effect", "", ""), effects),
        Fields([(label, told) for label, told in rows if told]),
    ]
    rules: dict[str, dict[str, JSON]] = {
        "must meet": policy["arguments"],
        "run freely": policy["approval_arguments"],
        "flow": policy["flow"] or {},
    }
    if policy["flow"] is not None:
        told = "once untrusted content was read, what acts asks unless its targets are endorsed"
        blocks.append(Fields([("untrusted", told)]))
    blocks += [Values(label, values) for label, values in rules.items() if any(values.values())]
    return View(*blocks)


def _fate(effect: str, policy: dict[str, Any]) -> str:
    if effect not in policy["allow_effects"]:
        return "denied"
    return "asks" if effect in policy["approval_effects"] else "runs"


def _exceptions(effect: str, policy: dict[str, Any]) -> str:
    free = ", ".join(policy["approval_arguments"])
    if free and _fate(effect, policy) == "asks":
        return f"unless the arguments are those that are said below to run freely: {free}"
    return ""


def _tools(policy: dict[str, Any]) -> str:
    only, never = policy["allow_tools"], ", ".join(policy["deny_tools"])
    told = "any" if only is None else f"only {', '.join(only)}" if only else "none"
    return f"{told}; never {never}" if never else told


def _approvers(names: list[str] | None, count: int) -> str:
    who = "anybody" if names is None else ", ".join(names) or "nobody"
    return who if count == 1 else f"{count} of: {who}"
