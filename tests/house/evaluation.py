"""Where designs are evaluated: who maps a model, picks the fastest candidate, settles the power, makes the metrics."""

import ast

from tests.house.project import Project

EVALUATOR = "dse/evaluate/"
"""The folder that evaluates: one place, however many files it has."""

MODELS = {"TimingModel", "Models"}
"""What a file names that times kernels."""

RECORDS = {"NamedTuple", "dataclass", "Module"}
"""What makes a class a record: a base or a decorator."""

STEPS = (
    {"vmap"},
    {"fastest", "fastest_of", "Fastest", "_fastest"},
    {"in_sequence", "sustained"},
    {"time_metrics", "energy_metrics"},
)
"""What is called to map a model over a batch, to pick the fastest candidate, to settle the power, to make metrics."""


def mapping(project: Project) -> list[str]:
    """Return the files that call or pass on ``vmap``."""
    return sorted(path for path, tree in project.trees.items() if "vmap" in _used(tree))


def places(project: Project) -> list[str]:
    """Return the files that name a timing model and take two steps of an evaluation or more, a folder for its files."""
    found = {path for path, tree in project.trees.items() if MODELS & _used(tree) and _steps(tree) > 1}
    return sorted({EVALUATOR if path.startswith(EVALUATOR) else path for path in found})


def result_records(project: Project) -> list[str]:
    """Return the public records that files with a step of an evaluation define and their functions return."""
    found = []
    for path, tree in project.trees.items():
        if path.startswith(EVALUATOR) or (_steps(tree) and (MODELS | {"Timing"}) & _used(tree)):
            returned = _returned(tree)
            found += [f"{path}: {name}" for name in _records(tree) if name in returned]
    return sorted(found)


def _steps(tree: ast.Module) -> int:
    called = {name for node in ast.walk(tree) if isinstance(node, ast.Call) for name in _last_name(node.func)}
    return sum(bool(step & called) for step in STEPS)


def _used(tree: ast.AST) -> set[str]:
    return {name for node in ast.walk(tree) for name in _last_name(node)}


def _last_name(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Name):
        return [node.id]
    return [node.attr] if isinstance(node, ast.Attribute) else []


def _records(tree: ast.Module) -> list[str]:
    """Return the names of the public classes that are named tuples or dataclasses."""
    return [
        node.name
        for node in tree.body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
        if any(RECORDS & _used(part) for part in (*node.bases, *node.decorator_list))
    ]


def _returned(tree: ast.Module) -> set[str]:
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.returns]
    texts = {ast.unparse(node.returns) for node in functions if node.returns}
    return {name for text in texts for name in _used(ast.parse(text.replace("'", "")))}
