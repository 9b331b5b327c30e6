"""The command line: ``python -m scikitplot.agent demo``, ``verify`` and ``replay``.

Nothing from outside is printed as it is: it goes through `views`.
"""

from __future__ import annotations

import argparse
import getpass
import json
import os
import pkgutil
import shlex
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

from . import demo
from .agent import Agent
from .approval import Approval, ApprovalRequest
from .audit import AuditRecord, DamagedLine, read_audit, verify_audit
from .errors import AgentError, StateError
from .policy import Policy
from .replay import replay
from .state import RunState, RunStatus
from .stores import SqliteStore
from .toolset import Toolset
from .values import clean_text, type_name
from .views.visible import escape

__all__ = ["main"]

_PROGRAM = "python -m scikitplot.agent"
_CODES = """\
exit codes:
  0    done; what was verified is sound
  1    the trail or a run is damaged, or the demo could not be carried out
  2    the arguments are wrong, or what they name cannot be read
  3    the demo's run waits for a person
  130  interrupted
  141  whoever read the output went away"""
_INTRODUCTION = """\
The planner is a plain rule, no model. It looks a question up in the language
reference that ships with Python, and a person is asked before it writes a note.
"""


class _Fault(Exception):
    """What ends a command with one sentence and an exit code."""

    def __init__(self, message: str, code: int = 1) -> None:
        super().__init__(message)
        self.code = code


def main(arguments: Sequence[str] | None = None) -> int:
    """Carry out a command and return its exit code.

    Parameters
    ----------
    arguments : sequence of str or None, default=None
        Of the command line, without the program; None takes those of the process.

    Returns
    -------
    int
        See ``--help``.

    Examples
    --------
    >>> from scikitplot.agent.__main__ import main
    >>> main(["verify", "no such file"])  # what is wrong is told on stderr
    2
    """
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # what a terminal cannot show or sends is no crash
            stream.reconfigure(errors="replace" if stream is sys.stdin else "backslashreplace")
    parsed = _parser().parse_args(arguments)
    try:
        code: int = parsed.command(parsed)
        if sys.stdout is not None:
            sys.stdout.flush()
    except _Fault as fault:
        print(f"error: {fault}", file=sys.stderr)
        return fault.code
    except KeyboardInterrupt:
        print("error: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # Python flushes stdout once more when it exits, which must not fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=_PROGRAM,
        description="Bounded, audited, resumable tool use.",
        epilog=_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    def add(name: str, told: str, function: Callable[..., int]) -> argparse.ArgumentParser:
        command = commands.add_parser(
            name,
            help=told,
            description=f"{told[0].upper()}{told[1:]}.",
            epilog=_CODES,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        command.set_defaults(command=function)
        return command

    command = add("demo", "look something up in Python's reference, write a note", _demo)
    command.add_argument(
        "--folder",
        type=Path,
        help="where the note and the trail go, and where a run that waits goes on; "
        "default: a new temporary folder",
    )
    command.add_argument("--yes", action="store_true", help="approve the write without asking")
    command.add_argument("--question", help="what to look up")
    command = add("verify", "check a trail and tell each fault in one line", _verify)
    command.add_argument(
        "trail",
        type=Path,
        metavar="TRAIL",
        help="a file of JSON lines, or a SqliteStore's database",
    )
    command.add_argument("--key-file", type=Path, help="holds the key that sealed the trail")
    command = add("replay", "tell what another policy would have said of recorded calls", _replay)
    command.add_argument("store", type=Path, metavar="STORE", help="a SqliteStore's database")
    command.add_argument("--policy", type=Path, required=True, help="a TOML or JSON file")
    command.add_argument(
        "--tools",
        required=True,
        metavar="MODULE:NAME",
        help="where your code has the tools: a Toolset, or an iterable of Tool; "
        "the module is imported, and nothing in it is called",
    )
    command.add_argument("--json", action="store_true", help="a line for each run, then the totals")
    return parser


def _verify(parsed: argparse.Namespace) -> int:
    path: Path = parsed.trail
    runs: set[str] = set()
    records = 0

    def counted(items: Iterable[AuditRecord | DamagedLine]) -> Iterator[AuditRecord | DamagedLine]:
        nonlocal records
        for item in items:
            if isinstance(item, AuditRecord):
                records += 1
                runs.add(item.run_id)
            yield item

    try:
        key = None if parsed.key_file is None else parsed.key_file.read_bytes()
        if _is_database(path):
            with SqliteStore(path) as store:
                problems = verify_audit(counted(store.read()), heads=store.heads(), key=key)
        else:
            problems = verify_audit(counted(read_audit(path)), key=key)
    except OSError as error:
        named = escape(str(error.filename or path))
        raise _Fault(f"{named}: cannot be read ({error.strerror})", 2) from None
    except ValueError as error:
        raise _Fault(f"{_shown(parsed.key_file)}: {error}", 2) from None
    except StateError as error:
        raise _Fault(escape(str(error)), 2) from None
    for problem in problems:
        print(problem)
    if problems:
        return 1
    if records:
        print(f"{_shown(path)}: sound; {_count(len(runs), 'run')}, {_count(records, 'record')}")
    else:
        print(f"{_shown(path)}: empty; there is no record")
    return 0


def _is_database(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(16) == b"SQLite format 3\0"


def _replay(parsed: argparse.Namespace) -> int:
    tools = _tools(parsed.tools)
    try:
        policy = Policy.load(parsed.policy)
    except OSError as error:
        raise _Fault(f"{_shown(parsed.policy)}: cannot be read ({error.strerror})", 2) from None
    except (TypeError, ValueError) as error:
        raise _Fault(f"{_shown(parsed.policy)}: {escape(str(error))}", 2) from None
    path: Path = parsed.store
    try:
        is_database = _is_database(path)
    except OSError as error:
        raise _Fault(f"{_shown(path)}: cannot be read ({error.strerror})", 2) from None
    if not is_database:
        raise _Fault(f"{_shown(path)}: is no database of a SqliteStore", 2)
    try:
        with SqliteStore(path) as store:
            replayed = replay(store, tools=tools, policy=policy)
            if parsed.json:
                for run in replayed:
                    print(json.dumps(run.to_dict()))
                print(json.dumps({"totals": replayed.totals._asdict()}))
            else:
                print(replayed.table(**_room(sys.stdout)))
            return 1 if replayed.totals.damaged else 0
    except StateError as error:
        raise _Fault(escape(str(error)), 2) from None


def _tools(named: str) -> Toolset:
    """Return the tools that a name in the user's code stands for."""
    told = f"--tools {escape(named)}"
    if not all(named.partition(":")):
        raise _Fault(f"{told}: must be MODULE:NAME, such as shop.tools:ALL", 2)
    try:
        found = pkgutil.resolve_name(named)
        return found if isinstance(found, Toolset) else Toolset(found)
    except Exception as error:  # whatever the user's module raises
        kind = type_name(error)
        raise _Fault(
            f"{told}: cannot be had ({kind}): {escape(clean_text(str(error)))}", 2
        ) from None


def _demo(parsed: argparse.Namespace) -> int:
    topics = _topics()
    question = _question(parsed.question)
    try:
        folder = demo.prepare_folder(parsed.folder)
    except OSError as error:
        named = escape(str(error.filename or parsed.folder))
        raise _Fault(f"{named}: {error.strerror}; name another --folder") from None
    try:
        store = demo.RunFile(folder)
        agent = demo.make_agent(topics, folder, store)
        last = store.last()
        if last is None or last.status.has_ended:
            print(f"{_INTRODUCTION}Folder: {_shown(folder)}\n")
            state = agent.run(question)
        elif parsed.question is None:
            print(f"Going on with the run in {_shown(folder)}\n")
            state = agent.resume(last.run_id)
        else:
            told = "a run in it has not ended; leave --question out, or name another --folder"
            raise _Fault(f"{_shown(folder)}: {told}", 2)
        return _finish(agent, state, folder, parsed.yes)
    except KeyboardInterrupt:
        raise _Fault(f"interrupted; the run goes on by\n  {_again(folder)}", 130) from None
    except AgentError as error:
        raise _Fault(f"{_shown(folder)}: {escape(str(error))}; name another --folder") from None


def _topics() -> dict[str, str]:
    try:
        from pydoc_data.topics import topics
    except ImportError:
        raise _Fault("this Python comes without pydoc_data, the text that is searched") from None
    return topics


def _question(given: str | None) -> str:
    if given is None:
        return "When are default parameter values evaluated?"
    # In a C locale what is no ASCII arrives as surrogates; the bytes are UTF-8 all the same.
    return clean_text(os.fsencode(given).decode("utf-8", "replace"), 1_000)


def _finish(agent: Agent, state: RunState, folder: Path, yes: bool) -> int:
    """Show the run, have its requests answered, and check the trail once the run has ended."""
    trail = folder / demo.TRAIL
    print(state.timeline(read_audit(trail)).to_text(**_room(sys.stdout)))
    while state.pending is not None:
        step = state.pending.step
        approval = _answer(state.pending, yes)
        if approval is None:
            print(f"\nNobody answers, so the run waits; it goes on by\n  {_again(folder)}")
            return 3
        state = agent.resume(state.run_id, approvals=[approval])
        timeline = state.timeline(read_audit(trail), since=step)
        print(f"\n{timeline.to_text(**_room(sys.stdout))}")
    note = demo.note_of(state)
    heads = {state.run_id: state.audit_head}
    problems = verify_audit(read_audit(trail), heads=heads)
    print(f"\n  note      {_shown(folder / note) if note else 'none was written'}")
    print(f"  trail     {_shown(trail)}")
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
    print(f"\n{request.to_text(**_room(to))}", file=to)
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


def _room(stream: TextIO) -> dict[str, Any]:
    """Return what a view must know of where it is shown."""
    columns = shutil.get_terminal_size().columns
    return {"width": min(columns, 100), "encoding": getattr(stream, "encoding", None) or "utf-8"}


def _again(folder: Path) -> str:
    return escape(f"{_PROGRAM} demo --folder {shlex.quote(str(folder))}") + "  [--yes]"


def _shown(path: Path) -> str:
    return escape(str(path))


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


if __name__ == "__main__":
    sys.exit(main())
