"""MCP servers that are published on npm, where this machine has them."""

from __future__ import annotations

import shutil

import pytest

__all__ = ["find_server"]


def find_server(name: str) -> str:
    """Return the program of a server in the path, or skip the test."""
    program = shutil.which(f"mcp-server-{name}")
    if program is None:
        pytest.skip(f"this machine has no mcp-server-{name}")
    return program
