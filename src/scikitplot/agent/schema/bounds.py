"""The bounds of schemas and validations, and what is raised inside when one is met.

Imports nothing. What exceeds a bound is refused with a `SchemaError` when the schema is compiled,
or denied with a problem when a value is validated; it never hangs and never fills the memory.
"""

from __future__ import annotations

__all__ = ["MAX_DEPTH", "MAX_PROBLEMS", "MAX_SUBSCHEMAS", "MAX_VALUES", "TooMuch"]

MAX_DEPTH = 64
"""Levels of subschemas in one schema."""

MAX_SUBSCHEMAS = 10_000
"""Subschemas of one schema, itself included."""

MAX_VALUES = 100_000
"""Values in all `enum`, `const` and name lists of one schema together."""

MAX_PROBLEMS = 1_000
"""Problems that are listed for one value; one more says that there are others."""


class TooMuch(Exception):
    """A validation met a bound. The value is denied, whatever the schema would say."""
