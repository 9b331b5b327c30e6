"""Which members and items were evaluated, for `unevaluatedProperties` and `unevaluatedItems`.

Imports `tables` and `nodes`. A collector validates a value, and returns the names of the members or
the indexes of the items that a subschema spoke of, or None if the value is invalid. A subschema
that fails evaluates nothing, and so does one under `not`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from .nodes import Node
from .tables import Table, Test, never

__all__ = ["Collector", "Collectors"]

Seen: TypeAlias = frozenset[Any]
Collector: TypeAlias = Callable[[Any], "Seen | None"]

_NONE: Seen = frozenset()


def _fails(value: Any) -> Seen | None:
    return None


class Collectors:
    """The collectors of a schema, each made once.

    Parameters
    ----------
    made : dict
        The tables of the nodes.
    own_test : callable
        Gives the test of what a node asks of values of one type, without its subschemas for the
        same value.
    guard : callable
        Makes a collector that is counted.
    """

    def __init__(
        self,
        made: dict[Node, Table],
        own_test: Callable[[Node, type], Test | None],
        guard: Callable[[Node, type, Any], Any],
    ) -> None:
        self._made = made
        self._own_test = own_test
        self._guard = guard
        self._collectors: dict[tuple[Node, type], Collector] = {}
        self._guarded: dict[tuple[Node, type], Collector] = {}

    def collector(self, node: Node, kind: type) -> Collector:
        """Return the collector of `node` for objects or for arrays."""
        place = (node, kind)
        if place not in self._collectors:
            self._collectors[place] = self._make(node, kind)
        return self._collectors[place]

    def _below(self, node: Node, kind: type) -> Collector:
        place = (node, kind)
        if place not in self._guarded:
            self._guarded[place] = self._guard(node, kind, self.collector(node, kind))
        return self._guarded[place]

    def _make(self, node: Node, kind: type) -> Collector:
        test = self._own_test(node, kind)
        if test is never:
            return _fails
        own = self._own_names(node) if kind is dict else self._own_indexes(node)
        parts = list(self._parts(node, kind))
        keyword = "unevaluatedProperties" if kind is dict else "unevaluatedItems"
        rest = self._made[node.rules[keyword]] if keyword in node.rules else None
        pairs: Callable[[Any], Iterable[tuple[Any, Any]]] = (
            dict.items if kind is dict else enumerate
        )

        def collect(value: Any) -> Seen | None:
            if test is not None and not test(value):
                return None
            seen = own(value)
            for part in parts:
                more = part(value)
                if more is None:
                    return None
                seen |= more
            if rest is None:
                return seen
            for name, item in pairs(value):
                if name not in seen:
                    asked = rest[type(item)]
                    if asked is not None and not asked(item):
                        return None
            return _everything(value)

        return collect

    def _own_names(self, node: Node) -> Callable[[Any], Seen]:
        rules = node.rules
        if "additionalProperties" in rules:
            return _everything
        declared = frozenset(rules.get("properties", ()))
        patterns = [matches for _, matches, _ in rules.get("patternProperties", ())]

        def own(value: dict[str, Any]) -> Seen:
            found = set()
            for name in value:
                for matches in patterns:
                    if matches(name):
                        found.add(name)
                        break
            return declared.intersection(value) | found

        return own

    def _own_indexes(self, node: Node) -> Callable[[Any], Seen]:
        rules = node.rules
        if "items" in rules:
            return _everything
        first = len(rules.get("prefixItems", ()))
        table = self._made[rules["contains"]] if "contains" in rules else None

        def own(value: list[Any]) -> Seen:
            seen = frozenset(range(min(first, len(value))))
            if table is None:
                return seen
            found = set()
            for index, item in enumerate(value):
                asked = table[type(item)]
                if asked is None or asked(item):
                    found.add(index)
            return seen | found

        return own

    def _parts(self, node: Node, kind: type) -> Iterable[Collector]:
        rules = node.rules
        if "$ref" in rules:
            yield self._below(rules["$ref"], kind)
        for below in rules.get("allOf", ()):
            yield self._below(below, kind)
        for keyword in ("anyOf", "oneOf"):
            if keyword in rules:
                parts = [self._below(below, kind) for below in rules[keyword]]
                yield _any(parts, keyword == "oneOf")
        if "not" in rules:
            yield _none(self._made[rules["not"]][kind])
        if kind is dict:
            for name, below in rules.get("dependentSchemas", {}).items():
                yield _where(name, self._below(below, kind))
        if "if" in rules:
            branches = [
                self._below(rules[keyword], kind) if keyword in rules else _nothing
                for keyword in ("if", "then", "else")
            ]
            yield _if(*branches)


def _everything(value: Any) -> Seen:
    return frozenset(value) if type(value) is dict else frozenset(range(len(value)))


def _nothing(value: Any) -> Seen | None:
    return _NONE


def _any(parts: list[Collector], only_one: bool) -> Collector:
    def collect(value: Any) -> Seen | None:
        seen: Seen | None = None
        for part in parts:
            more = part(value)
            if more is not None:
                if seen is None:
                    seen = more
                elif only_one:
                    return None
                else:
                    seen |= more
        return seen

    return collect


def _none(test: Test | None) -> Collector:
    def collect(value: Any) -> Seen | None:
        return None if test is None or test(value) else _NONE

    return collect


def _where(name: str, part: Collector) -> Collector:
    def collect(value: Any) -> Seen | None:
        return part(value) if name in value else _NONE

    return collect


def _if(condition: Collector, then: Collector, other: Collector) -> Collector:
    def collect(value: Any) -> Seen | None:
        seen = condition(value)
        if seen is None:
            return other(value)
        more = then(value)
        return None if more is None else seen | more

    return collect
