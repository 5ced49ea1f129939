"""Variants in a sweep: every value is that of a sweep of its own, by no more programs than one variant takes."""

import logging
from typing import Any

import jax
import numpy as np
import pandas as pd
import pytest

import dse
from dse.space.space import space_from_mapping

AXES = {"sm_count": [96, 132], "dram_bandwidth_gbs": [1675, 3350]}
LINKS = {"tensor_fma_fp16": "tensor_fma_bf16", "l2_mib": "base.l2_mib * sm_count / base.sm_count"}
CONSTRAINTS = ["decode.tbt_ms <= 1.05 * base.decode.tbt_ms", "die_mm2 <= 814"]


def content(small: dict[str, Any], bases: Any, **axes: Any) -> dict[str, Any]:
    objectives = [{"value": "decode.usd_per_mtoken", "goal": "min"}, *small["objectives"][1:]]
    parts = {"base": bases, "axes": {**axes, **AXES}, "links": LINKS, "constraints": CONSTRAINTS}
    return small | parts | {"objectives": objectives}


def swept(small: dict[str, Any], bases: Any, **axes: Any) -> dse.SweepResult:
    return dse.sweep(space_from_mapping(content(small, bases, **axes), "here", "small"))


def test_it_equals_separate_sweeps_value_by_value(small: dict[str, Any]):
    bases, batches = ["h100_sxm", "b200"], [8, 64]
    whole = swept(small, bases, **{"decode.batch": batches})
    parts = []
    for base in bases:
        for batch in batches:
            small["workloads"]["decode"] = f"gpt2_xl:phase=decode,batch={batch},context=512"
            parts.append(swept(small, base).points())
    alone, points = pd.concat(parts, ignore_index=True), whole.points()
    assert points["base"].tolist() == np.repeat(bases, 8).tolist()
    assert points["decode.batch"].tolist() == np.tile(np.repeat(batches, 4), 2).tolist()
    assert points["feasible"].tolist() == alone["feasible"].tolist() and alone["feasible"].nunique() == 2
    assert points["reason"].tolist() == alone["reason"].tolist()
    for name in alone.select_dtypes("number"):
        np.testing.assert_allclose(points[name], alone[name], rtol=2e-6, atol=1e-9, err_msg=name)
    front = dse.base.pareto_filter.pareto_mask(alone.loc[alone["feasible"], [o.name for o in whole.space.objectives]])
    assert whole.front.index.size == front.sum()


def test_programs_do_not_grow_with_values(small: dict[str, Any], caplog: pytest.LogCaptureFixture):
    def compiled(**axes: Any) -> int:
        jax.clear_caches()
        caplog.clear()
        with jax.log_compiles(), caplog.at_level(logging.WARNING):
            swept(small, axes.pop("base"), **axes)
        return sum("Finished XLA compilation" in record.getMessage() for record in caplog.records)

    few = compiled(base=["h100_sxm"], **{"decode.batch": [1]})
    many = compiled(base=["h100_sxm", "h200", "b200"], **{"decode.batch": [1, 2, 8, 32], "prefill.prompt": [64, 512]})
    assert 0 < many <= few


def test_a_base_that_cannot_is_infeasible_with_its_reason(small: dict[str, Any]):
    small["workloads"] = {
        "prefill": "gpt2_xl:phase=prefill,batch=1,prompt=512",
        "decode": "llama3_70b:phase=decode,batch=1,context=512,dtype=fp8",
    }
    given = content(small, ["h200", "a100_sxm_80gb", "l40s"]) | {"links": {}, "constraints": []}
    result = dse.sweep(space_from_mapping(given, "here", "small"))
    reasons = result.points().groupby("base", observed=True)["reason"].agg(set)
    assert reasons["a100_sxm_80gb"] == {"base: decode: qkv_projection computes in fp8, which A100 SXM4 80GB lacks"}
    assert any(reason.startswith("memory: decode needs") and "has 48 GB" in reason for reason in reasons["l40s"])
    assert "" in reasons["h200"] and sum(result.infeasible.values()) == result.n - result.n_feasible
    effects = result.axis_effects.set_index(["axis", "value"])["at_baseline"]
    assert effects[("base", "a100_sxm_80gb")].isna().all()


def test_a_base_whose_own_result_is_asked_for_and_missing_is_infeasible(small: dict[str, Any]):
    small["workloads"]["decode"] = "gpt2_xl:phase=decode,dtype=fp8"
    both = content(small, ["h100_sxm", "a100_sxm_80gb"]) | {"links": {}}
    both["axes"] = {"tensor_fma_fp8": [1024, 2048]}
    points = dse.sweep(space_from_mapping(both, "here", "small")).points()
    lacking = points.loc[points["base"] == "a100_sxm_80gb", "reason"].unique().tolist()
    assert len(lacking) == 1 and "has no value" in lacking[0]


def test_only_settings_need_no_attribute(small: dict[str, Any]):
    small |= {"axes": {"decode.batch": [1, 8]}, "base": ["h100_sxm", "h200"], "links": {}}
    result = dse.sweep(space_from_mapping(small, "here", "small"))
    assert (result.n, result.n_feasible) == (4, 4) and result.baseline["decode.batch"].tolist() == [8]
