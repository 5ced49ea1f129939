"""What code, tables and documents cite can be opened: pages of the project with that section, or what is public."""

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("dse", "docs", "tests", "experiments", "benchmarks", "spaces")
TEXTS = sorted(
    [
        *(p for f in FOLDERS for e in ("py", "md", "csv", "toml") for p in (ROOT / f).rglob(f"*.{e}")),
        *ROOT.glob("*.md"),
    ]
)

PRIVATE = re.compile(
    r"""\bspec/ | \bspec\ (AMALI|GCoM|section|speed|of\ the) | \bspecification's | \bdesign\ page
    | public\ repository\ text | recalled,\ not | \bNB200\b | \bDEVPROP\b""",
    re.VERBOSE,
)
"""Words that name what a reader cannot open."""

FORUMS = re.compile(r"forums?\b|reddit|blogspot|community post|soylentnews|hn item", re.IGNORECASE)
"""Where nobody vouches for what is written: no source of a value."""

CITED = re.compile(r"docs/model/(\w+)\.md(?:\s+(\d+(?:\.\d+)?)(?:(?:,|\s+and)\s+(\d+(?:\.\d+)?)(?![\w.]))?)?")
"""A page and up to two of its sections: ``docs/model/speed.md 2 and 5``."""


@cache
def text(path: Path) -> str:
    """Return the text of a file of the project."""
    return path.read_text(encoding="utf-8")


@cache
def sections(page: str) -> set[str]:
    """Return the numbers of a page's headings, and of the items of its numbered lists within them."""
    found, inside = set(), ""
    for line in text(ROOT / "docs" / "model" / f"{page}.md").splitlines():
        if heading := re.match(r"#+ (\d+(?:\.\d+)?)\.? ", line):
            inside = heading[1]
            found.add(inside)
        elif item := re.match(r"(\d+)\. ", line):
            found.add(f"{inside}.{item[1]}")
    return found


def unopened(path: Path) -> list[str]:
    """Return the pages and sections that a file cites and that do not exist."""
    cited = CITED.findall(text(path))
    absent = [page for page, *_ in cited if not (ROOT / "docs" / "model" / f"{page}.md").exists()]
    return absent or [
        f"{page} {number}" for page, *numbers in cited for number in numbers if number and number not in sections(page)
    ]


def test_the_pattern_knows_what_it_looks_for() -> None:
    for wrong in ("see " + "spec/timing.md", "spec" + " GCoM section 2", "(NB" + "200)"):
        assert PRIVATE.search(wrong)
    assert not PRIVATE.search("specification pages of NVIDIA, spec_from_file_location, a spec of an axis")


def test_nothing_names_what_a_reader_cannot_open() -> None:
    named = {path: PRIVATE.search(text(path)) for path in TEXTS if path.parent != Path(__file__).parent}
    assert [f"{path.relative_to(ROOT)}: {found[0]}" for path, found in named.items() if found] == []


def test_cited_sections_exist() -> None:
    assert sum(len(CITED.findall(text(path))) for path in TEXTS) > 100
    assert [f"{path.relative_to(ROOT)}: {page}" for path in TEXTS for page in unopened(path)] == []


@pytest.mark.parametrize("page", sorted(p.stem for p in (ROOT / "docs" / "model").glob("*.md") if p.stem != "README"))
def test_every_page_is_cited(page: str) -> None:
    cited = [p for path in TEXTS for p, *_ in CITED.findall(text(path))]
    linked = [p for path in TEXTS if path.suffix == ".md" for p in re.findall(r"(\w+)\.md\)", text(path))]
    assert page in cited + linked


def test_no_value_rests_on_a_forum() -> None:
    tables = [path for path in TEXTS if path.is_relative_to(ROOT / "dse" / "data") and path.suffix == ".csv"]
    assert [f"{path.name}: {found[0]}" for path in tables if (found := FORUMS.search(text(path)))] == []
