"""The demo: a run that looks something up, asks a person and writes a note."""

from __future__ import annotations

import argparse
import getpass
import os
import shlex
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import TextIO

from .. import demo
from ..agent import Agent
from ..approval import Approval, ApprovalRequest
from ..audit import read_audit, verify_audit
from ..errors import AgentError
from ..state import RunState, RunStatus
from ..values import JSON, clean_text
from ..views.visible import escape
from .console import PROGRAM, Fault, print_json, room, shown

__all__ = ["run_demo"]

_INTRODUCTION = """\
The planner is a plain rule, no model. It looks a question up in the language
reference that ships with Python, and a person is asked before it writes a note.
"""


def run_demo(parsed: argparse.Namespace) -> int:
    """Carry out ``demo``."""
    told: dict[str, JSON] = {}
    if not parsed.json:
        return _demo(parsed, told)
    with redirect_stdout(sys.stderr):
        code = _demo(parsed, told)
    print_json(told)
    return code


def _demo(parsed: argparse.Namespace, told: dict[str, JSON]) -> int:
    """Carry out the demo, and put what came of it into `told`."""
    topics = _topics()
    question = _question(parsed.question)
    try:
        folder = demo.prepare_folder(parsed.folder)
    except OSError as error:
        named = escape(str(error.filename or parsed.folder))
        raise Fault(f"{named}: {error.strerror}; name another --folder") from None
    try:
        store = demo.RunFile(folder)
        agent = demo.make_agent(topics, folder, store)
        last = store.last()
        if last is None or last.status.has_ended:
            print(f"{_INTRODUCTION}Folder: {shown(folder)}\n")
            state = agent.run(question)
        elif parsed.question is None:
            print(f"Going on with the run in {shown(folder)}\n")
            state = agent.resume(last.run_id)
        else:
            why = "a run in it has not ended; leave --question out, or name another --folder"
            raise Fault(f"{shown(folder)}: {why}", 2)
        told["folder"] = str(folder)
        return _finish(agent, state, folder, parsed.yes, told)
    except KeyboardInterrupt:
        raise Fault(f"interrupted; the run goes on by\n  {_again(folder)}", 130) from None
    except AgentError as error:
        raise Fault(f"{shown(folder)}: {escape(str(error))}; name another --folder") from None


def _topics() -> dict[str, str]:
    try:
        from pydoc_data.topics import topics
    except ImportError:
        raise Fault("this Python comes without pydoc_data, the text that is searched") from None
    return topics


def _question(given: str | None) -> str:
    if given is None:
        return "When are default parameter values evaluated?"
    # In a C locale what is no ASCII arrives as surrogates; the bytes are UTF-8 all the same.
    return clean_text(os.fsencode(given).decode("utf-8", "replace"), 1_000)


def _finish(agent: Agent, state: RunState, folder: Path, yes: bool, told: dict[str, JSON]) -> int:
    """Show the run, have its requests answered, and check the trail once the run has ended."""
    trail = folder / demo.TRAIL
    told.update(run_id=state.run_id, trail=str(trail), status=state.status.value)
    print(state.timeline(read_audit(trail)).to_text(**room(sys.stdout)))
    while state.pending is not None:
        step = state.pending.step
        approval = _answer(state.pending, yes)
        if approval is None:
            print(f"\nNobody answers, so the run waits; it goes on by\n  {_again(folder)}")
            return 3
        state = agent.resume(state.run_id, approvals=[approval])
        told["status"] = state.status.value
        timeline = state.timeline(read_audit(trail), since=step)
        print(f"\n{timeline.to_text(**room(sys.stdout))}")
    note = demo.note_of(state)
    heads = {state.run_id: state.audit_head}
    problems = verify_audit(read_audit(trail), heads=heads)
    told["note"] = str(folder / note) if note else None
    told["problems"] = [str(problem) for problem in problems]
    print(f"\n  note      {shown(folder / note) if note else 'none was written'}")
    print(f"  trail     {shown(trail)}")
    print(f"  verified  {'damaged:' if problems else 'sound; no record is changed or missing'}")
    for problem in problems:
        print(f"    {problem}")
    print("  tampered  one byte changed in a copy of the trail is found:")
    print(f"    {demo.tamper(trail, state.run_id)}")
    return 0 if state.status is RunStatus.COMPLETED and not problems else 1


def _answer(request: ApprovalRequest, yes: bool) -> Approval | None:
    """Show the request and have it answered; None where nobody is there."""
    at_terminal = sys.stdin is not None and sys.stdin.isatty()
    # Whoever answers must see what, wherever the output goes.
    is_shown = sys.stdout is not None and sys.stdout.isatty()
    to = sys.stderr if at_terminal and not is_shown else sys.stdout
    print(f"\n{request.to_text(**room(to))}", file=to)
    if yes:
        print("\nApproved by --yes", file=to)
        return Approval(request.digest, granted=True, approver="--yes")
    if not at_terminal:
        return None
    try:
        said = _ask("\nApprove this call? [y/N] ", to).lower()
        user = _user()
        name = _ask(f"Your name [{escape(user)}]: ", to) or user
    except EOFError:
        return None
    return Approval(request.digest, granted=said in ("y", "yes"), approver=clean_text(name, 100))


def _ask(question: str, to: TextIO) -> str:
    print(question, end="", file=to, flush=True)
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    return line.strip()


def _user() -> str:
    try:
        return getpass.getuser() or "somebody"
    except (OSError, KeyError, ImportError):  # which of them, the Python decides
        return "somebody"


def _again(folder: Path) -> str:
    return escape(f"{PROGRAM} demo --folder {shlex.quote(str(folder))}") + "  [--yes]"
