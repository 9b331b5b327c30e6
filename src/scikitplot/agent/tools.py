"""Tools: what an agent may be allowed to call.

Imports `schema`, `values` and `errors`. Rules that hold here:

* a tool checks itself when it is made: its name, its schema, and that the function can take every
  argument that the schema allows and is given every argument that it must have;
* a tool and a set of tools never change; `describe` gives copies;
* the digest of a tool covers all that a planner or an approver is shown of it.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from . import schema
from .errors import SchemaError
from .signature import Signature, fit
from .values import (
    JSON,
    InvalidValue,
    admit,
    check_amount,
    check_names,
    check_text,
    digest,
    encode,
    type_name,
)

__all__ = ["Tool", "ToolEffect", "Toolset"]

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
_NO_ARGUMENTS = {"type": "object", "properties": {}, "additionalProperties": False}


class ToolEffect(str, Enum):
    """What a call may do to the world.

    Examples
    --------
    >>> from scikitplot.agent import ToolEffect
    >>> [effect.value for effect in ToolEffect]
    ['read', 'write', 'external']
    """

    READ = "read"
    """Changes nothing."""
    WRITE = "write"
    """Changes something that the caller owns."""
    EXTERNAL = "external"
    """Reaches others: sends, buys, publishes."""

    __hash__ = str.__hash__  # that of an Enum is a function in Python, asked at each call's gates

    @classmethod
    def of(cls, name: str, value: object) -> ToolEffect:
        """Return the effect that `value` means, or raise an error that names the argument."""
        if not isinstance(value, str):
            raise TypeError(f"{name} must be a ToolEffect or a str, not {type_name(value)}")
        try:
            return cls(value)
        except ValueError:
            known = ", ".join(repr(effect.value) for effect in cls)
            raise ValueError(f"{name} must be one of {known}") from None


@dataclass(frozen=True, slots=True, init=False, eq=False)
class Tool:
    """A function that a planner may propose to call, with what the gates must know of it.

    Parameters
    ----------
    name : str
        1 to 64 of the characters ``A-Z a-z 0-9 _ -``.
    func : callable
        Called with the validated arguments as keyword arguments. It returns a JSON value.
    description : str, default=""
        What the planner is told about it.
    parameters : dict or None, default=None
        JSON Schema (2020-12, or draft-07 by ``$schema``) of the arguments, of type ``object``.
        None means that there are no arguments.
    effect : ToolEffect or str, default="read"
        ``"read"``, ``"write"`` or ``"external"``.
    scopes : iterable of str, default=()
        Scopes that the policy must grant, all of them.
    cost : float, default=0.0
        What a started call costs, in the unit of `Limits.max_cost`.
    idempotent : bool or None, default=None
        Whether a call that was cut off may start again; None means that only a ``read`` may.
    timeout : float or None, default=None
        Seconds after which the call is given up (``tool_timeout``). The function itself cannot be
        stopped: it goes on in a thread of its own and what it returns later is dropped.

    Raises
    ------
    TypeError, ValueError
        If an argument is of the wrong type or value, or the schema and the signature of `func` do
        not fit. `SchemaError` if the schema cannot be enforced.

    Examples
    --------
    >>> from scikitplot.agent import Tool
    >>> Tool("add", lambda a, b: a + b, parameters={
    ...     "type": "object",
    ...     "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
    ...     "required": ["a", "b"],
    ...     "additionalProperties": False,
    ... })
    Tool('add', effect='read', scopes=[], cost=0.0)
    """

    name: str
    func: Callable[..., Any]
    description: str
    parameters: dict[str, JSON]
    effect: ToolEffect
    scopes: frozenset[str]
    cost: float
    idempotent: bool
    timeout: float | None
    digest: str = field(init=False)
    scopes_text: str = field(init=False)
    _described: str = field(init=False)
    _schema: schema.CompiledSchema = field(init=False)
    _signature: Signature = field(init=False)

    def __init__(
        self,
        name: str,
        func: Callable[..., Any],
        *,
        description: str = "",
        parameters: dict[str, JSON] | None = None,
        effect: ToolEffect | str = ToolEffect.READ,
        scopes: Iterable[str] = (),
        cost: float = 0.0,
        idempotent: bool | None = None,
        timeout: float | None = None,
    ) -> None:
        if not isinstance(name, str):
            raise TypeError(f"name must be a str, not {type_name(name)}")
        if not _NAME.fullmatch(name):
            raise ValueError("name must be 1 to 64 of the characters A-Z a-z 0-9 _ -")
        if not callable(func):
            raise TypeError(f"Tool {name!r}: func must be callable, not {type_name(func)}")
        if inspect.iscoroutinefunction(func):
            raise TypeError(
                f"Tool {name!r}: func is async; wrap it in a function that waits for it"
            )
        effect = ToolEffect.of(f"Tool {name!r}: effect", effect)
        if idempotent is not None and type(idempotent) is not bool:
            raise TypeError(f"Tool {name!r}: idempotent must be a bool or None")
        if timeout is not None:
            timeout = check_amount(f"Tool {name!r}: timeout", timeout)
            if timeout == 0:
                raise ValueError(f"Tool {name!r}: timeout must be more than 0 seconds")
        put = object.__setattr__
        put(self, "name", name)
        put(self, "func", func)
        put(self, "description", check_text(f"Tool {name!r}: description", description))
        put(self, "effect", effect)
        put(self, "scopes", check_names(f"Tool {name!r}: scopes", scopes))
        put(self, "cost", check_amount(f"Tool {name!r}: cost", cost))
        put(self, "idempotent", effect is ToolEffect.READ if idempotent is None else idempotent)
        put(self, "timeout", timeout)
        put(self, "parameters", self._admit_parameters(parameters))
        put(self, "_schema", self._compile())
        put(self, "_signature", fit(name, func, self.parameters))
        entry = {
            "name": name,
            "description": self.description,
            "parameters": self.parameters,
            "effect": effect.value,
            "scopes": sorted(self.scopes),
            "cost": self.cost,
        }
        put(self, "digest", digest(encode({**entry, "idempotent": self.idempotent})))
        put(self, "scopes_text", encode(entry["scopes"]))
        put(self, "_described", json.dumps(entry))

    def _admit_parameters(self, parameters: object) -> dict[str, JSON]:
        if parameters is None:
            parameters = _NO_ARGUMENTS
        if type(parameters) is not dict:
            raise TypeError(
                f"Tool {self.name!r}: parameters must be a dict or None, "
                f"not {type_name(parameters)}"
            )
        try:
            copy: dict[str, JSON] = admit(parameters, max_depth=256, allow_tuples=True)[0]
        except InvalidValue as error:
            raise ValueError(
                f"Tool {self.name!r}: parameters{error.pointer}: {error.reason}"
            ) from None
        if copy.get("type") != "object":
            raise SchemaError(
                "type", "", f'the parameters of tool {self.name!r} must have "type": "object"'
            )
        return copy

    def _compile(self) -> schema.CompiledSchema:
        try:
            return schema.compile(self.parameters)
        except SchemaError as error:
            raise SchemaError(
                error.keyword, error.pointer, f"{error.reason} (tool {self.name!r})"
            ) from None

    def problems(self, arguments: dict[str, JSON]) -> list[schema.Problem]:
        """Return what is wrong with `arguments`, empty when they may be passed to the function.

        Parameters
        ----------
        arguments : dict
            JSON values by argument name.

        Returns
        -------
        list of Problem
            Each with a JSON pointer, the rule and a message that holds no value.

        Examples
        --------
        >>> from scikitplot.agent import Tool
        >>> [str(problem) for problem in Tool("ping", lambda: "pong").problems({"host": "a"})]
        ['/host: is not allowed here']
        """
        try:
            problems = schema.validate(self._schema, arguments)
        except RecursionError:  # the caller left no room on the stack; what is not judged is denied
            return [schema.Problem("", "depth", "cannot be judged so deep in the call stack")]
        return problems or self._signature.problems(arguments)

    def describe(self) -> dict[str, JSON]:
        """Return a new copy of what a planner is shown: name, description, parameters and so on.

        Examples
        --------
        >>> from scikitplot.agent import Tool
        >>> sorted(Tool("ping", lambda: "pong").describe())
        ['cost', 'description', 'effect', 'name', 'parameters', 'scopes']
        """
        entry: dict[str, JSON] = json.loads(self._described)
        return entry

    def __repr__(self) -> str:
        return (
            f"Tool({self.name!r}, effect={self.effect.value!r}, "
            f"scopes={sorted(self.scopes)}, cost={self.cost})"
        )


class Toolset:
    """Tools by name. It never changes, and no two tools share a name.

    Parameters
    ----------
    tools : iterable of Tool
        The tools, in the order in which a planner sees them.

    Raises
    ------
    TypeError, ValueError
        If an item is no `Tool`, or two have one name.

    Examples
    --------
    >>> from scikitplot.agent import Tool, Toolset
    >>> tools = Toolset([Tool("ping", lambda: "pong"), Tool("now", lambda: 0.0)])
    >>> "ping" in tools, len(tools), tools["now"].effect.value
    (True, 2, 'read')
    >>> [entry["name"] for entry in tools.describe()]
    ['ping', 'now']
    """

    __slots__ = ("_by_name", "_digest")

    def __init__(self, tools: Iterable[Tool]) -> None:
        if isinstance(tools, (str, bytes)) or not isinstance(tools, Iterable):
            raise TypeError(f"tools must be an iterable of Tool, not {type_name(tools)}")
        by_name: dict[str, Tool] = {}
        for tool in tools:
            if not isinstance(tool, Tool):
                raise TypeError(f"tools must hold Tool objects, not {type_name(tool)}")
            if tool.name in by_name:
                raise ValueError(f"two tools are named {tool.name!r}; rename one")
            by_name[tool.name] = tool
        self._by_name = by_name
        self._digest = digest(encode([tool.digest for tool in by_name.values()]))

    @property
    def digest(self) -> str:
        """SHA-256 over the definitions of all tools, 64 hexadecimal digits."""
        return self._digest

    def describe(self) -> list[dict[str, JSON]]:
        """Return a new copy of what a planner is shown of each tool.

        Returns
        -------
        list of dict
            ``name``, ``description``, ``parameters`` (the schema as it was given), ``effect``,
            ``scopes`` and ``cost`` of each tool.
        """
        return [tool.describe() for tool in self._by_name.values()]

    def get(self, name: str) -> Tool | None:
        """Return the tool of this name, or None."""
        return self._by_name.get(name)

    def __getitem__(self, name: str) -> Tool:
        return self._by_name[name]

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._by_name.values())

    def __len__(self) -> int:
        return len(self._by_name)

    def __repr__(self) -> str:
        return f"Toolset({list(self._by_name)})"
