"""Executes every notebook from its first cell to its last: `python notebooks/execute.py [-o DIR] [NAME…]`.

Fails where a cell does, and where a notebook that says it draws a figure has drawn none. With `-o`, the executed notebooks are written there;
those in the repository keep no output.
"""

from __future__ import annotations

import argparse
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Optional

import nbformat
from nbclient import NotebookClient

HERE = Path(__file__).resolve().parent
FIGURES = "application/vnd.vegalite.v6+json"
# Figures as what they are (Vega-Lite), and not as the pages that show them.
RENDERER = f"""
import altair
altair.renderers.register("specification", lambda spec, **_: {{"{FIGURES}": spec, "text/plain": "a figure"}})
altair.renderers.enable("specification");
"""


def execute(path: Path, into: Optional[Path]) -> str:
    """Executes one, and says how many figures it drew."""
    begun = time.monotonic()
    notebook: Any = nbformat.read(path, as_version=4)
    kept = [cell for cell in notebook.cells if cell.cell_type == "code" and (cell.outputs or cell.execution_count)]
    assert not kept, f"{path.name}: keeps output of an earlier run; clear it before committing"
    notebook.cells.insert(0, nbformat.v4.new_code_cell(RENDERER))
    NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    del notebook.cells[0]
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    outputs = [output.get("data", {}) for cell in cells for output in cell.outputs]
    drawn = [data[FIGURES] for data in outputs if FIGURES in data]
    asked = sum("alt.Chart" in cell.source for cell in cells)
    assert len(drawn) == asked > 0, f"{path.name}: {len(drawn)} figures drawn of {asked}"
    for chart in drawn:
        rows = [row for rows in chart.get("datasets", {}).values() for row in rows]
        assert rows, f"{path.name}: a figure has no data in it"
    if into is not None:
        into.mkdir(parents=True, exist_ok=True)
        nbformat.write(notebook, into / path.name)
    return f"{path.name}: {len(cells)} cells, {len(drawn)} figures, {time.monotonic() - begun:.1f} s"


def main() -> None:
    """Executes those named, or all, two at a time."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, help="write the executed notebooks into this directory")
    parser.add_argument("names", nargs="*", help="notebooks (all of this directory, where none is named)")
    arguments = parser.parse_args()
    paths = [HERE / f"{Path(name).stem}.ipynb" for name in arguments.names] or sorted(HERE.glob("*.ipynb"))
    with ThreadPoolExecutor(max_workers=2) as pool:
        for said in pool.map(lambda path: execute(path, arguments.output), paths):
            print(said)
    sys.stdout.flush()


if __name__ == "__main__":
    main()
