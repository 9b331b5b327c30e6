"""What many runs in one event loop cost over the tools that they wait for.

Run: ``python benchmarks/async_runs.py [runs]``. Prints one JSON object and one Markdown table.
Each run calls a tool that waits 100 ms, once or several times, and ends. The tools alone are as
many coroutines that wait as often. Both are measured in turns in one process, and the best of each
is taken.
"""

from __future__ import annotations

import asyncio
import gc
import json
import platform
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

from scikitplot.agent import AsyncAgent, Decision, Limits, MemoryStore, RunState, Tool

WAIT = 0.1  # in seconds
ROUNDS = 5
CALLS = (1, 5, 10)


async def wait() -> None:
    await asyncio.sleep(WAIT)


async def alone(runs: int, calls: int) -> None:
    async def one() -> None:
        for _ in range(calls):
            await wait()

    await asyncio.gather(*(one() for _ in range(runs)))


async def agents(runs: int, calls: int) -> None:
    async def planner(state: RunState, tools: Any) -> Decision:
        return Decision.act("wait") if len(state.steps) < calls else Decision.finish(0)

    limits = Limits(max_steps=calls + 1)
    agent = AsyncAgent([Tool("wait", wait)], planner, store=MemoryStore(), limits=limits)
    states = await asyncio.gather(*(agent.run("wait") for _ in range(runs)))
    assert all(state.status.value == "completed" for state in states)


def seconds(case: Callable[[int, int], Awaitable[None]], runs: int, calls: int) -> float:
    async def main() -> float:
        gc.collect()
        start = time.perf_counter()
        await case(runs, calls)
        return time.perf_counter() - start

    return asyncio.run(main())


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
    rows = {}
    for calls in CALLS:
        ours, tools = (
            min(times)
            for times in zip(
                *([seconds(case, runs, calls) for case in (agents, alone)] for _ in range(ROUNDS)),
                strict=True,
            )
        )
        rows[str(calls)] = {
            "tools_ms": round(tools * 1e3, 1),
            "agents_ms": round(ours * 1e3, 1),
            "times_the_tools": round(ours / tools, 2),
        }
    print(json.dumps({"python": platform.python_version(), "runs": runs, "calls": rows}))
    print("\n| calls of each run | the tools alone, ms | the runs, ms | times the tools |")
    print("| ---: | ---: | ---: | ---: |")
    for calls, row in rows.items():
        print("| {} | {tools_ms} | {agents_ms} | {times_the_tools} |".format(calls, **row))


if __name__ == "__main__":
    main()
