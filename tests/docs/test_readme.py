"""What the documents say is short, plain and true: links open, commands parse, examples load."""

import ast
import importlib
import re
import shlex
import tomllib
from dataclasses import fields
from itertools import groupby
from pathlib import Path
from statistics import mean
from typing import get_type_hints

import pytest

import dse
from dse import load_gpu, load_space, load_workload
from dse.cli import app

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
README_LINES = 120
MEAN_WORDS = 20
"""Words that a sentence of a page has in the mean, at most."""

FOLDERS = "benchmarks|docs|dse|experiments|spaces|tests"
"""Folders of the project that pages name files in."""

PRIVATE = re.compile(r"spec/|\.\./shared|(?<![\w.])/(?:work|tmp|home|root)/|\bissue \d", re.IGNORECASE)
"""What a reader of the project cannot open."""

pages = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def read(page):
    return page.read_text(encoding="utf-8")


def blocks(page, language):
    """Texts of a page's fenced blocks of one language, in their order."""
    return re.findall(rf"^```{language}\n(.*?)^```", read(page), re.MULTILINE | re.DOTALL)


def written(page):
    """Paths of the files that a page tells its reader to write."""
    return re.findall(r"^`([\w./]+)`:\n\n```", read(page), re.MULTILINE)


def sentences(text):
    """Sentences of the prose: neither code, tables and headings, nor the symbols of a formula."""
    text = re.sub(r"^```.*?^```", "\n", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^\$\$.*?^\$\$", "\n", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^(\||#|!\[|    ).*$", "\n", text, flags=re.MULTILINE)
    text = re.sub(r"\[([^]]*)]\([^)]*\)", r"\1", re.sub(r"`[^`]*`", "code", text))
    for paragraph in re.split(r"\n\s*\n|\n\s*(?:[-*]|\d+\.) ", text):
        yield from filter(None, (s.strip() for s in re.split(r"(?<!Eq)(?<!Eqs)[.!?](?=\s|$)", paragraph)))


def commands(page):
    """Calls of ``dse`` in a page's code, a list of arguments each."""
    text = "\n".join([*re.findall(r"^    (.*)$", read(page), re.MULTILINE), *blocks(page, "(?:ba)?sh")])
    for line in text.replace("\\\n", " ").splitlines():
        try:
            words = shlex.split(line, comments=True)
        except ValueError:  # a line of another language
            continue
        for separator, part in groupby(words, lambda word: word in ("&&", "|", ">")):
            name, *arguments = part
            if not separator and Path(name).name == "dse" and "=" not in arguments:
                yield arguments


def test_the_readme_is_short():
    assert len(read(ROOT / "README.md").splitlines()) <= README_LINES


@pages
def test_sentences_are_short(page):
    lengths = [len(re.findall(r"\S*\w\S*", sentence)) for sentence in sentences(read(page))]
    assert lengths and mean(lengths) < MEAN_WORDS


@pages
def test_links_open(page):
    links = re.findall(r"(?<!`)\[[^]]*]\(([^)#\s]+)[^)]*\)", read(page))
    local = [link for link in links if not link.startswith(("https://", "http://", "mailto:"))]
    assert [link for link in local if not (page.parent / link).exists()] == []


@pages
def test_headings_that_links_name_exist(page):
    for target, heading in re.findall(r"]\(([^)#\s]*)#([^)\s]+)\)", read(page)):
        if not target.startswith("http"):
            titles = re.findall(r"^#+ (.*)$", read(page.parent / target if target else page), re.MULTILINE)
            assert heading in {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


@pages
def test_what_is_named_can_be_opened(page):
    text = read(page)
    assert PRIVATE.findall(text) == []
    named = re.findall(rf"`((?:{FOLDERS})/[\w./-]*)`", text)
    absent = {name for name in named if not (ROOT / name).exists()}
    assert absent == set(written(page)), "what a page has its reader write is there already, or something is missing"


@pages
def test_what_is_named_can_be_imported(page):
    named = re.findall(r"`(dse(?:\.\w+)+)(?:\(.*?\))?`", read(page))
    for code in blocks(page, "python"):
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "dse":
                named += [f"{node.module}.{alias.name}" for alias in node.names]
    own = {path.removesuffix(".py").replace("/", ".") for path in written(page)}
    for name in named:
        module, _, attribute = name.rpartition(".")
        assert module in own or hasattr(importlib.import_module(module), attribute), name


def test_what_a_result_is_said_to_hold_it_holds():
    rows = re.findall(r"^\| `dse\.(run|sweep)\(.*?\)` \| (.*) \|$", read(ROOT / "docs" / "python.md"), re.MULTILINE)
    assert {function for function, _ in rows} == {"run", "sweep"}
    for function, answers in rows:
        result = get_type_hints(getattr(dse, function))["return"]
        holds = {*dir(result), *(field.name for field in fields(result))}
        assert set(re.findall(r"`(\w+)(?:\(\w*\))?`", answers)) - holds == set()


@pages
def test_commands_parse(page):
    for arguments in commands(page):
        command, *_ = app.parse_args(arguments, print_error=False, exit_on_error=False)  # raises where one is wrong
        assert callable(command)


def test_pages_hold_commands():
    assert sum(1 for page in PAGES for _ in commands(page)) > 50


@pages
def test_toml_is_toml(page):
    for text in blocks(page, "toml"):
        assert tomllib.loads(text)


@pytest.mark.parametrize("page", [ROOT / "README.md", ROOT / "docs" / "spaces.md"], ids=lambda page: page.name)
def test_the_space_of_a_page_loads(page, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(blocks(page, "toml")[0], encoding="utf-8")
    space = load_space(path)
    assert space.size > 100
    assert len(space.objectives) >= 2


def test_the_gpu_and_the_workload_of_a_page_load(tmp_path):
    gpu, workload = tmp_path / "my_gpu.toml", tmp_path / "decode.toml"
    gpu.write_text(blocks(ROOT / "docs" / "own_gpu.md", "toml")[0], encoding="utf-8")
    workload.write_text(blocks(ROOT / "docs" / "workloads.md", "toml")[0], encoding="utf-8")
    assert float(load_gpu(gpu).l2_mib) == 96
    assert load_workload(f"{workload}:batch=64").phases
