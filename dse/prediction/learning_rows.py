"""Rows to learn from: features and measured cycles of launches of one kind of operator on several devices."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

from dse.base.compilation import quick_to_compile
from dse.base.errors import InputError
from dse.base.skipped_rows import Skipped, why_skipped
from dse.base.units import GIGA, KILO, NANO
from dse.evaluate.batching import over_arrays
from dse.hardware.presets import load_sheet
from dse.measured.row_kernels import TimedLaunches, load_launches
from dse.prediction.features import DEMANDS, demands, operand_bytes
from dse.prediction.predictors import Rows
from dse.prediction.quantities import TIME, Response
from dse.prediction.table import MeasuredTable
from dse.timing.timing import TimingModel

ARRAYS = ("x", "y", "arithmetic", "memory", "clock_ghz")
"""Fields of :class:`LearningRows` that hold a value a row."""


@dataclass(frozen=True)
class LearningRows:
    """Rows of one operator and data type."""

    frame: pd.DataFrame  # the table's columns and ``preset``
    x: np.ndarray  # (rows, features) [cycle, or W], what the model predicts last
    y: np.ndarray  # (rows,) measured [cycle, or W]
    arithmetic: np.ndarray  # (rows,) multiply-adds at the data sheet's peak [cycle, or ns under watts]
    memory: np.ndarray  # (rows,) operands at the data sheet's DRAM bandwidth [cycle, or ns under watts]
    clock_ghz: np.ndarray  # (rows,) [GHz]
    quantity: Response = TIME

    def rows(self, mode: str) -> Rows:
        """Return what a mode learns from (see :data:`dse.prediction.features.MODES`)."""
        return Rows(self.x[:, :-1] if mode == "plain" else self.x, self.y)

    def take(self, places: np.ndarray) -> "LearningRows":
        """Return the rows at some places."""
        arrays = {name: getattr(self, name)[places] for name in ARRAYS}
        return replace(self, frame=self.frame.iloc[places].reset_index(drop=True), **arrays)

    def of(self, preset: str) -> "LearningRows":
        """Return the rows of one device."""
        return self.take(np.flatnonzero((self.frame["preset"] == preset).to_numpy()))

    def sample(self, most: int, seed: int = 0) -> "LearningRows":
        """Return at most ``most`` rows, drawn at random, in their order."""
        if len(self.y) <= most:
            return self
        return self.take(np.sort(np.random.default_rng(seed).permutation(len(self.y))[:most]))

    @property
    def devices(self) -> list[str]:
        """Presets, by name."""
        return sorted(set(self.frame["preset"]))

    @property
    def analytical(self) -> np.ndarray:
        """What the model predicts [cycle, or W]."""
        return self.x[:, -1]

    @property
    def per_unit(self) -> np.ndarray:
        """How much of ``y`` one of the quantity's unit is: cycles of a microsecond, or 1 of watts; shape (rows,)."""
        return KILO * self.clock_ghz if self.quantity is TIME else np.ones(len(self.y))


def learning_rows(launches: TimedLaunches) -> LearningRows:
    """Return the features and measured cycles of launches."""
    gpu = launches.gpu

    def one(kernel, timing):
        sheet = demands(kernel, gpu)
        memory = operand_bytes(kernel) * timing.clock_ghz / (gpu.dram_bandwidth_gbs * (GIGA * NANO))
        return jnp.append(sheet, timing.cycles), memory, timing.clock_ghz

    program = jax.jit(partial(over_arrays, one), compiler_options=quick_to_compile())
    mapped = program(launches.kernels, launches.timing)
    x, memory, clock = (np.asarray(a, dtype=float) for a in mapped)
    y = launches.frame["latency_us"].to_numpy(float) * KILO * clock
    return LearningRows(launches.frame, x, y, x[:, list(DEMANDS).index("arithmetic")], memory, clock)


def load_learning_rows(measured: MeasuredTable, presets: list[str], model: TimingModel) -> tuple[LearningRows, Skipped]:
    """Return the rows of some devices of a table, and how many have no kernel, by reason."""
    parts: list[LearningRows] = []
    skipped = Skipped()
    for preset in presets:
        launches = load_launches(measured.of(preset), load_sheet(preset), model, skipped)
        if launches is not None:
            parts.append(learning_rows(launches))
    if not parts:
        raise InputError(f"{measured.path}: nothing to learn from: {why_skipped(skipped)}")
    return joined(parts), skipped


def joined(parts: list[LearningRows]) -> LearningRows:
    """Return the rows of several parts as one."""
    frame = pd.concat([part.frame for part in parts], ignore_index=True)
    arrays = {name: np.concatenate([getattr(part, name) for part in parts]) for name in ARRAYS}
    return replace(parts[0], frame=frame, **arrays)


def groups_of(rows: LearningRows) -> Mapping[tuple[str, str], LearningRows]:
    """Return the rows by operator and data type."""
    keys = rows.frame.groupby(["op", "dtype"], sort=True).indices
    return {(str(op), str(dtype)): rows.take(places) for (op, dtype), places in keys.items()}


def same_shape(rows: pd.DataFrame, others: pd.DataFrame) -> list[np.ndarray]:
    """Return for each row the places of the other rows that ran its shape.

    Rows of its software version go before others, then rows of its source: what a library or a protocol costs is no
    difference between GPUs.
    """
    by_shape = others.groupby("shape").indices
    columns = [c for c in ("version", "source") if c in rows and c in others]
    mine, theirs = (frame[columns].astype(str).to_numpy() for frame in (rows, others))
    places = []
    for shape, own in zip(rows["shape"], mine, strict=True):
        its = np.asarray(by_shape.get(shape, ()), dtype=int)
        for column, value in enumerate(own):
            same = its[theirs[its, column] == value]
            its = same if len(same) else its
        places.append(its)
    return places


def geometric_means(values: np.ndarray, places: list[np.ndarray]) -> np.ndarray:
    """Return the geometric mean of the values at each list of places."""
    return np.array([np.exp(np.mean(np.log(values[its]))) for its in places])
