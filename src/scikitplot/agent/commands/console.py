"""What the commands print with, and how they end.

Imports `views` and `stores`. Nothing from outside is printed as it is: it goes through `views`, or
is printed as JSON in ASCII.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from ..errors import StateError
from ..stores import SqliteStore
from ..views.visible import escape

__all__ = ["PROGRAM", "Fault", "count", "opened", "page", "print_json", "room", "shown"]

PROGRAM = "python -m scikitplot.agent"


class Fault(Exception):
    """What ends a command with one sentence and an exit code."""

    def __init__(self, message: str, code: int = 1) -> None:
        super().__init__(message)
        self.code = code


def shown(path: Path) -> str:
    """Return a path as it may be printed."""
    return escape(str(path))


def count(number: int, noun: str) -> str:
    """Return so many of something, in words."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def room(stream: TextIO) -> dict[str, Any]:
    """Return what a view must know of where it is shown."""
    columns = shutil.get_terminal_size().columns
    return {"width": min(columns, 100), "encoding": getattr(stream, "encoding", None) or "utf-8"}


def page(text: str) -> None:
    """Print text, through the user's pager where it is longer than the terminal."""
    at_terminal = all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout))
    if at_terminal and text.count("\n") >= shutil.get_terminal_size().lines - 1:
        import pydoc

        pydoc.pager(text + "\n")
    else:
        print(text)


def print_json(value: Any) -> None:
    """Print a value as one line of JSON, in ASCII."""
    print(json.dumps(value))


@contextmanager
def opened(path: Path) -> Iterator[SqliteStore]:
    """Open the store of a command, which must be there."""
    if not is_database(path):
        raise Fault(f"{shown(path)}: is no database of a SqliteStore", 2)
    try:
        with SqliteStore(path) as store:
            yield store
    except StateError as error:
        raise Fault(escape(str(error)), 2) from None


def is_database(path: Path) -> bool:
    """Return whether a file is an SQLite database; raise `Fault` if it cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(16) == b"SQLite format 3\0"
    except OSError as error:
        raise cannot_read(path, error) from None


def cannot_read(path: Path, error: OSError) -> Fault:
    """Return the fault of a file that cannot be read."""
    return Fault(f"{escape(str(error.filename or path))}: cannot be read ({error.strerror})", 2)
