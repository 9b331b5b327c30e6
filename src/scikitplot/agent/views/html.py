"""A view as HTML, for a notebook or a page.

Imports `blocks` and `visible`. Rules that hold here:

* what comes from outside is made visible first and then escaped; it never stands in an attribute,
  and no notebook looks for formulas there;
* there is no script, no link and nothing that is loaded;
* colours are mixed with what is behind, so that one form serves light pages and dark ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape as escape_html

from ..values import JSON
from .blocks import Block, Fact, Fields, Heading, StepRow, Table, Timeline, Values
from .visible import escape, excerpt_of

__all__ = ["as_html"]

_OUTER = "skp-agent tex2jax_ignore mathjax_ignore"  # no notebook looks for formulas in it
_ROW = 100  # characters of what a terminal shows in a row
_STYLE = (
    ".skp-agent{font:13px/1.45 system-ui,sans-serif;max-width:76em;overflow-wrap:anywhere}"
    ".skp-agent table{border-collapse:collapse;margin:.4em 0;text-align:left}"
    ".skp-agent th,.skp-agent td{padding:.3em .6em .3em 0;vertical-align:top;text-align:left;"
    "border-top:1px solid rgba(128,128,128,.35);background:none}"
    ".skp-agent td{min-width:8em}.skp-agent td.narrow{min-width:3em;white-space:nowrap}"
    ".skp-agent td.time{min-width:7em;white-space:nowrap}"
    ".skp-agent th{font-weight:600;white-space:nowrap}"
    ".skp-agent code{font:12px/1.4 ui-monospace,monospace;white-space:pre-wrap;color:inherit;"
    "background:rgba(128,128,128,.13);border-radius:3px;padding:0 .25em}"
    ".skp-agent b{font-weight:600}"
    ".skp-agent .soft{opacity:.75}"
    ".skp-agent .chip{display:inline-block;border-radius:3px;padding:0 .45em;margin:0 .25em .1em 0;"
    "color:#fff;background:#57606a;white-space:nowrap}"
    ".skp-agent .good{background:#1a7f37}.skp-agent .bad{background:#b62324}"
    ".skp-agent .wait{background:#8a5a00}"
    ".skp-agent .bar{height:4px;min-width:2px;background:#3b82c4;border-radius:2px}"
    ".skp-agent .scroll{overflow-x:auto}"
)
_KINDS = {
    "ok": "good",
    "granted": "good",
    "executed": "good",
    "accepted": "good",
    "completed": "good",
    "denied": "bad",
    "failed": "bad",
    "interrupted": "bad",
    "rejected": "bad",
    "waits": "wait",
    "stopped": "wait",
    "awaiting_approval": "wait",
}


def as_html(blocks: Sequence[Block]) -> str:
    """Return one ``div`` with its own style."""
    parts = [f'<div class="{_OUTER}"><style>{_STYLE}</style>']
    for block in blocks:
        if isinstance(block, Heading):
            parts.append(f"<div><b>{_text(block.text)}</b></div>")
        elif isinstance(block, Fields):
            parts.append(_rows([_label(label), _code(told)] for label, told in block.rows))
        elif isinstance(block, Values):
            parts.append(_values(block))
        elif isinstance(block, Table):
            parts.append(_table(block))
        else:
            parts.append(_timeline(block))
    return "".join([*parts, "</div>"])


def _text(text: str) -> str:
    return escape_html(escape(text))


def _code(text: str) -> str:
    return f"<code>{_text(text)}</code>" if text else ""


def _label(text: str) -> str:
    return f"<th>{_text(text)}</th>"


def _chip(word: str, told: str = "") -> str:
    return f'<span class="chip {_KINDS.get(word, "")}">{_text(told or word)}</span>'


def _rows(rows: Iterable[Sequence[str]]) -> str:
    cells = (
        "".join(cell if cell.startswith("<t") else f"<td>{cell}</td>" for cell in row)
        for row in rows
    )
    body = "".join(f"<tr>{row}</tr>" for row in cells)
    return f'<div class="scroll"><table>{body}</table></div>' if body else ""


def _value(value: JSON, most: int | None) -> str:
    """Return a value as JSON, whole where `most` is None."""
    shown, missing = excerpt_of(value, None if most is None else most * _ROW)
    more = f' <span class="soft">({missing:,} more characters)</span>' if missing else ""
    return f"<code>{escape_html(shown)}</code>{more}"


def _values(block: Values) -> str:
    count = len(block.values)
    told = f"{count:,}, all shown here:" if count else "none"
    rows = ([_code(name), _value(value, None)] for name, value in block.values.items())
    return f"<div><b>{_text(block.label)}</b> {told}</div>{_rows(rows)}"


def _table(block: Table) -> str:
    head = [_label(column) for column in block.columns]
    hidden = f'<div class="soft">and {block.hidden:,} more</div>' if block.hidden else ""
    rows = (
        [f'<td class="narrow">{_code(row[0])}</td>', *map(_code, row[1:])] for row in block.rows
    )
    return _rows([head, *rows]) + hidden


# A run


def _timeline(run: Timeline) -> str:
    reason = f" ({run.reason})" if run.reason else ""
    used = f"{', '.join(run.usage)}, {run.seconds:.3f} s"
    parts = [
        f"<div>{_chip(run.status, run.status.replace('_', ' ') + reason)}"
        f"<b>Run {_text(run.run_id[:12])}</b> {_value(run.goal, 2)}</div>",
        f'<div class="soft">{_text(used)}</div>',
    ]
    if run.error is not None:
        parts.append(f"<div><b>error</b> {_value(run.error, 30)}</div>")
    if run.hidden:
        parts.append(f'<div class="soft">{run.hidden:,} steps before these are not shown</div>')
    if run.steps:
        head = [_label(name) for name in ("", "proposed", "gates", "outcome", "cost", "time")]
        parts.append(_rows([head, *(_step(step, run.seconds) for step in run.steps)]))
    return "".join(parts)


def _step(step: StepRow, total: float) -> list[str]:
    if step.proposed is None:
        told = '<span class="soft">what was proposed is not in the trail</span>'
        return [_label(str(step.number)), told, "", "", "", ""]
    label, value, rows = step.proposed
    proposed = f"<b>{_text(label)}</b> {_value(value, rows)}"
    if step.reason:
        proposed += f'<div class="soft">reason {_value(step.reason, 2)}</div>'
    gates = "".join(_chip(word, f"{gate} {word}") for gate, word in step.gates)
    if step.not_reached:
        gates += f'<span class="soft">{", ".join(step.not_reached)} not reached</span>'
    gates += _text(step.gates_told) + "".join(map(_fact, step.facts))
    outcome = ""
    if step.outcome is not None:
        code = f" ({step.code})" if step.code else ""
        tries = f" at attempt {step.attempts}" if step.attempts > 1 else ""
        outcome = _chip(step.outcome, step.outcome + code) + tries
    outcome += "".join(map(_fact, step.ends))
    cost = "" if step.cost is None else f"{step.cost:g}"
    ends = [f'<td class="narrow">{cost}</td>', f'<td class="time">{_time(step, total)}</td>']
    return [_label(str(step.number)), proposed, gates, outcome, *ends]


def _fact(fact: Fact | str) -> str:
    if isinstance(fact, str):
        return f'<div class="soft">{_text(fact)}</div>'
    return (
        f'<div><span class="soft">{_text(fact.label)}</span> {_value(fact.value, fact.rows)}</div>'
    )


def _time(step: StepRow, total: float) -> str:
    """Return how long it took, and a bar: where in the run that was."""
    if step.outcome is None:
        return ""
    start = min(1.0, max(0.0, step.started / total)) if total > 0 else 0.0
    width = min(1.0 - start, step.seconds / total) if total > 0 else 0.0
    place = f"margin-left:{start:.1%};width:{width:.1%}"
    return f'{step.seconds:.3f} s<div class="bar" style="{place}"></div>'
