"""The slow way: an interpreting walk that collects every problem.

Imports `reader` and `equality`, and nothing of the fast way: the two are independent on purpose,
so that each checks the other. A message tells what the schema asks and never what the value is.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeAlias

from ..values import clean_text
from .bounds import MAX_PROBLEMS
from .equality import is_multiple, key, parts
from .keywords import nearest
from .reader import Node

__all__ = ["Found", "explain"]

Found: TypeAlias = tuple[tuple[str | int, ...], str, str]
"""Steps from the value to the part at fault, the rule, the message."""


def explain(node: Node, value: Any) -> list[Found]:
    """Return what is wrong with `value` under `node`, at most `MAX_PROBLEMS` problems."""
    if node.never:
        return [((), "false", "nothing is allowed here")]
    found: list[Found] = []
    for keyword, argument in node.rules.items():
        if keyword in _RULES:
            _RULES[keyword](node, argument, value, found)
        if len(found) >= MAX_PROBLEMS:
            break
    return found[:MAX_PROBLEMS]


def _below(node: Node, value: Any, step: str | int, found: list[Found]) -> None:
    if len(found) < MAX_PROBLEMS:
        found += [((step, *path), rule, text) for path, rule, text in explain(node, value)]


def _is_number(value: Any) -> bool:
    return type(value) in (int, float)


def _shown(value: Any) -> str:
    return clean_text(json.dumps(value, ensure_ascii=False), 60)


_IS: dict[str, Callable[[Any], bool]] = {
    "array": lambda value: type(value) is list,
    "boolean": lambda value: type(value) is bool,
    "integer": lambda value: type(value) is int or (type(value) is float and value.is_integer()),
    "null": lambda value: value is None,
    "number": _is_number,
    "object": lambda value: type(value) is dict,
    "string": lambda value: type(value) is str,
}


def _type(node: Node, names: frozenset[str], value: Any, found: list[Found]) -> None:
    if not any(_IS[name](value) for name in names):
        article = "an" if min(names)[0] in "aio" else "a"
        found.append(((), "type", f"must be {article} {' or '.join(sorted(names))}"))


def _enum(node: Node, choices: tuple[Any, ...], value: Any, found: list[Found]) -> None:
    own = key(value)
    if all(key(choice) != own for choice in choices):
        some = ", ".join(_shown(choice) for choice in choices[:8])
        more = f" or one of {len(choices) - 8} more" if len(choices) > 8 else ""
        text = f"must be one of {some}{more}" if len(choices) > 1 else f"must be {some}"
        found.append(((), "const" if "const" in node.rules else "enum", text))


def _minimum(node: Node, bound: float, value: Any, found: list[Found]) -> None:
    if _is_number(value) and not value >= bound:
        found.append(((), "minimum", f"must be at least {_shown(bound)}"))


def _maximum(node: Node, bound: float, value: Any, found: list[Found]) -> None:
    if _is_number(value) and not value <= bound:
        found.append(((), "maximum", f"must be at most {_shown(bound)}"))


def _exclusive_minimum(node: Node, bound: float, value: Any, found: list[Found]) -> None:
    if _is_number(value) and not value > bound:
        found.append(((), "exclusiveMinimum", f"must be above {_shown(bound)}"))


def _exclusive_maximum(node: Node, bound: float, value: Any, found: list[Found]) -> None:
    if _is_number(value) and not value < bound:
        found.append(((), "exclusiveMaximum", f"must be below {_shown(bound)}"))


def _multiple(node: Node, divisor: float, value: Any, found: list[Found]) -> None:
    if _is_number(value) and not is_multiple(value, parts(divisor)):
        found.append(((), "multipleOf", f"must be a multiple of {_shown(divisor)}"))


def _size(keyword: str, kind: type[Any], least: bool, unit: str) -> _Rule:
    def rule(node: Node, bound: int, value: Any, found: list[Found]) -> None:
        if type(value) is kind and (len(value) < bound if least else len(value) > bound):
            side = "least" if least else "most"
            found.append(((), keyword, f"must have at {side} {bound} {unit}"))

    return rule


def _unique_items(node: Node, asked: bool, value: Any, found: list[Found]) -> None:
    if not asked or type(value) is not list:
        return
    seen: dict[str, int] = {}
    for index, item in enumerate(value):
        first = seen.setdefault(key(item), index)
        if first != index:
            text = f"items {first} and {index} are equal; each must differ from all others"
            found.append(((), "uniqueItems", text))
            return


def _prefix_items(node: Node, nodes: list[Node], value: Any, found: list[Found]) -> None:
    if type(value) is list:
        for index, (below, item) in enumerate(zip(nodes, value, strict=False)):
            _below(below, item, index, found)


def _items(node: Node, below: Node, value: Any, found: list[Found]) -> None:
    if type(value) is list:
        for index in range(len(node.rules.get("prefixItems", ())), len(value)):
            _below(below, value[index], index, found)


def _required(node: Node, names: tuple[str, ...], value: Any, found: list[Found]) -> None:
    if type(value) is dict:
        found += [
            ((), "required", f"property {_shown(name)} is missing")
            for name in names
            if name not in value
        ]


def _properties(node: Node, nodes: dict[str, Node], value: Any, found: list[Found]) -> None:
    if type(value) is dict:
        for name, below in nodes.items():
            if name in value:
                _below(below, value[name], name, found)


def _additional(node: Node, below: Node, value: Any, found: list[Found]) -> None:
    if type(value) is not dict:
        return
    declared = node.rules.get("properties", {})
    for name, item in value.items():
        if name in declared:
            continue
        if below.never:
            near = nearest(name, list(declared))
            text = f"no property of this name is allowed{near}"
            found.append(((name,), "additionalProperties", text))
        else:
            _below(below, item, name, found)


def _all_of(node: Node, nodes: list[Node], value: Any, found: list[Found]) -> None:
    for below in nodes:
        found += explain(below, value)


def _any_of(node: Node, nodes: list[Node], value: Any, found: list[Found]) -> None:
    if all(explain(below, value) for below in nodes):
        found.append(((), "anyOf", f"must meet at least one of {len(nodes)} alternatives"))


def _one_of(node: Node, nodes: list[Node], value: Any, found: list[Found]) -> None:
    met = sum(not explain(below, value) for below in nodes)
    if met != 1:
        text = f"must meet exactly one of {len(nodes)} alternatives, and meets {met or 'none'}"
        found.append(((), "oneOf", text))


def _not(node: Node, below: Node, value: Any, found: list[Found]) -> None:
    if not explain(below, value):
        found.append(((), "not", "must not meet the schema under 'not'"))


_Rule: TypeAlias = Callable[[Node, Any, Any, list[Found]], None]
_RULES: dict[str, _Rule] = {
    "additionalProperties": _additional,
    "allOf": _all_of,
    "anyOf": _any_of,
    "const": _enum,
    "enum": _enum,
    "exclusiveMaximum": _exclusive_maximum,
    "exclusiveMinimum": _exclusive_minimum,
    "items": _items,
    "maxItems": _size("maxItems", list, False, "items"),
    "maxLength": _size("maxLength", str, False, "characters"),
    "maxProperties": _size("maxProperties", dict, False, "properties"),
    "maximum": _maximum,
    "minItems": _size("minItems", list, True, "items"),
    "minLength": _size("minLength", str, True, "characters"),
    "minProperties": _size("minProperties", dict, True, "properties"),
    "minimum": _minimum,
    "multipleOf": _multiple,
    "not": _not,
    "oneOf": _one_of,
    "prefixItems": _prefix_items,
    "properties": _properties,
    "required": _required,
    "type": _type,
    "uniqueItems": _unique_items,
}
