"""The model of a search: batches of designs to costs and to the size of violated constraints."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import numpy as np
import pyarrow as pa

from dse.base.compilation import threads
from dse.evaluate.infeasibility import Masks, reasons_of
from dse.evaluate.platform import platform_of_device
from dse.evaluate.variants.evaluator import VariantsEvaluator, evaluator_of
from dse.grid.shard import Chunk, chunk_table
from dse.pareto.violation import violation
from dse.space import designs
from dse.space.links import around
from dse.space.space import Space


@dataclass(frozen=True)
class EvaluatedDesigns:
    """Evaluated designs; every array is of shape (designs,) where nothing else is said."""

    index: np.ndarray  # number in the grid, -1 off it
    columns: designs.Columns  # numbers of axes and links
    results: dict[str, np.ndarray]
    code: np.ndarray  # reason why a design is infeasible, 0 where it is feasible
    costs: np.ndarray  # objectives to be minimised, (designs, objectives)
    violation: np.ndarray  # 0 where a design is feasible, else how far it is from that [1]
    blank: np.ndarray  # it has no results at all: a kernel cannot run
    lacking: Masks  # objectives that are not finite


class BatchModel:
    """The model of a space, called with the numbers of designs; ``expected``: designs in all, if known.

    ``chunk``: designs evaluated together at most, a generation of the platform by default, which devices share out
    where each gets enough of them; ``devices``: which evaluate, this process's by default.
    """

    def __init__(
        self,
        space: Space,
        chunk: int | None = None,
        expected: int | None = None,
        devices: Sequence[Any] | None = None,
    ) -> None:
        self.space = space
        self.reasons = reasons_of(space)
        devices = devices or jax.local_devices()
        platform = platform_of_device(devices[0])
        self.generation = chunk or platform.generation
        sharers = platform.sharers(self.generation, len(devices))
        self._evaluator = evaluator_of(space, self.reasons, -(-self.generation // sharers), expected, devices=devices)
        self._sharing = self._evaluator.devices[:sharers]
        self.chunk = self._evaluator.chunk

    @property
    def base_results(self) -> dict[str, np.ndarray]:
        """Results of the base GPU that objectives and constraints name, by name; of a plain space."""
        assert not isinstance(self._evaluator, VariantsEvaluator)
        return self._evaluator.base_results

    def trace(self) -> None:
        """Trace the program, the part of :meth:`compile` that Python does."""
        self._evaluator.trace(self._sharing)

    def compile(self) -> None:
        """Compile the program ahead of the first batch, on each device that takes a part of it."""
        self._evaluator.compile(self._sharing)

    def __call__(self, index: np.ndarray) -> EvaluatedDesigns:
        """Evaluate designs by number; of more than a chunk the devices take chunks in turn."""
        return self.of(index, designs.with_links(self.space, self.space.at(index)))

    def baseline(self) -> EvaluatedDesigns:
        """Evaluate the base GPU itself, which may be no design of the grid (number -1)."""
        return self.of(np.asarray([-1]), designs.baseline(self.space))

    def of(self, index: np.ndarray, columns: designs.Columns) -> EvaluatedDesigns:
        """Evaluate designs that are given as columns of axes and links."""
        starts = range(0, len(index), self.chunk)
        if len(starts) == 1 or len(self._evaluator.devices) == 1:
            parts = [self._part(columns, start) for start in starts]
        else:
            with threads(len(self._evaluator.devices)) as pool:
                parts = list(pool.map(partial(self._part, columns), starts))
        results = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        code, lacking = self.reasons.add_non_finite(results.pop("code"), results)
        costs = np.stack([o.sign * results[o.name].astype(float) for o in self.space.objectives], axis=1)
        blank = np.asarray(self.reasons.is_blank(code))
        violations = self._violation(code, columns, results, blank)
        return EvaluatedDesigns(index, columns, results, code, costs, violations, blank, lacking)

    def _part(self, columns: designs.Columns, start: int) -> dict[str, np.ndarray]:
        """Return the results of the chunk that begins at ``start``, by the device whose turn it is."""
        devices, step = self._evaluator.devices, self.chunk
        some = {name: values[start : start + step] for name, values in columns.items()}
        return self._evaluator(some, None, devices[start // step % len(devices)])

    def _violation(self, code: np.ndarray, columns: designs.Columns, results: dict, blank: np.ndarray) -> np.ndarray:
        """Return the sum of the constraints' violations, 1 more for another reason, 2 more where no kernel runs."""
        violations = np.zeros(len(code))
        if not code.any():
            return violations
        values = self._of_base(columns) | results | columns
        values["total.time_ms"] = self.space.total_ms(results)
        for constraint in self.space.constraints:
            violations = violations + np.where(blank, 0.0, violation(constraint, values))
        kinds = np.asarray([reason.kind == "constraint" for reason in self.reasons.all])
        violations = np.where(kinds[code], violations, violations + 1.0 + blank)
        return np.where(code == 0, 0.0, np.maximum(violations, 1e-9))

    def _of_base(self, columns: designs.Columns) -> dict[str, Any]:
        """Return what expressions may name of the designs' base GPUs."""
        if isinstance(self._evaluator, VariantsEvaluator):
            return self._evaluator.of_bases(columns)
        return around(self.space.base.numbers()) | self.base_results

    def table(self, evaluated: EvaluatedDesigns) -> pa.Table:
        """Return designs as the table that a sweep writes."""
        chunk = Chunk(evaluated.columns, evaluated.results, evaluated.code, evaluated.lacking)
        return chunk_table(self.space, self.reasons, chunk)
