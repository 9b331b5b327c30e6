"""The long form: every point of every pair, 2,000 random kills, a minute of hammering, 500 rounds.

python tests/crash/long.py [points] [random] [hammer] [claims] [opening]
"""

from __future__ import annotations

import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS))
sys.path.insert(0, str(TESTS.parent / "src"))

from crash.launch import launch  # noqa: E402
from crash.workload import PAIRS  # noqa: E402

KILLS = 2_000
ROUNDS = 500
HOUR = 3600


def points() -> None:
    """Every point, SQLite's own writes and their cuts too, also where nothing changed."""
    for pair in PAIRS:
        figures = launch(
            "harness.py", "points", pair, seconds=HOUR, every=True, pages="cut", workers=2
        )
        print("every point:", pair, figures, flush=True)


def random() -> None:
    """At least 2,000 kills from outside, over all pairs."""
    for pair in PAIRS:
        kills = -(-KILLS // len(PAIRS))
        figures = launch("harness.py", "random", pair, seconds=HOUR, kills=kills, seed=2, workers=2)
        print("random kills:", pair, figures, flush=True)


def hammer() -> None:
    """Eight processes of eight threads on one file, for a minute."""
    for kind in ("sqlite", "jsonl", "jsonl-fsync"):
        options = {"seconds_each": 60.0, "runs": 100_000}
        figures = launch("concurrency.py", "hammer", kind, seconds=HOUR, **options)
        print("8 processes of 8 threads:", kind, figures, flush=True)


def claims() -> None:
    """Sixteen processes and one paused run, 500 times."""
    for kind in ("sqlite", "sqlite+jsonl", "jsonl"):
        figures = launch("concurrency.py", "claims", kind, seconds=HOUR, rounds=ROUNDS)
        print("16 claims of one run:", kind, figures, flush=True)


def opening() -> None:
    """Sixteen processes and one new database, 500 times."""
    figures = launch("concurrency.py", "opening", "sqlite", seconds=HOUR, rounds=ROUNDS)
    print("16 that open a new database:", figures, flush=True)


ALL = {"random": random, "claims": claims, "opening": opening, "hammer": hammer, "points": points}

if __name__ == "__main__":
    for name in sys.argv[1:] or ALL:
        ALL[name]()
