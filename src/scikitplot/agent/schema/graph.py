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
from typing import NamedTuple

from ..errors import SchemaError
from .bounds import MAX_DEPTH, MAX_NESTING, MAX_WEIGHT
from .nodes import Node

__all__ = ["Plan", "plan"]

_HUGE = 10**9  # sums stop here: a fan of references has more ways than can be written

_DEEP = 4  # looks that it costs to compare a value whole, for each of its parts


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
    root = nodes[0]
    if any(node.referred for node in nodes):
        recursive = _check_references(nodes)
        edges = _here if recursive else _all
        order, _ = _post_order(reversed(nodes) if recursive else [root], edges)
    else:
        recursive = False
        order = nodes[::-1]
    if recursive or _weights(order)[root] > MAX_WEIGHT or _heights(order, _all)[root] > MAX_NESTING:
        return Plan(order, _charges(order, root))
    return Plan(order, {})


def _check_references(nodes: list[Node]) -> bool:
    """Return whether the schema is recursive; refuse it if a reference takes nothing."""
    order, loop = _post_order([node for node in reversed(nodes) if node.here], _here)
    if loop:
        references = [node for node in loop if "$ref" in node.rules]
        raise SchemaError(
            "$ref" if references else "",
            (references or loop)[0].pointer,
            "leads back to itself without taking a part of the value, so it would never end; "
            "put it under a keyword such as 'properties' or 'items'",
        )
    for node in order:
        if node.alias and node.alias.alias:
            node.alias = node.alias.alias  # which is the last of its chain already
    for node, height in _heights(order, _here).items():
        if height > MAX_DEPTH:
            text = f"more than {MAX_DEPTH} subschemas apply to one value inside each other"
            raise SchemaError("", node.pointer, text)
    return bool(_post_order(nodes[:1], _all)[1])


def _here(node: Node) -> tuple[Node, ...]:
    return node.here


def _all(node: Node) -> tuple[Node, ...]:
    return node.here + node.below if node.here else node.below


def _post_order(
    starts: Iterable[Node], edges: Callable[[Node], tuple[Node, ...]]
) -> tuple[list[Node], list[Node]]:
    """Return each node after those it leads to, and the nodes of a loop if there is one."""
    order: list[Node] = []
    loop: list[Node] = []
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
                elif not done[below] and not loop:
                    nodes = [node for node, _ in path]
                    loop = nodes[nodes.index(below) :]
            else:
                done[node] = True
                order.append(node)
                path.pop()
    return order, loop


def _heights(order: list[Node], edges: Callable[[Node], tuple[Node, ...]]) -> dict[Node, int]:
    heights: dict[Node, int] = {}
    for node in order:
        further = edges(node)
        height = max([heights[below] for below in further]) if further else 0
        heights[node] = height if node.alias else height + 1
    return heights


def _weights(order: list[Node]) -> dict[Node, int]:
    """Return for each node the most looks that it may take at one part of a value.

    Each member of an object meets the schema of its name, or that of the others; but it may meet
    that of each pattern besides, and an item that of `contains`.
    """
    weights: dict[Node, int] = {}
    sums: dict[Node, tuple[int, int, int]] = {}  # looks at the value, at all in it, at one part
    for node in order:
        size, deep, part = node.size, node.deep, 0
        if node.below:
            rules = node.rules
            part = max([weights[below] for below in node.below])
            for _, _, below in rules.get("patternProperties", ()):
                part += weights[below]
            if "contains" in rules:
                part += weights[rules["contains"]]
        for other in node.here:
            more = sums.get(other) or (other.size, other.deep, 0)
            size, deep, part = size + more[0], deep + more[1], part + more[2]
        if node.here or node.below:
            size, deep, part = min(size, _HUGE), min(deep, _HUGE), min(part, _HUGE)
            sums[node] = size, deep, part
        weights[node] = _DEEP * deep + (size if size > part else part)
    return weights


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
        others = len(node.here) - len(part)
        sizes[node] = node.size + others + sum(sizes[other] for other in part)
        heights[node] = 1 + max((heights[other] for other in part), default=0)
    return {node: (sizes[node], heights[node]) for node in charged if node in sizes}
