"""Every measured table through ``dse validate``: each row is predicted, or counted with its reason."""

import json
import re

import pandas as pd
import pytest

from dse.base.errors import InputError
from dse.validation.power import validate_power
from dse.validation.time import TimeValidation, validate_time
from experiments import data

NOT_YET = (
    "aiconfigurator__comm",
    "energaizer__energy",
    "pipeweave__comm",
)
"""Tables of which no row is modelled: refused, each row counted with its reason."""

UNTIMED = "energaizer__idle_voltage"
TABLES = [name for name in data.names() if name not in (*NOT_YET, UNTIMED)]
POWERED = (
    "aiconfigurator__power",
    "aiconfigurator__power_new",
    "aiconfigurator__power_released",
    "llm_inference_bench__e2e",
    "splitwise__llm_e2e",
)
SAMPLE = 1
"""Rows of a device, operator and data type that are drawn, and as many with power: all rows are the slow test's."""


def drawn(name, tmp_path):
    """Some rows of every kind of a table, as a table."""
    kinds = data.frame(name).groupby(["device", "op", "dtype"], dropna=False, sort=True)
    some = pd.concat([_some(part) for _, part in kinds])
    path = tmp_path / f"{name}.csv"
    some.to_csv(path, index=False)
    return path, len(some)


def _some(part):
    """Some rows of a kind, and some of those with power."""
    powered = part[part["power_w"] > 0]
    chosen = [one.sample(min(SAMPLE, len(one)), random_state=0) for one in (part, powered)]
    return pd.concat(chosen).drop_duplicates()


def assert_accounted(found: TimeValidation, rows: int) -> None:
    """Each row predicted in one group and one regime of it, or skipped for one reason; the document is plain JSON."""
    document = found.document
    json.dumps(document, allow_nan=False)
    predicted = sum(g["n"] for g in document["groups"] if g["regime"] == "all")
    assert predicted == len(found.rows) == sum(g["n"] for g in document["groups"] if g["regime"] != "all")
    assert predicted + sum(document["rows_skipped"].values()) == rows
    assert all(g["roofline3_mape"] is not None for g in document["groups"]) == (predicted > 3)
    assert all(reason and "nan" not in reason.split() for reason in document["rows_skipped"])


@pytest.mark.parametrize("name", TABLES)
def test_each_row_is_predicted_or_skipped(name, tmp_path):
    path, rows = drawn(name, tmp_path)
    assert_accounted(validate_time(path), rows)


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES)
def test_each_row_of_a_whole_table(name):
    assert_accounted(validate_time(data.path(name)), len(data.frame(name)))


@pytest.mark.parametrize("name", NOT_YET)
def test_rows_that_are_not_modelled_are_counted_by_reason(name):
    with pytest.raises(InputError, match="no row can be predicted") as refused:
        validate_time(data.path(name))
    counts = re.findall(r"\((\d+)\)(?:;|$)", str(refused.value))
    assert sum(map(int, counts)) == len(data.frame(name))


def test_idle_boards_have_no_times():
    with pytest.raises(InputError, match=r"no row of 162 has latency_us"):
        validate_time(data.path(UNTIMED))


@pytest.mark.parametrize("name", POWERED)
def test_each_row_is_compared_in_power_or_skipped(name, tmp_path):
    path, rows = drawn(name, tmp_path)
    document = validate_power(path)
    json.dumps(document, allow_nan=False)
    compared = document["all"]["n"] + document["short"]["all"]["n"]
    assert compared > 0
    assert compared == sum(row["n"] for part in (document, document["short"]) for row in part["device"])
    assert compared + sum(row["n"] for row in document["skipped"]) == rows


def test_llmcompass_layer(tmp_path):
    """GPT-3's layer on four A100s, every operator but the sum of all: nothing was fitted to these rows."""
    found = validate_time(data.path("llmcompass__layer_a100"))
    assert list(found.document["rows_skipped"].values()) == [1]
    assert "SUM is the sum" in next(iter(found.document["rows_skipped"]))
    assert (found.rows["predicted_us"] / found.rows["latency_us"] - 1).abs().mean() < 0.15
    long = found.rows[found.rows["latency_us"] > 500]
    assert (long["predicted_us"] / long["latency_us"] - 1).abs().mean() < 0.12
