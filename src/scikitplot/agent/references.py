"""Definitions in a schema: types that are met more than once, or inside themselves.

Imports nothing of this package. While hints are read every class is a reference to its definition;
at the end one that is met once is put in its place, for providers take fewer references than JSON
Schema does, and what is left stands in ``$defs``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["Reference", "put_in_place", "with_definitions"]


class Reference(dict[str, Any]):
    """A schema that refers to a definition, told by its class from a dict of a user.

    Examples
    --------
    >>> from scikitplot.agent.references import Reference, put_in_place
    >>> put_in_place({"items": Reference({"$ref": "#/$defs/A"})}, {"A": {"type": "string"}})
    {'items': {'type': 'string'}}
    """

    @property
    def label(self) -> str:
        """The name of the definition."""
        return str(self["$ref"]).removeprefix("#/$defs/")


def put_in_place(root: dict[str, Any], bodies: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """Return `root` with each definition where it is met, or in ``$defs`` if it is met again."""
    counts = Counter(label for part in (root, *bodies.values()) for label in _labels(part))
    once = {label: body for label, body in bodies.items() if counts[label] == 1}
    kept = {label: _placed(body, once) for label, body in bodies.items() if label not in once}
    whole: dict[str, Any] = _placed(root, once)
    return {**whole, "$defs": kept} if kept else whole


def with_definitions(part: dict[str, Any], bodies: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """Return a part of a schema as one of its own, with the definitions that it needs."""
    needed: dict[str, Any] = {}
    labels = list(_labels(part))
    while labels:
        label = labels.pop()
        if label not in needed:
            needed[label] = bodies[label]
            labels.extend(_labels(bodies[label]))
    return {**part, "$defs": needed}


def _labels(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        if type(part) is Reference:
            yield part.label
        part = list(part.values())
    if type(part) is list:
        for item in part:
            yield from _labels(item)


def _placed(part: Any, once: Mapping[str, dict[str, Any]]) -> Any:
    if type(part) is list:
        return [_placed(item, once) for item in part]
    if not isinstance(part, dict):
        return part
    if type(part) is Reference and part.label in once:
        body = once[part.label]
        merged = type(body)(body)
        for keyword, value in part.items():
            if keyword == "$ref":
                continue
            if keyword in merged and keyword != "description":  # one more condition
                merged["allOf"] = [*merged.get("allOf", ()), {keyword: value}]
            else:
                merged[keyword] = value
        return _placed(merged, once)
    return {keyword: _placed(item, once) for keyword, item in part.items()}
