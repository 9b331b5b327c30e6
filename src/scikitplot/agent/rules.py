"""Rules on arguments: JSON Schemas by the name of a tool, compiled once.

Imports `schema`, `values` and `errors`. Rules that hold here:

* where a tool has several schemas, its arguments must meet all of them, each on its own, so that
  the references in one never reach into another;
* what cannot be judged does not meet them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from . import schema
from .errors import SchemaError
from .values import JSON, InvalidValue, admit, check_text, encode, type_name

__all__ = ["ArgumentRules"]


class ArgumentRules(Mapping[str, JSON]):
    """Schemas of arguments by tool name. They never change, and they can be hashed and pickled.

    Parameters
    ----------
    field : str
        Name of the field that they are given for, for messages.
    rules : mapping of str to (dict, bool, or list of these)
        For each tool a JSON Schema, or a list of schemas which must all be met.

    Raises
    ------
    TypeError, ValueError
        If it is no such mapping. `SchemaError` if a schema cannot be enforced.

    Examples
    --------
    >>> from scikitplot.agent.rules import ArgumentRules
    >>> rules = ArgumentRules("arguments", {"pay": {"properties": {"amount": {"maximum": 50}}}})
    >>> [str(problem) for problem in rules.problems("pay", {"amount": 51})]
    ['/amount: must be at most 50']
    >>> rules.meets("pay", {"amount": 50}), rules.meets("sell", {"amount": 50})
    (True, False)
    """

    __slots__ = ("_rules", "_text")

    _rules: dict[str, dict[str, schema.CompiledSchema]]  # each by its canonical text, in order
    _text: str

    def __init__(self, field: str, rules: object) -> None:
        if not isinstance(rules, Mapping):
            raise TypeError(f"{field} must map tool names to schemas, not {type_name(rules)}")
        try:
            copy: dict[str, JSON] = admit(dict(rules), allow_tuples=True)[0]
        except InvalidValue as error:
            raise ValueError(f"{field}{error.pointer}: {error.reason}") from None
        compiled = {}
        for tool, given in copy.items():
            if not check_text(f"a tool name in {field}", tool, 1_000):
                raise ValueError(f"a tool name in {field} is empty")
            schemas = given if type(given) is list else [given]
            if not schemas:
                raise ValueError(f"{field}[{tool!r}] is an empty list; give a schema")
            compiled[tool] = {encode(item): _compile(field, tool, item) for item in schemas}
        self._put(compiled)

    def _put(self, rules: dict[str, dict[str, schema.CompiledSchema]]) -> None:
        self._rules = {tool: dict(sorted(rules[tool].items())) for tool in sorted(rules)}
        self._text = encode(self.to_dict())

    def problems(self, tool: str, arguments: dict[str, JSON]) -> list[schema.Problem]:
        """Return what in a call's arguments breaks the rules, empty where there is none."""
        rules = self._rules.get(tool)
        if rules is None:
            return []
        try:
            return [
                problem for rule in rules.values() for problem in schema.validate(rule, arguments)
            ]
        except RecursionError:  # the caller left no room on the stack
            return [schema.Problem("", "depth", "cannot be judged so deep in the call stack")]

    def meets(self, tool: str, arguments: dict[str, JSON]) -> bool:
        """Return whether there is a rule for the tool and the arguments meet it."""
        return tool in self._rules and not self.problems(tool, arguments)

    def of_either(self, other: ArgumentRules) -> ArgumentRules:
        """Return the rules that are met where both are: for each tool of either, all schemas."""
        return self._merged(other, self._rules.keys() | other._rules.keys())

    def of_both(self, other: ArgumentRules) -> ArgumentRules:
        """Return the same for the tools that both have rules for, and no other tool."""
        return self._merged(other, self._rules.keys() & other._rules.keys())

    def _merged(self, other: ArgumentRules, tools: set[str]) -> ArgumentRules:
        merged = object.__new__(ArgumentRules)
        merged._put({t: {**self._rules.get(t, {}), **other._rules.get(t, {})} for t in tools})
        return merged

    def to_dict(self) -> dict[str, JSON]:
        """Return a new copy of the schemas by tool name, a list where there are several."""
        return {tool: self[tool] for tool in self._rules}

    def __getitem__(self, tool: str) -> JSON:
        schemas = [json.loads(text) for text in self._rules[tool]]
        return schemas[0] if len(schemas) == 1 else schemas

    def __iter__(self) -> Iterator[str]:
        return iter(self._rules)

    def __len__(self) -> int:
        return len(self._rules)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, ArgumentRules):
            return self._text == other._text
        return super().__eq__(other)

    def __hash__(self) -> int:
        return hash(self._text)

    def __reduce__(self) -> Any:
        return ArgumentRules, ("rules", self.to_dict())

    def __repr__(self) -> str:
        return repr(self.to_dict())


def _compile(field: str, tool: str, given: JSON) -> schema.CompiledSchema:
    try:
        return schema.compile(given)
    except SchemaError as error:
        told = f"{error.reason} ({field} of tool {tool!r})"
        raise SchemaError(error.keyword, error.pointer, told) from None
