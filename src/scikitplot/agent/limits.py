"""Limits: how much a run may use up.

Imports `values`. Limits are a value: they check themselves when made and never change.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields

from .values import JSON, check_amount, type_name

__all__ = ["Limits"]


@dataclass(frozen=True, slots=True)
class Limits:
    """What ends a run. Each limit is checked before the call that it bounds.

    Parameters
    ----------
    max_steps : int, default=16
        Decisions, denied ones too, over all sessions of the run. At least 1.
    max_tool_calls : int or None, default=None
        Calls that are started; one more is denied at the Budget gate.
    max_cost : float or None, default=None
        Sum of `Tool.cost` of the started calls and of the cost that the planner reports, compared
        exactly as decimals. A call that would pass it is denied; at or past it the run stops.
    max_tokens : int or None, default=None
        Tokens that the planner reports. At or past it the run stops; a planner that does not
        report them fails the run.
    max_seconds : float or None, default=None
        Running time over all sessions; time spent waiting for a person does not count.
    max_repeats : int or None, default=None
        How often the same tool may be proposed again in a row with the same arguments. One
        repetition more is denied and stops the run.
    max_result_bytes : int, default=1000000
        The most bytes of JSON that one call may return, at most 10,000,000.

    Raises
    ------
    TypeError, ValueError
        If a limit is of the wrong type (a bool is no number), negative, NaN or infinite.

    Examples
    --------
    >>> from scikitplot.agent import Limits
    >>> Limits(max_steps=4, max_cost=0.3).max_cost
    0.3
    """

    max_steps: int = 16
    max_tool_calls: int | None = None
    max_cost: float | None = None
    max_tokens: int | None = None
    max_seconds: float | None = None
    max_repeats: int | None = field(default=None, kw_only=True)
    max_result_bytes: int = field(default=1_000_000, kw_only=True)

    def __post_init__(self) -> None:
        for name, least, most in _COUNTS:
            value = getattr(self, name)
            if value is None and name not in ("max_steps", "max_result_bytes"):
                continue
            if type(value) is not int:
                raise TypeError(f"{name} must be an int, not {type_name(value)}")
            if not least <= value <= most:
                raise ValueError(f"{name} must be at least {least} and at most {most}")
        for name in ("max_cost", "max_seconds"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, check_amount(name, value))

    def to_dict(self) -> dict[str, JSON]:
        """Return a JSON-compatible mapping of all limits, None where there is none.

        Examples
        --------
        >>> from scikitplot.agent import Limits
        >>> Limits().to_dict()["max_steps"]
        16
        """
        return {limit.name: getattr(self, limit.name) for limit in fields(self)}


_MANY = 2**62
_COUNTS = (
    ("max_steps", 1, _MANY),
    ("max_tool_calls", 0, _MANY),
    ("max_tokens", 0, _MANY),
    ("max_repeats", 0, _MANY),
    ("max_result_bytes", 1, 10_000_000),
)
