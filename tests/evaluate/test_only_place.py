"""Designs are evaluated in ``evaluate/`` alone: nothing else maps a model, picks the fastest, or settles the power."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import dse

PACKAGE = Path(dse.__file__).parent
EVALUATOR = "evaluate/"

STEPS = {
    "map": {"vmap", "pmap", "filter_vmap", "lax.map", "lax.scan"},
    "choose": {"fastest", "fastest_row", "fastest_of", "argmin", "minimum.reduceat"},
    "settle": {"sustain", "sustained", "in_sequence", "at_clock"},
}
"""A step of an evaluation -> what is called by a file that takes it itself."""

INSIDE = {
    "map": ("timing/interval.py", "timing/traced/", "calibration/"),
    "choose": ("calibration/",),
    "settle": ("power/",),
}
"""A step -> the places that may take it as well: models that batch designs in the minor axis, fits over rows, folds and
resamplings, and the power model itself."""

MODELS = {"TimingModel", "nanoseconds", "BoardPower", "in_sequence"}
"""Names of which a file that evaluates has one."""


def names(node: ast.AST) -> Iterator[str]:
    """Yield a name or an attribute as it may stand in STEPS: by its last word, and by its last two."""
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Attribute):
        yield node.attr
        yield ".".join(ast.unparse(node).split(".")[-2:])


def takes(path: Path, step: str) -> bool:
    """Whether a file takes a step of an evaluation: it names a model, and calls, or passes on, what takes the step."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    used = {name for node in ast.walk(tree) for name in names(node)}
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    passed = [part for node in calls for part in (node.func, *node.args)]
    return bool(MODELS & used) and any(name in STEPS[step] for node in passed for name in names(node))


@pytest.mark.parametrize("step", STEPS)
def test_only_the_evaluator_takes_a_step(step: str) -> None:
    files = {p.relative_to(PACKAGE).as_posix() for p in PACKAGE.rglob("*.py") if takes(p, step)}
    assert any(file.startswith(EVALUATOR) for file in files)
    assert {file for file in files if not file.startswith((EVALUATOR, *INSIDE[step]))} == set()


def test_only_the_evaluator_maps_a_function_over_a_batch() -> None:
    """Whatever the function: the others call it."""
    mapping = {
        path.relative_to(PACKAGE).parts[0]
        for path in PACKAGE.rglob("*.py")
        if any("vmap" in names(node) for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    }
    assert mapping == {"evaluate"}


def test_traces_part_from_generated_kernels_in_one_file_of_the_evaluator() -> None:
    """Another one refuses them."""
    asking = {
        path.name
        for path in (PACKAGE / EVALUATOR).glob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and node.attr == "recorded"
    }
    assert asking == {"by_workload.py", "objective.py"}
