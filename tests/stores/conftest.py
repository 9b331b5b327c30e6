"""The stores that one suite is run on."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from scikitplot.agent import (
    JsonlAuditSink,
    MemoryAuditSink,
    MemoryStore,
    SavedRun,
    SqliteStore,
    SqlStore,
    StateError,
)


class PlainStore:
    """A user's store: the four methods, and nothing else of this package but its error."""

    def __init__(self) -> None:
        self._runs: dict[str, tuple[int, str, list[str]]] = {}
        self._lock = threading.Lock()

    def load(self, run_id: str) -> SavedRun | None:
        with self._lock:
            held = self._runs.get(run_id)
            return None if held is None else SavedRun(held[1], list(held[2]))

    def commit(self, run_id: str, head: str, steps: Sequence[str], *, expected: int | None) -> None:
        with self._lock:
            held = self._runs.get(run_id)
            if (None if held is None else held[0]) != expected:
                raise StateError("another process went on with the run")
            revision, before = (0, []) if held is None else (held[0] + 1, held[2])
            self._runs[run_id] = revision, head, [*before, *steps]

    def runs(self, status: str | None = None) -> list[str]:
        return [
            run_id
            for run_id, (_, head, _) in self._runs.items()
            if status in (None, json.loads(head)["status"])
        ]

    def delete(self, run_id: str) -> None:
        self._runs.pop(run_id, None)


class Place:
    """Where runs are kept: `open` gives another object on the same ones."""

    def __init__(self, kind: str, opener: Callable[[], Any]) -> None:
        self.kind = kind
        self._opener = opener
        self._opened: list[Any] = []

    def open(self) -> Any:
        self._opened.append(self._opener())
        return self._opened[-1]

    def close(self) -> None:
        for store in self._opened:
            if hasattr(store, "close"):
                store.close()


def make_place(kind: str, folder: Path, request: pytest.FixtureRequest) -> Place:
    if kind == "sqlite":
        return Place(kind, lambda: SqliteStore(folder / "runs.db"))
    if kind == "postgresql":
        connect = request.getfixturevalue("postgres")
        return Place(kind, lambda: SqlStore(connect))
    if kind == "jsonl":
        return Place(kind, lambda: JsonlAuditSink(folder / "trail.jsonl"))
    makers: dict[str, Callable[[], Any]] = {
        "memory": MemoryStore,
        "plain": PlainStore,
        ":memory:": lambda: SqliteStore(":memory:"),
        "memory sink": MemoryAuditSink,
    }
    only = makers[kind]()
    return Place(kind, lambda: only)


BOTH = ["sqlite", ":memory:", "postgresql"]
"""Stores that are sinks too."""


def _places(kinds: list[str]) -> Any:
    @pytest.fixture(params=kinds)
    def fixture(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
        place = make_place(request.param, tmp_path, request)
        yield place
        place.close()

    return fixture


any_store = _places(["memory", "plain", *BOTH])
own_store = _places(["memory", *BOTH])
table_store = _places(BOTH)
shared_store = _places(["sqlite", "postgresql"])
any_sink = _places(["memory sink", "jsonl", *BOTH])
