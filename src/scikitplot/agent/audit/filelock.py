"""A lock on an open file, against other processes and other openers in this one."""

from __future__ import annotations

import os
import sys
import time

__all__ = ["acquire", "release"]

if sys.platform == "win32":
    import msvcrt

    def _try_lock(fd: int) -> bool:
        # A byte far behind any trail, because a locked byte cannot be read by others.
        os.lseek(fd, 2**62, os.SEEK_SET)
        try:
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def release(fd: int) -> None:
        os.lseek(fd, 2**62, os.SEEK_SET)
        msvcrt.locking(fd, msvcrt.LK_UNLCK, 1)
else:
    import fcntl

    # flock belongs to the open file and not to the process: two sinks on one path in one process
    # exclude each other, and closing one of them releases nothing of the other.
    _NOW = fcntl.LOCK_EX | fcntl.LOCK_NB

    def _try_lock(fd: int) -> bool:
        try:
            fcntl.flock(fd, _NOW)
        except BlockingIOError:
            return False
        return True

    def release(fd: int) -> None:
        fcntl.flock(fd, fcntl.LOCK_UN)


def acquire(fd: int, timeout: float) -> bool:
    """Wait for the lock, no longer than so many seconds; return whether it was got."""
    if _try_lock(fd):
        return True
    deadline, pause = time.monotonic() + timeout, 0.0002
    while time.monotonic() < deadline:
        time.sleep(pause)
        if _try_lock(fd):
            return True
        pause = min(2 * pause, 0.02)
    return False
