"""The second stage of a space's program as one Pallas kernel: what the chosen candidates add up to in each phase.

A block of designs takes the operators one after the other, each with the candidate that its design has chosen. What a
phase adds up stays in registers; the power limit, and all that follows from the sums, is XLA's.
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
from dse.evaluate.pallas.choice import Run, stretches
from dse.evaluate.pallas.references import whole
from dse.evaluate.partial_evaluation import Program

BLOCK = 128
"""Designs of a block: one for each thread of WARPS warps, since a phase has dozens of sums."""

WARPS = 4


class PhaseRuns(NamedTuple):
    """Runs of one kind in a phase; ``repeats``: how often the operator of each runs."""

    kind: int
    phase: int
    runs: list[Run]
    repeats: list[float]


class Launches:
    """The sums of what the chosen candidates do on designs: call it inside a program.

    ``programs``: of each kind's kernels, a list of terms whose last argument says how often a kernel runs, the other
    arguments as in :class:`dse.evaluate.pallas.choice.Choice`. ``repeats``: of the operators in each phase, (phases,
    operators).
    """

    def __init__(
        self,
        programs: Sequence[Program],
        kinds: Sequence[np.ndarray],
        slices: Sequence[slice],
        repeats: np.ndarray,
        *,
        interpret: bool = False,
    ) -> None:
        self._blocks = [BlockProgram(program, assembly=not interpret) for program in programs]
        self._runs = phase_runs(kinds, slices, repeats)
        self._phases, self._operators, self._interpret = len(repeats), len(slices), interpret
        self._terms = self._blocks[0].results

    def __call__(self, columns: Sequence[Array], chosen: Array) -> list[list[Array]]:
        """Return the sums of each phase, in the order of the programs' results, each (designs,).

        ``columns``: the programs' arguments but the last, each (designs,), a multiple of BLOCK; ``chosen`` (operators,
        designs): candidates, counted through the workload.
        """
        designs = len(columns[0])
        of_all = {
            "runs": [jnp.asarray(part.runs, jnp.int32) for part in self._runs],
            "repeats": [jnp.asarray(part.repeats, jnp.float32) for part in self._runs],
            "rows": [jnp.asarray(block.rows) for block in self._blocks],
        }
        block = pl.BlockSpec((BLOCK,), lambda block: (block,))
        of_operators = pl.BlockSpec((self._operators, BLOCK), lambda block: (0, block))
        sums = pl.pallas_call(
            self._kernel,
            out_shape=[jax.ShapeDtypeStruct((designs,), jnp.float32)] * (self._phases * self._terms),
            grid=(designs // BLOCK,),
            in_specs=[jax.tree.map(whole, of_all), of_operators, *[block] * len(columns)],
            out_specs=[block] * (self._phases * self._terms),
            compiler_params=triton.CompilerParams(num_warps=WARPS),
            interpret=self._interpret,
            name="chosen_launches",
        )(of_all, chosen, *columns)
        return [sums[phase * self._terms : (phase + 1) * self._terms] for phase in range(self._phases)]

    def _kernel(self, given: Mapping[str, Sequence[Any]], chosen: Any, *refs: Any) -> None:
        """The kernel of a block: references to what :meth:`__call__` gives, and to the sums."""
        count = len(refs) - self._phases * self._terms
        columns = {place: column[:] for place, column in enumerate(refs[:count])}
        begun = set()
        for part, runs, repeats in zip(self._runs, given["runs"], given["repeats"], strict=True):
            block = self._blocks[part.kind]
            terms = partial(_terms, block, block.of_designs(columns), given["rows"][part.kind], count)
            zeros = [jnp.zeros((BLOCK,), jnp.float32)] * self._terms
            found = lax.fori_loop(0, len(part.runs), partial(_run, terms, runs, repeats, chosen), zeros)
            mine = refs[count + part.phase * self._terms :]
            for total, value in zip(mine, found, strict=False):
                total[:] = total[:] + value if part.phase in begun else value
            begun.add(part.phase)


def phase_runs(kinds: Sequence[np.ndarray], slices: Sequence[slice], repeats: np.ndarray) -> list[PhaseRuns]:
    """Return the runs of the operators of each phase by kind."""
    found = []
    for phase, often in enumerate(repeats):
        parts: dict[int, list[Run]] = {}
        for stretch in stretches(kinds, slices):
            parts.setdefault(stretch.kind, []).extend(run for run in stretch.runs if often[run.operator])
        found += [
            PhaseRuns(kind, phase, runs, [float(often[run.operator]) for run in runs])
            for kind, runs in parts.items()
            if runs
        ]
    return found


def _terms(
    block: BlockProgram, designs: Mapping[int, Array], rows: Any, argument: int, kernel: Array, often: Array
) -> list[Array]:
    """Return the terms of each design's ``kernel``, all (BLOCK,); how ``often`` it runs is the last ``argument``."""
    terms = [triton.load(rows.at[kernel, term]) for term in range(block.terms[0])]
    found = block.of_pairs({**designs, argument: often}, terms, [])
    return [jnp.broadcast_to(term, (BLOCK,)) for term in found]


def _run(terms: Any, runs: Any, repeats: Any, chosen: Any, number: Array, sums: list[Array]) -> list[Array]:
    """Add what the candidates of a run do on the designs that have chosen one of them."""
    operator, first, end, of_all = (runs[number, field] for field in range(4))
    place = chosen[operator, :] - of_all + first
    mine = jnp.logical_and(place >= first, place < end)
    often = jnp.where(mine, repeats[number], 0.0)
    return [x + y for x, y in zip(sums, terms(jnp.clip(place, first, end - 1), often), strict=True)]
