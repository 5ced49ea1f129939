"""One interval by hand: hiding, structural stalls, and loads issued ahead."""

import jax.numpy as jnp
import numpy as np
import pytest

from dse.hardware.presets import load_gpu
from dse.timing.interval import (
    Causes,
    Hiding,
    IntervalCycles,
    Latencies,
    Resident,
    Stalls,
    busiest_pipe,
    hiding_of,
    interval_cycles,
    own_stalls,
    structural,
)
from dse.timing.memory import MemoryPath
from dse.traces.segments import COMPUTE, GLOBAL, SHARED
from dse.workload.kernel import Interval
from dse.workload.operators.gemm import Gemm, gemm_operator

A100 = load_gpu("a100_sxm_80gb")
LATENCIES = Latencies(*map(jnp.asarray, (4.0, 23.0, 8.0, 23.0)))
MEMORY = MemoryPath(*map(jnp.asarray, (500.0, 40.0, 200.0, 260.0, 1.0, 1e6, 0.0, 0.0, 1e6)))


def cycles(
    interval,
    subcore=1.0,
    probability=0.1,
    length=20.0,
    pipelined=0.0,
    rate=256.0,
    memory=MEMORY,
    **switches,
):
    """Cycles of an interval by cause with ``subcore`` warps on each of four sub-cores and no queueing in ``memory``."""
    ahead = jnp.asarray(pipelined)
    found = interval_cycles(
        interval,
        own_stalls(interval, LATENCIES, memory, ahead),
        busiest_pipe(interval, A100, jnp.asarray(rate)),
        A100,
        Resident(*map(jnp.asarray, (subcore, 4 * subcore, 108.0))),
        Hiding(jnp.asarray(probability), jnp.asarray(length)),
        memory,
        ahead,
        **{"single_warp_literal": False} | switches,
    )
    assert float(found.stalled) == pytest.approx(sum(map(float, found.causes)), rel=1e-6)
    return {name: float(value) for name, value in {"issue": found.issue, **found.causes._asdict()}.items()}


def test_a_lone_warp_issues_and_stalls():
    found = cycles(Interval(repeats=3, instructions=20, alu_waits=2, shared_waits=1, global_waits=1))
    assert found["issue"] == 3 * 20
    assert found["wait"] == pytest.approx(3 * 2 * 4)
    assert found["short_scoreboard"] == pytest.approx(3 * 23)
    assert found["long_scoreboard"] == pytest.approx(3 * 500)
    assert found["math_pipe_throttle"] == found["lg_throttle"] == found["mio_throttle"] == 0


def test_other_warps_issue_and_hide():
    # Three others issue one mean interval each: O = 3 x 20; p s >= 1, so that all of it hides the stall.
    found = cycles(Interval(repeats=1, instructions=20, global_waits=1), subcore=4.0)
    assert found["issue"] == 20 + 60
    assert found["long_scoreboard"] == 500 - 60
    literal = cycles(Interval(repeats=1, instructions=20, global_waits=1), subcore=4.0, single_warp_literal=True)
    assert (literal["issue"], literal["long_scoreboard"]) == (20, 500)


def test_a_short_stall_is_hidden_with_its_probability():
    found = cycles(Interval(repeats=1, instructions=20, alu_waits=1), subcore=2.0, probability=0.1)
    assert found["wait"] == 0  # V = 0.4 x 20 exceeds the 4 cycles
    assert cycles(Interval(repeats=1, instructions=20, alu_waits=1), subcore=2.0, probability=0.01)["wait"] == (
        pytest.approx(4 - 0.04 * 20)
    )


def test_the_busiest_math_pipe_bounds_the_interval():
    found = cycles(Interval(repeats=1, instructions=64, tensor_fma=64 * 2048), subcore=2.0, length=64.0)
    assert found["issue"] == 128
    assert found["math_pipe_throttle"] == 2 * 64 * 8 - 128  # II_TC = 8 cycles on the A100
    integers = cycles(Interval(repeats=1, instructions=100, int32=80), subcore=1.0, length=100.0)
    assert integers["math_pipe_throttle"] == 80 * 2 - 100


def test_cuda_cores_and_sfus_sustain_the_same_share_of_their_rate():
    # A warp of 32 takes 8 cycles on the 4 SFUs of an A100's sub-core, 2 on its 16 other lanes.
    for units, passes in (({"sfu": 40}, 8), ({"fp32": 40}, 2), ({"int32": 40}, 2)):
        for share in (1.0, 0.8):
            found = busiest_pipe(Interval(instructions=40, **units), A100, jnp.asarray(256.0), lanes=share)
            assert float(found) == pytest.approx(40 * passes / share)
    tensor = busiest_pipe(Interval(instructions=1, tensor_fma=2048), A100, jnp.asarray(256.0), lanes=0.8)
    assert float(tensor) == 8  # is not theirs


def test_products_and_softmax_that_wait_for_each_other_show_the_shorter_in_part():
    def busy(fp32, mixed):
        interval = Interval(instructions=1, tensor_fma=100 * 256, fp32=fp32)
        return float(busiest_pipe(interval, A100, jnp.asarray(256.0), mixed=mixed))

    assert busy(50, 0.4) == 100 + 0.4 * 100  # equal times: that share of one of them
    assert busy(25, 0.4) == 100 + 0.4 * 50 * 50 / 100  # half as long: of half, half shows
    assert busy(100, 0.4) == 200 + 0.4 * 100 * 100 / 200  # whichever is longer
    assert busy(25, 0.0) == 100


def test_a_share_of_the_queueing_shows():
    memory = MEMORY._replace(l2_byte=jnp.asarray(0.01))
    queue = 0.5 * 108 * 4 * 300 * 0.01  # four warps on each of 108 SMs, half of them ahead
    for ahead, hidden in ((0.0, 0.0), (1.0, 20.0)):  # loads issued ahead: the interval's own work covers a part
        for share in (0.0, 0.5, 1.0):
            interval = Interval(repeats=1, instructions=20, load_bytes=300.0, global_waits=1)
            found = cycles(interval, pipelined=ahead, memory=memory, queued=share)
            assert found["mio_throttle"] == pytest.approx(share * queue, rel=1e-6)
            assert found["long_scoreboard"] == pytest.approx(500 - hidden, rel=1e-6)


def test_the_shared_path_bounds_all_warps_of_the_sm_together():
    bytes_ = 64 * float(A100.l1_bytes_per_cycle)
    found = cycles(Interval(repeats=1, instructions=100, shared_bytes=bytes_), subcore=2.0, length=100.0)
    assert found["lg_throttle"] == pytest.approx(8 * 64 - 200)
    port = cycles(Interval(repeats=1, instructions=1, load_bytes=640.0, store_bytes=640.0), length=1.0)
    assert port["lg_throttle"] == pytest.approx(4 * 1280 / 64 - 1)


def shared_excess(fp32: float, shared_bytes: float) -> tuple[float, float]:
    """The excess of two warps on each sub-core, and the math pipe's part."""
    interval = Interval(repeats=1, instructions=10, fp32=fp32, shared_bytes=shared_bytes)
    busiest = busiest_pipe(interval, A100, jnp.asarray(256.0))
    found = structural(interval, A100, Resident(*map(jnp.asarray, (2.0, 8.0, 1.0))), busiest)
    return float(found[0]), float(found[1])


def test_math_and_path_share_the_excess_in_the_order_in_which_they_bind():
    path = 8 * 1e5 / float(A100.l1_bytes_per_cycle) - 20  # of 8 warps, beyond two warps' ten instructions
    math = 2 * (100 * 2 - 10)
    assert shared_excess(100, 1e5) == pytest.approx((path, math / 2))  # the path binds, and half of the rest is its
    more = 2 * (4000 * 2 - 10)
    assert shared_excess(4000, 1e5) == pytest.approx((more, more - path / 2))
    assert shared_excess(100, 0) == pytest.approx((math, math)) and shared_excess(0, 1e5) == pytest.approx((path, 0))
    found = cycles(Interval(repeats=3, instructions=10, fp32=100, shared_bytes=1e5), subcore=2.0)
    assert found["math_pipe_throttle"] == pytest.approx(3 * math / 2)
    assert found["lg_throttle"] == pytest.approx(3 * (path - math / 2))


def test_a_units_share_grows_with_its_own_work_without_a_jump():
    shares = [shared_excess(float(fp32), 1e5)[1] for fp32 in np.linspace(0, 4000, 200)]
    steps = np.diff(shares)
    assert steps.min() >= 0 and steps.max() < 2.2 * 2 * 2 * 4000 / 199


def test_more_warps_never_shorten_an_interval():
    interval = Interval(repeats=1, instructions=30, fp32=20, shared_bytes=5000.0, global_waits=1, alu_waits=3)
    for pipelined in (0.0, 1.0):
        totals = [sum(cycles(interval, float(x), length=90.0, pipelined=pipelined).values()) for x in range(1, 20)]
        assert totals == sorted(totals)


def test_loads_issued_ahead_stall_only_for_what_the_interval_does_not_cover():
    interval = Interval(repeats=1, instructions=100, global_waits=0.5)
    assert cycles(interval, pipelined=1.0, length=100.0)["long_scoreboard"] == 0.5 * 500 - 100
    assert cycles(interval, subcore=4.0, pipelined=1.0, length=100.0)["long_scoreboard"] == 0
    compute, shared, ahead = own_stalls(interval, LATENCIES, MEMORY, jnp.asarray(1.0))
    assert (float(compute), float(shared), float(ahead)) == (0, 0, 150)


@pytest.mark.parametrize(
    ("cause", "name"), [(COMPUTE, "wait"), (SHARED, "short_scoreboard"), (GLOBAL, "long_scoreboard")]
)
def test_a_stall_that_nothing_hides_is_booked_under_its_cause(cause, name):
    zero = jnp.zeros(())
    nothing = IntervalCycles.of(zero, Causes(*[zero] * 6))
    found = nothing.exposed(Stalls.of(jnp.asarray(5.0), jnp.asarray(cause)))
    assert float(getattr(found.causes, name)) == float(found.total) == 5


def test_a_warp_issues_in_its_share_of_issuing_and_stalls():
    """p = I/(I+S) and nbar = I/K; loads of the loop run ahead, so that only what an iteration leaves of them counts."""
    kernel = gemm_operator("g", Gemm(4096, 4096, 4096)).candidates[0].kernel.as_arrays()
    issued, stalled, count = 0.0, 0.0, 0.0
    for interval, ahead in ((kernel.start, 0.0), (kernel.loop, float(kernel.pipelined)), (kernel.end, 0.0)):
        own = own_stalls(interval, LATENCIES, MEMORY, jnp.asarray(ahead))
        stalled += float(interval.repeats * (own.compute + own.shared + own.memory))
        issued += float(interval.repeats * interval.instructions)
        count += float(interval.repeats)
    found = hiding_of(kernel, LATENCIES, MEMORY)
    assert float(found.probability) == pytest.approx(issued / (issued + stalled))
    assert float(found.length) == pytest.approx(issued / count)
