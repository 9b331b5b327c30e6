"""Whether a step costs the same at step 100 as at step 100,000, whichever store.

Run: ``python benchmarks/growth.py [--steps 100,1000,10000,100000] [--write FILE]``. Prints one JSON
object, a Markdown table of the steps and one of resuming; ``--write`` puts the tables into a
document. Each store is measured in a process of its own.

Time, bytes and memory are those of one step more, and not a whole run's divided by its steps,
because in a short run what it costs to start would hide what a step costs:

* time: runs stand at each number of steps, each in a store of its own, and go on in turns for some
  steps; the ratio is of neighbours in time, so that other work on the machine slows both;
* bytes and memory: what the second half of a run adds, over its steps. SQLite's log is written back
  before its files are measured. Memory is what Python allocated and still holds.

The tool's arguments have as many digits at each step. The numbers that the formats themselves count
with get longer with the run: that is part of what is measured.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import json
import queue
import sys
import tempfile
import threading
import time
import tracemalloc
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path
from statistics import fmean, median
from typing import Any

from kept import STORES, Missing
from report import child, machine, markdown, put, rst, say

from scikitplot.agent import Agent, Decision, Limits, Policy, RunState, Tool

PACKAGES = ("psycopg",)
ROUNDS = 25
WINDOW = 50  # steps that are measured in one turn
RESUMED = 9  # times that a run is resumed, at most
REPEATED = 20_000  # steps in all of the runs that bytes and memory are taken from
USED = 300  # steps of another run in each store, before
FIRST = 10**6  # added to each argument, so that all have the same number of digits
PROPERTIES = {"a": {"type": "integer"}, "b": {"type": "integer"}}
PARAMETERS = {
    "type": "object",
    "properties": PROPERTIES,
    "required": ["a", "b"],
    "additionalProperties": False,
}
TOOLS = [
    Tool("add", lambda a, b: a + b, parameters=PARAMETERS),
    Tool("send", lambda: None, effect="external"),
]


class Enough(BaseException):
    """Cuts a run off in its planner; no `Exception`, so it is no outcome of the run."""


def make_agent(planner: Any, options: dict[str, Any]) -> Agent:
    policy = Policy(allow_effects={"read", "external"})
    return Agent(TOOLS, planner, policy=policy, limits=Limits(max_steps=10**9), **options)


def add(index: int) -> Decision:
    return Decision.act("add", {"a": FIRST + index, "b": 1})


class Lane:
    """A run that goes on by as many steps as it is told to, in a thread of its own."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.at = 0
        self._orders: queue.Queue[int] = queue.Queue()
        self._answers: queue.Queue[Any] = queue.Queue()
        self._left = 0
        self._times: list[float] = []
        self._thread = threading.Thread(target=self._run, args=[options], daemon=True)
        self._thread.start()

    def _run(self, options: dict[str, Any]) -> None:
        try:
            state = make_agent(self._plan, options).run("grow")
            self._answers.put(RuntimeError(f"the run ended: {state}, {state.error}"))
        except Enough:
            self._answers.put(None)
        except BaseException as error:
            self._answers.put(error)

    def _plan(self, state: RunState, tools: Any) -> Decision:
        self._times.append(time.perf_counter())
        if not self._left:
            self._answers.put(self._times)
            self._left = self._orders.get()
            if not self._left:
                raise Enough
            self._times = [time.perf_counter()]
        self._left -= 1
        return add(len(state.steps))

    def _answer(self) -> Any:
        answer = self._answers.get()
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def go_on(self, steps: int) -> list[float]:
        """Go on by `steps`; return the seconds that each took."""
        if not self.at:
            self._answer()  # it has got to its planner
        self._orders.put(steps)
        self.at += steps
        return [after - before for before, after in itertools.pairwise(self._answer())]

    def use(self) -> None:
        """Bring a new store to where it stays: SQLite's log grows up to its first write-back."""
        self.go_on(USED)
        self.end()

    def end(self) -> None:
        self._orders.put(0)
        self._answer()
        self._thread.join()


def times(store: str, marks: Sequence[int], rounds: int) -> dict[int, dict[str, float]]:
    """Return what a step costs at each of the marks."""
    with tempfile.TemporaryDirectory() as folder:
        lanes: dict[int, tuple[Any, Lane]] = {}
        numbers = itertools.count()

        def begin(mark: int) -> None:
            """Put a new run before the mark."""
            path = Path(folder, str(next(numbers)))
            path.mkdir()
            opened = STORES[store](path)
            options = opened.__enter__().open()
            Lane(options).use()
            lane = Lane(options)
            lanes[mark] = opened, lane
            lane.go_on(max(1, mark - WINDOW - WINDOW // 2))

        def leave(mark: int) -> None:
            opened, lane = lanes.pop(mark)
            lane.end()
            opened.__exit__(None, None, None)

        turns: dict[int, list[float]] = {mark: [] for mark in marks}
        all_steps: dict[int, list[float]] = {mark: [] for mark in marks}
        try:
            for mark in marks:
                begin(mark)
            for number in range(rounds):
                for mark in marks if number % 2 else reversed(marks):
                    if lanes[mark][1].at > 1.1 * mark:
                        leave(mark)
                        begin(mark)
                    # Half of a turn only warms what the other runs took the place of.
                    seconds = lanes[mark][1].go_on(2 * WINDOW)
                    turns[mark].append(median(seconds[WINDOW:]))
                    all_steps[mark] += seconds
                say(f"{store}: time, round {number + 1} of {rounds}")
        finally:
            for mark in list(lanes):
                leave(mark)
    return {
        mark: {
            "us": 1e6 * median(turns[mark]),
            "us_ratio": median(
                late / early for late, early in zip(turns[mark], turns[marks[0]], strict=True)
            ),
            "us_mean": 1e6 * fmean(all_steps[mark]),
        }
        for mark in marks
    }


def sizes(store: str, steps: int, most: int) -> dict[str, float]:
    """Return what the second half of a run of so many steps adds, a step.

    Short runs are repeated in one store: a page holds more than a step, and sqlite3 drops what it
    keeps of used cursors each 200 of them.
    """
    repeats = max(1, min(REPEATED // steps, most))
    half = steps // 2
    grown = [0, 0]

    with tempfile.TemporaryDirectory() as folder, STORES[store](Path(folder)) as kept:

        def measure(sign: int) -> None:
            gc.collect()
            grown[0] += sign * tracemalloc.get_traced_memory()[0]
            grown[1] += sign * kept.size()

        def planner(state: RunState, tools: Any) -> Decision:
            index = len(state.steps)
            if index == half:
                measure(-1)
            elif index == steps:
                measure(1)
                return Decision.finish(steps)
            return add(index)

        agent = make_agent(planner, kept.open())
        tracemalloc.start()
        try:
            for _ in range(repeats):
                state = agent.run("grow")
                if state.answer != steps:
                    raise RuntimeError(f"the run did not get to its end: {state}, {state.error}")
                del state
        finally:
            tracemalloc.stop()
    say(f"{store}: bytes and memory at {steps:,} steps")
    count = repeats * (steps - half)
    return {"memory": grown[0] / count, "bytes": grown[1] / count}


def read_rows(connection: Any, run_id: str) -> tuple[str, list[Any]]:
    """Read a run with the driver alone: two statements, all rows, and nothing else."""
    cursor = connection.cursor()
    # The id is 64 hexadecimal digits; written in, it needs no mark, which drivers differ in.
    cursor.execute(f"select key, head from agent_run where run_id = '{run_id}'")
    key, head = cursor.fetchone()
    cursor.execute(f"select body from agent_step where run = {key} order by number")
    return head, cursor.fetchall()


def resuming(store: str, steps: int, rounds: int) -> dict[str, Any]:
    """Return what resuming costs against reading the rows, for a paused run and for one cut off.

    Both begin with a new connection, as a new process does.
    """
    run_id, ready, case = "", 0.0, "cut off"

    def planner(state: RunState, tools: Any) -> Decision:
        nonlocal run_id, ready
        ready = time.perf_counter()
        run_id, index = state.run_id, len(state.steps)
        if index < steps:
            return add(index)
        if case == "paused":
            return Decision.act("send")
        raise Enough

    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder, STORES[store](Path(folder)) as kept:
        if kept.connect is None:
            return results
        with suppress(Enough):
            make_agent(planner, kept.open()).run("resume")
        for case in ("cut off", "paused"):
            if case == "paused":
                make_agent(planner, kept.open()).resume(run_id)
            ours, rows = [], []
            for _ in range(min(rounds, RESUMED)):
                gc.collect()
                start = time.perf_counter()
                with closing(kept.connect()) as connection:
                    read = read_rows(connection, run_id)
                    rows.append(time.perf_counter() - start)
                if len(read[1]) != steps:
                    raise RuntimeError(f"there are {len(read[1])} rows")
                del read
                gc.collect()
                start = time.perf_counter()
                with suppress(Enough):  # its planner was asked, so it is resumed
                    state = make_agent(planner, kept.open()).resume(run_id)
                    ready = time.perf_counter()  # a paused run stays so, as nobody answers
                    if state.pending is None:
                        raise RuntimeError(f"the run went on: {state}, {state.error}")
                    del state
                ours.append(ready - start)
            results[case] = {
                "ms": 1e3 * median(ours),
                "rows_ms": 1e3 * median(rows),
                "ratio": median(o / r for o, r in zip(ours, rows, strict=True)),
            }
            say(f"{store}: resumed, {case}")
    return results


def measure(store: str, marks: Sequence[int], rounds: int) -> dict[str, Any]:
    """Return all figures of one store."""
    at = times(store, marks, rounds)
    for mark in marks:
        at[mark] |= sizes(store, mark, 8 * rounds)
        for name in ("memory", "bytes"):
            first = at[marks[0]][name]
            at[mark][f"{name}_ratio"] = at[mark][name] / first if first else 1.0
    return {"at": at, "resume": resuming(store, marks[-1], rounds)}


HEADER = (
    "Store",
    "At step",
    "µs a step",
    "ratio",
    "mean, µs",
    "bytes a step",
    "ratio",
    "memory a step",
    "ratio",
)
RESUME_HEADER = ("Store", "Run", "resume, ms", "rows, ms", "ratio")


def tables(stores: dict[str, Any]) -> list[tuple[Sequence[str], list[Sequence[object]]]]:
    growth: list[Sequence[object]] = []
    resume: list[Sequence[object]] = []
    for name, result in stores.items():
        if "failed" in result:
            growth.append((f"{name}: {result['failed']}", *[None] * (len(HEADER) - 1)))
            continue
        for mark, at in result["at"].items():
            disk = (round(at["bytes"]), at["bytes_ratio"]) if at["bytes"] else (None, None)
            us, mean = at["us"], at["us_mean"]
            memory = round(at["memory"]), at["memory_ratio"]
            growth.append((name, int(mark), us, at["us_ratio"], mean, *disk, *memory))
        for case, found in result["resume"].items():
            resume.append((name, case, found["ms"], found["rows_ms"], found["ratio"]))
    return [(HEADER, growth), *([(RESUME_HEADER, resume)] if resume else [])]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--steps", default="100,1000,10000,100000", help="where to measure")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="turns of each run")
    parser.add_argument("--store", action="append", choices=list(STORES), help="this one alone")
    parser.add_argument("--write", type=Path, help="the document that the tables are put into")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    marks = sorted(int(part) for part in asked.steps.split(","))
    if asked.child:
        try:
            result = measure(asked.store[0], marks, asked.rounds)
        except Missing as missing:
            result = {"failed": str(missing)}
        print(json.dumps(result))
        return
    stores = {}
    for name in asked.store or STORES:
        options = ["--child", "--store", name, "--steps", asked.steps, "--rounds", asked.rounds]
        stores[name] = child("growth.py", *options, timeout=3_600)
    result = {"machine": machine(*PACKAGES), "stores": stores}
    print(json.dumps(result))
    made = tables(stores)
    for header, rows in made:
        print(f"\n{markdown(header, rows)}")
    if asked.write:
        text = "\n\n".join(rst(header, rows) for header, rows in made)
        put(asked.write, "growth", f"{text}\n\nMeasured on {result['machine']}.")


if __name__ == "__main__":
    sys.exit(main())
