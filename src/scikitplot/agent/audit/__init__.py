"""The trail: hash-chained records, where they go, and how they are checked.

Each run has a chain of its own. A record's line is canonical JSON with ``digest`` last, and the
digest is the SHA-256 of the line's bytes before ``,"digest":`` closed with ``}``; so any language
checks a trail with a JSON reader and SHA-256.
"""

from .base import AuditSink
from .jsonl import JsonlAuditSink
from .lines import read_audit
from .memory import MemoryAuditSink
from .record import AuditHead, AuditRecord, DamagedLine
from .verify import AuditProblem, verify_audit

__all__ = [
    "AuditHead",
    "AuditProblem",
    "AuditRecord",
    "AuditSink",
    "DamagedLine",
    "JsonlAuditSink",
    "MemoryAuditSink",
    "read_audit",
    "verify_audit",
]
