"""The async agent: awaits what its sessions request.

Imports `awaiting` where an event loop runs, and else what `agent` does. It decides nothing either.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable

from .approval import Approval, check_approvals
from .events import Event
from .sessions import Sessions
from .state import RunState

__all__ = ["AsyncAgent"]


class AsyncAgent(Sessions):
    """An `Agent` for an event loop: the same arguments, the same runs, with ``await``.

    The planner, the approver, the tools, ``done``, ``reconcile``, the observer, and the methods of
    the store and the trail may be async or not. What is async is awaited in the running loop. What
    is not runs in a thread of its own, so that it blocks nobody else; but for the observer and what
    is in memory alone. Runs of one agent may go on at the same time, and a run that one kind of
    agent began another goes on with.

    A run whose task is cancelled is left as if its process had been killed, and can be resumed: a
    write that was begun is ended first, an async tool is cancelled, and any other goes on in its
    thread, where what it returns is dropped.

    Parameters
    ----------
    tools, planner, policy, limits, approver, done, audit, store, redact, approval_keys, reconcile,
    observer, clock, now
        As `Agent` takes them. ``redact``, ``clock`` and ``now`` are functions that do not block.

    Raises
    ------
    TypeError, ValueError
        If an argument is of the wrong type or value.

    Examples
    --------
    >>> import asyncio
    >>> from scikitplot.agent import AsyncAgent, Decision, Tool
    >>> async def fetch():
    ...     await asyncio.sleep(0)
    ...     return 7
    >>> async def planner(state, tools):
    ...     if state.steps:
    ...         return Decision.finish(state.steps[0].result)
    ...     return Decision.act("fetch")
    >>> asyncio.run(AsyncAgent([Tool("fetch", fetch)], planner).run("fetch it")).answer
    7
    """

    async def run(self, goal: str, *, run_id: str | None = None, tainted: bool = False) -> RunState:
        """Start a run and drive it until it ends or pauses; see `Agent.run`.

        Examples
        --------
        >>> import asyncio
        >>> from scikitplot.agent import AsyncAgent, Decision
        >>> agent = AsyncAgent([], lambda state, tools: Decision.finish(state.goal.upper()))
        >>> asyncio.run(agent.run("shout")).answer
        'SHOUT'
        """
        from .awaiting import drive

        return await drive(self._run(goal, run_id, tainted=tainted))

    async def stream(
        self, goal: str, *, run_id: str | None = None, tainted: bool = False
    ) -> AsyncIterator[Event]:
        """Start a run and yield what happens in it, as it happens; see `Agent.stream`.

        Where no further event is asked for, close the iterator (``contextlib.aclosing``).

        Examples
        --------
        >>> import asyncio
        >>> from scikitplot.agent import AsyncAgent, Decision
        >>> async def main():
        ...     agent = AsyncAgent([], lambda state, tools: Decision.finish(7))
        ...     return [event.kind async for event in agent.stream("count")]
        >>> asyncio.run(main())
        ['run', 'commit', 'decision', 'decision', 'end', 'commit']
        """
        from .awaiting import steps_of

        agent, events = self._streaming()
        async for _ in steps_of(agent._run(goal, run_id, tainted=tainted)):
            while events:
                yield events.popleft()
        for event in events:
            yield event

    async def resume(
        self, state: RunState | str, *, approvals: Iterable[Approval] = ()
    ) -> RunState:
        """Go on with a run that is paused or was cut off; see `Agent.resume`.

        Examples
        --------
        >>> import asyncio
        >>> from scikitplot.agent import Approval, AsyncAgent, Decision, MemoryStore, Policy, Tool
        >>> def planner(state, tools):
        ...     return Decision.finish("sent") if state.steps else Decision.act("send")
        >>> agent = AsyncAgent([Tool("send", lambda: None, effect="external")], planner,
        ...                    policy=Policy(allow_effects={"external"}), store=MemoryStore())
        >>> async def main():
        ...     paused = await agent.run("send it")
        ...     yes = Approval(paused.pending.digest, granted=True, approver="ann")
        ...     return await agent.resume(paused.run_id, approvals=[yes])
        >>> asyncio.run(main()).answer
        'sent'
        """
        from .awaiting import drive

        return await drive(self._resume(state, check_approvals(approvals)))

    async def undo(self, run_id: str, *, approvals: Iterable[Approval] = ()) -> RunState:
        """Call the inverses of the executed steps of a run; see `Agent.undo`."""
        from .awaiting import drive

        return await drive(self._undo(run_id, check_approvals(approvals)))

    async def stop(self, run_id: str, reason: str = "") -> None:
        """Ask that a run ends before its next decision; see `Agent.stop`.

        A run that this agent drives in the same loop is only told, so that this ends at once.
        """
        from .awaiting import drive

        await drive(self._stop(run_id, reason))
