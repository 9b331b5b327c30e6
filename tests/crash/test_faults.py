"""What the system refuses is one clear error, and the run goes on when the cause is gone."""

from __future__ import annotations

import pytest
from crash.launch import MISSING, can_fork, launch
from postgres_server import Server

if not can_fork():
    pytest.skip(MISSING, allow_module_level=True)

FILES = ("sqlite", "sqlite+jsonl", "sqlite+jsonl-fsync", "sqlite+sqlite", "file+jsonl")
SERVERS = ("postgresql", "postgresql+jsonl", "sqlite+postgresql")


@pytest.mark.parametrize("pair", FILES)
def test_a_file_that_may_not_grow_is_one_clear_error_and_the_run_is_resumed_later(
    pair: str,
) -> None:
    assert launch("disks.py", "too_large", pair)["errors"]


@pytest.mark.usefixtures("server")
@pytest.mark.parametrize("pair", [*FILES, *SERVERS])
def test_a_full_disk_is_one_clear_error_and_the_run_is_resumed_later(pair: str) -> None:
    figures = launch("disks.py", "full", pair, step=2)
    print(f"{pair}: {figures}")
    if "missing" in figures:
        pytest.skip(figures["missing"])
    assert figures["struck"] >= 10


@pytest.mark.parametrize("pair", [*FILES, *SERVERS])
def test_what_is_read_only_is_one_clear_error_and_the_run_is_resumed_later(
    pair: str, server: Server | None
) -> None:
    assert launch("faults.py", "read_only", pair, server=server)["errors"]


@pytest.mark.parametrize("pair", [*FILES, *SERVERS])
def test_what_is_deleted_is_one_clear_error_and_nothing_new_is_made_in_its_place(
    pair: str, server: Server | None
) -> None:
    assert launch("faults.py", "deleted", pair, server=server)["errors"]


@pytest.mark.parametrize("pair", [*FILES, *SERVERS])
def test_a_lock_held_for_long_is_one_clear_error_and_the_run_is_resumed_later(
    pair: str, server: Server | None
) -> None:
    assert launch("faults.py", "locked", pair, server=server)["errors"]


@pytest.mark.usefixtures("server")
@pytest.mark.parametrize("pair", SERVERS)
def test_a_server_that_is_away_is_one_clear_error_and_the_run_is_resumed_later(pair: str) -> None:
    assert launch("faults.py", "stopped", pair)["errors"]


def test_a_child_that_outlives_a_killed_writer_does_not_keep_its_lock() -> None:
    assert launch("faults.py", "left_behind", "sqlite+jsonl") == {"locks": 1}
