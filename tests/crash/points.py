"""Fail points: the moments at which a process may die, counted, and one of them chosen.

Nothing of the library is changed. Its modules get a view of `os`, of the lock and of `sqlite3`
that reports each call before and after it is made, and SQLite itself gets system calls that do the
same, where its library can be reached: so each page that it writes is a point of its own. A write
is also cut: in the middle, before its last byte, and after its first line. The driver of PostgreSQL
reports its calls too, and a commit is also sent by a process that dies before it is answered.
"""

from __future__ import annotations

import _sqlite3
import contextlib
import ctypes
import os
import signal
import sqlite3
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from crash import pairs

from scikitplot.agent.audit import jsonl
from scikitplot.agent.stores import sqlite as sqlite_store

_kill, _getpid = os.kill, os.getpid


class Fuse:
    """Counts points, and kills the process at one of them.

    Parameters
    ----------
    at : int or None
        Number of the point to die at, from 0; None never dies.
    label : str
        Die at each point of this name.
    pages : str
        Whether SQLite's own writes are points: ``"none"``, ``"whole"``, or ``"cut"`` too.
    pause : float
        Seconds to stay in each call, so that kills from outside meet some of them.
    state : callable or None
        Returns what is saved by now; then what is found is recorded. Points between which it does
        not change are the same crash.
    """

    def __init__(
        self,
        at: int | None = None,
        *,
        label: str = "",
        pages: str = "none",
        pause: float = 0.0,
        state: Callable[[], object] | None = None,
    ) -> None:
        self.at = -1 if at is None else at
        self.label = label
        self.pages = pages
        self.pause = pause
        self.count = 0
        self.state = state
        self.distinct: list[int] = []
        self._last: object = None

    def __call__(self, label: str) -> None:
        if self.count == self.at or label == self.label:
            _kill(_getpid(), signal.SIGKILL)
        if self.state is not None:
            state = self.state()
            if state != self._last or label.startswith("call "):
                self.distinct.append(self.count)
            self._last = state
        self.count += 1
        if self.pause and label.startswith("effect "):
            time.sleep(self.pause)

    def strikes(self) -> bool:
        """Count a point in the middle of something; return whether to die there."""
        if self.count == self.at:
            return True
        if self.state is not None:
            self.distinct.append(self.count)
        self.count += 1
        return False

    def cuts(self, data: bytes) -> int | None:
        """Count the ways to cut a write; return how many bytes to write before dying, or None."""
        # As many for any data of so many lines, so that a point has one number in all runs.
        lengths = [len(data) // 2, len(data) - 1]
        if b"\n" in data[:-1]:
            lengths.append(data.index(b"\n") + 1)
        return next((length for length in lengths if self.strikes()), None)


def state_of(folder: Path) -> int:
    """Return a sum of all files of a folder."""
    state = 0
    with contextlib.suppress(FileNotFoundError):
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                state = zlib.crc32(path.read_bytes(), zlib.crc32(str(path).encode(), state))
    return state


class _View:
    """A module with some of its names replaced."""

    def __init__(self, module: Any, **replaced: Any) -> None:
        self.__dict__.update(replaced)
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)


def arm(fuse: Fuse) -> None:
    """Let the fuse count in this process: in the library, and in the stores of the tests."""

    def around(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            fuse(f"before {name}")
            result = function(*args, **kwargs)
            fuse(f"after {name}")
            return result

        return wrapped

    def write(fd: int, data: bytes) -> int:
        fuse("before os.write")
        length = fuse.cuts(data)
        if length is not None:
            os.write(fd, data[:length])
            _kill(_getpid(), signal.SIGKILL)
        written = os.write(fd, data)
        fuse("after os.write")
        return written

    names = ("open", "fsync", "replace", "close")
    view = _View(
        os, write=write, **{name: around(f"os.{name}", getattr(os, name)) for name in names}
    )
    for module in (jsonl, pairs):
        module.os = view
    jsonl.acquire = around("the lock", jsonl.acquire)  # type: ignore[assignment]
    jsonl.release = around("the unlock", jsonl.release)  # type: ignore[assignment]

    class Cursor(sqlite3.Cursor):
        def execute(self, sql: str, *args: Any) -> Any:
            return around(sql[:30], super().execute)(sql, *args)

        def executemany(self, sql: str, *args: Any) -> Any:
            return around(sql[:30], super().executemany)(sql, *args)

    class Connection(sqlite3.Connection):
        def cursor(self, factory: Any = Cursor) -> Any:
            return super().cursor(factory)

        def execute(self, sql: str, *args: Any) -> Any:
            return self.cursor().execute(sql, *args)

        def close(self) -> None:
            around("close", super().close)()

    def connect(*args: Any, **kwargs: Any) -> Any:
        return around("connect", sqlite3.connect)(*args, factory=Connection, **kwargs)

    sqlite_store.sqlite3 = _View(sqlite3, connect=connect)
    if pairs.psycopg is not None:
        _arm_psycopg(fuse, around)
    if fuse.pages != "none":
        _arm_sqlite(fuse)


def _arm_psycopg(fuse: Fuse, around: Callable[..., Any]) -> None:
    psycopg = pairs.psycopg

    class Cursor(psycopg.Cursor):
        def execute(self, sql: str, *args: Any) -> Any:
            return around(sql[:30], super().execute)(sql, *args)

        def executemany(self, sql: str, *args: Any) -> Any:
            return around(sql[:30], super().executemany)(sql, *args)

    class Connection(psycopg.Connection):
        def commit(self) -> None:
            fuse("before commit")
            if fuse.strikes():  # the server gets it, and nobody gets the answer
                self.pgconn.send_query(b"commit")
                self.pgconn.flush()
                _kill(_getpid(), signal.SIGKILL)
            super().commit()
            fuse("after commit")

        def rollback(self) -> None:
            around("rollback", super().rollback)()

        def close(self) -> None:
            around("close", super().close)()

    def connect(*args: Any) -> Any:
        return around("connect", Connection.connect)(*args, cursor_factory=Cursor)

    pairs.psycopg = _View(psycopg, connect=connect)


_kept: list[Any] = []  # what SQLite calls must outlive the call


class _Vfs(ctypes.Structure):
    """The start of ``sqlite3_vfs``, up to the functions that replace system calls."""

    _fields_ = [
        ("version", ctypes.c_int),
        ("file_size", ctypes.c_int),
        ("max_path", ctypes.c_int),
        *((name, ctypes.c_void_p) for name in ("next", "name", "data", "open", "delete")),
        *((name, ctypes.c_void_p) for name in ("access", "full", "dlopen", "dlerror", "dlsym")),
        *((name, ctypes.c_void_p) for name in ("dlclose", "random", "sleep", "time", "error")),
        *((name, ctypes.c_void_p) for name in ("time64", "set_call", "get_call", "next_call")),
    ]


_SIGNATURES = {
    "pwrite64": (ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int64),
    "pwrite": (ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int64),
    "write": (ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t),
    "ftruncate": (ctypes.c_int, ctypes.c_int, ctypes.c_int64),
    "unlink": (ctypes.c_int, ctypes.c_char_p),
}


def reaches_sqlite() -> bool:
    """Whether SQLite's own system calls can be points here."""
    with contextlib.suppress(OSError, AttributeError):
        return bool(ctypes.CDLL(_sqlite3.__file__).sqlite3_vfs_find)
    return False


def _arm_sqlite(fuse: Fuse) -> None:
    if not reaches_sqlite():
        return
    library = ctypes.CDLL(_sqlite3.__file__)
    find = library.sqlite3_vfs_find
    find.restype, find.argtypes = ctypes.POINTER(_Vfs), [ctypes.c_char_p]
    vfs = find(None)
    if vfs.contents.version < 3 or not vfs.contents.set_call:
        return
    get = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(vfs.contents.get_call)
    put = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
        vfs.contents.set_call
    )
    for name, (result, *arguments) in _SIGNATURES.items():
        address = get(vfs, name.encode())
        if not address:
            continue
        kind = ctypes.CFUNCTYPE(result, *arguments, use_errno=True)
        original = kind(address)

        def replaced(*args: Any, name: str = name, original: Any = original) -> Any:
            fuse(f"before sqlite {name}")
            if name.startswith("pwrite"):
                fd, data, size, offset = args
                cut = fuse.pages == "cut" and size > 1
                length = fuse.cuts(b"\0" * size) if cut else None
                if length is not None:
                    original(fd, data, length, offset)
                    _kill(_getpid(), signal.SIGKILL)
            result = original(*args)
            fuse(f"after sqlite {name}")
            return result

        callback = kind(replaced)
        _kept.append((callback, original, replaced))
        put(vfs, name.encode(), ctypes.cast(callback, ctypes.c_void_p))
