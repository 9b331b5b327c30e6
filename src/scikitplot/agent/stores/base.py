"""The protocol of a store."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from ..errors import StateError

__all__ = ["SavedRun", "StateStore", "check_revision", "status_of"]


_STATUS = '"status":"'
_STATUSES = frozenset(("running", "awaiting_approval", "completed", "stopped", "failed"))


class SavedRun(NamedTuple):
    """What a store holds of a run.

    Attributes
    ----------
    head : str
        JSON text: everything but the finished steps.
    steps : sequence of str
        JSON texts of the finished steps, in order.
    """

    head: str
    steps: Sequence[str]


class StateStore(Protocol):
    """What `Agent` needs of a ``store=``.

    A revision is a whole number: 0 after a run's first commit, one more after each later one.
    """

    def load(self, run_id: str) -> SavedRun | None:
        """Return the latest head and steps of a run, None if it is not there."""

    def commit(self, run_id: str, head: str, steps: Sequence[str], *, expected: int | None) -> None:
        """Replace the head and append `steps`, all or nothing.

        Parameters
        ----------
        run_id : str
            The run.
        head : str
            The new head.
        steps : sequence of str
            Steps that were finished since the last commit; often empty.
        expected : int or None
            The revision that is replaced; None where the run must not be there yet.

        Raises
        ------
        StateError
            If the store holds another revision. Nothing is written then.
        """

    def runs(self, status: str | None = None) -> Iterable[str]:
        """Return the ids of the runs of this status, of all when it is None."""

    def delete(self, run_id: str) -> None:
        """Forget a run; one that is not there is no error."""


def status_of(head: str) -> str:
    """Return the status that a head names."""
    # In a head as it is made here the last of these starts the status, since no key behind it
    # holds an object with other keys and a quote inside a text is escaped. Reading the whole head
    # at each commit would cost more than the commit.
    start = head.rfind(_STATUS) + len(_STATUS)
    status = head[start : head.find('"', start)]
    if status in _STATUSES:
        return status
    return str(json.loads(head)["status"])


def check_revision(run_id: str, held: int | None, expected: int | None) -> None:
    """Raise `StateError` unless the revision that is held is the one that is expected."""
    if held != expected:
        raise StateError(
            f"run {run_id[:12]}: the store holds revision {held}, not {expected}; "
            "another process went on with it"
        )
