"""A model as a planner: ask, read, ask again where the reply cannot be used.

Imports the modules of this folder. A planner holds no run, so agents and threads may share one.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import NoReturn, Protocol

from ..decision import Decision, Usage
from ..errors import ProviderError
from ..state import RunState
from ..values import JSON, add_exactly, check_amount, check_type, exact, type_name
from .prompt import Prompts
from .repair import FAULTS, asked_again, note_of
from .replies import ModelUsage, Reply, Unusable, decide
from .wire import Wire, check_count

__all__ = ["MAX_REPAIRS", "ModelPlanner", "OverCall", "Prices"]

MAX_REPAIRS = 2

Prices = Callable[[ModelUsage], float]


class Asks(Protocol):
    """Gets a reply to a prompt."""

    def __call__(self, wire: Wire, request: str, under: str) -> Reply: ...


class OverCall:
    """Asks a function of the user."""

    def __init__(self, call: Callable[[str], str]) -> None:
        self._call = call

    def __call__(self, wire: Wire, request: str, under: str) -> Reply:
        text = self._call(request)
        if type(text) is not str:
            raise TypeError(f"call must return a str, not {type_name(text)}")
        return wire.read(text, under)


class ModelPlanner:
    """A planner that asks a model; made by `openai_compatible`, `anthropic` or `model_planner`.

    It is called with a run's state and the tools' descriptions and returns a `Decision`. `acall` is
    the same for a caller that awaits. It holds no run, so agents and threads may share one.
    """

    __slots__ = ("_ask", "_prices", "_prompts", "_repair_attempts", "_wire")

    def __init__(
        self,
        wire: Wire,
        ask: Asks,
        *,
        max_history: int,
        repair_attempts: int,
        prices: Prices | None,
    ) -> None:
        self._wire = wire  # first, for the repr in whatever tells of an error below
        check_type("repair_attempts", repair_attempts, int)
        if not 0 <= repair_attempts <= MAX_REPAIRS:
            raise ValueError(f"repair_attempts must be 0 to {MAX_REPAIRS}")
        if prices is not None and not callable(prices):
            raise TypeError(f"prices must be callable or None, not {type_name(prices)}")
        self._ask = ask
        self._prompts = Prompts(wire, check_count("max_history", max_history))
        self._repair_attempts = repair_attempts
        self._prices = prices

    def __call__(self, state: RunState, tools: list[dict[str, JSON]]) -> Decision:
        """Return the model's decision.

        Parameters
        ----------
        state : RunState
            The run, as an agent hands it to its planner.
        tools : list of dict
            What `Toolset.describe` gives.

        Returns
        -------
        Decision
            With what all replies consumed, and what was mended to read it.

        Raises
        ------
        ProviderError
            If the provider gave no reply, or none that could be used.
        """
        prompt = self._prompts.take(state, tools)
        history = prompt.text()
        repairs: list[str] = []
        used: list[ModelUsage | None] = []
        while True:
            reply = fault = None
            try:
                reply = self._ask(self._wire, prompt.request(history), prompt.under)
                used.append(reply.usage)
                decision = decide(reply, tools, self._consumed(used), repairs)
            except Unusable as error:
                fault = error.with_traceback(None)  # it leads back to this frame
            if fault is None:
                self._prompts.keep(state, prompt)
                return decision
            if reply is None and fault.status is None:
                used.append(fault.usage)
            if len(repairs) == self._repair_attempts:
                told = f"the model's reply cannot be used: {FAULTS[fault.kind]}"
                raise ProviderError(told, fault.status, None, self._consumed(used))
            repairs.append(asked_again(fault.kind))
            history += self._wire.repair(note_of(fault.kind, self._wire.form))

    async def acall(self, state: RunState, tools: list[dict[str, JSON]]) -> Decision:
        """Return the model's decision, asked for in a thread; the arguments are those of a call.

        The thread sees the caller's context variables. Where the task is cancelled, the reply that
        is still under way is dropped when it comes.
        """
        import asyncio  # here, since it takes a while to import and most callers wait anyway

        return await asyncio.to_thread(self, state, tools)

    def _consumed(self, used: list[ModelUsage | None]) -> Usage | None:
        """Return the sum, or None where a reply did not say what it took."""
        tokens = cached = 0
        cost = Decimal(0)
        for usage in used:
            if usage is None:
                return None
            tokens += sum(usage)
            cached += usage.cached
            if self._prices is not None:
                priced = check_amount("what prices returned", self._prices(usage))
                cost = add_exactly(cost, exact(priced))
        return Usage(tokens, float(cost), cached) if used else None

    def __repr__(self) -> str:
        return f"<ModelPlanner: {self._wire.name}, {self._wire.model!r}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a ModelPlanner is neither copied nor pickled, since it holds an API key; pass a "
            "function that makes it where it runs"
        )
