"""One request over HTTP, and its answer.

Imports the standard library, `values`, `visible` and `errors`. Rules that hold here:

* https, unless the user said otherwise; no redirect is followed, no proxy is asked, no cookie is
  kept, and nothing is read from the environment but where the system has its certificates;
* a try ends in time, whatever the server does, and what it may send is bounded;
* 408, 429, 5xx and faults of the network are tried again, a bounded number of times;
* the key is bare in `_exchange` alone, and no exception leaves that frame: every one is caught in
  `exchange`, and what is raised there has no traceback, cause or context that leads to it.
"""

from __future__ import annotations

import http.client
import math
import random
import re
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from datetime import timezone
from email.utils import parsedate_to_datetime
from typing import NamedTuple
from urllib.parse import urlsplit

from ..errors import ProviderError
from ..values import check_amount, check_type, type_name
from ..views.visible import escape
from .secret import Secret
from .sockets import connect, context

__all__ = ["MAX_RESPONSE", "MAX_RETRIES", "Answer", "Target", "Transport", "exchange"]

MAX_RESPONSE = 8_000_000
"""Bytes of one response's body."""

MAX_RETRIES = 5
MAX_WAIT = 30.0
"""Seconds between two tries, whatever ``Retry-After`` says."""

_FIRST_WAIT = 0.5
_DETAIL = 300
_CHUNK = 65_536
_HOST = re.compile(r"[A-Za-z0-9._:-]{1,253}", re.ASCII)
_PATH = re.compile(r"[A-Za-z0-9._~!$&'()*+,;=:@%/-]{0,1000}", re.ASCII)

sleep = time.sleep


class Target(NamedTuple):
    """Where requests go."""

    host: str
    port: int
    path: str
    is_tls: bool
    headers: tuple[tuple[str, str], ...]  # without the key
    key_header: tuple[str, str]  # its name, and what stands in front of the key

    @classmethod
    def of(
        cls,
        base_url: str,
        path: str,
        *,
        allow_insecure_http: bool,
        headers: Mapping[str, str],
        key_header: tuple[str, str],
    ) -> Target:
        """Return the target that `path` names below a base address, or raise what is wrong."""
        check_type("base_url", base_url, str)
        check_type("allow_insecure_http", allow_insecure_http, bool)
        try:
            parts = urlsplit(base_url)
            host, port = parts.hostname or "", parts.port
        except ValueError:
            raise ValueError("base_url is no address such as https://host/v1") from None
        if parts.scheme == "http" and not allow_insecure_http:
            raise ValueError(
                "base_url must start with https://; allow_insecure_http=True allows http, for a "
                "server on this machine or in a network that you trust with the key and the prompts"
            )
        if parts.scheme not in ("http", "https") or not _HOST.fullmatch(host):
            raise ValueError("base_url must be an address such as https://host/v1")
        if parts.username is not None or parts.password is not None:
            raise ValueError("base_url must hold no user or password; pass the key as api_key")
        whole = parts.path.rstrip("/") + path
        if parts.query or parts.fragment or "?" in base_url or not _PATH.fullmatch(whole):
            raise ValueError("base_url must end with a plain path, without a query or a fragment")
        is_tls = parts.scheme == "https"
        port = port if port is not None else 443 if is_tls else 80
        return cls(host, port, whole, is_tls, tuple(headers.items()), key_header)


class Answer(NamedTuple):
    """What became of one try."""

    status: int | None = None
    body: bytes = b""
    retry_after: float | None = None  # seconds
    error: str | None = None  # type of the exception where there is no status
    may_retry: bool = False


def exchange(
    target: Target, secret: Secret | None, body: bytes, tls: ssl.SSLContext | None, seconds: float
) -> Answer:
    """Send one request; return what came back, also where nothing did."""
    interrupt: BaseException
    try:
        return _exchange(target, secret, body, tls, time.monotonic() + seconds)
    except ssl.SSLCertVerificationError as error:
        return Answer(error=type_name(error))
    except (OSError, http.client.HTTPException) as error:
        return Answer(error=type_name(error), may_retry=True)
    except Exception as error:
        return Answer(error=type_name(error))
    except BaseException as error:
        interrupt = error
    # Ctrl-C, or a task's end: it goes on as it is, but without the frames in which the key is bare.
    interrupt.__context__ = interrupt.__cause__ = None
    raise interrupt.with_traceback(None)


def _exchange(
    target: Target,
    secret: Secret | None,
    body: bytes,
    tls: ssl.SSLContext | None,
    deadline: float,
) -> Answer:
    key = "" if secret is None else secret.reveal()
    host, port = target.host, target.port
    connection = (
        http.client.HTTPConnection(host, port)
        if tls is None
        else http.client.HTTPSConnection(host, port, context=tls)
    )
    connection.set_debuglevel(0)  # it would print the headers
    sock = connect(host, port, tls, deadline)
    try:
        connection.sock = sock
        connection.putrequest("POST", target.path, skip_accept_encoding=True)
        for name, value in target.headers:
            connection.putheader(name, value)
        if key:
            name, before = target.key_header
            connection.putheader(name, before + key)
        connection.putheader("Accept-Encoding", "identity")
        connection.putheader("Connection", "close")
        connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body)
        with connection.getresponse() as response:
            received = bytearray()
            while chunk := response.read(_CHUNK):
                received += chunk
                if len(received) > MAX_RESPONSE:
                    return Answer(error="ResponseTooLarge")
            if response.length:  # `read` with a size takes an early end for the end
                raise http.client.IncompleteRead(b"", response.length)
            # Some answer with the key that they refuse.
            body = bytes(received).replace(key.encode(), b"[key]") if key else bytes(received)
            return Answer(response.status, body, _seconds(response.headers.get("Retry-After")))
    finally:
        connection.close()
        sock.close()


class Transport:
    """Sends requests to one target, again where that may help.

    Parameters
    ----------
    target : Target
        Where they go.
    secret : Secret or None
        The key.
    timeout : float
        Seconds for one try in all, from the connection to the last byte.
    retries : int
        Further tries, 0 to 5.
    error_detail : bool
        Whether the message of an error may hold the first 300 characters of what came back.
    """

    __slots__ = ("_detail", "_lock", "_retries", "_secret", "_target", "_timeout", "_tls")

    def __init__(
        self,
        target: Target,
        secret: Secret | None,
        *,
        timeout: float,
        retries: int,
        error_detail: bool,
    ) -> None:
        timeout = check_amount("timeout", timeout)
        if timeout == 0:
            raise ValueError("timeout must be more than 0 seconds")
        check_type("retries", retries, int)
        if not 0 <= retries <= MAX_RETRIES:
            raise ValueError(f"retries must be 0 to {MAX_RETRIES}")
        check_type("error_detail", error_detail, bool)
        self._target = target
        self._secret = secret
        self._timeout = min(timeout, threading.TIMEOUT_MAX)
        self._retries = retries
        self._detail = error_detail
        self._tls: ssl.SSLContext | None = None
        self._lock = threading.Lock()

    def send(self, body: bytes, status_of: Callable[[Answer], int | None]) -> Answer:
        """Return the first answer that is neither to be tried again nor a failure of the network.

        Parameters
        ----------
        body : bytes
            JSON.
        status_of : callable
            Returns the status of an answer, which may say inside another one than outside.

        Raises
        ------
        ProviderError
            If no try gave one.
        """
        tls = self._context() if self._target.is_tls else None
        tries = 0
        while True:
            answer = exchange(self._target, self._secret, body, tls, self._timeout)
            tries += 1
            status = None if answer.error is not None else status_of(answer)
            again = answer.may_retry if status is None else _may_pass(status)
            if answer.error is None and not again:
                return answer._replace(status=status)
            if not again or tries > self._retries:
                break
            sleep(_wait(tries, answer.retry_after))
        times = f"{tries} tries" if tries > 1 else "one try"
        if answer.error is not None:
            raise ProviderError(f"the provider gave no answer in {times}", error=answer.error)
        raise self.error(f"the provider gave no reply in {times}", answer._replace(status=status))

    def error(self, reason: str, answer: Answer) -> ProviderError:
        """Return the error of an answer, with a part of its text where the user wants that."""
        if self._detail and answer.body:
            text = answer.body[: 8 * _DETAIL].decode("utf-8", "replace")
            if self._secret is not None:
                text = self._secret.scrub(text)
            reason = f"{reason}: {escape(text[:_DETAIL])}"
        return ProviderError(reason, status=answer.status)

    def _context(self) -> ssl.SSLContext:
        with self._lock:  # it reads the system's certificates, once
            if self._tls is None:
                self._tls = context()
            return self._tls


def _may_pass(status: int) -> bool:
    return status in (408, 429) or 500 <= status <= 599


def _wait(tries: int, asked: float | None) -> float:
    """Return the seconds to wait after so many tries, what the server asked for if it did."""
    if asked is not None:
        return asked
    longest = min(MAX_WAIT, _FIRST_WAIT * 2.0**tries)
    return longest * random.uniform(0.5, 1.0)


def _seconds(retry_after: str | None) -> float | None:
    """Return what ``Retry-After`` asks for, a number of seconds or a date, up to `MAX_WAIT`."""
    if retry_after is None:
        return None
    try:
        seconds = float(retry_after)
    except ValueError:
        try:
            date = parsedate_to_datetime(retry_after)
            if date.tzinfo is None:  # the form of C's asctime, which means GMT too
                date = date.replace(tzinfo=timezone.utc)
            seconds = date.timestamp() - time.time()
        except (ValueError, OverflowError, OSError):
            return None
    return None if math.isnan(seconds) else min(max(seconds, 0.0), MAX_WAIT)
