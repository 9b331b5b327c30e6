"""What a step costs against the floor, and whether it costs the same late as early.

Run: ``python benchmarks/step_cost.py [steps]``. Prints one JSON object and one Markdown table.
Everything is measured in turns in one process, and the best of each is taken: these are ratios, the
times themselves say more about the machine.
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

from floor import Floor

from scikitplot.agent import (
    Agent,
    Decision,
    JsonlAuditSink,
    Limits,
    MemoryStore,
    RunState,
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
ROUNDS = 7


def agent_run(steps: int, times: list[float] | None = None, **options: Any) -> None:
    def planner(state: RunState, tools: Any) -> Decision:
        index = len(state.steps)
        if times is not None:
            times.append(time.perf_counter())
        return Decision.act("add", {"a": index, "b": 1}) if index < steps else Decision.finish(0)

    agent = Agent([ADD], planner, limits=Limits(max_steps=steps + 1), **options)
    assert agent.run("add").status.value == "completed"


def seconds(function: Callable[[], None]) -> float:
    gc.collect()
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def in_file(steps: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        agent_run(steps, store=MemoryStore(), audit=JsonlAuditSink(Path(folder) / "trail.jsonl"))


def flatness() -> float:
    """Cost of the steps around 10,000 over that of the steps around 100."""
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
    cases: dict[str, Callable[[], None]] = {
        "floor": lambda: Floor().run(steps),
        "trail and state in memory": lambda: agent_run(steps, store=MemoryStore()),
        "trail in memory": lambda: agent_run(steps),
        "trail in a file, state in memory": lambda: in_file(steps),
    }
    best = dict.fromkeys(cases, float("inf"))
    for _ in range(ROUNDS):
        for name, case in cases.items():
            best[name] = min(best[name], seconds(case) / steps)
    flat = flatness()
    result = {
        "python": platform.python_version(),
        "steps": steps,
        "us_per_step": {name: round(best[name] * 1e6, 1) for name in best},
        "times_the_floor": {name: round(best[name] / best["floor"], 2) for name in best},
        "step_10000_over_step_100": round(flat, 3),
    }
    print(json.dumps(result))
    print("\n| case | µs a step | times the floor |\n| --- | ---: | ---: |")
    for name in best:
        print(f"| {name} | {best[name] * 1e6:.1f} | {best[name] / best['floor']:.2f} |")
    print(f"\nStep 10,000 costs {flat:.2f} times what step 100 costs.")


if __name__ == "__main__":
    main()
