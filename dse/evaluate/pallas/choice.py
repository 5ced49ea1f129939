"""The first stage of a space's program as one Pallas kernel: the fastest candidate of every operator on every design.

A block of designs takes the candidates one after the other; what is fastest so far stays in registers. The lines are
those of :class:`dse.evaluate.partial_evaluation.Program`, so that XLA's program is the reference to the last rounding.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton

from dse.base.numerics import INFEASIBLE
from dse.evaluate.fastest import EQUAL, together
from dse.evaluate.pallas.block_program import BlockProgram
from dse.evaluate.pallas.references import gathered, whole
from dse.evaluate.partial_evaluation import Program
from dse.workload.workload import Workload

BLOCK = 256
"""Designs of a block: two for each thread of WARPS warps."""

WARPS = 4

SLOWER = 3e38
"""A time that every candidate undercuts, one that cannot run too."""

MOST_NARROW = 2**15
"""Most candidates whose numbers are written in 16 bits."""


class Run(NamedTuple):
    """Candidates of an operator's form that follow each other and are of one kind: ``first`` to ``end`` count within
    it; ``number``: of the first among all candidates; ``begins``: 1 where they are the operator's first."""

    operator: int
    first: int
    end: int
    number: int
    begins: int


class Stretch(NamedTuple):
    """Runs of one kind that a kernel takes after each other."""

    kind: int
    runs: list[Run]


def stretches(kinds: Sequence[np.ndarray], slices: Sequence[slice]) -> list[Stretch]:
    """Return the runs of all operators by kind, those of an operator in order: of equal candidates the first runs."""
    kind, place = np.empty(slices[-1].stop, int), np.empty(slices[-1].stop, int)
    for number, members in enumerate(kinds):
        kind[members], place[members] = number, np.arange(len(members))
    left = []
    for operator, part in enumerate(slices):
        breaks = np.flatnonzero(np.diff(kind[part])) + 1
        runs = np.split(np.arange(part.start, part.stop), breaks)
        left.append(
            [Run(operator, int(place[r[0]]), int(place[r[-1]]) + 1, int(r[0]), int(r is runs[0])) for r in runs]
        )
    found = []
    while any(left):
        heads = [int(kind[runs[0].number]) for runs in left if runs]
        most = int(np.bincount(heads).argmax())
        taken = [runs.pop(0) for runs in left if runs and kind[runs[0].number] == most]
        found.append(Stretch(most, taken))
    return found


def which_run(chosen: Array) -> Array:
    """Return 1 where a chosen candidate can run, else 0: one that cannot is written as the number's complement."""
    return jnp.where(chosen < 0, 0.0, 1.0)


def _written(number: Array, least: Array) -> Array:
    """Return a candidate as it is written; ``least``: its time."""
    return jnp.where(least < INFEASIBLE * (1.0 - 2.0 * EQUAL), number, -1 - number)


def number_of(chosen: Array) -> Array:
    """Return the candidates that :class:`Choice` returns, counted through the workload."""
    wide = chosen.astype(jnp.int32)
    return jnp.where(wide < 0, -1 - wide, wide)


KERNEL, NUMBER, OPERATOR, BEGINS, NEXT, ROW = range(6)
"""Columns of a step: the candidate among its kind's kernels and among all, its operator; whether it is the operator's
first; where it ends a run, the step that follows, else 0; the row in which the operator's least time is kept."""


def kept_times(every: Sequence[Stretch], compared: Sequence[int] = ()) -> dict[int, int]:
    """Return the row in which the least time of an operator's form is kept: of those with several runs, and those that
    are ``compared`` with others afterwards; row 0 is nobody's."""
    runs = Counter(run.operator for stretch in every for run in stretch.runs)
    return {part: row for row, part in enumerate([x for x in runs if runs[x] > 1 or x in compared], 1)}


def steps_of(runs: Sequence[Run], rows: Mapping[int, int]) -> np.ndarray:
    """Return the candidates of runs, one after the other, and a step that none takes, (candidates + 1, 6).

    One loop takes all of them, as often as is known when the program is built. ``rows``: :func:`kept_times`.
    """
    steps = [
        (kernel, run.number + kernel - run.first, run.operator, run.begins, 0, rows.get(run.operator, 0))
        for run in runs
        for kernel in range(run.first, run.end)
    ]
    found = np.array([*steps, (0, 0, 0, 1, 0, 0)], np.int32)
    ends = np.cumsum([run.end - run.first for run in runs])
    found[ends - 1, NEXT] = ends
    return found


class Choice:
    """The fastest candidates on designs: call it inside a program.

    ``programs``: the times of each kind's candidates; ``kinds``: where these stand among all of the ``workload``.
    ``common``: arguments of the programs that groups have in common (bits). ``interpret``: by plain operations, without
    a GPU.
    """

    def __init__(
        self,
        programs: Sequence[Program],
        kinds: Sequence[np.ndarray],
        workload: Workload,
        common: int = 0,
        *,
        interpret: bool = False,
    ) -> None:
        self._blocks = [BlockProgram(program, common, assembly=not interpret) for program in programs]
        self._stretches = stretches(kinds, workload.parts)
        self._workload, self._parts, self._interpret = workload, len(workload.parts), interpret
        forms = [len(operator) for choice in workload.choices for operator in choice for _ in operator]
        self._kept = kept_times(self._stretches, [part for part, count in enumerate(forms) if count > 1])
        self._narrow = jnp.int16 if workload.parts[-1].stop < MOST_NARROW else jnp.int32

    def __call__(self, columns: Sequence[Array], group: Array | None = None, tables: Sequence[Array] = ()) -> Array:
        """Return the candidate of every operator, (operators, designs): :func:`number_of` and :func:`which_run` tell
        them.

        ``columns``: the programs' arguments, each (designs,), a multiple of BLOCK. ``group``: each design's, (designs,)
        among ``tables``: of each kind, (groups, terms, kernels).
        """
        designs = len(columns[0])
        of_designs = {"columns": list(columns), "group": [] if group is None else [group]}
        of_all = {
            "steps": [jnp.asarray(steps_of(stretch.runs, self._kept)) for stretch in self._stretches],
            "rows": [jnp.asarray(block.rows) for block in self._blocks],
            "tables": [table if table.shape[1] else jnp.zeros((1, 1, 1)) for table in tables],
        }
        block = pl.BlockSpec((BLOCK,), lambda block: (block,))
        specs = jax.tree.map(lambda _: block, of_designs) | jax.tree.map(whole, of_all)
        shapes = ((1 + len(self._kept), jnp.float32), (self._parts, self._narrow))
        times, chosen = pl.pallas_call(
            self._kernel,
            out_shape=[jax.ShapeDtypeStruct((rows, designs), dtype) for rows, dtype in shapes],
            grid=(designs // BLOCK,),
            in_specs=[specs],
            out_specs=[pl.BlockSpec((rows, BLOCK), lambda block: (0, block)) for rows, _ in shapes],
            compiler_params=triton.CompilerParams(num_warps=WARPS),
            interpret=self._interpret,
            name="fastest_candidates",
        )(of_designs | of_all)
        return chosen if self._parts == len(self._workload.operators) else self._together(chosen, times)

    def _together(self, chosen: Array, times: Array) -> Array:
        """Return the candidate of every operator, given those of each of its forms; ``times``: those that are kept."""
        least = [
            times[self._kept[part]] if part in self._kept else jnp.where(can_run > 0, 0.0, INFEASIBLE)
            for part, can_run in enumerate(which_run(chosen))
        ]
        places, least = together(self._workload, number_of(chosen), least)
        return jnp.stack([_written(*one).astype(self._narrow) for one in zip(places, least, strict=True)])

    def _kernel(self, given: Mapping[str, Sequence[Any]], threshold: Any, chosen: Any) -> None:
        """The kernel of a block: references to what :meth:`__call__` gives, to times that are kept, and the result."""
        columns = {place: column[:] for place, column in enumerate(given["columns"])}
        groups = [group[:] for group in given["group"]]
        for stretch, steps in zip(self._stretches, given["steps"], strict=True):
            block, rows = self._blocks[stretch.kind], given["rows"][stretch.kind]
            tables = given["tables"][stretch.kind : stretch.kind + 1]
            time = partial(_time, block, block.of_designs(columns), rows, groups, tables)
            step = partial(_step, time, steps, threshold, chosen)
            lax.fori_loop(0, steps.shape[0] - 1, step, _begin(steps, 0, threshold, chosen))


def _time(
    block: BlockProgram,
    designs: Mapping[int, Array],
    rows: Any,
    groups: Sequence[Array],
    tables: Sequence[Any],
    kernel: Array,
) -> Array:
    """Return the time [ns] of a kernel on a block of designs, (BLOCK,)."""
    of_kernel, of_group = block.terms
    terms = [rows[kernel, term] for term in range(of_kernel)]
    return jnp.broadcast_to(block.of_pairs(designs, terms, gathered(tables, groups, kernel, of_group)), (BLOCK,))


Best = tuple[Array, Array]
"""The time that a candidate must undercut, and the number of the fastest so far, both (BLOCK,)."""


def _step(time: Callable[[Array], Array], steps: Any, threshold: Any, chosen: Any, place: Array, best: Best) -> Best:
    """Compare a candidate with the fastest so far; what an operator's last one leaves is the result."""
    nanoseconds = time(steps[place, KERNEL])
    faster = nanoseconds < best[0]
    least = jnp.where(faster, nanoseconds * (1.0 - EQUAL), best[0])
    best = least, jnp.where(faster, steps[place, NUMBER], best[1])

    def end(best: Best) -> Best:
        least, number = best
        threshold[steps[place, ROW], :] = least
        chosen[steps[place, OPERATOR], :] = _written(number, least).astype(chosen.dtype)
        return _begin(steps, steps[place, NEXT], threshold, chosen)

    return lax.cond(steps[place, NEXT] > 0, end, lambda best: best, best)


def _begin(steps: Any, place: Array | int, threshold: Any, chosen: Any) -> Best:
    """Return what is fastest before a candidate that is the first of a run."""
    least = jnp.where(steps[place, BEGINS] > 0, SLOWER, threshold[steps[place, ROW], :])
    return least, number_of(chosen[steps[place, OPERATOR], :])
