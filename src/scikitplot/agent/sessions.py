"""From what a caller asks to the run's last state, for every kind of agent.

Imports what stands below `agent`. Rules that hold here:

* what a user passed is called by a request and in no other way;
* whatever ends a session, the agent does not think that it drives the run.
"""

from __future__ import annotations

import copy
import json
import secrets
import warnings
from collections import deque
from collections.abc import Sequence
from typing import Any, TypeVar

from .acting import Effects
from .approval import Approval, agreed_answers_to, check_run_id, same_digest
from .children import IsChild, child_run
from .delegation import child_of
from .driving import Requests, request
from .effects import (
    AskApprover,
    AskPlanner,
    CallTool,
    CheckAnswer,
    Commit,
    Reconcile,
    RunChild,
)
from .errors import StateError
from .events import Event, events_of
from .keeper import Keeper
from .ledger import Ledger
from .perform import ask, call_tool, notify, reconcile
from .settings import Settings
from .state import RunState, RunStatus
from .state.head import Head, OpenStep, check_steps, read_head
from .state.marks import Marks
from .undo import Undoing, goal_of, undoing_run, undone_run
from .values import check_text, check_type, encode, type_name

__all__ = ["Sessions"]

SessionsT = TypeVar("SessionsT", bound="Sessions")


class Sessions(Settings):
    """What an agent does, but for how it waits."""

    def _run(self, goal: str, run_id: str | None, *, tainted: bool) -> Requests[RunState]:
        check_text("goal", goal)
        check_type("tainted", tainted, bool)
        marks = Marks("goal" if tainted else None)
        return (yield from self._start(self._keeper(), goal, run_id, marks))

    def _start(
        self,
        kept: Keeper,
        goal: str,
        run_id: str | None,
        marks: Marks,
        parent: tuple[str, int] | None = None,
    ) -> Requests[RunState]:
        self._check_delegations()
        trail = None
        if run_id is None:
            run_id = secrets.token_hex(32)
        else:
            trail = yield from kept.begin(check_run_id(run_id))
        ledger = Ledger(run_id, goal, self._watch(), kept.key, trail, self.redact, marks, parent)
        effects = self._loop(ledger).start(secrets.token_hex(32))
        return (yield from self._go(kept, ledger, effects))

    def _resume(self, state: RunState | str, answers: list[Approval]) -> Requests[RunState]:
        self._check_delegations()
        kept = self._keeper()
        head, text, steps = yield from _read(kept, state)
        if head.parent is not None:
            run, (above, step) = head.run_id[:12], head.parent
            told = f"run {run}: step {step} of run {above} delegates to it; resume that one"
            raise IsChild(told)
        request = None if head.open is None else head.open.request
        answers = [] if request is None else agreed_answers_to(request.digest, answers)
        given = [(answer, None) for answer in answers]
        return (yield from self._go_on(kept, head, text, steps, given))

    def _go_on(
        self,
        kept: Keeper,
        head: Head,
        text: str,
        steps: list[str],
        given: Sequence[tuple[Approval, float | None]],
        stop: str | None = None,
    ) -> Requests[RunState]:
        """Go on with a saved run, with the answers that came for it, or have it stop."""
        if self.store is None:
            head = head.from_caller()
        if head.status.has_ended:
            return RunState.view(text, steps)
        trail, ahead = yield from kept.find_trail(head)
        ledger = Ledger.resumed(head, text, steps, trail, self._watch(), kept.key, self.redact)
        if stop is not None:
            ledger.stop = stop
        agent, undone = self, undone_run(head.run_id, head.goal)
        if undone is not None:
            agent, _ = yield from self._undoing(kept, undone, head.open)
        effects = agent._loop(ledger).resume(head.open, given, ahead)
        return (yield from agent._go(kept, ledger, effects))

    def _run_child(self, kept: Keeper, effect: RunChild) -> Requests[Head | None]:
        """Begin the run that a step delegates to, or go on with it; see `RunChild`."""
        if self.store is None or (yield request(self.store.load, effect.run_id)) is None:
            if effect.stop is not None:
                return None
            child, run_id, marks = child_of(self, effect), effect.run_id, effect.marks
            state = yield from child._start(kept, effect.goal, run_id, marks, effect.parent)
            return read_head(state.parts()[0])
        head, text, steps = yield from _read(kept, effect.run_id)
        if head.parent != effect.parent:
            run, (above, step) = effect.run_id[:12], effect.parent
            told = f"step {step} of run {above[:12]} delegates to it, and it says otherwise"
            raise StateError(f"run {run}: {told}")
        asked = None if head.open is None else head.open.request
        held = () if head.open is None else [answer.approval for answer in head.open.answers]
        given = [
            (approval, received_at)
            for approval, received_at, _ in effect.answers
            if asked is not None
            and same_digest(approval.digest, asked.digest)
            and approval not in held
        ]
        agent = self if effect.tool is None else child_of(self, effect)
        state = yield from agent._go_on(kept, head, text, steps, given, effect.stop)
        return read_head(state.parts()[0])

    def _undo(self, run_id: str, answers: list[Approval]) -> Requests[RunState]:
        undoing = undoing_run(check_run_id(run_id))
        if self.store is None:
            raise ValueError("a run can be undone with a store only, which holds it")
        if (yield request(self.store.load, undoing)) is not None:
            return (yield from self._resume(undoing, answers))
        kept = self._keeper()
        agent, marks = yield from self._undoing(kept, run_id, None)
        return (yield from agent._start(kept, goal_of(run_id), undoing, marks))

    def _undoing(
        self, kept: Keeper, run_id: str, step: OpenStep | None
    ) -> Requests[tuple[Sessions, Marks]]:
        """Return who undoes a run, this agent but for what it calls, and its first marks."""
        run, (head, _, steps) = run_id[:12], (yield from _read(kept, run_id))
        if not head.status.has_ended:
            raise StateError(f"run {run}: it has not ended, so it cannot be undone; stop it first")
        if undone_run(head.run_id, head.goal) is not None:
            raise StateError(f"run {run}: it undoes another run, and is not undone itself")
        yield from kept.find_trail(head)
        undoing = Undoing(run_id, self.tools, steps, None if step is None else step.decision)
        agent = copy.copy(self)
        agent.tools, agent.planner = undoing.tools, undoing.plan
        agent.limits = undoing.limits(self.limits)
        agent.done = agent.reconcile = None  # they know the tools, not their inverses
        agent._notes = (f"it undoes a call of run {run_id}",)
        return (
            agent,
            head.marks.passed_on(),
        )  # what is undone, and with which results, was read there

    def _stop(self, run_id: str, reason: str) -> Requests[None]:
        check_run_id(run_id)
        check_text("reason", reason)
        if run_id in self._driven:  # no lock, no store: this may be a signal handler
            self._stops[run_id] = reason
            return
        while not (yield from self._stop_stored(run_id, reason)):
            pass  # the run went on in between

    def _stop_stored(self, run_id: str, reason: str) -> Requests[bool]:
        store: Any = self.store
        saved = None if store is None else (yield request(store.load, run_id))
        if saved is None:
            raise StateError(f"run {run_id[:12]}: this agent neither drives nor stores it")
        head = read_head(saved[0])
        if head.status.has_ended:
            return True
        try:
            if head.status is RunStatus.AWAITING_APPROVAL:
                kept = self._keeper()
                yield from self._go_on(kept, *(yield from _read(kept, run_id)), [], reason)
                return True
            if head.stop is None:
                change = {"revision": head.revision + 1, "stop": reason}
                text = encode({**json.loads(saved[0]), **change})
                yield request(store.commit, run_id, text, [], expected=head.revision)
        except StateError:
            now = yield request(store.load, run_id)
            if now is None or read_head(now[0]).revision == head.revision:
                raise  # nobody went on: the store itself refuses
            return False
        child = None if head.open is None else child_run(run_id, head.open.step)
        if child is None or (yield request(store.load, child)) is None:
            return True
        return (yield from self._stop_stored(child, reason))

    def _streaming(self: SessionsT) -> tuple[SessionsT, deque[Event]]:
        """Return this agent with its events kept, and where they are until they are taken."""
        events: deque[Event] = deque()
        observer = self.observer

        def keep(event: Event) -> object:
            events.append(event)
            return None if observer is None else observer(event)

        agent = copy.copy(self)
        agent.observer = keep
        return agent, events

    def _notify(self, commit: Commit, ledger: Ledger) -> Requests[None]:
        """Tell the observer of a commit; what it does and how long it takes is not the run's."""
        ledger.watch.tick()
        for event in events_of(commit):
            error = yield request(notify, self.observer, event)
            if error is not None and not self._warned:
                self._warned.append(event)
                told = f"the observer raised {type_name(error)}; this is said once"
                warnings.warn(told, RuntimeWarning, stacklevel=2)
        ledger.watch.skip()

    def _go(self, kept: Keeper, ledger: Ledger, effects: Effects) -> Requests[RunState]:
        """Have the effects of a session's loop performed, to its end or until it pauses."""
        run_id, stops = ledger.run_id, self._stops
        runs = (run_id, *self._above)
        self._driven.add(run_id)
        reply: Any = None
        is_begun = not self._above
        try:
            while True:
                if stops:
                    ledger.stop = next((stops[name] for name in runs if name in stops), ledger.stop)
                try:
                    effect = effects.send(reply)
                except StopIteration:
                    return ledger.view()
                if self._shared is not None:
                    yield from self._shared.before(effect)
                if type(effect) is Commit:
                    reply = yield from kept.commit(effect)
                    if self.observer is not None and reply is None:
                        yield from self._notify(effect, ledger)
                    if not is_begun:  # who stops a run looks for the one that is below it
                        is_begun = True
                        above = yield request(kept.store.load, runs[-1])
                        stop = None if above is None else read_head(above[0]).stop
                        ledger.stop = ledger.stop if stop is None else stop
                elif type(effect) is CallTool:
                    reply = yield call_tool, (effect,), {}
                elif type(effect) is AskPlanner:
                    reply = yield request(ask, "planner", "planner_failed", self.planner, *effect)
                    if self._shared is not None:
                        yield from self._shared.after(reply)
                elif type(effect) is AskApprover:
                    reply = yield request(ask, "approver", "", self.approver, *effect)
                elif type(effect) is RunChild:
                    reply = yield from self._run_child(kept, effect)
                elif type(effect) is Reconcile:
                    reply = yield request(reconcile, self.reconcile, *effect)
                else:
                    assert type(effect) is CheckAnswer
                    reply = yield request(ask, "done criterion", "done_failed", self.done, *effect)
        finally:
            self._driven.discard(run_id)
            stops.pop(run_id, None)


def _read(kept: Keeper, state: RunState | str) -> Requests[tuple[Head, str, list[str]]]:
    """Return the head of a saved run, read and as it is saved, and its saved steps."""
    text, steps = yield from kept.load(state)
    head = read_head(text)
    check_steps(head, len(steps))
    if isinstance(state, str) and head.run_id != state:
        raise StateError("the store returned another run than the one it was asked for")
    return head, text, steps
