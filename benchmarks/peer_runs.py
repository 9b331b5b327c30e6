"""One run of one system, in a process of its own; `peers.py` starts it.

Run: ``python benchmarks/peer_runs.py SYSTEM time STEPS``, which prints what a step costs, or
``begin STEPS FOLDER STEP``, which runs until it is killed in the tool of that step, and then
``after STEPS FOLDER``, which prints what was saved, and resumes.

In each system a rule in the place of a model calls ``add(index, 1)`` once a step, so that only the
systems differ. A system has a folder of its own and five methods: `run` from the beginning,
`resume`, `saved` (finished steps, and whether a call is known to have been cut off), `close`, and
the constructor, which is not timed.
"""

from __future__ import annotations

import contextlib
import json
import operator
import os
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypedDict

from floor import FileFloor, Floor, SqliteFloor

from scikitplot.agent import (
    Agent,
    Decision,
    JsonlAuditSink,
    Limits,
    MemoryAuditSink,
    MemoryStore,
    Policy,
    RunState,
    SqliteStore,
    Tool,
    read_audit,
)

Act = Callable[[int], int]  # the tool's work; it is given the number of the step
NOTHING = (0, False)
LEAST = 400  # steps that a time is taken from
PAUSE = 0.02  # seconds before and after an effect, in which the process may be killed
PROPERTIES = {"a": {"type": "integer"}, "b": {"type": "integer"}}
PARAMETERS = {"type": "object", "properties": PROPERTIES, "required": ["a", "b"]}


class CannotResume(Exception):
    """What is saved is not enough, or the system refuses; the message says why."""


class InMemory:
    """What is left of a system without files: nothing."""

    def saved(self) -> tuple[int, bool]:
        return NOTHING

    def resume(self) -> None:
        raise CannotResume("its state was in memory")

    def close(self) -> None:
        pass


class Ours(InMemory):
    """`scikitplot.agent`, with the state and the trail in memory."""

    FLOOR = "floor, memory"
    RUN_ID = "0f" * 32
    IDEMPOTENT = False

    def __init__(self, folder: Path, steps: int, act: Act) -> None:
        self.folder, self.steps = folder, steps

        def planner(state: RunState, tools: Any) -> Decision:
            index = len(state.steps)
            if index == steps:
                return Decision.finish(0)
            return Decision.act("add", {"a": index, "b": 1})

        tool = Tool(
            "add",
            lambda a, b: act(a),
            parameters=PARAMETERS,
            effect="write",
            idempotent=self.IDEMPOTENT,
        )
        policy = Policy(allow_effects={"write"}, approval_effects=())
        self.options = self.open()
        self.agent = Agent(
            [tool], planner, policy=policy, limits=Limits(max_steps=steps + 1), **self.options
        )

    def open(self) -> dict[str, Any]:
        return {"store": MemoryStore(), "audit": MemoryAuditSink()}

    def run(self) -> None:
        self.check(self.agent.run("add", run_id=self.RUN_ID))

    def check(self, state: RunState) -> None:
        if (state.status.value, len(state.steps)) != ("completed", self.steps + 1):
            raise RuntimeError(f"it did not get to its end: {state}")


class OursFile(Ours):
    """The trail in a file, the state in memory."""

    FLOOR = "floor, JSONL"

    def open(self) -> dict[str, Any]:
        return {"store": MemoryStore(), "audit": JsonlAuditSink(self.folder / "trail.jsonl")}

    def saved(self) -> tuple[int, bool]:
        events = [getattr(line, "event", "") for line in read_audit(self.folder / "trail.jsonl")]
        finished = events.count("tool_finished")
        return finished, events.count("tool_started") > finished


class OursSqlite(Ours):
    """The state and the trail in a database."""

    FLOOR = "floor, SQLite"
    SYNCHRONOUS = "normal"

    def open(self) -> dict[str, Any]:
        store = SqliteStore(self.folder / "runs.db", synchronous=self.SYNCHRONOUS)
        return {"store": store, "audit": store}

    def saved(self) -> tuple[int, bool]:
        found = self.options["store"].load(self.RUN_ID)
        if found is None:
            return NOTHING
        state = RunState.view(*found)
        return len(state.steps), state.in_flight is not None

    def resume(self) -> None:
        self.check(self.agent.resume(self.RUN_ID))

    def close(self) -> None:
        self.options["store"].close()


class OursSqliteFull(OursSqlite):
    """Where each commit waits for the disk."""

    FLOOR = "floor, SQLite, full"
    SYNCHRONOUS = "full"


class OursIdempotent(OursSqlite):
    """A tool that may be called again after it was cut off."""

    IDEMPOTENT = True


THREAD = {"configurable": {"thread_id": "1"}, "recursion_limit": 10**9}


class GraphState(TypedDict):
    steps: Annotated[list[Any], operator.add]
    todo: dict[str, int]


class LangGraph(InMemory):
    """A graph of two nodes, a planner and a tool, as LangGraph's agents are."""

    FLOOR = "floor, memory"
    DURABILITY: str | None = None  # as it is by default

    def __init__(self, folder: Path, steps: int, act: Act) -> None:
        from langgraph.graph import END, START, StateGraph

        self.folder, self.steps = folder, steps

        def plan(state: Any) -> Any:
            index = len(state["steps"])
            return {"todo": {"a": index, "b": 1} if index < steps else {}}

        def call(state: Any) -> Any:
            arguments = state["todo"]
            return {"steps": [{"arguments": arguments, "result": act(arguments["a"])}]}

        graph = StateGraph(GraphState)
        graph.add_node("plan", plan)
        graph.add_node("call", call)
        graph.add_edge(START, "plan")
        graph.add_conditional_edges("plan", lambda state: "call" if state["todo"] else END)
        graph.add_edge("call", "plan")
        self.app: Any = graph.compile(checkpointer=self.saver())

    def saver(self) -> Any:
        from langgraph.checkpoint.memory import InMemorySaver

        return InMemorySaver()

    def run(self) -> None:
        self.go_on({"steps": [], "todo": {}})

    def go_on(self, state: Any) -> None:
        state = self.app.invoke(state, THREAD, durability=self.DURABILITY)
        if len(state["steps"]) != self.steps:
            raise RuntimeError(f"it has {len(state['steps'])} steps")


class LangGraphSqlite(LangGraph):
    """With its SQLite saver, which saves before each node starts."""

    FLOOR = "floor, SQLite, full"
    DURABILITY = "sync"

    def saver(self) -> Any:
        from langgraph.checkpoint.sqlite import SqliteSaver

        self.db = sqlite3.connect(self.folder / "graph.db", check_same_thread=False)
        return SqliteSaver(self.db)

    def saved(self) -> tuple[int, bool]:
        return len(self.app.get_state(THREAD).values.get("steps", ())), False

    def resume(self) -> None:
        self.go_on(None)

    def close(self) -> None:
        self.db.close()


class Ragleap:
    """ragleap-agents with its SQLite store; it runs for 8 steps at most."""

    FLOOR = "floor, SQLite, full"
    MOST = 8

    def __init__(self, folder: Path, steps: int, act: Act) -> None:
        from ragleap_agents import TRUSTED, Policy, SQLiteStateStore
        from ragleap_agents import Agent as TheirAgent
        from ragleap_tools import Tool as TheirTool
        from ragleap_tools import ToolResult

        self.path, self.steps = folder / "state.db", steps

        def model(prompt: str) -> str:
            # What was done stands in the prompt, a line for each.
            index = prompt.count("-> executed")
            if index < steps:
                return json.dumps({"tool": "add", "arguments": {"a": index, "b": 1}})
            return json.dumps({"tool": "done"})

        def add(a: int, b: int) -> Any:
            return ToolResult(success=True, result=str(act(a)))

        self.agent = TheirAgent(
            model,
            [TheirTool("add", "add", PARAMETERS, add)],
            Policy(max_steps=steps, tools={"add": TRUSTED}),
            store=SQLiteStateStore(self.path),
            summarize=False,
        )

    def run(self) -> None:
        result = self.agent.run("add")
        if len(result.steps) != self.steps:
            raise RuntimeError(f"it stopped after {len(result.steps)} steps: {result.stop_reason}")

    def _run_id(self) -> str | None:
        with contextlib.closing(sqlite3.connect(self.path)) as db:
            row = db.execute("select run_id from runs").fetchone()
        return None if row is None else row[0]

    def saved(self) -> tuple[int, bool]:
        run_id = self._run_id()
        if run_id is None:
            return NOTHING
        state = self.agent.store.load(run_id)
        return len(state["steps"]), state["pending"] is not None

    def resume(self) -> None:
        from ragleap_agents.agent import ResumeError

        run_id = self._run_id()
        if run_id is None:
            raise CannotResume("nothing was saved")
        try:
            self.agent.resume(run_id, {})
        except ResumeError as error:
            raise CannotResume(str(error)) from None

    def close(self) -> None:
        pass


class Floored:
    """The floor, which keeps and says nothing more; there is nothing in it to resume with."""

    def __init__(self, kind: Callable[[Path], Floor], folder: Path, steps: int, act: Act) -> None:
        self.floor, self.steps = kind(folder), steps

    def run(self) -> None:
        self.floor.run(self.steps)

    def close(self) -> None:
        self.floor.close()


SYSTEMS: dict[str, Any] = {
    "scikitplot.agent, memory": Ours,
    "scikitplot.agent, JSONL": OursFile,
    "scikitplot.agent, SqliteStore": OursSqlite,
    "LangGraph, memory": LangGraph,
    "LangGraph, SqliteSaver": LangGraphSqlite,
    "ragleap-agents, SQLiteStateStore": Ragleap,
}
FLOORS: dict[str, Any] = {
    "floor, memory": partial(Floored, lambda folder: Floor()),
    "floor, JSONL": partial(Floored, FileFloor),
    "floor, SQLite": partial(Floored, SqliteFloor),
    "floor, SQLite, full": partial(Floored, partial(SqliteFloor, synchronous="full")),
}
TIMED = FLOORS | SYSTEMS | {"scikitplot.agent, SqliteStore, full": OursSqliteFull}
KILLED = SYSTEMS | {"scikitplot.agent, SqliteStore, idempotent tool": OursIdempotent}


def measure(name: str, steps: int) -> dict[str, Any]:
    """Return the time and the bytes of a step in a run of so many."""

    def once(count: int) -> tuple[float, int]:
        with tempfile.TemporaryDirectory() as folder:
            system = TIMED[name](Path(folder), count, lambda a: a + 1)
            start = time.perf_counter()
            system.run()
            seconds = time.perf_counter() - start
            system.close()
            size = sum(file.stat().st_size for file in Path(folder).rglob("*"))
            return seconds / count, size

    once(min(steps, 8))  # what is imported and built at the first use
    runs = [once(steps) for _ in range(max(1, LEAST // steps))]
    return {"us": 1e6 * min(seconds for seconds, _ in runs), "bytes": runs[0][1] / steps}


def note(folder: Path, index: int) -> None:
    """The effect of a step: a line in a file outside of the system, on the disk."""
    fd = os.open(folder / "effects", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    os.write(fd, f"{index}\n".encode())
    os.fsync(fd)
    os.close(fd)


def begin(name: str, steps: int, folder: Path, last: int) -> None:
    def act(index: int) -> int:
        if index == last:
            print("ready", flush=True)
            time.sleep(PAUSE)
        note(folder, index)
        if index == last:
            time.sleep(PAUSE)
            time.sleep(60)  # whoever started this kills it
        return index + 1

    KILLED[name](folder / "state", steps, act).run()


def after(name: str, steps: int, folder: Path) -> dict[str, Any]:
    def act(index: int) -> int:
        note(folder, index)
        return index + 1

    system = KILLED[name](folder / "state", steps, act)
    saved, is_known = system.saved()
    result = {"saved": saved, "knows_the_call": is_known, "why": ""}
    try:
        system.resume()
    except CannotResume as error:
        result["why"] = str(error)
    system.close()
    return result


def main(name: str, what: str, steps: str, *where: str) -> None:
    try:
        if what == "time":
            result = measure(name, int(steps))
        elif what == "begin":
            begin(name, int(steps), Path(where[0]), int(where[1]))
            return
        else:
            result = after(name, int(steps), Path(where[0]))
    except ImportError as error:
        result = {"failed": f"not installed: {(error.name or '').partition('.')[0]}"}
    print(json.dumps(result))


if __name__ == "__main__":
    main(*sys.argv[1:])
