"""Connections to a database, and what is done with them.

Rules that hold here:

* no transaction is open and no cursor is read from while anything else runs;
* a connection that breaks is replaced, and what was being done is done once: again if it was not
  committed, and not again if it was;
* every failure of the database is one `StateError` in one sentence.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Any, TypeVar

from ..errors import StateError

__all__ = ["LostConnection", "Pool"]

Result = TypeVar("Result")
Self = TypeVar("Self", bound="Pool")


class LostConnection(StateError):
    """The connection broke; what was being done may or may not have been done.

    Attributes
    ----------
    transaction : str or None
        What names the transaction at the database; None where nothing was written in it.
    """

    transaction: str | None = None


def _close(connection: Any) -> None:
    with suppress(Exception):  # one that cannot even be closed is gone already
        connection.close()


def _close_all(connections: list[Any], pid: int) -> None:
    if pid == os.getpid():
        with suppress(IndexError):  # another thread may take the last one
            while True:
                _close(connections.pop())


class Pool:
    """Connections of one kind; a dialect overrides what it differs in."""

    def __init__(self) -> None:
        self._abandoned: list[Any] = []  # of the process that this one was forked from
        self._start_pool()

    # What a dialect says

    def _connect(self) -> Any:
        """Return a new connection that is ready to be used."""
        raise NotImplementedError

    def _begin(self, cursor: Any, writes: bool) -> str | None:
        """Begin a transaction; return what names it at the database, if `_has_landed` is to ask."""
        raise NotImplementedError

    def _commit(self, connection: Any, cursor: Any) -> None:
        """Commit the transaction that the cursor is in."""
        connection.commit()

    def _has_landed(self, transaction: str) -> bool:
        """Return whether a transaction, whose connection was lost, was committed."""
        raise NotImplementedError

    def _explain(self, error: Exception, connection: Any) -> StateError | None:
        """Return what an exception means, in one sentence; None if it is none of the database."""
        raise NotImplementedError

    # Connections and transactions

    def _transaction(self, writes: bool = False) -> _Transaction:
        """Return a transaction to be used in a `with`, which gives a cursor."""
        return _Transaction(self, writes)

    def _start_pool(self) -> None:
        self._idle: list[Any] = []
        self._pid = os.getpid()
        weakref.finalize(self, _close_all, self._idle, self._pid).atexit = False

    def _take(self) -> Any:
        if self._pid != os.getpid():
            # Connections do not survive a fork, and closing them would harm the parent's.
            self._abandoned.append(self._idle)
            self._start_pool()
        try:
            return self._idle.pop()
        except IndexError:
            return None

    def _give(self, connection: Any) -> None:
        self._idle.append(connection)

    def _discard(self, connection: Any) -> None:
        if connection is not None:
            with suppress(Exception):  # closing does not, as long as somebody holds a cursor
                connection.rollback()
            _close(connection)

    def close(self) -> None:
        """Close the connections that are not in use; the next use opens new ones."""
        _close_all(self._idle, self._pid)

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _attempt(self, action: Callable[[], Result]) -> Result | None:
        """Do something; where the connection breaks, do it again unless it was done."""
        try:
            return action()
        except LostConnection as lost:
            transaction = lost.transaction
        try:
            # Waits for what is left of the first transaction. If that was committed, this one finds
            # another revision than it expects, or another end of the trail.
            return action()
        except StateError:
            if transaction is not None and self._has_landed(transaction):
                return None
            raise


class _Transaction:
    """One transaction: committed where its block ends, and undone where that raises."""

    # A generator would take as long as some of the statements do.

    __slots__ = ("_connection", "_cursor", "_name", "_pool", "_writes")

    def __init__(self, pool: Pool, writes: bool) -> None:
        self._pool = pool
        self._writes = writes
        self._connection: Any = None
        self._name: str | None = None

    def __enter__(self) -> Any:
        self._connection = self._pool._take()
        try:
            if self._connection is None:
                self._connection = self._pool._connect()
            cursor = self._cursor = self._connection.cursor()
            self._name = self._pool._begin(cursor, self._writes)
        except BaseException as error:
            self._undo(error)
            raise
        return cursor

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None:
            try:
                self._pool._commit(self._connection, self._cursor)
            except BaseException as failed:
                self._undo(failed)
                raise
            self._pool._give(self._connection)
        else:
            self._undo(error)

    def _undo(self, error: BaseException) -> None:
        """Give the connection up; raise what the error means, if that can be told."""
        pool, connection = self._pool, self._connection
        told = pool._explain(error, connection) if isinstance(error, Exception) else None
        pool._discard(connection)
        if isinstance(told, LostConnection):
            told.transaction = self._name
            pool.close()  # what broke it has most often broken the idle ones too
        if told is not None:
            raise told from error
