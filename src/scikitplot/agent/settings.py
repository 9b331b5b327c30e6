"""What an agent is made of: what it calls, by what it judges, whom it asks and where it keeps runs.

Imports what stands below `agent`. All is checked when the agent is made; nothing is opened.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn, TypeVar

from .approval import Approval, ApprovalRequest
from .audit import AuditSink, MemoryAuditSink
from .calls import ReconcileRequest
from .children import Delegation
from .decision import Decision
from .events import Event
from .gates import Rules
from .keeper import Keeper
from .ledger import Ledger
from .limits import Limits
from .loop import Loop
from .policy import Policy
from .shared import SharedAccount
from .signing import ApprovalKeys
from .state import RunState
from .stores import StateStore
from .tools import Tool
from .toolset import Toolset
from .values import JSON, type_name
from .watch import Watch

__all__ = ["Settings"]

SettingsT = TypeVar("SettingsT", bound="Settings")


class Settings:
    """The arguments of an `Agent`, which documents them, checked."""

    def __init__(
        self,
        tools: Toolset | Iterable[Tool],
        planner: Callable[[RunState, list[dict[str, JSON]]], Decision],
        *,
        policy: Policy | None = None,
        limits: Limits | None = None,
        approver: Callable[[ApprovalRequest], Approval | None] | None = None,
        done: Callable[[JSON, RunState], bool | str] | None = None,
        audit: AuditSink | None = None,
        store: StateStore | None = None,
        redact: Callable[[str | None, str | None, JSON], JSON] | None = None,
        approval_keys: Mapping[str, bytes] | None = None,
        reconcile: Callable[[ReconcileRequest], JSON] | None = None,
        observer: Callable[[Event], object] | None = None,
        clock: Callable[[], float] | None = None,
        now: Callable[[], float] | None = None,
    ) -> None:
        if not callable(planner):
            raise TypeError(f"planner must be callable, not {type_name(planner)}")
        for name, kind, value in (("policy", Policy, policy), ("limits", Limits, limits)):
            if value is not None and not isinstance(value, kind):
                raise TypeError(f"{name} must be a {kind.__name__} or None, not {type_name(value)}")
        for name, function in (
            ("approver", approver),
            ("done", done),
            ("redact", redact),
            ("reconcile", reconcile),
            ("observer", observer),
            ("clock", clock),
            ("now", now),
        ):
            if function is not None and not callable(function):
                raise TypeError(f"{name} must be callable or None, not {type_name(function)}")
        _check_methods("audit", audit, ("append", "head", "read"))
        _check_methods("store", store, ("load", "commit"))
        self.tools = tools if isinstance(tools, Toolset) else Toolset(tools)
        self.planner = planner
        self.policy = Policy() if policy is None else policy
        self.limits = Limits() if limits is None else limits
        self.approver = approver
        self.done = done
        # Annotated as what it is by default, so that `agent.audit.records` needs no cast.
        self.audit: Any = MemoryAuditSink() if audit is None else audit
        self.store = store
        self.redact = redact
        self.reconcile = reconcile
        self.observer = observer
        self._warned: list[object] = []  # not empty once it was said that the observer raises
        self._keys = None if approval_keys is None else ApprovalKeys(approval_keys)
        self._has_own_trail = audit is None
        self._driven: set[str] = set()  # the runs that this object drives now
        self._stops: dict[str, str] = {}  # of them, those that are to stop, and why
        self._notes: tuple[str, ...] = ()  # told to whom is asked
        self._above: tuple[str, ...] = ()  # the runs that delegated to this agent
        self._shared: SharedAccount | None = None  # with the other runs of a batch
        self._clock = time.monotonic if clock is None else clock
        self._now = time.time if now is None else now

    def _check_delegations(self) -> None:
        if self.store is None and any(isinstance(tool, Delegation) for tool in self.tools):
            raise ValueError(
                "an agent that delegates needs a store, where the runs that it delegates to are "
                "kept: pass store=MemoryStore() at least"
            )

    def _watch(self) -> Watch:
        return Watch(self._clock, self._now)

    def _keeper(self) -> Keeper:
        return Keeper(self.store, self.audit, has_own_trail=self._has_own_trail)

    def _loop(self, ledger: Ledger) -> Loop:
        return Loop(
            ledger,
            Rules(
                self.tools,
                self.policy,
                self.limits,
                self._keys,
                self._notes,
                len(self._above),
            ),
            has_approver=self.approver is not None,
            has_done=self.done is not None,
            has_reconcile=self.reconcile is not None,
        )

    def __copy__(self: SettingsT) -> SettingsT:
        copied = object.__new__(type(self))
        copied.__dict__.update(self.__dict__)
        return copied

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"an {type(self).__name__} cannot be pickled, since it holds functions, keys and "
            "connections; pass a function that makes it where it runs"
        )

    def __repr__(self) -> str:
        names = [tool.name for tool in self.tools]
        return f"Agent(tools={names}, limits={self.limits})"


def _check_methods(name: str, value: object, methods: tuple[str, ...]) -> None:
    if value is None:
        return
    for method in methods:
        if not callable(getattr(value, method, None)):
            raise TypeError(
                f"{name} must have the methods {', '.join(methods)}; "
                f"{type_name(value)} has no {method}"
            )
