"""The documents say what is so: every example in them runs, and every code is in the table."""

from __future__ import annotations

import ast
import re
import socket
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from models.fake_server import FakeServer, Request, Response, as_json
from models.support import answer_in, call_in
from npm_servers import find_server

from scikitplot.agent.models import sockets, transport

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "scikitplot" / "agent"
README = ROOT / "README.md"
GUIDE = ROOT / "docs" / "guide.rst"
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.rst"))]


def blocks(document: Path, language: str) -> list[tuple[int, str]]:
    """Return the code blocks of a document, each with the number of its first line."""
    text = document.read_text("utf-8")
    if document.suffix == ".md":
        found = re.finditer(rf"^```{language}\n(.*?)^```$", text, re.M | re.S)
    else:
        found = re.finditer(rf"^\.\. code-block:: {language}\n\n((?:   .*\n|\n)+)", text, re.M)
    return [(text[: m.start(1)].count("\n") + 1, textwrap.dedent(m[1])) for m in found]


def run_python(document: Path) -> None:
    name = f"page_{document.stem}"  # a page may have the name of what it imports
    module = sys.modules[name] = ModuleType(name)  # dataclasses look for it there
    try:
        for line, source in blocks(document, "python"):
            code = compile("\n" * (line - 1) + source, str(document), "exec", dont_inherit=True)
            exec(code, module.__dict__)
    finally:
        del sys.modules[name]


def run_shell(script: str) -> list[str]:
    ran = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)
    return ran.stdout.splitlines()


@pytest.fixture(autouse=True)
def _empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture(autouse=True)
def _every_provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Whatever address a document names, a server of the tests answers there."""
    with FakeServer(shop) as server:
        port = int(server.url.rsplit(":", 1)[1])

        def connect(host: str, wanted: int, tls: object, deadline: float) -> socket.socket:
            return sockets.connect("127.0.0.1", port, None, deadline)

        monkeypatch.setattr(transport, "connect", connect)
        for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
            monkeypatch.setenv(name, "a-key-of-the-tests")
        yield


def shop(request: Request) -> Response:
    """A model that looks into the stock once."""
    form = "anthropic" if request.path == "/v1/messages" else "native"
    if request.headers.get("x-api-key") == "a-wrong-key":
        return as_json({"type": "error", "error": {"type": "authentication_error"}}, 401)
    if form == "native" and "tools" not in request.body:
        form = "json"
    seen = re.search(rb"executed[^>]*>..(\d+)", request.raw)
    if seen is None:
        return call_in(form, "stock", {"item": "tea"})
    return answer_in(form, f"There are {seen[1].decode()} packets.")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.name)
def test_every_example_of_a_document_runs(document: Path) -> None:
    if document.name == "mcp.rst":
        find_server("filesystem")
    run_python(document)
    fences = document.read_text("utf-8")
    marked = fences.count("```python") + fences.count("code-block:: python")
    assert len(blocks(document, "python")) == marked


def test_the_shell_lines_of_the_readme_compute_the_digest_that_a_line_claims() -> None:
    run_python(README)
    script = next(text for _, text in blocks(README, "sh") if "sha256sum" in text)
    computed, claimed = run_shell(script)
    assert re.fullmatch(r"[0-9a-f]{64}", computed.split()[0])
    assert claimed == computed.split()[0]


def test_the_shell_lines_of_the_guide_find_a_changed_line() -> None:
    run_python(GUIDE)
    [(_, script)] = blocks(GUIDE, "sh")
    assert run_shell(script) == ["sound"] * 3
    trail = Path("trail.jsonl")
    trail.write_bytes(trail.read_bytes().replace(b"order salt", b"order malt", 1))
    changed, *others = run_shell(script)
    assert changed.startswith("CHANGED")
    assert others == ["sound"] * 2


def test_the_readme_begins_with_an_example_and_two_commands() -> None:
    found = re.findall(r"^```(\w+)\n(.*?)^```$", README.read_text("utf-8"), re.M | re.S)
    (first, _), (second, demo), (third, tests) = found[:3]
    assert (first, second, third) == ("python", "sh", "sh")
    for command in (demo, tests):
        assert command.startswith("python3 -m venv .venv && .venv/bin/python -m pip install ")
        assert command.count("\n") == 1
    assert demo.endswith("-m scikitplot.agent demo --yes\n")
    assert tests.endswith("-m pytest\n")


def codes_in_the_source() -> set[str]:
    """Return every code that the runtime gives a step or a run, wherever it stands in a call."""
    found: set[str] = set()
    for name in ("gates", "stops", "results", "acting", "loop", "perform", "sessions"):
        tree = ast.parse((PACKAGE / f"{name}.py").read_text("utf-8"))
        for node in ast.walk(tree):
            values: list[ast.expr] = []
            if isinstance(node, ast.Call):
                function = node.func
                called = (
                    function.attr
                    if isinstance(function, ast.Attribute)
                    else (function.id if isinstance(function, ast.Name) else "")
                )
                values += [k.value for k in node.keywords if k.arg in ("code", "stop_reason")]
                arguments = node.args
                if called == "request" and isinstance(arguments[0], ast.Name):
                    called, arguments = arguments[0].id, arguments[1:]
                place = CODE_ARGUMENTS.get(called)
                if place is not None:
                    values += arguments[place : place + 1]
            elif isinstance(node, ast.Return) and name == "stops" and node.value is not None:
                values.append(node.value)
            found.update(
                value.value
                for value in values
                if isinstance(value, ast.Constant) and isinstance(value.value, str)
            )
    return {code for code in found if re.fullmatch("[a-z_]+", code)}


CODE_ARGUMENTS = {"Denial": 1, "Raised": 0, "Stop": 1, "_fail": 0, "ask": 1, "end_answer": 1}


def test_the_guide_has_every_code_and_no_other() -> None:
    assert (
        set(re.findall(r"^``(\w+)``  +\S", GUIDE.read_text("utf-8"), re.M)) == codes_in_the_source()
    )
