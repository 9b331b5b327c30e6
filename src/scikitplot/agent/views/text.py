"""A view as plain text, for a terminal.

Imports `blocks` and `visible`. What comes from outside goes through `Page`, which moves no cursor
and lets no value pass for a line of the view.
"""

from __future__ import annotations

from collections.abc import Sequence

from .blocks import Block, Fact, Fields, Heading, StepRow, Table, Timeline, Values
from .visible import Page, escape

__all__ = ["as_text"]

_LABEL = 11  # columns
_FIRST = 24  # columns of a table's first cell, at most


def as_text(blocks: Sequence[Block], width: int, encoding: str) -> str:
    """Return the lines of a view; none is wider than `width`, which is at least 60."""
    page = Page(width, encoding)
    for block in blocks:
        if isinstance(block, Heading):
            page.text("", block.text)
        elif isinstance(block, Fields):
            for label, told in block.rows:
                page.text(f"  {label:<{_LABEL}}", told)
        elif isinstance(block, Values):
            _values(page, block)
        elif isinstance(block, Table):
            _table(page, block, encoding)
        else:
            _timeline(page, block)
    return "\n".join(page.lines)


def _values(page: Page, block: Values) -> None:
    count = len(block.values)
    told = f"{count:,}, all shown here:" if count else "none"
    page.text(f"  {block.label:<{_LABEL}}", told)
    for name, value in block.values.items():
        page.value(4, name, value)


def _table(page: Page, block: Table, encoding: str) -> None:
    firsts = [escape(row[0], encoding) for row in block.rows]
    wide = min(_FIRST, max(map(len, firsts), default=0))
    for first, row in zip(firsts, block.rows, strict=True):
        told = "; ".join(
            f"{column} {cell}" if column else cell
            for column, cell in zip(block.columns[1:], row[1:], strict=True)
            if cell
        )
        start = f"  {first:<{wide}}  "
        if len(first) > _FIRST:
            page.text("  ", row[0])
            start = " " * (4 + wide)
        page.text(start, told)
    if block.hidden:
        page.lines.append(f"  and {block.hidden:,} more")


# A run


def _timeline(page: Page, run: Timeline) -> None:
    page.excerpt("", f"Run {run.run_id[:12]}", run.goal, 2)
    if run.hidden:
        page.lines += ["", f"  {run.hidden:,} steps before these are not shown"]
    for step in run.steps:
        _step(page, step)
    reason = f" ({run.reason})" if run.reason else ""
    page.lines.append("")
    page.text("  ", f"{run.status}{reason}: {', '.join(run.usage)}, {run.seconds:.3f} s")
    if run.error is not None:
        page.excerpt("  ", "error", run.error, 30)


def _step(page: Page, step: StepRow) -> None:
    start = f"{step.number:>3} "
    inner = " " * len(start)
    page.lines.append("")
    if step.proposed is None:
        page.text(start, "what was proposed is not in the trail")
        return
    page.excerpt(start, *step.proposed)
    if step.reason:
        page.excerpt(inner, "reason", step.reason, 2)
    told = step.gates_told or _verdicts(step)
    if told:
        page.text(inner, told)
    for fact in step.facts:
        _fact(page, inner, fact)
    if step.outcome is None:
        return
    code = f" ({step.code})" if step.code else ""
    tries = f" at attempt {step.attempts}" if step.attempts > 1 else ""
    cost = "" if step.cost is None else f", cost {step.cost}"
    page.text(inner, f"{step.outcome}{code}{tries}{cost}, {step.seconds:.3f} s")
    for fact in step.ends:
        _fact(page, inner, fact)


def _fact(page: Page, inner: str, fact: Fact | str) -> None:
    if isinstance(fact, str):
        page.text(inner, fact)
    else:
        page.excerpt(inner, *fact)


def _verdicts(step: StepRow) -> str:
    """Return in a line what each gate said."""
    told = ", ".join(f"{gate} {word}" for gate, word in step.gates)
    rest = ", ".join(step.not_reached)
    return f"{told}; {rest} not reached" if rest else told
