"""Runs kept in this process."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import NoReturn

from ..approval import check_run_id
from .base import SavedRun, check_revision, status_of

__all__ = ["MemoryStore"]


class _Run:
    __slots__ = ("head", "revision", "steps")

    def __init__(self) -> None:
        self.head = ""
        self.revision = -1
        self.steps: list[str] = []


class MemoryStore:
    """A store in memory, safe for threads; it lives as long as the process.

    Examples
    --------
    >>> from scikitplot.agent import Agent, Decision, MemoryStore
    >>> store = MemoryStore()
    >>> agent = Agent([], lambda state, tools: Decision.finish("done"), store=store)
    >>> run_id = agent.run("finish").run_id
    >>> store.runs("completed") == [run_id]
    True
    >>> store
    MemoryStore(1 run)
    """

    def __init__(self) -> None:
        self._runs: dict[str, _Run] = {}
        self._lock = threading.Lock()

    def load(self, run_id: str) -> SavedRun | None:
        """Return the latest head and steps of a run, None if it is not there."""
        check_run_id(run_id)
        with self._lock:
            run = self._runs.get(run_id)
            return None if run is None else SavedRun(run.head, tuple(run.steps))

    def commit(self, run_id: str, head: str, steps: Sequence[str], *, expected: int | None) -> None:
        """Replace the head and append `steps`; see `StateStore.commit`."""
        with self._lock:
            run = self._runs.get(run_id)
            held = None if run is None else run.revision
            if held != expected:
                check_revision(run_id, held, expected)
            if run is None:
                run = self._runs[check_run_id(run_id)] = _Run()
            run.head = head
            run.steps.extend(steps)
            run.revision += 1

    def runs(self, status: str | None = None) -> list[str]:
        """Return the ids of the runs of this status, of all when it is None."""
        with self._lock:
            return [
                run_id
                for run_id, run in self._runs.items()
                if status is None or status_of(run.head) == status
            ]

    def delete(self, run_id: str) -> None:
        """Forget a run; one that is not there is no error."""
        check_run_id(run_id)
        with self._lock:
            self._runs.pop(run_id, None)

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a MemoryStore is neither copied nor pickled, since it is in the memory of one "
            "process; a SqliteStore is shared by processes"
        )

    def __repr__(self) -> str:
        count = len(self._runs)
        return f"MemoryStore({count} run{'' if count == 1 else 's'})"
