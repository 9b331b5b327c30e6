"""The slow way: an interpreting walk that collects every problem.

Imports `nodes`, `rules`, `equality` and `bounds`, and nothing of the fast way: the two are
independent on purpose, so that each checks the other. Here are the rules that apply further
schemas; those that look at one value alone are in `rules`.

What a node says of a value depends on the two alone, so the answer is kept where references could
lead to the same pair again, and the steps of a walk do not grow with the number of ways.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from ..values import type_name
from .bounds import (
    MAX_NESTING,
    MAX_PROBLEMS,
    MAX_STEPS,
    NAMES_UNIT,
    TEXT_UNIT,
    too_many_steps,
    too_nested,
)
from .equality import key
from .keywords import nearest
from .nodes import Node
from .rules import KINDS, RULES, shown

__all__ = ["Found", "explain"]

Found: TypeAlias = tuple[tuple[str | int, ...], str, str]
"""Steps from the value to the part at fault, the rule, the message."""


def explain(node: Node, value: Any) -> list[Found]:
    """Return what is wrong with `value` under `node`, at most `MAX_PROBLEMS` problems.

    Raises
    ------
    TooMuch
        If the value is nested too deep, or takes too many steps.
    """
    return _Walk().visit(node, value).found


class _Result:
    """What one schema says of one value: the problems, and the members or items it evaluated."""

    __slots__ = ("found", "seen")

    def __init__(self) -> None:
        self.found: list[Found] = []
        self.seen: set[str | int] = set()


class _Walk:
    def __init__(self) -> None:
        self.steps = MAX_STEPS
        self.depth = MAX_NESTING
        self.known: dict[tuple[Node, int], _Result] = {}

    def spend(self, steps: int) -> None:
        self.steps -= steps
        if self.steps < 0:
            raise too_many_steps()

    def find_key(self, value: Any) -> str:
        text = key(value)
        self.spend(len(text) // TEXT_UNIT)
        return text

    def visit(self, node: Node, value: Any) -> _Result:
        if not node.referred:
            return self.look(node, value)
        place = (node, id(value))  # the value outlives the walk
        result = self.known.get(place)
        if result is None:
            self.spend(8)  # so that the steps bound the memory too
            result = self.known[place] = self.look(node, value)
        return result

    def look(self, node: Node, value: Any) -> _Result:
        result = _Result()
        found = result.found
        kind = KINDS.get(type(value))
        if node.never:
            found.append(((), "false", "nothing is allowed here"))
            return result
        if kind is None:
            found.append(((), "type", f"a {type_name(value)} is no JSON value"))
            return result
        self.depth -= 1
        if self.depth < 0:
            raise too_nested()
        self.spend(1)
        for keyword, argument in node.rules.items():
            if keyword in RULES:
                about, rule = RULES[keyword]
                if about == "any" or about == kind:
                    if kind == "string":
                        self.spend(len(value) // TEXT_UNIT)
                    elif keyword == "required" or keyword == "dependentRequired":
                        self.spend(len(argument) // NAMES_UNIT)
                    name = node.written.get(keyword, keyword)
                    found += [((), name, text) for text in rule(argument, value, self.find_key)]
            elif keyword in _APPLY:
                about, apply = _APPLY[keyword]
                if about == "any" or about == kind:
                    apply(self, node, argument, value, result)
        for keyword in ("unevaluatedProperties", "unevaluatedItems"):
            if keyword in node.rules:
                self.unevaluated(node, keyword, value, result)
        if len(found) > 1:
            result.found = list(dict.fromkeys(found))[:MAX_PROBLEMS]
        self.depth += 1
        return result

    def part(
        self, node: Node, keyword: str, below: Node, step: str | int, item: Any, result: _Result
    ) -> None:
        """Visit one member or item, which the schema of `keyword` is for."""
        result.seen.add(step)
        if len(result.found) >= MAX_PROBLEMS:
            return
        if below.never:
            text = "is not allowed here"
            declared = node.rules.get("properties", ())
            if isinstance(step, str) and step not in declared:
                text += nearest(step, declared)
            result.found.append(((step,), node.written.get(keyword, keyword), text))
            return
        result.found += [
            ((step, *path), rule, text) for path, rule, text in self.visit(below, item).found
        ]

    def unevaluated(self, node: Node, keyword: str, value: Any, result: _Result) -> None:
        pairs: Iterable[tuple[str | int, Any]] = ()
        if type(value) is dict and keyword == "unevaluatedProperties":
            pairs = value.items()
        elif type(value) is list and keyword == "unevaluatedItems":
            pairs = enumerate(value)
        for step, item in pairs:
            if step not in result.seen:
                self.part(node, keyword, node.rules[keyword], step, item, result)


def _apply_all(walk: _Walk, nodes: Iterable[Node], value: Any, result: _Result) -> None:
    for below in nodes:
        other = walk.visit(below, value)
        result.found += other.found
        result.seen |= other.seen


def _ref(walk: _Walk, node: Node, below: Node, value: Any, result: _Result) -> None:
    _apply_all(walk, [below], value, result)


def _all_of(walk: _Walk, node: Node, nodes: list[Node], value: Any, result: _Result) -> None:
    _apply_all(walk, nodes, value, result)


def _any_of(walk: _Walk, node: Node, nodes: list[Node], value: Any, result: _Result) -> None:
    others = [walk.visit(below, value) for below in nodes]
    met = [other for other in others if not other.found]
    for other in met:
        result.seen |= other.seen
    if not met:
        result.found += _unmet("anyOf", others)


def _one_of(walk: _Walk, node: Node, nodes: list[Node], value: Any, result: _Result) -> None:
    others = [walk.visit(below, value) for below in nodes]
    met = [index for index, other in enumerate(others) if not other.found]
    if not met:
        result.found += _unmet("oneOf", others)
    elif len(met) == 1:
        result.seen |= others[met[0]].seen
    else:
        which = ", ".join(map(str, met[:8]))
        text = f"must meet one alternative only, and meets {len(met)} (at {which})"
        result.found.append(((), "oneOf", text))


def _unmet(keyword: str, others: list[_Result]) -> list[Found]:
    """Return the problem that no alternative is met, and those of the one that was meant.

    That is the only one which is for the value's type, and for its member that tells the kinds of
    object apart; if it is not the only one, each says what it asks first.
    """
    meant = [other for other in others if not any(map(_tells_apart, other.found))]
    if len(meant) == 1:
        return [
            ((), keyword, "meets no alternative; the nearest asks what follows"),
            *meant[0].found,
        ]
    firsts = [other.found[0] for other in others]
    asked = list(dict.fromkeys(text for path, rule, text in firsts if not path and rule in RULES))
    text = f"meets none of {len(others)} alternatives"
    return [((), keyword, f"{text}: {'; or '.join(asked[:8])}" if asked else text)]


def _tells_apart(found: Found) -> bool:
    path, rule, _ = found
    return (not path and rule in ("type", "false")) or (len(path) < 2 and rule in ("const", "enum"))


def _not(walk: _Walk, node: Node, below: Node, value: Any, result: _Result) -> None:
    if not walk.visit(below, value).found:
        result.found.append(((), "not", "must not be what the schema under 'not' allows"))


def _if(walk: _Walk, node: Node, below: Node, value: Any, result: _Result) -> None:
    condition = walk.visit(below, value)
    keyword = "else" if condition.found else "then"
    if not condition.found:
        result.seen |= condition.seen
    if keyword in node.rules:
        _apply_all(walk, [node.rules[keyword]], value, result)


def _dependent_schemas(
    walk: _Walk, node: Node, nodes: dict[str, Node], value: dict[str, Any], result: _Result
) -> None:
    _apply_all(walk, [below for name, below in nodes.items() if name in value], value, result)


def _properties(
    walk: _Walk, node: Node, nodes: dict[str, Node], value: dict[str, Any], result: _Result
) -> None:
    for name in nodes.keys() & value.keys() if len(value) < len(nodes) else nodes:
        if name in value:
            walk.part(node, "properties", nodes[name], name, value[name], result)


def _pattern_properties(
    walk: _Walk,
    node: Node,
    asked: list[tuple[str, Callable[[str], bool], Node]],
    value: dict[str, Any],
    result: _Result,
) -> None:
    for name, item in value.items():
        walk.spend(len(asked) * (1 + len(name) // TEXT_UNIT))
        for _, matches, below in asked:
            if matches(name):
                walk.part(node, "patternProperties", below, name, item, result)


def _additional_properties(
    walk: _Walk, node: Node, below: Node, value: dict[str, Any], result: _Result
) -> None:
    declared = node.rules.get("properties", ())
    patterns = node.rules.get("patternProperties", ())
    for name, item in value.items():
        if name not in declared and not any(matches(name) for _, matches, _ in patterns):
            walk.part(node, "additionalProperties", below, name, item, result)


def _property_names(
    walk: _Walk, node: Node, below: Node, value: dict[str, Any], result: _Result
) -> None:
    for name in value:
        result.found += [
            ((name,), "propertyNames", f"the name of this property: {text}")
            for _, _, text in walk.visit(below, name).found
        ]
        if len(result.found) >= MAX_PROBLEMS:
            return


def _prefix_items(
    walk: _Walk, node: Node, nodes: list[Node], value: list[Any], result: _Result
) -> None:
    for index, (below, item) in enumerate(zip(nodes, value, strict=False)):
        walk.part(node, "prefixItems", below, index, item, result)


def _items(walk: _Walk, node: Node, below: Node, value: list[Any], result: _Result) -> None:
    for index in range(len(node.rules.get("prefixItems", ())), len(value)):
        walk.part(node, "items", below, index, value[index], result)


def _contains(walk: _Walk, node: Node, below: Node, value: list[Any], result: _Result) -> None:
    met = {index for index, item in enumerate(value) if not walk.visit(below, item).found}
    result.seen |= met
    least, most = node.rules.get("minContains", 1), node.rules.get("maxContains")
    if len(met) < least:
        text = f"must hold at least {shown(least)} of what 'contains' asks, and holds {len(met)}"
        result.found.append(((), "contains" if least == 1 else "minContains", text))
    if most is not None and len(met) > most:
        text = f"must hold at most {shown(most)} of what 'contains' asks, and holds {len(met)}"
        result.found.append(((), "maxContains", text))


_APPLY: dict[str, tuple[str, Callable[[_Walk, Node, Any, Any, _Result], None]]] = {
    "$ref": ("any", _ref),
    "additionalProperties": ("object", _additional_properties),
    "allOf": ("any", _all_of),
    "anyOf": ("any", _any_of),
    "contains": ("array", _contains),
    "dependentSchemas": ("object", _dependent_schemas),
    "if": ("any", _if),
    "items": ("array", _items),
    "not": ("any", _not),
    "oneOf": ("any", _one_of),
    "patternProperties": ("object", _pattern_properties),
    "prefixItems": ("array", _prefix_items),
    "properties": ("object", _properties),
    "propertyNames": ("object", _property_names),
}
"""For each keyword the kind of value that it speaks of, and its rule."""
