"""The examples of the reference run as they are printed there."""

from __future__ import annotations

import contextlib
import io
import re
import textwrap
from pathlib import Path

import pytest

REFERENCE = Path(__file__).resolve().parents[2] / "shared" / "reference"

pytestmark = pytest.mark.skipif(
    not REFERENCE.is_dir(), reason="the reference is not there: ../shared/reference"
)


def test_the_examples_of_the_user_guide_run() -> None:
    text = (REFERENCE / "user-guide.txt").read_text("utf-8")
    found = re.findall(r"^\.\. code-block:: python\n\n((?:   .*\n|\n)+)", text, re.M)
    assert len(found) == text.count("code-block:: python") == 2
    namespace: dict[str, object] = {}
    for source in found:
        exec(textwrap.dedent(source), namespace)


@pytest.mark.parametrize("page", ["agent-api.txt", "policy-api.txt"])
def test_the_examples_of_an_api_page_print_what_it_shows(page: str) -> None:
    lines = (REFERENCE / page).read_text("utf-8").splitlines()
    namespace: dict[str, object] = {}
    compared = 0
    for source, shown in examples(lines):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(source, page, "single"), namespace)
        if printed.getvalue():
            assert printed.getvalue() == f"{shown}\n"
            compared += 1
    assert compared == {"agent-api.txt": 1, "policy-api.txt": 2}[page]


def examples(lines: list[str]) -> list[tuple[str, str]]:
    """Return each example with the line behind it.

    The pages go on right behind an example's output, so that only the example can tell whether the
    line belongs to it; each has at most one.
    """
    found: list[tuple[list[str], str]] = []
    for line in lines:
        if line.startswith(">>> "):
            found.append(([line[4:]], ""))
        elif line.startswith("... ") or line == "...":
            found[-1][0].append(line[4:])
        elif found and not found[-1][1]:
            found[-1] = (found[-1][0], line)
    return [("\n".join(source) + "\n", shown) for source, shown in found]
