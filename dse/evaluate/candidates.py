"""Which candidate runs on each design: times of all, the fastest of each operator, and what it costs.

The models are written for one kernel on one GPU. Here they are mapped over (designs, kernels) with ``jax.vmap``, which
computes a term of one side once for that side.
"""

from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from dse.base.numerics import INFEASIBLE
from dse.evaluate.partial_evaluation import Program, Side
from dse.evaluate.recorded import evaluate_recorded
from dse.hardware.gpu import Gpu
from dse.power.activity import activity
from dse.power.board import BoardPower
from dse.power.models import PowerChoice
from dse.power.power import Power
from dse.timing.timing import Timing, TimingModel
from dse.workload.kernel import Kernel
from dse.workload.workload import Workload

LANES = 16
"""32-bit numbers in a vector of the widest CPUs."""


class Models(NamedTuple):
    """The models that judge a kernel on a GPU."""

    timing: TimingModel
    power: PowerChoice


def told(model: TimingModel, workload: Workload) -> tuple[TimingModel, Workload]:
    """Return a model and a workload with the same times, in which what the model knows of a kernel on any GPU stands in
    the kernels, not in the program of every design."""
    if workload.recorded:
        return model, workload
    model, kernels = model.told(workload.kernels)
    return model, workload.with_kernels(kernels)


def float_type() -> type:
    """Return the float type of a batch: 32 bits, unless JAX is set to 64."""
    return np.float64 if jax.config.jax_enable_x64 else np.float32  # pyright: ignore[reportAttributeAccessIssue]


def time_candidates(model: TimingModel, workload: Workload, gpus: Gpu, axes: Gpu, count: int) -> list[Array]:
    """Return the time [ns] of every candidate on every design; INFEASIBLE where it cannot run.

    An array (candidates, designs) for each operator: designs are minor, so that choosing runs along them in whole
    vectors. Only the total leaves the pair's program, so that it fuses to one loop: the stack is computed again for
    the few candidates that are chosen. Kernels of a kind (:func:`kinds`) have a program of their own, from which what
    they share is folded away. No derivative passes: a choice has none.
    """
    leaves, tree = jax.tree.flatten(workload.kernels)
    values, varied = gpus.attributes(), [name for name, axis in axes.attributes().items() if axis is not None]
    design = [Side.DESIGN if name in varied else value for name, value in values.items()]

    def time(*numbers: Array) -> Array:
        kernel = jax.tree.unflatten(tree, numbers[: len(leaves)])
        return model.nanoseconds(kernel, Gpu.from_attributes(dict(zip(values, numbers[len(leaves) :], strict=True))))

    every = kinds(workload.kernels)
    programs = [Program(time, [*(x[kind] for x in leaves), *design], len(kind), True) for kind in every]
    columns = [lax.stop_gradient(jnp.broadcast_to(values[name], (count,))) for name in varied]
    times = _in_parts(lambda designs: [program(designs, len(designs[0])) for program in programs], columns)
    return [_rows(every, times, range(p.start, p.stop)) for p in workload.slices]


PARTS = 2
"""Parts of a block of designs that a loop takes one after the other: the fewest that make it a loop."""


def _in_parts(function: Callable[[list[Array]], list[Array]], given: list[Array]) -> list[Array]:
    """Return ``function(given)`` of arrays (..., designs), some of the designs after the others.

    What a loop returns is there once; a compiler would compute it anew, as far as that is cheap, wherever it is used.
    """
    count = given[0].shape[-1]
    size = count // PARTS if count % PARTS == 0 else count

    def cut(start: Array) -> list[Array]:
        return function([lax.dynamic_slice_in_dim(x, start, size, -1) for x in given])

    def part(number: Array, whole: list[Array]) -> list[Array]:
        start = number * size
        return [lax.dynamic_update_slice_in_dim(w, x, start, -1) for w, x in zip(whole, cut(start), strict=True)]

    shapes = jax.eval_shape(cut, 0)
    return lax.fori_loop(0, count // size, part, [jnp.zeros((*x.shape[:-1], count), x.dtype) for x in shapes])


def _rows(every: list[np.ndarray], times: list[Array], wanted: range) -> Array:
    """Return the rows of some candidates that stand together, each from where its kind's are."""
    found = []
    for kind, values in zip(every, times, strict=True):
        places = np.flatnonzero((kind >= wanted.start) & (kind < wanted.stop))
        found += [(int(kind[run[0]]), values[run[0] : run[-1] + 1]) for run in _runs(places, kind)]
    parts = [values for _, values in sorted(found, key=lambda entry: entry[0])]
    return parts[0] if len(parts) == 1 else jnp.concatenate(parts)


def _runs(places: np.ndarray, kind: np.ndarray) -> list[np.ndarray]:
    """Return the places of a kind's candidates in stretches of candidates that follow each other."""
    breaks = np.flatnonzero(np.diff(kind[places]) > 1) + 1
    return [run for run in np.split(places, breaks) if len(run)]


def kinds(kernels: Kernel) -> list[np.ndarray]:
    """Return the numbers of the candidates of each kind: kernels of one implementation, in whose records the same
    fields are 0 in start, loop and end, with or without tensor instructions, in waves or of unequal length."""
    marks = [kernels.implementation, kernels.tensor_dtype]
    marks += [np.asarray(x) != 0 for x in (kernels.uses_tensor, kernels.pipelined, kernels.longest)]
    _, kind = np.unique(np.stack(np.broadcast_arrays(*marks), axis=1), axis=0, return_inverse=True)
    return [np.flatnonzero(kind.reshape(-1) == k) for k in range(int(kind.max()) + 1)]


def choose(workload: Workload, nanoseconds: Sequence[Array]) -> tuple[Array, Array]:
    """Return the chosen candidate of every operator and whether one can run, arrays of shape (designs, operators).

    On each design the fastest candidate is chosen, as a tuned library would, the first of those that EQUAL cannot tell
    apart; candidates count through the workload. Row after row, in whole vectors of designs, takes a fraction of an
    ``argmin``'s time.
    """

    def part(times: list[Array]) -> list[Array]:
        both = [_fastest(of_one, float(p.start)) for of_one, p in zip(times, workload.slices, strict=True)]
        return [jnp.stack(found) for found in zip(*both, strict=True)]

    chosen, best = _in_parts(part, list(nanoseconds))
    return chosen.T.astype(jnp.int32), jnp.where(best.T < INFEASIBLE, 1.0, 0.0)


EQUAL = 4e-6
"""Share of a time by which candidates must differ to be told apart: where bytes bind, many take as long, and rounding
must not choose among them."""


UNROLLED = 96
"""Rows that are compared one by one; of more a program takes longer to compile than to run."""


def _fastest(times: Array, first: float) -> tuple[Array, Array]:
    """Return the number of the fastest row, counted from ``first``, and its time.

    :func:`dse.workload.operator.fastest` inside a program, of one operator whose candidates are rows.
    """
    if len(times) > UNROLLED:
        best = jnp.min(times, axis=0)
        number = first + jnp.arange(len(times), dtype=times.dtype)[:, None]
        return jnp.min(jnp.where(times <= best * (1.0 + EQUAL), number, first + len(times) - 1), axis=0), best
    best = reduce(jnp.minimum, list(times))
    place = jnp.full(best.shape, first + len(times) - 1)
    for row in range(len(times) - 2, -1, -1):
        place = jnp.where(times[row] <= best * (1.0 + EQUAL), first + row, place)
    return place, best


def judge_kernel(model: TimingModel, power: BoardPower, kernel: Kernel, gpu: Gpu) -> tuple[Timing, Power]:
    """Return timing and power, if nothing limits it, of one kernel on one GPU."""
    timing = model(kernel, gpu)
    return timing, power.uncapped(activity(kernel, timing, gpu), gpu)


def judge_chosen(
    models: Models, workload: Workload, chosen: Array, gpus: Gpu, axes: Gpu, *, simplified: bool = False
) -> tuple[Timing, Power]:
    """Return timing and power, if nothing limits it, of the ``chosen`` candidates: arrays (designs, operators).

    ``chosen`` may repeat the last operator (:func:`in_whole_vectors`). ``simplified``: as a program whose results
    differ by rounding (:mod:`dse.evaluate.partial_evaluation`), several times faster; derivatives pass through the
    other.
    """
    judge = partial(judge_kernel, models.timing, models.power.model)
    kernels = _picked(workload, chosen)
    if simplified:
        return _judged_simply(judge, kernels, chosen.shape, gpus, axes)
    kernels = jax.tree.map(jnp.asarray, jax.lax.optimization_barrier(kernels))
    kernel_axes = jax.tree.map(lambda x: 0 if jnp.ndim(x) else None, kernels)
    design_axes = jax.tree.map(lambda x: 0 if jnp.ndim(x) == 2 else None, kernels)
    on_kernels = jax.vmap(judge, in_axes=(kernel_axes, None), axis_size=chosen.shape[1])
    judged = jax.vmap(on_kernels, in_axes=(design_axes, axes), axis_size=chosen.shape[0])(kernels, gpus)
    return jax.tree.map(lambda x: jnp.broadcast_to(x, chosen.shape), judged)


def _judged_simply(judge: Callable[..., Any], kernels: Kernel, shape: tuple[int, ...], gpus: Gpu, axes: Gpu) -> Any:
    """Return ``judge`` of all pairs, (designs, operators), with what is known of them folded away."""
    leaves, tree = jax.tree.flatten(kernels)
    values = gpus.attributes()
    on_design = [axis is not None for axis in axes.attributes().values()]
    given = [Side.PAIR if np.ndim(x) == 2 else x for x in leaves]
    given += [Side.DESIGN if v else value for value, v in zip(values.values(), on_design, strict=True)]

    def of_numbers(*numbers: Array) -> Any:
        gpu = Gpu.from_attributes(dict(zip(values, numbers[len(leaves) :], strict=True)))
        return judge(jax.tree.unflatten(tree, numbers[: len(leaves)]), gpu)

    unknown = [x for x in leaves if np.ndim(x) == 2]
    unknown += [value for value, v in zip(values.values(), on_design, strict=True) if v]
    return Program(of_numbers, given, shape[1], False)(unknown, shape[0])


def _picked(workload: Workload, chosen: Array) -> Kernel:
    """Return the chosen kernels: fields of shape (designs, operators), or less where they do not depend on the choice.

    Gathering a field costs as much as ten terms of a model, so what the candidates of an operator share is not
    gathered, (operators,), nor what all kernels share, ().
    """
    starts = np.pad(workload.starts, (0, chosen.shape[1] - len(workload.operators)), mode="edge")

    def pick(values: np.ndarray) -> Any:
        values = np.asarray(values, float_type())
        if np.all(values == values[0]):
            return values[0]
        if all(np.all(values[part] == values[part.start]) for part in workload.slices):
            return values[starts]
        return jnp.asarray(values).at[chosen].get(mode="promise_in_bounds")

    return jax.tree.map(pick, workload.kernels)


def in_whole_vectors(chosen: Array) -> Array:
    """Return the choice with its last operator repeated until their number is a multiple of LANES.

    Sums over the operators of a design then run in whole vectors; who adds up must give the repeated ones no weight.
    """
    return jnp.pad(chosen, ((0, 0), (0, -chosen.shape[1] % LANES)), mode="edge")


def judge_workload(
    models: Models, workload: Workload, gpus: Gpu, axes: Gpu, count: int, *, simplified: bool = False
) -> tuple[Timing, Power, Array]:
    """Return timing, power and whether it runs of every operator, arrays of shape (designs, operators).

    Timing and power of generated kernels repeat the last operator to whole vectors (:func:`in_whole_vectors`).
    """
    if not workload.recorded:
        chosen, can_run = choose(workload, time_candidates(models.timing, workload, gpus, axes, count))
        judged = judge_chosen(models, workload, in_whole_vectors(chosen), gpus, axes, simplified=simplified)
        return *judged, can_run
    judged = [evaluate_recorded(models.timing, models.power.model, trace, gpus) for trace in workload.recorded]
    timing, power = jax.tree.map(lambda *t: jnp.stack([jnp.broadcast_to(x, (count,)) for x in t], axis=1), *judged)
    return timing, power, timing.feasible
