"""What the package is made of: the standard library, small modules, arrows that point down."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "src"
PACKAGE = SOURCE / "scikitplot" / "agent"

ORDER = [  # from the bottom; a module imports only what stands before it
    "errors",
    "values",
    "views",
    "schema",
    "rules",
    "policy_file",
    "calls",
    "signature",
    "definition",
    "tools",
    "strict",
    "toolset",
    "docstrings",
    "classes",
    "annotated",
    "references",
    "hints",
    "functions",
    "decorator",
    "mentions",
    "flow",
    "limits",
    "policy_view",
    "policy",
    "decision",
    "approval",
    "audit",
    "signing",
    "answers",
    "stores",
    "redaction",
    "state",
    "watch",
    "account",
    "children",
    "effects",
    "events",
    "totals",
    "observers",
    "results",
    "influence",
    "gates",
    "working",
    "ledger",
    "stops",
    "acting",
    "loop",
    "background",
    "perform",
    "models",
    "undo",
    "driving",
    "keeper",
    "shared",
    "settings",
    "delegation",
    "sessions",
    "awaiting",
    "agent",
    "aio",
    "recovery",
    "goals",
    "batch",
    "replayed",
    "recorded",
    "replay",
    "mcp",
    "pending",
    "exported",
    "demo",
    "commands",
    "__main__",
    "__init__",
]
ONLY_FOR_THE_COMMAND_LINE = {"pending", "exported", "demo", "commands"}

STANDARD = {*sys.stdlib_module_names, "tomllib"}  # which came with Python 3.11

FILES = sorted(PACKAGE.rglob("*.py"))


def name_of(file: Path) -> str:
    """Return the name in `ORDER` of the module, or of the folder, that a file belongs to."""
    return file.relative_to(PACKAGE).with_suffix("").parts[0]


def imports(file: Path) -> Iterator[tuple[str, bool]]:
    """Yield what a file imports, with whether it is of this package (then by its name there)."""
    depth = len(file.relative_to(PACKAGE).parts)
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, False
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.module or "", False
        elif isinstance(node, ast.ImportFrom) and node.level >= depth:
            assert node.level == depth, f"{file} imports from above the package"
            names = [node.module] if node.module else [alias.name for alias in node.names]
            for name in names:
                yield name.split(".")[0], True


def test_the_distribution_owns_no_part_of_scikitplot_but_agent() -> None:
    assert [path.name for path in (SOURCE / "scikitplot").iterdir() if path.is_file()] == []
    assert (PACKAGE / "py.typed").is_file()


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(PACKAGE)))
class TestModule:
    def test_imports_the_standard_library_alone(self, file: Path) -> None:
        for name, is_own in imports(file):
            assert is_own or name.split(".")[0] in STANDARD, name

    def test_imports_only_what_stands_below_it(self, file: Path) -> None:
        own = ORDER.index(name_of(file))
        for name, is_own in imports(file):
            if is_own and name != name_of(file):
                assert ORDER.index(name) < own, f"{name_of(file)} imports {name}"
                if name in ONLY_FOR_THE_COMMAND_LINE:
                    assert name_of(file) in {*ONLY_FOR_THE_COMMAND_LINE, "__main__"}

    def test_has_at_most_400_lines(self, file: Path) -> None:
        assert len(file.read_text("utf-8").splitlines()) <= 400

    def test_says_what_it_is_for(self, file: Path) -> None:
        assert ast.get_docstring(ast.parse(file.read_text("utf-8")))


def test_every_module_has_its_place_in_the_order() -> None:
    assert {name_of(file) for file in FILES} == set(ORDER)
    assert len(set(ORDER)) == len(ORDER)


WATCH = """
import json, sys, threading
opened, started = [], []
def watch(event, arguments):
    if event == "open":
        opened.append(str(arguments[0]))
    elif event in ("socket.__new__", "subprocess.Popen", "os.system", "os.fork"):
        started.append(event)
sys.addaudithook(watch)
threading.Thread.start = lambda thread: started.append(repr(thread))
sys.path.insert(0, {path!r})
before = set(sys.modules)
import scikitplot.agent
assert scikitplot.agent.__file__.startswith({path!r})
print(json.dumps([opened, started, sorted(set(sys.modules) - before)]))
"""


def test_importing_it_opens_nothing_starts_nothing_and_imports_the_standard_library_alone() -> None:
    script = WATCH.format(path=str(SOURCE))
    ran = subprocess.run(
        [sys.executable, "-I", "-B", "-c", script], capture_output=True, text=True, check=True
    )
    opened, started, modules = json.loads(ran.stdout)
    assert started == []
    assert [path for path in opened if not path.endswith((".py", ".pyc", ".so", ".pyd"))] == []
    foreign = [
        name
        for name in modules
        if name.split(".")[0] not in {*sys.stdlib_module_names, "scikitplot"}
    ]
    assert foreign == []
