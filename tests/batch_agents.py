"""Agents that other processes make too: a module of its own, which they can import."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from scikitplot.agent import Agent, Decision, Limits, Policy, RunState, SqliteStore, Tool, tool

CALLS = 3  # of each run


def plan(state: RunState, tools: Any) -> Decision:
    """Propose the call of each step, and end after the last."""
    step = len(state.steps)
    if step == CALLS:
        return Decision.finish([one.outcome.value for one in state.steps])
    return Decision.act("note", {"goal": state.goal, "step": step})


def noting(folder: str, seconds: float) -> Tool:
    """Return a tool that notes each call in a file, first when it begins and then when it ends."""
    path = Path(folder) / "calls"

    def note(goal: str, step: int) -> int:
        for mark in ("begun", "ended"):
            file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            os.write(file, f"{goal} {step} {mark}\n".encode())
            os.close(file)
            if mark == "begun":
                time.sleep(seconds)
        return step

    return tool(effect="write", cost=0.25)(note)


def make(folder: str, store: Any = None, seconds: float = 0.0) -> Agent:
    """Return an agent whose runs are in one file of SQLite, their trail too."""
    if store is None:
        store = SqliteStore(Path(folder) / "runs.db")
    policy = Policy(allow_effects={"read", "write"}, approval_effects=())
    tools = [noting(folder, seconds)]
    return Agent(tools, plan, store=store, audit=store, policy=policy, limits=Limits(max_steps=9))


def make_on_postgresql(folder: str, address: str, seconds: float) -> Agent:
    """Return an agent whose runs are in a PostgreSQL server."""
    import psycopg

    from scikitplot.agent import SqlStore

    store = SqlStore(lambda: psycopg.connect(address))
    return make(folder, store, seconds)
