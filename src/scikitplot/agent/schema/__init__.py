"""JSON Schema: what it accepts it enforces, everything else it refuses when it is compiled.

Drafts 2020-12 and, where ``$schema`` says so, 07. Useful by itself: it needs nothing of the rest of
the package.
"""

from __future__ import annotations

from ..errors import SchemaError
from .compiled import CompiledSchema, Problem, compile, validate

__all__ = ["CompiledSchema", "Problem", "SchemaError", "compile", "validate"]
