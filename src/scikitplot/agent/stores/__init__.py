"""Where runs are saved.

A saved run is a small head (JSON text, rewritten) and a log of finished steps (JSON texts, appended
and never rewritten). Stores keep texts: what is in them is the business of `state`.

A store is any object with the four methods of `StateStore`; none has to inherit from it.
"""

from .base import SavedRun, StateStore
from .memory import MemoryStore
from .postgresql import SqlStore
from .sqlite import SqliteStore

__all__ = ["MemoryStore", "SavedRun", "SqlStore", "SqliteStore", "StateStore"]
