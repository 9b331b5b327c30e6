"""The benchmarks run, in a tiny form: what they print has its shape, and no time is judged."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
ABSENT = {"LangGraph": "langgraph", "ragleap-agents": "ragleap_agents"}
MEASURED = ROOT / "docs" / "measured.rst"


def run(script: str, *arguments: str, absent: Path | None = None) -> tuple[dict[str, Any], str]:
    """Return the JSON and the tables that a benchmark prints; `absent` hides packages from it."""
    path = [str(absent)] * (absent is not None) + [os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, path))}
    ran = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / script), *arguments],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env=environment,
        timeout=300,
    )
    first, _, tables = ran.stdout.partition("\n")
    return json.loads(first), tables


def hide(folder: Path, *packages: str) -> Path:
    """Put modules into a folder that cannot be imported, as if they were not installed."""
    folder.mkdir()
    for package in packages:
        (folder / f"{package}.py").write_text(f"raise ImportError(name={package!r})\n")
    return folder


def rows(tables: str) -> list[list[str]]:
    """Return the cells of all rows of tables; each row has as many as its header."""
    found = []
    for table in tables.strip().split("\n\n"):
        lines = [line for line in table.splitlines() if line.startswith("|")]
        cells = [[cell.strip() for cell in line[1:-1].split("|")] for line in lines]
        assert {len(row) for row in cells} <= {len(cells[0])} if cells else True
        found += cells[2:]
    return found


def load_report() -> Any:
    path = ROOT / "benchmarks" / "report.py"
    spec = importlib.util.spec_from_file_location("benchmark_report", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_step_cost_prints_a_row_for_each_case() -> None:
    result, tables = run("step_cost.py", "5")
    assert [row[0] for row in rows(tables)] == list(result["cases"])
    assert result["steps"] == 5


def test_async_runs_prints_a_row_for_each_number_of_calls() -> None:
    result, tables = run("async_runs.py", "5")
    assert result["runs"] == 5
    assert [row[0] for row in rows(tables)] == list(result["calls"]) == ["1", "5", "10"]
    assert all(row["agents_ms"] > 0 < row["tools_ms"] for row in result["calls"].values())


def test_many_runs_prints_a_row_for_each_store() -> None:
    result, tables = run("many_runs.py", "20")
    assert (result["runs"], result["steps"]) == (20, 5)
    assert [row[0] for row in rows(tables)] == list(result["stores"]) == ["no store", "SQLite"]
    assert all(row["one_s"] > 0 and row["two_s"] > 0 for row in result["stores"].values())


def test_growth_measures_each_store_at_each_step_and_names_what_is_absent(tmp_path: Path) -> None:
    absent = hide(tmp_path / "absent", "psycopg")
    document = tmp_path / "measured.rst"
    shutil.copy(MEASURED, document)
    stores = ("MemoryStore, JsonlAuditSink", "SqliteStore", "SqlStore")
    chosen = [part for store in stores for part in ("--store", store)]
    options = ["--steps", "4,20", "--rounds", "1", "--write", str(document)]
    result, tables = run("growth.py", *chosen, *options, absent=absent)
    assert list(result["stores"]) == list(stores)
    assert result["stores"]["SqlStore"] == {"failed": "no psycopg"}
    for store in stores[:2]:
        at = result["stores"][store]["at"]
        assert list(at) == ["4", "20"]
        for figures in at.values():
            assert all(figures[name] > 0 for name in ("us", "us_mean", "bytes", "memory"))
    # Where there is no database there are no rows to read.
    assert not result["stores"][stores[0]]["resume"]
    assert list(result["stores"][stores[1]]["resume"]) == ["cut off", "paused"]
    found = rows(tables)
    assert [row[:2] for row in found] == [
        [stores[0], "4"],
        [stores[0], "20"],
        [stores[1], "4"],
        [stores[1], "20"],
        ["SqlStore: no psycopg", "-"],
        [stores[1], "cut off"],
        [stores[1], "paused"],
    ]
    written = document.read_text("utf-8")
    assert "SqlStore: no psycopg" in written
    before, _, rest = MEASURED.read_text("utf-8").partition(".. begin growth\n")
    after = rest.partition(".. end growth\n")[2]
    assert written.startswith(before)
    assert written.endswith(after)


def test_growth_measures_a_database_server(postgres_server: object) -> None:
    # A server's tables grow by whole pages: a few steps need not add any.
    result, _ = run("growth.py", "--store", "SqlStore", "--steps", "60", "--rounds", "1")
    figures = result["stores"]["SqlStore"]
    assert figures["at"]["60"]["bytes"] > 0
    assert list(figures["resume"]) == ["cut off", "paused"]


@pytest.fixture(scope="module")
def peers(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], str]:
    absent = hide(tmp_path_factory.mktemp("peers") / "absent", "langgraph", "ragleap_agents")
    options = ["--steps", "8,20", "--rounds", "1", "--kills", "4"]
    return run("peers.py", *options, absent=absent)


def test_peers_measures_what_is_there_and_names_what_is_not(
    peers: tuple[dict[str, Any], str],
) -> None:
    result, tables = peers
    for name, at in result["cost"].items():
        package = ABSENT.get(name.partition(",")[0])
        # A system that cannot go so far is not asked to.
        assert list(at) == ["8"] if package == "ragleap_agents" else ["8", "20"]
        for figures in at.values():
            if package:
                assert figures == {"failed": f"not installed: {package}"}
            else:
                assert figures["us"] > 0
                assert (figures["bytes"] > 0) == ("memory" not in name)
    titles = [row[0] for row in rows(tables)]
    assert titles.count("LangGraph, memory; not installed: langgraph") == 2
    assert len(titles) == len(result["cost"]) + len(result["kills"])


def test_peers_tells_what_a_kill_left(peers: tuple[dict[str, Any], str]) -> None:
    kills = peers[0]["kills"]
    assert kills["LangGraph, SqliteSaver"] == {"failed": "not installed: langgraph"}
    memory = kills["scikitplot.agent, memory"]
    assert (memory["runs"], memory["saved"], memory["resumed"]) == (4, 0, 0)
    assert "twice" not in memory, "nobody resumed it"
    durable = kills["scikitplot.agent, SqliteStore"]
    # Of each run one call was cut off, before its effect or after it, and the state names it.
    assert durable["effects"] - 4 <= durable["saved"] <= durable["effects"]
    assert durable["knows_the_call"] == durable["resumed"] == 4
    cut_off_before = 4 - (durable["effects"] - durable["saved"])
    assert (durable["twice"], durable["missing"]) == (0, cut_off_before)
    again = kills["scikitplot.agent, SqliteStore, idempotent tool"]
    assert (again["twice"], again["missing"]) == (again["effects"] - again["saved"], 0)
    trail = kills["scikitplot.agent, JSONL"]
    assert (trail["knows_the_call"], trail["resumed"]) == (4, 0)


def test_a_process_that_fails_or_hangs_is_one_entry() -> None:
    child = load_report().child
    assert child("peer_runs.py", "nobody", "time", 8, timeout=60) == {
        "failed": "ended with status 1"
    }
    hangs = child("peer_runs.py", "floor, memory", "time", 10**9, timeout=1)
    assert hangs == {"failed": "no end in 1 s"}


def test_a_document_without_the_place_for_a_table_is_refused(tmp_path: Path) -> None:
    document = tmp_path / "a.rst"
    document.write_text(".. begin growth\n")
    with pytest.raises(ValueError, match=r"has no '\.\. begin growth' and '\.\. end growth'"):
        load_report().put(document, "growth", "a table")
    assert document.read_text() == ".. begin growth\n"
