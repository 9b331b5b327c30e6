"""A view as Markdown, for a document or a notebook.

Imports `blocks` and `visible`. The rule that holds here: what comes from outside is made visible
first, and then each character that means something in Markdown, HTML or a formula stands as a
character reference inside ``<code>``: whichever of the Markdowns reads it, it is text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..values import JSON
from .blocks import Block, Fact, Fields, Heading, StepRow, Table, Timeline, Values
from .visible import escape, excerpt_of

__all__ = ["as_markdown"]

_ROW = 100  # characters of what a terminal shows in a row
_MEANS = re.compile(r"[!\"#$&'()*+\-.:<=>@\[\\\]^_`{|}~]")


def as_markdown(blocks: Sequence[Block]) -> str:
    """Return paragraphs and tables."""
    parts = []
    for block in blocks:
        if isinstance(block, Heading):
            parts.append(f"**{_text(block.text)}**")
        elif isinstance(block, Fields):
            rows = [[_text(label), _code(told)] for label, told in block.rows]
            parts.append(_table(["", ""], rows))
        elif isinstance(block, Values):
            count = len(block.values)
            parts.append(f"{_text(block.label)}: {count:,}" + (", all shown here" if count else ""))
            rows = [[_code(name), _value(value, None)] for name, value in block.values.items()]
            parts.append(_table(["name", "value"], rows))
        elif isinstance(block, Table):
            parts.append(
                _table(
                    [_text(column) for column in block.columns],
                    [[_code(cell) for cell in row] for row in block.rows],
                )
            )
            parts.append(f"and {block.hidden:,} more" if block.hidden else "")
        else:
            parts += _timeline(block)
    return "\n\n".join(part for part in parts if part) + "\n"


def _safe(text: str) -> str:
    return _MEANS.sub(lambda found: f"&#{ord(found[0])};", text)


def _text(text: str) -> str:
    return _safe(escape(text))


def _code(text: str) -> str:
    return f"<code>{_text(text)}</code>" if text else ""


def _value(value: JSON, most: int | None) -> str:
    shown, missing = excerpt_of(value, None if most is None else most * _ROW)
    more = f" ({missing:,} more characters)" if missing else ""
    return f"<code>{_safe(shown)}</code>{more}"


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    if not rows:
        return ""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


# A run


def _timeline(run: Timeline) -> list[str]:
    reason = f" ({run.reason})" if run.reason else ""
    used = f"{', '.join(run.usage)}, {run.seconds:.3f} s"
    return [
        f"**Run {_text(run.run_id[:12])}** {_value(run.goal, 2)}",
        f"{_text(run.status.replace('_', ' ') + reason)}: {_text(used)}",
        f"error: {_value(run.error, 30)}" if run.error is not None else "",
        f"{run.hidden:,} steps before these are not shown" if run.hidden else "",
        _table(
            ["step", "proposed", "gates", "outcome", "cost", "time"],
            [_step(step) for step in run.steps],
        ),
    ]


def _step(step: StepRow) -> list[str]:
    if step.proposed is None:
        return [str(step.number), "what was proposed is not in the trail", "", "", "", ""]
    label, value, rows = step.proposed
    proposed = [f"{_text(label)} {_value(value, rows)}"]
    if step.reason:
        proposed.append(f"reason: {_value(step.reason, 2)}")
    gates = [_text(f"{gate} {word}") for gate, word in step.gates]
    rest = ", ".join(step.not_reached)
    gates = [", ".join(gates) + (f"; {rest} not reached" if rest else "") + step.gates_told]
    gates += map(_fact, step.facts)
    outcome = []
    if step.outcome is not None:
        code = f" ({step.code})" if step.code else ""
        tries = f" at attempt {step.attempts}" if step.attempts > 1 else ""
        outcome.append(_text(f"{step.outcome}{code}{tries}"))
    outcome += map(_fact, step.ends)
    cost = "" if step.cost is None else f"{step.cost:g}"
    time = "" if step.outcome is None else f"{step.seconds:.3f} s"
    return [str(step.number), *map("<br>".join, (proposed, gates, outcome)), cost, time]


def _fact(fact: Fact | str) -> str:
    return _text(fact) if isinstance(fact, str) else f"{_text(fact.label)}: {_value(*fact[1:])}"
