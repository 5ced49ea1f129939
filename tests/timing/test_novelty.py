"""What is new about a GPU to a fit, by hand, and what that does to an interval."""

import math
from dataclasses import replace

import pytest

from dse.base.error_interval import ErrorInterval
from dse.hardware.presets import changed, gpu_index, preset_sheet
from dse.timing.calibration import SHARED, load_timing_calibration
from dse.timing.novelty import KINDS, NOTHING_NEW, Novelty, generation, memory_type, novelty, shares, widened

H100, A100, L40S, T4 = (preset_sheet(name) for name in ("h100_sxm", "a100_sxm_80gb", "l40s", "t4"))


@pytest.mark.parametrize(
    ("name", "memory", "architecture"),
    [
        ("a100_sxm_80gb", "HBM", "Ampere"),
        ("rtx_a6000", "GDDR", "Ampere"),
        ("t4", "GDDR", "Turing"),
        ("b200", "HBM", "Blackwell"),
        ("rtx_pro_6000", "GDDR", "Blackwell"),
    ],
)
def test_memory_types_and_generations_of_presets(name, memory, architecture):
    assert (memory_type(preset_sheet(name)), generation(preset_sheet(name))) == (memory, architecture)
    assert gpu_index()[name]["architecture"] == architecture


def test_a_capability_between_two_is_of_the_generation_below():
    assert generation(changed(H100, {"compute_capability": 9.5}, "here")) == "Hopper"


def test_new_is_what_no_gpu_of_a_fit_has():
    assert novelty(L40S, [A100, H100]) == Novelty(True, "GDDR", "Ada")
    assert novelty(L40S, [A100, T4]) == Novelty(True, "", "Ada")
    assert novelty(preset_sheet("h200"), [H100]) == Novelty(True)
    assert novelty(preset_sheet("a40"), [A100]) == Novelty(True, "GDDR", "")


def test_every_share_is_positive_and_within_what_left_out_classes_say():
    assert set(shares()) == set(KINDS)
    assert all(share >= 0 for share in shares().values())


def test_the_more_is_new_the_wider():
    gpu, generation_too, all_of_it = (
        new.widening for new in (Novelty(True), Novelty(True, "", "Ada"), Novelty(True, "GDDR", "Ada"))
    )
    assert gpu <= generation_too <= all_of_it
    assert all_of_it > gpu
    assert gpu == pytest.approx(math.sqrt(shares()["gpu"]))
    assert all_of_it == pytest.approx(math.sqrt(sum(shares().values())))
    assert NOTHING_NEW.widening == 1.0


def test_an_interval_widens_about_its_middle_and_says_why():
    interval = ErrorInterval(0.9, 1.3, "rows left out")
    new = Novelty(True, "GDDR", "Ada")
    wide = widened(interval, new)
    assert wide.low * wide.high == pytest.approx(0.9 * 1.3)
    assert math.log(wide.high / wide.low) == pytest.approx(new.widening * math.log(1.3 / 0.9))
    assert wide.source.startswith("rows left out, ")
    assert "memory type GDDR and generation Ada never fitted" in wide.source
    assert widened(interval, NOTHING_NEW) == interval


def test_a_calibration_knows_what_is_new_to_each_of_its_fits():
    shared = load_timing_calibration(SHARED)
    assert shared.new_of(H100, "matrix") == NOTHING_NEW
    assert shared.new_of(L40S, "matrix") == Novelty(True, "", "Ada")
    assert shared.new_of(L40S, "fa3_prefill") == Novelty(True, "GDDR", "Ada")  # fitted to an H100 and an H200
    assert shared.new_of(preset_sheet("h200"), "fa2_prefill") == Novelty(True, "", "Hopper")  # to an A100
    own = replace(changed(H100, {"sm_count": 100}, "here"), name="mine")
    assert shared.new_of(own, "matrix") == Novelty(True)
