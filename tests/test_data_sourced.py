"""Every number of the package's tables has a source, and every source key its citation."""

from pathlib import Path

import pytest

from dse.base.package_tables import read_table

DATA = Path(__file__).parents[1] / "dse" / "data"
TABLES = sorted(str(p.relative_to(DATA)) for p in DATA.rglob("*.csv") if p.name != "sources.csv")
CITED = {row["key"]: row["citation"] for row in read_table("sources.csv")}


def test_every_key_has_one_citation():
    assert len(CITED) == len(read_table("sources.csv")) > 40
    assert all(CITED.values())


@pytest.mark.parametrize("table", TABLES)
def test_every_row_has_a_source(table):
    rows = read_table(table)
    assert rows
    assert [row for row in rows if not row.get("source", "").strip()] == []


@pytest.mark.parametrize("table", [t for t in TABLES if t.startswith("gpus/")])
def test_the_sources_of_gpus_resolve(table):
    keys = {key for row in read_table(table) for key in row["source"].split(";")}
    assert keys - CITED.keys() == set()


@pytest.mark.parametrize(
    "table", [t for t in TABLES if t.startswith("gpus/") and t[5:] not in ("index.csv", "peaks.csv")]
)
def test_an_assumed_value_says_why(table):
    assumed = [row for row in read_table(table) if row["status"] == "assumed"]
    assert [row["attribute"] for row in assumed if not row["note"]] == []


def test_every_citation_is_used():
    used = {
        key
        for t in TABLES
        if t.startswith(("gpus/", "prices/"))
        for row in read_table(t)
        for key in row["source"].split(";")
    }
    assert CITED.keys() - used == set()


REASON = 3
"""Words at least of a source that says why a value is assumed; a bare file of a repository does not."""


@pytest.mark.parametrize("table", [t for t in TABLES if not t.startswith("gpus/")])
def test_an_assumed_number_has_its_reason(table):
    assumed = [row for row in read_table(table) if row.get("status") == "assumed"]
    assert [row for row in assumed if not row.get("note") and len(row["source"].split()) < REASON] == []
