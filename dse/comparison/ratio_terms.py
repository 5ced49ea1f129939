"""What of the difference between designs the error of a predicted ratio depends on, and by how much.

The log error of a design is a sum of unknowns that all designs share, each times what the design has of it: the slope
of an attribute times the attribute's logarithm. What two designs have alike cancels in their ratio.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from dse.base.package_tables import read_table
from dse.hardware.area import HBM_CHANNEL_BITS
from dse.timing.timing import CAUSES, HOST

ERRORS = "calibration/ratio_errors.csv"
ATTRIBUTES = "calibration/ratio_attributes.csv"

TENSOR = "tensor_fma"
"""Stands in the table of attributes for the tensor rates of the data types that run."""

FLOOR = "floor"
"""Term of what every two designs differ by."""

STEPS = ("memory_type", "generation", "node")
"""Terms that count whole wherever designs differ in them."""

DATA_TYPES = "data_types"
"""Term that counts whole where the kernels of two designs have other data types."""

ARITHMETIC, MEMORY = "arithmetic", "memory"
"""Classes of kernels by what binds them; a workload has a share of each, by the causes of its time."""

BOUND_BY = {
    **dict.fromkeys(("long_scoreboard", "mio_throttle", "dram_bandwidth", "l2_bandwidth", "die_link"), MEMORY),
    **dict.fromkeys(("selected", "wait", "short_scoreboard", "math_pipe_throttle", "lg_throttle"), ARITHMETIC),
    "divergence": ARITHMETIC,
}
"""Cause of a time -> class of kernels whose errors it has; the other causes (launch, messages, a host) have none."""

MIX = 4
"""Kernels over which the floor averages out at most: a layer of a language model has that many dense products."""

LEAST = 1e-9
"""A number that is 0 counts as this in logarithms."""


@dataclass(frozen=True)
class Loading:
    """What a log error has of each unknown, in units of the unknown's standard deviation.

    ``shared``: block of unknowns -> (designs, unknowns), unknowns that all designs share; ``own``: source -> (designs,)
    of an unknown of each design's own.
    """

    shared: Mapping[str, np.ndarray]
    own: Mapping[str, np.ndarray]

    def times(self, factor: np.ndarray | float) -> "Loading":
        """Return the loading of the quantity to the power of ``factor``, a number or (designs,)."""
        factor = np.asarray(factor, float)
        column = factor[:, None] if factor.ndim else factor
        shared = {name: values * column for name, values in self.shared.items()}
        return Loading(shared, {name: values * factor for name, values in self.own.items()})

    def take(self, places: slice) -> "Loading":
        """Return the loading of some of the designs."""
        some = ({name: values[places] for name, values in part.items()} for part in (self.shared, self.own))
        return Loading(*some)

    def plus(self, other: "Loading") -> "Loading":
        """Return the loading of a product of two quantities."""
        return Loading(_sums(self.shared, other.shared), _sums(self.own, other.own))


def _sums(one: Mapping[str, np.ndarray], two: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    both = {name: one[name] + two[name] for name in one.keys() & two.keys()}
    every = {**one, **two, **both}
    return {name: every[name] for name in sorted(every)}


NOTHING = Loading({}, {})
"""What is known exactly."""


@cache
def terms(metric: str, kernels: str) -> dict[str, float]:
    """Return term -> standard deviation of the log error for one unit of it, of a metric and a class of kernels.

    The unit of an attribute's term is a factor of e.
    """
    rows = [row for row in read_table(ERRORS) if (row["metric"], row["kernels"]) == (metric, kernels)]
    return {row["term"]: float(row["value"]) for row in rows}


@cache
def features() -> dict[str, dict[str, dict[str, float]]]:
    """Return term -> feature -> attribute -> its power in that feature."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    for row in read_table(ATTRIBUTES):
        found.setdefault(row["term"], {}).setdefault(row["feature"], {})[row["attribute"]] = float(row["power"])
    return found


def distances(
    numbers: Mapping[str, np.ndarray], types: Iterable[str] = (), kinds: np.ndarray | None = None
) -> dict[str, np.ndarray]:
    """Return term -> how far each design lies from the first, (designs, features): logarithms, and 0 or 1 of STEPS and
    DATA_TYPES.

    ``numbers``: attribute -> (designs,); ``types``: data types whose tensor rates count, none for all that the first
    design has; ``kinds``: a number for the data types of each design's kernels, None where all have the same.
    """
    rates = _rates(numbers, types)
    found = {}
    for term, parts in features().items():
        columns = [_feature(numbers, parts[name], rates) for name in parts]
        found[term] = np.stack(columns, axis=1)
    found[DATA_TYPES] = _categories(np.zeros(len(numbers["process"])) if kinds is None else kinds)
    steps = _kinds(numbers)
    return found | {term: _categories(steps[term]) for term in STEPS}


def _rates(numbers: Mapping[str, np.ndarray], types: Iterable[str]) -> list[str]:
    named = [f"{TENSOR}_{name}" for name in types if f"{TENSOR}_{name}" in numbers]
    every = [name for name in numbers if name.startswith(f"{TENSOR}_") and numbers[name][0] > 0]
    return sorted(named) or sorted(every)


def _feature(numbers: Mapping[str, np.ndarray], powers: Mapping[str, float], rates: Sequence[str]) -> np.ndarray:
    """The logarithm of a feature of each design over that of the first."""
    total = np.zeros(len(next(iter(numbers.values()))))
    for attribute, power in powers.items():
        names = rates if attribute == TENSOR else [attribute]
        logs = [np.log(np.maximum(numbers[name], LEAST)) for name in names]
        total += power * np.mean(logs, axis=0) if logs else 0.0
    return total - total[0]


def _kinds(numbers: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The memory family, the generation and the node of each design, as numbers."""
    bits = np.array([float(row["channel_bits"]) for row in read_table("process/memory.csv")])
    return {
        "memory_type": bits[numbers["dram_type"].astype(int)] >= HBM_CHANNEL_BITS,
        "generation": numbers["compute_capability"],
        "node": numbers["process"],
    }


def _categories(kind: np.ndarray) -> np.ndarray:
    """A column a kind other than the first design's: 1 where a design is of it."""
    others = [value for value in np.unique(kind) if value != kind[0]]
    return np.stack([kind == value for value in others], axis=1).astype(float) if others else np.zeros((len(kind), 0))


def weighted(metric: str, kernels: str, far: Mapping[str, np.ndarray], share: np.ndarray) -> np.ndarray:
    """Return the loading on one class of kernels, (designs, unknowns): ``share`` (designs,) of the metric is of it."""
    parts = [far[term] * sigma * share[:, None] for term, sigma in terms(metric, kernels).items() if term != FLOOR]
    return np.concatenate(parts, axis=1)


def shares(stack: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return class of kernels -> its share of each design's time, (designs,), by the causes ``stack`` [ms].

    Along the way from the first design to another the share passes from the one's to the other's: their mean counts.
    """
    total = np.maximum(sum(stack.values(), np.zeros(())), LEAST)
    found = {}
    for name in (ARITHMETIC, MEMORY):
        mine = sum((stack[cause] for cause in CAUSES if BOUND_BY.get(cause) == name and cause in stack), 0 * total)
        found[name] = (mine / total + (mine / total)[0]) / 2
    return found


def time_loading(
    source: str, far: Mapping[str, np.ndarray], stack: Mapping[str, np.ndarray], kernels: int, host: float = 0.0
) -> Loading:
    """Return the loading of a time with the causes ``stack`` [ms]; ``source``: whose time it is.

    The floor is that of a single kernel; of ``kernels`` different ones it averages out, as far as MIX of them.
    ``host``: standard deviation of the log error of an engine's host, which cancels where its share is the same.
    """
    parts = shares(stack)
    waits = stack.get(HOST, np.zeros(1)) / np.maximum(sum(stack.values(), np.zeros(())), LEAST)
    shared = {f"time {name}": weighted("time", name, far, share) for name, share in parts.items()}
    shared[f"host of {source}"] = np.broadcast_to(host * (waits - waits[0]), len(far["node"]))[:, None]
    floors = sum(((terms("time", name)[FLOOR] * share) ** 2 for name, share in parts.items()), np.zeros(()))
    return Loading(shared, {f"time of {source}": np.sqrt(floors / 2 / np.clip(kernels, 1, MIX))})


def power_loading(source: str, far: Mapping[str, np.ndarray]) -> Loading:
    """Return the loading of a board's watts; ``source``: while it runs what."""
    ones = np.ones(len(far["node"]))
    own = {f"power of {source}": ones * terms("power", "all")[FLOOR] / np.sqrt(2)}
    return Loading({"power": weighted("power", "all", far, ones)}, own)
