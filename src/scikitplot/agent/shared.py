"""What the runs of a batch may use up together.

Imports `state`, `effects` and `driving`. Rules that hold here:

* what a call costs is charged to the batch before the call is recorded as started, and the check
  and the charge are one change of one revision, so that runs at the same time never see the same
  remainder; who dies in between has charged for a call that was not made;
* what a planner consumed is known only afterwards: a limit on it is passed by one model call of
  each run that goes on, at most;
* a run for which nothing is left ends no further than where it stands: it is left as if its process
  had died there.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from decimal import Decimal
from typing import Any, NamedTuple

from .decision import Decision, Usage
from .driving import Requests, request
from .effects import AskPlanner, Commit, Raised
from .errors import AgentError, StateError
from .limits import Limits
from .state.head import read_head, read_usage
from .stores import MemoryStore
from .values import add_exactly, encode, exact

__all__ = ["LimitReached", "Share", "SharedAccount"]

_LONGEST_WAIT = 0.05  # in seconds, between two tries


class LimitReached(AgentError):
    """Nothing is left of a limit of the batch; what was begun can be resumed."""


class Share(NamedTuple):
    """What a worker is told of what its batch may use up."""

    run_id: str  # of the run that holds the account
    limits: Limits
    deadline: float | None  # wall-clock time
    memory: MemoryStore | None  # holds the account where the agents have no store


class SharedAccount:
    """The account of a batch, in the store of its runs: the usage of a run that has ended.

    Parameters
    ----------
    share : Share
        Which one, and what bounds it.
    store : StateStore or None
        That of the agent; None where `share` has its own.
    """

    def __init__(self, share: Share, store: Any) -> None:
        self._run_id, self._limits, self._deadline, memory = share
        self._store = store if memory is None else memory

    def before(self, effect: object) -> Requests[None]:
        """Charge for what is to be done, or raise `LimitReached`."""
        if type(effect) is AskPlanner:
            self._check_time()
            self._check_left(*self._read((yield request(self._store.load, self._run_id)))[1:3])
        elif type(effect) is Commit:
            for record in effect.records:
                if record.event == "tool_started":
                    self._check_time()
                    yield from self._change(self._call(exact(record.data["cost"])))

    def after(self, reply: object) -> Requests[None]:
        """Charge for what a planner consumed."""
        usage = reply.usage if type(reply) in (Decision, Raised) else None  # type: ignore[attr-defined]
        if type(usage) is Usage:
            if usage.tokens or usage.cost:
                yield from self._change(_planned(usage))
        elif self._limits.max_tokens is not None and type(reply) is Decision:
            raise LimitReached("max_tokens of the batch needs a planner that reports its usage")

    def _check_time(self) -> None:
        if self._deadline is not None and time.time() >= self._deadline:
            raise LimitReached("max_seconds of the batch is reached")

    def _check_left(self, cost: Decimal, tokens: int) -> None:
        most = self._limits
        if most.max_cost is not None and cost >= exact(most.max_cost):
            raise LimitReached("max_cost of the batch is reached")
        if most.max_tokens is not None and tokens >= most.max_tokens:
            raise LimitReached("max_tokens of the batch is reached")

    def _call(self, price: Decimal) -> Callable[[dict[str, Any], Decimal], None]:
        def charge(usage: dict[str, Any], cost: Decimal) -> None:
            usage["tool_calls"] += 1
            total = add_exactly(cost, price)
            usage["cost"] = str(total)
            most = self._limits
            if most.max_cost is not None and total > exact(most.max_cost):
                raise LimitReached("max_cost of the batch is reached")
            if most.max_tool_calls is not None and usage["tool_calls"] > most.max_tool_calls:
                raise LimitReached("max_tool_calls of the batch is reached")

        return charge

    def _change(self, charge: Callable[[dict[str, Any], Decimal], None]) -> Requests[None]:
        """Change the account, again where another run did in between."""
        wait = 0.0001
        while True:
            saved = yield request(self._store.load, self._run_id)
            head, cost, _, revision = self._read(saved)
            charge(head["usage"], cost)
            head["revision"] = revision + 1
            try:
                commit, text = self._store.commit, encode(head)
                yield request(commit, self._run_id, text, [], expected=revision)
                return
            except StateError:
                now = yield request(self._store.load, self._run_id)
                if self._read(now)[3] == revision:
                    raise  # nobody else did: the store itself refuses
            yield request(time.sleep, wait * random.random())
            wait = min(2 * wait, _LONGEST_WAIT)

    def _read(self, saved: Any) -> tuple[dict[str, Any], Decimal, int, int]:
        """Return the saved head, its exact cost, its tokens and its revision."""
        if saved is None:
            raise StateError(
                "the store does not hold the account of the batch: make_agent must give its agents "
                "one store, the same in every thread and process"
            )
        revision = read_head(saved[0]).revision
        head: dict[str, Any] = json.loads(saved[0])
        usage, cost, _ = read_usage(head["usage"])
        return head, cost, usage.tokens, revision


def _planned(used: Usage) -> Callable[[dict[str, Any], Decimal], None]:
    def charge(usage: dict[str, Any], cost: Decimal) -> None:
        usage["tokens"] += used.tokens
        usage["cost"] = str(add_exactly(cost, exact(used.cost)))

    return charge
