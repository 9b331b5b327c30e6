"""Classes that a JSON object can be: dataclasses, TypedDicts and NamedTuples.

Imports `docstrings` and `values`. What is wrong with a class is an error that does not yet say
where it was met.
"""

from __future__ import annotations

import dataclasses
import inspect
import typing
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from .docstrings import Docstring, read_docstring
from .values import type_name

__all__ = ["REQUIRED", "Field", "Members", "describe", "members", "resolve"]

REQUIRED = inspect.Parameter.empty
"""The default of a field that has none."""

_FACTORY = object()  # the default of a field that gets one when it is needed
_QUALIFIERS = {"Required": True, "NotRequired": False, "ReadOnly": None}


class Field(NamedTuple):
    """A parameter of a function, or a member of a class."""

    name: str
    hint: Any
    default: Any
    description: str


class Members(NamedTuple):
    """What a class is made of.

    Attributes
    ----------
    fields : list of Field
        Its members.
    make : callable
        Makes one from keyword arguments.
    description : str
        Its docstring, without the sections.
    """

    fields: list[Field]
    make: Callable[..., Any]
    description: str


def members(kind: type, names: dict[str, Any]) -> Members | None:
    """Return what a class is made of, None if it is of none of the known sorts.

    Parameters
    ----------
    kind : type
        A class.
    names : dict
        What the annotations of a class that is defined inside a function may refer to.

    Raises
    ------
    TypeError, ValueError
        If it cannot be made of its members, or its annotations or docstring cannot be read.

    Examples
    --------
    >>> from typing import NamedTuple
    >>> from scikitplot.agent.classes import members
    >>> class Size(NamedTuple):
    ...     width: int
    ...     height: int = 1
    >>> [field.name for field in members(Size, {}).fields]
    ['width', 'height']
    """
    make: Callable[..., Any] = kind
    if dataclasses.is_dataclass(kind):
        defaults = _defaults(kind)
    elif issubclass(kind, dict) and hasattr(kind, "__required_keys__"):
        defaults, make = {}, dict
    elif issubclass(kind, tuple) and hasattr(kind, "_fields"):
        given = getattr(kind, "_field_defaults", {})
        defaults = {name: given.get(name, REQUIRED) for name in kind._fields}
    else:
        return None
    local = names if "<locals>" in kind.__qualname__ else None
    hints = resolve(
        lambda: typing.get_type_hints(kind, localns=local, include_extras=True),
        f"the annotations of {kind.__qualname__}",
    )
    if make is dict:
        required: Iterable[str] = getattr(kind, "__required_keys__")  # noqa: B009
        for name, hint in hints.items():
            hints[name], defaults[name] = _unqualified(hint, name in required)
    text = vars(kind).get("__doc__") or ""
    if text.startswith(f"{kind.__name__}("):  # made by dataclass or NamedTuple
        text = ""
    doc = describe(text, [*hints, *defaults], f"the docstring of {kind.__qualname__}")
    told = {**doc.attributes, **doc.parameters}
    fields = []
    for name, default in defaults.items():
        if name not in hints:
            raise TypeError(f"{kind.__qualname__}.{name} has no annotation; write its type")
        fields.append(Field(name, hints[name], default, told.get(name, "")))
    return Members(fields, make, doc.description)


def _defaults(kind: Any) -> dict[str, Any]:
    fields = [field for field in dataclasses.fields(kind) if field.init]
    if set(inspect.signature(kind).parameters) != {field.name for field in fields}:
        raise TypeError(
            f"{kind.__qualname__} is not made of its fields alone; take out what is InitVar, or "
            "its own __init__, or write a TypedDict"
        )
    missing = dataclasses.MISSING
    return {
        field.name: field.default
        if field.default is not missing
        else (REQUIRED if field.default_factory is missing else _FACTORY)
        for field in fields
    }


def _unqualified(hint: Any, is_required: bool) -> tuple[Any, Any]:
    # Postponed, `NotRequired` stands in the hint alone, `__required_keys__` knows nothing of it.
    while (said := getattr(typing.get_origin(hint), "_name", None)) in _QUALIFIERS:
        told = _QUALIFIERS[said]
        is_required = is_required if told is None else told
        [hint] = typing.get_args(hint)
    return hint, REQUIRED if is_required else _FACTORY


def resolve(evaluate: Callable[[], dict[str, Any]], what: str) -> dict[str, Any]:
    """Return the hints that `evaluate` gives, or raise an error that says what was not found."""
    try:
        return evaluate()
    except NameError as error:
        raise TypeError(
            f"{what}: the name {error.name!r} is not known where the tool is made; define or "
            "import it before, at the top of its module and not under TYPE_CHECKING"
        ) from None
    except Exception as error:
        raise TypeError(f"{what} cannot be evaluated: {type_name(error)}: {error}") from None


def describe(text: str, known: Iterable[str], what: str) -> Docstring:
    """Return a docstring, read, or raise an error if it describes what is not there."""
    try:
        doc = read_docstring(text)
    except ValueError as error:
        raise ValueError(f"{what}: {error}") from None
    names = list(dict.fromkeys(known))
    for name in doc.parameters:
        if name not in names:
            told = ", ".join(map(repr, names)) or "none"
            raise ValueError(f"{what} describes {name!r}; the parameters are {told}")
    return doc
