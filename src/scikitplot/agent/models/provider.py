"""A provider that is asked over HTTP.

Imports the modules of this folder. It is imported when the first planner over HTTP is made, since
what the standard library has for HTTP and TLS takes a while to import.
"""

from __future__ import annotations

from ..values import JSON
from .replies import Reply, Unusable, error_status, has_error, is_rejected_reply, parse
from .transport import Answer, Transport
from .wire import Wire

__all__ = ["OverHTTP"]


class OverHTTP:
    """Asks a provider."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def __call__(self, wire: Wire, request: str, under: str) -> Reply:
        body: list[JSON] = [None]

        def status_of(answer: Answer) -> int:
            body[0] = _read(answer.body)
            return error_status(answer.status or 0, body[0])

        answer = self._transport.send(request.encode(), status_of)
        status = answer.status or 0
        if status == 400 and is_rejected_reply(body[0]):
            raise Unusable("rejected", status=status)
        if not 200 <= status <= 299:
            raise self._transport.error("the provider refused the request", answer)
        if has_error(body[0]):
            raise self._transport.error("the provider answered with an error", answer)
        return wire.read(body[0], under)


def _read(body: bytes) -> JSON:
    try:
        return parse(body.decode("utf-8-sig"))
    except (UnicodeDecodeError, Unusable):
        return None
