"""Many processes and threads on the same files; `long.py` does the same for longer."""

from __future__ import annotations

import pytest
from crash.launch import MISSING, can_fork, launch

if not can_fork():
    pytest.skip(MISSING, allow_module_level=True)

from crash.pairs import PAIRS
from postgres_server import Server

CLAIMED = ("sqlite", "sqlite+jsonl", "jsonl", "postgresql", "postgresql+jsonl")


@pytest.mark.parametrize("kind", ["sqlite", "jsonl", "postgresql"])
def test_eight_processes_of_eight_threads_share_one_place(kind: str, server: Server | None) -> None:
    figures = launch("concurrency.py", "hammer", kind, server=server, seconds_each=10.0)
    print(f"{kind}: {figures}")
    assert figures["runs"] >= 64


@pytest.mark.parametrize("kind", CLAIMED)
def test_of_sixteen_processes_that_resume_one_paused_run_one_goes_on(
    kind: str, server: Server | None
) -> None:
    figures = launch("concurrency.py", "claims", kind, server=server, rounds=50)
    print(f"{kind}: {figures}")
    assert figures["rounds"] == 50


@pytest.mark.parametrize("pair", PAIRS)
def test_a_slow_process_that_lost_its_claim_is_refused_before_its_next_call(
    pair: str, server: Server | None
) -> None:
    assert launch("concurrency.py", "slow", pair, server=server)["refused"] == 2


def test_a_new_database_is_opened_by_sixteen_processes_at_once() -> None:
    assert launch("concurrency.py", "opening", "sqlite", rounds=20)["rounds"] == 20


def test_a_reader_of_a_long_trail_does_not_let_the_wal_grow() -> None:
    figures = launch("concurrency.py", "reading", "sqlite", steps=2_500)
    assert figures["wal"] < figures["database"] / 4


def test_a_store_that_was_used_before_a_fork_loses_nothing_of_the_child() -> None:
    assert launch("concurrency.py", "forking", "sqlite", rounds=5)["runs"] == 15
