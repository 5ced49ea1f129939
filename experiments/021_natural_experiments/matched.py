"""Pairs of measured rows with the same shape: on two GPUs, or in two data types on one."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from dse.hardware.presets import find_preset
from dse.measured.coverage import SHAPES, uncovered
from dse.measured.layer_rows import as_operators
from dse.measured.row_shape import ATTENTION, PRODUCTS
from dse.measured.row_vector import VECTOR
from dse.measured.table import read_times, tensor_parallel
from experiments import data

LEAST_US = 10.0
"""Both rows of a pair take at least so long [us]: shorter ones tell of launches."""

LEAST_ROWS = 50
"""Rows that a pair needs."""

OPERATORS = {"products": PRODUCTS, "data types": PRODUCTS, "attention": ATTENTION, "vector kernels": VECTOR}
"""Kind of a pair -> the operators of its rows."""

NO_KERNEL = "eager|outlier"
"""What the notes of a row in a narrow type say where its time is its host's, or apart from all others
(experiments/024)."""

LIBRARY, LAYOUT = r"impl=([a-z]+)-", r"(A=[NT];B=[NT])"
"""What the notes of a row say of its library, whatever the version, and of the layout of its operands."""


@dataclass(frozen=True)
class Pair:
    """Two GPUs, or two data types on one, with the tables whose rows compare them.

    ``of``: the data type of the second where it is another, else "". ``differs``: what differs, in words.
    """

    kind: str
    one: str
    other: str
    dtype: str
    of: str
    tables: tuple[str, ...]
    differs: str

    @property
    def name(self) -> str:
        """The pair in a few words."""
        if self.of:
            return f"{self.dtype} / {self.of} on {short(self.one)}"
        return f"{short(self.one)} / {short(self.other)} ({self.tables[0].replace('__', ', ')}, {self.dtype})"

    @property
    def presets(self) -> frozenset[str]:
        """Presets of the members that no fit may see; of two data types the type is left out instead."""
        return frozenset() if self.of else frozenset((preset(self.one), preset(self.other)))


def short(device: str) -> str:
    """Return a device's name without its package and capacity: H100 of H100-SXM5-80GB."""
    return device.split("-")[0]


def preset(device: str) -> str:
    """Return the preset of a device."""
    name = find_preset(device)
    assert name, device
    return name


def pairs() -> list[Pair]:
    """Return the pairs of ``pairs.csv``."""
    rows = pd.read_csv(Path(__file__).parent / "pairs.csv", keep_default_na=False)
    return [Pair(**row | {"tables": tuple(str(row["tables"]).split())}) for row in rows.to_dict("records")]


def matched(pair: Pair, most: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return rows of both sides, one beneath another of the same shape: at most ``most``, drawn with a fixed seed.

    A shape is one library's, and one layout of its operands. Several measurements of it by one side (layers, versions)
    stand for the one in their middle. So do all libraries of one side where the other names none: its rows are medians
    over libraries.
    """
    frame = pd.concat([_frame(name, OPERATORS[pair.kind], not pair.of) for name in pair.tables], ignore_index=True)
    one, other = _of(frame, pair.one, pair.dtype), _of(frame, pair.other, pair.of or pair.dtype)
    libraries = one["library"].notna().any() and other["library"].notna().any()
    one, other = (_by_shape(side if libraries else side.assign(library=None)) for side in (one, other))
    both = one.index.intersection(other.index)
    both = both[np.sort(np.random.default_rng(0).permutation(len(both))[:most])]
    return one.loc[both].reset_index(drop=True), other.loc[both].reset_index(drop=True)


@cache
def _frame(name: str, operators: tuple[str, ...], fits: bool) -> pd.DataFrame:
    """The rows of a table that can be predicted, of some operators, from LEAST_US on; with ``fits`` those alone that a
    fit takes, which are none in narrow types."""
    read = read_times(data.path(name))
    frame = as_operators(read.frame.assign(noise=np.nan, tp=tensor_parallel(read)))
    frame = frame[frame["op"].isin(operators) & (frame["latency_us"] >= LEAST_US)]
    kernels = fits | ~frame["notes"].astype(str).str.contains(NO_KERNEL)
    return frame[kernels & (uncovered(frame, {}, {}, fits=fits) == "")]


def _of(frame: pd.DataFrame, device: str, dtype: str) -> pd.DataFrame:
    """The rows of one side, with their library and the layout of their operands where their notes name them."""
    frame = frame[(frame["device"] == device) & (frame["dtype"] == dtype)]
    notes = frame["notes"].astype(str)
    return frame.assign(library=notes.str.extract(LIBRARY)[0], layout=notes.str.extract(LAYOUT)[0])


def _by_shape(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of one side by shape, a row a shape: the middle one of several."""
    columns = ["op", *sorted({"batch"} | set(SHAPES[frame["op"].iloc[0]])), "causal", "library", "layout"]
    keys = pd.MultiIndex.from_frame(frame[columns].astype(object).where(frame[columns].notna(), -1))
    ordered = frame.set_axis(keys).sort_values("latency_us", kind="stable")
    place = ordered.groupby(level=list(range(len(columns)))).cumcount().to_numpy()
    count = ordered.groupby(level=list(range(len(columns))))["latency_us"].transform("size").to_numpy()
    return ordered[place == (count - 1) // 2].sort_index()
