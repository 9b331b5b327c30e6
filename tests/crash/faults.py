"""What the system may refuse: a full disk, a read-only, deleted or replaced file, a held lock.

Each trial is a process of its own. In it the fault is one clear error, nothing that was committed
is lost, and when the cause is gone the run goes on and ends.
"""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import signal
import sqlite3
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from crash import workload
from crash.harness import Broken, Case, fork
from crash.workload import PAIRS

from scikitplot.agent import AgentError, AuditError, JsonlAuditSink, SqliteStore, StateError

if sys.platform != "win32":
    import fcntl

NOBODY = 65534


def expect(act: Callable[[], Any], *words: str) -> str:
    """Return the message of the one clear error that `act` raises."""
    try:
        act()
    except AgentError as error:
        told = str(error)
        if type(error) not in (StateError, AuditError):
            raise
        if "\n" in told or not told or not any(word in told for word in words):
            raise Broken(f"unclear: {told!r} has none of {words}") from None
        return told
    raise Broken("there was no error")


def plain(told: Iterable[str]) -> list[str]:
    return sorted({re.sub(r"[^ ]*/|[0-9a-f]{12}", "", message) for message in told})


class Trial(Case):
    """A case whose sessions are in this process."""

    def open(self, **options: Any) -> None:
        self.store, self.audit = PAIRS[self.pair](self.folder)
        for part in (self.store, self.audit):
            if isinstance(part, (SqliteStore, JsonlAuditSink)):
                part.timeout = 0.2
            if isinstance(part, SqliteStore):
                part.close()  # the next connection waits no longer than that
        self.agent = workload.make_agent(self.store, self.audit, self.oracle)

    def look(self) -> None:
        self.judge(workload.look(self.store, self.audit, self.run_id))
        self.judge_oracle()

    def go_on(self) -> None:
        workload.go_on(self.agent, self.run_id, self.seen)

    def end(self) -> None:
        """Go on to the end, with no fault any more."""
        for _ in range(3):
            self.look()
            if self.seen["status"] is None and self.audit.head(self.run_id) is not None:
                self.run_id = os.urandom(32).hex()
            if self.seen["status"] != "completed":
                self.go_on()
        if self.seen["status"] != "completed":
            raise Broken(f"{self}: it ended as {self.seen['status']}")


def full(pair: str, folder: Path) -> dict[str, Any]:
    """A file grows no further than a limit, at many limits, at opening and later."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    told: set[str] = set()
    # Files grow to about 60 kB; the least limits strike when the files are made.
    for limit in [*range(0, 24_000, 1_700), *range(24_000, 120_000, 3_900)]:
        trial = Trial(pair, folder / str(limit), f"limit of {limit} bytes")
        trial.folder.mkdir()
        least = limit if limit < 24_000 else 0

        def filled(trial: Trial = trial) -> None:
            trial.open()
            trial.look()
            trial.go_on()
            trial.look()
            trial.go_on()

        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        try:
            told.add(expect(filled, "full", "too large", "disk I/O error", "unable to open"))
        except Broken as error:
            if least or "there was no error" not in str(error):
                raise
        finally:
            resource.setrlimit(
                resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
            )
        if trial.sessions == 0:
            trial.open()
        trial.end()
    return {"errors": plain(told)}


def read_only(pair: str, folder: Path) -> dict[str, Any]:
    """The files cannot be written, at opening and while they are open."""
    folder.chmod(0o755)
    trial = Trial(pair, folder, "read-only")
    trial.open()
    trial.look()
    trial.go_on()  # to its pause
    trial.look()
    close(trial)

    def limited() -> None:
        if os.geteuid() == 0:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)

        def act() -> None:
            trial.open()
            trial.go_on()

        expect(act, "readonly", "Permission denied", "unable to open", "Read-only")

    files = [path for path in folder.rglob("*") if path.is_file()]
    for path in files:
        path.chmod(0o444)
    folder.chmod(0o555)
    pid = fork(limited)
    _, status = os.waitpid(pid, 0)
    folder.chmod(0o755)
    for path in files:
        path.chmod(0o644)
    if status:
        raise Broken(f"the read-only session ended with {status}")
    trial.open()
    trial.end()
    return {"errors": 1}


def deleted(pair: str, folder: Path) -> dict[str, Any]:
    """A file is moved away while it is open, and put back."""
    told = []
    names = [name for name in ("runs.db", "trail.db", "trail.jsonl") if uses(pair, name)]
    for name in names:
        where = folder / name
        where.mkdir()
        trial = Trial(pair, where, f"without {name}")
        trial.open()
        trial.look()
        trial.go_on()
        trial.look()
        away = folder / f"{name}.away"
        away.mkdir()
        for path in where.glob(f"{name}*"):
            if name.endswith(".jsonl"):
                shutil.copy(path, away / path.name)  # a sink knows the file, not the name
                path.unlink()
            else:
                path.rename(away / path.name)
        for _ in range(2):  # the second time as the first: nothing is made in its place
            told.append(expect(trial.go_on, "the file was deleted"))
            if list(where.glob(f"{name}*")):
                raise Broken(f"{name}: a new file was made where one was deleted")
        for path in away.iterdir():
            path.rename(where / path.name)
        if name.endswith(".jsonl"):
            expect(trial.go_on, "the file was deleted")
            trial.open()
        trial.end()
    return {"errors": plain(told)}


def uses(pair: str, name: str) -> bool:
    kinds = {
        "runs.db": pair.startswith("sqlite"),
        "trail.db": pair.endswith("+sqlite"),
        "trail.jsonl": "jsonl" in pair,
    }
    return kinds[name]


def locked(pair: str, folder: Path) -> dict[str, Any]:
    """Another holds the lock for longer than the timeout, at opening and later."""
    told = []
    names = [name for name in ("runs.db", "trail.db", "trail.jsonl") if uses(pair, name)]
    for name in names:
        where = folder / name
        where.mkdir()
        trial = Trial(pair, where, f"{name} is locked")
        trial.open()
        trial.look()
        trial.go_on()
        trial.look()
        let_go = hold(where / name)
        started = time.monotonic()
        told.append(expect(trial.go_on, "held its lock for longer than 0.2 seconds"))
        if time.monotonic() - started < 0.2:
            raise Broken("it did not wait")
        let_go()
        trial.end()
        if name.endswith(".db"):
            let_go = hold(where / "new.db")
            opened = expect(
                lambda path=where / "new.db": SqliteStore(path, timeout=0.2), "held its lock"
            )
            told.append(opened)
            let_go()
            SqliteStore(where / "new.db", timeout=0.2).close()
    return {"errors": plain(told)}


def hold(path: Path) -> Callable[[], None]:
    """Take the lock of a file; return what lets it go."""
    if path.suffix == ".db":
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute("begin exclusive" if not path.exists() else "begin immediate")
        if path.stat().st_size == 0:
            connection.execute("rollback")
            connection.execute("begin exclusive")
        return connection.close
    fd = os.open(path, os.O_WRONLY)
    fcntl.flock(fd, fcntl.LOCK_EX)
    return lambda: os.close(fd)


def left_behind(pair: str, folder: Path) -> dict[str, Any]:
    """A process dies with the lock, and leaves a forked child that had the file open."""
    path = folder / "trail.jsonl"
    reader, writer = os.pipe()

    def dies() -> None:
        sink = JsonlAuditSink(path)
        with sink._locked():
            child = os.fork()
            if child == 0:
                time.sleep(60)
                os._exit(0)
            os.write(writer, str(child).encode())
            os.kill(os.getpid(), signal.SIGKILL)

    pid = fork(dies)
    child = int(os.read(reader, 20))
    os.waitpid(pid, 0)
    try:
        return meet(path)
    finally:
        os.kill(child, signal.SIGKILL)


def meet(path: Path) -> dict[str, Any]:
    sink = JsonlAuditSink(path, timeout=5.0)
    if sink.head("0" * 64) is not None:
        raise Broken("there is a run that nobody made")
    return {"locks": 1}


def close(trial: Trial) -> None:
    for part in {id(p): p for p in (trial.store, trial.audit)}.values():
        if hasattr(part, "close"):
            part.close()


TRIALS = {
    "full": full,
    "read_only": read_only,
    "deleted": deleted,
    "locked": locked,
    "left_behind": left_behind,
}


def main(trial: str, pair: str, folder: str, options: dict[str, Any]) -> None:
    try:
        figures = TRIALS[trial](pair, Path(folder), **options)
    except Broken as error:
        sys.exit(f"broken: {error}")
    print(json.dumps(figures))


if __name__ == "__main__":
    main(*sys.argv[1:4], json.loads(sys.argv[4]))
