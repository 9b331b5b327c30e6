"""Sockets that keep a deadline for all that is done with them.

Imports the standard library alone. The timeout of a plain socket bounds one wait, so that a server
that sends a byte now and then holds its reader for ever. Here each wait has what is left of the
whole.
"""

from __future__ import annotations

import socket
import ssl
import time
from typing import Any

__all__ = ["connect", "context"]


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError("the time is up")
    return left


class _Socket(socket.socket):
    deadline: float

    def recv_into(self, *arguments: Any, **options: Any) -> int:
        self.settimeout(_left(self.deadline))
        return super().recv_into(*arguments, **options)

    def sendall(self, *arguments: Any, **options: Any) -> None:
        self.settimeout(_left(self.deadline))  # in C, and it bounds all of the sending
        super().sendall(*arguments, **options)


class _TLSSocket(ssl.SSLSocket):
    deadline: float

    def recv_into(self, *arguments: Any, **options: Any) -> int:
        self.settimeout(_left(self.deadline))
        return super().recv_into(*arguments, **options)

    def send(self, *arguments: Any, **options: Any) -> int:
        self.settimeout(_left(self.deadline))
        return super().send(*arguments, **options)


def context() -> ssl.SSLContext:
    """Return the checks that Python makes by default: a trusted certificate of that very host."""
    made = ssl.create_default_context()
    made.sslsocket_class = _TLSSocket
    return made


def connect(host: str, port: int, tls: ssl.SSLContext | None, deadline: float) -> socket.socket:
    """Return a connection, tried on each address of the host in turn.

    Raises
    ------
    OSError
        If there is none, or not in time. What the system takes to look up a name counts, but is
        not cut short.
    """
    fault: OSError = OSError("the host has no address")
    for family, kind, protocol, _, address in socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM):
        plain = _Socket(family, kind, protocol)
        try:
            plain.deadline = deadline
            plain.settimeout(_left(deadline))
            plain.connect(address)
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if tls is None:
                return plain
            plain.settimeout(_left(deadline))  # of the whole handshake
            secure = tls.wrap_socket(plain, server_hostname=host)
            assert isinstance(secure, _TLSSocket)
            secure.deadline = deadline
            return secure
        except ssl.SSLError:
            plain.close()
            raise
        except OSError as error:
            plain.close()
            fault = error
        except BaseException:
            plain.close()
            raise
    raise fault
