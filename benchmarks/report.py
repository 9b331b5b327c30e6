"""What the benchmarks share: the machine in words, tables, and children that may fail alone."""

from __future__ import annotations

import json
import os
import platform
import re
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

Row = Sequence[object]


def machine(*packages: str) -> str:
    """Return what the figures were measured on: the kind of processor, and versions."""
    cpu = platform.machine()
    try:
        found = re.search(r"^model name\s*: (.+)$", Path("/proc/cpuinfo").read_text(), re.M)
        cpu = found[1].strip() if found else cpu
    except OSError:
        pass  # not on Linux; the architecture has to do
    parts = [
        f"{cpu}, {os.cpu_count()} cores",
        f"{platform.system()}, Python {platform.python_version()}",
        f"SQLite {sqlite3.sqlite_version}",
    ]
    for package in packages:
        try:
            parts.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            parts.append(f"{package} not installed")
    return ", ".join(parts)


def child(*arguments: object, timeout: float) -> dict[str, Any]:
    """Run a script of this folder in a process of its own; return the JSON that it prints.

    What goes wrong in it is one entry, ``failed``, so that the others are still measured.
    """
    script, *rest = map(str, arguments)
    command = [sys.executable, str(Path(__file__).with_name(script)), *rest]
    try:
        ran = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        return {"failed": f"no end in {timeout:g} s"}
    if ran.returncode:
        return {"failed": f"ended with status {ran.returncode}"}
    result: dict[str, Any] = json.loads(ran.stdout)
    return result


def say(text: str) -> None:
    """Tell whoever waits how far it is."""
    print(text, file=sys.stderr, flush=True)


def show(value: object) -> str:
    """Return a cell: numbers with thousands apart, or with two places where they are small."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.2f}" if abs(value) < 10 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def markdown(header: Sequence[str], rows: Sequence[Row]) -> str:
    """Return a table; the first column is text, the others stand at the right."""
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *([show(v) for v in r] for r in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def rst(header: Sequence[str], rows: Sequence[Row]) -> str:
    """Return the same as a simple table of reStructuredText."""
    lines = [list(header), *([show(value) for value in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    rule = "  ".join("=" * width for width in widths)

    def line(cells: Sequence[str]) -> str:
        first = cells[0].ljust(widths[0])
        rest = [cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True)]
        return "  ".join([first, *rest]).rstrip()

    return "\n".join([rule, line(lines[0]), rule, *map(line, lines[1:]), rule])


def put(document: Path, name: str, text: str) -> None:
    """Replace what stands in a document between the two comments of this name."""
    start, end = f".. begin {name}\n", f".. end {name}\n"
    before, found, rest = document.read_text("utf-8").partition(start)
    _, found_end, after = rest.partition(end)
    if not found or not found_end:
        raise ValueError(f"{document.name} has no '{start.strip()}' and '{end.strip()}'")
    document.write_text(f"{before}{start}\n{text}\n\n{end}{after}", "utf-8")
