"""Tools: what an agent may be allowed to call.

Imports `schema`, `signature`, `definition`, `values` and `errors`. Rules that hold here:

* a tool checks itself when it is made: its name, its schema, and that the function can take every
  argument that the schema allows and is given every argument that it must have;
* a tool never changes; `describe` gives copies;
* the digest of a tool covers all that a planner or an approver is shown of it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from . import schema
from .definition import read_definition
from .errors import SchemaError
from .signature import Adapted, Signature, check_undo, fit
from .values import (
    JSON,
    InvalidValue,
    admit,
    check_amount,
    check_names,
    check_text,
    check_type,
    digest,
    encode,
    type_name,
)

__all__ = ["Tool", "ToolEffect"]

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
        Called with the validated arguments as keyword arguments. It returns a JSON value, or is
        async: what it returns is awaited then, in an event loop that the agent keeps for that.
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
        Seconds after which the call is given up (``tool_timeout``). An async function is cancelled
        then. Any other cannot be stopped: it goes on in a thread of its own. What either returns
        later is dropped.
    trusted : bool, default=False
        Whether nobody but the owner can write what it returns. The result of any other tool makes
        the run tainted; see `Flow`.
    secret : bool, default=False
        Whether what it returns is to stay here; see `Flow`.
    targets : iterable of str or None, default=None
        Names of the arguments that say where the effect lands; None means all of them.
    undo : callable or None, default=None
        The inverse: ``undo(arguments, result)`` takes back a call that returned `result`, see
        `Agent.undo`. It is called as the tool is, async or not, and may raise `ToolError`.

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
    trusted: bool
    secret: bool
    targets: tuple[str, ...] | None
    undo: Callable[[dict[str, JSON], JSON], Any] | None
    digest: str = field(init=False)
    scopes_text: str = field(init=False)
    invoke: Callable[[dict[str, JSON]], Any] = field(init=False)  # of valid arguments
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
        trusted: bool = False,
        secret: bool = False,
        targets: Iterable[str] | None = None,
        undo: Callable[[dict[str, JSON], JSON], Any] | None = None,
    ) -> None:
        if not isinstance(name, str):
            raise TypeError(f"name must be a str, not {type_name(name)}")
        if not _NAME.fullmatch(name):
            raise ValueError("name must be 1 to 64 of the characters A-Z a-z 0-9 _ -")
        given: Any = func
        adapted = given if type(given) is Adapted else None
        func = given.func if adapted is not None else given
        if not callable(func):
            raise TypeError(f"Tool {name!r}: func must be callable, not {type_name(func)}")
        effect = ToolEffect.of(f"Tool {name!r}: effect", effect)
        if idempotent is not None and type(idempotent) is not bool:
            raise TypeError(f"Tool {name!r}: idempotent must be a bool or None")
        if timeout is not None:
            timeout = check_amount(f"Tool {name!r}: timeout", timeout)
            if timeout == 0:
                raise ValueError(f"Tool {name!r}: timeout must be more than 0 seconds")
        check_undo(name, undo)
        put = object.__setattr__
        put(self, "name", name)
        put(self, "func", func)
        put(self, "description", check_text(f"Tool {name!r}: description", description))
        put(self, "effect", effect)
        put(self, "scopes", check_names(f"Tool {name!r}: scopes", scopes))
        put(self, "cost", check_amount(f"Tool {name!r}: cost", cost))
        put(self, "idempotent", effect is ToolEffect.READ if idempotent is None else idempotent)
        put(self, "timeout", timeout)
        put(self, "undo", undo)
        put(self, "parameters", self._admit_parameters(parameters))
        for flag, value in (("trusted", trusted), ("secret", secret)):
            check_type(f"Tool {name!r}: {flag}", value, bool)
            put(self, flag, value)
        put(self, "targets", self._check_targets(targets))
        put(self, "_schema", self._compile())
        if adapted is None:
            put(self, "_signature", fit(name, func, self.parameters))
            put(self, "invoke", lambda arguments: func(**arguments))
        else:
            put(self, "_signature", Signature(None, frozenset()))
            put(self, "invoke", adapted.invoke)
        entry = {
            "name": name,
            "description": self.description,
            "parameters": self.parameters,
            "effect": effect.value,
            "scopes": sorted(self.scopes),
            "cost": self.cost,
        }
        more = {"idempotent": self.idempotent, "trusted": trusted, "secret": secret}
        targets_told = None if self.targets is None else list(self.targets)
        put(self, "digest", digest(encode({**entry, **more, "targets": targets_told})))
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

    def _check_targets(self, targets: Iterable[str] | None) -> tuple[str, ...] | None:
        if targets is None:
            return None
        names = tuple(sorted(check_names(f"Tool {self.name!r}: targets", targets)))
        known = self.parameters.get("properties", {})
        for target in names:
            if target not in known:
                raise ValueError(
                    f"Tool {self.name!r}: targets names {target!r}, which is no property of "
                    "parameters"
                )
        return names

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

    @classmethod
    def from_dict(
        cls, definition: dict[str, JSON], func: Callable[..., Any], **options: Any
    ) -> Tool:
        """Make a tool of a definition in the form of OpenAI, Anthropic or MCP.

        Parameters
        ----------
        definition : dict
            A function as the chat completions of OpenAI have it (``{"type": "function",
            "function": {...}}``) or its responses (the same, flat), or a tool as Anthropic has it
            (``input_schema``) or MCP (``inputSchema``). Its name, description and schema are taken
            whole. What else these forms have says nothing of what a call does: it is left out,
            MCP's ``annotations`` too, which are no more than the server's word. What none of them
            has is refused.
        func : callable
            What it calls.
        **options
            As `Tool` takes them, from ``effect`` on.

        Raises
        ------
        TypeError, ValueError
            If `definition` is in none of these forms, or no tool can be made of it.

        Examples
        --------
        >>> from scikitplot.agent import Tool
        >>> definition = {"name": "ping", "description": "Is it there?",
        ...               "input_schema": {"type": "object", "properties": {}}}
        >>> Tool.from_dict(definition, lambda: "pong", effect="external")
        Tool('ping', effect='external', scopes=[], cost=0.0)
        """
        name, description, parameters = read_definition(definition)
        return cls(name, func, description=description, parameters=parameters, **options)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function itself, with what it asks for: for tests, and other code of yours.

        Examples
        --------
        >>> from scikitplot.agent import Tool
        >>> Tool("ping", lambda: "pong")()
        'pong'
        """
        return self.func(*args, **kwargs)

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
