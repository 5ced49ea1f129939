"""Folders import only from those above them in the design page's order, imports inside functions included."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "dse"
ORDER = ("base", "hardware", "workload", "timing", "power", "scaling", "predict", "calibrate", "measure", "space",
         "sweep", "search", "report", "cli")  # fmt: skip
BASE = {
    "brief",
    "callable_folder",
    "compiling",
    "csv_table",
    "errors",
    "files",
    "loops",
    "units",
    "numerics",
    "skipped",
    "tables",
    "toml_file",
    "toml_text",
    "uncertainty",
}
FILES = sorted(p for p in PACKAGE.rglob("*.py") if p != PACKAGE / "__init__.py")


def room(module):
    """Place in ORDER of a module's dotted name, or None for the package itself."""
    parts = module.split(".")
    if len(parts) == 1:
        return None
    return ORDER.index("base" if parts[1] in BASE else "cli" if parts[1] == "__main__" else parts[1])


def imported(path):
    """Names of this package's modules that a file imports anywhere."""
    here = ("dse", *path.relative_to(PACKAGE).with_suffix("").parts)
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "dse")
        elif isinstance(node, ast.ImportFrom):
            prefix = ".".join(here[: len(here) - node.level]) + "." if node.level else ""
            module = (prefix + (node.module or "")).strip(".")
            if module == "dse":
                yield from (f"dse.{alias.name}" for alias in node.names if not alias.name.startswith("__"))
            elif module.split(".")[0] == "dse":
                yield module


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_a_file_imports_only_from_its_room_and_those_above(path):
    own = room(".".join(("dse", *path.relative_to(PACKAGE).with_suffix("").parts)))
    below = [name for name in imported(path) if (place := room(name)) is not None and place > own]
    assert below == []


def test_every_room_has_its_place():
    assert len(FILES) > 30
    assert {p.parent.name for p in FILES if p.parent != PACKAGE} <= set(ORDER)
    assert {p.stem for p in FILES if p.parent == PACKAGE} <= BASE | {"__main__"}


@pytest.mark.parametrize("path", sorted((PACKAGE / "report").glob("page*.py")), ids=lambda p: p.name)
def test_a_page_takes_nothing_from_the_terminal(path):
    assert not [name for name in imported(path) if name.startswith("dse.report.terminal")]
