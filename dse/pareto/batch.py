"""Batches of designs to costs: the space's evaluator in small chunks, with the size of what is violated."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dse.evaluate.infeasibility import Masks, Reasons
from dse.evaluate.space_program import Evaluator
from dse.grid.shard import Chunk, chunk_table
from dse.pareto.violation import violation
from dse.space import designs
from dse.space.links import around
from dse.space.space import Space


@dataclass(frozen=True)
class EvaluatedDesigns:
    """Designs with what the model says of them, each array of shape (designs,).

    ``costs``: objectives to be minimised, shape (designs, objectives); ``violation``: 0 where a design can be had,
    else how far it is from that; ``blank``: it has no results at all (no kernel runs); ``lacking``:
    objectives that are not finite.
    """

    index: np.ndarray
    columns: designs.Columns
    results: dict[str, np.ndarray]
    code: np.ndarray
    costs: np.ndarray
    violation: np.ndarray
    blank: np.ndarray
    lacking: Masks


class BatchModel:
    """The model of a space, called with the numbers of designs; ``asked``: how many there will be, if known."""

    def __init__(self, space: Space, chunk: int, asked: int | None = None) -> None:
        self.space = space
        self.reasons = Reasons(space)
        self._evaluator = Evaluator(space, self.reasons, chunk, asked)

    @property
    def base_results(self) -> dict[str, np.ndarray]:
        """What objectives and constraints name of the base GPU's results, by name."""
        return self._evaluator.base_results

    def trace(self) -> None:
        """Do what is Python's part of :meth:`compile`."""
        self._evaluator.trace()

    def compile(self) -> None:
        """Compile the program ahead of the first batch."""
        self._evaluator.compile()

    def __call__(self, index: np.ndarray) -> EvaluatedDesigns:
        """Evaluate designs by number; more than a chunk go one chunk after another."""
        return self.of(index, designs.with_links(self.space, self.space.at(index)))

    def baseline(self) -> EvaluatedDesigns:
        """Evaluate the base GPU itself, which may be no design of the grid (number -1)."""
        return self.of(np.asarray([-1]), designs.baseline(self.space))

    def of(self, index: np.ndarray, columns: designs.Columns) -> EvaluatedDesigns:
        """Evaluate designs that are given as columns of axes and links."""
        step = self._evaluator.chunk
        parts = [
            self._evaluator({name: values[start : start + step] for name, values in columns.items()})
            for start in range(0, len(index), step)
        ]
        results = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        code, lacking = self.reasons.add_non_finite(results.pop("code"), results)
        costs = np.stack([o.sign * results[o.name].astype(float) for o in self.space.objectives], axis=1)
        blank = np.asarray(self.reasons.is_blank(code))
        missed = self._violation(code, columns, results, blank)
        return EvaluatedDesigns(index, columns, results, code, costs, missed, blank, lacking)

    def _violation(self, code: np.ndarray, columns: designs.Columns, results: dict, blank: np.ndarray) -> np.ndarray:
        """The misses of the constraints; what cannot be had for another reason misses by 1 more, without a kernel 2."""
        missed = np.zeros(len(code))
        if not code.any():
            return missed
        values = around(self.space.base.numbers()) | self.base_results | results | columns
        values["total.time_ms"] = self.space.total_ms(results)
        for constraint in self.space.constraints:
            missed = missed + np.where(blank, 0.0, violation(constraint, values))
        kinds = np.asarray([reason.kind == "constraint" for reason in self.reasons.all])
        missed = np.where(kinds[code], missed, missed + 1.0 + blank)
        return np.where(code == 0, 0.0, np.maximum(missed, 1e-9))

    def table(self, evaluated: EvaluatedDesigns) -> pa.Table:
        """Return designs as the table that a sweep writes."""
        chunk = Chunk(evaluated.columns, evaluated.results, evaluated.code, evaluated.lacking)
        return chunk_table(self.space, self.reasons, chunk)
