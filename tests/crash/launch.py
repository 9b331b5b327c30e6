"""Start a program of this folder in a clean process, so that what it forks is clean too."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from postgres_server import Server

import scikitplot.agent

HERE = Path(__file__).resolve().parent
SOURCE = Path(scikitplot.agent.__file__).resolve().parents[2]
SERVER = "AGENT_CRASH_SERVER"
"""The variable of the environment with the folder of the server's socket."""
MISSING = "this machine has no fork or no SIGKILL"


def can_fork() -> bool:
    return hasattr(os, "fork") and hasattr(signal, "SIGKILL")


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder in memory where there is one: a killed process loses nothing of it either."""
    memory = Path("/dev/shm")
    place = memory if memory.is_dir() and os.access(memory, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="agent-crash-", dir=place) as folder:
        yield Path(folder)


def launch(
    program: str,
    *arguments: str,
    seconds: float = 300,
    server: Server | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Run a program in a folder of its own; return the figures that it printed."""
    env = {**os.environ, "PYTHONPATH": str(SOURCE)}
    if server is not None:
        env[SERVER] = str(server.folder)
    with scratch() as folder:
        process = subprocess.Popen(
            [sys.executable, str(HERE / program), *arguments, str(folder), json.dumps(options)],
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            out, errors = process.communicate(timeout=seconds)
        finally:
            # Whatever it forked is in its group and goes with it.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if process.returncode != 0:
            raise AssertionError(f"{program} {' '.join(arguments)}: {errors.strip()}")
        figures: dict[str, Any] = json.loads(out.splitlines()[-1])
        return figures
