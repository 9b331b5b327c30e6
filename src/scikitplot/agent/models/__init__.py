"""Planners that ask a model.

The modules import in this order: `secret`, `sockets`, `transport`; `unwrap`, `replies`, `wording`,
`wire` and its forms; `repair`, `prompt`, `planner`, `provider`, `factories`.
"""

from .factories import anthropic, model_planner, openai_compatible
from .planner import ModelPlanner
from .replies import ModelUsage

__all__ = ["ModelPlanner", "ModelUsage", "anthropic", "model_planner", "openai_compatible"]
