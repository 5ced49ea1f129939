"""One workload on one GPU: the dollars of its tokens, and kernels that are not used."""

from io import StringIO

import pytest
from rich.console import Console

import dse
from dse.evaluate.run import NOT_USED
from dse.reports.run.terminal import print_run

DECODE = "gpt2_xl:phase=decode,batch=8,context=128,dtype=fp16"


@pytest.mark.parametrize("workload", [DECODE, "llama3_8b:phase=prefill,batch=2,prompt=64,tp=2"])
def test_dollars_are_the_price_of_the_hours_that_tokens_take(workload: str) -> None:
    run = dse.run("h100_sxm", workload, "roofline", price=2.5)
    seconds = 1e6 / run.metrics["tokens_per_s"].value
    dollars = 2.5 * run.workload.gpus * seconds / 3600
    assert run.metrics["usd_per_mtoken"].value == pytest.approx(dollars, rel=1e-12)
    assert run.metrics["usd_per_mtoken"].unit == "USD/Mtoken"
    assert run.summary()["price"] == {"usd_per_hour": 2.5, "list": "given", "assumed": False}


def test_the_table_of_kernels_is_its_rows_whose_shares_are_those_of_a_phase() -> None:
    run = dse.run("h100_sxm", DECODE, "roofline")
    assert run.kernels.to_dict("records") == run.rows == run.summary()["kernels"]
    assert [*run.kernels.columns[6:8]] == ["cycles", "share"]
    assert sum(row["share"] for row in run.rows_of("decode")) == pytest.approx(1.0, rel=1e-12)
    assert run.rows_of("prefill") == []


def test_the_list_of_a_price_is_told_and_one_of_none_is_assumed() -> None:
    listed, unlisted = (dse.run(gpu, DECODE, "roofline").price for gpu in ("h200", "rtx_5090"))
    assert listed and unlisted
    assert "2026" in listed.list and not listed.assumed
    assert unlisted.list.startswith("assumed") and unlisted.assumed


def test_the_interval_of_dollars_is_that_of_the_time() -> None:
    run = dse.run("h100_sxm", DECODE)
    time, dollars = (run.metric_error(name).error_interval for name in ("time_ms", "usd_per_mtoken"))
    assert time and dollars == time


def test_products_have_no_tokens_and_so_no_dollars(tmp_path) -> None:
    (tmp_path / "one.csv").write_text("m,n,k,dtype\n256,256,256,fp16\n")
    run = dse.run("h100_sxm", str(tmp_path / "one.csv"), "roofline")
    assert "usd_per_mtoken" not in run.metrics and run.summary()["price"] is None


def test_a_price_of_nothing_is_refused() -> None:
    with pytest.raises(dse.InputError, match="price of h100_sxm: 0 is not accepted"):
        dse.run("h100_sxm", DECODE, "roofline", price=0)


def test_kernels_of_a_form_that_is_not_used_take_no_time_and_are_not_shown() -> None:
    result = dse.run("h200", "deepseek_v2_lite:phase=prefill,batch=1,prompt=512")
    left_out = result.kernels[result.kernels["implementation"].str.endswith("no kernel")]
    assert set(left_out["kernel"]) == {"absorbed_values_dense", "absorbed_values_experts"}
    assert (left_out[["time_us", "time_ms", "share", "tflops", "dram_gbs", "power_w"]] == 0).all(axis=None)
    assert set(left_out["bound_by"]) == {NOT_USED}
    assert result.kernels["time_ms"].sum() == pytest.approx(sum(result.stack("prefill").values()))
    console = Console(width=200, record=True, file=StringIO())
    print_run(result, console)
    assert "no kernel" not in console.export_text()
