"""Reading a policy's file: TOML or JSON, in UTF-8 and of a bounded size.

Imports `values`. What the file holds is judged by `Policy.from_dict`, like any value from outside.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from .values import JSON, MAX_BYTES, type_name

__all__ = ["read_policy_file"]


def read_policy_file(path: str | os.PathLike[str]) -> JSON:
    """Return what a file holds whose name ends in ``.toml`` or ``.json``.

    Raises
    ------
    TypeError, ValueError
        If it is another file, too large, or cannot be parsed.
    OSError
        If it cannot be read.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"path must be a str or a path, not {type_name(path)}")
    file = Path(path)
    parse = {".toml": _toml, ".json": _json}.get(file.suffix.lower())
    if parse is None:
        raise ValueError("a policy's file must be named *.toml or *.json")
    with file.open("rb") as opened:
        data = opened.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise ValueError(f"the policy's file has more than {MAX_BYTES} bytes")
    try:
        return parse(data.decode())
    except UnicodeDecodeError as error:
        raise ValueError(f"the policy's file is no UTF-8 at byte {error.start}") from None
    except RecursionError:
        raise ValueError("the policy's file is nested too deep") from None


def _json(text: str) -> JSON:
    try:
        return json.loads(text, object_pairs_hook=_object)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise ValueError(f"the policy's file is no JSON: {error.msg} at {place}") from None


def _object(pairs: list[tuple[str, JSON]]) -> dict[str, JSON]:
    read = dict(pairs)
    if len(read) < len(pairs):  # of which JSON would take the last, without a word
        raise ValueError("the policy's file gives a key twice in one object")
    return read


def _toml(text: str) -> JSON:
    if sys.version_info >= (3, 11):
        import tomllib

        try:
            return tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise ValueError(f"the policy's file is no TOML: {error}") from None
    raise ValueError("Python reads TOML from 3.11 on; write the policy as a .json file")
