"""Designs a second for one trace after the first: the recurrence in three ways, compiled forms, and whole models.

Run with ``python -m benchmarks.designs [--json]`` (a minute). On one core, in processor time. The warp is a pipelined
GEMM main loop of 1004 instructions (loads two iterations ahead, shared memory, HMMA chains). All ways agree
(asserted). The original program repeats everything for each design: seconds a design.
"""

import json
import os
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.arguments import parser
from benchmarks.gcom_batch import GcomBatch
from benchmarks.traces import write
from dse.evaluate.platform import CPU
from dse.hardware.gpu import Gpu
from dse.hardware.presets import preset_sheet
from dse.timing.amali import Amali
from dse.timing.mdm import Mdm
from dse.timing.timing import TimingModel
from dse.timing.traced.by_latency_forms import by_forms
from dse.timing.traced.gcom import cache_geometry, gcom, resident_ctas
from dse.timing.traced.gcom_config import GcomConfig, default_values
from dse.timing.traced.models import on_trace, trace_latencies
from dse.timing.traced.scoreboard import lone_warp
from dse.timing.traced.trace_profile import traced_workload
from dse.traces.cache_simulation import simulate
from dse.traces.latency_forms import samples
from dse.traces.segments import make_segments
from dse.traces.traced_kernel import TracedKernel, with_forms
from dse.traces.warp_profile import WarpProfile

BLOCK, BLOCKS, REPEATS = 2048, 4, 2000
REGISTERS = 256
PROGRAM = 50
VARIED = (
    "dram_bandwidth_gbs",
    "dram_latency_ns",
    "l2_mib",
    "l2_latency_ns",
    "l1_latency_cycles",
    "alu_latency_cycles",
    "shared_load_latency_cycles",
    "boost_clock_mhz",
)


def gemm_warp(warp: int) -> list[str]:
    """Return a warp of a pipelined GEMM main loop."""
    lines, base = [], 0x7F0000000000 + (warp << 16)
    for i in range(PROGRAM):
        buffer = 40 + 4 * (i % 3)
        for k in range(2):
            lines.append(f"0010 ffffffff 1 R{buffer + k} LDG.E.128.SYS 1 R1 16 1 {base + 1024 * i + 512 * k:#x} 16")
        late = 40 + 4 * ((i + 1) % 3)
        lines += [f"0020 ffffffff 0 STS.128 2 R2 R{late + k} 16 1 0x100 16" for k in range(2)]
        lines += [f"0030 ffffffff 1 R{60 + 4 * k} LDSM.16.M88.4 1 R3 16 1 0x100 16" for k in range(4)]
        for k in range(8):
            a, b, c = 60 + 4 * (k % 4), 60 + 4 * (k // 4), 80 + 4 * k
            lines.append(f"0040 ffffffff 1 R{c} HMMA.1688.F32 3 R{a} R{b} R{c} 0")
        lines += ["0050 ffffffff 1 R1 IADD3 1 R1 0", "0060 ffffffff 1 R3 IADD3 1 R3 0", "0070 ffffffff 0 BAR 0 0"]
        lines.append("0080 ffffffff 0 BRA 0 0")
    return [*lines, *["0090 ffffffff 0 STG.E.128.SYS 2 R1 R80 16 1 0x7f00f0000000 16"] * 3, "00a0 ffffffff 0 EXIT 0 0"]


def seconds(work: Callable[[], Any]) -> float:
    """Return the least processor time of three runs, of more where they are short; a first has compiled."""
    jax.block_until_ready(work())
    times: list[float] = []
    while len(times) < 3 or (sum(times) < 0.3 and len(times) < 30):
        start = time.process_time()
        jax.block_until_ready(work())
        times.append(time.process_time() - start)
    return min(times)


def by_register(profile: WarpProfile, row: jax.Array, latency: jax.Array) -> jax.Array:
    """Stall cycles of one design or of designs in the minor axis: the recurrence with a table of registers.

    It keeps every stall; the package's way only counts them, and walks again where their lengths are asked for.
    """
    inputs = (jnp.asarray(profile.sources), jnp.asarray(profile.source_count), jnp.asarray(profile.destination), row)

    def step(carry: Any, x: Any) -> tuple[Any, Any]:
        before, done = carry
        sources, count, destination, r = x
        t = before + 1
        for k in range(profile.sources.shape[1]):
            t = jnp.where(k < count, jnp.maximum(t, done[sources[k]]), t)
        written = jnp.maximum(destination, 0)
        done = done.at[written].set(jnp.where(destination >= 0, t + latency[r], done[written]))
        return (t, done), t - before - 1

    designs = latency.shape[1:]
    start = jnp.zeros(designs), jnp.full((REGISTERS, *designs), -1e9)
    _, stall = jax.lax.scan(step, start, inputs)
    return jax.lax.optimization_barrier(stall).sum(axis=0)


def in_blocks(form: Callable[[jax.Array], jax.Array], latency: jax.Array) -> jax.Array:
    """Run a form on blocks of designs [rows, designs], as a sweep does."""
    blocks = jnp.moveaxis(latency.reshape(latency.shape[0], -1, BLOCK), 1, 0)
    return jax.lax.map(form, blocks).reshape(-1)


def recurrences(profile: WarpProfile) -> dict[str, float]:
    """Return nanoseconds a (design, instruction) of the recurrence by form."""
    rng = np.random.default_rng(0)
    row = np.array([hash_row(profile.opcodes[k].text) for k in profile.opcode])
    segments = make_segments(profile.destination, profile.sources, profile.source_count, row, np.zeros(len(row), int))
    latency = jnp.asarray(rng.integers(1, 400, (8, BLOCK * BLOCKS)), jnp.float32)
    scalar = partial(by_register, profile, jnp.asarray(row))
    forms = {
        "vmap of a scalar scan, register table": lambda x: in_blocks(jax.vmap(scalar, in_axes=1), x),
        "designs minor, register table": lambda x: in_blocks(scalar, x),
        "designs minor, segments (this package)": lambda x: in_blocks(
            lambda block: jax.lax.optimization_barrier(lone_warp(segments, block)).stalled, x
        ),
    }
    found, results = {}, []
    for name, form in forms.items():
        compiled = jax.jit(form)
        results.append(np.asarray(compiled(latency)))
        found[name] = 1e9 * seconds(partial(compiled, latency)) / (BLOCK * BLOCKS * len(row))
    assert all(np.array_equal(results[0], other) for other in results)
    found["segments per instruction"] = len(segments.length) / len(row)
    return found


def hash_row(opcode: str) -> int:
    """Return a row of the benchmark's latencies for an opcode."""
    return sum(map(ord, opcode)) % 8


def compiled_forms(kernel: TracedKernel, sheet: Mapping[str, float], model: TimingModel) -> dict[str, float]:
    """Return nanoseconds a (design, kernel) of the lone warp's time by forms, of latencies that are in the cache.

    -1 marks a design that no form covers.
    """
    assert kernel.compiled is not None
    forms = kernel.compiled.forms
    assert forms is not None
    latency = trace_latencies(model, kernel, Gpu.from_attributes(varied(sheet, BLOCK, 7)))
    assert latency is not None

    def time_of(rows: jax.Array) -> jax.Array:
        found = by_forms(forms, rows)
        return jnp.where(found.exact, found.lone.stalled + found.lone.drain, -1.0)

    def again(number: jax.Array, total: jax.Array) -> jax.Array:  # of latencies that differ a little each time
        return total + time_of(jax.lax.optimization_barrier(latency) + 1e-6 * number)

    compiled = jax.jit(lambda: jax.lax.fori_loop(0, REPEATS, again, jnp.zeros(BLOCK)), compiler_options=CPU.options)
    covered = float(jnp.mean(by_forms(forms, latency).exact))
    return {
        "patterns": len(forms.patterns),
        "distinct intervals": len(forms.stall),
        "designs covered [%]": 100.0 * covered,
        "lone warp's time [ns]": 1e9 * seconds(compiled) / (BLOCK * REPEATS),
    }


def varied(sheet: Mapping[str, float], count: int, seed: int) -> dict[str, jax.Array]:
    """Return GPUs whose latencies, bandwidth, clock and L2 are half to twice the sheet's."""
    rng = np.random.default_rng(seed)
    columns = {name: sheet[name] * 2.0 ** rng.uniform(-1, 1, count) for name in VARIED}
    numbers = {name: np.full(count, value) for name, value in sheet.items()}
    return {name: jnp.asarray(value, float) for name, value in (numbers | columns).items()}


def with_its_forms(kernel: TracedKernel, sheet: Mapping[str, float], model: TimingModel) -> TracedKernel:
    """Return the kernel compiled for designs around a sheet's."""
    with jax.enable_x64(True):
        count = samples(kernel.segments)
        latencies = jax.jit(lambda gpu: trace_latencies(model, kernel, gpu))
        drawn = [latencies(Gpu.from_attributes(varied(sheet, count, seed))) for seed in (8, 9)]
        return with_forms(kernel, *map(np.asarray, drawn))


def models(folder: Path, kernel: Any) -> dict[str, dict[str, float]]:
    """Return what compiling finds, and designs a second (one core's) of whole models on the trace."""
    sheet = preset_sheet("rtx_2060").numbers()
    start = time.process_time()
    trace = traced_workload(folder, [sheet], representative=0).recorded[0]
    found = {"first design: read and simulate [s]": time.process_time() - start}
    count = BLOCK * BLOCKS
    columns = {name: values.reshape(BLOCKS, BLOCK) for name, values in varied(sheet, count, 1).items()}
    forms: dict[str, float] = {}
    for name, model in {"amali": Amali(), "mdm": Mdm()}.items():
        start = time.process_time()
        assert isinstance(trace, TracedKernel)
        compiled = with_its_forms(trace, sheet, model)
        found[f"{name}: find its forms [s]"] = time.process_time() - start
        forms = forms or compiled_forms(compiled, sheet, model)
        times = []
        for form, record in {"recurrence": trace, "forms": compiled}.items():
            many = jax.jit(
                lambda b, m=model, r=record: jax.lax.map(lambda x: on_trace(m, r, Gpu.from_attributes(x)).cycles, b)
            )
            times.append(np.asarray(many(columns)))
            found[f"{name} by {form} [designs/s]"] = count / seconds(partial(many, columns))
        assert (np.abs(times[1] / times[0] - 1) < 1e-5).mean() > 0.98  # 32 bits: the recurrence adds up rounding errors
    config = GcomConfig("RTX 2060", default_values())
    geometry = cache_geometry(kernel.header, config, resident_ctas(kernel.header, config, ""), "")
    profile = simulate(kernel, geometry, 0)
    rng = np.random.default_rng(1)
    batch, many = GcomBatch(profile, config), {"dramLatency": rng.integers(50, 500, BLOCK).astype(float)}
    found["gcom in a batch [designs/s]"] = BLOCK / seconds(lambda: batch(many))
    found["gcom one by one [designs/s]"] = 1 / seconds(lambda: gcom(profile, config).stack.cycles)
    return {"forms": forms, "models": found}


def main() -> None:
    """Measure and print."""
    options = parser("designs", __doc__).parse_args()
    if hasattr(os, "sched_setaffinity"):  # before JAX counts the cores: two would wait for each other
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        kernel = write(folder, gemm_warp)
        config = GcomConfig("RTX 2060", default_values())
        geometry = cache_geometry(kernel.header, config, resident_ctas(kernel.header, config, ""), "")
        rows = {"recurrence_ns": recurrences(simulate(kernel, geometry, 0))} | models(folder, kernel)
    if options.json:
        print(json.dumps(rows, indent=1))
        return
    for title, found in rows.items():
        print(title)
        for what, value in found.items():
            print(f"  {what:44s} {value:,.3g}")


if __name__ == "__main__":
    main()
