"""Measured tables for predictors: what is read, averaged, counted, and refused with which sentence."""

import numpy as np
import pandas as pd
import pytest

from dse.base.errors import InputError
from dse.hardware.presets import find_preset
from dse.prediction.quantities import POWER
from dse.prediction.table import read_measured, robust_mean, target_preset
from tests.prediction.tables import gemm_table


def test_rows_with_presets_families_and_shapes(tmp_path):
    table = read_measured(gemm_table(tmp_path / "t.csv"))
    assert len(table.frame) == 192
    assert set(table.frame["preset"]) == {"a100_sxm_80gb", "v100_sxm2_16gb", "h100_sxm"}
    assert table.frame["family"].nunique() == 16
    assert len(table.of("A100-SXM4-80GB")) == 64
    assert table.skipped == {}


def test_versions_from_the_notes(tmp_path):
    notes = ["impl=vllm-0.14.0/x; paged", "loop; vllm-0.22.0", "layer=qkv"] * 64
    frame = read_measured(gemm_table(tmp_path / "t.csv", notes=notes)).frame
    assert set(frame["version"]) == {"vllm-0.14.0/x", "vllm-0.22.0", ""}


@pytest.mark.parametrize(
    ("times", "mean"),
    [
        ([5.0], 5.0),
        ([9.0, 5.0], 7.0),
        ([90.0, 5.0, 5.2, 4.8], 5.0),
        ([5.0, 5.0, 5.1, 4.9, 5.0, 50.0], 5.0),
        ([9, 5, 5, 5], 5),
        ([5, 1, 1, 1, 1, 100], 1),  # none but the median's own value lies within no deviation
        ([3, 100, 3], 3),
    ],
)
def test_cold_runs_and_outliers_are_dropped(times, mean):
    assert robust_mean(np.array(times)) == pytest.approx(mean)


def test_repeats_become_one_row(tmp_path):
    frame = pd.read_csv(gemm_table(tmp_path / "t.csv"))
    pd.concat([frame, frame, frame]).to_csv(tmp_path / "t.csv", index=False)
    assert len(read_measured(tmp_path / "t.csv").frame) == 192


@pytest.mark.parametrize(
    "reason",
    [
        {"source": ["dse_measure_cold", "dse_measure_warm"] * 96},
        {"batch": [1, 8] * 96},
        {"notes": ["sheet=1;A=N;B=N", "sheet=1;A=T;B=N"] * 96},
        {"notes": ["cublas kernel=volta_sgemm_128x64", "cublas kernel=volta_sgemm_64x64"] * 96},
    ],
)
def test_rows_of_different_kernels_are_no_repeats(tmp_path, reason):
    frame = pd.read_csv(gemm_table(tmp_path / "t.csv"))
    twice = frame.loc[frame.index.repeat(2)].assign(latency_us=lambda f: f["latency_us"] * ([1.0, 3.0] * len(frame)))
    twice.assign(**{name: values * 2 for name, values in reason.items()}).to_csv(tmp_path / "u.csv", index=False)
    assert sorted(read_measured(tmp_path / "u.csv").frame["latency_us"]) == sorted(twice["latency_us"])


def test_rows_come_in_one_order_whatever_the_table_s(tmp_path):
    frame = pd.read_csv(gemm_table(tmp_path / "t.csv", source=["a", None, "b"] * 64))
    frame.sample(frac=1, random_state=1).to_csv(tmp_path / "u.csv", index=False)
    reason, shuffled = (read_measured(tmp_path / name).frame for name in ("t.csv", "u.csv"))
    pd.testing.assert_frame_equal(reason, shuffled)


def test_masked_and_unmasked_attention_are_no_repeats(tmp_path):
    shape = {"batch": 1, "heads": 32, "kv_heads": 8, "head_dim": 128, "seq_q": 1024, "seq_kv": 1024}
    row = {"device": "A100-SXM4-80GB", "op": "attn_prefill", "dtype": "bf16", **shape}
    rows = [row | {"causal": causal, "latency_us": time} for causal, time in ((1, 300.0), (0, 600.0), (1, 320.0))]
    pd.DataFrame(rows).to_csv(tmp_path / "t.csv", index=False)
    assert set(read_measured(tmp_path / "t.csv").frame["latency_us"]) == {310.0, 600.0}


def test_what_is_not_covered_is_counted(tmp_path):
    ops, devices = ["gemm", "llm_e2e", "gemm"] * 64, ["A100-SXM4-80GB", "A100-SXM4-80GB", "TPU"] * 64
    table = read_measured(gemm_table(tmp_path / "t.csv", op=ops, device=devices))
    assert table.skipped == {"no kernel is made for operator 'llm_e2e'": 64, "no GPU is called 'TPU'": 64}


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"m": 64.5}, "gemm whose m, n, k are not whole"),
        ({"m": np.inf}, "gemm whose m, n, k are not whole"),
        ({"n": 0}, "gemm whose m, n, k are not positive"),
        ({"batch": 0.5}, "gemm whose batch is no positive whole number"),
        ({"device": "MI300X"}, "device 'MI300X': listed so that measured rows resolve to a name; not supported"),
    ],
)
def test_one_row_that_cannot_be_used_leaves_the_others(tmp_path, changes, why):
    frame = pd.read_csv(gemm_table(tmp_path / "t.csv")).assign(batch=1.0).astype({"m": float})
    pd.concat([frame, frame[:1].assign(**changes)]).to_csv(tmp_path / "t.csv", index=False)
    table = read_measured(tmp_path / "t.csv")
    assert len(table.frame) == 192
    ((reason, count),) = table.skipped.items()
    assert reason.startswith(why)
    assert count == 1


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"latency_us": -1.0}, "row 2: latency_us is -1; give a positive time"),
        ({"latency_us": 0.0}, "row 2: latency_us is 0; give a positive time"),
        ({"latency_us": "fast"}, "row 2: latency_us is 'fast'; give a number"),
        ({"m": "many"}, "row 2: m is 'many'; give a number"),
        ({"m": -4}, "no row can be used: gemm whose m, n, k are not positive (192)"),
        ({"op": "bmm"}, "no row can be used: bmm without its batch (192)"),
        ({"n": None}, "no row can be used: gemm without its m, n, k (192)"),
        ({"op": "llm_e2e"}, "no row can be used: no kernel is made for operator 'llm_e2e' (192)"),
        ({"device": "TPU"}, "no GPU is called 'TPU'"),
    ],
)
def test_wrong_values_are_refused(tmp_path, changes, sentence):
    with pytest.raises(InputError) as refused:
        read_measured(gemm_table(tmp_path / "t.csv", **changes))
    assert sentence in str(refused.value)


def test_wrong_columns_are_refused(tmp_path):
    frame = pd.read_csv(gemm_table(tmp_path / "t.csv"))
    for changed, sentence in (
        (frame.drop(columns="device"), "no column device; the table needs device, op, dtype, latency_us"),
        (frame.rename(columns={"latency_us": "latency_ms"}), "column latency_ms is not read; give latency_us"),
        (frame.rename(columns={"m": "M"}), "column 'M' is not known; did you mean 'm'"),
        (frame[:0], "has columns but no rows"),
    ):
        changed.to_csv(tmp_path / "u.csv", index=False)
        with pytest.raises(InputError) as refused:
            read_measured(tmp_path / "u.csv")
        assert sentence in str(refused.value)
    (tmp_path / "e.csv").write_text("")
    with pytest.raises(InputError, match="is no CSV table"):
        read_measured(tmp_path / "e.csv")
    with pytest.raises(InputError, match="no such file"):
        read_measured(tmp_path / "none.csv")


def test_targets_that_are_not_there(tmp_path):
    table = read_measured(gemm_table(tmp_path / "t.csv"))
    assert target_preset(table, "H100", "--target") == "h100_sxm"
    with pytest.raises(
        InputError, match=r"--target: .* no times of 'l40s' that can be used; it holds those of a100_sxm_80gb"
    ):
        target_preset(table, "l40s", "--target")
    with pytest.raises(InputError, match="no GPU is called 'h1000'"):
        target_preset(table, "h1000", "--target")


def test_a_gpu_without_watts_is_told_beside_those_that_have_them(tmp_path):
    frame = pd.read_csv(gemm_table(tmp_path / "t.csv", latency_us=900.0))
    frame["power_w"] = frame["device"].map(lambda device: np.nan if "H100" in device else 300.0)
    frame.to_csv(tmp_path / "t.csv", index=False)
    others = ", ".join(sorted(set(frame["device"].map(find_preset)) - {"h100_sxm"}))
    with pytest.raises(InputError) as refused:
        target_preset(read_measured(tmp_path / "t.csv", POWER), "H100", "--target")
    said = f"holds no watts of 'H100' that can be used; it holds those of {others} (rows that were skipped: no power_w"
    assert said in str(refused.value)


def test_blanks_around_names_make_no_other_device_or_operator(tmp_path):
    frame = pd.read_csv(gemm_table(tmp_path / "t.csv"))
    spaced = frame.assign(device=frame["device"] + [" ", ""] * 96, op="gemm ", dtype=["fp16 ", "fp16", "fp16"] * 64)
    spaced.to_csv(tmp_path / "u.csv", index=False)
    plain, reason = (read_measured(tmp_path / name) for name in ("t.csv", "u.csv"))
    assert not reason.skipped
    pd.testing.assert_frame_equal(reason.frame, plain.frame)
