"""The page on checking a trail elsewhere: its programs find what verify_audit finds."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from support import FREE, script

from scikitplot.agent import Agent, Decision, JsonlAuditSink, Tool, read_audit, verify_audit

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "checking.rst").read_text("utf-8")
PROGRAMS = {"sh": ["sh", "-c"], "javascript": ["node", "-e"], "py": [sys.executable, "-c"]}
# What a reader that looks for a key by its name alone would stumble over.
HOSTILE = {
    "digest": "0" * 64,
    "prev": '","prev":"',
    "seq": 7,
    "run_id": "b" * 64,
    "text": 'grüße 🎈 \\ \\" \u2028 \x00 ,"digest":"',
}


@pytest.fixture(scope="module")
def trail(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """Lines of two runs, one in the middle of the other."""
    path = tmp_path_factory.mktemp("trail") / "trail.jsonl"
    sink = JsonlAuditSink(path)
    inner = Agent([], script(), audit=sink)

    def get() -> Any:
        inner.run("in between")
        return HOSTILE

    agent = Agent([Tool("get", get)], script(Decision.act("get")), policy=FREE, audit=sink)
    agent.run('a goal with "quotes"')
    assert verify_audit(read_audit(path)) == []
    return path.read_bytes().splitlines(keepends=True)


@pytest.mark.parametrize("language", PROGRAMS)
def test_a_program_of_the_page_finds_what_was_done_to_a_trail(
    language: str, trail: list[bytes], tmp_path: Path
) -> None:
    command = PROGRAMS[language]
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not on PATH")
    (body,) = re.findall(rf"^\.\. code-block:: {language}\n\n((?:   .*\n|\n)+)", PAGE, re.M)
    path = tmp_path / "trail.jsonl"

    def check(lines: list[bytes]) -> tuple[int, list[str]]:
        path.write_bytes(b"".join(lines))
        ran = subprocess.run(
            [*command, textwrap.dedent(body)],
            env={**os.environ, "TRAIL": str(path)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.stderr == ""
        return ran.returncode, ran.stdout.splitlines()

    assert check(trail) == (0, [])
    changed = [*trail]
    changed[1] = changed[1].replace(b'"kind":"act"', b'"kind":"axt"')
    assert check(changed) == (1, ["line 2: changed"])
    assert check([*trail[:2], *trail[3:]])[0] == 1
    assert check([*trail[:1], trail[2], trail[1], *trail[3:]])[0] == 1
    assert check([*trail[:3], trail[2], *trail[3:]]) == (1, ["line 4: out of place"])
