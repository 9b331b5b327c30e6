"""The bounds of schemas and validations, and the meter that holds the fast way to them.

Imports nothing of the package. What exceeds a bound is refused with a `SchemaError` when the schema
is compiled, or denied with a problem when a value is validated; it never hangs, never fills the
memory and never ends in a RecursionError.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

__all__ = [
    "KEY_UNIT",
    "MAX_DEPTH",
    "MAX_LISTED",
    "MAX_NESTING",
    "MAX_PATTERNS",
    "MAX_PROBLEMS",
    "MAX_STEPS",
    "MAX_SUBSCHEMAS",
    "MAX_VALUES",
    "MAX_WEIGHT",
    "NAMES_UNIT",
    "STATES_UNIT",
    "TEXT_UNIT",
    "TooMuch",
    "guarded",
    "metered",
    "spend",
    "too_many_steps",
    "too_nested",
]

MAX_DEPTH = 64
"""Levels of subschemas in a schema, and of subschemas that apply to one value inside each other
through references."""

MAX_SUBSCHEMAS = 5_000
"""Subschemas of one schema, itself included."""

MAX_VALUES = 100_000
"""Values in all `enum`, `const` and name lists of one schema together; a text counts one more for
each `TEXT_UNIT` characters."""

MAX_PATTERNS = 100
"""Different patterns in one schema."""

MAX_NESTING = 192
"""Schemas that apply inside each other in one validation: three for each level of a value that is
as deep as `values.admit` lets through."""

MAX_STEPS = 1_000_000
"""Steps of one validation. A step is a schema applied to a value or to a member of one, or
`TEXT_UNIT` characters searched, `KEY_UNIT` compared, or `NAMES_UNIT` names looked up."""

MAX_WEIGHT = 32
"""Subschemas that may look at one value in a schema whose validation is not counted: it costs no
more than so many looks at each part of the value, whatever the value is."""

MAX_PROBLEMS = 1_000
"""Problems that are listed for one value; one more says that there are others."""

MAX_LISTED = 10
"""Values of an `enum` that a message lists."""

TEXT_UNIT = 32
"""Characters of a text that count as a step or a value."""

KEY_UNIT = 8
"""Characters of the canonical text of a value that count as a step, where it is compared whole."""

STATES_UNIT = 4
"""States of a pattern that count as one more look at a text."""

NAMES_UNIT = 16
"""Names of a `required` list that count as a step."""


class TooMuch(Exception):
    """A validation met a bound. The value is denied, whatever the schema would say."""


class _Meter:
    __slots__ = ("depth", "known", "steps")

    def __init__(self) -> None:
        self.steps = MAX_STEPS
        self.depth = MAX_NESTING
        self.known: dict[tuple[int, int], Any] = {}


class _Threads(threading.local):
    # Closures are shared by threads, so that what one validation has spent cannot be in them.
    meter = _Meter()


_threads = _Threads()


def metered(test: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """Return `test` so that each call of it is counted by a meter of its own."""

    def measured(value: Any) -> bool:
        outer = _threads.meter
        _threads.meter = _Meter()
        try:
            return test(value)
        finally:
            _threads.meter = outer

    return measured


def spend(steps: int) -> None:
    """Count `steps` in the validation that this thread is in."""
    meter = _threads.meter
    meter.steps -= steps
    if meter.steps < 0:
        raise too_many_steps()


def too_many_steps() -> TooMuch:
    """Return what to raise where the steps of a validation are spent."""
    return TooMuch(f"takes more than {MAX_STEPS} steps to validate")


def too_nested() -> TooMuch:
    """Return what to raise where too many schemas apply inside each other."""
    return TooMuch(f"is nested too deep: more than {MAX_NESTING} schemas apply inside each other")


def _nothing(value: Any) -> int:
    return 0


def guarded(
    test: Callable[[Any], Any], kind: type, size: int, height: int, shared: int | None
) -> Callable[[Any], Any]:
    """Return `test`, counted, for values of `kind`.

    Parameters
    ----------
    test : callable
        What a schema asks of one value.
    kind : type
        The type of the values: a long one costs more.
    size, height : int
        How many schemas it applies to the value, and how many of them inside each other.
    shared : int or None
        A number for `test` if it may meet the same value on many ways; it is then asked once.
    """
    measure: Callable[[Any], int] = len if kind in (dict, list, str) else _nothing
    unit = TEXT_UNIT if kind is str else 1
    threads = _threads

    def guard(value: Any) -> Any:
        meter = threads.meter
        if shared is not None:
            place = (shared, id(value))  # the value outlives the meter
            known = meter.known.get(place, meter)
            if known is not meter:
                return known
        meter.steps -= size * (1 + measure(value) // unit)
        meter.depth -= height
        if meter.steps < 0:
            raise too_many_steps()
        if meter.depth < 0:
            raise too_nested()
        answer = test(value)
        meter.depth += height
        if shared is not None:
            meter.steps -= _MEMORY
            meter.known[place] = answer
        return answer

    return guard


_MEMORY = 8
"""Steps for keeping an answer, so that the steps bound the memory too."""
