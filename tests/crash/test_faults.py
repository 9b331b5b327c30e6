"""What the system refuses is one clear error, and the run goes on when the cause is gone."""

from __future__ import annotations

import pytest
from crash.launch import MISSING, can_fork, launch

if not can_fork():
    pytest.skip(MISSING, allow_module_level=True)

stores = pytest.mark.parametrize("pair", ["sqlite", "sqlite+jsonl", "sqlite+sqlite"])


@pytest.mark.parametrize("pair", ["sqlite", "sqlite+jsonl", "sqlite+sqlite", "file+jsonl"])
def test_a_full_disk_is_one_clear_error_and_the_run_is_resumed_later(pair: str) -> None:
    assert launch("faults.py", "full", pair)["errors"]


@stores
def test_a_read_only_file_is_one_clear_error_and_the_run_is_resumed_later(pair: str) -> None:
    assert launch("faults.py", "read_only", pair)["errors"]


@stores
def test_a_deleted_file_is_one_clear_error_and_no_new_one_is_made(pair: str) -> None:
    assert launch("faults.py", "deleted", pair)["errors"]


@stores
def test_a_lock_held_for_long_is_one_clear_error_and_the_run_is_resumed_later(pair: str) -> None:
    assert launch("faults.py", "locked", pair)["errors"]


def test_a_child_that_outlives_a_killed_writer_does_not_keep_its_lock() -> None:
    assert launch("faults.py", "left_behind", "sqlite+jsonl") == {"locks": 1}
