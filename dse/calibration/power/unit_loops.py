"""The stage of loops: energies of single units, from watts of loops that keep one unit busy, before any other kernel.

AccelWattch tells its components apart by 102 microbenchmarks. ``dse measure --only power`` runs loops of tensor cores,
FP32 lanes, L2 and DRAM; what a clocked SM draws is common to all of them.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

from dse.base.errors import InputError
from dse.calibration.bootstrap import PERCENTILES, benchmark_draws
from dse.calibration.power import board_fit
from dse.calibration.power.accelwattch_fit import Coefficient
from dse.calibration.power.board_fit import PRIOR_WEIGHT
from dse.evaluate.steps import activities, timings
from dse.hardware.presets import GpuSheet
from dse.measured.board_watts import watts_of
from dse.measured.power_rows import MeasuredLaunches
from dse.power.board import FREE, OF_LOOPS, BoardPower
from dse.timing.amali import Amali
from dse.workload.kernel import Kernel
from dse.workload.microbenchmarks import LOOPS, loop_kernel

COMMON = "pipeline"
"""The coefficient that all loops share: SMs at work are clocked."""

DRAWS = 40

FARTHEST = 4.0
"""Standard deviations from its prior that a coefficient of the loops may put the prior of the kernels' fit."""


class LoopFit(NamedTuple):
    """What loops say: the coefficients, those that no kernel is fitted to with their intervals, errors of watts before
    and after [%], and the rows of each loop."""

    values: dict[str, float]
    alone: list[Coefficient]
    before: float
    after: float
    rows: dict[str, int]

    @property
    def start(self) -> BoardPower:
        """The model that a fit to kernels starts from."""
        own = {name: jnp.asarray(value) for name, value in self.values.items() if name in OF_LOOPS}
        return board_fit.prior_model().with_values(own)

    @property
    def about(self) -> np.ndarray:
        """Where the prior of a fit to kernels stands (FREE,), in its standard deviations from the table's."""
        known = board_fit.priors()
        off = [(np.log(self.values[n]) - known[n][0]) / known[n][1] if n in self.values else 0.0 for n in FREE]
        return np.clip(off, -FARTHEST, FARTHEST)

    def words(self) -> str:
        """Return what the loops changed, as a sentence of a note."""
        told = ", ".join(f"{name} {value:.3g} {board_fit.units()[name]}" for name, value in self.values.items())
        loops = ", ".join(f"{count} of {op}" for op, count in self.rows.items())
        return f"loops of one unit ({loops}): {self.before:.1f} % off, fitted {self.after:.1f} %; they say {told}"


def is_loop(frame: pd.DataFrame) -> np.ndarray:
    """Return which rows of a measured table are loops of one unit with watts."""
    return (frame["op"].isin(list(LOOPS)) & (pd.to_numeric(frame["power_w"], errors="coerce") > 0)).to_numpy()


def loop_launches(frame: pd.DataFrame, sheet: GpuSheet) -> MeasuredLaunches:
    """Return loops as launches at their measured time; raises InputError where a row does not say its size."""
    for column in ("rows", "cols"):
        if column not in frame or not (pd.to_numeric(frame[column], errors="coerce") >= 1).all():
            raise InputError(f"{', '.join(sorted(set(frame['op'])))}: {column}: give CTAs (rows) and iterations (cols)")
    sizes = zip(frame["op"], frame["rows"].astype(float), frame["cols"].astype(float), strict=True)
    kernels = Kernel.stack([loop_kernel(str(op), ctas, iterations) for op, ctas, iterations in sizes])
    kernels, gpu = jax.tree.map(lambda x: jnp.asarray(x, float), kernels), sheet.record()
    own = timings(Amali(), kernels, gpu)
    at_measured = own.stretched(jnp.asarray(frame["latency_us"].to_numpy(float)) / own.microseconds)
    counts = [activities(kernels, timing, gpu) for timing in (at_measured, own)]
    family = frame["op"].astype(str) + "_" + frame["rows"].astype(str)
    table = frame.reset_index(drop=True).assign(family=family.to_numpy())
    return MeasuredLaunches(table, gpu, counts[0], at_measured, counts[1], own)


def fit_loops(rows: MeasuredLaunches) -> LoopFit:
    """Fit what clocked SMs draw, and the energy of each unit of which there is a loop."""
    present = [op for op in LOOPS if (rows.table["op"] == op).any()]
    free = (COMMON, *(LOOPS[op].coefficient for op in present))
    strength = np.full(1, PRIOR_WEIGHT)
    values = board_fit.fit_batch(rows, np.ones((1, len(rows.table))), strength, free)[0]
    draws = benchmark_draws(rows.table["family"].tolist(), DRAWS)
    drawn = board_fit.fit_batch(rows, draws, np.full(DRAWS, PRIOR_WEIGHT), free)
    ends = np.percentile(drawn, PERCENTILES, axis=0)
    shares = board_fit.data_share(rows, values, PRIOR_WEIGHT, free)
    alone = [
        Coefficient(name, value, board_fit.units()[name], low, high, share)
        for name, value, low, high, share in zip(free, values.tolist(), *ends.tolist(), shares.tolist(), strict=True)
        if name in OF_LOOPS
    ]
    found = dict(zip(free, map(float, values), strict=True))
    prior = board_fit.prior_model()
    fitted = prior.with_values({name: jnp.asarray(value) for name, value in found.items()})
    counts = rows.table["op"].value_counts()
    return LoopFit(found, alone, _error(prior, rows), _error(fitted, rows), {op: int(counts[op]) for op in present})


def _error(model: BoardPower, rows: MeasuredLaunches) -> float:
    return float(100 * np.abs(watts_of(model, rows) / rows.table["power_w"].to_numpy() - 1).mean())
