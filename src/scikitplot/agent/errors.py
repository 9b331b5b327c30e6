"""The errors that callers may catch.

Imports nothing. A message says what is wrong, with what, where, and what to do; it never holds a
value that came from a planner, a tool, a file or a server.
"""

from __future__ import annotations

from typing import Any

__all__ = ["AgentError", "AuditError", "ProviderError", "SchemaError", "StateError", "ToolError"]


class AgentError(Exception):
    """Base of every error of this package that is not a plain ``TypeError`` or ``ValueError``.

    Examples
    --------
    >>> from scikitplot.agent import AgentError, StateError
    >>> issubclass(StateError, AgentError)
    True
    """


class StateError(AgentError):
    """A saved run cannot be used: it is older than the stored one, damaged, or claimed elsewhere.

    Nothing was written by the call that raises it. Only where the connection to a database server
    was lost and cannot be replaced, nobody knows; resuming the run finds out.

    Examples
    --------
    >>> from scikitplot.agent import RunState, StateError
    >>> try:
    ...     RunState.from_json('{"version": 99}')
    ... except StateError as error:
    ...     print(error)
    saved state: version is 99, newer than 1, the newest this release reads; upgrade the package
    """


class AuditError(AgentError):
    """A trail cannot be extended or read: the records before the new one are damaged.

    Examples
    --------
    >>> from scikitplot.agent import AgentError, AuditError
    >>> issubclass(AuditError, AgentError)
    True
    """


class SchemaError(AgentError, ValueError):
    """A JSON Schema that cannot be enforced whole, refused where it is defined.

    Parameters
    ----------
    keyword : str
        The keyword at fault, ``""`` where the schema itself is no schema.
    pointer : str
        JSON pointer (RFC 6901) of the schema that holds the keyword.
    reason : str
        What is wrong and what to write in its place.

    Examples
    --------
    >>> from scikitplot.agent import SchemaError, Tool
    >>> try:
    ...     Tool("save", lambda text: text, parameters={"type": "objekt"})
    ... except SchemaError as error:
    ...     print(error.keyword, repr(error.pointer))
    type ''
    """

    def __init__(self, keyword: str, pointer: str, reason: str) -> None:
        self.keyword = keyword
        self.pointer = pointer
        self.reason = reason
        super().__init__(keyword, pointer, reason)

    def __str__(self) -> str:
        place = f"{self.pointer}/{self.keyword}" if self.keyword else self.pointer
        return f"schema {place or '/'}: {self.reason}"


class ProviderError(AgentError):
    """A model's provider gave no reply that could be used.

    It never holds an address, a key or, unless you asked for it with ``error_detail=True``, a part
    of what the provider sent.

    Parameters
    ----------
    reason : str
        What went wrong, in words of this package.
    status : int or None, default=None
        The HTTP status that the provider answered with, also where its answer says so inside.
    error : str or None, default=None
        The name of the type of the exception, where there was no answer.
    usage : Usage or None, default=None
        What was consumed all the same, as far as the provider reported it.

    Examples
    --------
    >>> from scikitplot.agent import ProviderError
    >>> error = ProviderError("the provider refused the request", status=401)
    >>> print(error, error.status)
    the provider refused the request (status 401) 401
    """

    def __init__(
        self, reason: str, status: int | None = None, error: str | None = None, usage: Any = None
    ) -> None:
        self.reason = reason
        self.status = status
        self.error = error
        self.usage = usage
        super().__init__(reason, status, error, usage)

    def __str__(self) -> str:
        if self.status is not None:
            return f"{self.reason} (status {self.status})"
        return self.reason if self.error is None else f"{self.reason} ({self.error})"


class ToolError(AgentError):
    """Raised by a tool to say something to the planner on purpose.

    The text of any other exception stays out of the state and the trail, because it may hold a
    secret; only its type is told.

    Parameters
    ----------
    message : str
        What the planner reads as the step's error. Cut at 2,000 characters.

    Raises
    ------
    TypeError
        If `message` is not a string.

    Examples
    --------
    >>> from scikitplot.agent import Agent, Decision, Tool, ToolError
    >>> def weather(city):
    ...     raise ToolError("no station in this city; try the nearest large one")
    >>> schema = {"type": "object", "properties": {"city": {"type": "string"}},
    ...           "required": ["city"], "additionalProperties": False}
    >>> def planner(state, tools):
    ...     if not state.steps:
    ...         return Decision.act("weather", {"city": "Oz"})
    ...     return Decision.finish(state.steps[-1].error)
    >>> Agent([Tool("weather", weather, parameters=schema)], planner).run("weather?").answer
    'no station in this city; try the nearest large one'
    """

    def __init__(self, message: str) -> None:
        if not isinstance(message, str):
            raise TypeError(f"message must be a str, not {type(message).__name__}")
        self.message = message
        super().__init__(message)
