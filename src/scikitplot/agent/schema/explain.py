"""The slow way: an interpreting walk that collects every problem.

Imports `nodes`, `rules`, `equality` and `bounds`, and nothing of the fast way: the two are
independent on purpose, so that each checks the other. Here are the rules that apply further
schemas; those that look at one value alone are in `rules`.

What a node says of a value depends on the two alone, so the answer is kept where references could
lead to the same pair again, and the steps of a walk do not grow with the number of ways.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from ..values import clean_text, type_name
from .bounds import (
    KEY_UNIT,
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

_MEMORY = 8
"""Steps for keeping a result, so that the steps bound the memory too."""

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

    def add(self, other: _Result) -> None:
        """Take over what a schema for the same value said."""
        self.found += other.found
        self.seen |= other.seen


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
        self.spend(len(text) // KEY_UNIT)
        return text

    def visit(self, node: Node, value: Any) -> _Result:
        node = node.alias or node
        if node.referred:
            known = self.known.get((node, id(value)))  # the value outlives the walk
            if known is not None:
                return known
            self.spend(_MEMORY)
        result = _Result()
        found = result.found
        kind = KINDS.get(type(value))
        if node.never:
            found.append(((), "false", "nothing is allowed here"))
            return result
        if kind is None:
            found.append(((), "type", f"a {type_name(value)} is no JSON value"))
            return result
        self.spend(1 + node.size * (len(value) // TEXT_UNIT) if kind == "string" else 1)
        self.depth -= 1
        if self.depth < 0:
            raise too_nested()
        for keyword, argument in node.rules.items():
            if keyword in RULES:
                about, rule = RULES[keyword]
                if about == kind or about == "any":
                    if keyword == "required" or keyword == "dependentRequired":
                        self.spend(len(argument) // NAMES_UNIT)
                    for text in rule(argument, value, self.find_key):
                        found.append(((), node.written.get(keyword, keyword), text))
                        if len(found) >= MAX_PROBLEMS:
                            break
            else:
                about, apply = _APPLY[keyword]
                if about == kind or about == "any":
                    apply(self, node, argument, value, result)
        if len(found) > 1:
            self.spend(2 * len(found))  # a text costs more than to find that there is one to write
            result.found = list(dict.fromkeys(found))[:MAX_PROBLEMS]
        self.depth += 1
        if node.referred:
            self.known[node, id(value)] = result
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
        found = self.visit(below, item).found
        result.found += [((step, *path), rule, text) for path, rule, text in found]


# A rule calls `visit` itself and not by a helper or a comprehension: each would be one more frame
# on the stack for each level of the value.


def _ref(walk: _Walk, node: Node, below: Node, value: Any, result: _Result) -> None:
    result.add(walk.visit(below, value))


def _all_of(walk: _Walk, node: Node, nodes: list[Node], value: Any, result: _Result) -> None:
    for below in nodes:
        result.add(walk.visit(below, value))


def _any_of(walk: _Walk, node: Node, nodes: list[Node], value: Any, result: _Result) -> None:
    failed = []
    for below in nodes:
        other = walk.visit(below, value)
        if other.found:
            failed.append(other)
        else:
            result.seen |= other.seen
    if len(failed) == len(nodes):
        result.found += _unmet("anyOf", failed)


def _one_of(walk: _Walk, node: Node, nodes: list[Node], value: Any, result: _Result) -> None:
    failed = []
    met = []
    for index, below in enumerate(nodes):
        other = walk.visit(below, value)
        if other.found:
            failed.append(other)
        else:
            met.append(index)
            result.seen |= other.seen
    if not met:
        result.found += _unmet("oneOf", failed)
    elif len(met) > 1:
        which = ", ".join(map(str, met[:8]))
        text = f"must meet one alternative only, and meets {len(met)} (at {which})"
        result.found.append(((), "oneOf", text))


def _unmet(keyword: str, others: list[_Result]) -> list[Found]:
    """Return the problem that no alternative is met, and those of the one that was meant.

    That is the only one which is for the value's type, and for its member that tells the kinds of
    object apart; if it is not the only one, each says what it asks first.
    """
    meant = [other for other in others if not _is_of_another_kind(other)]
    if len(meant) == 1:
        return [
            ((), keyword, "meets no alternative; the nearest asks what follows"),
            *meant[0].found,
        ]
    asked: dict[str, None] = {}
    for other in others:
        path, rule, text = other.found[0]
        if not path:
            text = text.partition(": ")[2] or text if rule in ("anyOf", "oneOf") else text
            asked[clean_text(text, 200)] = None
    text = f"meets none of {len(others)} alternatives"
    return [((), keyword, f"{text}: {'; or '.join(list(asked)[:8])}" if asked else text)]


def _is_of_another_kind(other: _Result) -> bool:
    first_path, first_rule, _ = other.found[0]
    if not first_path and first_rule in ("anyOf", "oneOf") and len(other.found) == 1:
        return True
    return any(
        (not path and rule in ("type", "false")) or (len(path) < 2 and rule in ("const", "enum"))
        for path, rule, _ in other.found
    )


def _not(walk: _Walk, node: Node, below: Node, value: Any, result: _Result) -> None:
    if not walk.visit(below, value).found:
        result.found.append(((), "not", "must not be what the schema under 'not' allows"))


def _if(walk: _Walk, node: Node, below: Node, value: Any, result: _Result) -> None:
    condition = walk.visit(below, value)
    keyword = "else" if condition.found else "then"
    if not condition.found:
        result.seen |= condition.seen
    if keyword in node.rules:
        result.add(walk.visit(node.rules[keyword], value))


def _dependent_schemas(
    walk: _Walk, node: Node, nodes: dict[str, Node], value: dict[str, Any], result: _Result
) -> None:
    for name, below in nodes.items():
        if name in value:
            result.add(walk.visit(below, value))


def _properties(
    walk: _Walk, node: Node, nodes: dict[str, Node], value: dict[str, Any], result: _Result
) -> None:
    for name, item in value.items():
        if name in nodes:
            walk.part(node, "properties", nodes[name], name, item, result)


def _pattern_properties(
    walk: _Walk,
    node: Node,
    asked: list[tuple[str, Callable[[str], bool], Node]],
    value: dict[str, Any],
    result: _Result,
) -> None:
    for name, item in value.items():
        if type(name) is not str:
            text = f"has a name that is no string but a {type_name(name)}"
            result.found.append(((), "patternProperties", text))
            continue
        walk.spend(node.size * (1 + len(name) // TEXT_UNIT))
        for _, matches, below in asked:
            if matches(name):
                walk.part(node, "patternProperties", below, name, item, result)


def _additional_properties(
    walk: _Walk, node: Node, below: Node, value: dict[str, Any], result: _Result
) -> None:
    declared = node.rules.get("properties", ())
    patterns = node.rules.get("patternProperties", ())
    for name, item in value.items():
        if name not in declared and not any(matches(str(name)) for _, matches, _ in patterns):
            walk.part(node, "additionalProperties", below, name, item, result)


def _property_names(
    walk: _Walk, node: Node, below: Node, value: dict[str, Any], result: _Result
) -> None:
    for name in value:
        found = walk.visit(below, name).found
        result.found += [
            ((name,), "propertyNames", f"the name of this property: {text}") for _, _, text in found
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
    met = []
    for index, item in enumerate(value):
        if not walk.visit(below, item).found:
            met.append(index)
    result.seen.update(met)
    least, most = node.rules.get("minContains", 1), node.rules.get("maxContains")
    if len(met) < least:
        text = f"must hold at least {shown(least)} of what 'contains' asks, and holds {len(met)}"
        result.found.append(((), "contains" if least == 1 else "minContains", text))
    if most is not None and len(met) > most:
        text = f"must hold at most {shown(most)} of what 'contains' asks, and holds {len(met)}"
        result.found.append(((), "maxContains", text))


def _unevaluated_properties(
    walk: _Walk, node: Node, below: Node, value: dict[str, Any], result: _Result
) -> None:
    for name, item in value.items():
        if name not in result.seen:
            walk.part(node, "unevaluatedProperties", below, name, item, result)


def _unevaluated_items(
    walk: _Walk, node: Node, below: Node, value: list[Any], result: _Result
) -> None:
    for index, item in enumerate(value):
        if index not in result.seen:
            walk.part(node, "unevaluatedItems", below, index, item, result)


def _beside(walk: _Walk, node: Node, argument: Any, value: Any, result: _Result) -> None:
    """Do nothing: the rule of another keyword looks at this one."""


_APPLY: dict[str, tuple[str, Callable[[_Walk, Node, Any, Any, _Result], None]]] = {
    "$ref": ("any", _ref),
    "additionalProperties": ("object", _additional_properties),
    "allOf": ("any", _all_of),
    "anyOf": ("any", _any_of),
    "contains": ("array", _contains),
    "dependentSchemas": ("object", _dependent_schemas),
    "else": ("any", _beside),
    "if": ("any", _if),
    "items": ("array", _items),
    "maxContains": ("array", _beside),
    "minContains": ("array", _beside),
    "not": ("any", _not),
    "oneOf": ("any", _one_of),
    "patternProperties": ("object", _pattern_properties),
    "prefixItems": ("array", _prefix_items),
    "properties": ("object", _properties),
    "propertyNames": ("object", _property_names),
    "then": ("any", _beside),
    "unevaluatedItems": ("array", _unevaluated_items),
    "unevaluatedProperties": ("object", _unevaluated_properties),
}
"""For each keyword the kind of value that it speaks of, and its rule."""
