"""The database server, for the pairs that need one."""

from __future__ import annotations

import pytest
from postgres_server import Server


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Server | None:
    """The server, if one of the test's parameters names it."""
    named = any("postgresql" in str(value) for value in request.node.callspec.params.values())
    return request.getfixturevalue("postgres_server") if named else None
