"""What a function's signature and docstring say of the tool that is made of it.

Imports `classes`, `docstrings`, `hints`, `signature` and `values`. All is read when the tool is
made; a call then only decodes its arguments and passes them on.
"""

from __future__ import annotations

import functools
import inspect
import types
import typing
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any, NamedTuple

from .classes import Field, describe, resolve
from .hints import Decode, Reader
from .signature import Adapted
from .values import JSON, type_name

__all__ = ["ReadFunction", "local_names", "read_function"]


class ReadFunction(NamedTuple):
    """A function, read.

    Attributes
    ----------
    name : str
        Its name.
    description : str
        Its docstring, without the sections.
    parameters : dict
        The JSON Schema of its arguments.
    func : Adapted
        The function, with the way in which it takes arguments that the schema allows.
    """

    name: str
    description: str
    parameters: dict[str, JSON]
    func: Adapted


def read_function(
    func: Callable[..., Any], name: str | None, names: Callable[[Any], dict[str, Any]]
) -> ReadFunction:
    """Read a function, method, partial or callable object.

    Parameters
    ----------
    func : callable
        What the tool shall call.
    name : str or None
        The tool's name, None for the function's own.
    names : callable
        Given a code object, returns what its annotations may refer to besides its globals.

    Raises
    ------
    TypeError, ValueError
        If its parameters cannot be described by a JSON Schema; the message names the first one.

    Examples
    --------
    >>> from scikitplot.agent.functions import read_function
    >>> def add(a: int, b: int = 0) -> int:
    ...     '''Add two numbers.'''
    ...     return a + b
    >>> read = read_function(add, None, lambda code: {})
    >>> read.parameters["required"], read.func.invoke({"a": 2.0, "b": 3})
    (['a'], 5)
    """
    if not callable(func) or isinstance(func, type):
        what = "a class" if isinstance(func, type) else type_name(func)
        told = "; a name is given as tool(name=...)" if isinstance(func, str) else ""
        raise TypeError(f"tool takes a function, not {what}{told}")
    inner = func.func if isinstance(func, functools.partial) else func
    bound = func.keywords if isinstance(func, functools.partial) else {}
    is_function = inspect.isroutine(inner) or hasattr(inner, "__wrapped__")
    source: Any = inner if is_function else type(inner).__call__.__get__(inner)
    name = name if name is not None else getattr(inner, "__name__", None)
    if name is None:
        raise TypeError(f"an object of {type_name(inner)} has no name; write tool(name=...)")
    what = f"Tool {name!r}"
    try:
        taken = inspect.signature(func).parameters
        known = [*inspect.signature(inner).parameters]
    except (TypeError, ValueError):
        raise TypeError(f"{what}: the function has no signature; wrap it in one that has") from None
    parameters = [part for part in taken.values() if part.name not in bound]
    hints = _hints(inspect.unwrap(source), [part.name for part in parameters], names, what)
    text = inspect.getdoc(source) or ""
    if text == inspect.getdoc(type.__call__):  # it has none: this is that of every class
        text = ""
    doc = describe(text, known, f"{what}: the docstring")
    for part in parameters:
        _check(part, hints, what)
    reader = Reader(what, names(getattr(inspect.unwrap(source), "__code__", None)))
    found, decoders = reader.read_fields(
        [
            Field(part.name, hints[part.name], part.default, doc.parameters.get(part.name, ""))
            for part in parameters
        ],
        "",
    )
    adapted = Adapted(func, _invoker(func, parameters, decoders))
    return ReadFunction(name, doc.description, reader.finish(found), adapted)


def local_names(frame: FrameType) -> Callable[[Any], dict[str, Any]]:
    """Return what finds the local names at `frame` that a function defined there may refer to."""

    def names(code: Any) -> dict[str, Any]:
        spaces: list[dict[str, Any]] = []
        at: FrameType | None = frame
        while at is not None and code in at.f_code.co_consts:  # it is defined in this very block
            spaces.append(at.f_locals)
            code, at = at.f_code, at.f_back
        return {name: value for space in reversed(spaces) for name, value in space.items()}

    return names


def _hints(
    source: Any, wanted: Sequence[str], names: Callable[[Any], dict[str, Any]], what: str
) -> dict[str, Any]:
    code = getattr(source, "__code__", None)
    local = names(code)
    cells = getattr(source, "__closure__", None) or ()
    for name, cell in zip(getattr(code, "co_freevars", ()), cells, strict=False):
        try:
            local.setdefault(name, cell.cell_contents)
        except ValueError:  # not set yet
            continue
    # The others, as that of what is returned, may be known to a type checker alone.
    told = getattr(source, "__annotations__", {})
    told = {name: told[name] for name in wanted if name in told}
    # A stand-in without defaults: for a default of None, Python 3.10 would change the hint.
    return resolve(
        lambda: typing.get_type_hints(
            types.SimpleNamespace(__annotations__=told),
            getattr(source, "__globals__", {}),
            local,
            include_extras=True,
        ),
        f"{what}: the annotations",
    )


def _check(part: inspect.Parameter, hints: dict[str, Any], what: str) -> None:
    if part.kind in (part.VAR_POSITIONAL, part.VAR_KEYWORD):
        star = "*" if part.kind is part.VAR_POSITIONAL else "**"
        wanted = "list" if star == "*" else "dict"
        raise TypeError(
            f"{what}: parameter '{star}{part.name}': any number of arguments cannot be described; "
            f"write one parameter that is a {wanted}"
        )
    if part.name not in hints:
        told = "write its type, or Any for any JSON value"
        if part.name in ("self", "cls"):
            told = "make the tool of the bound method, tool(thing.method)"
        raise TypeError(f"{what}: parameter {part.name!r} has no annotation; {told}")


def _invoker(
    func: Callable[..., Any], parameters: list[inspect.Parameter], decoders: dict[str, Decode]
) -> Callable[[dict[str, JSON]], Any]:
    by_position = [
        (part.name, part.default) for part in parameters if part.kind is part.POSITIONAL_ONLY
    ]

    def invoke(arguments: dict[str, JSON]) -> Any:
        passed = {
            name: decoders[name](value) if name in decoders else value
            for name, value in arguments.items()
        }
        first = [passed.pop(name, default) for name, default in by_position]
        return func(*first, **passed)

    return invoke
