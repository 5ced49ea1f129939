"""Designs a second of the shipped main space, beside what a user could write, and beside the machine's limit.

Run with ``python -m benchmarks.throughput [--json] [--all]`` (some three minutes of a core, most of them compiling).
All figures come from one run and, but for the last, of one task: the time of every kernel candidate on every design,
the fastest of each operator, the time of each phase. Ours stands beside plain NumPy in cache-sized chunks, a plain
``jit(vmap(vmap))`` and a Python loop over designs; ``--all``: also beside numba with everything inlined on all cores,
which compiles for one to two minutes a workload, and beside calls of other sizes and of a smaller function.
``fraction_of_bound``: operations of a pair in our
program, without those of tables that are computed once (:mod:`dse.evaluate.groups`), a second, of the best loop of
additions and multiplications of this run. ``operations_per_pair_without_groups``: those of the per-pair function after
hoisting (:mod:`benchmarks.transcribe`), which the others compute. The task is the published model's, without fitted
coefficients. ``sweep_designs_per_second`` is all of a sweep's evaluation, stacks, power, area and cost too; the last
the same as the space is shipped, calibrated.
"""

import json
import math
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce
from typing import Any

import jax
import jax.numpy as jnp
import numba
import numpy as np
from jax import Array

from benchmarks.arguments import parser
from benchmarks.transcribe import COST, DESIGN, KERNEL, NUMBA, NUMPY, PAIR, Line, Transcript, decay, transcribe
from dse.base.numerics import INFEASIBLE
from dse.evaluate.batching import in_parts
from dse.evaluate.candidates import Candidates, Tables
from dse.evaluate.groups import Groups, TableCache, chosen_groups, cost_of
from dse.evaluate.infeasibility import Reasons
from dse.evaluate.platform import CPU
from dse.evaluate.space_program import Evaluator, gpu_batch
from dse.hardware.gpu import ATTRIBUTES, Gpu
from dse.space import designs
from dse.space.shipped import find_space
from dse.space.space import Space, load_space
from dse.timing.amali import Amali
from dse.workload.workload import Workload

CORES = 2
CHUNK = 32768
"""Designs of the task that each implementation repeats."""

REPEATS, SECONDS = 9, 4.0
"""Least runs and seconds of them; the fastest counts. Nine runs of a tenth of a second may all be disturbed."""

NUMBA_BLOCK = 256
"""Designs of a numba block: of 256 and 1024 the faster."""

NUMPY_CHUNKS = (64, 128, 256, 512)
"""Designs of a NumPy chunk; the fastest counts."""

FEW_DESIGNS, LOOP_DESIGNS = 2048, 256

VMAP_DESIGNS = (2048, 8192, 32768, 65536)
"""Designs of a call of the naive program; the last is what a user would write, who leaves out the thought of caches
(docs/model/speed.md 2: all at once or 65,536); ours has half as many, in blocks."""

FLAGS = ("lt", "gt", "le", "ge", "eq", "ne", "and", "or")
"""Primitives whose results are true or false."""

Columns = dict[str, np.ndarray]


@dataclass(frozen=True)
class Task:
    """The designs of a space as columns, and one of its workloads."""

    space: Space
    workload: Workload
    columns: Columns

    @cached_property
    def repeats(self) -> np.ndarray:
        """How often each operator runs in its phase."""
        return np.array([o.repeats for o in self.workload.operators], np.float32)

    @cached_property
    def kernel_fields(self) -> dict[str, np.ndarray]:
        """Fields of the kernels that differ between them, (candidates,), named for the transcript."""
        leaves = jax.tree.leaves(self.workload.kernels)
        return {f"k{i}": np.asarray(x, np.float32) for i, x in enumerate(leaves) if not np.all(x == x[0])}

    @cached_property
    def candidates(self) -> Candidates:
        """The workload's candidates, timed as a sweep times them."""
        return Candidates(self.space.model, self.workload, gpu_batch(self.space.base.numbers(), self.columns))

    @cached_property
    def groups(self) -> Groups | None:
        """The groups in which a sweep takes the designs."""
        return chosen_groups(self.space, CHUNK, partial(cost_of, [self.candidates]), CPU.parts)

    @cached_property
    def operations(self) -> float:
        """Operations of a design's pairs as COST counts them, a reciprocal as a division."""
        pairs = self.candidates.operations(self.groups.attributes if self.groups else ()).pairs
        return sum(COST.get("div" if name == "reciprocal" else name, 0) * count for name, count in pairs.items())

    @cached_property
    def script(self) -> Transcript:
        """The time of one candidate on one design, line by line."""
        leaves, tree = jax.tree.flatten(self.workload.kernels)
        base, varied = self.space.base.numbers(), list(self.columns)

        def time(design: list[Array], kernel: list[Array]) -> Array:
            values = dict(zip(varied, design, strict=True))
            gpu = _gpu(base, values)
            given = dict(zip(self.kernel_fields, kernel, strict=True))
            record = [given.get(f"k{i}", jnp.float32(x[0])) for i, x in enumerate(leaves)]
            return self.space.model.nanoseconds(jax.tree.unflatten(tree, record), gpu)

        return transcribe(time, [f"d{i}" for i in range(len(varied))], list(self.kernel_fields))


def _gpu(base: Mapping[str, float], varied: Mapping[str, Any]) -> Gpu:
    """The design with the attributes ``varied``, all others as ``base`` has them."""
    return Gpu.from_attributes({name: varied.get(name, jnp.float32(base[name])) for name in ATTRIBUTES})


def ours(task: Task) -> Callable[[Columns], np.ndarray]:
    """Return our program, from the columns of designs as they come: (designs,) time of the workload [ns]."""
    base, repeats, candidates, groups = task.space.base.numbers(), task.repeats.tolist(), task.candidates, task.groups
    if groups is None:
        raise SystemExit(f"{task.space.name}: no groups of its designs save operations")

    def least(times: list[Array]) -> list[Array]:
        return [reduce(jnp.minimum, list(rows)) for rows in times]

    def block(given: tuple[dict[str, Array], Tables]) -> Array:
        columns, tables = given
        count = CPU.parts * groups.size
        times = candidates.times(gpu_batch(base, columns), count, groups.attributes, tables)
        best = in_parts(least, times)  # as a sweep chooses: one loop of all operators would take design after design
        return sum((t * n for t, n in zip(best, repeats, strict=True)), jnp.zeros(count))

    def blocks(columns: dict[str, Array], tables: Tables) -> dict[str, Array]:
        tables = jax.tree.map(lambda x: jnp.reshape(x, (len(x) // CPU.parts, CPU.parts, *x.shape[1:])), tables)
        columns = {k: jnp.reshape(v, (-1, CPU.parts * groups.size)) for k, v in columns.items()}
        return {"ns": jnp.reshape(jax.lax.map(block, (columns, tables)), (-1, groups.size))}

    program = jax.jit(blocks, compiler_options=CPU.options)
    cache = TableCache(lambda columns: candidates.tables(columns, groups.attributes))
    return lambda columns: groups.evaluated(program, cache, columns)["ns"]


def naive_vmap(task: Task, *, total_only: bool = False) -> Callable[[Columns], Array]:
    """Return ``jit(vmap(vmap))`` of the model, or of its ``nanoseconds``, and the minimum of each operator."""
    base, kernels = task.space.base.numbers(), task.workload.kernels.as_arrays()

    def one(kernel: Any, design: dict[str, Array]) -> Array:
        if total_only:
            return task.space.model.nanoseconds(kernel, _gpu(base, design))
        timing = task.space.model(kernel, _gpu(base, design))
        return jnp.where(timing.feasible > 0, timing.nanoseconds, INFEASIBLE)

    def all_pairs(columns: dict[str, Array]) -> Array:
        times = jax.vmap(lambda design: jax.vmap(lambda kernel: one(kernel, design))(kernels))(columns)
        best = jnp.stack([jnp.min(times[:, part], axis=1) for part in task.workload.slices], axis=1)
        return best @ jnp.asarray(task.repeats)

    return jax.jit(all_pairs)


def with_numpy(task: Task, chunk: int) -> Callable[[Columns], np.ndarray]:
    """Return the task in plain NumPy, ``chunk`` designs at a time, terms of one side computed once."""
    script = task.script
    source = [f"def chunk({', '.join(_inputs(task))}):"]
    source += [f"    {line.source(NUMPY)}" for line in script.lines]
    source += [f"    return {script.outputs[0]}"]
    pairs = _compiled(source, "chunk")
    kernels = [x[None, :] for x in task.kernel_fields.values()]
    starts = [part.start for part in task.workload.slices]

    def run(columns: Columns) -> np.ndarray:
        count, found = len(next(iter(columns.values()))), []
        for i in range(0, count, chunk):
            times = pairs(*(c[i : i + chunk, None] for c in columns.values()), *kernels)
            found.append(np.minimum.reduceat(times, starts, axis=1) @ task.repeats)
        return np.concatenate(found)

    return run


def with_numba(task: Task) -> Callable[[Columns], np.ndarray]:
    """Return the task in numba as one who knows it writes it, with fast-math on all cores.

    Blocks of designs, each core's one after another; design terms once a design, kernel terms once; the pair's function
    inlined with designs innermost in a loop of constant length over two flat arrays, so that LLVM vectorises it (its
    assembly says so: benchmarks/README.md).
    """
    script, count, size = task.script, task.workload.candidate_count, NUMBA_BLOCK
    kernels = _kernel_terms(task)
    designs = list(dict(zip(_inputs(task), task.columns, strict=False)))
    passed = [name for name in script.used_by(PAIR) if name in kernels]
    held = [name for name in script.used_by(PAIR) if name in designs or name in {x.name for x in script.of(DESIGN)}]
    source = ["def program(count, starts, stops, repeats, out, terms, designs):"]
    source += [f"    for b in numba.prange(count // {size}):", f"        first = b * {size}"]
    source += [f"        held, best = np.empty({len(held) * size}, np.float32), np.empty({size}, np.float32)"]
    source += [f"        total = np.zeros({size}, np.float32)", f"        for i in range({size}):"]
    source += [f"            {name} = designs[{row}, first + i]" for row, name in enumerate(designs)]
    source += [f"            {line.source(NUMBA)}" for line in script.lines if line.side in (0, DESIGN)]
    source += [f"            held[{row * size} + i] = {name}" for row, name in enumerate(held)]
    source += ["        for o in range(len(starts)):", f"            best[:] = f32({INFEASIBLE})"]
    source += ["            for j in range(starts[o], stops[o]):"]
    source += [
        f"                {name} = terms[{row * count} + j]{_flag(kernels[name])}" for row, name in enumerate(passed)
    ]
    source += [f"                {line.source(NUMBA)}" for line in script.of(0)]
    source += [f"                for i in range({size}):"]
    flags = {line.name for line in script.of(DESIGN) if line.primitive in FLAGS}
    source += [
        f"                    {name} = held[{row * size} + i]{' > f32(0.5)' if name in flags else ''}"
        for row, name in enumerate(held)
    ]
    source += [f"                    {line.source(NUMBA)}" for line in script.of(PAIR)]
    source += [f"                    best[i] = min(best[i], {script.outputs[0]})"]
    source += [f"            for i in range({size}):", "                total[i] += best[i] * repeats[o]"]
    source += [f"        out[first : first + {size}] = total"]
    program = numba.njit(parallel=True, fastmath=True, error_model="numpy")(_compiled(source, "program"))
    starts, stops = (np.array([getattr(p, end) for p in task.workload.slices]) for end in ("start", "stop"))
    terms = np.concatenate([np.asarray(kernels[name], np.float32) for name in passed])

    def run(columns: Columns) -> np.ndarray:
        values = np.stack(list(columns.values()))
        out = np.empty(values.shape[1], np.float32)
        program(values.shape[1], starts, stops, task.repeats, out, terms, values)
        return out

    return run


def _flag(term: np.ndarray) -> str:
    """Return how a term that is true or false reads from an array of numbers."""
    return " > f32(0.5)" if term.dtype == bool else ""


def _inputs(task: Task) -> list[str]:
    return [f"d{i}" for i in range(len(task.columns))] + list(task.kernel_fields)


def _compiled(source: list[str], name: str) -> Callable:
    scope: dict[str, Any] = {"np": np, "f32": np.float32, "numba": numba, "math": math, "decay": decay}
    exec("\n".join(source), scope)
    return scope[name]


def _kernel_terms(task: Task) -> dict[str, np.ndarray]:
    """Every term of the kernels alone, as arrays (candidates,)."""
    lines: list[Line] = [line for line in task.script.lines if line.side in (0, KERNEL)]
    names = [line.name for line in lines if line.side == KERNEL]
    source = [f"def terms({', '.join(task.kernel_fields)}):", *(f"    {line.source(NUMPY)}" for line in lines)]
    source += [f"    return {{{', '.join(f'{n!r}: {n}' for n in names)}}}"]
    with np.errstate(divide="ignore", invalid="ignore"):
        found = _compiled(source, "terms")(*task.kernel_fields.values())
    return task.kernel_fields | {name: np.ascontiguousarray(x) for name, x in found.items()}


def peak() -> float:
    """Return additions and multiplications a second of the best loop of both, on all cores.

    Independent chains c <- c c + constant, which no compiler can shorten, on a block that stays in the L1, as many at
    once as the pipes' latency needs; the compiler options are ours.
    """
    steps = 64

    def loop(x: Array, chains: int) -> Array:
        parts = [x * (0.01 * k) for k in range(chains)]
        for _ in range(steps):
            parts = [part * part + (-0.5 - 0.01 * k) for k, part in enumerate(parts)]
        return sum(parts[1:], parts[0])

    found = []
    for chains in (4, 8, 12, 16):
        program = jax.jit(lambda x, n=chains: jax.lax.map(lambda row: loop(row, n), x), compiler_options=CPU.options)
        x = jnp.full((512, 2048), 0.5, jnp.float32)
        seconds = fastest(on_all_cores(program, x))
        found.append(CORES * x.size * chains * (2 * steps + 2) / seconds)
    return max(found)


def fastest(run: Callable[[], Any], repeats: int = REPEATS) -> float:
    """Return the least seconds of a few runs, after one that compiles."""
    jax.block_until_ready(run())
    seconds: list[float] = []
    while len(seconds) < repeats or sum(seconds) < SECONDS:
        start = time.perf_counter()
        jax.block_until_ready(run())
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def on_all_cores(program: Callable[[Any], Any], columns: Any) -> Callable[[], list]:
    """Return a run of a program over the columns CORES times, a thread each."""
    pool = ThreadPoolExecutor(CORES)
    return lambda: list(pool.map(lambda _: jax.block_until_ready(program(columns)), range(CORES)))


def python_loop(task: Task) -> float:
    """Return seconds a design of a loop that calls the jitted model on one design after another."""
    one = naive_vmap(task)
    rows = [{k: v[i : i + 1] for k, v in task.columns.items()} for i in range(LOOP_DESIGNS)]
    return fastest(lambda: [jax.block_until_ready(one(row)) for row in rows], 2) / LOOP_DESIGNS


def from_the_middle(space: Space, count: int) -> designs.Columns:
    """Return the axes' and links' numbers of ``count`` designs that follow each other, each of shape (designs,)."""
    return designs.with_links(space, space.at(space.size // 2 + np.arange(count)))


def swept(space: Space) -> float:
    """Return designs a second of all of a sweep's evaluation."""
    evaluator = Evaluator(space, Reasons(space), in_order=True)
    columns = from_the_middle(space, evaluator.chunk)
    return CORES * evaluator.chunk / fastest(on_all_cores(evaluator, columns), 3)


def _check(task: Task, name: str, found: Any, expected: np.ndarray) -> None:
    """End the program where an implementation's times of the first designs differ by more than 1e-5."""
    off = np.max(np.abs(np.asarray(found)[:LOOP_DESIGNS] / expected[:LOOP_DESIGNS] - 1))
    if not off < 1e-5:
        raise SystemExit(f"{task.workload.name}: {name} differs by {off:.1e}")


def rates(task: Task, everything: bool) -> dict[str, float]:
    """Return seconds a design of each implementation of the task; ``everything``: what compiles for long too."""
    small, few, chunk = ({k: v[:n] for k, v in task.columns.items()} for n in (LOOP_DESIGNS, FEW_DESIGNS, CHUNK))
    mine, vmap = ours(task), naive_vmap(task)
    expected = np.asarray(mine(chunk))
    _check(task, "vmap", vmap(task.columns), expected)  # as many as are timed: it is compiled for each number of them
    _check(task, "numpy", with_numpy(task, 64)(small), expected)
    seconds = {
        "ours": fastest(on_all_cores(mine, chunk)) / CORES / CHUNK,
        "vmap": _of_part(vmap, task, VMAP_DESIGNS[-1]),
        "python": python_loop(task),
    }
    if everything:
        loop = with_numba(task)
        _check(task, "numba", loop(small), expected)
        seconds["numba"] = fastest(lambda: loop(chunk)) / CHUNK
        seconds |= {f"vmap_{n}": _of_part(vmap, task, n) for n in VMAP_DESIGNS}
        seconds["vmap_total"] = _of_part(naive_vmap(task, total_only=True), task, VMAP_DESIGNS[-1])
    with np.errstate(divide="ignore", invalid="ignore"):
        programs = [with_numpy(task, n) for n in NUMPY_CHUNKS]
        seconds["numpy"] = min(fastest(partial(program, few), 2) for program in programs) / FEW_DESIGNS
    return seconds


def _of_part(program: Callable[[Columns], Any], task: Task, count: int) -> float:
    """Return seconds a design of a program called with the first ``count`` designs."""
    part = {k: v[:count] for k, v in task.columns.items()}
    return fastest(lambda: program(part)) / count


def main() -> None:
    """Print the figures as a table, or as JSON with --json."""
    known = parser("throughput", __doc__)
    known.add_argument("--all", action="store_true", help="numba too, and other calls of the naive program")
    options = known.parse_args()
    shipped = load_space(find_space("h100_tensor_core"))
    space = replace(shipped, model=Amali())
    columns = {name: v.astype(np.float32) for name, v in from_the_middle(space, VMAP_DESIGNS[-1]).items()}
    tasks = [Task(space, workload, columns) for workload in space.workloads]
    each = [rates(task, options.all) for task in tasks]
    seconds = {name: sum(r[name] for r in each) for name in each[0]}
    kernels = sum(w.candidate_count for w in space.workloads)
    at_once = sum(t.script.pair_operations * t.workload.candidate_count for t in tasks)
    operations = sum(t.operations for t in tasks)
    limit = peak()
    document = {
        "designs_per_second": 1 / seconds["ours"],
        "pairs_per_core_second": kernels / seconds["ours"] / CORES,
        "kernels": kernels,
        **{f"vs_{name}": seconds[name] / seconds["ours"] for name in seconds if name != "ours"},
        "operations_per_pair": operations / kernels,
        "operations_per_pair_without_groups": at_once / kernels,
        "peak_operations_per_second": limit,
        "fraction_of_bound": operations / seconds["ours"] / limit,
        "sweep_designs_per_second": swept(space),
        "calibrated_sweep_designs_per_second": swept(shipped),
    }
    if options.json:
        print(json.dumps(document))
        return
    for name, value in document.items():
        print(f"{name:28} {value:16,.2f}")


if __name__ == "__main__":
    main()
