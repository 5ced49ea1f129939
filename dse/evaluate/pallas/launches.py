"""The second stage of a space's program as one Pallas kernel: what the chosen candidates come to in each phase.

A block of designs takes the operators one after the other, each with the candidate that its design has chosen. What a
phase adds up stays in registers, and so does the clock that the power limit leaves; what metrics need is written.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton

from dse.evaluate.pallas.block_program import BlockProgram
from dse.evaluate.pallas.choice import Run, number_of, stretches
from dse.evaluate.pallas.references import whole
from dse.evaluate.partial_evaluation import Program

BLOCK = 128
"""Designs of a block: one for each thread of WARPS warps, since a phase has dozens of sums."""

WARPS = 4


class PhaseRuns(NamedTuple):
    """Runs of one kind in a phase; ``repeats``: how often the operator of each runs."""

    kind: int
    runs: list[Run]
    repeats: list[float]


class Launches:
    """What the chosen candidates come to in each phase on designs: call it inside a program.

    ``programs``: of each kind's kernels, a list of terms whose last argument says how often a kernel runs, the other
    arguments as in :class:`dse.evaluate.pallas.choice.Choice`. ``repeats``: of the operators in each phase, (phases,
    operators). ``settled``: of each phase, what its sums come to, a program of all terms' sums and those arguments.
    """

    def __init__(
        self,
        programs: Sequence[Program],
        kinds: Sequence[np.ndarray],
        slices: Sequence[slice],
        repeats: np.ndarray,
        settled: Sequence[Program],
        *,
        interpret: bool = False,
    ) -> None:
        self._blocks = [BlockProgram(program, assembly=not interpret) for program in programs]
        self._settled = [BlockProgram(program, assembly=not interpret) for program in settled]
        self._runs = phase_runs(kinds, slices, repeats)
        self._operators, self._interpret = len(slices), interpret
        self._terms = self._blocks[0].results
        needed = set[int]().union(*(program.arguments for program in self._settled))
        self._added = sorted(needed & set[int]().union(*(block.not_zero for block in self._blocks)))

    def __call__(self, columns: Sequence[Array], chosen: Array) -> list[Any]:
        """Return what the sums of each phase come to, all (designs,).

        ``columns``: the programs' arguments but the last, each (designs,), a multiple of BLOCK; ``chosen`` (operators,
        designs): what a :class:`dse.evaluate.pallas.choice.Choice` returns.
        """
        designs = len(columns[0])
        of_all = {
            "runs": [[jnp.asarray(part.runs, jnp.int32) for part in parts] for parts in self._runs],
            "repeats": [[jnp.asarray(part.repeats, jnp.float32) for part in parts] for parts in self._runs],
            "rows": [jnp.asarray(block.rows) for block in self._blocks],
        }
        block = pl.BlockSpec((BLOCK,), lambda block: (block,))
        of_operators = pl.BlockSpec((self._operators, BLOCK), lambda block: (0, block))
        results = sum(program.results for program in self._settled)
        found = pl.pallas_call(
            self._kernel,
            out_shape=[jax.ShapeDtypeStruct((designs,), jnp.float32)] * results,
            grid=(designs // BLOCK,),
            in_specs=[jax.tree.map(whole, of_all), of_operators, *[block] * len(columns)],
            out_specs=[block] * results,
            compiler_params=triton.CompilerParams(num_warps=WARPS),
            interpret=self._interpret,
            name="chosen_launches",
        )(of_all, chosen, *columns)
        each = iter(found)
        return [program.result([next(each) for _ in range(program.results)]) for program in self._settled]

    def _kernel(self, given: Mapping[str, Sequence[Any]], chosen: Any, *refs: Any) -> None:
        """The kernel of a block: references to what :meth:`__call__` gives, and to the results."""
        count = len(refs) - sum(program.results for program in self._settled)
        columns, results = [column[:] for column in refs[:count]], iter(refs[count:])
        for phase, settled in enumerate(self._settled):
            sums = self._sums(
                [given[name][phase] for name in ("runs", "repeats")], given["rows"], phase, chosen, columns
            )
            whole = [jnp.zeros((BLOCK,), jnp.float32)] * self._terms
            for term, value in zip(self._added, sums, strict=True):
                whole[term] = value
            designs = settled.of_designs(dict(enumerate([*whole, *columns])))
            for value in jax.tree.leaves(settled.of_pairs(designs, [], [])):
                next(results)[:] = jnp.broadcast_to(value, (BLOCK,))

    def _sums(
        self, runs: Sequence[Any], rows: Sequence[Any], phase: int, chosen: Any, columns: Sequence[Array]
    ) -> list[Array]:
        """Return what the chosen candidates of a phase add up to, the terms that are not 0 for all kernels."""
        sums = [jnp.zeros((BLOCK,), jnp.float32)] * len(self._added)
        for part, mine, repeats in zip(self._runs[phase], *runs, strict=True):
            block = self._blocks[part.kind]
            designs = block.of_designs(dict(enumerate(columns)))
            terms = partial(_terms, block, designs, rows[part.kind], len(columns), self._added)
            sums = lax.fori_loop(0, len(part.runs), partial(_run, terms, mine, repeats, chosen), sums)
        return sums


def phase_runs(kinds: Sequence[np.ndarray], slices: Sequence[slice], repeats: np.ndarray) -> list[list[PhaseRuns]]:
    """Return the runs of the operators of each phase by kind."""
    found = []
    for often in repeats:
        parts: dict[int, list[Run]] = {}
        for stretch in stretches(kinds, slices):
            parts.setdefault(stretch.kind, []).extend(run for run in stretch.runs if often[run.operator])
        found.append(
            [
                PhaseRuns(kind, runs, [float(often[run.operator]) for run in runs])
                for kind, runs in parts.items()
                if runs
            ]
        )
    return found


def _terms(
    block: BlockProgram,
    designs: Mapping[int, Array],
    rows: Any,
    argument: int,
    added: Sequence[int],
    kernel: Array,
    often: Array,
) -> list[Array]:
    """Return the terms ``added`` of each design's ``kernel``, all (BLOCK,); how ``often`` it runs is the last
    ``argument``."""
    terms = [triton.load(rows.at[kernel, term]) for term in range(block.terms[0])]
    found = block.of_pairs({**designs, argument: often}, terms, [])
    return [jnp.broadcast_to(found[term], (BLOCK,)) for term in added]


def _run(terms: Any, runs: Any, repeats: Any, chosen: Any, number: Array, sums: list[Array]) -> list[Array]:
    """Add what the candidates of a run do on the designs that have chosen one of them."""
    operator, first, end, of_all = (runs[number, field] for field in range(4))
    place = number_of(chosen[operator, :]) - of_all + first
    mine = jnp.logical_and(place >= first, place < end)
    often = jnp.where(mine, repeats[number], 0.0)
    return [x + y for x, y in zip(sums, terms(jnp.clip(place, first, end - 1), often), strict=True)]
