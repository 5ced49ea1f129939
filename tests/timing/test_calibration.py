"""Which shipped calibration times a GPU, and what is said where that is not its own."""

from dataclasses import asdict, replace

import equinox as eqx
import numpy as np
import pytest

from dse import run
from dse.base.errors import InputError
from dse.calibration.timing.fit import prior_values
from dse.hardware.presets import changed, gpu_from_mapping, preset_sheet
from dse.timing.amali import Amali
from dse.timing.calibration import (
    PRIORS,
    SHARED,
    UNSEEN,
    calibration_of,
    load_timing_calibration,
    passed_over,
    shipped_calibrations,
)
from dse.timing.models import timing_model
from dse.workload.implementation import KINDS, implementation_index

H100, A100, L4 = (preset_sheet(name) for name in ("h100_sxm", "a100_sxm_80gb", "l4"))


def test_a_measured_gpu_has_its_own_also_written_with_fewer_digits():
    assert calibration_of(H100) == "h100_sxm" and passed_over(H100) == ""
    rounded = changed(H100, {"sm_enabled_fraction": 0.91667}, "test")
    assert H100.numbers()["sm_enabled_fraction"] != 0.91667
    assert calibration_of(rounded) == "h100_sxm"


def test_a_file_with_the_numbers_of_a_measured_gpu_is_one_under_any_name():
    for content in ({}, {"peaks": {"bf16": 989}}, {"sm_count": 132}):
        plain = gpu_from_mapping({"name": "X", "base": "h100_sxm"} | content, "plain.toml", "plain")
        assert calibration_of(plain) == "h100_sxm" and passed_over(plain) == ""
        assert (plain.name, plain.title) == ("plain", "X")
    for name in ("a100_sxm_80gb", SHARED):
        assert calibration_of(gpu_from_mapping({"base": "h100_sxm"}, f"{name}.toml", name)) == "h100_sxm"
        assert calibration_of(gpu_from_mapping({"base": "h100_sxm", "sm_count": 96}, f"{name}.toml", name)) == SHARED


def test_a_changed_gpu_is_one_that_nobody_measured_and_says_so():
    bigger = gpu_from_mapping({"base": "h100_sxm", "l2_mib": 60}, "here", "bigger")
    for sheet in (bigger, changed(H100, {"l2_mib": 60}, "test")):
        assert calibration_of(sheet) == SHARED
        assert "'dse run h100_sxm ... --calibration shared', not against h100_sxm's own" in passed_over(sheet)
    assert calibration_of(preset_sheet("v100_sxm2_32gb")) == "v100_sxm2_16gb"  # the same but for what fits in
    assert calibration_of(L4) == SHARED and passed_over(L4) == ""


def test_two_gpus_are_timed_by_one_calibration_and_what_each_has_alone_is_said():
    assert calibration_of(H100, A100) == SHARED
    assert passed_over(H100, A100).endswith(f"{H100.title} by h100_sxm, {A100.title} by a100_sxm_80gb")
    assert passed_over(H100, H100) == passed_over(L4, L4) == ""
    bigger = gpu_from_mapping({"base": "h100_sxm", "l2_mib": 60}, "here", "bigger")
    assert passed_over(H100, bigger).endswith(f"alone 'dse run' times {H100.title} by h100_sxm")
    assert passed_over(H100, L4).endswith(f"alone 'dse run' times {H100.title} by h100_sxm")


def test_a_calibration_of_one_gpu_says_nothing_of_the_errors_on_another():
    """Errors on GPUs that no fit has seen are SHARED's; an H100's fit tried on an A100 has none."""
    asked = ("matrix", "gemm", "bf16", "all", "a100_sxm_80gb")
    own, shared = (load_timing_calibration(name) for name in ("h100_sxm", SHARED))
    assert own.said_of(A100).quantiles(*asked) is None
    assert own.said_of(H100) is own and own.quantiles(*asked) is not None
    assert shared.said_of(A100).quantiles(*asked) == shared.quantiles(*asked) is not None
    prefill = (
        "fa2_prefill",
        "attn_prefill",
        "bf16",
        "all",
        "a100_sxm_80gb",
        "aiconfigurator",
    )  # a library's, whoever fits GPUs
    assert own.said_of(A100).quantiles(*prefill) == own.quantiles(*prefill) is not None


@pytest.mark.parametrize("name", sorted(shipped_calibrations()))
def test_a_model_by_the_name_of_its_calibration_is_the_whole_of_it(name):
    """As ``--calibration`` and a space's ``timing`` have it: nothing that a file holds is lost on the way."""
    loaded = load_timing_calibration(name).model
    asked = timing_model({"model": "amali", "calibration": name}, "--timing")
    assert eqx.tree_equal(asked, loaded)
    assert isinstance(asked, Amali) and (asked.discrepancy is None) == (name == SHARED)


def test_a_run_by_the_name_of_a_calibration_takes_as_long_as_by_default():
    default, named = (
        run("h100_sxm", "llama3_8b:phase=decode,batch=32,context=2048", model).kernels["time_ms"]
        for model in (None, timing_model({"model": "amali", "calibration": "h100_sxm"}, "--timing"))
    )
    bare = replace(load_timing_calibration("h100_sxm").model, discrepancy=None)
    without = run("h100_sxm", "llama3_8b:phase=decode,batch=32,context=2048", bare).kernels["time_ms"]
    assert default.tolist() == named.tolist()
    assert (np.abs(np.log(without / default)) > 0.01).any()


def test_the_interval_is_the_gpus_own_only_where_it_was_measured_in_this_way():
    known = load_timing_calibration("h100_sxm")
    asked = ("matrix", "gemm", "bf16", "under_10us", "h100_sxm")
    places = {way: known.quantiles(*asked, way) for way in ("aiconfigurator", "llmservingsim", "dse_measure", "")}
    assert {way: (r.gpu, r.way, r.fitted) for way, r in places.items() if r} == {
        "aiconfigurator": ("h100_sxm", "aiconfigurator", True),
        "llmservingsim": ("h100_sxm", "llmservingsim", False),
        "dse_measure": (UNSEEN, "", True),
        "": (UNSEEN, "", True),
    }
    shared = load_timing_calibration("shared")
    for gpu in ("b200", "l40s", "anything"):
        found = shared.quantiles(*asked[:4], gpu, "aiconfigurator")
        assert found is not None and found.gpu == UNSEEN
    attention = shared.quantiles("fa3_prefill", "attn_prefill", "bf16", "all", "b200", "aiconfigurator")
    own = shared.quantiles("fa3_prefill", "attn_prefill", "bf16", "all", "h200", "aiconfigurator")
    assert attention is not None and own is not None and attention.gpu == UNSEEN and own.gpu == "h200"
    assert attention.q90 - attention.q10 > own.q90 - own.q10


def test_a_calibration_at_the_priors_is_what_every_fit_begins_with():
    """Each implementation has its kind's table (data/calibration/priors), and nothing that rows have told."""
    loaded = load_timing_calibration(PRIORS)
    for name, kind in KINDS.items():
        begun = prior_values(kind)
        model = loaded.model.of(implementation_index(name))
        assert model.launch.k == begun["launch_k"] and model.launch.gamma == begun["launch_gamma"]
        for parameter, value in asdict(model.sustained).items():
            assert value == pytest.approx(begun[parameter], abs=1e-8), (name, parameter)
    assert loaded.model.discrepancy is None and loaded.model.work is None and loaded.model.errors is None


def test_priors_are_named_like_a_calibration_and_say_that_nothing_was_fitted():
    model = timing_model({"model": "amali", "calibration": PRIORS}, "timing")
    assert model.calibration == PRIORS and model.error_interval is None
    assert load_timing_calibration(PRIORS).not_fitted_on(H100) == (
        "calibration priors holds what fits begin with and is fitted to nothing"
    )
    with pytest.raises(InputError, match="did you mean 'priors'"):
        load_timing_calibration("prior")
