"""Run the notebooks of this folder with a real kernel and keep what they print.

``python docs/notebooks/run.py`` does it in place; the tests run each anew and compare.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent


def run(path: Path) -> Any:
    """Return a notebook with the output of a new kernel. An error in a cell is raised."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        cell.metadata = nbformat.NotebookNode()
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    NotebookClient(
        notebook, kernel_name="python3", timeout=120, record_timing=False, store_widget_state=False
    ).execute()
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    return notebook


def main() -> None:
    """Run each notebook and write it back."""
    import nbformat

    for path in sorted(FOLDER.glob("*.ipynb")):
        nbformat.write(run(path), path)
        print(path.name)


if __name__ == "__main__":
    main()
