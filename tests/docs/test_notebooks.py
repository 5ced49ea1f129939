"""Notebooks: each holds what its cells gave, and is a page of the site; .ci/docs runs them."""

import ast
import json
from pathlib import Path

import pytest

from tests.docs.run_notebooks import NOTEBOOKS, page
from tests.docs.test_readme import MEAN_WORDS, PRIVATE, ROOT

PATHS = sorted(NOTEBOOKS.glob("*.ipynb"))


def read(path: Path) -> dict:
    return json.loads(path.read_text(encoding="utf-8"))


def test_there_are_six_and_all_are_pages() -> None:
    site, index = (ROOT / "mkdocs.yml").read_text(), (ROOT / "docs" / "README.md").read_text()
    assert len(PATHS) == 6
    assert all(f"docs/notebooks/{path.stem}.md" in site for path in PATHS)
    assert all(f"(notebooks/{path.name})" in index for path in PATHS)


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_notebook_holds_the_results_of_its_cells(path: Path) -> None:
    cells = [cell for cell in read(path)["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))  # once, from top to bottom
    for cell in cells:
        ast.parse("".join(cell["source"]))
        assert cell["outputs"] and all(one["output_type"] != "error" for one in cell["outputs"])
    assert not PRIVATE.search(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_its_sentences_are_short_and_its_links_open(path: Path) -> None:
    text = " ".join("".join(cell["source"]) for cell in read(path)["cells"] if cell["cell_type"] == "markdown")
    sentences = [one for one in text.replace("\n", " ").split(". ") if one.strip()]
    assert sum(len(one.split()) for one in sentences) / len(sentences) <= MEAN_WORDS
    for link in (part.split(")")[0].split("#")[0] for part in text.split("](")[1:]):
        assert (path.parent / link).exists(), link


def test_a_page_has_text_code_and_results() -> None:
    table = {"output_type": "execute_result", "data": {"text/html": ["<table>\n", "\n", "</table>"], "text/plain": "t"}}
    said = {"output_type": "stream", "name": "stdout", "text": ["3\n"]}
    cells = [
        {"cell_type": "markdown", "source": ["# Title"]},
        {"cell_type": "code", "source": ["print(3)\n", "frame"], "outputs": [said, table]},
    ]
    assert page({"cells": cells}) == (
        "# Title\n\n```python\nprint(3)\nframe\n```\n\n```text\n3\n```\n\n<table>\n</table>\n"
    )
