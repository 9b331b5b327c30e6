"""Runs and their trails in one SQLite database."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
import weakref
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from ..audit.base import refuse_to_pickle
from ..errors import StateError
from ..values import check_amount, type_name
from .sql import Tables

__all__ = ["SqliteStore"]

VERSION = 1
"""Of the tables. An older one is migrated at opening, a newer one refused."""

_APPLICATION = 0x5341474E  # "SAGN": whose database it is
_SYNCHRONOUS = ("off", "normal", "full")
_TABLES = """
create table agent_run (key integer primary key autoincrement, run_id text not null unique,
  revision integer, status text, head text);
create table agent_step (run integer not null, number integer not null, body text not null,
  primary key (run, number)) without rowid;
create table agent_record (run integer not null, seq integer not null, body text not null,
  primary key (run, seq)) without rowid;
"""
_MIGRATIONS = {0: _TABLES}  # by the version that they start from


class SqliteStore(Tables):
    """Runs and their trails in one SQLite database, for threads and processes.

    Pass one object as ``store=`` and ``audit=`` of an `Agent`: each commit is then one transaction.

    Parameters
    ----------
    path : str or path-like
        The database, made if it is not there; its folder is not. ``":memory:"`` is one that lives
        as long as this object.
    synchronous : str, default="normal"
        When SQLite waits for the disk. ``"full"``: at each commit, so that it survives a loss of
        power. ``"normal"``: a commit survives a crash of the process; a loss of power may take the
        last ones back, whole and in order. ``"off"``: a loss of power may damage the database.
    timeout : float, default=30.0
        Seconds to wait for other writers, at opening too.
    key : bytes or None, default=None
        Seals the records: each digest is then an HMAC, which nobody can make without the key.

    Raises
    ------
    TypeError, ValueError
        If an argument is of the wrong type or value.
    StateError
        If the file is no database, one of another program, a damaged one or one of a newer version.

    Examples
    --------
    >>> import os, tempfile
    >>> from scikitplot.agent import Agent, Decision, SqliteStore, verify_audit
    >>> path = os.path.join(tempfile.mkdtemp(), "runs.db")
    >>> with SqliteStore(path) as store:
    ...     agent = Agent([], lambda state, tools: Decision.finish(1), store=store, audit=store)
    ...     run_id = agent.run("one").run_id
    >>> with SqliteStore(path) as store:
    ...     store.runs("completed") == [run_id], verify_audit(store.read(), heads=store.heads())
    (True, [])
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        synchronous: str = "normal",
        timeout: float = 30.0,
        key: bytes | None = None,
    ) -> None:
        if not isinstance(path, (str, os.PathLike)):
            raise TypeError(f"path must be a str or a path, not {type_name(path)}")
        if not isinstance(synchronous, str):
            raise TypeError(f"synchronous must be a str, not {type_name(synchronous)}")
        if synchronous not in _SYNCHRONOUS:
            raise ValueError(f"synchronous must be one of {', '.join(_SYNCHRONOUS)}")
        super().__init__(key)
        self._busy: list[None] = []  # one for each connection in use: its length is the count
        self._forking: int | None = None  # the thread that forks now
        self._fork_lock = threading.RLock()
        self._file: tuple[int, int] | None = None  # which one it is, since it was opened
        self.path = ":memory:" if path == ":memory:" else str(Path(path).absolute())
        self.synchronous = synchronous
        self.timeout = check_amount("timeout", timeout)
        # A database in memory is its connection, which all threads then take in turns.
        self._turn = threading.Lock() if self.path == ":memory:" else None
        with _STORES_LOCK:
            _STORES.add(self)
        with self._transaction():
            pass

    def _take(self) -> Any:
        if self._turn is not None:
            self._turn.acquire()
            return self._idle.pop() if self._idle else None
        self._busy.append(None)
        # Who forks says so first and then looks who is busy; here it is the other way round.
        while self._forking not in (None, threading.get_ident()):
            self._busy.pop()
            with self._fork_lock:
                self._busy.append(None)
        return super()._take()

    def _give(self, connection: Any) -> None:
        super()._give(connection)
        self._end_use()

    def _discard(self, connection: Any) -> None:
        try:
            if self._turn is None:
                super()._discard(connection)
            elif connection is not None:
                connection.rollback()
                self._idle.append(connection)
        finally:
            self._end_use()

    def _end_use(self) -> None:
        if self._turn is not None:
            self._turn.release()
            return
        self._busy.pop()

    def _before_fork(self) -> None:
        """Wait for the transactions of other threads and close all connections, until the fork.

        A process forgets the locks of its parent and SQLite in it does not know that: what the
        child writes is lost when the parent closes the database.
        """
        if self._turn is not None:
            self._turn.acquire()
            return
        self._fork_lock.acquire()
        self._forking = threading.get_ident()
        deadline = time.monotonic() + self.timeout
        while self._busy and time.monotonic() < deadline:
            time.sleep(0.0005)
        for connection in self._idle:
            with suppress(sqlite3.Error):
                connection.close()
        self._idle.clear()

    def _after_fork(self) -> None:
        if self._turn is not None:
            self._turn.release()
            return
        if self._pid != os.getpid():
            self._busy.clear()
        self._forking = None
        self._fork_lock.release()

    def _connect(self) -> sqlite3.Connection:
        self._check_file()
        connection = sqlite3.connect(
            self.path, timeout=self.timeout, isolation_level=None, check_same_thread=False
        )
        try:
            self._prepare(connection)
            self._check_file()
        except BaseException:
            connection.close()
            raise
        return connection

    def _check_file(self) -> None:
        """Raise `StateError` if another file is in the place of the one that was opened.

        SQLite would go on writing to one that was deleted.
        """
        if self._turn is not None:
            return
        try:
            status = os.stat(self.path)
        except FileNotFoundError:
            found = None
        except OSError as error:
            raise StateError(f"database {self.path}: {error.strerror}") from None
        else:
            found = status.st_dev, status.st_ino
        if self._file is None:
            self._file = found
        elif found != self._file:
            raise StateError(
                f"database {self.path}: the file was deleted or replaced since it was opened; "
                "what is written to it would be lost"
            )

    def _prepare(self, connection: sqlite3.Connection) -> None:
        connection.execute("begin")  # one moment for all that tells the version
        version = self._version(connection)
        connection.execute("commit")
        if version > VERSION:
            raise StateError(
                f"database {self.path}: its version is {version}, newer than {VERSION}, the newest "
                "this release reads; upgrade the package"
            )
        # Switching to WAL does not wait for others by itself.
        deadline = time.monotonic() + self.timeout
        while True:
            try:
                connection.execute("pragma journal_mode = wal")
                break
            except sqlite3.OperationalError as error:
                if not _is_locked(error) or time.monotonic() > deadline:
                    raise
                time.sleep(0.01)
        connection.execute(f"pragma synchronous = {self.synchronous}")
        if version < VERSION:
            connection.execute("begin immediate")
            for start in range(self._version(connection), VERSION):
                for statement in _MIGRATIONS[start].split(";"):
                    connection.execute(statement)
            connection.execute(f"pragma application_id = {_APPLICATION}")
            connection.execute(f"pragma user_version = {VERSION}")
            connection.execute("commit")

    def _version(self, connection: sqlite3.Connection) -> int:
        # The tables first: another process that makes them meanwhile marks them in the same moment.
        (tables,) = connection.execute("select count(*) from sqlite_master").fetchone()
        (application,) = connection.execute("pragma application_id").fetchone()
        (version,) = connection.execute("pragma user_version").fetchone()
        if tables and application != _APPLICATION:
            raise StateError(f"database {self.path}: it is one of another program")
        return int(version)

    def _begin(self, cursor: Any, writes: bool) -> None:
        self._check_file()
        cursor.execute("begin immediate" if writes else "begin")

    def _commit(self, connection: Any, cursor: Any) -> None:
        cursor.execute("commit")  # prepared once, which `Connection.commit` does anew each time

    def _explain(self, error: Exception, connection: Any) -> StateError | None:
        if not isinstance(error, (sqlite3.Error, UnicodeDecodeError)):
            return None
        # SQLite quotes damaged names as they are: Python cannot decode its text then, or drops it.
        if isinstance(error, UnicodeDecodeError) or not str(error):
            return StateError(f"database {self.path}: its schema is damaged")
        if _is_locked(error):
            told = f"others have held its lock for longer than {self.timeout:g} seconds"
            return StateError(f"database {self.path}: {told}")
        if isinstance(error, sqlite3.IntegrityError):
            told = "another process went on with it, and wrote the same first"
            return StateError(f"database {self.path}: {told} ({error})")
        return StateError(f"database {self.path}: {error}")

    def __reduce__(self) -> tuple[Any, ...]:
        if self.path == ":memory:":
            raise TypeError("a SqliteStore of ':memory:' cannot be pickled; give it a path")
        refuse_to_pickle(self, self.key)
        options: dict[str, Any] = {"synchronous": self.synchronous, "timeout": self.timeout}
        return partial(type(self), self.path, **options), ()

    def __repr__(self) -> str:
        return f"SqliteStore({self.path!r}, synchronous={self.synchronous!r})"


def _is_locked(error: sqlite3.Error) -> bool:
    return isinstance(error, sqlite3.OperationalError) and "locked" in str(error)


# A fork must find no connection open.
_STORES: weakref.WeakSet[SqliteStore] = weakref.WeakSet()
_STORES_LOCK = threading.Lock()
_forking: list[SqliteStore] = []


def _before_fork() -> None:
    _STORES_LOCK.acquire()
    _forking.extend(_STORES)
    for store in _forking:
        store._before_fork()


def _after_fork() -> None:
    for store in _forking:
        store._after_fork()
    _forking.clear()
    _STORES_LOCK.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork
    )
