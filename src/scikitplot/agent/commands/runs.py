"""What is done with the runs of a store: to list, to show, to answer and to export them."""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

from ..answers import CLAIMED, Answer
from ..approval import Approval
from ..audit import AuditRecord, DamagedLine, read_audit
from ..errors import StateError
from ..exported import export_run
from ..pending import leave_answer, pending_requests
from ..signing import sign_approval
from ..state import RunState
from ..state.head import check_steps, read_head
from ..stores import SqliteStore
from ..views import Fields, Table, View
from ..views.visible import escape
from .console import Fault, cannot_read, count, opened, page, print_json, room, shown

__all__ = ["run_answer", "run_export", "run_list", "run_pending", "run_show"]

_SHORT = re.compile(r"[0-9a-f]{4,64}", re.ASCII)
_AT_ONCE = 100  # runs that are listed together
_GOAL = 60  # characters


def run_list(parsed: argparse.Namespace) -> int:
    """Carry out ``runs``."""
    damaged = total = 0
    with opened(parsed.store) as store:
        summaries = (_summary(store, run_id) for run_id in store.runs(parsed.status))
        while some := [told for told in islice(summaries, _AT_ONCE) if told is not None]:
            total += len(some)
            damaged += sum("error" in told for told in some)
            if parsed.json:
                for told in some:
                    print_json(told)
            else:
                print(
                    View(Table(("", "", "", ""), list(map(_row, some)))).to_text(**room(sys.stdout))
                )
        if not total and not parsed.json:
            print(f"{shown(parsed.store)}: there is no such run")
    return 1 if damaged else 0


def _summary(store: SqliteStore, run_id: str) -> dict[str, Any] | None:
    try:
        saved = store.load(run_id)
        if saved is None:
            return None  # deleted meanwhile
        head = read_head(saved[0])
    except StateError as error:
        return {"run_id": run_id, "error": str(error)}
    usage = head.usage
    return {
        "run_id": run_id,
        "status": head.status.value,
        "stop_reason": head.stop_reason,
        "goal": head.goal,
        "parent": None if head.parent is None else head.parent[0],
        "decisions": usage.decisions,
        "tool_calls": usage.tool_calls,
        "cost": usage.cost,
        "tokens": usage.tokens,
        "seconds": usage.seconds,
    }


def _row(told: dict[str, Any]) -> list[str]:
    if "error" in told:
        return [told["run_id"][:12], "damaged", "", told["error"]]
    reason = f" ({told['stop_reason']})" if told["stop_reason"] else ""
    above = f", for run {told['parent'][:12]}" if told["parent"] else ""
    used = f"{count(told['decisions'], 'decision')}, {count(told['tool_calls'], 'call')}"
    goal = told["goal"]
    missing = len(goal) - _GOAL
    more = f" ({missing:,} more characters)" if missing > 0 else ""
    status = f"{told['status']}{reason}{above}"
    return [told["run_id"][:12], status, f"{used}, cost {told['cost']:g}", goal[:_GOAL] + more]


def run_show(parsed: argparse.Namespace) -> int:
    """Carry out ``show``."""
    with opened(parsed.store) as store:
        state = _load(store, _find(store, parsed.run))
        records = _records(store, parsed.trail)(state.run_id)
        if parsed.json:
            lines = [_line(record) for record in records]
            print_json({"state": state.to_dict(), "trail": lines})
            return 0
        there = list(records)
        parts = [state.timeline(there or None).to_text(**room(sys.stdout))]
        if state.pending is not None:
            parts.append(state.pending.to_text(**room(sys.stdout)))
        page("\n\n".join(parts))
    return 0


def run_pending(parsed: argparse.Namespace) -> int:
    """Carry out ``pending``."""
    parts = []
    with opened(parsed.store) as store:
        for run_id, request, answers in pending_requests(store):
            if parsed.json:
                said = [answer.approval.to_dict() for answer in answers]
                print_json({"resume": run_id, **request.to_dict(), "answers": said})
                continue
            view = View(*request.blocks(), Fields([*_said(answers), ("resume", run_id)]))
            parts.append(view.to_text(**room(sys.stdout)))
    if not parsed.json:
        page("\n\n".join(parts) or f"{shown(parsed.store)}: nothing waits for a person")
    return 0


def run_answer(parsed: argparse.Namespace) -> int:
    """Carry out ``approve`` and ``deny``."""
    try:
        approval = Approval(parsed.digest, parsed.granted, parsed.by, reason=parsed.reason)
        if parsed.key_file is not None:
            approval = sign_approval(approval, parsed.key_file.read_bytes())
    except OSError as error:
        raise cannot_read(parsed.key_file, error) from None
    except ValueError as error:
        raise Fault(escape(str(error)), 2) from None
    with opened(parsed.store) as store:
        try:
            run_id, request = leave_answer(store, approval, time.time())
        except (LookupError, ValueError) as error:
            raise Fault(f"{shown(parsed.store)}: {error.args[0]}", 2) from None
    if parsed.json:
        print_json({"resume": run_id, **approval.to_dict()})
        return 0
    said = _said([Answer(approval, 0.0, CLAIMED)])
    facts = [*said, ("resume", run_id), ("effective", "when that run is resumed")]
    print(View(*request.blocks(), Fields(facts)).to_text(**room(sys.stdout)))
    return 0


def _said(answers: Iterable[Answer]) -> list[tuple[str, str]]:
    """Return what is shown of answers that wait for the run to be resumed."""
    return [
        ("granted by" if approval.granted else "refused by", approval.approver)
        for approval, _, _ in answers
    ]


def run_export(parsed: argparse.Namespace) -> int:
    """Carry out ``export``."""
    with opened(parsed.store) as store:
        run_id = _find(store, parsed.run)
        read = _records(store, parsed.trail)
        if parsed.output is None:
            export_run(store, run_id, read, sys.stdout.write)
            return 0
        try:
            with parsed.output.open("x", encoding="ascii") as file:
                _write(store, run_id, read, file)
        except FileExistsError:
            raise Fault(f"{shown(parsed.output)}: is there already; name another file", 2) from None
        except OSError as error:
            told = f"{shown(parsed.output)}: cannot be written ({error.strerror})"
            raise Fault(told, 2) from None
    if parsed.json:
        print_json({"output": str(parsed.output), "run_id": run_id})
    else:
        print(f"{shown(parsed.output)}: run {run_id}")
    return 0


def _write(store: SqliteStore, run_id: str, read: _Read, file: TextIO) -> None:
    try:
        export_run(store, run_id, read, file.write)
    except BaseException:  # half of a file is none
        Path(file.name).unlink(missing_ok=True)
        raise


_Read = Callable[[str], Iterable["AuditRecord | DamagedLine"]]


def _records(store: SqliteStore, trail: Path | None) -> _Read:
    """Return what reads the records of a run, from the store or from a file."""
    if trail is None:
        return store.read

    def read(run_id: str) -> Iterator[AuditRecord | DamagedLine]:
        try:
            yield from (line for line in read_audit(trail) if line.run_id == run_id)
        except OSError as error:
            raise cannot_read(trail, error) from None

    return read


def _line(record: AuditRecord | DamagedLine) -> dict[str, Any]:
    if isinstance(record, DamagedLine):
        return {"damaged": record.message, "line": record.number}
    return {name: getattr(record, name) for name in ("seq", "event", "data", "time", "digest")}


def _find(store: SqliteStore, named: str) -> str:
    """Return the run of an id, or of the first digits of one."""
    if not _SHORT.fullmatch(named):
        raise Fault("RUN must be a run's id, or at least its first 4 hexadecimal digits", 2)
    if len(named) == 64:
        return named
    found = list(islice((run_id for run_id in store.runs() if run_id.startswith(named)), 2))
    if len(found) != 1:
        told = "several runs begin with it; give more digits" if found else "no run begins with it"
        raise Fault(f"RUN {named}: {told}", 2)
    return found[0]


def _load(store: SqliteStore, run_id: str) -> RunState:
    saved = store.load(run_id)
    if saved is None:
        raise StateError(f"run {run_id[:12]}: the store does not hold it")
    check_steps(read_head(saved[0]), len(saved[1]))
    return RunState.view(saved[0], list(saved[1]))
