"""Traced kernels in amali, mdm and roofline: by hand, against each other, and on batches of designs."""

from collections.abc import Sequence
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dse.base.errors import InputError
from dse.hardware.gpu import Gpu
from dse.hardware.presets import preset_sheet
from dse.timing.amali import Amali
from dse.timing.mdm import Mdm
from dse.timing.roofline import Roofline
from dse.timing.timing import CAUSES, TimingModel
from dse.timing.traced.models import on_trace
from dse.timing.traced.trace_profile import KEYS, traced_workload
from dse.traces.curve_sizes import SIZES
from dse.traces.traced_kernel import TracedKernel
from tests.programs import quick_jit
from tests.traces.traces import kernel_text, write_directory

MODELS = {"amali": Amali(), "mdm": Mdm(), "roofline": Roofline()}
models = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
A100 = preset_sheet("a100_sxm_80gb").numbers()
VARIED = [
    "dram_bandwidth_gbs",
    "l2_mib",
    "tensor_fma_fp16",
    "l2_latency_ns",
    "dram_latency_ns",
    "boost_clock_mhz",
    "l1_latency_cycles",
    "alu_latency_cycles",
    "l2_slice_bytes_per_cycle",
    "sfu_lanes",
    "fp32_lanes",
    "shared_load_latency_cycles",
    "l1_mshr_entries",
]


def line(opcode: str, destination: int | None = None, sources: Sequence[int] = (), address: int | None = None) -> str:
    """Return an instruction with all lanes active; lanes access consecutive words."""
    write = f"1 R{destination}" if destination is not None else "0"
    read = " ".join([str(len(sources)), *(f"R{r}" for r in sources)])
    memory = f"4 1 {address:#x} 4" if address is not None else "0"
    return f"0010 ffffffff {write} {opcode} {read} {memory}"


def kernel(tmp_path: Path, ctas: list[list[list[str]]], gpus=(A100,), representative: int = 0, **facts) -> TracedKernel:
    """Return the record of a kernel, CTA -> warp -> lines."""
    text = kernel_text(ctas, **{"binary": 80, "threads": 32 * len(ctas[0])} | facts)
    folder = write_directory(tmp_path / "trace", text)
    return traced_workload(folder, gpus, representative=representative).recorded[0]


def mixed(warp: int) -> list[str]:
    """Return a warp with loads that depend on one another, tensor instructions, shared memory and a store."""
    base = 0x7F0000100000 + 4096 * warp
    body = [line("LDG.E.SYS", 2, [1], base), line("LDG.E.SYS", 3, [2], base + (1 << 22)), line("STS", None, [3])]
    body[-1] = "0010 ffffffff 0 STS 1 R3 4 1 0x100 4"
    body.append("0010 ffffffff 1 R4 LDS 1 R9 4 1 0x100 4")
    body += [line("HMMA.16816.F32", 8 + i % 4, [4, 8 + i % 4]) for i in range(8)]
    body += [line("FFMA", 20 + i, [8, 20 + i]) for i in range(3)] + [line("MUFU.EX2", 30, [20]), line("DFMA", 32, [30])]
    return [*body, line("STG.E.SYS", None, [30, 32], base + (1 << 23)), line("EXIT")]


def mixed_ctas(ctas: int = 7, warps: int = 3) -> list[list[list[str]]]:
    return [[mixed(warps * c + w) for w in range(warps)] for c in range(ctas)]


def designs(count: int, seed: int = 0, **fixed: float) -> Gpu:
    """Return a batch of GPUs around an A100 that need no new simulation."""
    rng = np.random.default_rng(seed)
    numbers = {name: np.full(count, value, np.float32) for name, value in (A100 | fixed).items()}
    for name in VARIED:
        scale = 2.0 ** rng.uniform(-2, 2, count)
        numbers[name] = np.maximum(numbers[name] * scale, 1.0).astype(np.float32)
    return Gpu.from_attributes({name: jnp.asarray(value, dtype=float) for name, value in numbers.items()})


def cycles(timing) -> dict[str, float]:
    return {name: float(value) for name, value in timing.stack().items()}


def test_five_warps_on_four_subcores_issue_twice_the_instructions(tmp_path: Path) -> None:
    """docs/model/timing_amali.md 12.13: the representative stands on a sub-core with one warp."""
    warp = [line("IADD3", 10 + i % 40, [9]) for i in range(100)]
    record = kernel(tmp_path, [[warp] * 5], representative=1)
    stack = cycles(on_trace(Amali(), record, Gpu.from_numbers(A100 | {"int32_lanes": 128})))
    assert stack["selected"] == 100
    assert stack["divergence"] == 100  # ID = (2 I - I) / r
    alone = cycles(on_trace(Amali(), kernel(tmp_path, [[warp] * 4]), Gpu.from_numbers(A100 | {"int32_lanes": 128})))
    assert (alone["selected"], alone["divergence"]) == (100, 0)


def test_a_longer_warp_elsewhere_is_divergence(tmp_path: Path) -> None:
    short, long = ([line("IADD3", 10 + i % 40, [9]) for i in range(n)] for n in (100, 250))
    stack = cycles(on_trace(Amali(), kernel(tmp_path, [[short, long]]), Gpu.from_numbers(A100 | {"int32_lanes": 128})))
    assert (stack["selected"], stack["divergence"]) == (100, 150)
    gpu = Gpu.from_numbers(A100 | {"int32_lanes": 128})
    without = cycles(on_trace(Amali(with_divergence=False), kernel(tmp_path, [[short, long]]), gpu))
    assert (without["selected"], without["divergence"]) == (100, 0)


def test_a_chain_of_tensor_instructions_by_hand(tmp_path: Path) -> None:
    """Eq. (25) and (26) on the A100: HMMA.16816 takes 8 cycles, HMMA.1688 takes 4; GCoM's unit takes 16 for either."""
    gpu = Gpu.from_numbers(A100)
    for opcode, interval in (("HMMA.16816.F32", 8.0), ("HMMA.1688.F32", 4.0)):
        record = kernel(tmp_path, [[[line(opcode, 8, [8]) for _ in range(11)]]])
        stack = cycles(on_trace(Amali(), record, gpu))
        assert stack["selected"] == 11
        # A lone warp: ten stalls of II - 1, the drain after the last, and ten intervals of one instruction whose
        # dispatch exceeds their issue by II - 1 each, the last one's too.
        assert stack["wait"] == 11 * (interval - 1)
        assert stack["math_pipe_throttle"] == 11 * (interval - 1)
        fixed = cycles(on_trace(Amali(tensor_modifiers=False), record, gpu))
        assert fixed["wait"] == 11 * 15
        measured = cycles(on_trace(Amali(tensor_latency_measured=True), record, gpu))
        assert measured["wait"] == pytest.approx(11 * (A100["mma_latency_cycles"] - 1))


def test_a_lone_load_takes_the_memory_latency(tmp_path: Path) -> None:
    record = kernel(tmp_path, [[[line("LDG.E.SYS", 2, [1], 0x7F0000000000), line("FADD", 3, [2])]]])
    gpu = Gpu.from_numbers(A100)
    stack = cycles(on_trace(Amali(), record, gpu))
    clock = A100["boost_clock_mhz"] / 1e3
    latency = A100["l1_latency_cycles"] + (A100["l2_latency_ns"] + A100["dram_latency_ns"]) * clock
    assert stack["long_scoreboard"] == pytest.approx(latency - 1, rel=1e-5)
    t_n = clock / float(gpu.l2_bytes_per_ns)
    t_d = clock / float(gpu.dram_bytes_per_ns)
    assert stack["mio_throttle"] == pytest.approx(0.5 * 128 * (t_n + t_d), rel=1e-5)  # 4 sectors, phi = 1/2, one SM


@models
def test_a_thousand_designs_in_one_call_equal_a_thousand_calls(tmp_path: Path, model: TimingModel) -> None:
    record = kernel(tmp_path, mixed_ctas())
    with jax.enable_x64(True):
        batch = designs(1000)
        one = quick_jit(lambda gpu: on_trace(model, record, gpu))
        whole, designs_alone = one(batch), jax.tree.map(np.asarray, batch)
        singly = [one(jax.tree.map(lambda x, i=i: x[i], designs_alone)) for i in range(1000)]
        alone = jax.tree.map(lambda *x: np.stack(x), *singly)
        for cause in CAUSES:
            off = np.abs(getattr(whole, cause) - getattr(alone, cause))
            assert (off <= 1e-12 * np.abs(getattr(alone, cause)) + 1e-9 * alone.cycles).all(), cause


@models
def test_32_and_64_bits_agree(tmp_path: Path, model: TimingModel) -> None:
    record = kernel(tmp_path, mixed_ctas())
    found = []
    for x64 in (False, True):
        with jax.enable_x64(x64):
            timing = quick_jit(lambda gpu: on_trace(model, record, gpu))(designs(300))
            found.append(np.asarray(timing.cycles, np.float64))
            assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(timing))
            assert all((np.asarray(value) >= 0).all() for value in timing.stack().values())
    # Where an operand is ready to the cycle, rounding may open an interval more; its cost is that of one interval.
    assert np.quantile(np.abs(found[0] / found[1] - 1), 0.98) < 1e-5
    assert np.abs(found[0] / found[1] - 1).max() < 1e-2


@models
def test_more_bandwidth_is_never_slower(tmp_path: Path, model: TimingModel) -> None:
    record = kernel(tmp_path, mixed_ctas(ctas=300, warps=4))
    gpu = designs(200)
    total = quick_jit(lambda batch: on_trace(model, record, batch).cycles)
    base = np.asarray(total(gpu))
    for name in ("dram_bandwidth_gbs", "l2_slice_bytes_per_cycle", "l2_port_bytes_per_cycle", "l1_bytes_per_cycle"):
        faster = np.asarray(total(gpu.with_attributes({name: 2 * gpu.attribute(name)})))
        assert (faster <= base * (1 + 1e-6)).all(), name


def test_gradients_are_finite_differences(tmp_path: Path) -> None:
    record, names = kernel(tmp_path, mixed_ctas()), ("dram_bandwidth_gbs", "dram_latency_ns", "l2_latency_ns", "l2_mib")
    with jax.enable_x64(True):

        def total(scales):
            scaled = {name: A100[name] * s for name, s in zip(names, scales, strict=True)}
            return on_trace(Amali(), record, Gpu.from_numbers(A100 | scaled)).cycles

        at = jnp.asarray([1.013, 1.021, 0.987, 1.01])
        gradient = quick_jit(jax.grad(total))(at)
        compiled, steps = quick_jit(total), 1e-6 * jnp.eye(len(names))
        difference = [(compiled(at + s) - compiled(at - s)) / 2e-6 for s in steps]
    assert np.allclose(gradient, difference, rtol=1e-4, atol=1e-3)
    assert float(gradient[1]) > 0


def test_the_l2_is_swept_without_simulating_again(tmp_path: Path) -> None:
    """A cyclic walk over 1 MiB, twice: the second round hits where the L2 holds it, and misses where it does not."""
    lines = 1 << 13
    warp = [line("LDG.E.SYS", 2, [1], 0x7F0000000000 + 128 * (i % lines)) for i in range(2 * lines)]
    record = kernel(tmp_path, [[warp]], gpus=[A100 | {"l1_kib": 16}])
    at = int(np.searchsorted(SIZES, 128 * lines))
    once, twice = 128.0 * lines, 256.0 * lines
    assert record.profiles.footprint[0] == once
    assert record.profiles.read_bytes[0, at:].tolist() == [once] * (len(SIZES) - at)
    assert record.profiles.read_bytes[0, :at].tolist() == [twice] * at
    sizes = jnp.asarray([0.5, 1.0, 2.0, 40.0])
    numbers = {name: jnp.asarray(value, float) for name, value in A100.items()}
    timing = on_trace(Amali(), record, Gpu.from_attributes(numbers | {"l2_mib": sizes}))
    assert timing.dram_bytes.tolist() == [twice, once, once, once]


def test_a_design_takes_the_profile_made_for_it(tmp_path: Path) -> None:
    gpus = [A100 | {"sm_count": n, "l1_kib": k} for n in (2, 5, 40) for k in (192, 32)]
    many = kernel(tmp_path, mixed_ctas(ctas=60), gpus=gpus)
    assert many.made_for.shape == (6, len(KEYS))
    batch = Gpu.from_attributes({name: jnp.asarray([g[name] for g in gpus], float) for name in A100})
    whole = quick_jit(lambda gpu: on_trace(Amali(), many, gpu))(batch)
    for number, numbers in enumerate(gpus):
        one = kernel(tmp_path, mixed_ctas(ctas=60), gpus=[numbers])
        alone = quick_jit(lambda gpu, one=one: on_trace(Amali(), one, gpu))(Gpu.from_numbers(numbers))
        assert float(whole.cycles[number]) == pytest.approx(float(alone.cycles), rel=1e-6)
    assert len({round(float(c)) for c in whole.cycles}) > 1


@models
def test_what_cannot_run_is_infeasible(tmp_path: Path, model: TimingModel) -> None:
    record = kernel(tmp_path, mixed_ctas())
    for changes in ({"tensor_fma_fp16": 0.0}, {"tensor_cores_per_sm": 0.0}, {"threads_per_sm": 64.0}):
        timing = on_trace(model, record, Gpu.from_numbers(A100 | changes))
        assert float(timing.feasible) == 0
        assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(timing))
    assert float(on_trace(model, record, Gpu.from_numbers(A100)).feasible) == 1


def test_sentences(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not fit on an SM"):
        kernel(tmp_path, mixed_ctas(), shmem=300_000)
    with pytest.raises(InputError, match="has no instructions"):
        kernel(tmp_path, [[[]]])
    with pytest.raises(InputError, match=r"shape of the tensor instruction 'HMMA\.999'"):
        kernel(tmp_path, [[[line("HMMA.999", 8, [8])]]])
    with pytest.raises(InputError, match="L1 lines of 128 bytes"):
        kernel(tmp_path, mixed_ctas(), gpus=[A100 | {"l1_line_bytes": 64}])
