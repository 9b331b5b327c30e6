"""The lines of a trail in a file: reading them back, and telling what is wrong with one."""

from __future__ import annotations

import hmac
import os
import re
from collections.abc import Callable, Iterator
from hashlib import sha256
from typing import BinaryIO, NamedTuple, TypeVar

from .record import DIGEST_TAIL, MAX_LINE, AuditRecord, DamagedLine, parse_line

__all__ = ["Link", "link_of", "read_audit", "read_lines"]

Parsed = TypeVar("Parsed")

_CHUNK = 1 << 20
_BOM = b"\xef\xbb\xbf"
_START = b'{"data":{'
_RUN_ID = re.compile(rb'"run_id":"([0-9a-f]{64})"')
_SEQ = re.compile(rb'"seq":([0-9]{1,18})[,}]')
_ENDING = re.compile(
    rb'\},"event":"[a-z_]{1,40}","prev":"([0-9a-f]{64})","run_id":"([0-9a-f]{64})",'
    rb'"seq":(0|[1-9][0-9]{0,18}),"time":[-+.0-9e]{1,30},"digest":"([0-9a-f]{64})"\}\Z'
)
_ENDING_SIZE = 400
"""Bytes, more than an ending has."""


class Link(NamedTuple):
    """What a chain needs of a record."""

    run_id: str
    seq: int
    prev: str
    digest: str


def link_of(line: bytes, key: bytes | None) -> Link | None:
    """Return the link of a line whose digest is right; None where the line is to be parsed.

    It takes a tenth of the time that parsing takes, and tells nothing of the data.
    """
    found = _ENDING.search(line, max(0, len(line) - _ENDING_SIZE))
    if found is None or not line.startswith(_START):
        return None
    prev, run_id, seq, own = (part.decode() for part in found.groups())
    body = line[:-DIGEST_TAIL] + b"}"
    computed = sha256(body).hexdigest() if key is None else hmac.digest(key, body, "sha256").hex()
    if not hmac.compare_digest(computed, own):
        return None
    return Link(run_id, int(seq), prev, own)


def read_audit(path: str | os.PathLike[str]) -> Iterator[AuditRecord | DamagedLine]:
    """Read a trail back, line by line, whatever its size.

    Parameters
    ----------
    path : str or path-like
        The file of a `JsonlAuditSink`.

    Yields
    ------
    AuditRecord or DamagedLine
        Each line in order; a line that is no record is yielded as such, so that `verify_audit`
        can name it. Blank lines are nothing.

    Raises
    ------
    OSError
        If the file cannot be read.

    Examples
    --------
    >>> import os, tempfile
    >>> from scikitplot.agent import read_audit
    >>> path = os.path.join(tempfile.mkdtemp(), "trail.jsonl")
    >>> with open(path, "w") as file:
    ...     _ = file.write('{"data":{"goal":"fi')
    >>> [line.kind for line in read_audit(path)]
    ['torn']
    """
    with open(path, "rb") as file:
        yield from read_lines(file, 0, parse_line)


def read_lines(
    file: BinaryIO, number: int, parse: Callable[[bytes], Parsed]
) -> Iterator[Parsed | DamagedLine]:
    """Yield what `parse` makes of each line; `number` is that of the line before."""
    rewritten = False
    for raw in _lines(file):
        number += 1
        line = raw.rstrip(b"\n")
        if number == 1 and line.startswith(_BOM):
            line = line[len(_BOM) :]
            yield DamagedLine(number, "format", "the file starts with a byte order mark")
        if line.endswith(b"\r"):
            line = line[:-1]
            if not rewritten:
                rewritten = True
                yield DamagedLine(number, "format", "lines end with CR LF; a trail has LF alone")
        if not line:
            continue
        try:
            yield parse(line)
        except ValueError as error:
            yield _damaged(number, line, raw.endswith(b"\n"), file, str(error))


def _lines(file: BinaryIO) -> Iterator[bytes]:
    """Yield the lines of `file`; of one that is too long, its start and its end."""
    while raw := file.readline(MAX_LINE + 2):
        if len(raw) > MAX_LINE and not raw.endswith(b"\n"):
            while (more := file.readline(_CHUNK)) and not more.endswith(b"\n"):
                pass
            raw += more[-1:]
        yield raw


def _damaged(number: int, line: bytes, closed: bool, file: BinaryIO, reason: str) -> DamagedLine:
    is_last = not file.peek(1) if hasattr(file, "peek") else True
    starts = line.startswith(_START) or _START.startswith(line)
    if starts and not _is_complete(line) and not (closed and is_last):
        return DamagedLine(number, "torn", "cut off in the middle of a write")
    tail = line[-600:]
    run_ids, seqs = _RUN_ID.findall(tail), _SEQ.findall(tail)
    return DamagedLine(
        number,
        "damaged",
        f"no record: {reason}",
        run_ids[-1].decode() if run_ids else None,
        int(seqs[-1]) if seqs else None,
    )


def _is_complete(line: bytes) -> bool:
    """Return whether a line that is no record has the end of one, give or take a changed byte."""
    before, own = line[-140:-66], line[-66:-2]
    hexadecimal = sum(byte in b"0123456789abcdef" for byte in own)
    ends = hexadecimal == 64 or (hexadecimal == 63 and line.endswith(b'"}'))
    return ends and (b'"time"' in before or b'"seq"' in before)
