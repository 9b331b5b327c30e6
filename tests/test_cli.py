"""The command line, as a person at a terminal, a pipe and a script meet it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import signal
import sqlite3
import subprocess
import sys
import tracemalloc
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from support import script

from scikitplot.agent import (
    Agent,
    Decision,
    JsonlAuditSink,
    Policy,
    SqliteStore,
    StateError,
    Tool,
    ToolError,
    read_audit,
)
from scikitplot.agent import __main__ as command_line
from scikitplot.agent.audit.record import GENESIS, seal
from scikitplot.agent.commands import demo as demo_command
from scikitplot.agent.demo import Reference, RunFile, make_agent

COMMANDS = ["demo", "runs", "show", "pending", "approve", "deny", "verify", "replay", "export"]
C_LOCALE = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
STEPS = ["call search", "call read", "call write", "answer"]


def run(*arguments: object, env: Mapping[str, str] | None = None, code: int = 0) -> str:
    """Run the command line with nobody at a terminal; return what it prints."""
    ran = subprocess.run(
        [sys.executable, "-m", "scikitplot.agent", *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, **(env or {})},
        check=False,
    )
    printed = ran.stdout.decode("utf-8")
    assert ran.returncode == code, printed
    assert "Traceback" not in printed
    return printed


def steps(printed: str) -> list[str]:
    return re.findall(r"^  [0-9] (call \w+|answer)", printed, re.M)


def notes(folder: Path) -> list[Path]:
    return sorted(folder.glob("note-*.md"))


# demo


def test_the_demo_shows_each_step_and_gate_writes_the_note_and_verifies_its_trail(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "new" / "folder"
    printed = run("demo", "--folder", folder, "--yes")
    assert steps(printed) == [*STEPS[:3], *STEPS[2:]]
    passed = "Validation ok, Permissions ok, Scope ok, Budget ok, Approval"
    assert re.findall(f"{passed} (.*)", printed) == 2 * ["not needed"] + ["waits", "granted"]
    assert 'granted by: "--yes"' in printed
    [note] = notes(folder)
    assert str(note) in printed
    assert note.read_text("utf-8").startswith("# When are default parameter values evaluated?\n")
    assert sorted(folder.iterdir()) == [note, folder / "run.jsonl", folder / "trail.jsonl"]
    assert "verified  sound" in printed
    assert re.search(r"tampered .*\n    run [0-9a-f]{12}, record [0-9]+: changed: ", printed)
    assert run("verify", folder / "trail.jsonl").startswith(f"{folder}/trail.jsonl: sound; 1 run,")


def test_the_demo_shows_the_whole_note_before_it_is_approved(tmp_path: Path) -> None:
    printed = run("demo", "--folder", tmp_path, "--yes")
    asked = printed[printed.index("A call waits for a person") : printed.index("Approved by")]
    [note] = notes(tmp_path)
    for line in note.read_text("utf-8").splitlines():
        assert f"{line}\\n" in asked.replace("\\'", "'").replace('\\"', '"')


def test_without_a_folder_the_demo_works_in_a_new_temporary_one(tmp_path: Path) -> None:
    printed = run("demo", "--yes", env={"TMPDIR": str(tmp_path), "TMP": str(tmp_path)})
    [folder] = tmp_path.iterdir()
    assert f"Folder: {folder}\n" in printed
    assert len(notes(folder)) == 1


def test_with_nobody_to_ask_the_demo_waits_and_another_process_goes_on(tmp_path: Path) -> None:
    printed = run("demo", "--folder", tmp_path, code=3)
    assert steps(printed) == STEPS[:3]
    assert f"demo --folder {tmp_path}" in printed
    assert notes(tmp_path) == []
    run("demo", "--folder", tmp_path, code=3)
    printed = run("demo", "--folder", tmp_path, "--question", "another", code=2)
    assert "has not ended" in printed
    assert notes(tmp_path) == []
    run("demo", "--folder", tmp_path, "--yes")
    assert len(notes(tmp_path)) == 1
    assert ": sound; 1 run," in run("verify", tmp_path / "trail.jsonl")


def test_any_question_goes_on_in_another_process(tmp_path: Path) -> None:
    question = "yield\u2028\x85\x1c\x0b\u8a9e\r\n"
    run("demo", "--folder", tmp_path, "--question", question, code=3)
    run("demo", "--folder", tmp_path, "--yes")
    assert len(notes(tmp_path)) == 1


def test_a_folder_takes_one_run_after_the_other(tmp_path: Path) -> None:
    run("demo", "--folder", tmp_path, "--yes")
    run("demo", "--folder", tmp_path, "--yes", "--question", "what does the del statement do?")
    assert len(notes(tmp_path)) == 2
    assert ": sound; 2 runs," in run("verify", tmp_path / "trail.jsonl")


@pytest.mark.parametrize("question", ["qqqq zzzz", "", "\u8a9e\U0001f600", "a\x1b[2Kb\nc yield"])
def test_any_question_ends_in_a_sound_trail(tmp_path: Path, question: str) -> None:
    printed = run("demo", "--folder", tmp_path, "--yes", "--question", question)
    assert "verified  sound" in printed
    assert "\x1b" not in printed


def test_the_demo_prints_ascii_where_the_locale_has_nothing_else(tmp_path: Path) -> None:
    question = f"what is a \u201cgenerator\u201d {60 * chr(0x1F600)}?"
    printed = run("demo", "--folder", tmp_path, "--yes", "--question", question, env=C_LOCALE)
    assert printed.isascii()
    assert all(len(line) <= 80 for line in printed.split("\n") if str(tmp_path) not in line)
    [note] = notes(tmp_path)
    assert note.read_bytes().startswith(f"# {question}\n".encode())
    assert ": sound;" in run("verify", tmp_path / "trail.jsonl", env=C_LOCALE)


def test_a_path_that_the_locale_cannot_show_is_no_crash(tmp_path: Path) -> None:
    for number, env in enumerate((C_LOCALE, {"PYTHONIOENCODING": "ascii:strict"})):
        folder = tmp_path / f"d\u00e9j\u00e0 \x1b[2K {number}"
        printed = run("demo", "--folder", folder, "--yes", env=env)
        assert printed.isascii()
        assert "\x1b" not in printed
        assert ": sound;" in run("verify", folder / "trail.jsonl", env=env)


def test_a_folder_that_cannot_be_used_is_said_to_be_so_in_one_sentence(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"mine")
    for folder in (file, file / "below", "/dev/null/x"):
        printed = run("demo", "--folder", folder, "--yes", code=1)
        assert printed.startswith("error: ")
        assert printed.count("\n") == 1
    assert file.read_bytes() == b"mine"


@pytest.mark.parametrize("name", ["trail.jsonl", "run.jsonl"])
@pytest.mark.parametrize("kind", ["link", "dangling", "folder", "pipe", "junk"])
def test_what_is_in_a_folder_already_is_neither_followed_nor_lost(
    tmp_path: Path, name: str, kind: str
) -> None:
    folder, outside = tmp_path / "folder", tmp_path / "outside"
    folder.mkdir()
    if kind in ("link", "dangling"):
        (folder / name).symlink_to(outside)
        if kind == "link":
            outside.write_bytes(b"")
    elif kind == "folder":
        (folder / name).mkdir()
    elif kind == "pipe":
        os.mkfifo(folder / name)
    else:
        (folder / name).write_bytes(b"mine\n")
    printed = run("demo", "--folder", folder, "--yes", code=1)
    if (kind, name) == ("junk", "trail.jsonl"):  # another run fits behind a damaged line
        assert "verified  damaged:\n    unknown run: damaged: line 1: " in printed
    else:
        assert re.search("^error: .*", printed, re.M)
    if kind == "link":
        assert outside.read_bytes() == b""
    elif kind == "dangling":
        assert not outside.exists()
    elif kind == "junk":
        assert (folder / name).read_bytes().startswith(b"mine\n")


def test_the_run_of_a_folder_is_replaced_only_by_its_next_revision(tmp_path: Path) -> None:
    run("demo", "--folder", tmp_path, code=3)
    store = RunFile(tmp_path)
    state = store.last()
    assert state is not None
    head, steps = state.parts()
    before = (tmp_path / "run.jsonl").read_bytes()
    for expected in (None, state.revision - 1, state.revision + 1):
        with pytest.raises(StateError, match="holds revision"):
            store.commit(state.run_id, head, steps, expected=expected)
    assert (tmp_path / "run.jsonl").read_bytes() == before
    assert store.runs("awaiting_approval") == [state.run_id]
    assert store.runs("completed") == []
    store.delete("0" * 64)
    store.delete(state.run_id)
    assert store.load(state.run_id) is None


def write(folder: Path, name: str) -> None:
    agent = make_agent({}, folder, RunFile(folder))
    agent.tools["write"].func(name=name, text="text")


@pytest.mark.parametrize(
    "name",
    [
        "../note-00000000.md",
        "/tmp/note-00000000.md",
        "note-00000000.md\n",
        "note-0000000\uff10.md",
        "note-../..md",
        "trail.jsonl",
        "",
        "note-00000000.md\x00",
    ],
)
def test_a_note_has_the_name_of_a_note(tmp_path: Path, name: str) -> None:
    with pytest.raises(ToolError, match="a note is named"):
        write(tmp_path, name)
    assert [path.name for path in tmp_path.iterdir()] == ["trail.jsonl"]


def test_a_note_replaces_nothing_and_follows_no_link(tmp_path: Path) -> None:
    (tmp_path / "note-00000000.md").write_bytes(b"mine")
    (tmp_path / "note-11111111.md").symlink_to(tmp_path / "elsewhere")
    for name in ("note-00000000.md", "note-11111111.md"):
        with pytest.raises(ToolError, match="there is a file"):
            write(tmp_path, name)
    assert (tmp_path / "note-00000000.md").read_bytes() == b"mine"
    assert not (tmp_path / "elsewhere").exists()


def test_a_note_is_written_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(ToolError, match="No space left"):
        write(tmp_path, "note-00000000.md")
    assert [path.name for path in tmp_path.iterdir()] == ["trail.jsonl"]


@pytest.mark.parametrize(
    "topics", [{}, {"x": ""}, {"yield": "\x1b[2Ka yield\u202e"}, {"\x1b": "default values\r" * 999}]
)
def test_the_demo_works_whatever_the_reference_holds(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    topics: dict[str, str],
) -> None:
    monkeypatch.setattr("pydoc_data.topics.topics", topics)
    assert command_line.main(["demo", "--folder", str(tmp_path), "--yes"]) == 0
    printed = capsys.readouterr().out
    assert all(line.isprintable() for line in printed.split("\n"))


def test_a_trail_that_is_cut_behind_the_demos_back_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo_command, "read_audit", lambda trail: list(read_audit(trail))[:-1])
    assert command_line.main(["demo", "--folder", str(tmp_path), "--yes"]) == 1
    assert ": cut: the trail ends before record " in capsys.readouterr().out


def test_without_the_reference_the_demo_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "pydoc_data.topics", None)
    folder = tmp_path / "never made"
    assert command_line.main(["demo", "--folder", str(folder), "--yes"]) == 1
    told = capsys.readouterr()
    assert told.err == "error: this Python comes without pydoc_data, the text that is searched\n"
    assert not folder.exists()


def test_the_search_ranks_the_part_with_the_rarest_shared_words_first() -> None:
    topics = {"loop": "for while break", "many": "for for for", "yield": "a generator yields"}
    reference = Reference(topics)
    assert [hit["topic"] for hit in reference.search("break for", 3)] == ["loop", "many"]
    assert reference.search("nothing shared", 3) == []
    assert len(reference.search("for", 1)) == 1


def test_a_rare_word_counts_more_than_a_common_one_that_is_repeated() -> None:
    reference = Reference({"many": "for for for for", "one": "for ever", "rare": "break"})
    assert [hit["topic"] for hit in reference.search("break for", 3)] == ["rare", "many", "one"]


def test_every_passage_of_the_reference_can_be_read_back() -> None:
    text = "one\n\nsmall\n\n" + "two " * 400 + "\n\nthree"
    reference = Reference({"topic": text})
    parts = reference.read("topic", 0)["parts"]
    read = [reference.read("topic", part)["text"] for part in range(parts)]
    assert "\n\n".join(read) == text
    for part in (-1, parts):
        with pytest.raises(ToolError):
            reference.read("topic", part)


# At a terminal


class Terminal:
    """The command line with a person at a terminal."""

    def __init__(self, *arguments: object, env: Mapping[str, str] | None = None) -> None:
        pty = pytest.importorskip("pty", reason="this machine has no terminals")
        self._fd, inner = pty.openpty()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "scikitplot.agent", *map(str, arguments)],
            stdin=inner,
            stdout=inner,
            stderr=inner,
            env={**os.environ, **(env or {})},
            start_new_session=True,
            # Where the shell started the tests in the background, the child would ignore it too.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        os.close(inner)
        self.printed = ""

    def until(self, text: str) -> None:
        while text not in self.printed:
            assert select.select([self._fd], [], [], 60)[0], f"no {text!r} in {self.printed!r}"
            self.printed += os.read(self._fd, 10_000).decode("utf-8", "replace")

    def type(self, text: str | bytes) -> None:
        self.printed = ""
        os.write(self._fd, text.encode() if isinstance(text, str) else text)

    def interrupt(self) -> None:
        os.killpg(self._process.pid, signal.SIGINT)

    def end(self) -> int:
        try:
            while more := os.read(self._fd, 10_000):
                self.printed += more.decode("utf-8", "replace")
        except OSError:  # how Linux says that nobody is there any more
            pass
        os.close(self._fd)
        return self._process.wait()


def test_at_a_terminal_the_person_reads_the_request_and_is_asked(tmp_path: Path) -> None:
    terminal = Terminal("demo", "--folder", tmp_path)
    terminal.until("Approve this call? [y/N] ")
    assert "arguments  2, all shown here" in terminal.printed
    terminal.type("y\n")
    terminal.until("Your name [")
    terminal.type("ann\n")
    assert terminal.end() == 0
    assert 'granted by: "ann"' in terminal.printed
    assert len(notes(tmp_path)) == 1


@pytest.mark.parametrize("said", ["n", "", "yse", "Y es"])
def test_whatever_is_not_yes_refuses_and_the_run_ends_without_writing(
    tmp_path: Path, said: str
) -> None:
    terminal = Terminal("demo", "--folder", tmp_path)
    terminal.until("[y/N] ")
    terminal.type(f"{said}\n")
    terminal.until("Your name [")
    terminal.type("\n")
    assert terminal.end() == 0
    assert "denied (approval_denied)" in terminal.printed
    assert "note      none was written" in terminal.printed
    assert notes(tmp_path) == []


def test_what_is_typed_in_another_encoding_is_no_crash(tmp_path: Path) -> None:
    terminal = Terminal("demo", "--folder", tmp_path)
    terminal.until("[y/N] ")
    terminal.type("y\n")
    terminal.until("Your name [")
    terminal.type(b"J\xfcrg\x1b[2K\n")
    assert terminal.end() == 0
    assert "granted by: " in terminal.printed
    assert "Traceback" not in terminal.printed


def test_who_goes_away_at_the_prompt_leaves_the_run_waiting(tmp_path: Path) -> None:
    terminal = Terminal("demo", "--folder", tmp_path)
    terminal.until("[y/N] ")
    terminal.type("\x04")
    assert terminal.end() == 3
    run("demo", "--folder", tmp_path, "--yes")


def test_an_interrupt_is_one_sentence_that_says_how_to_go_on(tmp_path: Path) -> None:
    terminal = Terminal("demo", "--folder", tmp_path)
    terminal.until("[y/N] ")
    terminal.interrupt()
    assert terminal.end() == 130, terminal.printed
    assert "Traceback" not in terminal.printed
    assert f"demo --folder {tmp_path}" in terminal.printed
    run("demo", "--folder", tmp_path, "--yes")


# Streams that go away


def test_a_reader_that_goes_away_is_no_crash(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "scikitplot.agent", "demo", "--yes", "--folder", str(tmp_path)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == 141


def test_closed_streams_are_no_crash(tmp_path: Path) -> None:
    line = f'"{sys.executable}" -m scikitplot.agent demo --folder "{tmp_path}" "$@"'
    for redirect, arguments, code in (("<&-", [], 3), (">&-", [], 3), ("<&- >&-", ["--yes"], 0)):
        ran = subprocess.run(
            ["sh", "-c", f"{line} {redirect}", "sh", *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        assert (ran.returncode, ran.stderr) == (code, b"")


# verify


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("sound")
    run("demo", "--folder", folder, "--yes")
    return (folder / "trail.jsonl").read_bytes()


def verify(
    trail: Path, capsys: pytest.CaptureFixture[str], content: bytes | None = None
) -> tuple[int, str, str]:
    if content is not None:
        trail.write_bytes(content)
    code = command_line.main(["verify", str(trail)])
    told = capsys.readouterr()
    return code, told.out, told.err


def test_a_damaged_trail_exits_1_and_names_run_number_and_fault(
    sound: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trail = tmp_path / "trail.jsonl"
    lines = sound.splitlines(keepends=True)
    run_id = re.findall(rb'"run_id":"([0-9a-f]{12})', sound)[0].decode()
    damaged = {
        rf"run {run_id}, record 3: changed: .*": [
            *lines[:3],
            lines[3].replace(b"executed", b"exacuted", 1),
            *lines[4:],
        ],
        rf"run {run_id}, record 2: missing: .*": lines[:2] + lines[3:],
        rf"run {run_id}, record 5: repeated: .*": lines[:6] + lines[5:],
        rf"run {run_id}, record 4: reordered: .*": [*lines[:4], lines[5], lines[4], *lines[6:]],
        r"unknown run: torn: .*": [*lines[:-1], lines[-1][:30]],
    }
    for said, changed in damaged.items():
        code, told, error = verify(trail, capsys, b"".join(changed))
        assert (code, error) == (1, "")
        assert re.search(f"^{said}$", told, re.M), told
        assert told.count("\n") == len(told.splitlines())


def test_each_fault_is_one_line(
    sound: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = sound.splitlines(keepends=True)
    content = b"".join([*lines[:2], lines[4], *lines[6:], lines[3], b"{}\n\x1b[2K\xff\n"])
    code, told, _ = verify(tmp_path / "trail.jsonl", capsys, content)
    assert code == 1
    assert all(
        re.fullmatch(r"(unknown run|run [0-9a-f]{12}).*: \w+: .*", line)
        for line in told.splitlines()
    )
    assert told.isprintable() or all(line.isprintable() for line in told.split("\n"))


def test_a_sound_trail_says_how_much_it_holds(
    sound: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    records = sound.count(b"\n")
    code, told, error = verify(tmp_path / "t", capsys, sound)
    assert (code, error) == (0, "")
    assert told == f"{tmp_path}/t: sound; 1 run, {records} records\n"


@pytest.mark.parametrize("content", [b"", b"\n\n"])
def test_an_empty_trail_is_said_to_be_empty(
    content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, told, _ = verify(tmp_path / "t", capsys, content)
    assert code == 0
    assert told.endswith(": empty; there is no record\n")


def test_a_trail_that_cannot_be_read_exits_2_with_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in (tmp_path / "not there", tmp_path, tmp_path / "\x1b[2K"):
        code, told, error = verify(path, capsys)
        assert (code, told) == (2, "")
        assert re.fullmatch(r"error: .*: cannot be read \(.*\)\n", error)
        assert error.rstrip("\n").isprintable()


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["verify"],
        ["verify", "a", "b"],
        ["replay", "a", "--policy", "b"],
        ["runs", "a", "--status", "unknown"],
        ["show", "a"],
        ["approve", "a", "b"],
        ["export", "a"],
        ["nonsense"],
        ["demo", "x"],
    ],
)
def test_wrong_usage_exits_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        command_line.main(arguments)
    assert ended.value.code == 2
    assert "usage: python -m scikitplot.agent" in capsys.readouterr().err


@pytest.mark.parametrize("command", [[], *([name] for name in COMMANDS)])
def test_the_help_says_what_the_exit_codes_mean(
    command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        command_line.main([*command, "--help"])
    assert ended.value.code == 0
    told = capsys.readouterr().out
    for code in (0, 1, 2, 3, 130, 141):
        assert re.search(rf"^  {code}\b", told, re.M)
    assert all(len(line) <= 80 for line in told.split("\n"))


def test_verifying_a_large_trail_takes_little_memory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trail = tmp_path / "large.jsonl"
    sink = JsonlAuditSink(trail)
    prev, filler = GENESIS, "x" * 2_000
    records: list[Any] = []
    for seq in range(3_000):
        event = "run_started" if seq == 0 else "decision"
        records.append(seal("a" * 64, seq, event, f'{{"x":"{filler}"}}', 0.0, prev))
        prev = records[-1].digest
    sink.append(records, expected=None)
    del records
    tracemalloc.start()
    try:
        code, told, _ = verify(trail, capsys)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (code, told) == (0, f"{trail}: sound; 1 run, 3,000 records\n")
    assert peak < trail.stat().st_size / 4


def test_a_database_is_verified_against_the_states_it_holds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "runs.db"
    with SqliteStore(path) as store:
        state = Agent([], script(), store=store, audit=store).run("goal")
    assert command_line.main(["verify", str(path)]) == 0
    assert capsys.readouterr().out == f"{path}: sound; 1 run, 4 records\n"
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        database.execute("delete from agent_record where seq = 3")
    assert command_line.main(["verify", str(path)]) == 1
    assert f"run {state.run_id[:12]}, record 3: cut" in capsys.readouterr().out
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        database.execute("update agent_record set body = 'x' where seq = 1")
    assert command_line.main(["verify", str(path)]) == 1
    assert f"run {state.run_id[:12]}, record 1: damaged" in capsys.readouterr().out


def test_a_sealed_trail_is_verified_with_its_key(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, key = tmp_path / "trail.jsonl", tmp_path / "key"
    key.write_bytes(b"0123456789abcdef")
    Agent([], script(), audit=JsonlAuditSink(path, key=key.read_bytes())).run("goal")
    assert command_line.main(["verify", str(path), "--key-file", str(key)]) == 0
    assert command_line.main(["verify", str(path)]) == 1
    key.write_bytes(b"short")
    capsys.readouterr()
    assert command_line.main(["verify", str(path), "--key-file", str(key)]) == 2
    error = capsys.readouterr().err
    assert "at least 16 bytes" in error
    assert "short" not in error
    key.unlink()
    assert command_line.main(["verify", str(path), "--key-file", str(key)]) == 2
    assert "cannot be read" in capsys.readouterr().err


# replay


SHOP = """
from scikitplot.agent import Tool, Toolset
ALL = Toolset([Tool("save", lambda: 1 / 0, effect="write")])
class Kept:
    tools = [*ALL]
"""


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a database of two runs, a module with their tools, and a policy."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop.py").write_text(SHOP, "utf-8")
    Path("policy.json").write_text('{"allow_effects": ["read"]}', "utf-8")
    save = Tool("save", lambda: "saved", effect="write")
    with SqliteStore("runs.db") as store:
        policy = Policy({"write"}, approval_effects=())
        for decisions in ([Decision.act("save")], []):
            Agent([save], script(*decisions), policy=policy, store=store, audit=store).run("go")
    return tmp_path


REPLAY = ["replay", "runs.db", "--policy", "policy.json", "--tools"]


@pytest.mark.parametrize("named", ["shop:ALL", "shop:Kept.tools"])
def test_replay_shows_what_another_policy_would_have_said(recorded: Path, named: str) -> None:
    lines = run(*REPLAY, named).splitlines()
    assert lines[:2] == ["Recorded runs: 2, and changed: 1; calls: 1", "  denied 1"]
    assert re.match("[0-9a-f]{12}     0  denied  .* save: allowed, now denied", lines[4])
    assert run("verify", "runs.db").startswith("runs.db: sound; 2 runs,")


def test_replay_as_json_is_a_line_for_each_run_and_then_the_totals(recorded: Path) -> None:
    *runs, totals = map(json.loads, run(*REPLAY, "shop:ALL", "--json").splitlines())
    assert [[step["after"]["code"] for step in told["changes"]] for told in runs] == [
        ["effect_denied"],
        [],
    ]
    assert totals["totals"]["denied"] == 1


def test_replay_exits_1_where_a_run_is_damaged(recorded: Path) -> None:
    with contextlib.closing(sqlite3.connect("runs.db")) as database, database:
        changed = database.execute(
            "update agent_run set head = replace(head, 'revision', 'revised') where key = "
            "(select min(key) from agent_run)"
        )
        assert changed.rowcount == 1
    printed = run(*REPLAY, "shop:ALL", code=1)
    assert re.search("damaged .*revision is missing", printed)
    assert "calls: 0" in printed


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            ["replay", "gone.db", "--policy", "policy.json", "--tools", "shop:ALL"],
            "gone.db: cannot",
        ),
        (["replay", "shop.py", "--policy", "policy.json", "--tools", "shop:ALL"], "no database"),
        (
            ["replay", "runs.db", "--policy", "gone.json", "--tools", "shop:ALL"],
            "gone.json: cannot",
        ),
        (["replay", "runs.db", "--policy", "bad.json", "--tools", "shop:ALL"], "did you mean"),
        ([*REPLAY, "shop"], "must be MODULE:NAME"),
        ([*REPLAY, "gone:ALL"], "ModuleNotFoundError"),
        ([*REPLAY, "shop:NONE"], "AttributeError"),
        ([*REPLAY, "shop:Tool"], "TypeError"),
        ([*REPLAY, "broken\x1b:ALL"], r"broken\\x1b"),
    ],
)
def test_what_replay_cannot_read_is_named_in_one_line(
    recorded: Path, arguments: list[str], told: str
) -> None:
    Path("bad.json").write_text('{"allow_efects": []}', "utf-8")
    before = sorted(path.name for path in recorded.iterdir())
    printed = run(*arguments, code=2)
    assert printed.startswith("error: ")
    assert printed.count("\n") == 1
    assert printed[:-1].isprintable()
    assert told in printed
    assert {path.name for path in recorded.iterdir()} - {*before} <= {"__pycache__"}


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_a_reader_that_goes_away_from_a_replay_is_no_crash(recorded: Path, more: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    ran = subprocess.run(
        [sys.executable, "-u", "-m", "scikitplot.agent", *REPLAY, "shop:ALL", *more],
        stdin=subprocess.DEVNULL,
        stdout=writer,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(writer)
    assert (ran.returncode, ran.stderr) == (141, b"")
