"""Reading a schema: every place is checked, and becomes a node.

Imports `keywords` and `bounds`. Nothing is read twice and nothing is read by recursion, so a deep
schema costs no stack. A node owns what it holds: a schema changed later changes nothing here.
"""

from __future__ import annotations

import copy
import math
from typing import Any

from ..errors import SchemaError
from ..values import clean_text
from .bounds import MAX_DEPTH, MAX_SUBSCHEMAS, MAX_VALUES
from .keywords import (
    ANNOTATIONS,
    ASSERTIONS,
    LISTS,
    NAMED,
    SINGLE,
    Refusal,
    why_unknown,
)

__all__ = ["Node", "read", "token"]

_DRAFT = "https://json-schema.org/draft/2020-12/schema"


def token(name: str | int) -> str:
    """Return one step of a JSON pointer, cut where it is very long.

    Examples
    --------
    >>> from scikitplot.agent.schema.reader import token
    >>> token("a/b"), token(3)
    ('/a~1b', '/3')
    """
    text = clean_text(str(name), 60)
    return "/" + text.replace("~", "~0").replace("/", "~1")


class Node:
    """One schema: its keywords, where subschemas are nodes.

    Parameters
    ----------
    parent : Node or None
        The node it was read under; None for the root.
    place : tuple of str and int
        The steps from the parent's place to this one.
    """

    __slots__ = ("depth", "never", "parent", "place", "rules")

    def __init__(self, parent: Node | None, place: tuple[str | int, ...]) -> None:
        self.parent = parent
        self.place = place
        self.depth: int = parent.depth + 1 if parent else 0
        self.never = False
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


class _Reader:
    def __init__(self, assert_formats: bool) -> None:
        self.assert_formats = assert_formats
        self.nodes: list[Node] = []
        self.todo: list[tuple[Node, Any]] = []
        self.values = 0

    def node(self, parent: Node | None, place: tuple[str | int, ...], schema: Any) -> Node:
        node = Node(parent, place)
        if node.depth > MAX_DEPTH:
            raise SchemaError("", node.pointer, f"more than {MAX_DEPTH} subschemas deep")
        if len(self.nodes) == MAX_SUBSCHEMAS:
            raise SchemaError("", node.pointer, f"more than {MAX_SUBSCHEMAS} subschemas")
        self.nodes.append(node)
        self.todo.append((node, schema))
        return node

    def read(self, node: Node, schema: Any) -> None:
        if isinstance(schema, bool):
            node.never = not schema
            return
        if not isinstance(schema, dict):
            raise SchemaError("", node.pointer, "a schema is an object, true or false")
        for keyword, value in schema.items():
            if not isinstance(keyword, str):
                raise SchemaError("", node.pointer, "a keyword is a string")
            try:
                self.keyword(node, schema, keyword, value)
            except Refusal as refusal:
                raise SchemaError(keyword, node.pointer, str(refusal)) from None

    def keyword(self, node: Node, schema: dict[str, Any], keyword: str, value: Any) -> None:
        if keyword in ASSERTIONS:
            node.rules[keyword] = self.assertion(keyword, value)
        elif keyword in SINGLE:
            if keyword == "items" and isinstance(value, list):
                raise Refusal('is a list, as in draft-07; write "prefixItems" instead')
            node.rules[keyword] = self.node(node, (keyword,), value)
        elif keyword in LISTS:
            if not isinstance(value, list) or not value:
                raise Refusal("must be a list of one or more schemas")
            node.rules[keyword] = [
                self.node(node, (keyword, index), item) for index, item in enumerate(value)
            ]
        elif keyword in NAMED:
            if not isinstance(value, dict):
                raise Refusal("must be an object of schemas")
            node.rules[keyword] = {
                name: self.node(node, (keyword, name), item) for name, item in value.items()
            }
        elif keyword == "$schema":
            if value != _DRAFT:
                raise Refusal(f"must be {_DRAFT!r}; leave it out for that draft")
        elif keyword == "$id":
            if node.parent:
                raise Refusal("only the root may have an $id; leave it out")
        elif keyword not in ANNOTATIONS and not keyword.startswith("x-"):
            raise Refusal(why_unknown(keyword, schema))

    def assertion(self, keyword: str, value: Any) -> Any:
        if keyword == "format" and self.assert_formats:
            raise Refusal("cannot be asserted")
        read = ASSERTIONS[keyword](value)
        if keyword in ("const", "enum"):
            self.count(read)
            return copy.deepcopy(read)
        if keyword == "required":
            self.values += len(read)
        if self.values > MAX_VALUES:
            raise Refusal(f"more than {MAX_VALUES} values in the whole schema")
        return read

    def count(self, choices: tuple[Any, ...]) -> None:
        """Count the values in `choices`, and refuse what is not JSON."""
        level: list[Any] = list(choices)
        depth = 0
        while level:
            self.values += len(level)
            if self.values > MAX_VALUES:
                raise Refusal(f"more than {MAX_VALUES} values in the whole schema")
            if depth > MAX_DEPTH:
                raise Refusal(f"more than {MAX_DEPTH} levels deep")
            depth += 1
            below: list[Any] = []
            for value in level:
                kind = type(value)
                if kind is list:
                    below += value
                elif kind is dict and all(type(name) is str for name in value):
                    below += value.values()
                elif kind is float and not math.isfinite(value):
                    raise Refusal("holds NaN or infinity, which is not JSON")
                elif kind not in (str, int, float, bool) and value is not None:
                    raise Refusal("holds a value that is not JSON")
            level = below


def read(schema: Any, assert_formats: bool) -> list[Node]:
    """Return the nodes of `schema`, the root first and each after its parent.

    Raises
    ------
    SchemaError
        If any part of it is not a schema, or is more than can be enforced.
    """
    reader = _Reader(assert_formats)
    reader.node(None, (), schema)
    while reader.todo:
        reader.read(*reader.todo.pop())
    return reader.nodes
