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


@pytest.mark.parametrize(("dtype", "passes"), [("nvfp4", 1), ("fp8_block", 2), ("int4_wo", 2)])
def test_activations_are_in_the_products_of_trtllm_gen_but_in_blocks(dtype, passes):
    made = expert_operators(SimpleNamespace(**ROW | {"dtype": dtype}), Target((10.0, 10.0)))
    names = [o.name for o in made if o.kind != "gemm"]
    assert [n for n in names if n in ("expert_silu", "combine_experts")] == ["expert_silu", "combine_experts"][-passes:]


def validated(path, device, dtype="bf16"):
    """The answer of a validation of four rows without a release."""
    row = ROW | {"source": "aiconfigurator", "device": device, "dtype": dtype}
    table = pd.DataFrame([row | {"tokens": t, "latency_us": us}
                          for t, us in ((16.0, 120.0), (4096.0, 900.0), (64.0, 150.0), (1024.0, 400.0))])  # fmt: skip
    table.to_csv(path / "t.csv", index=False)
    return validate_time(path / "t.csv")


def test_validated_rows_say_whose_costs_they_have_and_carry_its_interval(tmp_path):
    dtype, costs = "nvfp4", "nvfp4_vllm_0_24_blackwell"
    answer = validated(tmp_path, "B200-SXM", dtype)
    assert set(answer.rows["implementation"]) == {f"experts_{costs}"}
    assert any(f"4 mixtures in {dtype} have the costs of experts_{costs}" in note for note in answer.notes)
    assert not any("uncalibrated" in note for note in answer.notes)
    assert (answer.rows["low_us"] < answer.rows["predicted_us"]).all()
    assert (answer.rows["high_us"] > answer.rows["predicted_us"]).all()


def test_validated_rows_add_up_and_say_that_nothing_was_fitted(tmp_path):
    answer = validated(tmp_path, "V100-SXM2-16GB", "fp16")
    assert len(answer.rows) == 4
    assert any("uncalibrated" in note and "moe" in note for note in answer.notes)
    for row in answer.document["worst"]:
        assert sum(row["stack_us"].values()) == pytest.approx(row["predicted_us"], rel=1e-3)
    assert load_sheet("v100_sxm2_16gb").title in str(answer.predictors[0].gpu)
