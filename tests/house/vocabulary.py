"""Words that only this project's authors understood, as far as they name things."""

import ast
import re
from collections.abc import Iterator

from tests.house.project import Project

PRIVATE = {"told", "held", "known", "found", "beside", "judged", "within", "moved", "bends"}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def definitions(project: Project) -> list[str]:
    """Return the modules, classes, functions, parameters and attributes whose names hold one of the words."""
    return sorted(
        f"{path}: {name}"
        for path, tree in project.trees.items()
        for name in {path.rsplit("/")[-1].removesuffix(".py"), *_defined(tree)}
        if _is_private(name)
    )


def variables(project: Project) -> list[str]:
    """Return the names of variables, module constants included, that hold one of the words, each once a file."""
    return sorted(
        f"{path}: {name}"
        for path, tree in project.trees.items()
        for name in {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        if _is_private(name)
    )


def _defined(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, Function | ast.ClassDef):
            yield node.name
        if isinstance(node, Function):
            yield from (a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs))
        if isinstance(node, ast.ClassDef):
            yield from (
                n.target.id for n in node.body if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)
            )
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr


def _is_private(name: str) -> bool:
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().split("_")
    return not PRIVATE.isdisjoint(words)
