"""A run of n steps costs O(n): what is written, and what is kept."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

from support import FREE, WRITES, approve, script, writer

from scikitplot.agent import Agent, Decision, JsonlAuditSink, Limits, MemoryStore, RunState, Tool


class Counting(MemoryStore):
    """Keeps what each commit brought."""

    def __init__(self) -> None:
        super().__init__()
        self.commits: list[tuple[int, list[str]]] = []

    def commit(self, run_id: str, head: str, steps: Any, *, expected: int | None) -> None:
        self.commits.append((len(head), list(steps)))
        super().commit(run_id, head, steps, expected=expected)


def run(steps: int, store: MemoryStore, **options: Any) -> RunState:
    def planner(state: RunState, tools: Any) -> Decision:
        # The counter has as many digits at every step, so that sizes can be compared.
        index = 100_000 + len(state.steps)
        return Decision.act("get", {"n": index}) if index < 100_000 + steps else Decision.finish(0)

    tool = Tool(
        "get",
        lambda n: f"{n}" * 50,
        parameters={"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
    )
    fixed: Any = {"clock": lambda: 1.0, "now": lambda: 1.0}
    agent = Agent(
        [tool], planner, limits=Limits(max_steps=steps + 1), store=store, **fixed, **options
    )
    return agent.run("grow")


def test_no_step_is_saved_twice_and_no_commit_is_made_for_nothing() -> None:
    store = Counting()
    state = run(20, store)
    written = [step for _, steps in store.commits for step in steps]
    assert written == state.parts()[1]
    # The start; two for each step with a call; the answer.
    assert len(store.commits) == 1 + 2 * 20 + 1


def test_a_denied_step_is_one_commit_and_an_approved_one_three() -> None:
    store = Counting()
    agent = Agent([], script(Decision.act("no"), Decision.act("no")), store=store)
    agent.run("goal")
    assert len(store.commits) == 1 + 2 + 1
    store.commits.clear()
    agent = Agent(
        [writer([])], script(Decision.act("save", {"text": "x"})), policy=WRITES, store=store
    )
    paused = agent.run("goal")
    assert len(store.commits) == 1 + 1
    agent.resume(paused.run_id, approvals=approve(paused))
    # The claim, `resumed`, the call's two, the answer.
    assert len(store.commits) == 2 + 5


def test_the_head_does_not_grow_with_the_steps() -> None:
    store = Counting()
    run(400, store)
    early = max(size for size, _ in store.commits[1:40])
    late = max(size for size, _ in store.commits[-41:-1])
    assert late <= early + 30, "the digits of counters, and nothing else"


def test_bytes_are_linear_in_steps(tmp_path: Path) -> None:
    sizes = []
    for steps in (100, 1_000):
        path = tmp_path / str(steps)
        state = run(steps, MemoryStore(), audit=JsonlAuditSink(path))
        sizes.append(path.stat().st_size + len(state.to_json()))
    assert sizes[1] <= 10.5 * sizes[0]


def test_memory_is_linear_in_steps() -> None:
    run(10, MemoryStore())
    peaks = []
    for steps in (100, 1_000):
        tracemalloc.start()
        run(steps, MemoryStore())
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] <= 11 * peaks[0]


def test_a_planner_s_view_reads_only_what_is_touched() -> None:
    read: list[int] = []

    def planner(state: RunState, tools: Any) -> Decision:
        if len(state.steps) == 5:
            before = len(state.steps._read)
            _ = state.steps[-1].result
            read.append(len(state.steps._read) - before)
            return Decision.finish("end")
        return Decision.act("save", {"text": "x"})

    Agent([writer([])], planner, policy=FREE).run("goal")
    assert read == [1]
