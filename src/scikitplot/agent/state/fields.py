"""Reading saved JSON, field by field.

The rule that holds here: whatever stands in the place of a saved value is a `StateError` that names
the field, and never another exception.
"""

from __future__ import annotations

import json
import math
from typing import Any

from ..approval import is_digest
from ..errors import StateError
from ..values import JSON, MAX_NESTING, InvalidValue, admit, quote, type_name

__all__ = ["MAX_SAVED", "Fields", "optional_text", "read_json"]

MAX_SAVED = 64_000_000
"""Bytes of one saved text; a larger one is not read."""


def optional_text(text: str | None) -> str:
    """Return the canonical text of a string or of None."""
    return "null" if text is None else quote(text)


def read_json(name: str, text: object) -> JSON:
    """Return the JSON value of a saved text, judged as strictly as one from a tool."""
    if type(text) is not str:
        raise StateError(f"{name} must be JSON text, not {type_name(text)}")
    try:
        # Parsing bounds nothing by itself: what it gives is admitted like any value from outside.
        return admit(json.loads(text), MAX_SAVED, max_depth=MAX_NESTING)[0]
    except InvalidValue as error:
        raise StateError(f"{name}{error.pointer}: {error.reason}") from None
    except (ValueError, RecursionError):
        raise StateError(f"{name} is no JSON") from None


class Fields:
    """The fields of a saved object, taken one by one and checked."""

    __slots__ = ("_fields", "_name")

    def __init__(self, name: str, saved: JSON, expected: tuple[str, ...]) -> None:
        if type(saved) is not dict:
            raise StateError(f"{name} must be an object, not {type_name(saved)}")
        for field in expected:
            if field not in saved:
                raise StateError(f"{name}: {field} is missing")
        if len(saved) > len(expected):
            raise StateError(f"{name}: it has fields besides {', '.join(expected)}")
        self._name = name
        self._fields: dict[str, Any] = saved

    def wrong(self, field: str, what: str) -> StateError:
        """Return the error that says what is wrong with a field."""
        return StateError(f"{self._name}: {field} {what}")

    def value(self, field: str) -> JSON:
        """Return any JSON value."""
        return self._fields[field]

    def text(self, field: str, *, optional: bool = False) -> str | None:
        """Return a string."""
        value = self._fields[field]
        if value is None and optional:
            return None
        if isinstance(value, str):
            return value
        raise self.wrong(field, f"must be a string{' or null' if optional else ''}")

    def texts(self, field: str) -> tuple[str, ...]:
        """Return a list of strings."""
        value = self._fields[field]
        if type(value) is not list or not all(type(item) is str for item in value):
            raise self.wrong(field, "must be a list of strings")
        return tuple(value)

    def digest(self, field: str) -> str:
        """Return a run id or a digest."""
        value = self._fields[field]
        if isinstance(value, str) and is_digest(value):
            return value
        raise self.wrong(field, "must be 64 lower-case hexadecimal digits")

    def one_of(self, field: str, values: list[str]) -> str:
        """Return one of some strings."""
        value = self._fields[field]
        if isinstance(value, str) and value in values:
            return value
        raise self.wrong(field, f"must be one of {', '.join(values)}")

    def count(self, field: str) -> int:
        """Return a whole number of at least 0."""
        value = self._fields[field]
        if type(value) is not int or not 0 <= value < 2**63:
            raise self.wrong(field, "must be a whole number of at least 0")
        return value

    def time(self, field: str) -> float:
        """Return a wall-clock time, which may lie before the epoch."""
        value = self._fields[field]
        if type(value) is not float or not math.isfinite(value):
            raise self.wrong(field, "must be a finite float")
        return value

    def number(self, field: str) -> float:
        """Return a finite number of at least 0."""
        value = self._fields[field]
        if type(value) is not float or not 0 <= value < math.inf:
            raise self.wrong(field, "must be a float of at least 0")
        return value
