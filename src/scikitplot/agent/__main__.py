"""The command line: ``python -m scikitplot.agent``. What each command does is in `commands`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from .commands.console import PROGRAM, Fault
from .commands.demo import run_demo
from .commands.runs import run_answer, run_export, run_list, run_pending, run_show
from .commands.trails import run_replay, run_verify
from .state import RunStatus

__all__ = ["main"]

_CODES = """\
exit codes:
  0    done; what was verified is sound
  1    the trail or a run is damaged, or the demo could not be carried out
  2    the arguments are wrong, or what they name is not there or cannot be
       read
  3    the demo's run waits for a person
  130  interrupted
  141  whoever read the output went away"""


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
    except Fault as fault:
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
        prog=PROGRAM,
        description="Bounded, audited, resumable tool use.",
        epilog=_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    def add(
        name: str, told: str, function: Callable[[argparse.Namespace], int], *, in_json: str
    ) -> argparse.ArgumentParser:
        command = commands.add_parser(
            name,
            help=told,
            description=f"{told[0].upper()}{told[1:]}.",
            epilog=_CODES,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        command.set_defaults(command=function)
        command.add_argument("--json", action="store_true", help=in_json)
        return command

    command = add(
        "demo",
        "look something up in Python's reference, write a note",
        run_demo,
        in_json="print what came of it as JSON, and all the rest on stderr",
    )
    command.add_argument(
        "--folder",
        type=Path,
        help="where the note and the trail go, and where a run that waits goes on; "
        "default: a new temporary folder",
    )
    command.add_argument("--yes", action="store_true", help="approve the write without asking")
    command.add_argument("--question", help="what to look up")

    command = add("runs", "list the runs of a store", run_list, in_json="a line for each run")
    _takes_store(command)
    statuses = [status.value for status in RunStatus]
    command.add_argument("--status", choices=statuses, metavar="STATUS", help=", ".join(statuses))

    command = add("show", "show a run step by step", run_show, in_json="its state and its trail")
    _takes_run(command)

    command = add(
        "pending", "show what waits for a person", run_pending, in_json="a line for each request"
    )
    _takes_store(command)

    for name, told in (
        ("approve", "grant a call that waits"),
        ("deny", "refuse a call that waits"),
    ):
        about = f"{told}, for the process that resumes the run"
        command = add(name, about, run_answer, in_json="the answer, and which run to resume")
        command.set_defaults(granted=name == "approve")
        _takes_store(command)
        command.add_argument("digest", metavar="DIGEST", help="of the request, all 64 digits")
        command.add_argument("--by", required=True, metavar="NAME", help="who answers")
        command.add_argument("--reason", default="", help="why; of a refusal the planner reads it")
        command.add_argument("--key-file", type=Path, help="holds the approver's key, which signs")

    command = add(
        "verify",
        "check a trail and tell each fault in one line",
        run_verify,
        in_json="the faults, and how much there is",
    )
    command.add_argument(
        "trail",
        type=Path,
        metavar="TRAIL",
        help="a file of JSON lines, a SqliteStore's database, or what export wrote",
    )
    command.add_argument("--key-file", type=Path, help="holds the key that sealed the trail")

    command = add(
        "replay",
        "tell what another policy would have said of recorded calls",
        run_replay,
        in_json="a line for each run, then the totals",
    )
    _takes_store(command)
    command.add_argument("--policy", type=Path, required=True, help="a TOML or JSON file")
    command.add_argument(
        "--tools",
        required=True,
        metavar="MODULE:NAME",
        help="where your code has the tools: a Toolset, or an iterable of Tool; "
        "the module is imported, and nothing in it is called",
    )

    command = add(
        "export",
        "write a run, those it delegated to and their trails as one JSON file",
        run_export,
        in_json="with --output: which run was written where",
    )
    _takes_run(command)
    command.add_argument("--output", type=Path, metavar="FILE", help="default: stdout")
    return parser


def _takes_store(command: argparse.ArgumentParser) -> None:
    command.add_argument("store", type=Path, metavar="STORE", help="a SqliteStore's database")


def _takes_run(command: argparse.ArgumentParser) -> None:
    _takes_store(command)
    command.add_argument("run", metavar="RUN", help="its id, or at least the first 4 digits of it")
    command.add_argument(
        "--trail", type=Path, help="a file of JSON lines, where the trail is not in the store"
    )


if __name__ == "__main__":
    sys.exit(main())
