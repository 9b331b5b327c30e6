"""The long form: every point of every pair, 2,000 random kills, a minute of hammering, 500 rounds.

python tests/crash/long.py [TRIAL ...] [PAIR ...]

A trial is points, tree, random, calls, claims, slow, opening, full or hammer; a pair is one of
`pairs.PAIRS`. Without any all are tried.
"""

from __future__ import annotations

import signal
import sys
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS))
sys.path.insert(0, str(TESTS.parent / "src"))

from crash.launch import launch  # noqa: E402
from crash.pairs import PAIRS  # noqa: E402
from postgres_server import Server, find_binaries  # noqa: E402

HOUR = 3600
TRIALS = {
    # Every point, SQLite's own writes and their cuts too, also where nothing changed.
    "points": ("harness.py", PAIRS, {"every": True, "pages": "cut", "workers": 2}),
    "tree": ("harness.py", PAIRS, {"every": False, "pages": "cut", "workers": 2}),
    "random": ("harness.py", PAIRS, {"kills": -(-2_000 // len(PAIRS)), "seed": 2, "workers": 2}),
    "calls": ("harness.py", PAIRS, {"workers": 2}),
    "claims": ("concurrency.py", ("jsonl", *PAIRS), {"rounds": 500}),
    "slow": ("concurrency.py", PAIRS, {}),
    "opening": ("concurrency.py", ("sqlite",), {"rounds": 500}),
    "full": ("disks.py", PAIRS, {"step": 1}),
    "hammer": (
        "concurrency.py",
        ("sqlite", "jsonl", "jsonl-fsync", "postgresql"),
        {"seconds_each": 60.0},
    ),
}


def main(names: list[str]) -> None:
    binaries = find_binaries()
    if binaries is None:
        sys.exit("PostgreSQL's server is not installed")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the server goes too
    pairs = [name for name in names if name not in TRIALS]
    with closing(Server(binaries)) as server:
        for name in [name for name in names if name in TRIALS] or TRIALS:
            program, kinds, options = TRIALS[name]
            total: Counter[str] = Counter()
            for kind in [kind for kind in kinds if kind in (pairs or kinds)]:
                figures: dict[str, Any] = launch(
                    program, name, kind, seconds=HOUR, server=server, **options
                )
                total.update({k: n for k, n in figures.items() if isinstance(n, int)})
                print(f"{name}, {kind}: {figures}", flush=True)
            print(f"{name}, in all: {dict(total)}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
