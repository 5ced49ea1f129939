"""Kernels checked by hand, and each switch of the model."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import pytest

from dse.base.errors import InputError
from dse.hardware.gpu import Gpu
from dse.hardware.peak import peak_tflops
from dse.hardware.presets import load_gpu, preset_sheet
from dse.timing.amali import Amali
from dse.timing.calibration import load_timing_calibration
from dse.timing.roofline import Roofline
from dse.timing.sustained import Sustained
from dse.workload.kernel import Interval, Kernel
from dse.workload.operators.attention import Attention, attention_operator
from dse.workload.operators.gemm import Gemm, gemm_operator
from dse.workload.operators.vector import counts_of, vector_operator
from tests.timing.designs import dominant, fastest, single

H100, A100, T4 = "h100_sxm", "a100_sxm_80gb", "t4"


@pytest.mark.parametrize(("gpu", "dtype"), [(H100, "bf16"), (A100, "bf16"), (T4, "fp16")])
def test_a_big_product_stays_within_the_peak_and_near_it(gpu, dtype):
    numbers, gemm = preset_sheet(gpu).numbers(), Gemm(8192, 8192, 8192, 1, dtype, dtype, dtype, dtype)
    capabilities = (numbers["compute_capability"],) * 2
    label, timing = fastest(gemm_operator("g", gemm, capabilities), gpu, "amali")
    share = 2 * gemm.fma / timing.microseconds / 1e6 / peak_tflops(numbers, "tensor", dtype)
    assert 0.6 < share <= 1.0, label
    assert dominant(timing) == "math_pipe_throttle"


@pytest.mark.parametrize("gpu", [H100, A100, T4])
@pytest.mark.parametrize("shape", [(1, 14336, 4096), (32, 28672, 8192)])
def test_a_decode_product_reads_its_weights_at_the_dram_bandwidth(gpu, shape):
    gemm = Gemm(*shape, 1, "fp16", "fp16", "fp16", "fp16")
    _, timing = fastest(gemm_operator("g", gemm), gpu, "amali")
    numbers = preset_sheet(gpu).numbers()
    streamed = numbers["dram_bandwidth_gbs"] * numbers["dram_sustained_fraction"]
    ideal = (gemm.a_bytes + gemm.b_bytes + gemm.out_bytes) / streamed / 1e3
    assert 1.0 <= timing.microseconds / ideal <= 1.1
    assert dominant(timing) == "dram_bandwidth"


def test_prefill_projections_are_bound_by_the_tensor_cores():
    for n, k in ((6144, 4096), (4096, 4096), (28672, 4096), (4096, 14336)):
        _, timing = fastest(gemm_operator("g", Gemm(4096, n, k)), H100, "amali")
        assert dominant(timing) == "math_pipe_throttle", (n, k)


def test_prefill_attention_computes_and_decode_attention_streams_its_cache():
    prefill = Attention(1, 32, 8, 128, 4096, 4096)
    _, timing = fastest(attention_operator("a", prefill), A100, "amali")
    tflops = 2 * prefill.fma / timing.microseconds / 1e6
    assert 0.5 * 312 < tflops < 312
    decode = Attention(32, 32, 8, 128, 1, 4096)
    _, timing = fastest(attention_operator("a", decode), A100, "amali")
    assert 1.0 <= timing.microseconds / (decode.kv_bytes / 1935e3) <= 1.25
    assert dominant(timing) == "dram_bandwidth"


def test_a_long_context_of_one_request_is_split():
    label, _ = fastest(attention_operator("a", Attention(1, 32, 8, 128, 1, 32768)), A100, "amali")
    assert "split-kv" in label


def test_a_row_kernel_runs_at_the_bandwidth():
    norm = vector_operator("n", "layernorm", 65536, 4096, "fp32", "pytorch_vector")
    _, timing = fastest(norm, H100, "amali")
    assert 1.0 <= timing.microseconds / (timing.dram_bytes / (3350e3 * 0.899)) <= 1.2
    passes = counts_of("pytorch_vector", "layernorm").passes
    assert 8 <= timing.dram_bytes / (65536 * 4096) <= 4 * (1 + passes) * (1 + 1e-6)  # read, written, read again in part
    assert dominant(timing) == "dram_bandwidth"


def test_a_tiny_kernel_takes_the_launch_and_its_own_latencies():
    _, timing = fastest(vector_operator("e", "add", 1, 64), H100, "amali")
    assert timing.launch == pytest.approx(2200, rel=0.01)
    assert timing.launch + timing.long_scoreboard > 0.9 * timing.cycles
    assert dominant(timing) in ("launch", "long_scoreboard")


def test_a_thin_product_on_many_gpus_sms_is_split():
    label, _ = fastest(gemm_operator("g", Gemm(16, 512, 65536)), H100, "amali")
    assert "split-k" in label


GEMM = single(gemm_operator("g", Gemm(4096, 4096, 4096)), "hmma_16816 128x128")


def cycles(gpu=None, kernel=GEMM, **switches):
    """Cycles by cause of a kernel on an A100 (or another GPU) with some switches set.

    Operation by operation: what one variant compiles, the others have.
    """
    timing = Amali(**switches)(kernel, gpu or load_gpu(A100))
    return {cause: float(value) for cause, value in timing.stack().items()} | {"total": float(timing.cycles)}


def test_without_modifiers_the_tensor_rate_changes_nothing():
    fed = preset_sheet("a100_sxm_80gb").numbers() | {"l2_crossbar_bytes_per_cycle": 64.0}  # or the network binds
    usual, faster = Gpu.from_numbers(fed), Gpu.from_numbers(fed | {"tensor_fma_bf16": 512.0})
    assert cycles(usual, tensor_modifiers=False) == cycles(faster, tensor_modifiers=False)
    assert cycles(faster)["total"] < 0.8 * cycles(usual)["total"]


def test_ablations_leave_their_term_out_and_nothing_else():
    full, no_launch, no_divergence = cycles(), cycles(with_launch=False), cycles(with_divergence=False)
    assert (no_launch["launch"], no_divergence["divergence"]) == (0, 0)
    assert no_launch["total"] == pytest.approx(full["total"] - full["launch"])
    assert no_divergence["selected"] == pytest.approx(full["selected"] + full["divergence"])
    assert no_divergence["total"] == pytest.approx(full["total"])


def test_launch_in_nanoseconds_scales_with_the_clock():
    assert cycles(launch_in_ns=True)["launch"] == pytest.approx(1.41 * cycles()["launch"])


def test_an_overlapped_launch_hides_the_grids_part():
    assert cycles(launch_overlapped=True)["launch"] == 2200


def test_measured_tensor_latency_shows_where_few_warps_wait():
    kernel = single(gemm_operator("g", Gemm(64, 64, 8192)), "hmma_16816 64x64")
    assert cycles(kernel=kernel, tensor_latency_measured=True)["wait"] > cycles(kernel=kernel)["wait"]


def test_latencies_read_end_to_end_are_shorter():
    kernel = single(vector_operator("e", "add", 1, 64), "vllm_vector add")
    assert cycles(kernel=kernel, latency_is_total=True)["long_scoreboard"] < cycles(kernel=kernel)["long_scoreboard"]


def test_without_the_floor_nothing_is_booked_under_bandwidth():
    kernel = single(vector_operator("e", "add", 65536, 4096), "vllm_vector add")
    floored, free = cycles(kernel=kernel), cycles(kernel=kernel, roofline_floor=False)
    assert free["dram_bandwidth"] == free["l2_bandwidth"] == 0
    assert free["total"] < floored["total"]


def test_the_literal_reading_forgets_the_other_warps():
    literal, full = cycles(single_warp_literal=True), cycles()
    assert literal["selected"] + literal["divergence"] < full["selected"] + full["divergence"]


def test_a_partly_filled_wave_shows_as_divergence():
    even = single(gemm_operator("g", Gemm(128 * 108, 128, 4096)), "hmma_16816 128x128")
    odd = single(gemm_operator("g", Gemm(128 * 109, 128, 4096)), "hmma_16816 128x128")
    assert cycles(kernel=even)["divergence"] == pytest.approx(0, abs=1)
    assert cycles(kernel=odd)["divergence"] > 0.4 * cycles(kernel=odd)["selected"]


def test_a_calibrated_model_is_shown_by_its_calibration_and_switches():
    model = load_timing_calibration("h100_sxm").model
    assert repr(model).startswith(
        "Amali(calibrated_on='h100_sxm', 80 % of times within 0.943 to 1.06 times what it says)"
    )
    assert repr(replace(model, with_launch=False)).endswith(", with_launch=False)")


def test_a_timing_is_shown_by_its_time_and_the_causes_that_cost_something():
    gpu = load_gpu(A100)
    timing = Amali()(GEMM, gpu)
    assert repr(timing).startswith(
        f"Timing(microseconds={float(timing.microseconds):.6g}, clock_ghz=1.41, feasible=1, "
    )
    assert "interconnect" not in repr(timing) and "selected=" in repr(timing)
    shown = []
    jax.make_jaxpr(lambda gpu: shown.append(repr(Amali()(GEMM, gpu))) or gpu)(gpu)
    assert shown[0].startswith("Timing(clock_ghz=f32[], ")


@pytest.mark.parametrize("model", [Amali(), Roofline()])
def test_what_is_no_record_is_not_timed(model):
    with pytest.raises(InputError, match=r"^kernel = 'gemm' is not accepted; give the record of a kernel"):
        model("gemm", load_gpu(A100))
    with pytest.raises(InputError, match=r"^gpu = 'a100_sxm_80gb' is not accepted; give a record"):
        model(GEMM, A100)


SMS, CLOCK = 108, 1.41
"""Of the A100, the clock in GHz."""


def made(**fields):
    """A kernel of nothing but a thousand instructions of four warps on each SM, if ``fields`` do not say otherwise."""
    parts = {"start": Interval(), "loop": Interval(repeats=10.0, instructions=100.0), "end": Interval()}
    return Kernel(**(parts | {"ctas": SMS} | fields)).as_arrays()


def added(by, cause="total", to=None, **costs):
    """Cycles of ``cause`` that fields ``by`` of a kernel add to one (``to``, or one without them) of the same costs."""
    kernel, sustained = to or made(), Sustained(**costs)
    more, plain = (cycles(kernel=one, sustained=sustained) for one in (replace(kernel, **by), kernel))
    return more[cause] - plain[cause]


def test_only_kernels_after_the_first_pay_what_adding_up_partial_results_costs():
    assert cycles(kernel=made(), sustained=Sustained(split=1e3)) == cycles(kernel=made())
    assert added({"launches": 3.0}, "launch", split=1e3) == pytest.approx(2 * (2200 + 1e3 * CLOCK), rel=1e-6)


def test_latencies_in_series_pass_once_whatever_the_waves():
    gpu = load_gpu(A100)
    in_l2 = float(gpu.l1_latency_cycles + gpu.l2_latency_ns * CLOCK)
    for ctas in (SMS, 160 * SMS):  # one wave, and ten
        assert added({"serial_waits": 5.0}, to=made(ctas=ctas, warm_bytes=1.0)) == pytest.approx(5 * in_l2, rel=1e-4)
    # All loads miss the L2: each waits for DRAM, too.
    loads = Interval(repeats=10.0, instructions=100.0, load_bytes=1.0)
    missed = made(loop=loads, cold_bytes=40.0 * SMS, cold_distance=1e15)
    in_dram = in_l2 + float(gpu.dram_latency_ns) * CLOCK
    assert added({"serial_waits": 5.0}, to=missed) == pytest.approx(5 * in_dram, rel=1e-4)


@pytest.mark.parametrize("ctas", [SMS, 160 * SMS])
def test_the_last_stores_drain_through_the_l1_and_the_l2_once_whatever_the_waves(ctas):
    gpu, kernel = load_gpu(A100), made(ctas=ctas)

    def waits(l1, l2):
        changes = {
            "l1_latency_cycles": jnp.asarray(l1),
            "l2_latency_ns": jnp.asarray(l2),
            "l2_far_latency_ns": 0.0 * gpu.l2_mib,
        }
        return float(Amali()(kernel, gpu.with_attributes(changes)).long_scoreboard)

    assert waits(30.0, 100.0) == pytest.approx(30 + 100 * CLOCK, rel=1e-6)
    assert waits(80.0, 100.0) - waits(30.0, 100.0) == pytest.approx(50, rel=1e-4)
    assert waits(30.0, 300.0) - waits(30.0, 100.0) == pytest.approx(200 * CLOCK, rel=1e-4)


STREAM = {"cold_bytes": 1e8, "cold_distance": 1e15}
"""Fields of a kernel that reads 100 MB from DRAM."""


def test_what_runs_beside_bytes_of_dram_is_a_part_of_their_time():
    """Elsewhere it is nothing: all that the clock paces is in the stack (dse/power/power_limit.py)."""
    half, work = Sustained(overlap=0.5), cycles(kernel=made(**STREAM), roofline_floor=False)
    bytes_, shorter = Amali(sustained=half)(made(**STREAM), load_gpu(A100)), work["total"] - work["launch"]
    longer = float(bytes_.dram_bandwidth + bytes_.selected - bytes_.exposed)
    assert float(bytes_.exposed) == pytest.approx(0.5 * shorter**2 / longer, rel=1e-4)
    assert float(bytes_.hidden) == pytest.approx(shorter, rel=1e-6)
    in_l2 = Amali(sustained=half)(made(l2_bytes=1e9), load_gpu(A100))
    assert float(in_l2.l2_bandwidth) > float(in_l2.selected)
    assert float(in_l2.exposed) == float(in_l2.hidden) == 0


def test_work_in_the_shadow_of_dram_is_that_of_the_l2_where_it_is_longer():
    """Its clock is lowered with the SMs'."""
    gpu = load_gpu(A100)
    timing = Amali()(made(l2_bytes=1e8, **STREAM), gpu)
    assert float(timing.hidden) == pytest.approx(1e8 / float(gpu.l2_bytes_per_ns) * CLOCK, rel=1e-5)


def test_kernels_that_copy_operands_take_their_launches_rows_and_bytes():
    gpu = load_gpu(A100)
    assert added({"copies": 2.0}, copy=1e3) == pytest.approx(2e3 * CLOCK, rel=1e-4)
    assert added({"copied_rows": 5e3}, copied_row=300.0) == pytest.approx(300 * 5e3 / SMS, rel=1e-4)
    moved = 1e8 / float(gpu.dram_bytes_per_ns) * CLOCK
    for share in (0.5, 2.0):
        assert added({"copied_bytes": 1e8}, "dram_bandwidth", copied=share) == pytest.approx(share * moved, rel=1e-5)
        timing = Amali(sustained=Sustained(copied=share))(made(copied_bytes=1e8), gpu)
        assert float(timing.dram_bytes) == min(share, 1.0) * 1e8  # twice the time is not twice the bytes
        assert float(timing.exposed) == pytest.approx(share * moved, rel=1e-5)


def test_every_cta_costs_its_sm_and_a_share_of_that_follows_the_bytes():
    listed = made(ctas=10.0 * SMS, longest=1.0)  # handed out one by one: ten an SM
    for exposed in (0.0, 0.25, 1.0):
        costs = Sustained(cta=100.0, exposed=exposed)
        for kernel, cost in ((listed, 1000), (replace(listed, **STREAM), 1000 * exposed), (made(), 100)):
            expected = cycles(kernel=kernel)["total"] + cost
            assert cycles(kernel=kernel, sustained=costs)["total"] == pytest.approx(expected, rel=1e-5)


def test_each_further_wave_starts_anew():
    ten = made(ctas=160.0 * SMS)  # 16 CTAs an SM at a time
    costs = {"prologue": 500.0, "wave": 70.0}
    for kernel, starts in ((made(), 500), (ten, 500 + 9 * 70)):
        found, plain = cycles(kernel=kernel, sustained=Sustained(**costs)), cycles(kernel=kernel)
        assert found["long_scoreboard"] == pytest.approx(plain["long_scoreboard"] + starts, rel=1e-5)


def test_the_epilogue_and_further_iterations_are_those_of_their_own_interval():
    kernel = made(end=Interval(repeats=1.0, instructions=700.0))
    plain = cycles(kernel=kernel)["total"]
    assert cycles(kernel=kernel, sustained=Sustained(epilogue=3.0))["total"] == pytest.approx(plain + 2 * 700, rel=1e-6)
    assert cycles(kernel=kernel, sustained=Sustained(filling=2.5))["total"] == pytest.approx(plain + 250, rel=1e-6)


def test_what_is_written_takes_longer_by_the_turnaround_and_no_bytes_less_than_at_the_sheets_bandwidth():
    gpu = load_gpu(A100)
    at_sheet = 1.1e8 / float(gpu.dram_bandwidth_gbs) * CLOCK
    streamed = at_sheet / float(gpu.dram_sustained_fraction)
    written = made(**STREAM, write_bytes=1e7, write_distance=1e15)

    def bytes_cycles(**costs):
        found = cycles(kernel=written, sustained=Sustained(**costs))
        return found["total"] - found["launch"]

    assert bytes_cycles() == pytest.approx(streamed, rel=2e-3)
    assert bytes_cycles(turnaround=0.8) - bytes_cycles() == pytest.approx(0.8 * streamed / 11, rel=1e-3)
    assert bytes_cycles(dram=1.5) == pytest.approx(at_sheet, rel=2e-3)


def test_the_longest_cta_alone_ends_a_list_and_goes_at_its_own_pace():
    """Twice the mean with its own start and end: of 10 iterations between them 21 instead of 11 less the one."""
    one = made(ctas=SMS, longest=2.0)
    base = cycles(kernel=made())["total"]
    for alone in (1.0, 1.5):
        found = cycles(kernel=one, sustained=Sustained(alone=alone))["total"]
        assert found == pytest.approx(base + (21 * alone - 10) * 100, rel=1e-5)


def test_a_cta_in_lockstep_is_hidden_by_other_ctas_alone():
    """Two warps on each sub-core, of 100 instructions and a stall of 50 latencies of 4 cycles, ten times."""
    loop = Interval(repeats=10.0, instructions=100.0, alu_waits=50.0)
    one, two = made(warps=8.0, loop=loop), made(ctas=2.0 * SMS, loop=loop)
    for kernel, lockstep, hidden in ((one, 0.0, 100), (one, 1.0, 0), (two, 0.0, 100), (two, 1.0, 50), (two, 0.4, 80)):
        found = cycles(kernel=kernel, sustained=Sustained(lockstep=lockstep))
        assert found["wait"] == pytest.approx(10 * (200 - hidden), rel=1e-5), (lockstep, hidden)
