"""Many processes and threads on the same files; each function is one trial and returns figures.

A trial forks all its processes before it opens anything itself.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from crash import workload
from crash.harness import Broken, fork
from crash.pairs import PAIRS
from crash.workload import Oracle

from scikitplot.agent import (
    Agent,
    Approval,
    Decision,
    JsonlAuditSink,
    Limits,
    Policy,
    RunState,
    SqliteStore,
    StateError,
    Tool,
    read_audit,
    verify_audit,
)

CONTEXT = multiprocessing.get_context("fork") if hasattr(os, "fork") else None
WAIT = 50.0  # seconds at a barrier, after which the trial is broken


def in_processes(work: Sequence[Callable[[], Any]]) -> list[Any]:
    """Do each piece of work in a process of its own; return what they return, as JSON."""
    readers = []
    for function in work:
        reader, writer = os.pipe()

        def job(function: Callable[[], Any] = function, writer: int = writer) -> None:
            signal.alarm(0)  # the launcher's limit holds
            with os.fdopen(writer, "w") as out:
                try:
                    json.dump([None, function()], out)
                except BaseException:
                    json.dump([traceback.format_exc(), None], out)

        readers.append((fork(job), reader))
        os.close(writer)
    results, faults = [], []
    for pid, reader in readers:
        with os.fdopen(reader) as file:
            text = file.read()
        _, status = os.waitpid(pid, 0)
        fault, result = json.loads(text) if text else (f"a process ended with {status}", None)
        if fault:
            faults.append(fault)
        results.append(result)
    if faults:
        raise Broken("\n".join(sorted(set(faults))))
    return results


def small_agent(store: Any, audit: Any, steps: int = 3) -> Agent:
    def planner(state: RunState, tools: Any) -> Decision:
        done = len(state.steps)
        return (
            Decision.act("echo", {"text": f"ä {done}"}) if done < steps else Decision.finish(done)
        )

    tool = Tool("echo", lambda text: text * 20, parameters=workload.TEXT, effect="write")
    policy = Policy(allow_effects={"write"}, approval_effects=())
    return Agent([tool], planner, policy=policy, store=store, audit=audit)


# Eight processes and eight threads on one file


def hammer(kind: str, folder: Path, *, seconds_each: float) -> dict[str, Any]:
    """Runs from 8 processes of 8 threads, for some seconds."""

    def open_files() -> tuple[Any, Any]:
        if kind in PAIRS:
            return PAIRS[kind].open(folder)
        return None, JsonlAuditSink(folder / "trail.jsonl", fsync=kind == "jsonl-fsync")

    if kind in PAIRS:
        PAIRS[kind].make(folder)

    def process() -> list[tuple[str, int, str]]:
        store, audit = open_files()
        agent = small_agent(store, audit)
        made: list[tuple[str, int, str]] = []
        faults: list[str] = []

        def thread() -> None:
            until = time.monotonic() + seconds_each
            try:
                while time.monotonic() < until:
                    state = agent.run("hammer")
                    made.append((state.run_id, *state.audit_head))
                    if store is not None and agent.resume(state.run_id) != state:
                        raise Broken("an ended run was not returned as it was")
                    if len(audit.head(state.run_id)) != 2:
                        raise Broken("the trail forgot a run")
            except BaseException:
                faults.append(traceback.format_exc())

        threads = [threading.Thread(target=thread) for _ in range(8)]
        for started in threads:
            started.start()
        for started in threads:
            started.join()
        if faults:
            raise Broken(faults[0])
        return made

    made = [tuple(run) for runs_made in in_processes([process] * 8) for run in runs_made]
    heads = {run_id: (seq, digest) for run_id, seq, digest in made}
    store, audit = open_files()
    if store is not None:
        if set(store.runs("completed")) != set(heads):
            raise Broken("runs are lost")
        if store.heads() != heads:
            raise Broken("the heads are others than those that were returned")

    def lines() -> Iterator[Any]:
        return audit.read() if store is audit else read_audit(audit.path)

    problems = verify_audit(lines(), heads=heads)
    records = sum(1 for _ in lines())
    if problems:
        raise Broken(f"{len(problems)} problems, the first: {problems[0]}")
    if records != len(heads) * 13:
        raise Broken(f"{records} records of {len(heads)} runs")
    return {"runs": len(heads), "records": records}


# Sixteen processes that resume one paused run


def claims(kind: str, folder: Path, *, rounds: int) -> dict[str, Any]:
    """Mixed answers to one pause, at one moment; every other round with a barrier at the claim."""
    many = 16
    assert CONTEXT is not None
    barrier = CONTEXT.Barrier(many)
    oracle = Oracle(folder / "oracle")
    ended: set[str] = set()  # by this process

    if kind in PAIRS:
        PAIRS[kind].make(folder)

    def open_pair(gate: Callable[[], Any]) -> tuple[Any, Any]:
        if kind == "jsonl":
            return None, JsonlAuditSink(folder / "trail.jsonl")
        store, audit = PAIRS[kind].open(folder)
        load = store.load

        def gated(run_id: str) -> Any:
            saved = load(run_id)
            gate()  # all have read the same revision before one claims it
            return saved

        store.load = gated
        return store, audit

    def make_agent(store: Any, audit: Any) -> Agent:
        def pay(text: str) -> str:
            oracle.effect("pay", False)
            return "paid"

        def planner(state: RunState, tools: Any) -> Decision:
            if state.steps:
                ended.add(state.run_id)
                return Decision.finish(1)
            return Decision.act("pay", {"text": "10 €"})

        tool = Tool("pay", pay, parameters=workload.TEXT, effect="external")
        policy = Policy(allow_effects={"external"})
        return Agent([tool], planner, policy=policy, store=store, audit=audit)

    def pause() -> list[tuple[str, str, str]]:
        agent = make_agent(*open_pair(lambda: None))
        states = [agent.run("pay") for _ in range(rounds)]
        return [(s.run_id, s.pending.digest, s.to_json()) for s in states if s.pending]

    [paused] = in_processes([pause])

    def process(number: int) -> list[str]:
        strict = False

        def gate() -> None:
            nonlocal strict
            if strict:  # the first load of a round; whoever loses looks once more why
                strict = False
                barrier.wait(WAIT)

        store, audit = open_pair(gate)
        agent = make_agent(store, audit)
        got = []
        for place, (run_id, digest, text) in enumerate(paused):
            strict = place % 2 == 0
            answer = Approval(digest, (number + place) % 2 == 0, f"p{number}")
            state: Any = RunState.from_json(text) if store is None else run_id
            barrier.wait(WAIT)
            try:
                agent.resume(state, approvals=[answer])
                got.append("went on" if run_id in ended else "found it ended")
            except StateError:
                got.append("StateError")
        return got

    results = in_processes([lambda number=number: process(number) for number in range(many)])

    effects = Counter(line["run"] for line in oracle.lines())
    store, audit = open_pair(lambda: None)
    records = list(audit.read())
    problems = verify_audit(records, heads=store.heads() if store else None)
    trail: dict[str, list[Any]] = {}
    for record in records:
        trail.setdefault(record.run_id, []).append(record)
    if problems:
        raise Broken(f"the trail: {problems[0]}")
    figures: Counter[str] = Counter(rounds=rounds)
    for place, (run_id, _, _) in enumerate(paused):
        got = Counter(result[place] for result in results)
        figures.update(got)
        if place % 2 == 0 or kind == "jsonl":
            if got != {"went on": 1, "StateError": many - 1}:
                raise Broken(f"round {place}: {got}")
            winner = next(n for n, result in enumerate(results) if result[place] == "went on")
            answers = [r.data for r in trail[run_id] if r.event == "approval"]
            if [answer["approver"] for answer in answers] != [f"p{winner}"]:
                raise Broken(f"round {place}: {winner} went on, the trail names {answers}")
            granted = (winner + place) % 2 == 0
            if effects[run_id] != granted:
                raise Broken(f"round {place}: granted {granted}, {effects[run_id]} effects")
        # Without the barrier at the claim one process may take the run from another, or find it
        # ended; one of them ends it.
        if got["went on"] != 1 or effects[run_id] > 1:
            raise Broken(f"round {place}: {got}, {effects[run_id]} effects")
        if trail[run_id][-1].event != "run_finished":
            raise Broken(f"round {place}: the run did not end")
    figures["effects"] = effects.total()
    return dict(figures)


# A process that was only slow


def slow(pair: str, folder: Path) -> dict[str, Any]:
    """Stop a process in its planner, then one in a call; end the run elsewhere; let it go on."""
    refused = 0
    for place in ("planner", "effect note"):
        where = folder / place.split()[-1]
        PAIRS[pair].make(where)
        oracle = Oracle(where / "oracle")
        run_id = os.urandom(32).hex()
        stops = iter((False, True))  # the planner's second question, the call's first

        def point(label: str, place: str = place, stops: Any = stops) -> None:
            if label == place and (next(stops, False) or place != "planner"):
                os.kill(os.getpid(), signal.SIGSTOP)

        def session(
            point: Any = workload.no_point, where: Path = where, run_id: str = run_id
        ) -> str:
            store, audit = PAIRS[pair].open(where)
            agent = workload.make_agent(store, audit, Oracle(where / "oracle"), point)
            try:
                seen = workload.look(store, audit, run_id)
                while seen["status"] != "completed":
                    workload.go_on(agent, run_id, seen)
                    seen = workload.look(store, audit, run_id)
            except StateError as error:
                return str(error)
            return "ended" if not seen["problems"] else str(seen["problems"])

        reader, writer = os.pipe()

        def first(reader: int = reader, writer: int = writer) -> None:
            os.close(reader)
            os.write(writer, session(point).encode())

        pid = fork(first)
        os.close(writer)
        _, status = os.waitpid(pid, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            raise Broken(f"{pair}: it did not stop in {place}")
        before = len(oracle.lines())
        [other] = in_processes([session])
        after = oracle.lines()
        if other != "ended" or len(after) <= before:
            raise Broken(f"{pair}: the run was not ended elsewhere: {other}")
        os.kill(pid, signal.SIGCONT)
        with os.fdopen(reader) as file:
            told = file.read()
        os.waitpid(pid, 0)
        if "another process went on" not in told:
            raise Broken(f"{pair}: the slow process was not refused: {told}")
        if oracle.lines() != after:
            raise Broken(f"{pair}: the slow process made a call: {oracle.lines()[len(after) :]}")
        notes = [line for line in after if line["tool"] == "note"]
        if len(notes) != len({line["step"] for line in notes}):
            raise Broken(f"{pair}: a call was made twice")
        [seen] = in_processes([session])
        if seen != "ended":
            raise Broken(f"{pair}: afterwards: {seen}")
        refused += 1
    return {"refused": refused}


# Opening, reading, forking


def opening(kind: str, folder: Path, *, rounds: int) -> dict[str, Any]:
    """Open a new database from 16 processes at once, and use it."""
    many = 16
    assert CONTEXT is not None
    barrier = CONTEXT.Barrier(many)

    def process() -> int:
        for number in range(rounds):
            barrier.wait(WAIT)
            with SqliteStore(folder / f"{number}.db") as store:
                small_agent(store, store, steps=1).run("open")
        return rounds

    in_processes([process] * many)
    for number in range(rounds):
        with SqliteStore(folder / f"{number}.db") as store:
            if len(store.runs("completed")) != many or verify_audit(store.read()):
                raise Broken(f"round {number}: runs are lost")
    return {"rounds": rounds}


def reading(kind: str, folder: Path, *, steps: int) -> dict[str, Any]:
    """Page slowly through a long trail while another object writes a longer one."""
    path = folder / "runs.db"

    def process() -> dict[str, Any]:
        with SqliteStore(path) as reader, SqliteStore(path) as store:
            agent = make(store)
            run_id = agent.run("a long run").run_id
            records = reader.read(run_id)
            read = [next(records)]  # a page is read, and the next ones are not
            most = 0

            def measure() -> None:
                nonlocal most
                most = max(most, (folder / "runs.db-wal").stat().st_size)
                if len(read) < 4 * steps:
                    read.append(next(records))

            make(store, measure).run("written while the other is read")
            read += records
            if verify_audit(read, heads={run_id: store.heads()[run_id]}):
                raise Broken("what was read does not verify")
            return {"wal": most, "database": path.stat().st_size}

    def make(store: Any, each: Callable[[], None] | None = None) -> Agent:
        def planner(state: RunState, tools: Any) -> Decision:
            if each is not None:
                each()
            done = len(state.steps)
            return Decision.act("page") if done < steps else Decision.finish(done)

        tool = Tool("page", lambda: "x" * 4000)
        return Agent([tool], planner, limits=Limits(max_steps=steps + 1), store=store, audit=store)

    [sizes] = in_processes([process])
    if sizes["wal"] > 8_000_000 or sizes["database"] < 16_000_000:
        raise Broken(f"the WAL grew to {sizes['wal']} bytes: {sizes}")
    return dict(sizes)


def forking(kind: str, folder: Path, *, rounds: int) -> dict[str, Any]:
    """Use a store, fork, use it in the child, and close it in the parent meanwhile."""

    def process() -> int:
        made = 0
        for number in range(rounds):
            path = folder / f"{number}.db"
            store = SqliteStore(path)
            agent = small_agent(store, store, steps=1)
            agent.run("before the fork")
            begun, told, closed, go = *os.pipe(), *os.pipe()

            def child(agent: Agent = agent, told: int = told, closed: int = closed) -> None:
                agent.run("in the child, while the parent has it open")
                os.write(told, b"x")
                os.read(closed, 1)
                agent.run("in the child, after the parent closed it")

            pid = fork(child)
            os.read(begun, 1)
            store.close()
            os.write(go, b"x")
            _, status = os.waitpid(pid, 0)
            for fd in (begun, told, closed, go):
                os.close(fd)
            if status:
                raise Broken(f"the child ended with status {status}")
            with SqliteStore(path) as store:
                if len(store.runs("completed")) != 3:
                    raise Broken(f"{len(store.runs('completed'))} runs are there of 3")
                if verify_audit(store.read(), heads=store.heads()):
                    raise Broken("the trail does not verify")
            made += 3
        return made

    return {"runs": in_processes([process])[0]}


TRIALS = {
    "hammer": hammer,
    "claims": claims,
    "slow": slow,
    "opening": opening,
    "reading": reading,
    "forking": forking,
}


def main(trial: str, kind: str, folder: str, options: dict[str, Any]) -> None:
    started = time.perf_counter()
    try:
        figures = TRIALS[trial](kind, Path(folder), **options)
    except Broken as error:
        sys.exit(f"broken: {error}")
    figures["milliseconds"] = round(1000 * (time.perf_counter() - started))
    print(json.dumps(figures))


if __name__ == "__main__":
    main(*sys.argv[1:4], json.loads(sys.argv[4]))
