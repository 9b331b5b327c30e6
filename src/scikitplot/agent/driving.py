"""How a session has done what it cannot do itself: call a user's code, a store, a trail.

Imports nothing of this package. A session is a generator of requests. A request is a `partial`,
whose function and arguments are all that is to be called; the session is sent what that returned,
or what it raised is raised in it. A driver calls one after the other and decides nothing.
"""

from __future__ import annotations

from collections.abc import Generator
from functools import partial
from typing import Any, TypeAlias, TypeVar

__all__ = ["Requests", "drive"]

T = TypeVar("T")

Requests: TypeAlias = "Generator[partial[Any], Any, T]"


def drive(requests: Requests[T]) -> T:
    """Call what is requested, and return what the requests lead to.

    Examples
    --------
    >>> from functools import partial
    >>> from scikitplot.agent.driving import drive
    >>> def session():
    ...     found = yield partial(max, 3, 7)
    ...     return f"the largest is {found}"
    >>> drive(session())
    'the largest is 7'
    """
    try:
        request = next(requests)
        while True:
            try:
                reply = request()
            except BaseException as error:
                request = requests.throw(error)
            else:
                request = requests.send(reply)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    finally:
        requests.close()  # an interrupt may come between two requests
