"""The stores whose growth is measured, and what of them lies on the disk."""

from __future__ import annotations

import atexit
import functools
import itertools
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from scikitplot.agent import (
    JsonlAuditSink,
    MemoryAuditSink,
    MemoryStore,
    SqliteStore,
    SqlStore,
)


class Kept(NamedTuple):
    """Where runs are kept.

    Attributes
    ----------
    open : callable
        Returns the ``store`` and ``audit`` of an `Agent`, new objects each time.
    size : callable
        Returns the bytes on the disk.
    connect : callable or None
        Returns a connection of the driver; None where there is no database.
    """

    open: Callable[[], dict[str, Any]]
    size: Callable[[], int]
    connect: Callable[[], Any] | None = None


def sqlite_size(path: Path) -> int:
    """Return the bytes of a database and of what is left of its log after a checkpoint."""
    connection = sqlite3.connect(path)
    connection.execute("pragma wal_checkpoint(truncate)")
    connection.close()
    return sum(file.stat().st_size for file in path.parent.glob(f"{path.name}*"))


def both(store: Any) -> dict[str, Any]:
    return {"store": store, "audit": store}


@contextmanager
def memory(folder: Path) -> Iterator[Kept]:
    yield Kept(lambda: {"store": MemoryStore(), "audit": MemoryAuditSink()}, lambda: 0)


@contextmanager
def memory_and_file(folder: Path) -> Iterator[Kept]:
    path = folder / "trail.jsonl"
    yield Kept(
        lambda: {"store": MemoryStore(), "audit": JsonlAuditSink(path)},
        lambda: path.stat().st_size,
    )


@contextmanager
def file(folder: Path) -> Iterator[Kept]:
    path = folder / "trail.jsonl"
    yield Kept(lambda: {"audit": JsonlAuditSink(path)}, lambda: path.stat().st_size)


@contextmanager
def database(folder: Path) -> Iterator[Kept]:
    path = folder / "runs.db"
    yield Kept(
        lambda: both(SqliteStore(path)), lambda: sqlite_size(path), lambda: sqlite3.connect(path)
    )


@contextmanager
def database_and_file(folder: Path) -> Iterator[Kept]:
    path, trail = folder / "runs.db", folder / "trail.jsonl"
    yield Kept(
        lambda: {"store": SqliteStore(path), "audit": JsonlAuditSink(trail)},
        lambda: sqlite_size(path) + trail.stat().st_size,
        lambda: sqlite3.connect(path),
    )


class Missing(Exception):
    """A part of this machine that is not there; the message says which."""


@functools.cache
def server() -> Any:
    """Return a PostgreSQL server of this process's own, which ends with it."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
    from postgres_server import Server, find_binaries

    binaries = find_binaries()
    if binaries is None:
        raise Missing("no PostgreSQL server")
    started = Server(binaries)
    atexit.register(started.close)
    return started


_schemas = itertools.count(1)
_SIZE = """select sum(pg_total_relation_size(pg_class.oid)) from pg_class
join pg_namespace on pg_namespace.oid = relnamespace where nspname = %s and relkind = 'r'"""


@contextmanager
def postgresql(folder: Path) -> Iterator[Kept]:
    try:
        import psycopg
    except ImportError:
        raise Missing("no psycopg") from None
    name = f"growth_{next(_schemas)}"
    address = server().address(name)

    def connect() -> Any:
        return psycopg.connect(address)

    with psycopg.connect(address, autocommit=True) as admin:
        admin.execute(f"create schema {name}")
        try:
            yield Kept(
                lambda: both(SqlStore(connect)),
                lambda: int(admin.execute(_SIZE, (name,)).fetchone()[0]),
                connect,
            )
        finally:
            admin.execute(f"drop schema {name} cascade")


STORES: dict[str, Callable[[Path], AbstractContextManager[Kept]]] = {
    "MemoryStore, MemoryAuditSink": memory,
    "MemoryStore, JsonlAuditSink": memory_and_file,
    "JsonlAuditSink": file,
    "SqliteStore": database,
    "SqliteStore, JsonlAuditSink": database_and_file,
    "SqlStore": postgresql,
}
