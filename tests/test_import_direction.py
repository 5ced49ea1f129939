"""Folders import only from those above them in one order, imports inside functions too, and nothing in a circle."""

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import dse

PACKAGE = Path(__file__).parents[1] / "dse"
ORDER = (
    "base",
    "hardware",
    "traces",
    "workload",
    "timing",
    "power",
    "space",
    "evaluate",
    "comparison",
    "measured",
    "validation",
    "calibration",
    "prediction",
    "scaling",
    "measurement",
    "grid",
    "explanation",
    "pareto",
    "reports",
    "agents",
    "cli",
)
MOST_FILES = 25
"""Files that a folder holds without folders of its own."""

FILES = sorted(p for p in PACKAGE.rglob("*.py") if p != PACKAGE / "__init__.py")


def module_of(path):
    """Dotted name of a file's module; a package's for its __init__.py."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(("dse", *(parts[:-1] if parts[-1] == "__init__" else parts)))


MODULES = {module_of(p) for p in FILES}


def room(module):
    """Place in ORDER of a module's dotted name, or None for the package itself."""
    parts = module.split(".")
    if len(parts) == 1:
        return None
    return ORDER.index("cli" if parts[1] == "__main__" else parts[1])


def imported(path):
    """Names of this package's modules that a file imports anywhere."""
    here = ("dse", *path.relative_to(PACKAGE).with_suffix("").parts)
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "dse")
        elif isinstance(node, ast.ImportFrom):
            prefix = ".".join(here[: len(here) - node.level]) + "." if node.level else ""
            module = (prefix + (node.module or "")).strip(".")
            if module.split(".")[0] == "dse":
                names = [f"{module}.{alias.name}" for alias in node.names]
                yield from (name if name in MODULES else module for name in names if not name.startswith("dse.__"))


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_a_file_imports_only_from_its_room_and_those_above(path):
    own = room(module_of(path))
    below = [name for name in imported(path) if (place := room(name)) is not None and place > own]
    assert below == []


def test_no_import_runs_in_a_circle():
    graph = {module_of(p): {n for n in imported(p) if n != module_of(p)} & MODULES for p in FILES}
    try:
        list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        pytest.fail(f"a circle of imports: {error.args[1]}")


def test_every_room_has_its_place():
    assert len(FILES) > 30
    assert {p.relative_to(PACKAGE).parts[0] for p in FILES if p.parent != PACKAGE} == set(ORDER)
    assert {p.stem for p in FILES if p.parent == PACKAGE} == {"__main__"}


def test_no_room_is_so_full_that_it_needs_folders():
    folders = {p.parent for p in FILES} - {PACKAGE}
    full = {d.name: n for d in folders if (n := sum(p.name != "__init__.py" for p in d.glob("*.py"))) > MOST_FILES}
    assert full == {}


def test_no_room_has_the_name_of_a_public_function():
    """A folder that is imported would hide the function: ``dse.sweep`` is one, whatever was imported first."""
    assert not set(ORDER) & set(dse.__all__)


@pytest.mark.parametrize("path", sorted((PACKAGE / "reports").rglob("page*.py")), ids=lambda p: p.name)
def test_a_page_takes_nothing_from_the_terminal(path):
    assert not [name for name in imported(path) if "terminal" in name.rpartition(".")[2]]
