"""How a session has done what it cannot do itself: call a user's code, a store, a trail.

Imports nothing of this package. A session is a generator of requests. A request names a function
and what to call it with; the session is sent what that returned, or what it raised is raised in it.
A driver calls one after the other and decides nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, TypeAlias, TypeVar

__all__ = ["Request", "Requests", "drive", "request", "steps_of"]

T = TypeVar("T")

Request: TypeAlias = "tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]"
Requests: TypeAlias = "Generator[Request, Any, T]"


def request(function: Callable[..., Any], *arguments: Any, **keywords: Any) -> Request:
    """Return the request that a function be called."""
    return function, arguments, keywords


def steps_of(requests: Requests[T]) -> Generator[None, None, T]:
    """Call what is requested, one request a step, and return what the requests lead to."""
    try:
        function, arguments, keywords = next(requests)
        while True:
            try:
                reply = function(*arguments, **keywords)
            except BaseException as error:
                function, arguments, keywords = requests.throw(error)
            else:
                function, arguments, keywords = requests.send(reply)
            yield
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    finally:
        requests.close()


def drive(requests: Requests[T]) -> T:
    """Call what is requested, and return what the requests lead to.

    Examples
    --------
    >>> from scikitplot.agent.driving import drive, request
    >>> def session():
    ...     found = yield request(max, 3, 7)
    ...     return f"the largest is {found}"
    >>> drive(session())
    'the largest is 7'
    """
    try:
        function, arguments, keywords = next(requests)
        while True:
            try:
                reply = function(*arguments, **keywords)
            except BaseException as error:
                function, arguments, keywords = requests.throw(error)
            else:
                function, arguments, keywords = requests.send(reply)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    finally:
        requests.close()  # an interrupt may come between two requests
