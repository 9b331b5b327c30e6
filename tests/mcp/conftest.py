"""A server for the tests to ask, with which the SDK speaks over standard streams."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters

from scikitplot.agent import McpSession

SPECIAL = str(Path(__file__).with_name("special_server.py"))


@contextmanager
def _open_special(folder: Path) -> Iterator[McpSession]:
    parameters = StdioServerParameters(command=sys.executable, args=[SPECIAL], cwd=folder)
    with McpSession(lambda: Client(parameters)) as session:
        yield session


@pytest.fixture(scope="session")
def open_special() -> Callable[[Path], AbstractContextManager[McpSession]]:
    """Return what opens a session with `special_server.py`, which runs in a folder."""
    return _open_special


@pytest.fixture(scope="module")
def special(tmp_path_factory: pytest.TempPathFactory) -> Iterator[McpSession]:
    """A session with a `special_server.py` that the tests of a module share."""
    with _open_special(tmp_path_factory.mktemp("special")) as session:
        yield session
