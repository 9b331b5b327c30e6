"""No crash loses or repeats anything: a run is killed at every point, and at random moments.

`long.py` does the same with every point of SQLite's own writes and 2,000 random kills.
"""

from __future__ import annotations

import pytest
from crash.launch import MISSING, can_fork, launch

if not can_fork():
    pytest.skip(MISSING, allow_module_level=True)

from crash.workload import PAIRS

KILLS = 200


@pytest.mark.parametrize("pair", PAIRS)
def test_a_run_that_dies_at_any_point_is_resumed_to_its_end(pair: str) -> None:
    figures = launch("harness.py", "points", pair, every=False, pages="none", workers=2)
    print(f"{pair}: {figures}")
    assert figures["points"] > 400
    assert figures["runs"] == figures["states"] > 70
    assert figures["kills"] >= figures["states"]


@pytest.mark.parametrize("pair", PAIRS)
def test_a_call_that_always_dies_starts_once_or_if_idempotent_three_times(pair: str) -> None:
    figures = launch("harness.py", "calls", pair, workers=2)
    assert figures["runs"] == 10


@pytest.mark.parametrize("pair", PAIRS)
def test_a_run_that_is_killed_at_random_moments_is_resumed_to_its_end(pair: str) -> None:
    kills = KILLS // len(PAIRS)
    figures = launch("harness.py", "random", pair, kills=kills, seed=1, workers=2)
    print(f"{pair}: {figures}")
    assert figures["kills"] >= kills
