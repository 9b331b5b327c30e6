"""Tables of tests, and how tests are put together.

Imports nothing of the package. A table maps the exact type of a value to None, if all values of the
type are valid, or to a test; a type that is missing is invalid.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

__all__ = ["ANY", "KINDS", "NULL", "Parts", "Table", "Test", "every", "never", "no", "one", "some"]

Test: TypeAlias = Callable[[Any], bool]
Parts: TypeAlias = dict[type, list[Test]]
"""For each type that is not excluded, the tests that a value of it must pass."""

NULL = type(None)
KINDS: tuple[type, ...] = (dict, list, str, int, float, bool, NULL)


def never(value: Any) -> bool:
    """Say no to every value."""
    return False


class Table(dict[type, "Test | None"]):
    """From the type of a value to its test, `never` for a type that is missing."""

    __slots__ = ()

    def __missing__(self, kind: type) -> Test:
        return never


ANY = Table(dict.fromkeys(KINDS))


# `all` and `any` over a generator would take twice as long as the loops below.


def every(tests: list[Test]) -> Test | None:
    """Return the test of values that pass all of `tests`; None if there are none."""
    if len(tests) < 2:
        return tests[0] if tests else None
    if len(tests) == 2:
        first, second = tests
        return lambda value: first(value) and second(value)

    def test(value: Any) -> bool:
        for part in tests:  # noqa: SIM110
            if not part(value):
                return False
        return True

    return test


def some(tests: list[Test]) -> Test:
    """Return the test of values that pass one of `tests` or more."""
    if len(tests) == 1:
        return tests[0]

    def test(value: Any) -> bool:
        for part in tests:  # noqa: SIM110
            if part(value):
                return True
        return False

    return test


def no(tests: list[Test]) -> Test:
    """Return the test of values that pass none of `tests`."""
    if len(tests) == 1:
        only = tests[0]
        return lambda value: not only(value)

    def test(value: Any) -> bool:
        for part in tests:  # noqa: SIM110
            if part(value):
                return False
        return True

    return test


def one(tests: list[Test]) -> Test:
    """Return the test of values that pass exactly one of `tests`."""
    if len(tests) == 1:
        return tests[0]

    def test(value: Any) -> bool:
        found = False
        for part in tests:
            if part(value):
                if found:
                    return False
                found = True
        return found

    return test
