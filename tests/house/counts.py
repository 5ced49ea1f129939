"""The counts: what each is called, how it is taken, and the function that takes it."""

import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from statistics import median, quantiles

from tests.house import evaluation, vocabulary
from tests.house.imports import circles, closure, graph, running_back
from tests.house.project import PACKAGE, Project, line_count, module_name

ROOM = 25
"""Files that a folder may hold."""

LONG_FUNCTION, LONG_FILE = 60, 400
"""Lines above which a function or a file is long."""

SKIP = re.compile(r"#\s*fmt:\s*skip")
"""The comment that keeps the formatter away from a statement."""

PAGE = re.compile(r"\bspe[c](?:/| [A-Z])")
"""A reference of a table or a document to a page of the specification, which is no part of the project."""

UNREACHABLE = re.compile(r"(?<![\w{`\"'.-])spe[c](?='s table|/[a-z]|[,:]?\s+(?:[A-Z]|section|speed|post|what|``))")
"""The same in a comment or a text of Python code, where the word is neither quoted nor in braces."""


@dataclass(frozen=True)
class Count:
    """A count: its ``title``, the ``rule`` by which it is taken, and what it counts: a number, or a list to be read."""

    title: str
    rule: str
    take: Callable[[Project], float | list[str]]

    def __call__(self, project: Project) -> float:
        """Return the number for a state of the project."""
        found = self.take(project)
        return len(found) if isinstance(found, list) else found


def statements(project: Project) -> int:
    return sum(isinstance(node, ast.stmt) for tree in project.trees.values() for node in ast.walk(tree))


def rooms(project: Project) -> Counter[str]:
    """Return the number of modules directly in each folder of the package."""
    return Counter(path.rsplit("/", 1)[0] for path in named_modules(project))


def named_modules(project: Project) -> list[str]:
    """Return the paths of the modules but ``__init__`` and ``__main__``."""
    return sorted(path for path in project.trees if not path.endswith("__.py"))


def largest_rooms(project: Project, place: int) -> int:
    return rooms(project).most_common(place)[-1][1]


def full_rooms(project: Project) -> list[str]:
    return [f"{room}: {files}" for room, files in rooms(project).most_common() if files > ROOM]


def public_classes(project: Project) -> list[str]:
    """Return the public classes of the modules that the command ``dse sweep`` may import."""
    functions = project.functions()
    starts = {module_name(path) for path, node in functions if path.startswith("dse/cli/") and node.name == "sweep"}
    reached = closure(graph(project, inside_functions=True), starts)
    return sorted(
        f"{module}.{node.name}"
        for module in reached
        for node in project.trees[project.modules[module]].body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )


def number_constants(project: Project) -> list[str]:
    return [
        f"{path}: {name}"
        for path, tree in project.trees.items()
        for node in tree.body
        for name, value in _assigned(node)
        if _is_number(value)
    ]


def _assigned(node: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    """Yield the names that a statement binds with their values, those of ``A, B = 1, 2`` one by one."""
    if isinstance(node, ast.AnnAssign) and node.value is not None:
        yield ast.unparse(node.target), node.value
    elif isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                yield from ((ast.unparse(t), v) for t, v in zip(target.elts, node.value.elts, strict=False))
            else:
                yield ast.unparse(target), node.value


def _is_number(node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int | float) and not isinstance(node.value, bool)
    if isinstance(node, ast.UnaryOp):
        return _is_number(node.operand)
    if isinstance(node, ast.BinOp):
        return _is_number(node.left) and _is_number(node.right)
    return isinstance(node, ast.Tuple) and bool(node.elts) and all(map(_is_number, node.elts))


def lines_with(project: Project, pattern: re.Pattern[str], suffix: str, folder: str = "") -> list[str]:
    """Return the lines of files in which a pattern is found."""
    return [
        f"{path}:{number}"
        for path, text in project.texts.items()
        if path.endswith(suffix) and path.startswith(folder)
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line)
    ]


def tested(project: Project) -> list[str]:
    """Return the modules that have a test of their name in the mirrored folder."""
    return [path for path in named_modules(project) if mirrored(path) in project.texts]


def untested(project: Project) -> list[str]:
    return sorted(set(named_modules(project)) - set(tested(project)))


def mirrored(path: str) -> str:
    """Return the path of a module's test."""
    folder, name = path.removeprefix(f"{PACKAGE}/").rpartition("/")[::2]
    return "/".join(filter(None, ["tests", folder, f"test_{name}"]))


def unreachable_in_code(project: Project, folders: tuple[str, ...]) -> list[str]:
    return [
        f"{path}:{token.start[0]}"
        for path, text in project.texts.items()
        if path.endswith(".py") and path.startswith(folders) and UNREACHABLE.search(text)
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type in _PROSE
        for _ in UNREACHABLE.findall(token.string)
    ]


_PROSE = {tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", -1)}


def import_circles(project: Project, *, inside_functions: bool) -> list[str]:
    return circles(graph(project, inside_functions=inside_functions))


def function_lines(project: Project) -> list[int]:
    return [line_count(node) for _, node in project.functions()]


def long_functions(project: Project) -> list[str]:
    return [f"{path}: {node.name}" for path, node in project.functions() if line_count(node) > LONG_FUNCTION]


def long_files(project: Project) -> list[str]:
    return sorted(path for path in project.trees if project.texts[path].count("\n") > LONG_FILE)


COUNTS = {
    "statements": Count("statements", "nodes of the syntax trees that are statements", statements),
    "modules": Count("modules", "files of dse/ but __init__ and __main__", named_modules),
    "largest_room": Count("modules in the largest folder", "directly in it", partial(largest_rooms, place=1)),
    "second_room": Count("modules in the second largest folder", "directly in it", partial(largest_rooms, place=2)),
    "full_rooms": Count(f"folders of more than {ROOM} modules", "directly in them", full_rooms),
    "public_classes": Count(
        "public classes behind the main command",
        "classes of the file that defines the command sweep and of all it imports, imports in functions followed",
        public_classes,
    ),
    "number_constants": Count(
        "module constants that are plain numbers",
        "names bound at module level to numbers, arithmetic of numbers, or tuples of them",
        number_constants,
    ),
    "evaluating": Count(
        "places that evaluate designs",
        "files that name a timing model and take two of four steps: map with vmap, pick the fastest, settle the power, "
        "make metrics; all of evaluate/ is one place",
        evaluation.places,
    ),
    "result_records": Count(
        "records of evaluation",
        "public named tuples and dataclasses that functions of a file with such a step return",
        evaluation.result_records,
    ),
    "vmap": Count("files that map with vmap", "the name is read anywhere but in text", evaluation.mapping),
    "unformatted": Count(
        "lines that the formatter skips",
        "in dse/, by their comment",
        partial(lines_with, pattern=SKIP, suffix=".py", folder="dse/"),
    ),
    "unformatted_anywhere": Count("the same anywhere", "likewise", partial(lines_with, pattern=SKIP, suffix=".py")),
    "tested": Count("modules with a test of their name", "tests/a/test_b.py of dse/a/b.py", tested),
    "untested": Count("modules without one", "the others", untested),
    "unreachable_in_code": Count(
        "references to a specification in dse/",
        "in comments and texts, by the name of its pages",
        partial(unreachable_in_code, folders=("dse/",)),
    ),
    "unreachable_in_tests": Count(
        "the same in tests, experiments and benchmarks",
        "likewise",
        partial(unreachable_in_code, folders=("tests/", "experiments/", "benchmarks/")),
    ),
    "unreachable_in_tables": Count(
        "rows of data that refer to one",
        "lines of CSV files",
        partial(lines_with, pattern=PAGE, suffix=".csv"),
    ),
    "unreachable_in_documents": Count(
        "lines of documents that refer to one",
        "lines of Markdown files",
        partial(lines_with, pattern=PAGE, suffix=".md"),
    ),
    "long_functions": Count(
        f"functions over {LONG_FUNCTION} lines", "methods and inner ones too, decorators left out", long_functions
    ),
    "median_function": Count("median lines of a function", "likewise", lambda project: median(function_lines(project))),
    "ninth_decile": Count(
        "90th percentile of lines", "likewise", lambda project: quantiles(function_lines(project), n=10)[-1]
    ),
    "long_files": Count(f"files over {LONG_FILE} lines", "files of dse/", long_files),
    "circles": Count(
        "circles of imports",
        "groups that reach each other by imports outside functions",
        partial(import_circles, inside_functions=False),
    ),
    "circles_in_functions": Count(
        "the same with imports in functions", "likewise", partial(import_circles, inside_functions=True)
    ),
    "running_back": Count(
        "imports that run back", "against ORDER of tests/test_import_direction.py of the same revision", running_back
    ),
    "private_definitions": Count(
        "private words that name things",
        "each once a file: modules, classes, functions, parameters, attributes whose names hold "
        f"{', '.join(sorted(vocabulary.PRIVATE))}",
        vocabulary.definitions,
    ),
    "private_variables": Count("private words that name variables", "likewise", vocabulary.variables),
}
"""What is counted, by the name that JSON and --list have for it."""
