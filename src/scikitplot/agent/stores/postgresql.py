"""Runs and their trails in a PostgreSQL database, over any PEP 249 driver.

Imports no driver: the caller hands in a function that connects. Of a driver it needs PEP 249 with
the ``format`` paramstyle, as psycopg has it, and nothing else. Rules that hold here:

* a revision is compared under a lock on the run's row, so that what is compared is still there when
  the transaction is committed;
* the database itself says whether a transaction, whose connection was lost, was committed;
* a message names the type of a driver's exception and its SQLSTATE. Its text can hold values and
  stays in ``__cause__``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..errors import StateError
from ..values import type_name
from .pool import LostConnection
from .sql import Tables

__all__ = ["SqlStore"]

VERSION = 1
"""Of the tables. A newer one is refused."""

_DIALECTS = ("postgresql",)
_OWNER = "scikitplot.agent"
_LOCK = 0x5341474E  # of PostgreSQL's advisory locks: held while the tables are made
_TABLES = f"""
create table agent_run (key bigint generated always as identity primary key,
  run_id text not null unique, revision bigint, status text, head text);
create table agent_step (run bigint not null, number bigint not null, body text not null,
  primary key (run, number));
create table agent_record (run bigint not null, seq bigint not null, body text not null,
  primary key (run, seq));
comment on table agent_run is '{_OWNER} {VERSION}'
"""
# Reads the catalog itself: what `to_regclass` knows may be older than a lock that was waited for.
_LOOK = """
select relname as name, obj_description(oid, 'pg_class') as comment,
  'UTF8' = all (array[current_setting('server_encoding'), current_setting('client_encoding')])
    as is_utf8,
  current_setting('transaction_isolation') as level
from (select 1) as always left join pg_class on relname = 'agent_run' and pg_table_is_visible(oid)
"""
_UNIQUE_VIOLATION = "23505"
_READ_COMMITTED = "set transaction isolation level read committed"


class SqlStore(Tables):
    """Runs and their trails in the tables of a database server, for threads, processes and hosts.

    Pass one object as ``store=`` and ``audit=`` of an `Agent`: each commit is then one transaction.

    Parameters
    ----------
    connect : callable
        ``connect()`` returns a new PEP 249 connection, whose rows are sequences. It is called when
        all connections that this object has are in use, and to replace a broken one. Its options
        say how long to wait for a server, and in which schema the tables are (``search_path``).
    dialect : str, default="postgresql"
        The kind of database: ``"postgresql"``, version 13 or later, with encoding UTF8. Its tables
        ``agent_run``, ``agent_step`` and ``agent_record`` are made if they are not there.
    key : bytes or None, default=None
        Seals the records: each digest is then an HMAC, which nobody can make without the key.

    Raises
    ------
    TypeError, ValueError
        If an argument is of the wrong type or value, or `connect` returns no such connection.
    StateError
        If the database cannot be reached or used, or its tables are those of another program or of
        a newer version.

    Notes
    -----
    A connection that the server closed while it was not in use is replaced, and the work goes on.
    When one is lost during a commit, the database is asked whether it was made. A server that stays
    away is one `StateError`; the run is resumed when it is back.

    Examples
    --------
    >>> from scikitplot.agent import Agent, Decision, SqlStore
    >>> def run(address):
    ...     import psycopg
    ...     with SqlStore(lambda: psycopg.connect(address)) as store:
    ...         planner = lambda state, tools: Decision.finish("done")
    ...         return Agent([], planner, store=store, audit=store).run("finish")
    >>> SqlStore(run, dialect="oracle")
    Traceback (most recent call last):
    ValueError: dialect must be one of: postgresql
    """

    _mark = "%s"
    _for_update = " for update"

    def __init__(
        self,
        connect: Callable[[], Any],
        *,
        dialect: str = "postgresql",
        key: bytes | None = None,
    ) -> None:
        if not callable(connect):
            raise TypeError(f"connect must be callable, not {type_name(connect)}")
        if not isinstance(dialect, str):
            raise TypeError(f"dialect must be a str, not {type_name(dialect)}")
        if dialect not in _DIALECTS:
            raise ValueError(f"dialect must be one of: {', '.join(_DIALECTS)}")
        super().__init__(key)
        self.connect = connect
        self.dialect = dialect
        self._sets_level = False  # whether connections come with another isolation level
        with self._transaction():
            pass

    def _connect(self) -> Any:
        connection = self.connect()
        for method in ("cursor", "commit", "rollback", "close"):
            if not callable(getattr(connection, method, None)):
                raise TypeError(
                    f"connect must return a PEP 249 connection; {type_name(connection)} "
                    f"has no {method}"
                )
        try:
            if getattr(connection, "autocommit", False):
                connection.autocommit = False
            self._prepare(connection)
        except BaseException as error:
            told = self._explain(error, connection) if isinstance(error, Exception) else None
            self._discard(connection)
            if told is not None:
                raise told from error
            raise
        return connection

    def _prepare(self, connection: Any) -> None:
        cursor = connection.cursor()
        if not self._look(cursor):
            # Two that make the tables at once would fail on each other's, so they take turns.
            connection.rollback()
            cursor.execute(_READ_COMMITTED)
            cursor.execute("select pg_advisory_xact_lock(%s)", (_LOCK,))
            if not self._look(cursor):
                for statement in _TABLES.split(";"):
                    cursor.execute(statement)
        connection.commit()

    def _look(self, cursor: Any) -> bool:
        """Return whether the tables are there; raise an error if they cannot be used."""
        cursor.execute(_LOOK)
        row = cursor.fetchone()
        if isinstance(row, Mapping):
            raise TypeError("connect must return a connection whose rows are sequences")
        table, comment, is_utf8, level = row
        if not is_utf8:
            raise StateError("database: its encoding and the connection's must both be UTF8")
        self._sets_level = self._sets_level or level != "read committed"
        if table is None:
            return False
        owner, _, version = (comment or "").rpartition(" ")
        if owner != _OWNER or not version.isdecimal():
            raise StateError(f"database: its table {table} is one of another program")
        if int(version) > VERSION:
            raise StateError(
                f"database: its version is {version}, newer than {VERSION}, the newest this "
                "release reads; upgrade the package"
            )
        return True

    def _begin(self, cursor: Any, writes: bool) -> str | None:
        if not writes:
            # All statements see one moment.
            cursor.execute("set transaction isolation level repeatable read, read only")
            return None
        if self._sets_level:
            cursor.execute(_READ_COMMITTED)  # what was locked is then read as it is by now
        cursor.execute("select pg_current_xact_id()::text as name")
        name: str = cursor.fetchone()[0]
        return name

    def _has_landed(self, transaction: str) -> bool:
        with self._transaction() as cursor:
            cursor.execute("select pg_xact_status(cast(%s as xid8)) as status", (transaction,))
            return bool(cursor.fetchone()[0] == "committed")

    def _explain(self, error: Exception, connection: Any) -> StateError | None:
        if not _is_a(error, "Error") and not isinstance(error, OSError):
            return None
        code = getattr(error, "sqlstate", None) or getattr(error, "pgcode", None)
        reason = type(error).__name__ + (f", SQLSTATE {code}" if code else "")
        if connection is None:
            return StateError(f"database: no connection can be opened ({reason})")
        if code == _UNIQUE_VIOLATION or (not code and _is_a(error, "IntegrityError")):
            return StateError(
                f"database: another process went on with it, and wrote the same first ({reason})"
            )
        try:
            connection.rollback()
            connection.cursor().execute("select 1")
        except Exception:
            return LostConnection(f"database: the connection was lost ({reason}); resume the run")
        return StateError(f"database: it refused a statement ({reason})")

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError(
            "a SqlStore cannot be pickled, as its connections cannot; "
            "pass a function that makes the store"
        )

    def __repr__(self) -> str:
        return f"SqlStore(dialect={self.dialect!r})"


def _is_a(error: Exception, name: str) -> bool:
    """Return whether an exception is PEP 249's of this name, of whatever driver.

    PEP 249 fixes the names. That a connection has the classes as attributes is an extension of it,
    which one driver lacks and another warns of.
    """
    return name in (kind.__name__ for kind in type(error).__mro__)
