"""Requests that wait in a store, and answers that are left there for whoever resumes the run.

Imports `approval`, `answers`, `state` and what stands below them. Rules that hold here:

* an answer is left in the saved state and judged when the run is resumed, by the policy and the
  keys of whoever resumes it; nothing runs here, and nothing is written to the trail;
* a request of a run that another one delegated to is answered where that one is resumed: at the run
  that nobody delegated to.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from .answers import CLAIMED, Answer
from .approval import Approval, ApprovalRequest, same_digest
from .state.head import OpenStep, answer_dict, read_head
from .values import encode

__all__ = ["leave_answer", "pending_requests"]


def pending_requests(store: Any) -> Iterator[tuple[str, ApprovalRequest, tuple[Answer, ...]]]:
    """Yield what waits in a store.

    Parameters
    ----------
    store : StateStore
        Where the runs are.

    Yields
    ------
    run_id, request, answers
        The run that is to be resumed, what it waits for, and the answers to it so far.

    Raises
    ------
    StateError
        If a saved run is damaged.

    Examples
    --------
    >>> from scikitplot.agent import Agent, Decision, MemoryStore, Policy, Tool
    >>> from scikitplot.agent.pending import pending_requests
    >>> store = MemoryStore()
    >>> agent = Agent([Tool("save", lambda: "saved", effect="write")],
    ...               lambda state, tools: Decision.act("save"),
    ...               policy=Policy(allow_effects={"write"}), store=store)
    >>> state = agent.run("save")
    >>> [(request.tool, answers) for run_id, request, answers in pending_requests(store)]
    [('save', ())]
    """
    for run_id, _, request, step in _waiting(store):
        to_it = [a for a in step.answers if same_digest(a.approval.digest, request.digest)]
        yield run_id, request, tuple(to_it)


def _waiting(store: Any) -> Iterator[tuple[str, str, ApprovalRequest, OpenStep]]:
    """Yield each run to resume, its saved head, what it waits for, and its open step."""
    for run_id in store.runs("awaiting_approval"):
        saved = store.load(run_id)
        head = None if saved is None else read_head(saved[0])
        step = None if head is None or head.parent is not None else head.open
        if step is not None and step.request is not None:  # nobody went on with it in between
            yield run_id, saved[0], step.request, step


def leave_answer(store: Any, approval: Approval, now: float) -> tuple[str, ApprovalRequest]:
    """Leave an answer for the process that resumes the run; return the run's id and the request.

    Parameters
    ----------
    store : StateStore
        Where the run is.
    approval : Approval
        The answer; its digest names what it answers.
    now : float
        Wall-clock time, in seconds since the epoch: when the answer came.

    Raises
    ------
    LookupError
        If nothing that waits there has this digest.
    StateError
        If the store cannot be used, or another process went on with the run at this moment.
    ValueError
        If the same approver has left the same answer already.

    Examples
    --------
    >>> from scikitplot.agent import Agent, Approval, Decision, MemoryStore, Policy, Tool
    >>> from scikitplot.agent.pending import leave_answer
    >>> store = MemoryStore()
    >>> def planner(state, tools):
    ...     return Decision.finish("done") if state.steps else Decision.act("save")
    >>> agent = Agent([Tool("save", lambda: "saved", effect="write")], planner,
    ...               policy=Policy(allow_effects={"write"}), store=store)
    >>> state = agent.run("save")
    >>> run_id, _ = leave_answer(store, Approval(state.pending.digest, True, "ann"), 1e9)
    >>> agent.resume(run_id).answer
    'done'
    """
    for run_id, text, request, step in _waiting(store):
        if not same_digest(request.digest, approval.digest):
            continue
        if any(answer.approval == approval for answer in step.answers):
            raise ValueError("this answer of this approver was left already")
        state = json.loads(text)
        revision = state["revision"]
        state["revision"] = revision + 1
        state["open"]["answers"].append(answer_dict(Answer(approval, now, CLAIMED)))
        store.commit(run_id, encode(state), [], expected=revision)
        return run_id, request
    raise LookupError("nothing that waits here has this digest")
