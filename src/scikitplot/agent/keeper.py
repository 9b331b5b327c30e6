"""Where an agent's runs are kept: its store and its trail, together.

Imports what stands below `agent`. What has to do with the store or the trail is a generator of
requests. Rules that hold here:

* a commit goes to the trail first and to the store second, or to both in one transaction where one
  object is both;
* a saved run goes on only from its latest state, and only if the trail holds the record after which
  that state was saved.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from .approval import check_run_id
from .audit import AuditHead, AuditRecord
from .audit.base import check_key
from .driving import Requests, request
from .effects import Commit, StopRequest, TrailMoved
from .errors import AuditError, StateError
from .state import RunState
from .state.head import Head, read_head
from .stores import StateStore
from .values import type_name

__all__ = ["Keeper", "find"]


class Keeper:
    """A store and a trail as one.

    Parameters
    ----------
    store : StateStore or None
        Where states are saved, if anywhere.
    audit : AuditSink
        Where records go.
    has_own_trail : bool
        Whether the trail is the agent's own and new, so that it knows of no run of before.
    """

    def __init__(self, store: StateStore | None, audit: Any, *, has_own_trail: bool) -> None:
        self.store: Any = store
        self._audit = audit
        self._has_own_trail = has_own_trail
        self.key = check_key(getattr(audit, "key", None))
        # One object that can write both in one transaction, as `SqliteStore` does.
        both: Any = store
        self._is_one = both is not None and both is audit and _takes_records(both)

    def commit(self, commit: Commit) -> Requests[StopRequest | TrailMoved | None]:
        """Write a commit; return what stood in its way, if the run is this session's still."""
        if self._is_one:
            one = {"records": commit.records, "audit_head": commit.audit_head}
            return (yield from self._save(commit, False, one))
        if commit.records:
            try:
                yield self._audit.append, (commit.records,), {"expected": commit.audit_head}
            except StateError:
                moved = yield from self._moved(commit)
                if moved is None:
                    raise
                return moved
        return None if self.store is None else (yield from self._save(commit, True, {}))

    def _moved(self, commit: Commit) -> Requests[TrailMoved | None]:
        """Return where the trail ends, if a process that lost the run wrote to it meanwhile."""
        # Between the claim and its first record a session has the run and not yet the trail.
        if self.store is None or commit.records[0].event != "resumed":
            return None
        saved = yield request(self.store.load, commit.run_id)
        head = None if saved is None else read_head(saved[0])
        if head is None or not (head.revision == commit.revision or _only_stops(head, commit)):
            return None
        trail, ahead = yield from self.find_trail(head)
        return None if trail is None or trail == commit.audit_head else TrailMoved(trail, ahead)

    def _save(
        self, commit: Commit, records_are_written: bool, records: dict[str, Any]
    ) -> Requests[StopRequest | None]:
        run_id, revision = commit.run_id, commit.revision
        store: Any = self.store
        try:
            new = run_id, commit.head, commit.steps
            yield store.commit, new, {"expected": revision, **records}
        except StateError:
            saved = yield request(store.load, run_id)
            if saved is None or revision is None:
                raise
            head = read_head(saved[0])
            if head.stop is None or not _only_stops(head, commit):
                raise
            return StopRequest(head.stop, head.revision, records_are_written)
        return None

    def begin(self, run_id: str) -> Requests[AuditHead | None]:
        """Return what the trail of a new run goes on from: the records of starts that were cut off.

        Raises `ValueError` if the store or the trail knows the run already.
        """
        store = self.store
        if store is not None and (yield request(store.load, run_id)) is not None:
            raise ValueError("run_id names a run that the store holds; a run id is used once")
        held = yield request(self._audit.head, run_id)
        if held is None:
            return None
        # Starts alone, and no state: each process died between the two. A process that is just
        # there is refused by the trail then, or this one by the store.
        if store is None or (yield request(find, self._audit.read, run_id, _is_no_start)):
            raise ValueError("run_id names a run that the trail holds; a run id is used once")
        return AuditHead(*held)

    def load(self, state: RunState | str) -> Requests[tuple[str, list[str]]]:
        """Return the head and the steps of a run, as the store holds them where there is one."""
        if isinstance(state, RunState):
            text, steps = state.parts()
            if self.store is None:
                return text, steps
            run_id = state.run_id
        elif isinstance(state, str):
            text, steps, run_id = "", [], check_run_id(state)
            if self.store is None:
                raise ValueError("a run id can be resumed with a store only; pass the RunState")
        else:
            raise TypeError(f"state must be a RunState or a run id, not {type_name(state)}")
        saved = yield request(self.store.load, run_id)
        if saved is None:
            raise StateError(f"run {run_id[:12]}: the store does not hold it")
        stored = saved[0], list(saved[1])
        if not all(type(part) is str for part in (stored[0], *stored[1])):
            raise StateError(f"run {run_id[:12]}: the store returned something else than texts")
        if isinstance(state, RunState) and stored != (text, steps):
            raise StateError(
                f"run {run_id[:12]}: the store holds another state than revision "
                f"{state.revision} as it was given; resume it by its run id"
            )
        return stored

    def find_trail(self, head: Head) -> Requests[tuple[AuditHead | None, int]]:
        """Return what the run's trail ends with, and its records beyond the state."""
        run, known = head.run_id[:12], head.audit_head
        try:
            held = yield request(self._audit.head, head.run_id)
        except AuditError as error:
            raise StateError(f"run {run}: {error}") from error
        if held is None and self._has_own_trail:
            return None, 0  # nothing to compare with; the new trail goes on from the state's record
        held = None if held is None else AuditHead(*held)
        if held == known:
            return held, 0
        there = held is not None and (
            yield request(find, self._audit.read, head.run_id, partial(_is_record, known))
        )
        if held is None or not there:
            raise StateError(
                f"run {run}: the trail does not hold record {known.seq}, after which the state was "
                "saved; pass the audit sink that the run was started with, or find what changed it"
            )
        if self.store is None:
            raise StateError(
                f"run {run}: the trail goes on after this state; it was resumed already"
            )
        return held, held.seq - known.seq


def find(
    read: Callable[[str], Iterable[Any]], run_id: str, is_sought: Callable[[Any], bool]
) -> bool:
    """Return whether a trail holds a line of a kind."""
    return any(map(is_sought, read(run_id)))


def _only_stops(head: Head, commit: Commit) -> bool:
    """Return whether all that was saved on top of the commit's session is a request to stop."""
    # With nothing recorded since, nobody took the run.
    return (
        head.stop is not None
        and commit.revision is not None
        and head.revision == commit.revision + 1
        and head.audit_head == commit.known
    )


def _is_no_start(line: Any) -> bool:
    return not isinstance(line, AuditRecord) or line.event != "run_started"


def _is_record(head: AuditHead, line: Any) -> bool:
    return isinstance(line, AuditRecord) and (line.seq, line.digest) == head


def _takes_records(store: Any) -> bool:
    return "records" in inspect.signature(store.commit).parameters
