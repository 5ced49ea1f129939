"""Run the notebooks of docs/notebooks, and lay them out as pages with their results.

Run with ``python -m tests.docs.run_notebooks FOLDER [NAME...]`` (extra ``docs``): each notebook, or those that are
named, runs from its first cell to its last and becomes a page ``docs/notebooks/NAME.md`` below the folder. With
``--write`` in place of a folder, the results are saved in the notebooks. A cell that fails ends it with an error.
"""

import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

NOTEBOOKS = Path(__file__).parents[2] / "docs" / "notebooks"

LONGEST = 600
"""Seconds that a cell may take."""

SAVED = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
"""Metadata that a notebook is saved with: nothing of the machine that ran it."""


def run(path: Path) -> dict[str, Any]:
    """Return the document of a notebook whose cells were run from top to bottom, in its own folder."""
    from nbclient import NotebookClient
    from nbformat import read, writes

    notebook, start = read(path, as_version=4), time.perf_counter()
    NotebookClient(notebook, timeout=LONGEST, resources={"metadata": {"path": str(path.parent)}}).execute()
    print(f"  ran: {path.name} ({time.perf_counter() - start:.0f} s)", flush=True)
    document = json.loads(writes(notebook))
    for cell in document["cells"]:
        cell["metadata"] = {}  # when it ran
        if cell["cell_type"] == "code":
            cell["outputs"] = [one for one in cell["outputs"] if one.get("name") != "stderr"]
    return document | {"metadata": SAVED}


def page(notebook: Mapping[str, Any]) -> str:
    """Return the document of a notebook as Markdown: its text, its code, and what each cell printed or returned."""
    parts = []
    for cell in notebook["cells"]:
        text = "".join(cell["source"])
        parts.append(text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```")
        parts += [_shown(output) for output in cell.get("outputs", ())]
    return "\n\n".join(parts) + "\n"


def _shown(output: Mapping[str, Any]) -> str:
    """What a cell gave: a table as HTML where there is one, else its text."""
    data = output.get("data", {})
    if "text/html" in data:
        return "\n".join(line for line in "".join(data["text/html"]).splitlines() if line.strip())
    text = "".join(output.get("text") or data.get("text/plain", ""))
    return f"```text\n{text.rstrip()}\n```"


def main() -> None:
    """Run the notebooks that are named, all by default."""
    target, *names = sys.argv[1:]
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        if names and path.stem not in names:
            continue
        notebook = run(path)
        if target == "--write":
            path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
            continue
        place = Path(target) / "docs" / "notebooks" / f"{path.stem}.md"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(page(notebook), encoding="utf-8")


if __name__ == "__main__":
    main()
