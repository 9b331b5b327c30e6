"""Every pair of a store and a sink that is killed: files, SQLite, a real PostgreSQL server."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from crash.launch import SERVER
from postgres_server import address

from scikitplot.agent import (
    AuditHead,
    JsonlAuditSink,
    SavedRun,
    SqliteStore,
    SqlStore,
    StateError,
)

try:
    import psycopg
    from psycopg import connect as _connect  # kept, so that no fail point reaches the harness
except ImportError:  # then its pairs are not tried
    psycopg = None  # type: ignore[assignment]


class FileStore:
    """A store as a user would write one: a file a run, replaced as a whole."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)

    def load(self, run_id: str) -> SavedRun | None:
        path = self.folder / f"{run_id}.json"
        if not path.exists():
            return None
        head, *steps = json.loads(path.read_text())
        return SavedRun(head, steps)

    def commit(self, run_id: str, head: str, steps: Any, *, expected: int | None) -> None:
        with self._locked():
            saved = self.load(run_id)
            held = None if saved is None else json.loads(saved.head)["revision"]
            if held != expected:
                raise StateError(f"revision {held} is there, not {expected}")
            before = () if saved is None else saved.steps
            try:
                self._save(run_id, json.dumps([head, *before, *steps]).encode())
            except OSError as error:
                raise StateError(f"run {run_id[:12]}: {error.strerror}") from None

    def _save(self, run_id: str, data: bytes) -> None:
        path = self.folder / f"{run_id}.new"
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        try:
            while data:
                data = data[os.write(fd, data) :]
            os.fsync(fd)
        finally:
            os.close(fd)
        os.replace(path, self.folder / f"{run_id}.json")

    def runs(self, status: str | None = None) -> list[str]:
        ids = [path.stem for path in self.folder.glob("*.json")]
        return [i for i in ids if status in (None, json.loads(self.load(i).head)["status"])]  # type: ignore[union-attr]

    def delete(self, run_id: str) -> None:
        (self.folder / f"{run_id}.json").unlink(missing_ok=True)

    def heads(self) -> dict[str, AuditHead]:
        heads = {run_id: json.loads(self.load(run_id).head) for run_id in self.runs()}  # type: ignore[union-attr]
        return {run_id: AuditHead(*head["audit_head"]) for run_id, head in heads.items()}

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with open(self.folder / "lock", "w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def close(self) -> None:
        pass


class Pair:
    """A store and a sink in one folder, and in one schema of the server where they are there.

    Parameters
    ----------
    name : str
        That of the store, "+", that of the sink; without the last two one object is both.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._store, _, self._audit = name.partition("+")
        self.on_server = "postgresql" in name
        self.parts = [(self._store, "runs"), *([(self._audit, "trail")] if self._audit else [])]

    def open(self, folder: Path, **settings: str) -> tuple[Any, Any]:
        """Return the store and the sink; the settings are those of a session at the server."""
        store = self._open(self._store, folder, "runs", settings)
        return store, self._open(self._audit, folder, "trail", settings) if self._audit else store

    def _open(self, kind: str, folder: Path, name: str, settings: dict[str, str]) -> Any:
        if kind == "file":
            return FileStore(folder / name)
        if kind == "sqlite":
            return SqliteStore(folder / f"{name}.db")
        if kind == "postgresql":
            where = address(
                Path(os.environ[SERVER]), search_path=f"{schema_of(folder)}_{name}", **settings
            )
            return SqlStore(lambda: psycopg.connect(where))
        return JsonlAuditSink(folder / f"{name}.jsonl", fsync=kind == "jsonl-fsync")

    def make(self, folder: Path) -> None:
        """Make the folder and the schemas."""
        folder.mkdir(exist_ok=True)
        self.execute(folder, *(f"create schema {{0}}_{name}" for name in _NAMES))

    def remove(self, folder: Path) -> None:
        shutil.rmtree(folder)
        self.execute(folder, "drop schema {0}_runs, {0}_trail cascade")

    def execute(self, folder: Path, *statements: str) -> None:
        """Execute statements at the server, if this pair is there."""
        if self.on_server:
            with _connect(address(Path(os.environ[SERVER])), autocommit=True) as connection:
                for statement in statements:
                    connection.execute(statement.format(schema_of(folder)))

    def watch(self, folder: Path) -> Callable[[], object]:
        """Return what returns a sum of all rows at the server."""
        if not self.on_server:
            return lambda: None
        connection = _connect(address(Path(os.environ[SERVER])), autocommit=True)
        statement = _ROWS.format(schema_of(folder))
        return lambda: connection.execute(statement).fetchone()


def schema_of(folder: Path) -> str:
    return "crash_" + hashlib.sha256(str(folder).encode()).hexdigest()[:20]


_ROWS = """
select md5(string_agg(schema_to_xml(nspname, true, false, '')::text, '|' order by nspname))
from pg_namespace where nspname in ('{0}_runs', '{0}_trail')
"""
_NAMES = ("runs", "trail")
_STORES = ("sqlite", "postgresql", "file")
_SINKS = ("jsonl", "jsonl-fsync", "sqlite", "postgresql")
PAIRS = {
    name: Pair(name)
    for name in (
        "sqlite",
        "postgresql",
        *(f"{store}+{sink}" for store in _STORES for sink in _SINKS),
    )
}
"""All of them, by name; the first two are one object."""

USUAL = (
    "sqlite",
    "sqlite+jsonl",
    "sqlite+jsonl-fsync",
    "sqlite+sqlite",
    "file+jsonl",
    "postgresql",
    "postgresql+jsonl",
)
"""Those that are killed whenever the tests run; `long.py` kills all."""
