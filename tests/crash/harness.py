"""Start a run, kill it, resume it until it ends, and ask the oracle and the trail what happened.

Each session is a process of its own, forked from this one, which opens nothing itself. A session
tells what it sees before it goes on and after it ended; what was seen once must never be gone.
"""

from __future__ import annotations

import json
import os
import random
import secrets
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from crash import family, points, workload
from crash.pairs import PAIRS
from crash.points import Fuse
from crash.workload import Oracle

from scikitplot.agent import StateError

MOST_SESSIONS = 60
SECONDS = 60  # after which a session that hangs is killed, which is a fault


class Broken(AssertionError):
    """A rule does not hold."""


def fork(work: Callable[[], None]) -> int:
    """Run `work` in a child that ends with it; return its process id."""
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        return pid
    status = 70
    try:
        signal.alarm(SECONDS)
        work()
        status = 0
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


class Case:
    """One run in a folder of its own, through as many sessions as it takes."""

    def __init__(self, pair: str, folder: Path, name: str = "", work: Any = workload) -> None:
        self.pair, self.folder, self.name = PAIRS[pair], folder, name
        self.pair.make(folder)
        self.run_id = secrets.token_hex(32)
        self.work = work
        self.oracle = Oracle(folder / "oracle")
        self.seen: dict[str, Any] = {"status": None, "steps": [], "revision": -1}
        self.sessions = self.deaths = 0
        self.anew = self.refused = 0
        self._rows: Callable[[], object] | None = None

    def state(self) -> object:
        """Return a sum of what is saved by now."""
        if self._rows is None:
            self._rows = self.pair.watch(self.folder)
        return points.state_of(self.folder), self._rows()

    # One session

    def session(self, fuse: Fuse, to_the_end: bool, tell: Callable[[str, Any], None]) -> None:
        points.arm(fuse)
        store, audit = self.pair.open(self.folder)
        seen = self.work.look(store, audit, self.run_id)
        # Whether the first commit got into the trail and not into the state: then it starts anew.
        seen["anew"] = seen["status"] is None and audit.head(self.run_id) is not None
        tell("before", seen)
        agent = self.work.make_agent(store, audit, self.oracle, fuse)
        try:
            self.work.go_on(agent, self.run_id, seen)
        except (StateError, ValueError) as error:
            if not self.is_late(error):
                raise
            tell("refused", str(error))
        after = self.work.look(store, audit, self.run_id)
        if to_the_end and after["request"]:
            tell("paused", after)
            self.work.go_on(agent, self.run_id, after)
            after = self.work.look(store, audit, self.run_id)
        tell("after", after)
        for part in {id(store): store, id(audit): audit}.values():
            if hasattr(part, "close"):
                part.close()
        if fuse.state is not None:
            tell("points", {"distinct": fuse.distinct, "count": fuse.count})

    def is_late(self, error: Exception) -> bool:
        """Whether the server made a commit of a dead process only after this session had looked."""
        late = "another process went on", "run_id names a run that the store holds"
        return self.pair.on_server and any(words in str(error) for words in late)

    def start(self, fuse: Fuse, to_the_end: bool = False) -> tuple[int, int]:
        reader, writer = os.pipe()

        def work() -> None:
            os.close(reader)
            with os.fdopen(writer, "w") as out:

                def tell(what: str, data: Any) -> None:
                    out.write(json.dumps([what, data]) + "\n")
                    out.flush()

                self.session(fuse, to_the_end, tell)

        pid = fork(work)
        os.close(writer)
        self.sessions += 1
        return pid, reader

    def finish(self, pid: int, reader: int) -> dict[str, Any]:
        """Wait for a session; judge what it told. Returns what it told, by what it is."""
        with os.fdopen(reader, "rb") as file:
            lines = file.read().splitlines(keepends=True)
        _, status = os.waitpid(pid, 0)
        told = dict(json.loads(line) for line in lines if line.endswith(b"\n"))
        killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        if killed:
            self.deaths += 1
        elif status != 0:
            raise Broken(f"{self}: a session ended with status {status}")
        self.refused += "refused" in told
        for what in ("before", "paused", "after"):
            if what in told:
                self.judge(told[what])
        self.judge_oracle()
        told["died"] = killed
        return told

    def run(self, fuse: Fuse | None = None, to_the_end: bool = False) -> dict[str, Any]:
        return self.finish(*self.start(fuse or Fuse(), to_the_end))

    def to_the_end(self, fuses: Iterator[Fuse], again: bool) -> None:
        """Resume until the run ends, and with ``again`` once more after that."""
        while self.seen["status"] not in ("completed", "stopped", "failed"):
            if self.sessions >= MOST_SESSIONS:
                raise Broken(f"{self}: it does not end")
            self.run(next(fuses, None), to_the_end=True)
        if self.seen["status"] != "completed":
            raise Broken(f"{self}: it ended as {self.seen['status']}")
        self.judge_end()
        if again:
            told = self.run()
            if told["before"] != {**told["after"], "anew": False}:
                raise Broken(f"{self}: an ended run was changed")

    # What must hold

    def judge(self, seen: dict[str, Any]) -> None:
        if seen["problems"]:
            raise Broken(f"{self}: the trail: {seen['problems']}")
        self.anew += seen.get("anew", False)
        before = self.seen
        if seen["steps"][: len(before["steps"])] != before["steps"]:
            raise Broken(f"{self}: steps were lost: {before['steps']} became {seen['steps']}")
        if before["revision"] > seen.get("revision", -1):
            raise Broken(f"{self}: revision {before['revision']} was lost")
        self.seen = {"revision": -1, **seen}

    def judge_oracle(self) -> None:
        keys: dict[tuple[str, int], set[str]] = {}
        counts: Counter[tuple[str, int]] = Counter()
        attempts = set()
        for line in self.oracle.lines():
            action = line["run"], line["step"]
            if line["run"] not in self.work.runs_of(self.run_id):
                raise Broken(f"{self}: another run had an effect: {line}")
            keys.setdefault(action, set()).add(line["key"])
            counts[action] += 1
            if counts[action] > (3 if line["idempotent"] else 1):
                raise Broken(f"{self}: {line['tool']} took effect {counts[action]} times: {line}")
            if (action, line["attempt"]) in attempts:
                raise Broken(f"{self}: one attempt took effect twice: {line}")
            attempts.add((action, line["attempt"]))
            if line["tool"] == "forbidden":
                raise Broken(f"{self}: a denied tool ran")
        if any(len(used) > 1 for used in keys.values()):
            raise Broken(f"{self}: attempts of one action have different keys")
        if len(set().union(*keys.values())) != len(keys) if keys else False:
            raise Broken(f"{self}: two actions share a key")

    def judge_end(self) -> None:
        """Judge the steps of a run that ended: all are there, as they were."""
        fault = self.work.fault_of(self.seen, self.oracle.lines())
        if fault:
            raise Broken(f"{self}: {fault}")

    def __str__(self) -> str:
        return f"{self.pair.name}, {self.name}, session {self.sessions}"


class Figures(Counter[str]):
    """What was done: points, distinct states, kills, sessions, runs."""

    def add(self, case: Case) -> None:
        self.update(
            runs=1,
            kills=case.deaths,
            sessions=case.sessions,
            anew=case.anew,
            refused=case.refused,
            effects=len(case.oracle.lines()),
            interrupted=case.seen.get("outcomes", []).count("interrupted"),
        )


def kill_at_every_point(
    pair: str,
    folder: Path,
    *,
    every: bool,
    pages: str,
    workers: int,
    stride: int = 1,
    work_of: Any = workload,
) -> Figures:
    """Die at each point of the two sessions of a run: up to its pause, and from there on.

    Some of the next sessions die too, at any point. With ``every=False`` a point is left out if
    nothing in the files changed since the last one; of what is left, one in `stride` is tried.
    """
    figures = Figures()
    template = Case(pair, folder / "template", "without a crash", work_of)
    work: list[tuple[int, int]] = []
    for part in (0, 1):
        told = template.run(Fuse(pages=pages, state=template.state))
        found = told["points"]
        figures.update({"points": found["count"], "states": len(found["distinct"])})
        tried = range(found["count"]) if every else found["distinct"]
        work += [(part, n) for n in tried[part % stride :: stride]]
    most = found["count"]
    template.to_the_end(iter(()), again=True)

    def one(item: tuple[int, int]) -> Case:
        part, number = item
        name = f"part {part}, point {number}"
        case = Case(pair, folder / f"{part}-{number}", name, work_of)
        if part:
            case.run()  # up to its pause
        told = case.run(Fuse(number, pages=pages))
        if not told["died"]:
            raise Broken(f"{case}: there was no such point")
        chance = random.Random(f"{pair} {part} {number}")
        deaths = chance.choice((0, 0, 0, 1, 3)) if not every else chance.choice((0, 1, 2, 5))
        fuses = (Fuse(chance.randrange(most), pages=pages) for _ in range(deaths))
        case.to_the_end(fuses, again=number % 8 == 0)
        return case

    figures.update(in_parallel(one, work, workers))
    return figures


def kill_at_random(pair: str, folder: Path, *, kills: int, seed: int, workers: int) -> Figures:
    """Kill from outside, at moments spread over the time that a session takes."""
    started = time.perf_counter()
    warm = Case(pair, folder / "warm", "warm")
    pause = 0.002
    warm.run(Fuse(pause=pause))
    session = time.perf_counter() - started

    def one(number: int) -> Case:
        chance = random.Random(f"{seed} {pair} {number}")
        case = Case(pair, folder / str(number), f"random {number} of seed {seed}")
        wanted = chance.choice((1, 1, 2, 3, 5))
        while case.deaths < wanted and case.sessions < MOST_SESSIONS // 2:
            if case.seen["status"] == "completed":
                break
            pid, reader = case.start(Fuse(pause=pause))
            time.sleep(chance.uniform(0, session))
            os.kill(pid, signal.SIGKILL)  # not waited for yet, so it is still this child's number
            case.finish(pid, reader)
        case.to_the_end(iter(()), again=number % 8 == 0)
        return case

    figures = Figures()
    number = 0
    while figures["kills"] < kills:
        batch = range(number, number + 8 * workers)
        figures.update(in_parallel(one, list(batch), workers))
        number = batch.stop
    return figures


def kill_in_every_call(pair: str, folder: Path, *, workers: int) -> Figures:
    """Die in each call of one tool, before its effect or after it, as often as it starts."""
    tools = {"look": True, "note": False, "send": False, "put": True, "fail": False}

    def one(item: tuple[str, str]) -> Case:
        moment, tool = item
        case = Case(pair, folder / f"{moment}-{tool}", f"always dying in {moment} {tool}")
        case.to_the_end(iter(lambda: Fuse(label=f"{moment} {tool}"), None), again=True)
        idempotent = tools[tool]
        effects = Counter(line["step"] for line in case.oracle.lines() if line["tool"] == tool)
        expected = 0 if moment == "call" else 3 if idempotent else 1
        if any(count != expected for count in effects.values()):
            raise Broken(f"{case}: {effects}, not {expected} each")
        calls = sum(decision.tool == tool for decision in workload.PLAN)
        if case.seen["outcomes"].count("interrupted") != calls:
            raise Broken(f"{case}: outcomes {case.seen['outcomes']}")
        if case.deaths != calls * (3 if idempotent else 1):
            raise Broken(f"{case}: {case.deaths} deaths")
        return case

    work = [(moment, tool) for moment in ("call", "effect") for tool in tools]
    return in_parallel(one, work, workers)


def in_parallel(one: Callable[[Any], Case], work: list[Any], workers: int) -> Figures:
    """Do the work in forked workers; raise the first fault."""
    readers = []
    for start in range(workers):
        reader, writer = os.pipe()

        def job(start: int = start, writer: int = writer) -> None:
            signal.alarm(0)
            figures, fault = Figures(), None
            try:
                for item in work[start::workers]:
                    case = one(item)
                    figures.add(case)
                    case.pair.remove(case.folder)
            except Broken as error:
                fault = str(error)
            with os.fdopen(writer, "w") as out:
                json.dump([fault, figures], out)

        pid = fork(job)
        os.close(writer)
        readers.append((pid, reader))
    figures, faults = Figures(), []
    for pid, reader in readers:
        with os.fdopen(reader) as file:
            text = file.read()
        os.waitpid(pid, 0)
        fault, counted = json.loads(text) if text else ("a worker died", {})
        figures.update(counted)
        if fault:
            faults.append(fault)
    if faults:
        raise Broken("\n".join(faults))
    return figures


def main(kind: str, pair: str, folder: str, options: dict[str, Any]) -> None:
    started = time.perf_counter()
    act = {
        "points": kill_at_every_point,
        "tree": partial(kill_at_every_point, work_of=family),
        "calls": kill_in_every_call,
        "random": kill_at_random,
    }[kind]
    try:
        figures = act(pair, Path(folder), **options)
    except Broken as error:
        sys.exit(f"broken: {error}")
    figures["milliseconds"] = round(1000 * (time.perf_counter() - started))
    print(json.dumps(figures))


if __name__ == "__main__":
    main(*sys.argv[1:4], json.loads(sys.argv[4]))
