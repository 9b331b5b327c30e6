"""What a schema is once it was read: a graph of nodes.

Imports text cleaning alone. Both ways of validating are made from nodes, and from nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from ..values import clean_text

__all__ = ["Choices", "Node", "token"]


def token(name: str | int) -> str:
    """Return one step of a JSON pointer, cut where it is very long.

    Examples
    --------
    >>> from scikitplot.agent.schema.nodes import token
    >>> token("a/b"), token(3)
    ('/a~1b', '/3')
    """
    return "/" + clean_text(str(name), 60).replace("~", "~0").replace("/", "~1")


class Choices(NamedTuple):
    """The values of `enum` or `const`: their keys, the scalars among them, and text for messages.

    Parameters
    ----------
    keys : frozenset of str
        What `equality.key` gives for each.
    scalars : tuple
        Those that are no list and no object.
    has_list, has_object : bool
        Whether there are any.
    shown : str
        The first of them, as JSON.
    """

    keys: frozenset[str]
    scalars: tuple[Any, ...]
    has_list: bool
    has_object: bool
    shown: str


class Node:
    """One schema: its keywords, where subschemas are nodes.

    Parameters
    ----------
    parent : Node or None
        The node it was read under; None for the root.
    place : tuple of str and int
        The steps from the parent's place to this one.

    Attributes
    ----------
    depth : int
        Levels of subschemas above it.
    never : bool
        Whether it is ``false``, which allows nothing.
    rules : dict
        What its keywords ask, under their names in 2020-12.
    written : dict
        The names of those keywords that were written otherwise, in draft-07.
    here, below : tuple of Node
        The nodes that apply to the same value, and to its members, items or names.
    alias : Node or None
        The node that it stands for, if it is a reference and nothing else.
    referred : bool
        Whether it is referred to, and so can be met on more than one way.
    size, deep : int
        How many looks at one value it takes by itself, and how many at all that is in the value.
    """

    # Not slots: what few nodes have of their own need not be set when a node is made.
    never = False
    written: Mapping[str, str] = MappingProxyType({})
    here: tuple[Node, ...] = ()
    below: tuple[Node, ...] = ()
    alias: Node | None = None
    referred = False
    size = 1
    deep = 0

    def __init__(self, parent: Node | None, place: tuple[str | int, ...]) -> None:
        self.parent = parent
        self.place = place
        self.depth: int = parent.depth + 1 if parent else 0
        self.rules: dict[str, Any] = {}

    @property
    def pointer(self) -> str:
        """JSON pointer of the schema."""
        steps: list[str | int] = []
        node: Node | None = self
        while node:
            steps[:0] = node.place
            node = node.parent
        return "".join(map(token, steps))
