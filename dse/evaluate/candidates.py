"""Candidates in a space's own program: the times of all on a block of designs, and what the chosen ones do there.

The models are written for one kernel on one GPU. Here they are mapped over designs and kernels, a term of one side
once for that side, with what is known of the kernels and of the fixed attributes folded away
(:mod:`dse.evaluate.partial_evaluation`).
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from dse.evaluate import steps
from dse.evaluate.batching import float_type, in_parts, over_arrays, with_kernel_axis
from dse.evaluate.lines import Operations, Side
from dse.evaluate.partial_evaluation import Program
from dse.evaluate.platform import traced_platform
from dse.hardware.gpu import ATTRIBUTES, Gpu
from dse.power.power import Power, PowerModel
from dse.power.sequence import launch_terms
from dse.timing.timing import Timing, TimingModel
from dse.workload.kernel import Kernel
from dse.workload.workload import Workload

if TYPE_CHECKING:
    from dse.evaluate.pallas.choice import Choice
    from dse.evaluate.pallas.launches import Launches

Tables = Sequence[Any]
"""The terms of kernels and groups that pairs read, by kind of kernels: arrays (groups, terms, kernels), or of one
group."""


class Tabulated(NamedTuple):
    """Candidates on designs in groups that have attributes in common: ``tables``, and which of them each group has,
    ``places`` (groups,); None: the groups in their order."""

    candidates: "Candidates"
    common: Sequence[str]
    tables: Tables
    places: Array | None = None

    @property
    def of_groups(self) -> Tables:
        """The groups' tables, in their order."""
        if self.places is None:
            return self.tables
        return [jnp.asarray(x).at[self.places].get(mode="promise_in_bounds") for x in self.tables]


class Candidates:
    """The candidates of a workload on designs, with some attributes varied: those that are arrays in ``gpus``.

    Kernels of a kind (:func:`kinds`) have a program of their own, from which what they share is folded away. Designs
    may come in groups that have some of the attributes in common (:mod:`dse.evaluate.groups`).
    """

    def __init__(self, model: TimingModel, workload: Workload, gpus: Gpu) -> None:
        self._workload, self._every = workload, kinds(workload.kernels)
        self._model, self._gpus = model, gpus
        order = jax.tree.leaves(Gpu.from_attributes({name: place for place, name in enumerate(ATTRIBUTES)}))
        self._names = [ATTRIBUTES[place] for place, x in zip(order, jax.tree.leaves(gpus), strict=True) if np.ndim(x)]
        time = _of_scalars(model.nanoseconds, workload.kernels, gpus)  # one function: it is traced once for all kinds
        self._programs = [_program(time, _taken(workload.kernels, k), gpus, len(k), True) for k in self._every]

    def times(self, gpus: Gpu, count: int, common: Sequence[str] = (), tables: Tables = ()) -> list[Array]:
        """Return the time [ns] of every candidate on ``count`` designs; INFEASIBLE where it cannot run.

        An array (candidates, designs) for each operator: designs are minor, so that choosing runs along them in whole
        vectors. Only the total leaves the pair's program, so that it fuses to one loop: the stack is computed again for
        the few candidates that are chosen. No derivative passes: a choice has none. Where the designs are
        groups that have the attributes ``common``: with their ``tables`` (:meth:`tables`).
        """
        columns = self.columns(gpus, count)
        bits = self._bits(common)

        def part(designs: list[Array], of_group: Tables) -> list[Array]:
            given = [x[0] if bits >> place & 1 else x for place, x in enumerate(designs)]
            each = zip(self._programs, of_group, strict=True)
            return [program(given, len(designs[0]), table, bits) for program, table in each]

        times = in_parts(part, columns, tables or [None] * len(self._programs))
        return [_rows(self._every, times, range(p.start, p.stop)) for p in self._workload.slices]

    def columns(self, gpus: Gpu, count: int) -> list[Array]:
        """Return the attributes that vary, each (designs,)."""
        return [lax.stop_gradient(jnp.broadcast_to(x, (count,))) for x in jax.tree.leaves(gpus) if np.ndim(x)]

    def choice(self, common: Sequence[str] = (), *, interpret: bool = False) -> "Choice":
        """Return what chooses among the candidates as one kernel of a GPU (:mod:`dse.evaluate.pallas.choice`), called
        with :meth:`columns`.

        ``common``: attributes that groups have in common; ``interpret``: by plain operations, without a GPU.
        """
        from dse.evaluate.pallas.choice import Choice  # for GPUs alone: a second of imports

        return Choice(self._programs, self._every, self._workload, self._bits(common), interpret=interpret)

    def launches(
        self, power: PowerModel, settled: Sequence[Callable[[list[Array], Gpu], Any]], *, interpret: bool = False
    ) -> "Launches":
        """Return what the chosen candidates come to in each phase as one kernel of a GPU, called with :meth:`columns`
        too.

        ``settled``: of each phase, what the sums of :func:`dse.power.sequence.launch_terms` come to on a GPU.
        """
        from dse.evaluate.pallas.launches import Launches

        def terms(kernel: Kernel, gpu: Gpu, often: Array) -> list[Array]:
            return launch_terms(*steps.evaluate_kernel(self._model, power, kernel, gpu), often)

        workload = self._workload
        scalars = _of_scalars(terms, workload.kernels, self._gpus)
        each = [_taken(workload.kernels, kind) for kind in self._every]
        programs = [_program(scalars, kernels, self._gpus, len(kernels.ctas), True, Side.PAIR) for kernels in each]
        repeats = np.stack([workload.phase_repeats(phase.name) for phase in workload.phases])
        ends = [_of_sums(function, programs[0].results, self._gpus) for function in settled]
        return Launches(programs, self._every, workload.slices, repeats, ends, interpret=interpret)

    @property
    def names(self) -> list[str]:
        """The attributes that vary."""
        return self._names

    def tables(self, columns: Mapping[str, np.ndarray], common: Sequence[str]) -> Tables:
        """Return the terms of a kernel and a group, for each kind an array (groups, terms, kernels), in NumPy.

        ``columns``: attributes of groups, (groups,), those ``common`` at least.
        """
        given = [columns[name] if name in common else None for name in self._names]
        return [program.table(given, self._bits(common)) for program in self._programs]

    def operations(self, attributes: Sequence[str]) -> Operations:
        """Return the operations of a design where these are common: of all pairs, and of all kernels in a table."""
        each = [program.operations(self._bits(attributes)) for program in self._programs]
        pairs, tabulated, columns = zip(*each, strict=True)
        return Operations(sum(pairs, Counter()), sum(tabulated, Counter()), sum(columns))

    def _bits(self, attributes: Sequence[str]) -> int:
        return sum(1 << place for place, name in enumerate(self._names) if name in attributes)


def _of_scalars(function: Callable[..., Any], kernels: Kernel, gpus: Gpu) -> Callable[..., Any]:
    """Return a function of two records, and of numbers, as one of scalars, in the order of the leaves."""
    leaves, tree = jax.tree.flatten((kernels, gpus))
    return lambda *x: function(*jax.tree.unflatten(tree, x[: len(leaves)]), *x[len(leaves) :])


def _program(
    function: Callable[..., Any], kernels: Kernel, gpus: Gpu, count: int, designs_minor: bool, *more: Side
) -> Program:
    """Return a program of ``count`` kernels on designs, called with the arrays of pairs and of designs among both.

    ``function``: of the scalars of both records (:func:`_of_scalars`); ``more``: further arguments of it.
    """
    leaves = jax.tree.leaves((kernels, gpus))
    first = len(jax.tree.leaves(kernels))
    varied = [Side.PAIR] * first + [Side.DESIGN] * (len(leaves) - first)
    arrays = [2] * first + [1] * (len(leaves) - first)
    given = [side if np.ndim(x) == axes else x for x, side, axes in zip(leaves, varied, arrays, strict=True)]
    return Program(function, [*given, *more], count, designs_minor)


def _of_sums(function: Callable[[list[Array], Gpu], Any], count: int, gpus: Gpu) -> Program:
    """Return a program of ``count`` sums of a design and of what varies of it."""
    leaves, tree = jax.tree.flatten(gpus)
    given = [Side.DESIGN] * count + [Side.DESIGN if np.ndim(x) else x for x in leaves]
    return Program(lambda *x: function([*x[:count]], jax.tree.unflatten(tree, x[count:])), given, 1, True)


def _taken(kernels: Kernel, places: np.ndarray) -> Kernel:
    return jax.tree.map(lambda x: x[places], kernels)


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


def chosen_launches(
    model: TimingModel, power: PowerModel, workload: Workload, chosen: Array, gpus: Gpu, *, simplified: bool
) -> tuple[Timing, Power]:
    """Return timing and power, if nothing limits it, of the ``chosen`` candidates (designs, operators) on designs.

    The last operator is repeated until their number is a multiple of the platform's lanes: sums over the operators of a
    design then run in whole vectors; who adds up must give the repeated ones no weight. ``simplified``: as a program
    whose results differ by rounding, several times faster; derivatives pass through the other.
    """
    chosen = jnp.pad(chosen, ((0, 0), (0, -chosen.shape[1] % traced_platform().lanes)), mode="edge")
    kernels = _picked(workload, chosen)
    evaluate = partial(steps.evaluate_kernel, model, power)
    if not simplified:
        return over_arrays(evaluate, lax.optimization_barrier(kernels), with_kernel_axis(gpus))
    given = [x for x in jax.tree.leaves(kernels) if np.ndim(x) == 2] + [x for x in jax.tree.leaves(gpus) if np.ndim(x)]
    program = _program(_of_scalars(evaluate, kernels, gpus), kernels, gpus, chosen.shape[1], False)
    return program(given, chosen.shape[0])


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
