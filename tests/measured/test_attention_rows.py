"""Measured attention: rows name their library, calibrations hold on families and one-token prompts no fit has seen."""

import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from dse.base.errors import InputError
from dse.base.skipped_rows import Skipped
from dse.calibration.timing.implementations import load_implementations
from dse.calibration.timing.rows_fit import left_out
from dse.cli import run_command
from dse.hardware.presets import load_sheet
from dse.measured.row_operator import operator
from dse.measured.row_shape import attention_of
from dse.measured.timed_rows import best
from dse.timing.calibration import load_timing_calibration, shipped_implementations
from dse.validation.time import validate_time
from dse.workload.implementation import IMPLEMENTATIONS, KINDS
from dse.workload.operators.attention_library import PLAIN, attention_libraries, library_of
from experiments import data

DEVICES = {"A100-SXM4-80GB": "a100_sxm_80gb", "H100-SXM5-80GB": "h100_sxm", "RTXPRO6000-BW": "rtx_pro_6000"}


def test_rows_name_the_library_that_ran():
    assert library_of("impl=vllm-0.24.0/vllm_flash_attn_fa3; paged KV", "aiconfigurator", True).name == "fa3"
    assert library_of("impl=vllm-0.14.0/vllm_flash_attn; paged KV", "aiconfigurator", False).name == "fa2"
    assert library_of("impl=sglang-0.5.10/flash_attention", "aiconfigurator", False).name == "sglang"
    assert library_of("sustained; vllm-0.22.0", "aiconfigurator", True).name == "fa3"
    assert library_of("", "vidur", False).name == "fa2_early"
    assert library_of("", "", False).name == "fa2"
    assert library_of("impl=vllm-0.24.0/vllm_flash_attn_fa4", "aiconfigurator", True).name == "fa4"
    early = "impl=vllm-0.19.0/vllm_flash_attn"
    assert library_of(early, "aiconfigurator", True, (PLAIN, "decode"), "H100-SXM5-80GB").name == "fa3_0_19"
    with pytest.raises(InputError, match="each request's keys to one CTA"):
        library_of(early, "aiconfigurator", True, (PLAIN, "decode"), "H200-SXM-141GB")


def test_every_kernel_of_a_library_is_an_implementation_with_a_shipped_calibration():
    for library in attention_libraries().values():
        for phase in {phase for phase, _ in library.tiles}:
            assert f"{library.name}_{phase}" in IMPLEMENTATIONS
    assert set(shipped_implementations()) >= {name for name in KINDS if KINDS[name].startswith("attention")}


def rows_of(table: str, device: str, op: str, words: str = "") -> pd.DataFrame:
    """A sample of the rows of a device whose notes hold the words."""
    frame = data.frame(table)
    frame = frame[(frame["device"] == device) & (frame["op"] == op) & frame["notes"].fillna("").str.contains(words)]
    return frame.sample(min(600, len(frame)), random_state=1)


@pytest.mark.parametrize(
    ("device", "words", "op", "bound"),
    [
        ("A100-SXM4-80GB", "vllm_flash_attn;", "attn_prefill", 5.0),
        ("A100-SXM4-80GB", "vllm_flash_attn;", "attn_decode", 8.0),
        ("A100-SXM4-80GB", "sglang", "attn_decode", 8.0),
        ("H100-SXM5-80GB", "fa3", "attn_prefill", 7.0),
        ("H100-SXM5-80GB", "trtllm", "attn_prefill", 10.0),
        ("H100-SXM5-80GB", "trtllm", "attn_decode", 13.5),
    ],
)
def test_shipped_calibrations_on_families_that_no_fit_has_seen(device, words, op, bound):
    frame = rows_of("aiconfigurator__attention", device, op, words)
    loaded = load_implementations(frame, {device: load_sheet(DEVICES[device])}, Skipped())
    model, errors, inside = load_timing_calibration(DEVICES[device]), [], []
    for name, rows in loaded.items():
        out = left_out(rows.table["family"])
        predicted, _ = best(model.model, rows)
        measured = rows.table["latency_us"].to_numpy()
        errors.append(100 * np.abs(predicted / measured - 1)[out])
        known = model.quantiles(name, op, "bf16", "all", DEVICES[device], "aiconfigurator")
        assert known is not None
        error = np.log(predicted / measured)[out]
        inside.append((error >= known.q10) & (error <= known.q90))
    errors, inside = np.concatenate(errors), np.concatenate(inside)
    assert len(errors) > 80
    assert errors.mean() < bound
    assert 0.7 < inside.mean() < 0.9


def test_validate_counts_rows_that_are_no_rate_of_the_gpu(tmp_path, capsys):
    frame = rows_of("aiconfigurator__attention_new", "B200-SXM", "attn_decode", "sglang-0.5.14/trtllm_mha")
    frame = pd.concat([frame[frame["window"] == 8192].head(3), frame[frame["window"] == 0].head(20)])
    path = tmp_path / "rows.csv"
    frame.to_csv(path, index=False)
    assert run_command(["validate", str(path), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    skipped = {reason: n for reason, n in document["rows_skipped"].items() if "8192 keys" in reason}
    assert sum(skipped.values()) == 3
    assert sum(group["n"] for group in document["groups"] if group["regime"] == "all") == 20


@pytest.mark.parametrize("device", ["B200-SXM", "H200-SXM-141GB", "L40S"])
def test_attention_of_encoders_is_nearer_than_a_roofline_of_three_numbers(device, tmp_path):
    rows = rows_of("aiconfigurator__encoder_attention", device, "attn_encoder")
    rows.to_csv(tmp_path / "rows.csv", index=False)
    [found] = [g for g in validate_time(tmp_path / "rows.csv").document["groups"] if g["regime"] == "all"]
    assert found["n"] == len(rows)
    assert found["mape"] < found["roofline3_mape"]  # whose three numbers are fitted to these very rows


def test_an_encoder_masks_nothing_where_its_row_does_not_say():
    shape = {"batch": 1, "heads": 16, "kv_heads": 16, "head_dim": 80, "seq_q": 1024, "seq_kv": 1024}
    row = SimpleNamespace(op="attn_encoder", dtype="bf16", notes="", **shape)
    assert attention_of(row).fma == 2 * 16 * 1024 * 1024 * 80
    assert attention_of(SimpleNamespace(**vars(row) | {"causal": 1})).fma == 2 * 16 * 1024 * 1025 / 2 * 80


def test_an_encoder_writes_no_cache_whatever_framework_ran_it():
    shape = {"batch": 1, "heads": 16, "kv_heads": 16, "head_dim": 80, "seq_q": 1024, "seq_kv": 1024}
    row = {"source": "aiconfigurator", "dtype": "bf16", "notes": "impl=vllm-0.24.0/vllm_vit_flash_attn_fa3", **shape}
    made = {op: operator(SimpleNamespace(op=op, **row), 9.0) for op in ("attn_encoder", "attn_prefill")}
    assert [made[op].candidates[0].kernel.copies for op in made] == [0, 1]
