"""What the tests of several folders share: the stores, and a database server."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from postgres_server import Server, find_binaries

_schemas = itertools.count(1)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Server]:
    try:
        import psycopg  # noqa: F401
    except ImportError:
        pytest.skip("psycopg is not installed")
    binaries = find_binaries()
    if binaries is None:
        pytest.skip("PostgreSQL's server is not installed")
    server = Server(binaries)
    yield server
    server.close()


@pytest.fixture
def postgres(postgres_server: Server) -> Iterator[Callable[[], Any]]:
    """Return what connects to an empty schema, which is gone after the test."""
    import psycopg

    schema = f"test_{next(_schemas)}"
    address = postgres_server.address(schema)
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f"create schema {schema}")

    def connect(**options: Any) -> Any:
        return psycopg.connect(address, **options)

    connect.address = address  # type: ignore[attr-defined]
    yield connect
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f"drop schema {schema} cascade")
