"""GPUs side by side: each row is that of a run alone, ratios have intervals, dollars follow from the price."""

import math

import pytest

import dse
from dse.explanation.gpu_comparison import USD, compare_gpus
from dse.hardware.presets import gpu_from_mapping
from dse.timing.models import timing_model

WORKLOAD = "gpt2_xl:phase=decode,context=512,dtype=fp16"


@pytest.fixture(scope="module")
def three() -> dse.GpuComparison:
    return compare_gpus(["h100_sxm", "h200", "t4"], WORKLOAD, "batch", ["1", "128"], prices={"t4": 0.2})


def row_of(comparison: dse.GpuComparison, gpu: str, value: str):
    table = comparison.table
    return table[(table["gpu"] == gpu) & (table["value"] == value)].iloc[0]


def test_each_row_is_a_run_under_the_shared_model(three: dse.GpuComparison) -> None:
    alone = dse.run("h200", f"{WORKLOAD},batch=128", timing_model({"model": "amali", "calibration": "shared"}, "test"))
    row = row_of(three, "h200", "128")
    assert three.calibration == "shared"
    assert row["tokens_per_s"] == pytest.approx(alone.metrics["tokens_per_s"][0], rel=1e-6)
    assert row["power_w"] == pytest.approx(alone.metrics["power_w"][0], rel=1e-6)


def test_a_ratio_lies_within_its_interval(three: dse.GpuComparison) -> None:
    for value in ("1", "128"):
        row = row_of(three, "h200", value)
        first = row_of(three, "h100_sxm", value)
        assert row["ratio"] == pytest.approx(row["tokens_per_s"] / first["tokens_per_s"])
        assert row["ratio_low"] < row["ratio"] < row["ratio_high"] and 0 <= row["probability_better"] <= 1
        assert math.isnan(first["ratio"])


def test_dollars_follow_from_the_price_of_an_hour(three: dse.GpuComparison) -> None:
    row = row_of(three, "t4", "1")
    assert row[USD] == pytest.approx(0.2 / (3600 * row["tokens_per_s"]) * 1e6)
    assert three.prices["t4"].list == "given" and "Verda" in three.prices["h200"].list


def test_a_gpu_that_cannot_hold_the_network_has_its_reason(three: dse.GpuComparison) -> None:
    row = row_of(three, "t4", "128")
    assert "GB" in row["reason"] and math.isnan(row["tokens_per_s"])


@pytest.mark.parametrize(
    ("gpus", "workload", "options", "sentence"),
    [
        (["h100_sxm", "h100_sxm"], WORKLOAD, {}, "given twice"),
        (["h100_sxm", "h200"], WORKLOAD, {"axis": "colour", "values": ["1"]}, "colour is not a key of a workload"),
        (["h100_sxm", "h200"], WORKLOAD, {"prices": {"b200": 1.0}}, "none of the GPUs compared"),
        (["h100_sxm", "h200"], WORKLOAD, {"prices": {"h200": 0.0}}, "above 0"),
        (["t4", "v100_sxm2_16gb"], "llama3_70b:phase=decode,batch=1,context=512,dtype=fp16", {}, "no GPU can run"),
        (["h100_sxm", "h200"], "products.csv", {"axis": "batch", "values": ["1"]}, "takes no settings"),
    ],
)
def test_wrong_input_is_refused(gpus, workload, options, sentence) -> None:
    with pytest.raises(dse.InputError, match=sentence):
        compare_gpus(gpus, workload, **options)


def test_a_gpu_of_ones_own_has_its_own_price_and_an_unlisted_one_an_assumed_price():
    mine = gpu_from_mapping({"base": "h200", "price_usd_h": 1.25}, "mine.toml", "mine")
    both = compare_gpus([mine, "rtx_5090"], WORKLOAD)
    assert both.prices["mine"].usd == 1.25 and both.prices["rtx_5090"].assumed
    assert any("No list has a price of rtx_5090: it is assumed" in note for note in both.notes)
