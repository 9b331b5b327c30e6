"""`tool`: a tool from a function's type hints and docstring. Imports `functions` and `tools`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, overload

from .functions import local_names, read_function
from .tools import Tool

__all__ = ["tool"]


@overload
def tool(
    func: Callable[..., Any],
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    **options: Any,
) -> Tool: ...


@overload
def tool(
    *, name: str | None = None, description: str | None = None, **options: Any
) -> Callable[[Callable[..., Any]], Tool]: ...


def tool(
    func: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    **options: Any,
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a `Tool` of a function: its schema from the type hints, its texts from the docstring.

    The tool can still be called like the function: ``add(1, 2)``.

    Parameters
    ----------
    func : callable
        A function, also an async one, a bound method, a ``functools.partial`` (what it binds is no
        parameter) or a callable object. Without one, what is returned is the decorator.
    name : str or None, default=None
        None is the function's name.
    description : str or None, default=None
        None is the docstring without its sections.
    **options
        As `Tool` takes them, from ``effect`` on.

    Returns
    -------
    Tool
        Its schema has a property for each parameter and allows no other. Arguments are what the
        hints say: an Enum's member, a dataclass, a tuple.

    Raises
    ------
    TypeError, ValueError
        If a parameter has no type hint, or one that JSON cannot express, or the docstring
        describes a parameter that is not there; the message names it.

    Notes
    -----
    A parameter's description is a text in ``Annotated``, or else what the docstring says of it.
    Bounds are a dict of JSON Schema keywords in ``Annotated``, or objects like those of
    ``annotated_types``.

    Examples
    --------
    >>> from typing import Annotated
    >>> from scikitplot.agent import tool
    >>> @tool(effect="write", cost=0.5)
    ... def reserve(item: str, count: Annotated[int, {"minimum": 1}] = 1) -> str:
    ...     '''Put something aside.
    ...
    ...     Args:
    ...         item: Its name in the catalogue.
    ...     '''
    ...     return f"{count} {item}"
    >>> reserve
    Tool('reserve', effect='write', scopes=[], cost=0.5)
    >>> reserve.description, reserve.parameters["properties"]["item"]
    ('Put something aside.', {'type': 'string', 'description': 'Its name in the catalogue.'})
    >>> reserve("tea")
    '1 tea'
    """
    if func is None:
        return lambda func: _make(func, sys._getframe(1), name, description, options)
    return _make(func, sys._getframe(1), name, description, options)


def _make(
    func: Callable[..., Any],
    frame: Any,
    name: str | None,
    description: str | None,
    options: dict[str, Any],
) -> Tool:
    if isinstance(func, Tool):
        raise TypeError(f"{func.name!r} is a Tool already")
    read = read_function(func, name, local_names(frame))
    described = read.description if description is None else description
    adapted: Any = read.func
    return Tool(read.name, adapted, description=described, parameters=read.parameters, **options)
