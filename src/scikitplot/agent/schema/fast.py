"""The fast way: a table of tests for each node.

Imports `tables`, `containers`, `evaluated`, `graph`, `equality` and `bounds`. What the types alone
decide is decided when the schema is compiled: of an `anyOf` of a string and null nothing is left to
do but a look into a table.

A node's table is made after those of the nodes that apply to the same value, whose tests it takes
over. The tables of nodes for parts of the value are only referred to, so they may be filled later.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from functools import cache
from itertools import count
from typing import Any, TypeAlias

from . import containers
from .bounds import KEY_UNIT, guarded, metered, spend
from .equality import is_multiple, key, parts
from .evaluated import Collector, Collectors
from .graph import Plan
from .nodes import Choices, Node
from .tables import ANY, NULL, Parts, Table, Test, every, never, no, one, some

__all__ = ["make_table"]

_TYPES: dict[str, tuple[type, ...]] = {
    "array": (list,),
    "boolean": (bool,),
    "integer": (int, float),
    "null": (NULL,),
    "number": (int, float),
    "object": (dict,),
    "string": (str,),
}

_ALL = frozenset(_TYPES)

_FEW = 256
"""Numbers of an `enum` that may be in a set: the hashes of integers can be chosen to collide."""


def make_table(root: Node, plan: Plan) -> Table:
    """Return the table of `root`, which is a node of the schema that `plan` is for."""
    table = _Builder(plan).build(root)
    if not plan.charges:
        return table
    return Table({kind: test and metered(test) for kind, test in table.items()})


class _Builder:
    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.counted = bool(plan.charges)
        self.made = {node: _simple_table(node) or Table() for node in plan.order}
        self.whole: set[Node] = set()
        self.collectors = Collectors(self.made, self.own_test, self.guard)
        self.numbers = count()

    def build(self, root: Node) -> Table:
        for node in self.plan.order:
            if not (node.never or self.made[node]):
                self.made[node].update(self.table(node))
            self.whole.add(node)
        return self.made[root]

    def table(self, node: Node) -> Table:
        tests = self.own(node)
        rules = node.rules
        table = Table()
        kind: type
        for kind, keyword in ((dict, "unevaluatedProperties"), (list, "unevaluatedItems")):
            if keyword in rules and kind in tests:
                table[kind] = _holds(self.collectors.collector(node, kind))
                del tests[kind]
        if node.here:
            self.add_in_place(rules, tests)
        for kind, found in tests.items():
            table[kind] = every(found)
        if node in self.plan.charges and not node.alias:
            for kind, test in table.items():
                if test is not None and not _is_cheap(node, kind):
                    table[kind] = self.guard(node, kind, test)
        return table

    def add_in_place(self, rules: dict[str, Any], tests: Parts) -> None:
        for keyword, add in _IN_PLACE.items():
            if keyword in rules:
                add(rules[keyword], tests, self.made)
        if "if" in rules:
            _if(rules, tests, self.made)

    def guard(self, node: Node, kind: type, test: Any) -> Any:
        """Return `test`, which may be a collector, counted if the plan says so."""
        if node not in self.plan.charges:
            return test
        number = next(self.numbers) if node.referred else None
        return guarded(test, kind, *self.plan.charges[node], number)

    def own_test(self, node: Node, kind: type) -> Test | None:
        """Return the test of what `node` itself asks of a value of `kind`."""
        tests = self.own(node)
        return every(tests[kind]) if kind in tests else never

    def own(self, node: Node) -> Parts:
        if node.never:
            return {}
        rules = node.rules
        tests = _tests_of_types(rules["type"]) if "type" in rules else _tests_of_types(_ALL)
        for keyword in ("const", "enum"):
            if keyword in rules:
                self.choices(rules[keyword], tests)
        if int in tests or float in tests:
            found = _numeric(rules)
            for kind in (int, float):
                if kind in tests:
                    tests[kind] += found
        if str in tests:
            tests[str] += _textual(rules)
        if list in tests:
            tests[list] += self.arrays(rules)
        if dict in tests:
            tests[dict] += self.objects(rules, node.size if self.counted else 0)
        return tests

    def choices(self, choices: Choices, tests: Parts) -> None:
        kinds: dict[type, list[Any]] = {}
        for scalar in choices.scalars:
            kind = int if type(scalar) is float else type(scalar)
            kinds.setdefault(kind, []).append(scalar)
        if int in kinds:
            kinds[float] = kinds[int]
        for kind in list(tests):
            if kind in kinds:
                if kind is not NULL:
                    tests[kind].append(_one_of_scalars(kinds[kind]))
            elif (kind is list and choices.has_list) or (kind is dict and choices.has_object):
                tests[kind].append(self.among(choices.keys))
            else:
                del tests[kind]

    def among(self, keys: frozenset[str]) -> Test:
        find_key = self.find_key
        return lambda value: find_key(value) in keys

    def find_key(self, value: Any) -> str:
        text = key(value)
        if self.counted:
            spend(len(text) // KEY_UNIT)
        return text

    def unique(self, value: list[Any]) -> bool:
        if set(map(type, value)) == {str}:
            return len(set(value)) == len(value)
        return len(set(map(self.find_key, value))) == len(value)

    def arrays(self, rules: dict[str, Any]) -> list[Test]:
        tests = [containers.size(rules.get("minItems", 0), rules.get("maxItems"))]
        prefix = [self.made[node] for node in rules.get("prefixItems", ())]
        rest, whole = self.table_for(rules.get("items"))
        if prefix or "items" in rules:
            tests.append(containers.items(prefix, rest, whole))
        if "contains" in rules:
            least, most = rules.get("minContains", 1), rules.get("maxContains")
            if least or most is not None:
                tests.append(containers.contains(self.made[rules["contains"]], least, most))
        if rules.get("uniqueItems"):
            tests.append(self.unique)
        return [test for test in tests if test]

    def objects(self, rules: dict[str, Any], looks: int) -> list[Test]:
        tests = [containers.size(rules.get("minProperties", 0), rules.get("maxProperties"))]
        declared = {name: self.made[node] for name, node in rules.get("properties", {}).items()}
        others, whole = self.table_for(rules.get("additionalProperties"))
        tests.append(_required(rules.get("required", ())))
        if "dependentRequired" in rules:
            tests.append(containers.dependent_required(rules["dependentRequired"]))
        if "propertyNames" in rules:
            tests.append(containers.names(self.made[rules["propertyNames"]]))
        patterns = [
            (matches, self.made[node]) for _, matches, node in rules.get("patternProperties", ())
        ]
        if patterns:
            tests.append(containers.members_by_pattern(declared, patterns, others, looks))
        elif declared or not (whole and others == ANY):
            tests.append(containers.members(declared, others))
        return [test for test in tests if test]

    def table_for(self, node: Node | None) -> tuple[Table, bool]:
        """Return the table of `node`, and whether it is filled."""
        return (self.made[node], node in self.whole) if node else (ANY, True)


def _holds(collect: Collector) -> Test:
    return lambda value: collect(value) is not None


def _is_cheap(node: Node, kind: type) -> bool:
    """Whether the test of a value of `kind` takes one look, whatever the value is."""
    if kind is dict or kind is list or node.here:
        return False
    return kind is not str or not ("pattern" in node.rules or "format" in node.rules)


def _simple_table(node: Node) -> Table | None:
    """Return the table of a node that asks at most for types: most do, and they can share it."""
    rules = node.rules
    if rules:
        return _table_of_types(rules["type"]) if len(rules) == 1 and "type" in rules else None
    return None if node.never else ANY


@cache
def _table_of_types(names: frozenset[str]) -> Table:
    return Table({kind: every(found) for kind, found in _tests_of_types(names).items()})


@cache
def _kinds_of_types(names: frozenset[str]) -> tuple[type, ...]:
    return tuple(dict.fromkeys(kind for name in sorted(names) for kind in _TYPES[name]))


def _tests_of_types(names: frozenset[str]) -> Parts:
    tests: Parts = {kind: [] for kind in _kinds_of_types(names)}
    if "integer" in names and "number" not in names:
        tests[float].append(float.is_integer)
    return tests


def _one_of_scalars(scalars: list[Any]) -> Test:
    if len(scalars) <= _FEW or type(scalars[0]) is str:
        return frozenset(scalars).__contains__
    ordered = sorted(scalars)
    end = len(ordered)

    def found(value: float) -> bool:
        index = bisect_left(ordered, value)
        return index < end and ordered[index] == value

    return found


def _numeric(rules: dict[str, Any]) -> list[Test]:
    tests: list[Test] = []
    least, most = rules.get("minimum"), rules.get("maximum")
    if least is not None and most is not None:
        tests.append(lambda value: least <= value <= most)
    elif least is not None:
        tests.append(lambda value: value >= least)
    elif most is not None:
        tests.append(lambda value: value <= most)
    above, below = rules.get("exclusiveMinimum"), rules.get("exclusiveMaximum")
    if above is not None:
        tests.append(lambda value: value > above)
    if below is not None:
        tests.append(lambda value: value < below)
    if "multipleOf" in rules:
        of = parts(rules["multipleOf"])
        tests.append(lambda value: is_multiple(value, of))
    return tests


def _textual(rules: dict[str, Any]) -> list[Test]:
    size = containers.size(rules.get("minLength", 0), rules.get("maxLength"))
    tests = [size] if size else []
    for keyword in ("pattern", "format"):
        if keyword in rules:
            tests.append(rules[keyword][1])
    return tests


def _required(names: tuple[str, ...]) -> Test | None:
    if not names:
        return None
    if len(names) == 1:
        name = names[0]
        return lambda value: name in value

    def test(value: dict[str, Any]) -> bool:
        for name in names:  # noqa: SIM110
            if name not in value:
                return False
        return True

    return test


# Each rule below adds its tests to those of the types it speaks of, and takes away the types that
# it excludes.

_Made: TypeAlias = dict[Node, Table]


def _all_of(nodes: list[Node], tests: Parts, made: _Made) -> None:
    for node in nodes:
        for kind in list(tests):
            test = made[node][kind]
            if test is never:
                del tests[kind]
            elif test is not None:
                tests[kind].append(test)


def _ref(node: Node, tests: Parts, made: _Made) -> None:
    _all_of([node], tests, made)


def _branches(nodes: list[Node], kind: type, made: _Made) -> tuple[int, list[Test]]:
    """Return how many of `nodes` allow every value of `kind`, and the tests of those that ask."""
    found = [made[node][kind] for node in nodes if kind in made[node]]
    asking = [test for test in found if test is not None]
    return len(found) - len(asking), asking


def _any_of(nodes: list[Node], tests: Parts, made: _Made) -> None:
    for kind in list(tests):
        sure, asking = _branches(nodes, kind, made)
        if not sure and not asking:
            del tests[kind]
        elif not sure:
            tests[kind].append(some(asking))


def _one_of(nodes: list[Node], tests: Parts, made: _Made) -> None:
    for kind in list(tests):
        sure, asking = _branches(nodes, kind, made)
        if sure > 1 or not (sure or asking):
            del tests[kind]
        elif asking:
            tests[kind].append(no(asking) if sure else one(asking))


def _not(node: Node, tests: Parts, made: _Made) -> None:
    for kind in list(tests):
        sure, asking = _branches([node], kind, made)
        if sure:
            del tests[kind]
        elif asking:
            tests[kind].append(no(asking))


def _dependent_schemas(nodes: dict[str, Node], tests: Parts, made: _Made) -> None:
    if dict not in tests:
        return
    pairs = [(name, made[node][dict]) for name, node in nodes.items()]
    asked = [(name, test) for name, test in pairs if test is not None]

    def test(value: dict[str, Any]) -> bool:
        for name, test in asked:  # noqa: SIM110
            if name in value and not test(value):
                return False
        return True

    if asked:
        tests[dict].append(test)


def _if(rules: dict[str, Any], tests: Parts, made: _Made) -> None:
    then = made[rules["then"]] if "then" in rules else ANY
    other = made[rules["else"]] if "else" in rules else ANY
    for kind in list(tests):
        test = _choose(made[rules["if"]][kind], then[kind], other[kind])
        if test is never:
            del tests[kind]
        elif test is not None:
            tests[kind].append(test)


def _choose(condition: Test | None, then: Test | None, other: Test | None) -> Test | None:
    if condition is None or condition is never:
        return then if condition is None else other
    if then is other:
        return then

    def test(value: Any) -> bool:
        asked = then if condition(value) else other
        return asked is None or asked(value)

    return test


_IN_PLACE: dict[str, Callable[[Any, Parts, _Made], None]] = {
    "$ref": _ref,
    "allOf": _all_of,
    "anyOf": _any_of,
    "oneOf": _one_of,
    "not": _not,
    "dependentSchemas": _dependent_schemas,
}
