"""What many runs cost on two processes, over half of what they cost in one.

Run: ``python benchmarks/many_runs.py [runs]``. Prints one JSON object and one Markdown table.
Each run has five steps. One process is `run_many` without an executor; two are a
``ProcessPoolExecutor`` that has started. Both are measured in turns, and the best of each is taken.
"""

from __future__ import annotations

import functools
import gc
import json
import multiprocessing
import platform
import sys
import tempfile
import time
from concurrent.futures import Executor, ProcessPoolExecutor
from pathlib import Path
from typing import Any

from scikitplot.agent import Agent, Decision, RunState, SqliteStore, Tool, run_many

STEPS = 5
ROUNDS = 3
WORKERS = 2
ADD = Tool(
    "add",
    lambda a, b: a + b,
    parameters={
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
        "additionalProperties": False,
    },
)


def plan(state: RunState, tools: Any) -> Decision:
    index = len(state.steps)
    return Decision.act("add", {"a": index, "b": 1}) if index < STEPS - 1 else Decision.finish(0)


@functools.lru_cache(maxsize=1)
def opened(path: str) -> SqliteStore:
    """Return the store that all agents of a process share."""
    return SqliteStore(path)


def in_memory() -> Agent:
    return Agent([ADD], plan)


def in_database(path: str) -> Agent:
    store = opened(path)
    return Agent([ADD], plan, store=store, audit=store)


def seconds(name: str, runs: int, executor: Executor | None) -> float:
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "runs.db")
        make = in_memory if name == "no store" else functools.partial(in_database, path)
        gc.collect()
        start = time.perf_counter()
        goals = (f"goal {index}" for index in range(runs))
        ended = 0
        for result in run_many(make, goals, executor=executor):
            assert result.state is not None
            assert len(result.state.steps) == STEPS
            ended += 1
        took = time.perf_counter() - start
        assert ended == runs
        opened.cache_clear()
        return took


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    rows = {}
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(WORKERS, mp_context=context) as executor:
        list(run_many(in_memory, [f"goal {index}" for index in range(100)], executor=executor))
        for name in ("no store", "SQLite"):
            both = [
                (seconds(name, runs, executor), seconds(name, runs, None)) for _ in range(ROUNDS)
            ]
            two, one = (min(times) for times in zip(*both, strict=True))
            rows[name] = {
                "one_s": round(one, 2),
                "two_s": round(two, 2),
                "times_the_half": round(WORKERS * two / one, 2),
            }
    result = {"python": platform.python_version(), "runs": runs, "steps": STEPS, "stores": rows}
    print(json.dumps(result))
    print("\n| store | one process, s | two, s | times the half |")
    print("| --- | ---: | ---: | ---: |")
    for name, row in rows.items():
        print("| {} | {one_s} | {two_s} | {times_the_half} |".format(name, **row))


if __name__ == "__main__":
    main()
