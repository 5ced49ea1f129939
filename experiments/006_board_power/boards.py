"""What several boards drew: kernels, passes of networks at locked clocks, streams, and boards at rest."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from devices import PUBLISHED, stream_activity
from passes import locked, passes
from rows import fitted_rows, load_rows, masks, power_rows

from dse.base.csv_table import read_table_file
from dse.hardware.gpu import Gpu
from dse.hardware.presets import load_sheet
from dse.measured.board_watts import SETTLED_US
from dse.measured.power_rows import MeasuredLaunches, taken
from dse.power.activity import Activity
from dse.power.board import BoardPower
from dse.power.power_limit import limited
from experiments import data

HERE = Path(__file__).resolve().parent

STREAMS = {"h200": "H200", "a100_sxm_40gb": "A100 SXM", "v100_pcie_16gb": "V100", "a40": "A40"}
"""Boards of PUBLISHED whose streams a fit sees: others stand at their limit, or beyond their node's nominal clock."""

AT_REST = (
    ("A100-PCIE-40GB", "a100_pcie_40gb", "A100 PCIe"),
    ("A100-SXM4-80GB", "a100_sxm_80gb", "A100 SXM"),
    ("H100-SXM5-80GB", "h100_sxm", "H100"),
)
"""Device, preset and name of the cards whose idle watts were measured over the clock."""

AT_WORK_C, AT_REST_C = 65.0, 45.0
"""Temperature of a die at work, as the table's leakage has it, and at rest: passes at the lowest clocks read 50 to 60
[C]."""


class Rows(NamedTuple):
    """Activities on GPUs whose dies have a ``temperature`` [C], all of shape (rows,)."""

    counts: Activity
    gpu: Gpu
    temperature: jax.Array

    def watts(self, model: BoardPower) -> jax.Array:
        """Return the watts of a model within the boards' limits (rows,)."""

        def one(counts: Activity, gpu: Gpu, temperature: jax.Array) -> jax.Array:
            warm = replace(model, temperature=temperature)
            return limited(warm.uncapped(counts, gpu).watts, model.limit(gpu), model.cap_width)

        return jax.vmap(one)(*self)


@dataclass(frozen=True)
class Measured:
    """What was measured in one way on one board: rows, their watts and what each of them is.

    ``board``: the name under which it is left out; ``weight`` of the whole in a fit, against that of an H200's kernels.
    """

    name: str
    board: str
    weight: float
    kind: np.ndarray
    rows: Rows
    watts: np.ndarray


@cache
def measured() -> tuple[Measured, ...]:
    """Return everything that a fit sees, kernels from 200 us on; of an H200 its training families."""
    h200 = power_rows()
    return (
        kernels("H200", h200, masks(h200)["train"]),
        kernels("B200", b200_rows()),
        _passes("A100 PCIe", "A100-PCIE-40GB", 1.0),
        _passes("A10", "A10", 0.7),
        *(_at_rest(*card) for card in AT_REST),
        *(_streams(preset, board) for preset, board in STREAMS.items()),
    )


@cache
def b200_rows() -> MeasuredLaunches:
    """Kernels of a B200 that the model covers, of all libraries."""
    return load_rows(fitted_rows(("aiconfigurator__power_new", "aiconfigurator__power_released"), "B200"), "b200")


def kernels(board: str, rows: MeasuredLaunches, keep: np.ndarray | None = None) -> Measured:
    """Return the kernels of a board from 200 us on, of those that ``keep`` (rows,) tells."""
    long = rows.table.latency_us.to_numpy() >= SETTLED_US
    use = np.flatnonzero(long if keep is None else long & keep)
    found = Rows(taken(rows.measured, use), _repeated(rows.gpu, len(use)), jnp.full(len(use), AT_WORK_C))
    return Measured(board, board, 1.0, rows.table.op.astype(str).to_numpy()[use], found, _watts(rows.table)[use])


def _passes(board: str, device: str, weight: float) -> Measured:
    found = passes(device)
    kind = (found.table.group + " " + found.table.dtype.astype(str)).to_numpy()
    rows = Rows(found.counts, found.gpu, jnp.full(len(kind), AT_WORK_C))
    return Measured(board, board, weight, kind, rows, _watts(found.table))


def _at_rest(device: str, preset: str, board: str) -> Measured:
    """A card whose clock is locked, without a kernel."""
    table = pd.concat([data.frame("energaizer__idle_voltage"), read_table_file(HERE / "idle_h100.csv")])
    table = table[(table.device == device) & table.power_w.notna()]
    zero = jnp.zeros(len(table))
    counts = Activity(**dict.fromkeys(Activity._fields, zero))._replace(
        nanoseconds=zero + 1, clock_ghz=jnp.asarray(table.clock_mhz.to_numpy() / 1e3)
    )
    rows = Rows(counts, _stacked([locked(preset, clock) for clock in table.clock_mhz]), zero + AT_REST_C)
    return Measured(f"{board} at rest", board, 0.17, np.full(len(table), "rest"), rows, _watts(table))


def _streams(preset: str, board: str) -> Measured:
    """Published streams with FMAs on one board."""
    mine = [point for point in PUBLISHED if point[0] == preset]
    gpu = load_sheet(preset).record()
    counts = _stacked([stream_activity(gpu, *rates) for _, *rates, _ in mine])
    rows = Rows(counts, _repeated(gpu, len(mine)), jnp.full(len(mine), AT_WORK_C))
    watts = np.array([point[-1] for point in mine])
    return Measured(f"{board} streams", board, 0.06 * len(mine), np.full(len(mine), "stream"), rows, watts)


def together(parts: Sequence[Measured]) -> tuple[Rows, np.ndarray, np.ndarray]:
    """Return the rows of several parts as one, their watts, and weights in which each part counts as its own says."""
    rows = jax.tree.map(lambda *x: jnp.concatenate([jnp.asarray(v, float) for v in x]), *(part.rows for part in parts))
    weights = np.concatenate([np.full(len(part.watts), part.weight / len(part.watts)) for part in parts])
    return rows, np.concatenate([part.watts for part in parts]), weights


def _watts(table: pd.DataFrame) -> np.ndarray:
    return table.power_w.to_numpy(float)


def _repeated(gpu: Gpu, count: int) -> Gpu:
    return jax.tree.map(lambda x: jnp.broadcast_to(jnp.asarray(x), (count,)), gpu)


def _stacked(records: list[Any]) -> Any:
    return jax.tree.map(lambda *x: jnp.stack([jnp.asarray(v, float) for v in x]), *records)
