"""The evaluator of one variant of a space."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dse.evaluate.device_programs import Columns, SharedPrograms, filled_batch
from dse.evaluate.infeasibility import Reasons
from dse.evaluate.space_program import Evaluator, result_columns, workload_columns
from dse.hardware.gpu import Gpu
from dse.power.sequence import SequenceTotals
from dse.space.links import OF_BASE
from dse.space.space import Space

Untimed = Callable[[Gpu], dict[str, Any]]


class OfVariant(Evaluator):
    """The evaluator of one variant, by shared programs alone: what follows from their answers is added up in NumPy."""

    def __init__(self, space: Space, reasons: Reasons, untimed: Untimed, devices: Sequence[Any]) -> None:
        super().__init__(space, reasons, asked=1, devices=devices)
        self._program = SharedPrograms(self._base, self._evaluations, self.results, compiled=False)
        self._untimed = untimed

    def _call(self, columns: Columns, of_base: Columns, wanted: Sequence[str], device: Any) -> dict[str, np.ndarray]:
        return super()._call(columns or self.as_base(1), of_base, wanted, device)

    def as_base(self, count: int) -> dict[str, np.ndarray]:
        """Return columns of designs that vary no attribute."""
        return {"sm_count": np.full(count, self._base["sm_count"])}

    def untimed(self, columns: Columns) -> dict[str, Any]:
        gpus = filled_batch(self._base, columns, len(next(iter(columns.values()))))
        of_base = {OF_BASE + name: value for name, value in self._base.items()}
        return of_base | {name: np.asarray(value) for name, value in self._untimed(gpus).items()}

    def results(
        self, columns: Columns, of_base: Columns, phases: Sequence[Mapping[str, SequenceTotals]], runs: Sequence[Array]
    ) -> dict[str, Any]:
        count = len(next(iter(columns.values())))
        results = self.untimed(columns) | dict(of_base)
        for workload, of_workload in zip(self.space.workloads, phases, strict=True):
            results |= workload_columns(workload, jax.tree.map(np.asarray, of_workload), self.space.usd_per_hour)
        results["total.time_ms"] = self.space.total_ms(results)
        expressions = (*(o.expression for o in self.space.objectives), *self.space.constraints)
        named = {name for expression in expressions for name in expression.names}
        results |= {name: jnp.asarray(results[name]) for name in named}  # in the batch's type of numbers
        code = np.asarray(self._reasons.codes(results, runs))
        results |= {o.name: o.expression(results, jnp) for o in self.space.objectives}
        blank = self._reasons.is_blank(code)
        kept = {name: results[name] for name in (*result_columns(self.space), *self._of_base)}
        outputs = {name: np.where(blank, 0.0, np.broadcast_to(value, count)) for name, value in kept.items()}
        return outputs | {"code": code}
