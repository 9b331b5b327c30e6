"""What the command line does with the runs of a store: list, show, answer and export them."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from support import FREE, WRITES, ByAgent, ByAsync, script, writer
from test_cli import Terminal
from test_display import HOSTILE, assert_harmless

from scikitplot.agent import (
    Agent,
    AgentError,
    Approval,
    Decision,
    JsonlAuditSink,
    Limits,
    MemoryStore,
    Policy,
    RunState,
    SqliteStore,
    StateError,
    delegate,
    verify_audit,
)
from scikitplot.agent import __main__ as command_line
from scikitplot.agent.exported import read_export
from scikitplot.agent.pending import leave_answer, pending_requests

SAVE = Decision.act("save", {"text": "x"})
KEY = b"the key of ann, 16 bytes or more"


class Shell:
    """The command line on a store of its own, and an agent whose runs are in it."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.path = folder / "runs.db"
        self.calls: list[Any] = []
        self._capsys = capsys
        self.plan = script(SAVE)
        self.options: dict[str, Any] = {"policy": WRITES}

    def agent(self, store: SqliteStore) -> Agent:
        return Agent([writer(self.calls)], self.plan, store=store, audit=store, **self.options)

    def run(self, goal: str = "goal") -> RunState:
        with SqliteStore(self.path) as store:
            return self.agent(store).run(goal)

    def resume(self, run_id: str) -> RunState:
        with SqliteStore(self.path) as store:
            state = self.agent(store).resume(run_id)
            assert verify_audit(store.read(), heads=store.heads()) == []
            return state

    def events(self) -> list[str]:
        with SqliteStore(self.path) as store:
            return [record.event for record in store.read() if hasattr(record, "event")]

    def __call__(self, name: str, *arguments: Any, code: int = 0) -> str:
        given = [name, str(self.path), *map(str, arguments)]
        self._capsys.readouterr()
        assert command_line.main(given) == code
        out, error = self._capsys.readouterr()
        assert bool(error) == (code == 2)
        if error:
            assert error.startswith("error: ")
            assert error.rstrip("\n").isprintable()
        out = out.replace(str(self.path), "STORE")
        assert_harmless(out.rstrip("\n"), 10**9 if "--json" in given or name == "export" else 80)
        return out if code != 2 else error

    def json(self, name: str, *arguments: Any, code: int = 0) -> list[dict[str, Any]]:
        printed = self(name, *arguments, "--json", code=code)
        assert printed.isascii()
        return [json.loads(line) for line in printed.splitlines()]


@pytest.fixture
def shell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(tmp_path, capsys)


# runs


def test_runs_lists_each_run_with_where_it_stands(shell: Shell) -> None:
    waiting, goal = shell.run("the first goal"), "z" * 200
    shell.plan = script()
    ended = shell.run(goal)
    shell.plan, shell.options = script(*[Decision.act("fly")] * 9), {"limits": Limits(max_steps=2)}
    shell.run("fly")
    lines = shell("runs").splitlines()
    assert lines[0] == (
        f"  {waiting.run_id[:12]}  awaiting_approval; 1 decision, 0 calls, cost 0; the first goal"
    )
    assert any(line.startswith(f"  {ended.run_id[:12]}  completed; 1 decision") for line in lines)
    text = "".join(line.lstrip(" |") for line in lines)
    assert "(140 morecharacters)" in text.replace("more characters", "morecharacters")
    assert "stopped (max_steps); 2 decisions" in text
    told = shell.json("runs")
    assert [run["status"] for run in told] == ["awaiting_approval", "completed", "stopped"]
    assert told[1]["goal"] == goal
    assert [run["run_id"] for run in shell.json("runs", "--status", "completed")] == [ended.run_id]
    assert "there is no such run" in shell("runs", "--status", "failed")
    assert shell.json("runs", "--status", "failed") == []


def test_runs_says_of_a_run_that_is_damaged_that_it_is(shell: Shell) -> None:
    state = shell.run()
    with SqliteStore(shell.path) as store:
        text, _ = store.load(state.run_id)  # type: ignore[misc]
        store.commit(state.run_id, text.replace('"open":{', '"open":{"x":1,'), [], expected=1)
    assert "damaged; saved state" in shell("runs", code=1)
    [told] = shell.json("runs", code=1)
    assert told["run_id"] == state.run_id
    assert "saved state" in told["error"]


def test_more_runs_than_are_read_at_once_are_all_listed(shell: Shell) -> None:
    shell.plan = script()
    with SqliteStore(shell.path) as store:
        agent = shell.agent(store)
        for _ in range(230):
            agent.run("goal")
    assert len(shell.json("runs")) == 230
    assert len(shell("runs").splitlines()) == 230


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_no_command_prints_what_moves_the_cursor_or_hides(shell: Shell, text: str) -> None:
    shell.plan = script(Decision.act("save", {"text": text}, reason=text))
    state = shell.run(text)
    assert state.pending is not None
    for name in ("runs", "pending"):
        shell(name)
        shell.json(name)
    shell("show", state.run_id)
    shell.json("show", state.run_id)
    shell("deny", state.pending.digest, "--by", text[:900], "--reason", text[:900])
    shell("pending")
    shell.resume(state.run_id)
    shell("show", state.run_id)


# show


def test_show_tells_a_run_with_its_trail_and_what_it_waits_for(shell: Shell) -> None:
    state = shell.run()
    assert state.pending is not None
    for named in (state.run_id, state.run_id[:12], state.run_id[:4]):
        text = shell("show", named)
        assert "Validation ok, Permissions ok, Scope ok, Budget ok, Approval waits" in text
        assert "A call waits for a person" in text
    [told] = shell.json("show", state.run_id)
    assert RunState.from_dict(told["state"]) == state
    assert [record["event"] for record in told["trail"]] == shell.events()


def test_show_reads_a_trail_that_is_not_in_the_store(shell: Shell, tmp_path: Path) -> None:
    trail = tmp_path / "trail.jsonl"
    with SqliteStore(shell.path) as store:
        agent = Agent([writer([])], script(SAVE), policy=FREE, store=store)
        agent = Agent(
            [writer([])], script(SAVE), policy=FREE, store=store, audit=JsonlAuditSink(trail)
        )
        state = agent.run("goal")
    assert "Approval ok" in shell("show", state.run_id)
    assert "Approval not needed" in shell("show", state.run_id, "--trail", trail)
    assert "cannot be read" in shell("show", state.run_id, "--trail", tmp_path / "none", code=2)


def test_what_is_not_there_is_one_sentence_and_exit_code_2(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no database")
    for name, rest in (
        ("runs", ()),
        ("pending", ()),
        ("show", ("ab" * 32,)),
        ("export", ("ab" * 32,)),
        ("approve", ("ab" * 32, "--by", "ann")),
    ):
        shell.path = tmp_path / "not there"
        assert "cannot be read" in shell(name, *rest, code=2)
        assert not shell.path.exists()
        shell.path = tmp_path / "text"
        assert "is no database of a SqliteStore" in shell(name, *rest, code=2)
    shell.path = tmp_path / "runs.db"
    run_id = shell.run().run_id
    other = "0" if run_id[0] != "0" else "1"
    for name in ("show", "export"):
        assert "no run begins with it" in shell(name, other * 4, code=2)
        assert "does not hold it" in shell(name, other * 64, code=2)
        for named in ("", "x", run_id[:3], run_id + "0", run_id.upper(), "\x1b[2K"):
            if named != run_id:
                assert "RUN must be" in shell(name, named, code=2)


def test_digits_that_several_runs_begin_with_name_none(shell: Shell) -> None:
    with SqliteStore(shell.path) as store:
        agent = shell.agent(store)
        for digit in "ab":
            agent.run("goal", run_id="0000" + digit * 60)
    assert "several runs begin with it" in shell("show", "0000", code=2)
    assert "save" in shell("show", "0000a")


def test_a_long_run_is_paged_at_a_terminal(shell: Shell, tmp_path: Path) -> None:
    shell.plan = script(*[SAVE] * 40)
    shell.options = {"policy": FREE, "limits": Limits(max_steps=60)}
    long, short = shell.run(), None
    shell.plan = script()
    short = shell.run()
    for state, is_paged in ((long, True), (short, False)):
        paged = tmp_path / f"paged {is_paged}"
        pager = f"cat > '{paged}'"
        terminal = Terminal("show", shell.path, state.run_id, env={"PAGER": pager})
        assert terminal.end() == 0
        assert paged.exists() == is_paged
        if is_paged:
            assert paged.read_text("utf-8").count("call save") == 40


# approve and deny


@pytest.mark.parametrize("driver", [Agent, ByAsync])
def test_an_approval_that_was_left_takes_effect_once_when_the_run_is_resumed(
    shell: Shell, driver: Any
) -> None:
    state = shell.run()
    assert state.pending is not None
    before = shell.events()
    told = shell("approve", state.pending.digest, "--by", "ann")
    assert f"  granted by ann\n  resume     {state.run_id}\n  effective  when" in told
    assert 'text: "x"' in told
    assert (shell.calls, shell.events()) == ([], before)
    assert "  granted by ann" in shell("pending")
    assert [run["answers"][0]["approver"] for run in shell.json("pending")] == ["ann"]
    if driver is Agent:
        ended = shell.resume(state.run_id)
    else:
        with SqliteStore(shell.path) as store:
            plan = shell.plan
            by = ByAsync([writer(shell.calls)], plan, policy=WRITES, store=store, audit=store)
            saved = store.load(state.run_id)
            assert saved is not None
            ended = by.resume(RunState.view(saved.head, list(saved.steps)))
    assert ended.answer == "end"
    assert shell.calls == ["x"]
    assert shell.resume(state.run_id).answer == "end"
    assert shell.calls == ["x"]
    assert shell.json("pending") == []
    assert "nothing waits for a person" in shell("pending")


def test_the_record_of_an_answer_that_was_left_says_when_it_came(shell: Shell) -> None:
    state = shell.run()
    assert state.pending is not None
    start = time.time()
    shell("approve", state.pending.digest, "--by", "ann")
    end = time.time()
    shell.resume(state.run_id)
    with SqliteStore(shell.path) as store:
        [data] = [record.data for record in store.read() if record.event == "approval"]  # type: ignore[union-attr]
    assert start <= data["received_at"] <= end
    assert data["identity"] == "claimed"


def test_a_refusal_that_was_left_is_told_to_the_planner_with_its_reason(shell: Shell) -> None:
    state = shell.run()
    assert state.pending is not None
    told = shell("deny", state.pending.digest, "--by", "bob", "--reason", "too dear")
    assert "  refused by bob" in told
    [step, _] = shell.resume(state.run_id).steps
    assert step.code == "approval_denied"
    assert "too dear" in str(step.error)
    assert shell.calls == []


def test_an_answer_that_was_left_is_judged_by_the_policy_of_whoever_resumes(shell: Shell) -> None:
    shell.options["policy"] = Policy({"write"}, approvers=["ann"], approvals_needed=1)
    state = shell.run()
    assert state.pending is not None
    shell("approve", state.pending.digest, "--by", "eve")
    paused = shell.resume(state.run_id)
    assert paused.status.value == "awaiting_approval"
    assert shell.calls == []
    assert shell.events().count("approval_ignored") == 1
    assert shell.json("pending")[0]["answers"] == []
    shell("approve", state.pending.digest, "--by", "ann")
    assert shell.resume(state.run_id).answer == "end"


def test_several_approvers_can_leave_theirs_one_after_the_other(shell: Shell) -> None:
    shell.options["policy"] = Policy({"write"}, approvals_needed=2)
    state = shell.run()
    assert state.pending is not None
    digest = state.pending.digest
    shell("approve", digest, "--by", "ann")
    assert "was left already" in shell("approve", digest, "--by", "ann", code=2)
    assert shell.resume(state.run_id).status.value == "awaiting_approval"
    shell("approve", digest, "--by", "bob")
    assert shell.resume(state.run_id).answer == "end"
    assert shell.events().count("approval") == 2


def test_an_answer_that_was_left_too_late_does_not_count(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell.options["policy"] = Policy({"write"}, approval_seconds=60)
    state = shell.run()
    assert state.pending is not None
    late = time.time() + 61
    monkeypatch.setattr("scikitplot.agent.commands.runs.time.time", lambda: late)
    shell("approve", state.pending.digest, "--by", "ann")
    assert shell.resume(state.run_id).steps[0].code == "approval_expired"
    assert shell.calls == []


def test_an_answer_is_signed_with_the_key_of_its_approver(shell: Shell, tmp_path: Path) -> None:
    shell.options["approval_keys"] = {"ann": KEY}
    key = tmp_path / "key"
    state = shell.run()
    assert state.pending is not None
    digest = state.pending.digest
    shell("approve", digest, "--by", "ann")
    assert shell.resume(state.run_id).status.value == "awaiting_approval"
    for content, told in ((b"short", "at least 16 bytes"), (None, "cannot be read")):
        key.write_bytes(content) if content is not None else key.unlink()
        error = shell("approve", digest, "--by", "ann", "--key-file", key, code=2)
        assert told in error
        assert "short" not in error
    key.write_bytes(KEY)
    shell("approve", digest, "--by", "ann", "--key-file", key)
    assert shell.resume(state.run_id).answer == "end"
    with SqliteStore(shell.path) as store:
        found = [record.data for record in store.read() if record.event == "approval"]  # type: ignore[union-attr]
    assert [data["identity"] for data in found] == ["signed"]


def test_an_answer_to_nothing_that_waits_is_refused(shell: Shell) -> None:
    state = shell.run()
    assert state.pending is not None
    assert "nothing that waits" in shell("approve", "0" * 64, "--by", "ann", code=2)
    assert "digest must be" in shell("approve", state.pending.digest[:12], "--by", "ann", code=2)
    assert "name who answers" in shell("approve", state.pending.digest, "--by", "", code=2)
    shell("approve", state.pending.digest, "--by", "ann")
    shell.resume(state.run_id)
    told = shell("approve", state.pending.digest, "--by", "ann", code=2)
    assert "nothing that waits" in told


@pytest.mark.parametrize("depth", [1, 2])
def test_a_request_of_a_run_that_was_delegated_to_is_answered_at_the_first_run(
    depth: int, tmp_path: Path
) -> None:
    calls: list[Any] = []
    ask = Decision.act("child", {"goal": "do it"})
    with SqliteStore(tmp_path / "runs.db") as store:
        agent = Agent([writer(calls)], script(SAVE), policy=WRITES)
        for _ in range(depth):
            child = delegate(agent, "child", "Does it.")
            agent = Agent([child], script(ask), policy=WRITES, store=store, audit=store)
        state = agent.run("goal")
        [(run_id, request, _)] = pending_requests(store)
        assert run_id == state.run_id
        assert request.run_id != run_id
        yes = Approval(request.digest, True, "ann")
        assert leave_answer(store, yes, time.time()) == (run_id, request)
        assert calls == []
        assert agent.resume(run_id).status.value == "completed"
        assert calls == ["x"]
        assert verify_audit(store.read(), heads=store.heads()) == []


class Interrupted(MemoryStore):
    """A store that has another process go on with a run before it commits."""

    def __init__(self) -> None:
        super().__init__()
        self.meanwhile: Any = None

    def commit(self, run_id: str, head: str, steps: Any, **options: Any) -> None:
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            meanwhile()
        super().commit(run_id, head, steps, **options)


def test_an_answer_does_not_undo_what_another_process_does_meanwhile() -> None:
    calls: list[Any] = []
    store = Interrupted()
    agent = Agent([writer(calls)], script(SAVE), policy=WRITES, store=store)
    state = agent.run("goal")
    assert state.pending is not None
    yes = Approval(state.pending.digest, True, "ann")
    store.meanwhile = lambda: agent.resume(state.run_id, approvals=[yes])
    with pytest.raises(StateError, match="another process went on with it"):
        leave_answer(store, yes, time.time())
    assert calls == ["x"]
    assert agent.resume(state.run_id).answer == "end"


@pytest.mark.parametrize("kind", [ByAgent, ByAsync])
def test_who_resumes_while_an_answer_is_left_is_told_and_loses_nothing(kind: Any) -> None:
    calls: list[Any] = []
    store = Interrupted()
    driver = kind([writer(calls)], script(SAVE), policy=WRITES, store=store)
    state = driver.run()
    assert state.pending is not None
    yes = Approval(state.pending.digest, True, "ann")
    store.meanwhile = lambda: leave_answer(store, yes, time.time())
    with pytest.raises(AgentError, match="another process went on with it"):
        driver.resume(state)
    assert calls == []
    saved = store.load(state.run_id)
    assert saved is not None
    assert driver.resume(RunState.view(saved.head, list(saved.steps))).answer == "end"
    assert calls == ["x"]


# export


def family(store: SqliteStore, calls: list[Any]) -> RunState:
    child = Agent([writer(calls)], script(SAVE), policy=FREE)
    tool = delegate(child, "child", "Does it.")
    plan = script(Decision.act("child", {"goal": "do it"}), SAVE)
    return Agent([tool, writer(calls)], plan, policy=FREE, store=store, audit=store).run("goal")


def test_an_exported_run_verifies_on_its_own(shell: Shell, tmp_path: Path) -> None:
    with SqliteStore(shell.path) as store:
        state = family(store, [])
        Agent([], script(), store=store, audit=store).run("another")
    target = tmp_path / "run.json"
    assert shell("export", state.run_id[:8], "--output", target).startswith(f"{target}: run ")
    printed = shell._capsys
    assert command_line.main(["export", str(shell.path), state.run_id]) == 0
    assert printed.readouterr().out == target.read_text("ascii")
    os.unlink(shell.path)
    assert command_line.main(["verify", str(target)]) == 0
    assert printed.readouterr().out == f"{target}: sound; 2 runs, 18 records\n"
    saved = json.loads(target.read_text("ascii"))
    assert saved["run_id"] == state.run_id
    assert set(saved["heads"]) == {run["state"]["run_id"] for run in saved["runs"]}
    found = read_export(target)
    assert found.states[0] == state
    assert (len(found.states), found.records, found.problems) == (2, 18, [])


def test_an_export_replaces_no_file_and_leaves_no_half_of_one(shell: Shell, tmp_path: Path) -> None:
    state = shell.run()
    target = tmp_path / "run.json"
    target.write_text("mine")
    assert "is there already" in shell("export", state.run_id, "--output", target, code=2)
    assert target.read_text() == "mine"
    assert "cannot be written" in shell(
        "export", state.run_id, "--output", tmp_path / "no" / "x", code=2
    )
    trail = tmp_path / "trail.jsonl"
    trail.write_bytes(b'{"data":{"goal"')
    target = tmp_path / "other.json"
    with SqliteStore(shell.path) as store:
        line = next(iter(store.read())).line  # type: ignore[union-attr]
    trail.write_text(f"{line}\n".replace('"seq":0', '"seq":0,"seq":0'))
    error = shell("export", state.run_id, "--output", target, "--trail", trail, code=2)
    assert "its trail is damaged" in error
    assert not target.exists()


def tampered(path: Path, change: Any) -> list[str]:
    saved = json.loads(path.read_text("ascii"))
    change(saved)
    other = path.with_name("tampered.json")
    other.write_text(json.dumps(saved))
    return [f"{problem.kind}: {problem.message}" for problem in read_export(other).problems]


def test_whatever_is_changed_in_an_exported_run_is_found(shell: Shell, tmp_path: Path) -> None:
    with SqliteStore(shell.path) as store:
        state = family(store, [])
    path = tmp_path / "run.json"
    shell("export", state.run_id, "--output", path)

    def in_state(saved: Any) -> Any:
        return saved["runs"][0]["state"]

    def swap(saved: Any) -> None:
        one, two = saved["runs"]
        one["trail"], two["trail"] = two["trail"], one["trail"]

    changes: dict[str, Any] = {
        "changed: step 1 has another outcome": lambda saved: in_state(saved)["steps"][1].update(
            result="forged"
        ),
        "changed: step 1 has another decision": lambda saved: in_state(saved)["steps"][1][
            "decision"
        ]["arguments"].update(text="forged"),
        "damaged: saved state": lambda saved: in_state(saved).pop("goal"),
        "cut: ": lambda saved: saved["runs"][0]["trail"].pop(),
        "missing: ": lambda saved: saved["runs"][1]["trail"].pop(2),
        "changed: its trail holds records of another run": swap,
        "changed: the states and the heads": lambda saved: saved["runs"].pop(),
        "damaged: line 1: ": lambda saved: saved["runs"][0]["trail"].insert(0, "\ud800"),
        "reordered: ": lambda saved: saved["runs"][0]["trail"].insert(
            1, saved["runs"][0]["trail"].pop(2)
        ),
    }
    assert tampered(path, lambda saved: None) == []
    for told, change in changes.items():
        problems = tampered(path, change)
        assert any(problem.startswith(told) for problem in problems), (told, problems)
    found = tampered(path, lambda saved: saved["runs"].append(saved["runs"][0]))
    assert any(problem.startswith("changed: the states and the heads") for problem in found)

    def shorten(saved: Any) -> None:  # a trail that was cut, with all that names its end
        saved["runs"][0]["trail"].pop()
        last = json.loads(saved["runs"][0]["trail"][-1])
        head = [last["seq"], last["digest"]]
        saved["heads"][saved["run_id"]] = in_state(saved)["audit_head"] = head

    assert tampered(path, shorten) == []  # what is consistent in itself only a sealed trail refutes


def test_what_is_no_exported_run_is_refused_with_one_sentence(
    shell: Shell, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state = shell.run()
    path = tmp_path / "run.json"
    shell("export", state.run_id, "--output", path)
    sound = json.loads(path.read_text("ascii"))
    for change, told in (
        ({"version": 2}, "newer than 1"),
        ({"version": True}, "its fields"),
        ({"more": 1}, "its fields"),
        ({"heads": []}, "heads must"),
        ({"heads": {state.run_id: [0]}}, "heads must"),
        ({"heads": {}}, "run_id must"),
        ({"run_id": [1]}, "run_id must"),
        ({"runs": {}}, "runs must"),
        ({"runs": [1]}, "a run must"),
        ({"runs": [{"state": 1, "trail": [1]}]}, "a trail must"),
    ):
        path.write_text(json.dumps({**sound, **change}))
        assert command_line.main(["verify", str(path)]) == 2
        error = capsys.readouterr().err
        assert told in error
        assert error.startswith(f"error: {path}: ")
    for text in ('{"format": "scikitplot.agent run", ', '{"format": "scikitplot.agent run"' * 9):
        path.write_text(text)
        assert command_line.main(["verify", str(path)]) == 2
    path.write_text('{"format": "scikitplot.agent run", "x": ' + "[" * 100_000)
    assert command_line.main(["verify", str(path)]) == 2
    path.write_text(json.dumps({**sound, "runs": [{"state": [1], "trail": []}]}))
    assert command_line.main(["verify", str(path)]) == 1


def test_a_run_of_a_sealed_trail_is_verified_with_its_key(
    shell: Shell, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key = tmp_path / "key"
    key.write_bytes(KEY)
    with SqliteStore(shell.path, key=KEY) as store:
        state = shell.agent(store).run("goal")
    path = tmp_path / "run.json"
    assert command_line.main(["export", str(shell.path), state.run_id, "--output", str(path)]) == 0
    assert command_line.main(["verify", str(path), "--key-file", str(key)]) == 0
    assert command_line.main(["verify", str(path)]) == 1


def test_a_run_that_hides_its_contents_is_exported_as_it_is(shell: Shell, tmp_path: Path) -> None:
    shell.options = {"policy": FREE, "redact": lambda tool, path, value: True}
    secret = "a very secret text"
    shell.plan = script(Decision.act("save", {"text": secret}))
    try:
        state = shell.run()
    except TypeError:
        shell.options["redact"] = True
        state = shell.run()
    path = tmp_path / "run.json"
    shell("export", state.run_id, "--output", path)
    assert read_export(path).problems == []
    assert secret not in "".join(json.loads(path.read_text("ascii"))["runs"][0]["trail"])


# --json of the others


def test_verify_and_the_demo_tell_what_came_of_them_as_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command_line.main(["demo", "--json", "--folder", str(tmp_path), "--yes"]) == 0
    out, error = capsys.readouterr()
    told = json.loads(out)
    assert "A call waits for a person" in error
    assert (told["status"], told["problems"]) == ("completed", [])
    assert Path(told["note"]).exists()
    trail = Path(told["trail"])
    assert command_line.main(["verify", "--json", str(trail)]) == 0
    records = len(trail.read_bytes().splitlines())
    assert json.loads(capsys.readouterr().out) == {"problems": [], "records": records, "runs": 1}
    lines = trail.read_bytes().splitlines(keepends=True)
    trail.write_bytes(b"".join(lines[:2] + lines[3:]))
    assert command_line.main(["verify", "--json", str(trail)]) == 1
    [problem] = json.loads(capsys.readouterr().out)["problems"]
    assert (problem["run_id"], problem["seq"], problem["kind"]) == (told["run_id"], 2, "missing")


def test_a_demo_that_waits_says_so_as_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command_line.main(["demo", "--json", "--folder", str(tmp_path)]) == 3
    assert json.loads(capsys.readouterr().out)["status"] == "awaiting_approval"
