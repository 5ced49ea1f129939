"""Who imports whom: closures, circles, and imports against the order of the folders."""

import ast
from collections.abc import Iterator

from tests.house.project import PACKAGE, Project, module_name

Graph = dict[str, set[str]]
"""Module -> modules of the package that it imports."""


def graph(project: Project, *, inside_functions: bool) -> Graph:
    """Return the imports of each module that take place when it runs; those for type checkers alone are left out."""
    return {
        module_name(path): set(_imported(tree, path, project.modules, inside_functions))
        for path, tree in project.trees.items()
    }


def _imported(tree: ast.Module, path: str, modules: dict[str, str], inside_functions: bool) -> Iterator[str]:
    folder = path.split("/")[:-1]
    for node in _statements(tree, inside_functions):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom):
            above = folder[: len(folder) - node.level + 1] if node.level else []
            source = ".".join([*above, *filter(None, [node.module])])
            names = {f"{source}.{alias.name}" for alias in node.names}
            yield from names & modules.keys()
            if source in modules and not names <= modules.keys():
                yield source


def _statements(node: ast.AST, inside_functions: bool) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) and not inside_functions:
            continue
        yield child
        yield from _statements(child, inside_functions)


def closure(imports: Graph, starts: set[str]) -> set[str]:
    """Return modules with all that they import, directly or not."""
    found: set[str] = set()
    waiting = list(starts)
    while waiting:
        module = waiting.pop()
        if module not in found:
            found.add(module)
            waiting += imports[module]
    return found


def circles(imports: Graph) -> list[str]:
    """Return the groups of modules each of which imports all others of its group, directly or not, as texts."""
    reached = {module: closure(imports, imports[module]) for module in imports}
    groups = {
        frozenset(other for other in reached[module] if module in reached[other])
        for module in imports
        if module in reached[module]
    }
    return sorted(" <-> ".join(sorted(group)) for group in groups)


def running_back(project: Project) -> list[str]:
    """Return the imports of a module by a folder above its own, in the order that the project's own test states."""
    order, loose = _stated_order(project)
    places = {name: order.index(room) for name in project.modules if (room := _room(name, loose)) in order}
    return sorted(
        f"{module} imports {other}"
        for module, others in graph(project, inside_functions=True).items()
        for other in others
        if places.get(other, -1) > places.get(module, len(order))
    )


def _stated_order(project: Project) -> tuple[list[str], set[str]]:
    """Return the folders in their order, and the modules outside folders that count as the first of them."""
    tree = ast.parse(project.texts["tests/test_import_direction.py"])
    stated = {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
        if node.targets[0].id in ("ORDER", "BASE")
    }
    return list(stated["ORDER"]), set(stated.get("BASE", ()))


def _room(module: str, loose: set[str]) -> str:
    """Return the folder of a module, "" for the package itself."""
    if module == PACKAGE:
        return ""
    first = module.split(".")[1]
    return "base" if first in loose else "cli" if first == "__main__" else first
