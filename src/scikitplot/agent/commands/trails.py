"""What reads a trail: ``verify`` and ``replay``."""

from __future__ import annotations

import argparse
import pkgutil
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from ..audit import AuditProblem, AuditRecord, DamagedLine, read_audit, verify_audit
from ..audit.base import check_key
from ..errors import StateError
from ..exported import is_export, read_export
from ..policy import Policy
from ..replay import replay
from ..stores import SqliteStore
from ..toolset import Toolset
from ..values import clean_text, type_name
from ..views.visible import escape
from .console import Fault, cannot_read, count, is_database, opened, page, print_json, room, shown

__all__ = ["run_replay", "run_verify"]


def run_verify(parsed: argparse.Namespace) -> int:
    """Carry out ``verify``."""
    path: Path = parsed.trail
    try:
        key = None if parsed.key_file is None else check_key(parsed.key_file.read_bytes())
    except OSError as error:
        raise cannot_read(parsed.key_file, error) from None
    except ValueError as error:
        raise Fault(f"{shown(parsed.key_file)}: {error}", 2) from None
    try:
        problems, runs, records = _checked(path, key)
    except OSError as error:
        raise cannot_read(path, error) from None
    except ValueError as error:
        raise Fault(f"{shown(path)}: {escape(str(error))}", 2) from None
    except StateError as error:
        raise Fault(escape(str(error)), 2) from None
    if parsed.json:
        listed = [problem.to_dict() for problem in problems]
        print_json({"problems": listed, "records": records, "runs": runs})
        return 1 if problems else 0
    for problem in problems:
        print(problem)
    if problems:
        return 1
    if records:
        print(f"{shown(path)}: sound; {count(runs, 'run')}, {count(records, 'record')}")
    else:
        print(f"{shown(path)}: empty; there is no record")
    return 0


def _checked(path: Path, key: bytes | None) -> tuple[list[AuditProblem], int, int]:
    """Return what is wrong with a trail, and how many runs and records it has."""
    runs: set[str] = set()
    records = 0

    def counted(items: Iterable[AuditRecord | DamagedLine]) -> Iterator[AuditRecord | DamagedLine]:
        nonlocal records
        for item in items:
            if isinstance(item, AuditRecord):
                records += 1
                runs.add(item.run_id)
            yield item

    if is_database(path):
        with SqliteStore(path) as store:
            problems = verify_audit(counted(store.read()), heads=store.heads(), key=key)
    elif is_export(path):
        found = read_export(path, key)
        return found.problems, len(found.states), found.records
    else:
        problems = verify_audit(counted(read_audit(path)), key=key)
    return problems, len(runs), records


def run_replay(parsed: argparse.Namespace) -> int:
    """Carry out ``replay``."""
    tools = _tools(parsed.tools)
    try:
        policy = Policy.load(parsed.policy)
    except OSError as error:
        raise cannot_read(parsed.policy, error) from None
    except (TypeError, ValueError) as error:
        raise Fault(f"{shown(parsed.policy)}: {escape(str(error))}", 2) from None
    with opened(parsed.store) as store:
        replayed = replay(store, tools=tools, policy=policy)
        if parsed.json:
            for run in replayed:
                print_json(run.to_dict())
            print_json({"totals": replayed.totals._asdict()})
        else:
            page(replayed.table(**room(sys.stdout)))
        return 1 if replayed.totals.damaged else 0


def _tools(named: str) -> Toolset:
    """Return the tools that a name in the user's code stands for."""
    told = f"--tools {escape(named)}"
    if not all(named.partition(":")):
        raise Fault(f"{told}: must be MODULE:NAME, such as shop.tools:ALL", 2)
    try:
        found = pkgutil.resolve_name(named)
        return found if isinstance(found, Toolset) else Toolset(found)
    except Exception as error:  # whatever the user's module raises
        kind = type_name(error)
        raise Fault(
            f"{told}: cannot be had ({kind}): {escape(clean_text(str(error)))}", 2
        ) from None
