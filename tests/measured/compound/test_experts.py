"""Rows of a mixture's experts: the kernels by name, operations and bytes by hand, and times over ranks."""

from types import SimpleNamespace

import pandas as pd
import pytest

from dse.base.errors import InputError
from dse.hardware.presets import load_sheet
from dse.measured.compound.experts import expert_operators
from dse.validation.time import validate_time
from dse.workload.target import Target

ROW = {"op": "moe", "dtype": "bf16", "tokens": 256.0, "hidden": 2048.0, "inter": 1024.0, "experts": 64.0, "topk": 8.0,
       "moe_tp": 1.0, "moe_ep": 1.0, "distribution": "balanced", "notes": ""}  # fmt: skip


def operators(**changes):
    return {o.name: o for o in expert_operators(SimpleNamespace(**ROW | changes), Target((9.0, 9.0)))}


def test_one_layer_by_hand():
    found = operators()
    assert list(found) == ["expert_choice", "expert_sort", "expert_gate_up_projection", "expert_silu",
                           "expert_down_projection", "combine_experts"]  # fmt: skip
    up, down = (found[f"expert_{name}_projection"].candidates[0].kernel for name in ("gate_up", "down"))
    assert up.fma == 256 * 8 * 2048 * 2 * 1024
    assert down.fma == up.fma / 2
    assert up.cold_bytes == 64 * 2048 * 2 * 1024 * 2


def test_ranks_share_experts_out_or_split_them():
    whole = operators()["expert_down_projection"].candidates[0].kernel
    for changes in ({"moe_ep": 8.0}, {"moe_tp": 8.0}):
        part = operators(**changes)["expert_down_projection"].candidates[0].kernel
        assert (part.fma, part.cold_bytes) == (whole.fma / 8, whole.cold_bytes / 8)
    with pytest.raises(InputError, match="7 ranks share out 64 experts"):
        operators(moe_ep=7.0)


@pytest.mark.parametrize("dtype", ["fp8", "fp8_block", "int4_wo", "w4a16_mxfp4", "w8a8"])
def test_narrow_types_read_fewer_bytes(dtype):
    wide, narrow = (operators(dtype=d)["expert_down_projection"].candidates[0].kernel for d in ("bf16", dtype))
    assert narrow.cold_bytes < 0.55 * wide.cold_bytes


def test_validated_rows_add_up_and_say_that_nothing_was_fitted(tmp_path):
    table = pd.DataFrame([ROW | {"source": "aiconfigurator", "device": "H100-SXM5-80GB", "tokens": t, "latency_us": us}
                          for t, us in ((16.0, 120.0), (4096.0, 900.0), (64.0, 150.0), (1024.0, 400.0))])  # fmt: skip
    table.to_csv(tmp_path / "t.csv", index=False)
    answer = validate_time(tmp_path / "t.csv")
    assert len(answer.rows) == 4
    assert any("uncalibrated" in note and "moe" in note for note in answer.notes)
    for row in answer.document["worst"]:
        assert sum(row["stack_us"].values()) == pytest.approx(row["predicted_us"], rel=1e-3)
    assert load_sheet("h100_sxm").title in str(answer.predictors[0].gpu)
