"""The spaces that come with the package: questions people ask, ready to run or to copy."""

import re
import tomllib
from importlib.resources import files
from pathlib import Path

from dse.base.atomic_files import write_whole
from dse.base.errors import InputError, accepted, shown
from dse.base.text_file import there_is


def shipped_spaces() -> dict[str, Path]:
    """Return name -> file of the shipped spaces (in the wheel, or in ``spaces/`` of a checkout)."""
    installed = Path(str(files("dse"))) / "data" / "spaces"
    folder = installed if installed.is_dir() else Path(str(files("dse"))).parent / "spaces"
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}


def space_question(path: Path) -> str:
    """Return the question that a space file states."""
    with path.open("rb") as file:
        return str(tomllib.load(file).get("question", ""))


def find_space(text: str) -> Path:
    """Return the file that ``text`` means: a path, or a shipped space's name; raises InputError when there is none."""
    path = Path(text)
    if there_is(path, Path.is_file):
        return path
    shipped = shipped_spaces()
    if path.parent in (Path(), Path("spaces")) and path.stem in shipped and path.suffix in ("", ".toml"):
        return shipped[path.stem]
    if there_is(path) or there_is(path, Path.is_symlink):
        return path  # whoever reads it says what it is
    raise InputError(
        f"{shown(text)[1:-1]}: no such file, and no shipped space of that name; {accepted(path.stem, shipped)}"
    )


def write_template(path: Path, template: str) -> None:
    """Copy a shipped space to ``path``, its name and question left to the new one; raises InputError when the file
    exists or there is no such space."""
    shipped = shipped_spaces()
    if template not in shipped:
        raise InputError(f"--from {template}: no shipped space of that name; {accepted(template, shipped)}")
    if path.exists():
        raise InputError(f"{path}: exists already; give another name")
    if not path.parent.is_dir():
        raise InputError(f"{path}: cannot be written (there is no folder {path.parent}); give another path")
    top, tables, rest = shipped[template].read_text(encoding="utf-8").partition("\n[")
    write_whole(path, re.sub(r"^(name|question) = .*\n", "", top, flags=re.MULTILINE) + tables + rest)
