"""Tests of the parts of arrays and objects.

Imports `tables`. A table may be filled later, in a schema that refers to itself, so it is
looked into only where it is said to be whole.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .bounds import TEXT_UNIT, spend
from .tables import ANY, Table, Test, every

__all__ = [
    "contains",
    "dependent_required",
    "items",
    "members",
    "members_by_pattern",
    "names",
    "size",
]


def size(least: int, most: int | None) -> Test | None:
    """Return the test of what has `least` to `most` members, None if it would pass all."""
    if most is not None:
        return lambda value: least <= len(value) <= most
    return (lambda value: len(value) >= least) if least else None


def items(prefix: list[Table], rest: Table, whole: bool) -> Test | None:
    """Return the test of arrays whose first items meet `prefix`, and the others `rest`."""
    tests: list[Test] = []
    start = len(prefix)
    if prefix:

        def first(value: list[Any]) -> bool:
            for table, item in zip(prefix, value, strict=False):
                test = table[type(item)]
                if test is not None and not test(item):
                    return False
            return True

        tests.append(first)
    if whole and rest == ANY:
        return every(tests)
    if whole and not rest:
        tests.append(lambda value: len(value) <= start)
    elif whole and not any(rest.values()):
        kinds = frozenset(rest)
        tests.append(lambda value: kinds.issuperset(map(type, value[start:])))
    else:

        def others(value: list[Any]) -> bool:
            for item in value[start:] if start else value:
                test = rest[type(item)]
                if test is not None and not test(item):
                    return False
            return True

        tests.append(others)
    return every(tests)


def contains(table: Table, least: int, most: int | None) -> Test:
    """Return the test of arrays of which `least` to `most` items meet `table`."""

    def test(value: list[Any]) -> bool:
        found = 0
        for item in value:
            asked = table[type(item)]
            if asked is None or asked(item):
                found += 1
                if most is None:
                    if found >= least:
                        return True
                elif found > most:
                    return False
        return found >= least

    return test


class _Members(dict[str, Table]):
    """From the name of a member to its table, that of the others for a name not declared."""

    __slots__ = ("others",)

    def __init__(self, declared: dict[str, Table], others: Table) -> None:
        super().__init__(declared)
        self.others = others

    def __missing__(self, name: str) -> Table:
        return self.others


def members(declared: dict[str, Table], others: Table) -> Test:
    """Return the test of objects whose members meet the tables for their names."""
    tables = _Members(declared, others)

    def test(value: dict[str, Any]) -> bool:
        for name, item in value.items():
            asked = tables[name][type(item)]
            if asked is not None and not asked(item):
                return False
        return True

    return test


def members_by_pattern(
    declared: dict[str, Table],
    patterns: list[tuple[Callable[[str], bool], Table]],
    others: Table,
    looks: int,
) -> Test:
    """Return the test of objects whose members meet the tables for what is in their names too.

    A name of `TEXT_UNIT` characters or less is counted as `looks`, 0 if nothing is counted.
    """
    tables = _Members(declared, others)

    def test(value: dict[str, Any]) -> bool:
        for name, item in value.items():
            kind = type(item)
            if type(name) is not str:
                return False
            if looks:
                spend(looks * (1 + len(name) // TEXT_UNIT))
            found = [table for matches, table in patterns if matches(name)]
            if name in declared or not found:
                found.append(tables[name])
            for table in found:
                asked = table[kind]
                if asked is not None and not asked(item):
                    return False
        return True

    return test


def names(table: Table) -> Test:
    """Return the test of objects whose names meet `table`."""

    def test(value: dict[str, Any]) -> bool:
        for name in value:
            asked = table[type(name)]
            if asked is not None and not asked(name):
                return False
        return True

    return test


def dependent_required(asked: dict[str, tuple[str, ...]]) -> Test:
    """Return the test of objects that have, for each name of `asked` they have, its others."""
    sets = {name: frozenset(others) for name, others in asked.items() if others}

    def test(value: dict[str, Any]) -> bool:
        for name in value:  # noqa: SIM110
            if name in sets and not sets[name] <= value.keys():
                return False
        return True

    return test
