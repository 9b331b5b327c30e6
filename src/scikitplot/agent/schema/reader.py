"""Reading a schema: every place is checked, and becomes a node.

Imports `nodes`, `keywords`, `references`, `equality`, `patterns` and `formats`. Nothing is read by
recursion, so a deep schema costs no stack, and no object is read twice, so one that holds another
many times costs no more. A node owns what it holds: a schema changed later changes nothing here.
Draft-07 is read into the keywords of 2020-12.
"""

from __future__ import annotations

import math
from itertools import chain
from typing import Any

from ..errors import SchemaError
from ..values import MAX_INT_BITS, clean_text, encode
from .bounds import (
    MAX_DEPTH,
    MAX_LISTED,
    MAX_PATTERNS,
    MAX_SUBSCHEMAS,
    MAX_VALUES,
    NAMES_UNIT,
    STATES_UNIT,
    TEXT_UNIT,
)
from .equality import key
from .formats import FORMATS
from .keywords import ANNOTATIONS, DRAFTS, PLAIN, Draft, Refusal, draft_of, why_unknown
from .nodes import Choices, Node
from .patterns import Matcher, PatternError, compile_pattern
from .references import follow

__all__ = ["read"]

_HERE = frozenset({"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas"})
"""Keywords whose schemas apply to the value itself, and not to a part of it."""

_TOO_LONG = 2**MAX_INT_BITS

_COUNTED = frozenset({"const", "dependentRequired", "enum", "required"})
"""Keywords that hold any number of values or names."""


def read(schema: Any, assert_formats: bool) -> list[Node]:
    """Return the nodes of `schema`, the root first.

    Raises
    ------
    SchemaError
        If any part of it is not a schema, or is more than can be enforced.
    """
    draft = DRAFTS["2020-12"]
    try:
        if isinstance(schema, dict) and "$schema" in schema:
            draft = draft_of(schema["$schema"])
    except Refusal as refusal:
        raise SchemaError("$schema", "", str(refusal)) from None
    return _Reader(schema, draft, assert_formats).read_all()


class _Reader:
    def __init__(self, schema: Any, draft: Draft, assert_formats: bool) -> None:
        self.schema = schema
        self.draft = draft
        self.is_07 = draft is DRAFTS["draft-07"]
        self.declared = isinstance(schema, dict) and "$schema" in schema
        self.assert_formats = assert_formats
        self.nodes: list[Node] = []
        self.todo: list[tuple[Node, Any]] = []
        self.seen: dict[int, Node] = {}  # by the id of the object it was read from
        self.places = 0
        self.values = 0
        self.references: list[tuple[Node, str]] = []
        self.targets: dict[str, Node] = {}
        self.patterns: dict[str, Matcher] = {}

    def read_all(self) -> list[Node]:
        self.node(None, (), self.schema)
        while self.todo:
            self.read(*self.todo.pop())
            while self.references and not self.todo:
                self.resolve(*self.references.pop())  # may find a place that was not read yet
        return self.nodes

    def node(self, parent: Node | None, place: tuple[str | int, ...], schema: Any) -> Node:
        self.places += 1
        node = self.seen.get(id(schema))
        if node:
            node.referred = True
        else:
            node = Node(parent, place)
            self.nodes.append(node)
            self.todo.append((node, schema))
            if isinstance(schema, dict):
                self.seen[id(schema)] = node
        if node.depth > MAX_DEPTH:
            raise SchemaError("", node.pointer, f"more than {MAX_DEPTH} levels of subschemas")
        if self.places > MAX_SUBSCHEMAS:
            raise SchemaError("", node.pointer, f"more than {MAX_SUBSCHEMAS} subschemas")
        return node

    def read(self, node: Node, schema: Any) -> None:
        if isinstance(schema, bool):
            node.never = not schema
            return
        if not isinstance(schema, dict):
            raise SchemaError("", node.pointer, "a schema is an object, true or false")
        places = self.places
        keywords = schema.items()
        if self.is_07 and "$ref" in schema:
            keywords = {"$ref": schema["$ref"]}.items()  # what stands beside it does not count
        for keyword, value in keywords:
            if keyword in ANNOTATIONS:
                continue
            if not isinstance(keyword, str):
                raise SchemaError("", node.pointer, "a keyword is a string")
            try:
                self.keyword(node, schema, keyword, value)
            except Refusal as refusal:
                raise SchemaError(clean_text(keyword, 60), node.pointer, str(refusal)) from None
        if self.places > places:
            self.link(node)

    def keyword(self, node: Node, schema: dict[str, Any], keyword: str, value: Any) -> None:
        draft = self.draft
        if keyword in draft.plain:
            self.plain(node, keyword, value)
        elif keyword in draft.single and not (keyword == "items" and isinstance(value, list)):
            node.rules[keyword] = self.node(node, (keyword,), value)
        elif keyword in draft.lists:
            if not isinstance(value, list) or not value:
                raise Refusal("must be a list of one or more schemas")
            node.rules[keyword] = self.each(node, keyword, value)
        elif keyword in draft.named:
            if not isinstance(value, dict) or not all(isinstance(name, str) for name in value):
                raise Refusal("must be an object of schemas")
            self.named(node, keyword, value)
        elif keyword == "items":
            if not self.is_07:
                raise Refusal('is a list, as in draft-07; write "prefixItems" instead')
            node.rules["prefixItems"] = self.each(node, keyword, value)
            node.written = {**node.written, "prefixItems": keyword, "items": "additionalItems"}
        elif keyword == "$ref":
            if not isinstance(value, str):
                raise Refusal("must be a string")
            self.references.append((node, value))
        elif keyword == "$schema":
            if draft_of(value) is not draft:
                raise Refusal("must name the draft that the root names")
        elif keyword == "$id":
            if node.parent:
                raise Refusal(
                    "below the root would change what references mean; leave it out, and refer "
                    'by a JSON pointer, as in "$ref": "#/$defs/name"'
                )
        elif not keyword.startswith("x-"):
            raise Refusal(why_unknown(keyword, schema, draft))

    def each(self, node: Node, keyword: str, value: list[Any]) -> list[Node]:
        return [self.node(node, (keyword, index), item) for index, item in enumerate(value)]

    def named(self, node: Node, keyword: str, value: dict[str, Any]) -> None:
        rule = keyword
        if keyword == "dependencies":
            lists = {name: item for name, item in value.items() if isinstance(item, list)}
            self.plain(node, "dependentRequired", lists)
            value = {name: item for name, item in value.items() if name not in lists}
            rule = "dependentSchemas"
            node.written = {**node.written, "dependentRequired": keyword, rule: keyword}
        nodes = {name: self.node(node, (keyword, name), item) for name, item in value.items()}
        if keyword == "patternProperties" and nodes:
            node.rules[keyword] = [
                (source, self.pattern(source), below) for source, below in nodes.items()
            ]
            node.size += sum(_looks(matches) for _, matches, _ in node.rules[keyword])
        elif keyword not in ("$defs", "definitions", "patternProperties"):
            node.rules[rule] = nodes

    def plain(self, node: Node, keyword: str, value: Any) -> None:
        rule = PLAIN[keyword](value)
        if keyword in _COUNTED:
            rule = self.counted(node, keyword, rule)
        elif keyword == "uniqueItems":
            node.deep += 1
        elif keyword == "pattern":
            rule = (rule, self.pattern(rule))
            node.size += _looks(rule[1])
        elif keyword == "format":
            if not self.assert_formats:
                return
            if rule not in FORMATS:
                known = ", ".join(sorted(FORMATS))
                raise Refusal(f"cannot be asserted; the formats that can are {known}")
            rule = (rule, FORMATS[rule])
        node.rules[keyword] = rule

    def counted(self, node: Node, keyword: str, rule: Any) -> Any:
        if keyword == "required" or keyword == "dependentRequired":
            names = rule if keyword == "required" else [*rule, *chain(*rule.values())]
            self.charge(len(names))
            node.size += len(names) // NAMES_UNIT
            return rule
        if not rule and not self.declared:
            raise Refusal(
                "is empty, so nothing would be allowed; list the values, or leave it out (it is "
                'taken as it is where "$schema" names the draft)'
            )
        self.check(rule)
        choices = _choices(rule)
        node.deep += choices.has_list or choices.has_object
        return choices

    def pattern(self, source: str) -> Matcher:
        if source not in self.patterns:
            if len(self.patterns) == MAX_PATTERNS:
                raise Refusal(f"more than {MAX_PATTERNS} different patterns in the whole schema")
            try:
                self.patterns[source] = compile_pattern(source)
            except PatternError as error:
                raise Refusal(f"the pattern is refused: {error}") from None
        return self.patterns[source]

    def charge(self, values: int) -> None:
        self.values += values
        if self.values > MAX_VALUES:
            raise Refusal(f"more than {MAX_VALUES} values and names in the whole schema")

    def check(self, values: list[Any]) -> None:
        """Count the values of an `enum`, and refuse what is not JSON."""
        level = values
        self.charge(len(level))
        for _ in range(MAX_DEPTH):
            below: list[Any] = []
            for value in level:
                kind = type(value)
                if kind is str:
                    self.charge(len(value) // TEXT_UNIT)
                elif kind is list:
                    self.charge(len(value))
                    below += value
                elif kind is dict:
                    self.charge(2 * len(value))
                    if not all(type(name) is str for name in value):
                        raise Refusal("holds an object with a name that is no string")
                    below += [*value, *value.values()]
                elif kind is float and not math.isfinite(value):
                    raise Refusal("holds NaN or infinity, which is not JSON")
                elif kind is int and abs(value) >= _TOO_LONG:
                    raise Refusal(f"holds an integer of more than {MAX_INT_BITS} bits")
                elif kind not in (int, float, bool) and value is not None:
                    raise Refusal("holds a value that is not JSON")
            level = below
            if not level:
                return
        raise Refusal(f"holds a value that is more than {MAX_DEPTH} levels deep")

    def link(self, node: Node) -> None:
        """List the nodes that are applied, and drop those that the keywords beside them disable."""
        rules = node.rules
        if "if" not in rules:
            rules.pop("then", None)
            rules.pop("else", None)
        if "additionalItems" in rules:
            rest = rules.pop("additionalItems")
            if "prefixItems" in rules:
                rules["items"] = rest
        for keyword in ("unevaluatedItems", "unevaluatedProperties"):
            if keyword in rules:
                rules[keyword] = rules.pop(keyword)  # the last, because they look at all others
        here: list[Node] = []
        below: list[Node] = []
        for keyword, rule in rules.items():
            nodes = here if keyword in _HERE else below
            if isinstance(rule, Node):
                nodes.append(rule)
            elif keyword == "patternProperties":
                nodes += [part for _, _, part in rule]
            elif keyword == "properties" or keyword == "dependentSchemas":
                nodes += rule.values()
            elif keyword in _HERE or keyword == "prefixItems":
                nodes += rule
        node.here = tuple(here)
        node.below = tuple(below)

    def resolve(self, node: Node, reference: str) -> None:
        target = self.targets.get(reference)
        if not target:
            try:
                steps, schema = follow(reference, self.schema)
            except Refusal as refusal:
                raise SchemaError("$ref", node.pointer, str(refusal)) from None
            target = self.targets[reference] = self.node(self.nodes[0], steps, schema)
            target.referred = True
        if not node.rules:
            node.alias = target
        node.rules = {"$ref": target, **node.rules}
        node.here += (target,)


def _looks(matches: Matcher) -> int:
    return 1 + matches.states // STATES_UNIT


def _choices(values: list[Any]) -> Choices:
    kinds = set(map(type, values))
    shown = [clean_text(encode(value), 60) for value in values[:MAX_LISTED]]
    if len(values) > MAX_LISTED:
        shown.append(f"or one of {len(values) - MAX_LISTED} more")
    return Choices(
        frozenset(map(key, values)),
        tuple([value for value in values if not isinstance(value, (dict, list))]),
        list in kinds,
        dict in kinds,
        ", ".join(shown),
    )
