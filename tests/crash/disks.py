"""A disk that is full: one clear error, and the run goes on when there is room again."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys
from collections import Counter
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from crash.faults import Trial, expect, main, own_server, plain
from crash.harness import Broken
from crash.pairs import PAIRS

NO_MOUNT = "this machine has no tmpfs that its user may mount"
FULL = ("full", "too large", "No space left", "disk I/O error", "unable to open", "DiskFull")


def too_large(pair: str, folder: Path) -> dict[str, Any]:
    """A file grows no further than a limit, at many limits, at opening and later."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    told: set[str] = set()
    # Files grow to about 60 kB; the least limits strike when the files are made.
    for limit in [*range(0, 24_000, 1_700), *range(24_000, 120_000, 3_900)]:
        trial = Trial(pair, folder / str(limit), f"limit of {limit} bytes")
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        try:
            told.add(expect(trial.go_through, *FULL))
        except Broken as error:
            if limit < 24_000 or "there was no error" not in str(error):
                raise
        finally:
            resource.setrlimit(
                resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
            )
        trial.end()
    return {"errors": plain(told)}


def full(pair: str, folder: Path, *, step: int) -> dict[str, Any]:
    """A small disk is full, with each number of pages still free at first; then it has room."""
    disk = folder / "disk"
    disk.mkdir()
    if not mount(disk, 32 << 20):
        return {"missing": NO_MOUNT}
    with own_server(pair) as server:
        settings = {}
        if server is not None:
            if os.getuid() != 0:  # the server's user must own a folder on the disk
                return {"missing": NO_MOUNT}
            folder.chmod(0o755)
            (disk / "server").mkdir()
            server.own(disk / "server")
            PAIRS[pair].execute(folder, f"create tablespace small location '{disk / 'server'}'")
            settings["default_tablespace"] = "small"
        small = [(1, n << 12) for n in range(0, 80 if server is None else 60, step)]
        # Long steps, so that SQLite writes back its WAL on the way, at 4 MB.
        large = [(150, n << 19) for n in range(0, 18 if server is None else 6, step)]
        told: Counter[str] = Counter()
        for number, (scale, free) in enumerate(small + large):
            trial = Trial(pair, folder / str(number), f"{free} bytes are free, {scale}", disk)
            trial.synchronous = ("normal", "full", "off")[number % 3]
            trial.settings, trial.scale = settings, scale
            fill(disk / "ballast", free)
            try:
                told[expect(trial.go_through, *FULL)] += 1
            except Broken as error:
                if "there was no error" not in str(error):
                    raise
            (disk / "ballast").unlink()
            trial.end()
            trial.close()
            trial.pair.remove(trial.place)
    return {"errors": plain(told), "struck": sum(told.values()), "runs": len(small + large)}


def mount(folder: Path, size: int) -> bool:
    """Mount a small disk for this process and its children alone; return whether it may do that."""
    new_user, new_mounts, private = 0x10000000, 0x00020000, 0x44000  # as Linux numbers them
    uid, gid = os.getuid(), os.getgid()
    libc = ctypes.CDLL(None)
    if not sys.platform.startswith("linux") or libc.unshare(new_mounts | (uid and new_user)):
        return False
    if uid:
        try:
            Path("/proc/self/setgroups").write_text("deny")
            Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
            Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")
        except OSError:
            return False
    libc.mount(b"none", b"/", None, ctypes.c_ulong(private), None)
    options = f"size={size}".encode()
    return libc.mount(b"tmpfs", bytes(folder), b"tmpfs", ctypes.c_ulong(0), options) == 0


def fill(ballast: Path, free: int) -> None:
    """Leave this many bytes free on a disk."""
    disk = os.statvfs(ballast.parent)
    fd = os.open(ballast, os.O_WRONLY | os.O_CREAT)
    os.posix_fallocate(fd, 0, disk.f_bavail * disk.f_frsize - free)
    os.close(fd)


if __name__ == "__main__":
    main({"too_large": too_large, "full": full}, *sys.argv[1:5])
