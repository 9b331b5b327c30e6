"""What a step costs against the floor, and whether it costs the same late as early.

Run: ``python benchmarks/step_cost.py [steps]``. Prints one JSON object and one Markdown table.
Each case and its floor are measured in turns in one process, and the best of each is taken: these
are ratios, the times themselves say more about the machine.
"""

from __future__ import annotations

import gc
import itertools
import json
import platform
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from floor import FileFloor, Floor, SqliteFloor

from scikitplot.agent import (
    Agent,
    Decision,
    JsonlAuditSink,
    Limits,
    MemoryStore,
    RunState,
    SqliteStore,
    Tool,
)

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
ROUNDS = 5
SLOW = 100  # steps where each commit waits for the disk


def agent_run(steps: int, times: list[float] | None = None, **options: Any) -> None:
    def planner(state: RunState, tools: Any) -> Decision:
        index = len(state.steps)
        if times is not None:
            times.append(time.perf_counter())
        return Decision.act("add", {"a": index, "b": 1}) if index < steps else Decision.finish(0)

    agent = Agent([ADD], planner, limits=Limits(max_steps=steps + 1), **options)
    assert agent.run("add").status.value == "completed"


def in_file(steps: int, folder: Path, **options: Any) -> None:
    sink = JsonlAuditSink(folder / "trail.jsonl", **options)
    agent_run(steps, store=MemoryStore(), audit=sink)


def in_database(steps: int, folder: Path, **options: Any) -> None:
    with SqliteStore(folder / "runs.db", **options) as store:
        agent_run(steps, store=store, audit=store)


def floor_run(steps: int, floor: Floor) -> None:
    floor.run(steps)
    floor.close()


Case = Callable[[int, Path], None]
CASES: dict[str, tuple[Case, Case]] = {
    "memory": (
        lambda steps, folder: agent_run(steps, store=MemoryStore()),
        lambda steps, folder: floor_run(steps, Floor()),
    ),
    "trail in a file": (in_file, lambda steps, folder: floor_run(steps, FileFloor(folder))),
    "trail in a file, fsync": (
        lambda steps, folder: in_file(steps, folder, fsync=True),
        lambda steps, folder: floor_run(steps, FileFloor(folder, fsync=True)),
    ),
    "SQLite, normal": (in_database, lambda steps, folder: floor_run(steps, SqliteFloor(folder))),
    "SQLite, full": (
        lambda steps, folder: in_database(steps, folder, synchronous="full"),
        lambda steps, folder: floor_run(steps, SqliteFloor(folder, synchronous="full")),
    ),
}


def seconds(case: Case, steps: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        gc.collect()
        start = time.perf_counter()
        case(steps, Path(folder))
        return (time.perf_counter() - start) / steps


def flatness() -> float:
    """Cost of the steps around 10,000 over that of the steps around 100, in memory."""
    early: list[float] = []
    late: list[float] = []
    for _ in range(ROUNDS):
        times: list[float] = []
        agent_run(10_200, times, store=MemoryStore())
        steps = [after - before for before, after in itertools.pairwise(times)]
        early.append(median(steps[50:250]))
        late.append(median(steps[9_900:10_100]))
    return min(late) / min(early)


def main() -> None:
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
    rows = {}
    for name, pair in CASES.items():
        count = min(steps, SLOW) if name.endswith(("fsync", "full")) else steps
        ours, floor = (
            min(times)
            for times in zip(
                *([seconds(case, count) for case in pair] for _ in range(ROUNDS)), strict=True
            )
        )
        rows[name] = {
            "us_per_step": round(ours * 1e6, 1),
            "floor_us_per_step": round(floor * 1e6, 1),
            "times_the_floor": round(ours / floor, 2),
        }
    flat = flatness()
    result = {
        "python": platform.python_version(),
        "steps": steps,
        "cases": rows,
        "step_10000_over_step_100": round(flat, 3),
    }
    print(json.dumps(result))
    print("\n| where | floor, µs a step | agent, µs a step | times the floor |")
    print("| --- | ---: | ---: | ---: |")
    for name, row in rows.items():
        print(
            "| {} | {floor_us_per_step} | {us_per_step} | {times_the_floor} |".format(name, **row)
        )
    print(f"\nStep 10,000 costs {flat:.2f} times what step 100 costs, in memory.")


if __name__ == "__main__":
    main()
