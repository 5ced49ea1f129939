"""Errors of groups of rows, and the intervals beside them."""

from dse.timing.calibration import UNSEEN, load_timing_calibration


def test_the_interval_is_the_gpus_own_only_where_it_was_measured_in_this_way():
    known = load_timing_calibration("h100_sxm")
    asked = ("matrix", "gemm", "bf16", "under_10us", "h100_sxm")
    places = {way: known.residual(*asked, way) for way in ("aiconfigurator", "llmservingsim", "dse_measure", "")}
    assert {way: (r.gpu, r.way, r.fitted) for way, r in places.items() if r} == {
        "aiconfigurator": ("h100_sxm", "aiconfigurator", True),
        "llmservingsim": ("h100_sxm", "llmservingsim", False),
        "dse_measure": (UNSEEN, "", True),
        "": (UNSEEN, "", True),
    }
    shared = load_timing_calibration("shared")
    for gpu in ("b200", "l40s", "anything"):
        found = shared.residual(*asked[:4], gpu, "aiconfigurator")
        assert found is not None and found.gpu == UNSEEN
    attention = shared.residual("fa3_prefill", "attn_prefill", "bf16", "all", "b200", "aiconfigurator")
    own = shared.residual("fa3_prefill", "attn_prefill", "bf16", "all", "h200", "aiconfigurator")
    assert attention is not None and own is not None and attention.gpu == UNSEEN and own.gpu == "h200"
    assert attention.q90 - attention.q10 > own.q90 - own.q10
