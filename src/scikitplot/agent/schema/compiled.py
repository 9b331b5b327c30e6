"""A compiled schema, and the functions that make and ask one.

Imports the reader and both ways. The fast way decides; the slow way says why not. Where the slow
way finds nothing to object to what the fast way refused, the value stays refused.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from .bounds import MAX_PROBLEMS, TooMuch
from .explain import explain
from .fast import make_table
from .graph import plan
from .nodes import token
from .reader import read

__all__ = ["CompiledSchema", "Problem", "compile", "validate"]


class Problem(NamedTuple):
    """One reason why a value is not valid.

    Parameters
    ----------
    pointer : str
        JSON pointer (RFC 6901) of the part of the value that is at fault, ``""`` for all of it.
    rule : str
        The keyword that it breaks; ``"false"`` where nothing is allowed, ``"limit"`` where a bound
        of the validation was met.
    message : str
        What the schema asks. It never holds anything of the value.

    Examples
    --------
    >>> from scikitplot.agent import schema
    >>> print(schema.Problem("/size", "minimum", "must be at least 1"))
    /size: must be at least 1
    """

    pointer: str
    rule: str
    message: str

    def __str__(self) -> str:
        return f"{self.pointer}: {self.message}" if self.pointer else self.message


_REFUSED = Problem(
    "", "limit", "is refused: a bound was met, or the two ways of validating disagree"
)


class CompiledSchema:
    """A schema that was read and checked; made by `compile`.

    It holds nothing of a validation, so threads may share it.

    Attributes
    ----------
    schema : dict or bool
        The schema as it was given. Changing it changes nothing in what is checked.

    Examples
    --------
    >>> from scikitplot.agent import schema
    >>> compiled = schema.compile({"type": "integer", "minimum": 1})
    >>> compiled.accepts(3), compiled.accepts(0)
    (True, False)
    >>> compiled.problems("3")
    [Problem(pointer='', rule='type', message='must be an integer')]
    """

    __slots__ = ("_root", "_table", "schema")

    def __init__(self, schema: dict[str, Any] | bool, assert_formats: bool = False) -> None:
        nodes = read(schema, assert_formats)
        self.schema = schema
        self._root = nodes[0]
        self._table = make_table(nodes[0], plan(nodes))

    def accepts(self, value: Any) -> bool:
        """Return whether `value` is valid; a value that meets a bound is not."""
        try:
            test = self._table[type(value)]
            return test is None or test(value)
        except (TooMuch, RecursionError):
            return False

    def problems(self, value: Any) -> list[Problem]:
        """Return every problem of `value`, an empty list if it is valid."""
        try:
            found = explain(self._root, value)
        except TooMuch as bound:
            return [Problem("", "limit", str(bound))]
        except RecursionError:
            return [Problem("", "limit", "cannot be validated: the call stack is nearly full")]
        problems = [Problem("".join(map(token, path)), rule, text) for path, rule, text in found]
        if len(problems) == MAX_PROBLEMS:
            text = f"has {MAX_PROBLEMS} problems or more; the first are listed"
            problems.append(Problem("", "limit", text))
        return problems


def compile(schema: dict[str, Any] | bool, *, assert_formats: bool = False) -> CompiledSchema:
    """Return `schema` ready to validate values.

    Parameters
    ----------
    schema : dict or bool
        A JSON Schema of draft 2020-12, or of draft-07 if its ``$schema`` says so.
    assert_formats : bool, default=False
        Whether `format` is checked; otherwise it is an annotation.

    Returns
    -------
    CompiledSchema
        The schema, which threads may share.

    Raises
    ------
    SchemaError
        If it is no schema, or has anything that could not be enforced.

    Examples
    --------
    >>> from scikitplot.agent import schema
    >>> schema.compile({"type": "strnig"})
    Traceback (most recent call last):
        ...
    scikitplot.agent.errors.SchemaError: schema /type: is 'strnig'; did you mean 'string'?
    """
    return CompiledSchema(schema, assert_formats)


def validate(schema: CompiledSchema | dict[str, Any] | bool, value: Any) -> list[Problem]:
    """Return the problems of `value` under `schema`, an empty list if it is valid.

    Parameters
    ----------
    schema : CompiledSchema, dict or bool
        A schema; one that is used again is better compiled once.
    value : JSON
        A value of dicts, lists, strings, numbers, booleans and None, of exactly these types.

    Returns
    -------
    list of Problem
        What is wrong with it.

    Raises
    ------
    SchemaError
        If `schema` is not compiled yet and cannot be.

    Examples
    --------
    >>> from scikitplot.agent import schema
    >>> asked = {"properties": {"size": {"minimum": 1}}, "required": ["name"]}
    >>> for problem in schema.validate(asked, {"size": 0}):
    ...     print(problem)
    /size: must be at least 1
    property "name" is missing
    """
    compiled = schema if isinstance(schema, CompiledSchema) else compile(schema)
    if compiled.accepts(value):
        return []
    return compiled.problems(value) or [_REFUSED]
