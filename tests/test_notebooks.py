"""The notebooks run from their first cell to their last, and print what is kept of them."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
VARIES = re.compile(  # ids and digests, times, and where in a run a step was
    r"\b[0-9a-f]{12}\b|\b[0-9a-f]{64}\b|[0-9]+\.[0-9]{3} s\b|margin-left:[0-9.]+%;width:[0-9.]+%"
    r"|[0-9]{4}(-|&#45;)[0-9]{2}(-|&#45;)[0-9]{2} at [0-9]{2}(:|&#58;)[0-9]{2}(:|&#58;)[0-9]{2}"
    r"|[0-9]+&#46;[0-9]{3} s|requested_at=[0-9.]+"
)


def told(output: Any) -> dict[str, str]:
    """Return what an output is as texts, with what differs from one run to the next left out."""
    data = output.get("data", {"text": output.get("text", "")})
    return {
        kind: "a picture" if kind.startswith("image/") else VARIES.sub("...", str(content))
        for kind, content in data.items()
    }


def test_there_are_three_notebooks() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["approvals", "first_run", "many_runs"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_prints_what_is_kept(path: Path) -> None:
    nbformat = pytest.importorskip("nbformat", reason="this machine has no nbformat")
    pytest.importorskip("matplotlib", reason="this machine has no matplotlib")
    spec = importlib.util.spec_from_file_location("run_notebooks", FOLDER / "run.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    kept, new = nbformat.read(path, as_version=4), module.run(path)
    nbformat.validate(kept)
    assert len(kept.cells) == len(new.cells)
    for before, now in zip(kept.cells, new.cells, strict=True):
        assert before.source == now.source
        if before.cell_type == "code":
            assert before.execution_count == now.execution_count
            assert [told(one) for one in before.outputs] == [told(one) for one in now.outputs]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_with_its_pictures_and_without_a_path_of_a_machine(path: Path) -> None:
    text = path.read_text("utf-8")
    assert "text/html" in text or "image/png" in text
    assert not re.search(r"/(tmp|home|work|root|usr)/", text)
