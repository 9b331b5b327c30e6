"""Whether a function can be called with what its tool's schema allows.

Imports `schema` and `values`. A mismatch that the schema shows is an error when the tool is made;
one that only the arguments can show is a problem of these arguments. It never is a ``TypeError``
inside the tool, which would read as a failure of the tool.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import Any, NamedTuple

from .schema import Problem
from .values import JSON, pointer, type_name

__all__ = ["Adapted", "Signature", "check_undo", "fit"]

# Keywords by which a schema may ask for a property elsewhere than in its own `required`.
_MAY_REQUIRE = frozenset(
    (
        "$ref",
        "allOf",
        "anyOf",
        "dependencies",
        "dependentRequired",
        "dependentSchemas",
        "if",
        "oneOf",
    )
)


class Adapted(NamedTuple):
    """A function whose schema was made from its signature, so that the two fit.

    Attributes
    ----------
    func : callable
        The function.
    invoke : callable
        Calls it with arguments, by name, that the schema allows.
    """

    func: Callable[..., Any]
    invoke: Callable[[dict[str, JSON]], Any]


class Signature(NamedTuple):
    """What of a function's arguments its schema does not settle.

    Attributes
    ----------
    takes : frozenset of str, or None
        The names that it takes; None where it takes any.
    needs : frozenset of str
        Names that it must have, and of which the schema alone cannot tell that they are there.
    """

    takes: frozenset[str] | None
    needs: frozenset[str]

    def problems(self, arguments: dict[str, JSON]) -> list[Problem]:
        """Return why the function cannot be called with `arguments`, empty when it can."""
        takes, needs = self
        if (takes is None or takes.issuperset(arguments)) and needs <= arguments.keys():
            return []
        extra = [] if takes is None else [name for name in arguments if name not in takes]
        return [
            *(
                Problem(pointer([name]), "signature", "not an argument" + _nearest(name, takes))
                for name in extra
            ),
            *(
                Problem("", "signature", f"argument {name!r} is missing")
                for name in sorted(needs - arguments.keys())
            ),
        ]


def fit(tool: str, func: Callable[..., Any], parameters: dict[str, JSON]) -> Signature:
    """Check that a function goes with a schema of type ``object``.

    Parameters
    ----------
    tool : str
        Name of the tool, for messages.
    func : callable
        What will be called with keyword arguments.
    parameters : dict
        The schema of these.

    Returns
    -------
    Signature
        What is left to be asked of each call.

    Raises
    ------
    ValueError
        If the schema names an argument that the function does not take, or leaves out one that it
        must have.

    Examples
    --------
    >>> from scikitplot.agent.signature import fit
    >>> fit("save", lambda text: text, {"type": "object", "required": ["text"]}).needs
    frozenset()
    """
    try:
        signature = inspect.signature(func)
    except (TypeError, ValueError):  # some builtins have none
        return Signature(None, frozenset())
    takes, needs, takes_any = set(), set(), False
    for parameter in signature.parameters.values():
        must = parameter.default is parameter.empty
        if parameter.kind is parameter.VAR_KEYWORD:
            takes_any = True
        elif parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            takes.add(parameter.name)
            if must:
                needs.add(parameter.name)
        elif parameter.kind is parameter.POSITIONAL_ONLY and must:
            raise ValueError(
                f"Tool {tool!r}: func must take {parameter.name!r} by keyword, "
                "it is positional-only"
            )
    unknown = [] if takes_any else [n for n in parameters.get("properties", {}) if n not in takes]
    if unknown:
        raise ValueError(
            f"Tool {tool!r}: parameters allow {unknown[0]!r}, which func does not take"
            + _nearest(unknown[0], takes)
        )
    needs.difference_update(parameters.get("required", ()))
    if needs and not _MAY_REQUIRE.intersection(parameters):
        raise ValueError(
            f"Tool {tool!r}: func must have {min(needs)!r}, which parameters.required does not "
            "list; add it there, or give the function's argument a default"
        )
    return Signature(None if takes_any else frozenset(takes), frozenset(needs))


def check_undo(tool: str, undo: object) -> None:
    """Check that a tool's ``undo`` is None or can be called with arguments and a result.

    Raises
    ------
    TypeError, ValueError
        If it is not callable, or takes something else.
    """
    if undo is None:
        return
    if not callable(undo):
        raise TypeError(f"Tool {tool!r}: undo must be callable or None, not {type_name(undo)}")
    try:
        signature = inspect.signature(undo)
    except (TypeError, ValueError):  # some builtins have none
        return
    try:
        signature.bind({}, None)
    except TypeError:
        raise ValueError(
            f"Tool {tool!r}: undo must take two arguments by position: the call's arguments, as a "
            "dict, and its result"
        ) from None


def _nearest(name: str, known: Iterable[str] | None) -> str:
    near = get_close_matches(name[:64], sorted(known or ()), 1)
    return f"; did you mean {near[0]!r}?" if near else ""
