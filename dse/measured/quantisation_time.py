"""How long the passes take that quantise a product's activations, where the protocol times them with it."""

import jax
import numpy as np

from dse.evaluate.shared_programs import timings_of_rows
from dse.measured.quantisation_passes import Pass, ways
from dse.measured.timed_rows import ROWS, TimedRows, us_of
from dse.timing.timing import Timing, TimingModel
from dse.workload.kernel import Kernel


def quantising_us(model: TimingModel, rows: TimedRows) -> np.ndarray:
    """Return what quantising the activations adds to each row [us]: its kernels, each with its protocol's overhead."""
    total = np.zeros(len(rows.table))
    for places, one in _passes(rows):
        overhead = rows.table["overhead_us"].to_numpy()[places]
        total[places] += np.asarray(us_of(pass_timings(model, rows, places, one)))[: len(places)] + overhead
    return total


def pass_timings(model: TimingModel, rows: TimedRows, places: np.ndarray, one: Pass) -> Timing:
    """Return the timing of a pass over the activations of the rows at ``places``, in whole blocks of ROWS."""
    filled = np.pad(places, (0, -len(places) % ROWS), mode="edge")  # for one compiled program
    table = rows.table.iloc[filled]
    tokens = table["m"] * table["batch"].where(table["batch"] > 0, 1.0)
    kernels = [jax.tree.map(float, one.kernel(m, k)) for m, k in zip(tokens, table["k"], strict=True)]
    gpus = jax.tree.map(lambda x: np.asarray(x)[filled], rows.gpus)
    return timings_of_rows(model, *jax.tree.map(lambda x: np.asarray(x, np.float32), (Kernel.stack(kernels), gpus)))


def _passes(rows: TimedRows) -> list[tuple[np.ndarray, Pass]]:
    """The passes of each way of quantising with the rows that have them."""
    places = {how: np.flatnonzero(rows.table["quantises"] == how) for how in ways()}
    return [(places[how], one) for how, way in ways().items() for one in way.passes if len(places[how])]
