"""Servers that the tests ask: published ones, where this machine has them, and one of our own."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from scikitplot.agent import McpSession

SPECIAL = str(Path(__file__).with_name("special_server.py"))


def find_server(name: str) -> str:
    """Return the path of an npm server's program, or skip the test."""
    program = shutil.which(f"mcp-server-{name}")
    if program is None:
        pytest.skip(f"this machine has no mcp-server-{name}")
    return program


@contextmanager
def _open_special(folder: Path, *arguments: str, **options: Any) -> Iterator[McpSession]:
    parameters = StdioServerParameters(
        command=sys.executable, args=[SPECIAL, *arguments], cwd=folder
    )
    with McpSession(lambda: Client(parameters), **options) as session:
        yield session


@pytest.fixture(scope="session")
def open_special() -> Callable[..., AbstractContextManager[McpSession]]:
    """Return what opens a session with `special_server.py`, which runs in a folder."""
    return _open_special


@pytest.fixture
def special(tmp_path: Path) -> Iterator[McpSession]:
    """A session with a `special_server.py` of its own, in `tmp_path`."""
    with _open_special(tmp_path) as session:
        yield session
