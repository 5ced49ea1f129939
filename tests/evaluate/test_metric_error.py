"""What a space's metrics say of their own error: intervals by what they rest on, and what lies beyond measurements."""

import math
from dataclasses import replace

import numpy as np
import pytest

from dse.base.error_interval import ErrorInterval
from dse.base.package_tables import read_table
from dse.evaluate.metric_error import (
    DENSE_ALONE,
    DENSE_KERNELS_ALONE,
    KERNELS_ALONE,
    MetricError,
    beyond,
    metric_error,
    objective_error,
    run_metric_errors,
    sheet_beyond,
)
from dse.hardware.area import DieArea
from dse.hardware.presets import changed, gpu_from_mapping, preset_sheet
from dse.power.board import BoardPower, left_out_errors
from dse.reports.common.words import label, superlative
from dse.space.metrics import metric_unit
from dse.space.space import space_from_mapping
from dse.timing.amali import Amali
from dse.timing.calibration import load_timing_calibration
from dse.workload.parse import load_workload
from dse.workload.serving_engine import Engine, engines, interval_of
from dse.workload.target import Target
from tests.conftest import SMALL


class Measured(Amali):
    """A timing model that knows its error."""

    @property
    def error_interval(self):
        return ErrorInterval(0.9, 1.2, "made up", ("h100_sxm",))


H100 = preset_sheet("h100_sxm")


def error_of_run(metric, *of):
    """How far one metric of a run can be trusted."""
    return run_metric_errors([metric], *of)[metric]


def product(*known):
    """Ends of the product of two predictions whose errors are independent."""
    middle = sum(math.log(u.low * u.high) / 2 for u in known)
    half = math.hypot(*(math.log(u.high / u.low) / 2 for u in known))
    return math.exp(middle - half), math.exp(middle + half)


@pytest.fixture(scope="module")
def space():
    return space_from_mapping(SMALL, "small", "small")


@pytest.fixture(scope="module")
def calibrated(space):
    return replace(space, model=Measured())


def test_times_of_an_uncalibrated_model_carry_no_interval(space):
    for metric in ("prefill.ttft_ms", "decode.tbt_ms", "decode.tokens_per_s", "decode.energy_j"):
        assert metric_error(space, metric) == MetricError(None)
        assert metric_error(space, metric).word == "uncalibrated"


def test_types_that_were_not_fitted_carry_no_interval_of_time(small):
    for dtype, known in (("bf16", True), ("fp16", True), ("fp8", True), ("w4a8", False)):
        use = f"gpt2_xl:phase=decode,batch=1,context=128,dtype={dtype}"
        mixed = small | {
            "workloads": {"decode": "gpt2_xl:phase=decode,batch=1,context=128,dtype=bf16", "other": use},
            "objectives": [{"value": "decode.tbt_ms", "goal": "min"}],
        }
        space = replace(space_from_mapping(mixed, "here", "mixed"), model=Measured())
        assert metric_error(space, "decode.tbt_ms").error_interval is not None
        assert (metric_error(space, "other.tbt_ms").error_interval is not None) == known
        assert (metric_error(space, "total.time_ms").error_interval is not None) == known


ENGINE = Engine("made_up", "Made up", 0.0, 300.0, 10.0, 40.0, 5.0, 0.0, low=-0.02, high=0.2)


def test_an_engine_brings_its_own_interval_of_times(calibrated):
    """Its ends are of log(predicted / measured): what predicts too long is measured below."""
    decode = [w if w.name == "prefill" else replace(w, engine=ENGINE) for w in calibrated.workloads]
    space = replace(calibrated, workloads=tuple(decode))
    time = metric_error(space, "decode.tbt_ms").error_interval
    assert (time.low, time.high) == (math.exp(-0.2), math.exp(0.02))
    assert "Made up" in time.source and time.gpus == ("h100_sxm",)
    prefill = metric_error(space, "prefill.ttft_ms").error_interval
    assert prefill == ErrorInterval(0.9, 1.2, "made up", ("h100_sxm",))
    total = metric_error(space, "total.time_ms").error_interval
    assert (total.low, total.high) == (math.exp(-0.2), 1.2)  # the widest
    rate = metric_error(space, "decode.tokens_per_s").error_interval
    assert (rate.low, rate.high) == pytest.approx((math.exp(-0.02), math.exp(0.2)))
    energy, power = metric_error(space, "decode.energy_j").error_interval, BoardPower.from_table().error_interval
    assert (energy.low, energy.high) == pytest.approx(
        product(metric_error(space, "decode.time_ms").error_interval, power)
    )


def test_an_engine_that_was_measured_by_phases_has_an_interval_for_each():
    engine = engines()["vllm_2023_a100_host"]

    def ends(op):
        low, high = interval_of(engine, op)
        return pytest.approx((math.exp(-high), math.exp(-low)))

    def told(metric, text):
        workload = load_workload(f"gpt2_xl:{text},engine={engine.name}")
        found = error_of_run(metric, workload, Measured(), BoardPower.from_table(), H100)
        assert found.error_interval is not None
        return found.error_interval.low, found.error_interval.high

    whole = "phase=generate,batch=2,prompt=64,output=4,dtype=fp16"
    assert told("ttft_ms", whole) == ends("llm_prefill")
    assert told("tbt_ms", whole) == ends("llm_decode_step_avg")
    assert told("time_ms", whole) == ends("llm_e2e")
    assert told("time_ms", "phase=prefill,batch=2,prompt=64,dtype=fp16") == ends("llm_prefill")
    assert told("time_ms", "phase=decode,batch=2,context=64,dtype=fp16") == ends("llm_decode_step_avg")
    own = replace(engine, like=engine.name)  # of a TOML, whatever its name
    assert interval_of(own, "llm_prefill") == (own.low, own.high)


def test_an_engine_gives_no_interval_where_its_kernels_have_none(space, calibrated, small):
    served = [replace(w, engine=ENGINE) for w in space.workloads]
    assert metric_error(replace(space, workloads=tuple(served)), "decode.tbt_ms") == MetricError(None)  # uncalibrated
    use = "gpt2_xl:phase=decode,batch=1,context=128,dtype=w4a8,engine=vllm_2024"
    narrow = small | {"workloads": {"decode": use}, "objectives": [{"value": "decode.tbt_ms", "goal": "min"}]}
    space = replace(space_from_mapping(narrow, "here", "narrow"), model=Measured())
    assert metric_error(space, "decode.tbt_ms") == MetricError(None)


def test_messages_between_gpus_are_left_out_of_intervals_that_no_engine_gives(calibrated, small):
    def told(text, metric):
        use = f"gpt2_xl:phase=decode,batch=1,context=128{text}"
        mixed = small | {"workloads": {"decode": use}, "objectives": [{"value": "decode.tbt_ms", "goal": "min"}]}
        space = replace(space_from_mapping(mixed, "here", "messages"), model=Measured())
        found = metric_error(space, f"decode.{metric}")
        assert error_of_run(metric, load_workload(use), Measured(), space.power.model, H100) == found
        return found

    for metric in ("tbt_ms", "time_ms", "tokens_per_s", "energy_j", "tokens_per_joule"):
        assert told(",tp=5", metric).scope == KERNELS_ALONE
        assert told("", metric).scope == told(",tp=5,engine=vllm_2024", metric).scope == ""
    assert told(",tp=5", "power_w").scope == ""
    assert told(",tp=5", "tbt_ms").error_interval == told("", "tbt_ms").error_interval


def test_power_and_area_carry_what_was_left_out_of_their_fits(calibrated, space):
    off = left_out_errors()
    assert (
        metric_error(space, "decode.power_w").error_interval is None
    )  # watts are energy over a time that is uncalibrated
    power = metric_error(calibrated, "decode.power_w").error_interval
    assert power is not None and (power.low, power.high) == (off["low"], off["high"])
    area = metric_error(space, "die_mm2").error_interval
    assert area is not None and 0.9 < area.low < 1 < area.high < 1.1
    errors = np.array([float(row["family_error"]) for row in read_table("process/area_error.csv")])
    inside = np.mean((1 / (1 + errors) >= area.low) & (1 / (1 + errors) <= area.high))
    assert 0.6 <= inside <= 0.9  # four fifths


def test_what_follows_from_the_design_alone_is_exact_and_prices_are_not(space):
    assert metric_error(space, "peak_bf16_tflops").exact and metric_error(space, "sm_count").exact
    assert metric_error(space, "peak_bf16_tflops").word == ""
    assert metric_error(space, "die_usd").word == "uncalibrated"


def test_a_composed_objective_carries_no_interval():
    objectives = [{"value": "die_mm2 * 2", "goal": "min"}, {"value": "die_mm2", "goal": "min"}]
    space = space_from_mapping(SMALL | {"objectives": objectives}, "composed", "composed")
    composed, plain = (objective_error(space, o) for o in space.objectives)
    assert composed.error_interval is None and plain.error_interval is not None


@pytest.mark.parametrize("text", ["die_usd / decode.tokens_per_s", "1000 * decode.tbt_ms", "die_mm2 * decode.tbt_ms"])
def test_what_ends_in_a_metric_is_not_that_metric(calibrated, text):
    """Neither its interval, nor its unit, nor its name."""
    objectives = [{"value": text, "goal": "min"}]
    space = space_from_mapping(SMALL | {"objectives": objectives}, "composed", "composed")
    (objective,) = space.objectives
    assert (
        metric_error(calibrated, text).error_interval is None and metric_error(calibrated, text).word == "uncalibrated"
    )
    assert metric_unit(text) == ""
    assert label(objective) == text and superlative(objective) == f"lowest {text}"


def test_time_energy_and_their_inverses_follow_from_time_and_power(calibrated):
    time, rate = (metric_error(calibrated, f"decode.{m}").error_interval for m in ("tbt_ms", "tokens_per_s"))
    assert (time.low, time.high) == (0.9, 1.2)
    assert (rate.low, rate.high) == (1 / 1.2, 1 / 0.9)
    energy = metric_error(calibrated, "decode.energy_j").error_interval
    power = BoardPower.from_table().error_interval
    assert (energy.low, energy.high) == pytest.approx(product(time, power))
    assert metric_error(calibrated, "decode.tokens_per_joule").error_interval.low == pytest.approx(1 / energy.high)


def test_an_interval_is_told_in_the_metrics_unit(calibrated):
    known = metric_error(calibrated, "decode.tbt_ms")
    assert known.interval(10.0) == (9.0, 12.0)
    assert known.word == "−10 to +20 %"


def test_what_lies_beyond_the_measured_gpus_is_named(space):
    power = space.power.model.error_interval
    assert power is not None and beyond(space, power) == []  # from an A10 to a B200
    power = replace(power, gpus=("h200", "h100_sxm", "a100_sxm_80gb", "a100_sxm_40gb"))
    assert beyond(space, power) == [
        "tensor_fma_bf16 above 512",
        "sm_count below 108",
        "sm_count above 132",
        "dram_bandwidth_gbs above 4800",
    ]
    within = space_from_mapping(SMALL | {"axes": {"sm_count": [108, 120, 132]}, "links": {}}, "within", "within")
    assert beyond(within, power) == []
    assert beyond(space, DieArea.from_table().error_interval) == []  # dies, not GPUs, were measured
    for links, gpu in (({"sm_count": "442 * dram_bandwidth_gbs / 3350"}, {}), ({}, {"sm_count": 442})):
        content = SMALL | {"axes": {"dram_bandwidth_gbs": [3350, 3300]}, "links": links, "gpu": gpu}
        assert beyond(space_from_mapping(content, "linked", "linked"), power) == ["sm_count above 132"]
    node = space_from_mapping(SMALL | {"axes": {"process": ["tsmc_4n", "tsmc_n3e"]}, "links": {}}, "node", "node")
    assert beyond(node, power) == ["process tsmc_n3e"]


def test_one_design_beyond_the_measured_gpus_says_where():
    known = ErrorInterval(0.9, 1.1, "made up", ("a100_sxm_80gb", "h100_sxm", "a GPU of my own"))
    far = changed(preset_sheet("h100_sxm"), {"sm_count": 1000, "dram_bandwidth_gbs": 1000}, "test")
    assert sheet_beyond(far, known) == ["sm_count 1000, above 132", "dram_bandwidth_gbs 1000, below 2039"]
    assert sheet_beyond(preset_sheet("h100_sxm"), known) == []
    assert sheet_beyond(far, ErrorInterval(0.9, 1.1, "made up", ("a GPU of my own",))) == []


def test_a_calibration_of_a_gpu_of_one_s_own_says_nothing_of_others(space):
    assert beyond(space, ErrorInterval(0.9, 1.1, "made up", ("a GPU of my own",))) == []


def test_experts_and_messages_are_left_out_of_intervals_that_no_engine_gives():
    def scope(line, target=None):
        some = load_workload(line, target or Target())
        return error_of_run("tbt_ms", some, Measured(), BoardPower.from_table(), H100).scope

    experts = "mixtral_8x7b:phase=decode,batch=8,context=512"
    assert scope(experts) == DENSE_ALONE
    assert scope(f"{experts},tp=2") == DENSE_KERNELS_ALONE
    assert scope(experts, Target((9.0, 9.0))) == ""  # an H100's kernels of experts were measured
    assert scope(f"{experts},tp=2", Target((9.0, 9.0))) == KERNELS_ALONE
    assert scope("llama3_8b:phase=decode") == ""


def test_an_interval_beside_1_stays_beside_it_in_a_product():
    slow = ErrorInterval(1.05, 1.35, "an engine of one's own")
    ratio = slow.times(slow.of_inverse())
    assert ratio.low == pytest.approx(1 / ratio.high) and ratio.high == pytest.approx(1.195, abs=1e-3)
    narrow = ErrorInterval(0.99, 1.01, "sure")
    assert slow.times(narrow).low == pytest.approx(1.05, rel=1e-3)


def test_errors_of_some_gpus_are_not_said_of_others():
    workload, power = load_workload("gpt2_xl:phase=decode"), BoardPower.from_table()
    l40s = preset_sheet("l40s")
    assert error_of_run("tbt_ms", workload, Measured(), power, H100).error_interval is not None
    assert error_of_run("tbt_ms", workload, Measured(), power, l40s) == MetricError(None)
    same = replace(changed(H100, {}, "test"), name="mine")
    assert error_of_run("tbt_ms", workload, Measured(), power, same).error_interval is not None
    namesake = changed(H100, {"sm_count": 96}, "test")  # still called h100_sxm
    assert error_of_run("tbt_ms", workload, Measured(), power, namesake) == MetricError(None)
    shared = load_timing_calibration("shared").model
    assert error_of_run("tbt_ms", workload, shared, power, l40s).error_interval.anywhere
    own = power.fitted_to("mine", ErrorInterval(0.95, 1.05, "left out", ("h200",)))
    assert error_of_run("power_w", workload, shared, own, l40s) == MetricError(None)
    assert error_of_run("power_w", workload, shared, power, l40s).error_interval is not None


def test_watts_of_types_that_were_not_measured_carry_no_interval():
    shared, power = load_timing_calibration("shared").model, BoardPower.from_table()
    for dtype, known in (("bf16", True), ("fp8", False)):
        workload = load_workload(f"gpt2_xl:phase=decode,dtype={dtype}")
        assert (error_of_run("power_w", workload, shared, power, H100).error_interval is not None) == known


def test_energies_heed_that_a_held_board_draws_no_more():
    """Of a board at its limit, 80 % of measured energies end nearer than those of one that is not."""
    served = load_workload("gpt2_xl:phase=decode,batch=8,context=512,dtype=bf16", name="w")
    model, power = load_timing_calibration("h100_sxm").model, BoardPower.from_table()
    free, held = (
        {
            name: error_of_run(name, served, model, power, H100, most).error_interval
            for name in ("time_ms", "power_w", "energy_j", "tokens_per_joule")
        }
        for most in (math.inf, 1.01)
    )
    assert held["time_ms"] == free["time_ms"]
    assert held["power_w"].high == 1.01 < free["power_w"].high and held["power_w"].low == free["power_w"].low
    assert held["energy_j"].high < held["time_ms"].high * 1.01 < free["energy_j"].high
    assert held["tokens_per_joule"].low == pytest.approx(1 / held["energy_j"].high)


def test_a_calibration_of_one_s_own_gpu_says_what_lies_beyond_it():
    mine = gpu_from_mapping({"base": "h100_sxm", "l2_mib": 40}, "here", "mine")
    known = ErrorInterval(0.9, 1.1, "made up", ("mine",), own=(mine,))
    assert sheet_beyond(mine, known) == []
    assert sheet_beyond(H100, known) == ["l2_mib 50, above 40"]
    fewer = gpu_from_mapping({"base": "h100_sxm", "l2_mib": 40, "sm_count": 60}, "here", "mine")
    assert sheet_beyond(fewer, known) == ["sm_count 60, below 132"]


def shared_time(gpu):
    """The error interval of a decode's time on a GPU under the calibration for any."""
    use = load_workload("gpt2_xl:phase=decode,batch=1,context=128,dtype=bf16")
    model = load_timing_calibration("shared").model
    found = error_of_run("tbt_ms", use, model, BoardPower.from_table(), gpu).error_interval
    assert found is not None
    return found


def test_what_is_new_of_a_gpu_widens_the_interval_of_its_times_in_words():
    fitted, new = shared_time(H100), shared_time(preset_sheet("l40s"))
    assert "never fitted" not in fitted.source
    assert "generation Ada never fitted" in new.source
    assert new.low < fitted.low and new.high > fitted.high
    assert new.low * new.high == pytest.approx(fitted.low * fitted.high)


def test_designs_of_a_space_are_gpus_that_nobody_has_measured(space, small):
    space = replace(space, model=load_timing_calibration("shared").model)
    told = metric_error(space, "decode.tbt_ms").error_interval
    assert told is not None and "GPU never fitted" in told.source
    older = small | {"axes": {**small["axes"], "compute_capability": [8.9, 9.0]}}
    space = replace(space_from_mapping(older, "here", "older"), model=space.model)
    wider = metric_error(space, "decode.tbt_ms").error_interval
    assert wider is not None and "generation Ada never fitted" in wider.source
    assert wider.high / wider.low > told.high / told.low
