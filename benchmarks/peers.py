"""What a step costs and what is left after a kill, here and in the peers, in one run.

Run: ``python benchmarks/peers.py [--steps 8,100,1000,4000] [--kills 20] [--write FILE]``. Prints
one JSON object, and a Markdown table for each of the two; ``--write`` puts the tables into a
document. The peers come with the extra ``bench``; one that is not there is a row that says so, and
so is one that fails or hangs, because each run is a process of its own.

The kill: a process runs 8 steps and is ended by SIGKILL while the tool of one of them works, at a
random moment up to the tool's end. Each call of the tool writes a line to a file outside of the
system, so that what was done is known; then a new process looks at what was saved, and resumes.
"""

from __future__ import annotations

import argparse
import json
import random
import select
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from peer_runs import KILLED, PAUSE, TIMED
from report import child, machine, markdown, put, rst, say

PACKAGES = ("langgraph", "langgraph-checkpoint-sqlite", "ragleap-agents")
TIMEOUT = 300.0  # seconds of one process
STEPS = 8  # of a run that is killed: as many as every system can do


def costs(marks: Sequence[int], rounds: int) -> dict[str, Any]:
    """Return the time and bytes of a step, by system and by the number of steps.

    In each round every system has its turn; the best of each is taken.
    """
    found: dict[str, Any] = {name: {} for name in TIMED}
    for number in range(rounds):
        for mark in marks:
            for name, system in TIMED.items():
                if mark > getattr(system, "MOST", mark):
                    continue
                before = found[name].get(mark, {"us": []})
                if "failed" in before:
                    continue
                result = child("peer_runs.py", name, "time", mark, timeout=TIMEOUT)
                if "failed" not in result:
                    result["us"] = [*before["us"], result["us"]]
                found[name][mark] = result
            say(f"round {number + 1} of {rounds}: {mark:,} steps")
    for at in found.values():
        for result in at.values():
            if "failed" not in result:
                result["us"] = min(result["us"])  # what other work on the machine slowed least
    for name, at in found.items():
        for mark, result in at.items():
            floor = found[getattr(TIMED[name], "FLOOR", name)][mark]
            if "failed" not in result and "failed" not in floor:
                result["times_the_floor"] = result["us"] / floor["us"]
    return found


def kill(name: str, seed: int) -> dict[str, Any]:
    """Kill one run at a random moment of a random step, and see what is left of it."""
    chance = random.Random(seed)
    last = chance.randrange(STEPS)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "state").mkdir()
        effects = Path(folder, "effects")
        script = str(Path(__file__).with_name("peer_runs.py"))
        arguments = [sys.executable, script, name, "begin", str(STEPS), folder, str(last)]
        with subprocess.Popen(arguments, stdout=subprocess.PIPE) as started:
            assert started.stdout is not None
            try:
                # One that is not there ends here, with a line that is another.
                ready, _, _ = select.select([started.stdout], [], [], TIMEOUT)
                line = started.stdout.readline() if ready else b""
                if line != b"ready\n":
                    failed = f"no call within {TIMEOUT:g} s" if not ready else "it did not begin"
                    return json.loads(line) if line.startswith(b"{") else {"failed": failed}
                time.sleep(chance.uniform(0, 2 * PAUSE))
            finally:
                started.kill()
        before = effects.read_text().split() if effects.exists() else []
        result = child("peer_runs.py", name, "after", STEPS, folder, timeout=TIMEOUT)
        if "failed" in result:
            return result
        counts = Counter(effects.read_text().split() if effects.exists() else [])
    seen = {
        "runs": 1,
        "effects": len(before),
        "saved": result["saved"],
        "knows_the_call": int(result["knows_the_call"]),
        "resumed": int(not result["why"]),
        "why": result["why"],
    }
    if result["why"]:
        return seen
    twice = sum(count > 1 for count in counts.values())
    return {**seen, "twice": twice, "missing": STEPS - len(counts)}


def kills(count: int) -> dict[str, Any]:
    """Return the sums over so many kills, by system."""
    found: dict[str, Any] = {}
    for name in KILLED:
        total: dict[str, Any] = {}
        for seed in range(count):
            result = kill(name, seed)
            if "failed" in result:
                total = result
                break
            for key, value in result.items():
                if isinstance(value, int):
                    total[key] = total.get(key, 0) + value
                elif value:
                    total[key] = value
        found[name] = total
        say(f"{name}: killed")
    return found


def tables(
    cost: dict[str, Any], killed: dict[str, Any], marks: Sequence[int]
) -> list[tuple[Sequence[str], list[Sequence[object]]]]:
    def cells(at: dict[int, Any], name: str) -> list[object]:
        return [at.get(mark, {}).get(name) for mark in marks]

    rows: list[Sequence[object]] = []
    for system, at in cost.items():
        failed = {result["failed"] for result in at.values() if "failed" in result}
        title = "; ".join([system, *sorted(failed)])
        times = [None if value is None else float(value) for value in cells(at, "us")]
        sizes = [None if value is None else round(value) or None for value in cells(at, "bytes")]
        largest = at.get(max(at), {}).get("times_the_floor")
        rows.append((title, *times, largest, *sizes))
    header = [
        "System",
        *(f"µs, {mark:,}" for mark in marks),
        "floors",
        *(f"bytes, {mark:,}" for mark in marks),
    ]
    left: list[Sequence[object]] = []
    for system, total in killed.items():
        if "failed" in total:
            left.append((f"{system}; {total['failed']}", *[None] * 6))
            continue
        names = ("effects", "saved", "knows_the_call")
        resumed = f"{total['resumed']} of {total['runs']}"
        ending = (total.get("twice"), total.get("missing"))
        left.append((system, *(total[name] for name in names), resumed, *ending))
    second = (
        "System",
        "effects done",
        "steps saved",
        "cut off calls known",
        "runs resumed",
        "effects twice",
        "effects missing",
    )
    return [(header, rows), (second, left)]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--steps", default="8,100,1000,4000", help="how long the runs are")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each system")
    parser.add_argument("--kills", type=int, default=20, help="kills of each system")
    parser.add_argument("--write", type=Path, help="the document that the tables are put into")
    asked = parser.parse_args()
    marks = sorted(int(part) for part in asked.steps.split(","))
    cost, killed = costs(marks, asked.rounds), kills(asked.kills)
    result = {"machine": machine(*PACKAGES), "cost": cost, "kills": killed}
    print(json.dumps(result))
    made = tables(cost, killed, marks)
    for header, rows in made:
        print(f"\n{markdown(header, rows)}")
    if asked.write:
        text = "\n\n".join(rst(header, rows) for header, rows in made)
        put(asked.write, "peers", f"{text}\n\nMeasured on {result['machine']}.")


if __name__ == "__main__":
    main()
