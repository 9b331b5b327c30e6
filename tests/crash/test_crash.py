"""No crash loses or repeats anything: a run is killed at every point, and at random moments.

`long.py` kills all pairs, also in SQLite's own writes, and at 2,000 random moments.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from crash.launch import MISSING, can_fork, launch

if not can_fork():
    pytest.skip(MISSING, allow_module_level=True)

from crash.long import TRIALS
from crash.pairs import PAIRS, USUAL
from postgres_server import Server

KILLS = 200


@pytest.mark.parametrize("pair", USUAL)
def test_a_run_that_dies_at_any_point_is_resumed_to_its_end(
    pair: str, server: Server | None
) -> None:
    options = {"every": False, "pages": "none", "workers": 2}
    figures = launch("harness.py", "points", pair, server=server, **options)
    print(f"{pair}: {figures}")
    assert figures["points"] > 400
    assert figures["runs"] == figures["states"] > 70
    assert figures["kills"] >= figures["states"]


@pytest.mark.parametrize("pair", USUAL)
def test_a_tree_of_runs_that_dies_at_any_point_is_resumed_to_the_same_end(
    pair: str, server: Server | None
) -> None:
    options = {"every": False, "pages": "none", "workers": 2, "stride": 2}
    figures = launch("harness.py", "tree", pair, server=server, **options)
    print(f"{pair}: {figures}")
    assert figures["points"] > 600
    assert figures["kills"] >= figures["runs"] > 40


@pytest.mark.parametrize("pair", USUAL)
def test_a_call_that_always_dies_starts_once_or_if_idempotent_three_times(
    pair: str, server: Server | None
) -> None:
    figures = launch("harness.py", "calls", pair, server=server, workers=2)
    assert figures["runs"] == 10


@pytest.mark.parametrize("pair", USUAL)
def test_a_run_that_is_killed_at_random_moments_is_resumed_to_its_end(
    pair: str, server: Server | None
) -> None:
    kills = -(-KILLS // len(USUAL))
    options = {"kills": kills, "seed": 1, "workers": 2}
    figures = launch("harness.py", "random", pair, server=server, **options)
    print(f"{pair}: {figures}")
    assert figures["kills"] >= kills


def test_the_commands_that_the_documents_name_are_those_of_the_long_form() -> None:
    page = Path(__file__).resolve().parents[2] / "docs" / "durability.rst"
    commands = re.findall(
        r"^    python tests/crash/long\.py(.*?)(?:#.*)?$", page.read_text("utf-8"), re.M
    )
    named = [name for command in commands for name in command.split()]
    assert len(commands) == 6
    assert [name for name in named if name not in (*TRIALS, *PAIRS)] == []
    assert set(named) >= set(TRIALS)
