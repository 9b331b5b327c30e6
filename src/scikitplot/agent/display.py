"""Plain-text views of a run and of a request, for a person at a terminal.

Imports what stands below `agent`; only the command line imports it. `visible` shows what comes from
outside. `show_request` cuts nothing; `show_run` says of what it shortens how much is missing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime, timezone

from .answers import CLAIMED
from .approval import ApprovalRequest
from .audit import AuditRecord, DamagedLine
from .decision import Decision
from .errors import StateError
from .gates import GATES
from .state import RunState, Step
from .state.step import read_decision
from .values import add_exactly, exact
from .visible import Page, is_name

__all__ = ["show_request", "show_run"]

_JUDGED = ("denied", "tool_started", "approval_requested")


def show_request(request: ApprovalRequest, *, width: int = 80, encoding: str = "utf-8") -> str:
    r"""Return all that a person needs to decide: the whole call, and why it asks.

    Parameters
    ----------
    request : ApprovalRequest
        What waits for a person.
    width : int, default=80
        Columns, at least 60.
    encoding : str, default="utf-8"
        Of the place where it is shown.

    Returns
    -------
    str
        Lines. A text stands as literals of Python, one for each of its lines; ``x 5`` behind a
        literal says that it stands there five times in a row.

    Examples
    --------
    >>> from scikitplot.agent import ApprovalRequest, ToolEffect
    >>> print(show_request(ApprovalRequest(
    ...     "ab" * 32, "cd" * 32, 2, "save", {"path": "a.txt", "text": "one\ntwo\n"},
    ...     ToolEffect.WRITE, ("notes",), ("effect 'write' needs approval",), "ef" * 32, 0.0)))
    A call waits for a person
      tool       save
      effect     write
      scopes     notes
      because    effect 'write' needs approval
      run        cdcdcdcdcdcd, step 2, asked on 1970-01-01 at 00:00:00 UTC
      digest     abababababababababababababababababababababababababababababababab
      arguments  2, all shown here:
        path: "a.txt"
        text:
          "one\n"
          "two\n"
    """
    page = Page(width, encoding)
    page.lines.append("A call waits for a person")
    page.text("  tool       ", request.tool)
    page.text("  effect     ", request.effect.value)
    page.text("  scopes     ", ", ".join(request.scopes) or "none")
    page.text("  because    ", "; ".join(request.reasons))
    asked = f"step {request.step}, asked on {_date(request.requested_at)}"
    page.text("  run        ", f"{request.run_id[:12]}, {asked}")
    page.text("  digest     ", request.digest)
    count = len(request.arguments)
    page.text("  arguments  ", f"{count}, all shown here:" if count else "none")
    for name, value in request.arguments.items():
        page.value(4, name, value)
    return "\n".join(page.lines)


def show_run(
    state: RunState,
    records: Iterable[AuditRecord | DamagedLine],
    *,
    since: int = 0,
    width: int = 80,
    encoding: str = "utf-8",
) -> str:
    """Return what happened in a run: each step, what the gates said of it and what came of it.

    Parameters
    ----------
    state : RunState
        The run.
    records : iterable of AuditRecord
        Its whole trail, which holds what the gates said. Records of other runs are passed over.
    since : int, default=0
        Index of the first step to show.
    width : int, default=80
        Columns, at least 60.
    encoding : str, default="utf-8"
        Of the place where it is shown.

    Returns
    -------
    str
        Lines.

    Examples
    --------
    >>> from scikitplot.agent import Agent, Decision, Limits
    >>> agent = Agent([], lambda state, tools: Decision.act("fly"), limits=Limits(max_steps=1))
    >>> print(show_run(agent.run("fly home"), agent.audit.records))
    Run ...: "fly home"
    <BLANKLINE>
      0 call fly: {}
        Validation denied; Permissions, Scope, Budget, Approval not reached
        denied (unknown_tool), cost 0.0, ... s
        error: "there is no tool of this name; there are none at all"
    <BLANKLINE>
      stopped (max_steps): 1 decision, 0 calls, cost 0.0, 0 tokens, ... s
    """
    by_step: dict[str, list[AuditRecord]] = defaultdict(list)
    for record in records:
        if isinstance(record, AuditRecord) and record.run_id == state.run_id:
            by_step[repr(record.data.get("step"))].append(record)
    page = Page(width, encoding)
    page.excerpt("", f"Run {state.run_id[:12]}", state.goal, 2)
    for step in state.steps[since:]:
        _show_step(page, step.index, step.decision, by_step[str(step.index)], step)
    index = len(state.steps)
    if str(index) in by_step:
        _show_step(page, index, _proposed(by_step[str(index)]), by_step[str(index)], None)
    usage, reason = state.usage, f" ({state.stop_reason})" if state.stop_reason else ""
    page.lines.append("")
    page.text(
        "  ",
        f"{state.status.value}{reason}: {_count(usage.decisions, 'decision')}, "
        f"{_count(usage.tool_calls, 'call')}, cost {usage.cost}, "
        f"{_count(usage.tokens, 'token')}, {usage.seconds:.3f} s",
    )
    if state.error is not None:
        page.excerpt("  ", "error", state.error, 30)
    return "\n".join(page.lines)


def _show_step(
    page: Page,
    index: int,
    decision: Decision | None,
    records: list[AuditRecord],
    step: Step | None,
) -> None:
    start = f"{index:>3} "
    inner = " " * len(start)
    page.lines.append("")
    if decision is None:
        page.text(start, "what was proposed is not in the trail")
        return
    if decision.kind == "finish":
        page.excerpt(start, "answer", decision.answer, 12)
    elif is_name(decision.tool):
        page.excerpt(start, f"call {decision.tool}", decision.arguments, 2)
    else:
        page.excerpt(start, "call", [decision.tool, decision.arguments], 4)
    if decision.reason:
        page.excerpt(inner, "reason", decision.reason, 2)
    if decision.kind == "act":
        page.text(inner, _verdicts(records))
    cost = exact(0.0 if decision.usage is None else decision.usage.cost)
    for record in records:
        data = record.data
        if record.event == "approval_requested":
            reasons = data.get("reasons")
            told = "; ".join(map(str, reasons)) if type(reasons) is list else ""
            page.excerpt(inner, "asked because", told, 4)
        elif record.event == "approval_ignored":
            if data.get("approver") is not None:
                page.excerpt(inner, "answer of", data["approver"], 1)
            page.excerpt(inner, "answer ignored", data.get("error"), 2)
        elif record.event == "approval":
            said = "granted" if data.get("granted") is True else "refused"
            page.excerpt(inner, f"{said} by", data.get("approver"), 1)
            if data.get("identity") == CLAIMED:
                page.text(inner, "nothing proves that name")
        elif record.event == "reconciled":
            page.text(inner, "it was cut off; reconcile was asked what became of it")
        elif record.event == "tool_started" and type(data.get("cost")) is float:
            cost = add_exactly(cost, exact(data["cost"]))
    if step is None:
        return
    code = f" ({step.code})" if step.code else ""
    tries = f" at attempt {step.attempts}" if step.attempts > 1 else ""
    page.text(inner, f"{step.outcome.value}{code}{tries}, cost {float(cost)}, {step.seconds:.3f} s")
    if step.error is not None:
        page.excerpt(inner, "error", step.error, 30)
    if step.result is not None:
        page.excerpt(inner, "result", step.result, 3)


def _proposed(records: list[AuditRecord]) -> Decision | None:
    try:
        return read_decision(records[0].data.get("decision"))
    except StateError:
        return None


def _verdicts(records: list[AuditRecord]) -> str:
    """Return in a line what each gate said when the call was judged last."""
    gates = [name for name, _ in GATES]
    names = [name.capitalize() for name in gates]
    last = next((record for record in reversed(records) if record.event in _JUDGED), None)
    if last is None:
        return "what the gates said is not in the trail"
    passed, word = len(gates) - 1, "waits"
    if last.event == "denied":
        gate = last.data.get("gate")
        passed, word = gates.index(gate) if gate in gates else 0, "denied"
    elif last.event == "tool_started":
        asked = any(record.event == "approval" for record in records)
        word = "granted" if asked else "not needed"
    told = ", ".join([*(f"{name} ok" for name in names[:passed]), f"{names[passed]} {word}"])
    rest = ", ".join(names[passed + 1 :])
    return f"{told}; {rest} not reached" if rest else told


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _date(seconds: float) -> str:
    try:
        return f"{datetime.fromtimestamp(seconds, timezone.utc):%Y-%m-%d at %H:%M:%S} UTC"
    except (ValueError, OverflowError, OSError):
        return f"second {seconds}"
