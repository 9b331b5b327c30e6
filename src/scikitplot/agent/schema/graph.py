"""What can be known of a schema before any value is seen: loops, order, and what it may cost.

Imports `nodes` and `bounds`. There are two graphs on the nodes. In the first, edges lead to the
nodes that apply to the same value: it must have no loop, which would take nothing from the value
and never end. The second has the edges to parts of the value too: a loop in it is a recursive
schema.

A schema without recursion, in which few subschemas look at any one value, needs no counting when it
validates: its cost is bounded by the value's size alone. Only the others are metered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from ..errors import SchemaError
from .bounds import MAX_DEPTH, MAX_NESTING, MAX_WEIGHT, NAMES_UNIT
from .nodes import Node

__all__ = ["Plan", "plan"]

_HUGE = 10**9  # sums stop here: a fan of references has more ways than can be written


class Plan(NamedTuple):
    """The order to make tests in, and what to count where; ``charges`` is empty if nothing is.

    A charge is how many schemas a node applies to one value by itself, and how many of them inside
    each other. Nodes that only ever are a part of another's charge have none.
    """

    order: list[Node]
    charges: dict[Node, tuple[int, int]]


def plan(nodes: list[Node]) -> Plan:
    """Return the plan for the schema whose nodes are `nodes`, the root first.

    Raises
    ------
    SchemaError
        If a reference leads back to itself and takes nothing from the value.
    """
    inner, loop = _post_order([node for node in reversed(nodes) if node.here], _here)
    if loop:
        raise SchemaError(
            "$ref" if "$ref" in loop.rules else "",
            loop.pointer,
            "leads back to itself without taking a part of the value, so it would never end; "
            "put it under a keyword such as 'properties' or 'items'",
        )
    for node, height in _heights(inner, _here).items():
        if height > MAX_DEPTH:
            text = f"more than {MAX_DEPTH} subschemas apply to one value inside each other"
            raise SchemaError("", node.pointer, text)
    root = nodes[0]
    outer, recursion = _post_order([root], _all)
    if recursion:
        order, _ = _post_order(reversed(nodes), _here)
        return Plan(order, _charges(order, root))
    light = _weight(outer)[root] <= MAX_WEIGHT
    if light and _heights(outer, _all)[root] <= MAX_NESTING:
        return Plan(outer, {})
    return Plan(outer, _charges(outer, root))


def _here(node: Node) -> tuple[Node, ...]:
    return node.here


def _all(node: Node) -> tuple[Node, ...]:
    return node.here + node.below if node.here else node.below


def _post_order(
    starts: Iterable[Node], edges: Callable[[Node], tuple[Node, ...]]
) -> tuple[list[Node], Node | None]:
    """Return each node after those it leads to, and a node on a loop if there is one."""
    order: list[Node] = []
    loop: Node | None = None
    done: dict[Node, bool] = {}  # False while its edges are followed
    for start in starts:
        if start in done:
            continue
        done[start] = False
        path = [(start, iter(edges(start)))]
        while path:
            node, rest = path[-1]
            for below in rest:
                if below not in done:
                    further = edges(below)
                    if further:
                        done[below] = False
                        path.append((below, iter(further)))
                        break
                    done[below] = True
                    order.append(below)
                elif not done[below]:
                    loop = node
            else:
                done[node] = True
                order.append(node)
                path.pop()
    return order, loop


def _heights(order: list[Node], edges: Callable[[Node], tuple[Node, ...]]) -> dict[Node, int]:
    heights: dict[Node, int] = {}
    for node in order:
        further = edges(node)
        heights[node] = 1 + max([heights[below] for below in further]) if further else 1
    return heights


def _own_size(rules: dict[str, Any]) -> int:
    """How many looks at one value a node itself takes."""
    size = 1
    if "patternProperties" in rules:
        size += len(rules["patternProperties"])
    for keyword in ("required", "dependentRequired"):
        if keyword in rules:
            size += len(rules[keyword]) // NAMES_UNIT
    return size


def _is_deep(rules: dict[str, Any]) -> bool:
    """Whether a node looks at the whole value, and not at one level of it."""
    for keyword in ("enum", "const"):
        if keyword in rules and (rules[keyword].has_list or rules[keyword].has_object):
            return True
    return "uniqueItems" in rules


def _weight(order: list[Node]) -> dict[Node, int]:
    """Return for each node the most looks that it may take at one part of a value.

    Each member of an object meets the schema of its name, or that of the others; but it may meet
    that of each pattern besides, and an item that of `contains`.
    """
    sizes: dict[Node, int] = {}  # looks at the value itself
    deeps: dict[Node, int] = {}  # looks at the whole value
    parts: dict[Node, int] = {}  # looks at one part
    weight: dict[Node, int] = {}
    for node in order:
        rules = node.rules
        size, deep, part = _own_size(rules), int(_is_deep(rules)), 0
        if node.below:
            part = max([weight[below] for below in node.below])
            for _, _, below in rules.get("patternProperties", ()):
                part += weight[below]
            if "contains" in rules:
                part += weight[rules["contains"]]
        for other in node.here:
            size += sizes[other]
            deep += deeps[other]
            part += parts[other]
        sizes[node], deeps[node], parts[node] = min(size, _HUGE), min(deep, _HUGE), min(part, _HUGE)
        weight[node] = min(deep + max(size, part), _HUGE)
    return weight


def _charges(order: list[Node], root: Node) -> dict[Node, tuple[int, int]]:
    charged = {root}
    for node in order:
        charged.update(node.below)
        if node.referred:
            charged.add(node)
    sizes: dict[Node, int] = {}
    heights: dict[Node, int] = {}
    for node in order:
        part = [other for other in node.here if other not in charged]
        sizes[node] = _own_size(node.rules) + len(node.here) + sum(sizes[other] for other in part)
        heights[node] = 1 + max((heights[other] for other in part), default=0)
    return {node: (sizes[node], heights[node]) for node in charged if node in sizes}
