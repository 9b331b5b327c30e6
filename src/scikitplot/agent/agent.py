"""The agent: calls what its sessions request, one after the other, and waits.

An `Agent` holds no run, so threads may share one. It decides nothing: what happens in a run is in
`loop` and `gates`; what a run is begun with and resumed from, and who is asked, is in `sessions`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from .approval import Approval, check_approvals
from .driving import drive, steps_of
from .events import Event
from .sessions import Sessions
from .state import RunState

__all__ = ["Agent"]


class Agent(Sessions):
    """Run a goal with a planner and tools, within a policy and limits.

    Parameters
    ----------
    tools : Toolset or iterable of Tool
        What the agent may call.
    planner : callable
        ``planner(state, tools) -> Decision``: `state` is a `RunState` of its own and `tools` what
        `Toolset.describe` gives. A model's adapter, or a rule.
    policy : Policy or None, default=None
        None is ``Policy()``: ``read`` tools without scopes, and nothing else.
    limits : Limits or None, default=None
        None is ``Limits()``: at most 16 decisions.
    approver : callable or None, default=None
        ``approver(request) -> Approval or None``, asked when an action needs approval. Without
        one, and where it answers None, raises or answers something else, the run pauses.
    done : callable or None, default=None
        ``done(answer, state) -> bool or str``: True takes the planner's answer; False or a reason
        rejects it, and the run goes on. None takes any answer.
    audit : AuditSink or None, default=None
        Where the trail goes; None is a new `MemoryAuditSink`, kept as `audit`.
    store : StateStore or None, default=None
        Where the state is saved at each step; None keeps it in the returned state alone.
    redact : callable or None, default=None
        ``redact(tool, argument, value) -> JSON``: what the trail shows of an argument, of a result
        (`argument` is None) and of the answer (`tool` is None too). Where that is not the value,
        the record holds a salted commitment to it, which `RunState.disclose` opens. Where it
        raises, nothing is shown. It does not see a decision's `reason`, a `ToolError` or the goal.
    approval_keys : mapping of str to bytes, or None, default=None
        The key of each approver. An answer that is not signed with it (`sign_approval`) is recorded
        and ignored; `approver` alone may answer without a signature. None takes every name as it is
        claimed.
    reconcile : callable or None, default=None
        ``reconcile(request) -> JSON or NotImplemented``: asked at `resume` what became of a call
        that was cut off and does not start again (`ReconcileRequest`), and asked again if that is
        cut off too. What it returns is taken as the tool's result. A `ToolError` says that the call
        failed; the planner may propose it anew. NotImplemented says that nobody knows, and the step
        is ``interrupted``, as it is without one and where it raises or returns what is no result.
    observer : callable or None, default=None
        ``observer(event)``, called with an `Event` for each record of the trail and each commit, in
        order, once they are written. It changes no run: what it raises is said in a warning, once,
        and the time that it takes does not count. See `Progress`, `log_events`, `trace_events`.
    clock : callable or None, default=None
        Gives seconds, for limits and the times of steps; None is `time.monotonic`.
    now : callable or None, default=None
        Gives the wall-clock time that the trail shows and `Policy.approval_seconds` counts by; None
        is `time.time`.

    Raises
    ------
    TypeError, ValueError
        If an argument is of the wrong type or value.

    Examples
    --------
    >>> from scikitplot.agent import Agent, Decision, Limits, Tool, verify_audit
    >>> double = Tool("double", lambda n: 2 * n, parameters={
    ...     "type": "object", "properties": {"n": {"type": "integer"}},
    ...     "required": ["n"], "additionalProperties": False})
    >>> def planner(state, tools):
    ...     n = state.steps[-1].result if state.steps else 1
    ...     return Decision.act("double", {"n": n}) if n < 100 else Decision.finish(n)
    >>> agent = Agent([double], planner, limits=Limits(max_steps=20))
    >>> state = agent.run("the first power of two above 100")
    >>> state.answer, state.usage.tool_calls, verify_audit(agent.audit.records)
    (128, 7, [])
    """

    def run(self, goal: str, *, run_id: str | None = None, tainted: bool = False) -> RunState:
        """Start a run and drive it until it ends or pauses.

        Parameters
        ----------
        goal : str
            What the run is for; the planner reads it from the state. At most 100,000 characters.
        run_id : str or None, default=None
            64 lower-case hexadecimal digits; None draws a random one. A run id is used once.
        tainted : bool, default=False
            Whether the goal holds what others wrote, so that it endorses nothing; see `Flow`.

        Returns
        -------
        RunState
            The last state: completed, stopped, failed, or awaiting approval.

        Raises
        ------
        TypeError, ValueError
            If an argument is of the wrong type or value, or the store or the trail holds a run of
            this id already.
        StateError, AuditError
            If the state or the trail cannot be written. What was committed before can be resumed.

        Examples
        --------
        >>> from scikitplot.agent import Agent, Decision
        >>> agent = Agent([], lambda state, tools: Decision.finish(state.goal.upper()))
        >>> agent.run("shout")
        <RunState ...: completed, 1 step>
        """
        return drive(self._run(goal, run_id, tainted=tainted))

    def stream(
        self, goal: str, *, run_id: str | None = None, tainted: bool = False
    ) -> Iterator[Event]:
        """Start a run and yield what happens in it, as it happens.

        Parameters
        ----------
        goal, run_id, tainted
            As for `run`.

        Yields
        ------
        Event
            For each record of the trail and for each commit. The run goes on with the next one that
            is asked for; where none is any more it is left as if the process had been killed, and
            can be resumed.

        Raises
        ------
        TypeError, ValueError, StateError, AuditError
            As for `run`, where the first event is asked for or later.

        Examples
        --------
        >>> from scikitplot.agent import Agent, Decision
        >>> agent = Agent([], lambda state, tools: Decision.finish(7))
        >>> [event.kind for event in agent.stream("count")]
        ['run', 'commit', 'decision', 'decision', 'end', 'commit']
        """
        agent, events = self._streaming()
        for _ in steps_of(agent._run(goal, run_id, tainted=tainted)):
            while events:
                yield events.popleft()
        yield from events

    def resume(self, state: RunState | str, *, approvals: Iterable[Approval] = ()) -> RunState:
        """Go on with a run that is paused or was cut off.

        Parameters
        ----------
        state : RunState or str
            The saved state, or its run id, which is read from the store.
        approvals : iterable of Approval, default=()
            Answers. Those that name the pending request and count by the policy and the keys are
            used and kept until there are enough; others are none. All gates run again on the tools,
            the policy and the limits as they are now.

        Returns
        -------
        RunState
            The last state, which replaces the one given, also where the run stays paused. A run
            that has ended is returned unchanged.

        Raises
        ------
        StateError
            If there is a newer state of the run, or another process goes on with it, or the trail
            does not hold the record that the state was saved after.
        TypeError, ValueError
            If an argument is of the wrong type or value, two approvals of the request disagree, or
            a run id is given without a store.

        Notes
        -----
        With a store, give the run id: the stored state alone counts. Without one the caller holds
        the states, and the trail tells whether a paused one was resumed before; with neither a
        store nor a shared trail, resuming one copy twice is the caller's own replay.

        Examples
        --------
        >>> from scikitplot.agent import Agent, Approval, Decision, MemoryStore, Policy, Tool
        >>> def planner(state, tools):
        ...     return Decision.finish("sent") if state.steps else Decision.act("send")
        >>> agent = Agent([Tool("send", lambda: None, effect="external")], planner,
        ...               policy=Policy(allow_effects={"external"}), store=MemoryStore())
        >>> paused = agent.run("send it")
        >>> yes = Approval(paused.pending.digest, granted=True, approver="ann")
        >>> agent.resume(paused.run_id, approvals=[yes]).answer
        'sent'
        """
        return drive(self._resume(state, check_approvals(approvals)))

    def undo(self, run_id: str, *, approvals: Iterable[Approval] = ()) -> RunState:
        """Call the inverses (`Tool`'s ``undo``) of the executed steps of a run, the last one first.

        They are the steps of a run of its own, which passes all gates under the policy and the
        limits of this agent, but for ``max_steps`` and ``max_repeats``. There is one such run of
        each run: a further `undo`, or `resume`, goes on with it or returns it as it ended.

        Parameters
        ----------
        run_id : str
            A run in the store that has ended.
        approvals : iterable of Approval, default=()
            As for `resume`.

        Returns
        -------
        RunState
            The undoing run. Its answer names the steps that are undone, and those that are ``left``
            and why: they have no inverse, or it was not executed, or nobody knows whether they
            took effect. Of each list the first 5,000; ``unlisted`` counts the others.

        Raises
        ------
        StateError
            If the run has not ended, undoes a run itself, or is not there as the trail has it, or
            as `resume` does.
        TypeError, ValueError
            If an argument is of the wrong type or value, or the agent has no store.

        Examples
        --------
        >>> from scikitplot.agent import Agent, Decision, MemoryStore, Policy, Tool
        >>> there = set()
        >>> make = Tool("make", lambda: there.add("file"), effect="write",
        ...             undo=lambda arguments, result: there.remove("file"))
        >>> agent = Agent([make],
        ...     lambda state, tools: Decision.finish("") if state.steps else Decision.act("make"),
        ...     policy=Policy(allow_effects={"write"}, approval_effects=()), store=MemoryStore())
        >>> agent.undo(agent.run("make it").run_id).answer, there
        ({'left': [], 'undone': [0], 'unlisted': 0}, set())
        """
        return drive(self._undo(run_id, check_approvals(approvals)))

    def stop(self, run_id: str, reason: str = "") -> None:
        """Ask that a run ends, as ``stopped`` and ``cancelled``, before its next decision.

        A call that is running is not interrupted; its outcome is kept. A run that waits for a
        person ends at once, and nobody is said to have refused. A run that ended stays as it is.

        Parameters
        ----------
        run_id : str
            The run: one that this agent drives, in another thread or below a signal handler, or one
            in the store, whichever process drives it. One that no process drives any more ends
            when it is resumed.
        reason : str, default=""
            Why; kept as the run's error.

        Raises
        ------
        StateError
            If the run is neither driven by this agent nor in its store.
        TypeError, ValueError
            If an argument is of the wrong type or value.

        Examples
        --------
        >>> from scikitplot.agent import Agent, Decision, Limits
        >>> def planner(state, tools):
        ...     if len(state.steps) == 3:
        ...         agent.stop(state.run_id, "enough")
        ...     return Decision.act("wait")
        >>> agent = Agent([], planner, limits=Limits(max_steps=100))
        >>> state = agent.run("wait")
        >>> state.status.value, state.stop_reason, state.error, len(state.steps)
        ('stopped', 'cancelled', 'enough', 4)
        """
        drive(self._stop(run_id, reason))
