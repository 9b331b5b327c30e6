"""Fail points: the moments at which a process may die, counted, and one of them chosen.

Nothing of the library is changed. Its modules get a view of `os`, of the lock and of `sqlite3`
that reports each call before and after it is made, and SQLite itself gets system calls that do the
same, where its library can be reached: so each page that it writes is a point of its own. A write
is also cut: in the middle, before its last byte, and after its first line.
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
    folder : Path or None
        What to record the states of: points between which nothing changed in these files are the
        same crash.
    """

    def __init__(
        self,
        at: int | None = None,
        *,
        label: str = "",
        pages: str = "none",
        pause: float = 0.0,
        folder: Path | None = None,
    ) -> None:
        self.at = -1 if at is None else at
        self.label = label
        self.pages = pages
        self.pause = pause
        self.count = 0
        self.folder = folder
        self.distinct: list[int] = []
        self.labels: list[str] = []
        self._state = 0

    def __call__(self, label: str) -> None:
        if self.count == self.at or label == self.label:
            _kill(_getpid(), signal.SIGKILL)
        if self.folder is not None:
            state = _state(self.folder)
            if state != self._state or label.startswith("call "):
                self.distinct.append(self.count)
            self._state = state
            self.labels.append(label)
        self.count += 1
        if self.pause and label.startswith("effect "):
            time.sleep(self.pause)

    def cuts(self, label: str, data: bytes) -> int | None:
        """Count the ways to cut a write; return how many bytes to write before dying, or None."""
        lengths = {len(data) // 2, len(data) - 1}
        if b"\n" in data[:-1]:
            lengths.add(data.index(b"\n") + 1)
        for length in sorted(lengths - {0}):
            if self.count == self.at:
                return length
            if self.folder is not None:
                self.distinct.append(self.count)
                self.labels.append(f"{label} cut at {length} of {len(data)}")
            self.count += 1
        return None


def _state(folder: Path) -> int:
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


def arm(fuse: Fuse, modules: tuple[Any, ...] = ()) -> None:
    """Let the fuse count in this process: in the library, and in `modules` that use `os`."""

    def around(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            fuse(f"before {name}")
            result = function(*args, **kwargs)
            fuse(f"after {name}")
            return result

        return wrapped

    def write(fd: int, data: bytes) -> int:
        fuse("before os.write")
        length = fuse.cuts("os.write", data)
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
    for module in (jsonl, *modules):
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

        def commit(self) -> None:
            around("commit", super().commit)()

        def close(self) -> None:
            around("close", super().close)()

    def connect(*args: Any, **kwargs: Any) -> Any:
        return around("connect", sqlite3.connect)(*args, factory=Connection, **kwargs)

    sqlite_store.sqlite3 = _View(sqlite3, connect=connect)
    if fuse.pages != "none":
        _arm_sqlite(fuse)


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
                length = fuse.cuts(f"sqlite {name}", b"\0" * size) if cut else None
                if length is not None:
                    original(fd, data, length, offset)
                    _kill(_getpid(), signal.SIGKILL)
            result = original(*args)
            fuse(f"after sqlite {name}")
            return result

        callback = kind(replaced)
        _kept.append((callback, original, replaced))
        put(vfs, name.encode(), ctypes.cast(callback, ctypes.c_void_p))
