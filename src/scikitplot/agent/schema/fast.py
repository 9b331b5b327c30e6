"""The fast way: for each node a table from type to test.

Imports `reader` and `equality`. A table maps the exact type of a value to None (all values of
the type are valid), or to a function that says whether one is; a type that is missing is invalid.
What the types alone decide is decided here, when the schema is compiled: of an `anyOf` of a string
and null nothing is left to do but a look into the table.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from .equality import is_multiple, key, parts
from .reader import Node

__all__ = ["Table", "Test", "never", "tables"]

Test: TypeAlias = Callable[[Any], bool]
Table: TypeAlias = dict[type, "Test | None"]
_Parts: TypeAlias = dict[type, list[Test]]

_NULL = type(None)
_KINDS: tuple[type, ...] = (dict, list, str, int, float, bool, _NULL)
_ANY: Table = dict.fromkeys(_KINDS)
_TYPES: dict[str, tuple[type, ...]] = {
    "array": (list,),
    "boolean": (bool,),
    "integer": (int, float),
    "null": (_NULL,),
    "number": (int, float),
    "object": (dict,),
    "string": (str,),
}

_FEW = 256
"""Numbers of an `enum` that may be in a set: the hashes of integers can be chosen to collide."""


def never(value: Any) -> bool:
    """Say no to every value: the test of the types that a table does not hold."""
    return False


def tables(nodes: list[Node]) -> Table:
    """Return the table of the first of `nodes`, which are all the nodes of a schema."""
    made: dict[Node, Table] = {node: {} for node in nodes}
    for node in reversed(nodes):  # a child before its parent
        if not node.never:
            made[node].update(_table(node, made))
    return made[nodes[0]]


def _table(node: Node, made: dict[Node, Table]) -> Table:
    tests: _Parts = {kind: [] for kind in _KINDS}
    rules = node.rules
    for keyword in _ORDER:
        if keyword in rules:
            _RULES[keyword](rules[keyword], tests, made)
    if str in tests:
        tests[str] += _bounds(rules, "minLength", "maxLength")
    if list in tests:
        tests[list] += _bounds(rules, "minItems", "maxItems")
        tests[list] += _items(rules, made)
    if dict in tests:
        tests[dict] += _bounds(rules, "minProperties", "maxProperties")
        tests[dict] += _object(rules, made)
    return {kind: _every(found) for kind, found in tests.items()}


def _every(tests: list[Test]) -> Test | None:
    if len(tests) < 2:
        return tests[0] if tests else None
    if len(tests) == 2:
        first, second = tests
        return lambda value: first(value) and second(value)

    def every(value: Any) -> bool:
        for test in tests:  # noqa: SIM110 - a generator costs twice as much
            if not test(value):
                return False
        return True

    return every


def _some(tests: list[Test]) -> Test:
    if len(tests) == 1:
        return tests[0]

    def some(value: Any) -> bool:
        for test in tests:  # noqa: SIM110 - as above
            if test(value):
                return True
        return False

    return some


def _no(tests: list[Test]) -> Test:
    some = _some(tests)
    return lambda value: not some(value)


def _one(tests: list[Test]) -> Test:
    if len(tests) == 1:
        return tests[0]

    def one(value: Any) -> bool:
        found = False
        for test in tests:
            if test(value):
                if found:
                    return False
                found = True
        return found

    return one


# Each rule adds its tests to those of the types it speaks of, and takes away the types it excludes.


def _type(names: frozenset[str], tests: _Parts, made: dict[Node, Table]) -> None:
    allowed = {kind for name in names for kind in _TYPES[name]}
    for kind in _KINDS:
        if kind not in allowed:
            del tests[kind]
    if "integer" in names and "number" not in names:
        tests[float].append(float.is_integer)


def _enum(choices: tuple[Any, ...], tests: _Parts, made: dict[Node, Table]) -> None:
    kinds: dict[type, list[Any]] = {}
    for choice in choices:
        kind = type(choice)
        kinds.setdefault(int if kind is float else kind, []).append(choice)
    if int in kinds:
        kinds[float] = kinds[int]
    for kind in list(tests):
        if kind not in kinds:
            del tests[kind]
        elif kind is list or kind is dict:
            tests[kind].append(_among(kinds[kind]))
        elif kind in (int, float) and len(kinds[kind]) > _FEW:
            tests[kind].append(_in_order(kinds[kind]))
        elif kind is not _NULL:
            tests[kind].append(frozenset(kinds[kind]).__contains__)


def _among(choices: list[Any]) -> Test:
    texts = frozenset(map(key, choices))
    return lambda value: key(value) in texts


def _in_order(choices: list[float]) -> Test:
    ordered = sorted(choices)
    size = len(ordered)

    def found(value: float) -> bool:
        index = bisect_left(ordered, value)
        return index < size and ordered[index] == value

    return found


def _numeric(test: Test) -> Callable[[_Parts], None]:
    def add(tests: _Parts) -> None:
        for kind in (int, float):
            if kind in tests:
                tests[kind].append(test)

    return add


def _minimum(bound: float, tests: _Parts, made: dict[Node, Table]) -> None:
    _numeric(lambda value: value >= bound)(tests)


def _maximum(bound: float, tests: _Parts, made: dict[Node, Table]) -> None:
    _numeric(lambda value: value <= bound)(tests)


def _exclusive_minimum(bound: float, tests: _Parts, made: dict[Node, Table]) -> None:
    _numeric(lambda value: value > bound)(tests)


def _exclusive_maximum(bound: float, tests: _Parts, made: dict[Node, Table]) -> None:
    _numeric(lambda value: value < bound)(tests)


def _multiple(divisor: float, tests: _Parts, made: dict[Node, Table]) -> None:
    of = parts(divisor)
    _numeric(lambda value: is_multiple(value, of))(tests)


def _all_of(nodes: list[Node], tests: _Parts, made: dict[Node, Table]) -> None:
    for node in nodes:
        table = made[node]
        for kind in list(tests):
            test = table.get(kind, never)
            if test is never:
                del tests[kind]
            elif test is not None:
                tests[kind].append(test)


def _branches(nodes: list[Node], kind: type, made: dict[Node, Table]) -> tuple[int, list[Test]]:
    """Return how many of `nodes` allow every value of `kind`, and the tests of those that ask."""
    found = [made[node][kind] for node in nodes if kind in made[node]]
    asking = [test for test in found if test is not None]
    return len(found) - len(asking), asking


def _any_of(nodes: list[Node], tests: _Parts, made: dict[Node, Table]) -> None:
    for kind in list(tests):
        sure, asking = _branches(nodes, kind, made)
        if not sure and not asking:
            del tests[kind]
        elif not sure:
            tests[kind].append(_some(asking))


def _one_of(nodes: list[Node], tests: _Parts, made: dict[Node, Table]) -> None:
    for kind in list(tests):
        sure, asking = _branches(nodes, kind, made)
        if sure > 1 or not (sure or asking):
            del tests[kind]
        elif asking:
            tests[kind].append(_no(asking) if sure else _one(asking))


def _not(node: Node, tests: _Parts, made: dict[Node, Table]) -> None:
    for kind in list(tests):
        sure, asking = _branches([node], kind, made)
        if sure:
            del tests[kind]
        elif asking:
            tests[kind].append(_no(asking))


def _unique_items(asked: bool, tests: _Parts, made: dict[Node, Table]) -> None:
    if asked and list in tests:
        tests[list].append(_unique)


def _unique(value: list[Any]) -> bool:
    texts = set(map(key, value))
    return len(texts) == len(value)


_RULES: dict[str, Callable[[Any, _Parts, dict[Node, Table]], None]] = {
    "type": _type,
    "const": _enum,
    "enum": _enum,
    "minimum": _minimum,
    "maximum": _maximum,
    "exclusiveMinimum": _exclusive_minimum,
    "exclusiveMaximum": _exclusive_maximum,
    "multipleOf": _multiple,
    "uniqueItems": _unique_items,
    "allOf": _all_of,
    "anyOf": _any_of,
    "oneOf": _one_of,
    "not": _not,
}
_ORDER = tuple(_RULES)


def _bounds(rules: dict[str, Any], least: str, most: str) -> Iterable[Test]:
    low = rules.get(least, 0)
    high = rules.get(most)
    if high is not None:
        yield lambda value: low <= len(value) <= high
    elif low:
        yield lambda value: len(value) >= low


def _items(rules: dict[str, Any], made: dict[Node, Table]) -> Iterable[Test]:
    prefix = [made[node] for node in rules.get("prefixItems", ())]
    rest = made[rules["items"]] if "items" in rules else _ANY
    if prefix:
        size = len(prefix)

        def starts(value: list[Any]) -> bool:
            for table, item in zip(prefix, value, strict=False):
                test = table.get(type(item), never)
                if test is not None and not test(item):
                    return False
            return True

        yield starts
        if rest != _ANY:
            yield lambda value: len(value) <= size or each(value[size:])
    elif rest != _ANY:
        yield lambda value: each(value)

    def each(value: list[Any]) -> bool:
        for item in value:
            test = rest.get(type(item), never)
            if test is not None and not test(item):
                return False
        return True


def _object(rules: dict[str, Any], made: dict[Node, Table]) -> Iterable[Test]:
    required = frozenset(rules.get("required", ()))
    if required:
        yield lambda value: required <= value.keys()
    named = {name: made[node] for name, node in rules.get("properties", {}).items()}
    other = made[rules["additionalProperties"]] if "additionalProperties" in rules else _ANY
    if not named and other == _ANY:
        return

    def members(value: dict[str, Any]) -> bool:
        for name, item in value.items():
            test = named.get(name, other).get(type(item), never)
            if test is not None and not test(item):
                return False
        return True

    yield members
