"""What the system may refuse: a read-only or deleted file, a held lock, a server that is away.

Each trial is a process of its own. In it the fault is one clear error, nothing that was committed
is lost, and when the cause is gone the run goes on and ends.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import sqlite3
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from crash import workload
from crash.harness import Broken, Case, fork
from crash.launch import SERVER
from crash.pairs import PAIRS, psycopg, schema_of
from postgres_server import Server, address, find_binaries

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
    return sorted({re.sub(r"/[^ ]*/|[0-9a-f]{12}", "", message) for message in told})


class Trial(Case):
    """A case whose sessions are in this process, and whose files may be on another disk."""

    def __init__(self, pair: str, folder: Path, name: str, disk: Path | None = None) -> None:
        super().__init__(pair, folder, name)
        self.place = folder
        if disk is not None:
            self.place = disk / folder.name
            self.pair.make(self.place)
        self.settings: dict[str, str] = {}
        self.synchronous = "normal"
        self.scale = 1

    def open(self) -> None:
        self.store, self.audit = self.pair.open(self.place, **self.settings)
        for part in (self.store, self.audit):
            if isinstance(part, (SqliteStore, JsonlAuditSink)):
                part.timeout = 0.2
            if isinstance(part, SqliteStore):
                part.synchronous = self.synchronous
                part.close()  # the next connection is opened with both
        self.agent = workload.make_agent(self.store, self.audit, self.oracle, scale=self.scale)

    def look(self) -> None:
        self.judge(workload.look(self.store, self.audit, self.run_id))
        self.judge_oracle()

    def go_on(self) -> None:
        workload.go_on(self.agent, self.run_id, self.seen)

    def open_and_go_on(self) -> None:
        self.open()
        self.go_on()

    def pause(self) -> None:
        """Open the files and run to the pause."""
        self.open()
        self.look()
        self.go_on()
        self.look()

    def go_through(self) -> None:
        """Do all that a run does: open the files, run to the pause, and from there to the end."""
        self.pause()
        self.go_on()

    def end(self) -> None:
        """Go on to the end, with no fault any more."""
        if not hasattr(self, "agent"):
            self.open()
        for _ in range(3):
            self.look()
            if self.seen["status"] != "completed":
                self.go_on()
        if self.seen["status"] != "completed":
            raise Broken(f"{self}: it ended as {self.seen['status']}")
        self.judge_end()

    def close(self) -> None:
        for part in {id(p): p for p in (self.store, self.audit)}.values():
            if hasattr(part, "close"):
                part.close()


def for_each_part(pair: str, folder: Path) -> Iterator[tuple[Trial, str, str]]:
    """Yield a paused run, and the kind and the name of one of the parts of its pair, for each."""
    for kind, name in PAIRS[pair].parts:
        if kind != "file":  # a store of the tests
            trial = Trial(pair, folder / name, f"{name} in {kind}")
            trial.pause()
            yield trial, kind, name


def files_of(trial: Trial, name: str) -> list[Path]:
    """Return the files of a part: a trail, or a database and what belongs to it."""
    return sorted(trial.place.glob(f"{name}.*"))


@contextmanager
def own_server(pair: str) -> Iterator[Server | None]:
    """A server that the trial may harm, for a pair that needs one."""
    binaries = find_binaries() if PAIRS[pair].on_server else None
    if binaries is None:
        yield None
        return
    with closing(Server(binaries)) as server:
        os.environ[SERVER] = str(server.folder)
        yield server


# What cannot be written, is gone, is held, is away


def read_only(pair: str, folder: Path) -> dict[str, Any]:
    """A part cannot be written: its files, or the server."""
    folder.chmod(0o755)
    told: list[str] = []
    for trial, kind, name in for_each_part(pair, folder):
        if kind == "postgresql":
            let_server_write("off")
            try:
                told.append(expect(trial.go_on, "ReadOnlySqlTransaction"))
                told.append(expect(trial.open_and_go_on, "ReadOnlySqlTransaction"))
            finally:
                let_server_write("on")
        else:
            trial.close()  # an open file can be written, whatever its mode
            told += [*without_rights(trial, files_of(trial, name))]
        trial.open()
        trial.end()
    return {"errors": plain(told)}


def let_server_write(value: str) -> None:
    """Set whether transactions may write, unless they say so themselves; wait until it is so."""
    read_only = {"on": "off", "off": "on"}[value]
    name = "default_transaction_read_only"
    where = address(Path(os.environ[SERVER]))
    with psycopg.connect(where, autocommit=True) as connection:
        connection.execute(f"alter system set {name} = {read_only}")
        connection.execute("select pg_reload_conf()")
    told = ""
    while told != read_only:
        with psycopg.connect(where) as connection:
            [told] = connection.execute(f"show {name}").fetchone()


def without_rights(trial: Trial, files: list[Path]) -> list[str]:
    """Go on where these files may not be written, with the objects of before and with new ones."""
    reader, writer = os.pipe()

    def limited() -> None:
        if os.geteuid() == 0:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
        words = ("readonly", "Permission denied", "unable to open")
        told = [expect(trial.go_on, *words), expect(trial.open_and_go_on, *words)]
        os.write(writer, json.dumps(told).encode())

    others = [path for path in trial.place.rglob("*") if path not in files]
    for path in [trial.place, *others]:
        path.chmod(0o777 if path.is_dir() else 0o666)
    for path in files:
        path.chmod(0o444)
    if trial.pair.on_server:
        os.chmod(os.environ[SERVER], 0o755)
    pid = fork(limited)
    os.close(writer)
    with os.fdopen(reader) as file:
        text = file.read()
    _, status = os.waitpid(pid, 0)
    if trial.pair.on_server:
        os.chmod(os.environ[SERVER], 0o700)
    for path in files:
        path.chmod(0o644)
    if status:
        raise Broken(f"{trial}: the session ended with {status}")
    told: list[str] = json.loads(text)
    return told


def deleted(pair: str, folder: Path) -> dict[str, Any]:
    """A part is moved away while it is open, and put back."""
    told = []
    for trial, kind, name in for_each_part(pair, folder):
        if kind == "postgresql":
            trial.pair.execute(trial.place, f"alter schema {{0}}_{name} rename to {{0}}_away")
            told.append(expect(trial.go_on, "UndefinedTable"))
            told.append(expect(trial.open_and_go_on, "InvalidSchemaName"))
            trial.pair.execute(trial.place, f"alter schema {{0}}_away rename to {{0}}_{name}")
            trial.open()
            trial.end()
            continue
        away = folder / f"{name}.away"
        away.mkdir()
        for path in files_of(trial, name):
            if kind.startswith("jsonl"):
                shutil.copy(path, away / path.name)  # a sink knows the file, not the name
                path.unlink()
            else:
                path.rename(away / path.name)
        for _ in range(2):  # the second time as the first: nothing is made in its place
            told.append(expect(trial.go_on, "the file was deleted"))
            if files_of(trial, name):
                raise Broken(f"{name}: a new file was made where one was deleted")
        store, audit, agent = trial.store, trial.audit, trial.agent
        told.append(expect(trial.open_and_go_on, "does not hold"))  # makes new, empty files
        trial.close()
        for path in files_of(trial, name):
            path.unlink()
        for path in away.iterdir():
            path.rename(trial.place / path.name)
        trial.store, trial.audit, trial.agent = store, audit, agent
        if kind.startswith("jsonl"):
            expect(trial.go_on, "the file was deleted")
            trial.open()
        trial.end()
    return {"errors": plain(told)}


def locked(pair: str, folder: Path) -> dict[str, Any]:
    """Another holds the lock for longer than the timeout, at opening and later."""
    told = []
    limits = ("lock_timeout", "statement_timeout")
    for trial, kind, name in for_each_part(pair, folder):
        words = "held its lock for longer than 0.2 seconds"
        if kind == "postgresql":
            words = "LockNotAvailable"
            trial.settings = {limits[0]: "200"}
            trial.open()
        let_go = hold(trial, kind, name)
        for act in (trial.go_on, trial.open_and_go_on):
            started = time.monotonic()
            told.append(expect(act, words))
            if time.monotonic() - started < 0.2:
                raise Broken("it did not wait")
        if kind == "postgresql":
            trial.settings = {limits[1]: "200"}
            told.append(expect(trial.open_and_go_on, "QueryCanceled"))
        let_go()
        trial.end()
        if kind == "sqlite":
            told.append(meet_a_lock_at_opening(trial.place / "new.db"))
        if kind == "postgresql":
            new = Trial(pair, folder / f"{name}.new", "a lock at opening")
            new.settings = {limits[0]: "200"}
            let_go = hold_at_server("select pg_advisory_xact_lock(1396787022)")
            told.append(expect(new.open, "LockNotAvailable"))
            let_go()
            new.end()
    return {"errors": plain(told)}


def hold(trial: Trial, kind: str, name: str) -> Callable[[], None]:
    """Take the lock of a part; return what lets it go."""
    if kind == "postgresql":
        return hold_at_server(f"lock table {schema_of(trial.place)}_{name}.agent_run")
    if kind == "sqlite":
        connection = sqlite3.connect(trial.place / f"{name}.db", isolation_level=None)
        connection.execute("begin immediate")
        return connection.close
    fd = os.open(trial.place / f"{name}.jsonl", os.O_WRONLY)
    fcntl.flock(fd, fcntl.LOCK_EX)
    return lambda: os.close(fd)


def hold_at_server(statement: str) -> Callable[[], None]:
    connection = psycopg.connect(address(Path(os.environ[SERVER])))
    connection.execute(statement)
    return connection.close


def meet_a_lock_at_opening(path: Path) -> str:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("begin exclusive")
    told = expect(lambda: SqliteStore(path, timeout=0.2), "held its lock")
    connection.close()
    SqliteStore(path, timeout=0.2).close()
    return told


def stopped(pair: str, folder: Path) -> dict[str, Any]:
    """The server is away, and comes back."""
    told = []
    with own_server(pair) as server:
        assert server is not None
        for trial, _, _ in for_each_part(pair, folder):
            server.stop()
            try:
                for act in (trial.go_on, trial.open_and_go_on):
                    told.append(expect(act, "no connection can be opened"))
            finally:
                server.start()
            trial.open()
            trial.end()
    return {"errors": plain(told)}


# A lock that would outlive its process


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


TRIALS = {
    "read_only": read_only,
    "deleted": deleted,
    "locked": locked,
    "stopped": stopped,
    "left_behind": left_behind,
}


def main(
    trials: dict[str, Callable[..., Any]], trial: str, pair: str, folder: str, options: str
) -> None:
    try:
        figures = trials[trial](pair, Path(folder), **json.loads(options))
    except Broken as error:
        sys.exit(f"broken: {error}")
    print(json.dumps(figures))


if __name__ == "__main__":
    main(TRIALS, *sys.argv[1:5])
