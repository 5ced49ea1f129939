"""The files of one state of the project: those of the working tree, or those of a revision."""

import ast
import io
import subprocess
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parents[2]
FOLDERS = ("dse", "tests", "experiments", "benchmarks", "docs", "spaces")
SUFFIXES = (".py", ".csv", ".toml", ".md")
PACKAGE = "dse"


@dataclass(frozen=True)
class Project:
    """One state of the project: ``texts`` of its files by their path from the root, with forward slashes."""

    texts: dict[str, str]

    @classmethod
    def here(cls) -> "Project":
        """Return the working tree, what is not yet committed included."""
        paths = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*")] + list(ROOT.glob("*.md"))
        wanted = sorted(path for path in paths if path.suffix in SUFFIXES and path.is_file())
        return cls({path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in wanted})

    @classmethod
    def at(cls, revision: str) -> "Project":
        """Return a revision, read from git's objects; raises LookupError where this clone does not hold it."""
        try:
            archive = subprocess.run(["git", "archive", revision], cwd=ROOT, capture_output=True, check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            why = getattr(error, "stderr", b"").decode().strip() or error
            raise LookupError(
                f"{revision} cannot be read ({why}); where the clone is shallow, 'git fetch --unshallow' gets it"
            ) from None
        with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
            members = [m for m in files if m.isfile() and PurePosixPath(m.name).suffix in SUFFIXES]
            return cls({m.name: files.extractfile(m).read().decode() for m in members if _is_ours(m.name)})  # type: ignore[union-attr]

    @cached_property
    def trees(self) -> dict[str, ast.Module]:
        """The syntax tree of each file of the package by its path."""
        return {path: ast.parse(text) for path, text in self.texts.items() if is_module(path)}

    @cached_property
    def modules(self) -> dict[str, str]:
        """The path of each module of the package by its dotted name."""
        return {module_name(path): path for path in self.trees}

    def functions(self) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
        """Yield the path and the tree of each function of the package, methods and inner functions included."""
        for path, tree in self.trees.items():
            for node in ast.walk(tree):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    yield path, node


def _is_ours(path: str) -> bool:
    return "/" not in path or path.split("/")[0] in FOLDERS


def is_module(path: str) -> bool:
    """Return whether a path is that of a module of the package."""
    return path.startswith(f"{PACKAGE}/") and path.endswith(".py")


def module_name(path: str) -> str:
    """Return the dotted name of the module at a path."""
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def line_count(node: ast.stmt) -> int:
    """Return the lines of a statement, those of its decorators left out."""
    return (node.end_lineno or node.lineno) - node.lineno + 1
