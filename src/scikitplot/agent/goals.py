"""One goal of a batch: its run, and what it may use up of what all share.

Imports `agent`, `aio` and what stands below them. Rules that hold here:

* the run of a goal has an id that follows from the batch and the place of the goal, so that a goal
  has one run, whoever begins it and however often; a batch that was cut off goes on with it;
* a goal whose run fails is a result.
"""

from __future__ import annotations

import copy
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, TypeVar

from .agent import Agent
from .aio import AsyncAgent
from .decision import Decision
from .driving import Requests, drive, request
from .errors import AgentError, StateError
from .limits import Limits
from .sessions import Sessions
from .shared import Share, SharedAccount
from .state import RunState, RunStatus
from .state.head import read_head
from .stores import MemoryStore
from .toolset import Toolset
from .values import check_text, check_type, digest, encode, type_name

__all__ = ["Batch", "BatchResult", "begin", "gone", "open_account", "run_one", "run_one_async"]

SessionsT = TypeVar("SessionsT", bound=Sessions)

_BOUNDED = ("max_tool_calls", "max_cost", "max_tokens", "max_seconds")


@dataclass(frozen=True)
class BatchResult:
    """What became of one goal.

    Attributes
    ----------
    index : int
        The place of the goal among the goals, from 0.
    goal : str
        The goal.
    run_id : str
        Its run.
    state : RunState or None
        The last state, as it was saved; None where nothing was.
    error : str or None
        Why the run neither ended nor waits for a person: it could not be begun or resumed, nothing
        is left of a limit of the batch, or its worker is gone. The same batch goes on with it.
    """

    index: int
    goal: str
    run_id: str
    state: RunState | None
    error: str | None


class Batch(NamedTuple):
    """What each worker has to know."""

    make_agent: Callable[[], Any]
    batch_id: str
    share: Share | None
    tainted: bool


def begin(
    make_agent: Callable[[], SessionsT],
    kind: type[SessionsT],
    batch_id: str | None,
    limits: Limits | None,
    tainted: bool,
    progress: object,
) -> tuple[Batch, SessionsT]:
    """Return what each worker has to know, and an agent to begin with; the arguments are judged."""
    if not callable(make_agent):
        told = " that makes one" if isinstance(make_agent, Sessions) else ""
        raise TypeError(f"make_agent must be a function{told}, not {type_name(make_agent)}")
    if progress is not None and not callable(progress):
        raise TypeError(f"progress must be callable or None, not {type_name(progress)}")
    check_type("tainted", tainted, bool)
    _check_limits(limits)
    agent = _made(make_agent, kind)
    if batch_id is None:
        batch_id = secrets.token_hex(16)
    elif agent.store is None:
        raise ValueError("batch_id is for a batch that can go on, and its agents have no store")
    check_text("batch_id", batch_id)
    share = None
    if limits is not None:
        seconds = limits.max_seconds
        memory = None if agent.store is not None else MemoryStore()
        deadline = None if seconds is None else time.time() + seconds
        share = Share(digest(encode({"batch": batch_id})), limits, deadline, memory)
    return Batch(make_agent, batch_id, share, tainted), agent


def _check_limits(limits: Limits | None) -> None:
    if limits is None:
        return
    check_type("limits", limits, Limits)
    for field in fields(Limits):
        if field.name not in _BOUNDED and getattr(limits, field.name) != field.default:
            raise ValueError(
                f"limits of a batch are {', '.join(_BOUNDED)}; {field.name} is a run's, so set it "
                "where make_agent makes the agent"
            )


def _made(make_agent: Callable[[], Any], kind: type[SessionsT]) -> SessionsT:
    agent = make_agent()
    if not isinstance(agent, kind):
        raise TypeError(f"make_agent must make an {kind.__name__}, not {type_name(agent)}")
    return agent


def gone(batch: Batch, index: int, goal: str, error: BaseException) -> BatchResult:
    """Return the result of a goal whose worker is gone."""
    told = f"the worker that had it is gone ({type_name(error)})"
    return BatchResult(index, goal, _run_id(batch, index), None, told)


def _run_id(batch: Batch, index: int) -> str:
    return digest(encode({"batch": batch.batch_id, "goal": index}))


def _session(
    batch: Batch, agent: Sessions, run_id: str, goal: str
) -> Requests[tuple[RunState | None, str | None]]:
    """Begin the run of a goal or go on with it, and return its state and what went wrong."""
    try:
        agent = copy.copy(agent)
        if batch.share is not None:
            agent._shared = SharedAccount(batch.share, agent.store)
        saved = yield from _saved(agent, run_id)
        if saved is None:
            return (yield from agent._run(goal, run_id, tainted=batch.tainted)), None
        if saved.goal != goal:
            raise StateError(f"run {run_id[:12]}: the batch had another goal in this place before")
        return (yield from agent._resume(run_id, [])), None
    except (AgentError, TypeError, ValueError) as error:
        told = f"{type_name(error)}: {error}"
    try:
        return (yield from _saved(agent, run_id)), told
    except AgentError:
        return None, told


def _saved(agent: Sessions, run_id: str) -> Requests[RunState | None]:
    store = agent.store
    saved = None if store is None else (yield request(store.load, run_id))
    if saved is None:
        return None
    read_head(saved[0])
    return RunState.view(saved[0], saved[1])


def run_one(batch: Batch, index: int, goal: str) -> BatchResult:
    """Run a goal, or go on with its run."""
    run_id = _run_id(batch, index)
    try:
        agent = _made(batch.make_agent, Agent)
        state, error = drive(_session(batch, agent, run_id, goal))
    except Exception as raised:  # of make_agent, of a store: its text may hold a secret
        state, error = None, f"{type_name(raised)} was raised where the run was driven"
    return BatchResult(index, goal, run_id, state, error)


def open_account(agent: Sessions, batch: Batch) -> Requests[None]:
    """See to it that the account of a batch is there."""
    share = batch.share
    if share is None:
        return
    agent = copy.copy(agent)
    agent.tools, agent.planner, agent.limits = Toolset([]), _finish, Limits()
    agent.done = agent.approver = agent.observer = None
    if share.memory is not None:
        agent.store = share.memory
    saved = yield from _saved(agent, share.run_id)
    if saved is None:
        goal = f"hold what the runs of batch {batch.batch_id} have used up"
        yield from agent._run(goal, share.run_id, tainted=False)
    elif saved.status is RunStatus.RUNNING:
        yield from agent._resume(share.run_id, [])


def _finish(state: RunState, tools: object) -> Decision:
    return Decision.finish(None)


async def run_one_async(batch: Batch, index: int, goal: str) -> BatchResult:
    """Run a goal in the running event loop, or go on with its run."""
    from . import awaiting

    run_id = _run_id(batch, index)
    try:
        agent = _made(batch.make_agent, AsyncAgent)
        state, error = await awaiting.drive(_session(batch, agent, run_id, goal))
    except Exception as raised:
        state, error = None, f"{type_name(raised)} was raised where the run was driven"
    return BatchResult(index, goal, run_id, state, error)
