"""A trail in a file, one line a record.

Rules that hold here:

* reading what others wrote, checking the head and writing are one critical section, against the
  threads of this process and against other processes;
* one commit is one write; what a crash left of a line is closed by the next write and stays
  visible as `torn`;
* the file is read once from its start, and from then on only what is new in it.
"""

from __future__ import annotations

import os
import sys
import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from ..approval import check_run_id
from ..errors import AuditError
from ..values import check_amount, type_name
from ..views import Shown, View
from .base import check_head, check_key, refuse_to_pickle
from .filelock import acquire, release
from .lines import Link, link_of, read_audit, read_lines
from .record import GENESIS, AuditHead, AuditRecord, DamagedLine, is_intact, parse_line
from .shown import trail_of

__all__ = ["JsonlAuditSink"]


class JsonlAuditSink(Shown):
    """A trail in a file of JSON lines, shared by threads and processes.

    Parameters
    ----------
    path : str or path-like
        The file; it is made if it is not there, its folder is not.
    fsync : bool, default=False
        Whether each commit is forced to the disk, so that it survives a crash of the machine and
        not only of the process. It costs a disk write for each commit.
    timeout : float, default=30.0
        Seconds to wait for other writers.
    key : bytes or None, default=None
        Seals the records: each digest is then an HMAC, which nobody can make without the key.

    Raises
    ------
    TypeError, ValueError
        If an argument is of the wrong type or value.
    AuditError
        If the file cannot be opened.

    Examples
    --------
    >>> import os, tempfile
    >>> from scikitplot.agent import Agent, Decision, JsonlAuditSink, read_audit, verify_audit
    >>> path = os.path.join(tempfile.mkdtemp(), "trail.jsonl")
    >>> agent = Agent([], lambda state, tools: Decision.finish(1), audit=JsonlAuditSink(path))
    >>> state = agent.run("one")
    >>> verify_audit(read_audit(path), heads={state.run_id: state.audit_head})
    []
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        fsync: bool = False,
        timeout: float = 30.0,
        key: bytes | None = None,
    ) -> None:
        if not isinstance(path, (str, os.PathLike)):
            raise TypeError(f"path must be a str or a path, not {type_name(path)}")
        if type(fsync) is not bool:
            raise TypeError(f"fsync must be a bool, not {type_name(fsync)}")
        self.path = Path(path).absolute()
        self.fsync = fsync
        self.key = check_key(key)
        self.timeout = check_amount("timeout", timeout)
        self._lock = threading.Lock()
        self._open()
        with _SINKS_LOCK:
            _SINKS.add(self)

    def _open(self) -> None:
        is_new = not self.path.exists()
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)
        try:
            self._fd = os.open(self.path, flags | getattr(os, "O_CLOEXEC", 0), 0o666)
            if is_new and self.fsync:
                _sync_folder(self.path.parent)
        except OSError as error:
            raise AuditError(f"trail {self.path}: cannot be opened ({error.strerror})") from None
        self._close = weakref.finalize(self, os.close, self._fd)
        self._pid = os.getpid()
        self._forget()

    def _forget(self) -> None:
        self._offset = 0
        self._lines = 0
        self._open_line = False  # whether the file ends in the middle of a line
        self._heads: dict[str, tuple[int, str]] = {}  # by run, the last record's number and digest
        self._damaged: dict[str, int] = {}

    @contextmanager
    def _locked(self) -> Iterator[None]:
        self._enter()
        try:
            yield
        finally:
            self._leave()

    def _enter(self) -> None:
        """Begin the critical section: nobody else writes, and what others wrote is known."""
        if not self._lock.acquire(False) and not self._lock.acquire(
            timeout=min(self.timeout, threading.TIMEOUT_MAX)
        ):
            raise self._held()
        try:
            if self._pid != os.getpid():
                self._open()
            if not acquire(self._fd, self.timeout):
                raise self._held()
            try:
                self._catch_up()
            except BaseException:
                release(self._fd)
                raise
        except BaseException as error:
            self._lock.release()
            if isinstance(error, OSError):
                raise self._unusable(error) from None
            raise

    def _leave(self) -> None:
        try:
            release(self._fd)
        except OSError as error:
            raise self._unusable(error) from None
        finally:
            self._lock.release()

    def _held(self) -> AuditError:
        return AuditError(
            f"trail {self.path}: others have held its lock for longer than {self.timeout:g} seconds"
        )

    def _unusable(self, error: OSError) -> AuditError:
        return AuditError(f"trail {self.path}: cannot be used ({error.strerror})")

    def _after_fork(self) -> None:
        # The open file, and with it the lock, would be shared with the parent, and outlive it.
        self._close()
        self._lock = threading.Lock()

    def _catch_up(self) -> None:
        status = os.fstat(self._fd)
        if status.st_nlink == 0:
            raise AuditError(
                f"trail {self.path}: the file was deleted; records in it would be lost"
            )
        size = status.st_size
        if size == self._offset:
            return
        if size < self._offset or self._open_line:
            self._forget()
        with open(os.dup(self._fd), "rb") as file:
            file.seek(self._offset)
            for item in read_lines(file, self._lines, self._glance):
                self._lines += 1
                if isinstance(item, DamagedLine):
                    if item.run_id is not None and item.kind == "damaged":
                        self._damaged.setdefault(item.run_id, item.number)
                else:
                    self._note(item)
            self._offset = size
            file.seek(max(size - 1, 0))
            self._open_line = size > 0 and file.read(1) != b"\n"

    def _glance(self, line: bytes) -> Link | AuditRecord:
        return link_of(line, self.key) or parse_line(line)

    def _note(self, record: Link | AuditRecord) -> None:
        head = self._heads.get(record.run_id)
        after = (-1, GENESIS) if head is None else head
        is_linked = after == (record.seq - 1, record.prev)
        if not is_linked or (isinstance(record, AuditRecord) and not is_intact(record, self.key)):
            self._damaged.setdefault(record.run_id, self._lines)
        self._heads[record.run_id] = record.seq, record.digest

    def _whole_head(self, run_id: str) -> tuple[int, str] | None:
        if run_id in self._damaged:
            raise AuditError(
                f"trail {self.path}: run {run_id[:12]} is damaged at line {self._damaged[run_id]};"
                " verify_audit says how"
            )
        return self._heads.get(run_id)

    def append(self, records: Sequence[AuditRecord], *, expected: AuditHead | None) -> None:
        """Write records of one run; see `AuditSink.append`."""
        last = records[-1]
        data = "".join([f"{record.line}\n" for record in records]).encode()
        self._enter()
        try:
            held = self._whole_head(last.run_id)
            if held != expected:
                check_head(last.run_id, None if held is None else AuditHead(*held), expected)
            if self._open_line:
                data = b"\n" + data
            self._write(data)
            self._lines += len(records) + self._open_line
            self._open_line = False
            self._offset += len(data)
            self._heads[last.run_id] = last.seq, last.digest
        except OSError as error:
            raise self._unusable(error) from None
        finally:
            self._leave()

    def _write(self, data: bytes) -> None:
        written = os.write(self._fd, data)
        while written < len(data):  # a full disk, most often: the next write says so
            written += os.write(self._fd, data[written:])
        if self.fsync:
            os.fsync(self._fd)

    def head(self, run_id: str) -> AuditHead | None:
        """Return the last record of a run, None if there is none.

        Raises
        ------
        AuditError
            If the run's records are damaged, so that its last one cannot be told.
        """
        check_run_id(run_id)
        with self._locked():
            held = self._whole_head(run_id)
            return None if held is None else AuditHead(*held)

    def read(self, run_id: str | None = None) -> Iterator[AuditRecord]:
        """Return an iterator over the whole records of one run, or of all."""
        if run_id is not None:
            check_run_id(run_id)
        return self._records(run_id)

    def _records(self, run_id: str | None) -> Iterator[AuditRecord]:
        for item in read_audit(self.path):
            if isinstance(item, AuditRecord) and run_id in (None, item.run_id):
                yield item

    def __reduce__(self) -> tuple[Any, ...]:
        refuse_to_pickle(self, self.key)
        return partial(type(self), self.path, fsync=self.fsync, timeout=self.timeout), ()

    def _view(self) -> View:
        return trail_of(repr(self), read_audit(self.path))

    def __repr__(self) -> str:
        return f"JsonlAuditSink({str(self.path)!r}, fsync={self.fsync})"


# In a forked child a sink opens the file anew.
_SINKS: weakref.WeakSet[JsonlAuditSink] = weakref.WeakSet()
_SINKS_LOCK = threading.Lock()


def _after_fork() -> None:
    for sink in list(_SINKS):
        sink._after_fork()
    _SINKS_LOCK.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_SINKS_LOCK.acquire,
        after_in_parent=_SINKS_LOCK.release,
        after_in_child=_after_fork,
    )


def _sync_folder(folder: Path) -> None:
    if sys.platform != "win32":  # there a folder cannot be opened, and its entries are synced
        fd = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
