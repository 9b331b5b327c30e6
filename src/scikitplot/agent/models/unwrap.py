"""Strings that hold JSON in the place of the value itself.

Imports `schema`. Some models write ``"[1, 2]"`` where a list is asked for. Such a string is decoded
only where the schema admits no string at all, whatever its content, and only if what it holds is
what the schema asks for; so a text argument that happens to hold JSON stays a text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from .. import schema as json_schema
from ..values import JSON, pointer

__all__ = ["unwrap_strings"]

_MAX_CANDIDATES = 16
_MAX_LEVELS = 8
_MAX_TEXT = 1_000_000
_MAX_STEPS = 200  # through references and branches of one place
_MAX_BRANCHES = 16
_DEEPER = frozenset(("additionalProperties", "items", "properties"))

_Path: TypeAlias = "tuple[str | int, ...]"


def unwrap_strings(
    arguments: dict[str, JSON],
    parameters: dict[str, JSON],
    parse: Callable[[str], tuple[JSON] | None],
    repairs: list[str],
) -> dict[str, JSON]:
    """Return the arguments with those strings decoded that must be something else.

    Parameters
    ----------
    arguments : dict
        As the model wrote them.
    parameters : dict
        The tool's schema.
    parse : callable
        Returns the value of a JSON text in a tuple, or None.
    repairs : list of str
        Gets a note of each decoded place.

    Examples
    --------
    >>> import json
    >>> repairs = []
    >>> schema = {"properties": {"n": {"type": "array"}, "text": {"type": "string"}}}
    >>> unwrap_strings({"n": "[1]", "text": "[1]"}, schema, lambda t: (json.loads(t),), repairs)
    {'n': [1], 'text': '[1]'}
    >>> repairs
    ['the string at /n was decoded']
    """
    root = _Root(parameters)
    found = root.candidates(parameters, arguments, ())
    for path, text in [item for item, _ in zip(found, range(_MAX_CANDIDATES), strict=False)]:
        decoded = parse(text)
        if decoded is None:
            continue
        changed = _replaced(arguments, path, decoded[0])
        if root.accepts(changed, path):
            arguments = changed
            repairs.append(f"the string at {pointer(path)} was decoded"[:200])
    del repairs[16:]
    return arguments


class _Root:
    """A tool's schema."""

    def __init__(self, parameters: dict[str, JSON]) -> None:
        self._parameters = parameters
        self._compiled: json_schema.CompiledSchema | None = None

    def accepts(self, arguments: dict[str, JSON], path: _Path) -> bool:
        """Return whether the schema has nothing against what stands at a place, or below it."""
        if self._compiled is None:
            self._compiled = json_schema.compile(self._parameters)
        place = pointer(path)
        return not any(
            problem.rule == "limit"
            or problem.pointer == place
            or problem.pointer.startswith(f"{place}/")
            for problem in self._compiled.problems(arguments)
        )

    def candidates(self, schema: Any, value: JSON, path: _Path) -> Iterator[tuple[_Path, str]]:
        """Yield the places of strings where the schema admits none."""
        schema = self._resolve(schema)
        if type(value) is str:
            if path and len(value) <= _MAX_TEXT and not self._admits_string(schema, [_MAX_STEPS]):
                yield path, value
            return
        schema = self._only_branch(schema, "object" if type(value) is dict else "array")
        if type(schema) is not dict or len(path) > _MAX_LEVELS:
            return
        if type(value) is dict:
            properties = schema.get("properties", {})
            others = schema.get("additionalProperties")
            if type(others) is not dict or "patternProperties" in schema:
                others = True
            for name, item in value.items():
                yield from self.candidates(properties.get(name, others), item, (*path, name))
        elif type(value) is list and "items" in schema and "prefixItems" not in schema:
            for index, item in enumerate(value[:1_000]):
                yield from self.candidates(schema["items"], item, (*path, index))

    def _only_branch(self, schema: Any, kind: str) -> Any:
        """Return the one branch of a union that takes values of a type, as in ``X | None``."""
        if type(schema) is not dict or not _DEEPER.isdisjoint(schema):
            return schema
        for keyword in ("anyOf", "oneOf"):
            if keyword in schema:
                branches = map(self._resolve, schema[keyword][:_MAX_BRANCHES])
                able = [branch for branch in branches if _may_be(branch, kind)]
                is_only = len(able) == 1 and len(schema[keyword]) <= _MAX_BRANCHES
                return able[0] if is_only else None
        return schema

    def _resolve(self, schema: Any) -> Any:
        """Follow plain references into the definitions of the schema itself."""
        for _ in range(10):
            reference = schema.get("$ref") if type(schema) is dict and len(schema) == 1 else None
            if type(reference) is not str or not reference.startswith("#/"):
                return schema
            target: Any = self._parameters
            for token in reference[2:].split("/"):
                target = target.get(token) if type(target) is dict else None
            schema = target
        return schema

    def _admits_string(self, schema: Any, steps: list[int]) -> bool:
        """Return whether some string may be valid; where that is not plain, it may."""
        schema = self._resolve(schema)
        steps[0] -= 1
        if steps[0] < 0 or type(schema) is not dict:
            return schema is not False
        kinds = schema.get("type", "string")
        if "string" not in ([kinds] if type(kinds) is str else kinds):
            return False
        if "const" in schema and type(schema["const"]) is not str:
            return False
        if "enum" in schema and not any(type(value) is str for value in schema["enum"]):
            return False
        for keyword in ("anyOf", "oneOf"):
            if keyword in schema and not any(
                self._admits_string(part, steps) for part in schema[keyword]
            ):
                return False
        return all(self._admits_string(part, steps) for part in schema.get("allOf", ()))


def _may_be(schema: Any, kind: str) -> bool:
    kinds = schema.get("type", kind) if type(schema) is dict else kind
    return kind in ([kinds] if type(kinds) is str else kinds)


def _replaced(value: Any, path: _Path, new: JSON) -> Any:
    """Return a copy of `value` with another value at a place."""
    if not path:
        return new
    copy = value.copy()
    copy[path[0]] = _replaced(value[path[0]], path[1:], new)
    return copy
