"""Counts of a library's vector kernels, fitted with what they sustain of a GPU and with the floors of protocols.

One gradient fit over all rows of an implementation, on several GPUs: counts belong to the kernel (one set an operator),
sustained shares to the implementation, overheads and shadows to the protocol. Priors and bounds as in
:mod:`dse.calibration.timing.fit`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jax import Array

from dse.base.package_tables import read_table
from dse.calibration.losses import absolute, weighted_mean
from dse.calibration.optimiser import descend
from dse.calibration.timing.fit import FIXED, Parameter, model_of, parameters, prior_values, priors_of, strength_of
from dse.evaluate.steps import timings
from dse.hardware.data_types import element_bytes
from dse.hardware.gpu import Gpu
from dse.hardware.presets import GpuSheet
from dse.measured.protocol import as_measured, protocol_of
from dse.measured.protocol_overheads import ANY, on_host
from dse.measured.row_vector import distances_of, keys_of, vector_family
from dse.measured.throttling import slowdowns
from dse.measured.timed_rows import as_read, us_of
from dse.timing.amali import Amali
from dse.workload.implementation import KINDS
from dse.workload.kernel import Kernel
from dse.workload.operators.vector import FITTED_COUNTS, Counts, VectorOp, counts_of, variant, vector_kernel, vector_ops

STEPS = 1000
RATE = 0.1
EAGER = ("neusight", "llmcompass")
"""Harnesses that time one eager call: their floor belongs to the host, and an operator's path through it."""

EAGER_PRIOR = {"overhead_us": (30.0, 0.5, 100.0, 0.7), "shadow_us": (10.0, 0.1, 40.0, 1.0)}
NO_SHADOW = (1e-3, 0.99e-3, 1.01e-3, 1e-4)


class Problem(NamedTuple):
    """Rows as one batch: the operators' numbers (rows,) and whose fitted counts, overhead and shadow they have.

    ``kernel``, ``floor`` and ``host`` (rows,) are places among them; ``slower`` (rows,): how many times as long a row
    takes in the board's power limit, at the priors.
    """

    what: Any
    counts: Any
    rows: np.ndarray
    cols: np.ndarray
    element: tuple[np.ndarray, np.ndarray]
    distance: tuple[np.ndarray, np.ndarray, np.ndarray]
    second: np.ndarray
    kernel: np.ndarray
    floor: np.ndarray
    host: np.ndarray
    gpus: Gpu
    slower: np.ndarray
    measured: Array
    weights: Array


@dataclass(frozen=True)
class VectorFit:
    """What was found: shares and costs, counts by kernel, overhead and shadow by (harness, device,
    operator) [us], and times."""

    sustained: dict[str, float]
    counts: dict[str, dict[str, float]]
    floors: dict[tuple[str, str, str], tuple[float, float]]
    predicted_us: np.ndarray


def fit_vector(
    frame: pd.DataFrame, sheets: Mapping[str, GpuSheet], implementation: str, weights: np.ndarray, steps: int = STEPS
) -> VectorFit:
    """Fit one implementation to its rows; rows of weight 0 are predicted, not fitted.

    ``sheets``: device -> GPU. A host whose rows all have weight 0 has the others' floors, by its slowness.
    """
    kernels = sorted({_kernel(implementation, r, sheets) for r in frame.itertuples()})
    floors = sorted({_floor(row) for row in frame.itertuples()})
    known = (*_shares(implementation), *_count_parameters(implementation, kernels), *_floor_parameters(floors))
    prior = priors_of(known, {})
    shape = (len(kernels), len(floors), tuple(p.name for p in _shares(implementation)))
    problem = _problem(frame, sheets, implementation, weights, kernels, floors)
    problem = problem._replace(slower=_slowdowns(np.array([p.prior for p in known]), problem, frame, shape))
    strength = strength_of(len({vector_family(row) for row in frame[weights > 0].itertuples()}))

    def loss(z: Array) -> Array:
        error = jnp.log(_predicted(prior.values(z), problem, shape) / problem.measured)
        return weighted_mean(absolute(error), problem.weights) + 0.5 * strength * jnp.sum(z**2)

    z = jax.jit(lambda z: descend(loss, z, steps, RATE))(jnp.zeros(len(known)))
    values = _of_unseen_hosts(np.asarray(prior.values(z), float), floors, problem.floor[weights > 0], shape)
    predicted = np.asarray(jax.jit(lambda v: _predicted(v, problem, shape))(values))
    return _told(values, predicted, kernels, floors, shape)


def _of_unseen_hosts(
    values: np.ndarray, floors: list[tuple[str, str, str]], fitted: np.ndarray, shape: tuple[int, int, tuple[str, ...]]
) -> np.ndarray:
    """The values with the floors of hosts that no row was fitted of: those of the other hosts, by
    :func:`~dse.measured.protocol_overheads.on_host`. ``fitted``: places of the floors of the rows that were fitted."""
    values = values.copy()
    _, _, overheads, shadows = _parts(values, shape)  # views
    seen, hosts = set(fitted.tolist()), _hosts(floors)
    of = [hosts.index(_host(floor)) for floor in floors]
    pairs = [(float(o), float(shadows[host])) for o, host in zip(overheads, of, strict=True)]
    for i, (harness, device, op) in enumerate(floors):
        known = {d: pairs[j] for j, (h, d, o) in enumerate(floors) if j in seen and (h, o) == (harness, op)}
        if harness in EAGER and i not in seen and known:
            overheads[i], shadows[of[i]] = on_host(known, harness, device)
    return values


def _kernel(implementation: str, row: Any, sheets: Mapping[str, GpuSheet]) -> str:
    """The kernel that ran a row on its GPU."""
    capability = sheets[str(row.device)].numbers()["compute_capability"]
    return variant(implementation, row.op, row.rows, row.cols, row.dtype, capability)


def _floor(row: Any) -> tuple[str, str, str]:
    """Whose overhead a row has: of its device and operator where an eager call is timed, else its protocol's."""
    name = protocol_of(str(row.source)).name
    return (name, str(row.device), str(row.op)) if name in EAGER else (name, ANY, ANY)


def _problem(
    frame: pd.DataFrame,
    sheets: Mapping[str, GpuSheet],
    implementation: str,
    weights: np.ndarray,
    kernels: list[str],
    floors: list[tuple[str, str, str]],
) -> Problem:
    rows = list(frame.itertuples())
    whats = [vector_ops()[r.op] for r in rows]
    names = [_kernel(implementation, r, sheets) for r in rows]
    counts = [counts_of(implementation, name) for name in names]
    sms = {str(device): sheet.numbers()["sm_count"] for device, sheet in sheets.items()}
    distance = np.array([distances_of(r, protocol_of(str(r.source)), sms[str(r.device)]) for r in rows]).T
    numbers = [n for n in VectorOp.__dataclass_fields__ if n not in ("op", "out")]
    fixed = [n for n in Counts.__dataclass_fields__ if n not in FITTED_COUNTS]
    pairs = {(str(r.device), str(r.source)) for r in rows}
    record = {
        (d, s): jax.tree.map(float, as_measured(sheets[d].record(), sheets[d].name, s, protocol_of(s)))
        for d, s in pairs
    }
    return Problem(
        VectorOp(op="", out="", **{n: np.array([getattr(w, n) for w in whats]) for n in numbers}),  # pyright: ignore[reportArgumentType]
        {n: np.array([getattr(c, n) for c in counts]) for n in fixed},
        frame["rows"].to_numpy(float),
        frame["cols"].to_numpy(float),
        (
            np.array([element_bytes(r.dtype) for r in rows]),
            np.array([element_bytes(w.out or r.dtype) for w, r in zip(whats, rows, strict=True)]),
        ),
        (distance[0], distance[1], distance[2]),
        np.array([keys_of(r) for r in rows]),
        np.array([kernels.index(name) for name in names]),
        np.array([floors.index(_floor(r)) for r in rows]),
        np.array([_hosts(floors).index(_host(_floor(r))) for r in rows]),
        jax.tree.map(lambda *x: jnp.asarray(np.array(x), float), *(record[str(r.device), str(r.source)] for r in rows)),
        np.ones(len(rows)),
        jnp.asarray(frame["latency_us"].to_numpy(float)),
        jnp.asarray(weights, float),
    )


def _shares(implementation: str) -> tuple[Parameter, ...]:
    known = parameters(KINDS[implementation])
    return tuple(p for p in known if p.stage != FIXED and p.name != "overhead_us")


def _count_parameters(implementation: str, kernels: list[str]) -> list[Parameter]:
    """Priors of the counts of each kernel: the most particular that the table holds."""
    rows = read_table("calibration/vector_count_priors.csv")
    table = {(r["implementation"], r["op"], r["attribute"]): r for r in rows}
    found = []
    for attribute in FITTED_COUNTS:
        for kernel in kernels:
            keys = ((i, op, attribute) for i, op in ((implementation, kernel), (ANY, kernel), (ANY, ANY)))
            row = next(table[key] for key in keys if key in table)
            numbers = (float(row[k]) for k in ("prior", "low", "high", "spread"))
            found.append(Parameter(attribute, "counts", row["unit"], *numbers))
    return found


def _floor_parameters(floors: list[tuple[str, str, str]]) -> list[Parameter]:
    """Overheads of all floors, then the shadows of all hosts."""
    usual = next(p for p in parameters("vector") if p.name == "overhead_us")
    own = {"overhead_us": (usual.prior, usual.low, usual.high, usual.spread), "shadow_us": NO_SHADOW}
    places = {"overhead_us": [harness for harness, _, _ in floors], "shadow_us": [host[0] for host in _hosts(floors)]}
    return [
        Parameter(name, "floor", "us", *(EAGER_PRIOR if harness in EAGER else own)[name])
        for name, harnesses in places.items()
        for harness in harnesses
    ]


def _hosts(floors: list[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    """Whose shadow each is."""
    return sorted({_host(floor) for floor in floors})


def _host(floor: tuple[str, str, str]) -> tuple[str, str, str]:
    """A host's way to the second event is one for all operators; to a synchronisation it is each operator's own."""
    harness, device, op = floor
    return (harness, device, op if harness == "llmcompass" else ANY)


def _parts(values: Any, shape: tuple[int, int, tuple[str, ...]]) -> tuple[Any, Any, Any, Any]:
    """Shares, counts (attributes, kernels), overheads (floors,) and shadows (hosts,) of one vector of values."""
    kernels, floors, shares = shape
    first, counts = len(shares), len(FITTED_COUNTS) * kernels
    return (
        values[:first],
        values[first : first + counts].reshape(len(FITTED_COUNTS), kernels),
        values[first + counts : first + counts + floors],
        values[first + counts + floors :],
    )


def built(problem: Problem, counts: Any) -> Kernel:
    """Return the kernels (rows,) of fitted ``counts`` (attributes, kernels), as :func:`vector_kernel` makes each."""
    fitted = {name: counts[i][problem.kernel] for i, name in enumerate(FITTED_COUNTS)}
    kernel = vector_kernel(
        problem.what,
        Counts(**problem.counts, **fitted),
        problem.rows,
        problem.cols,
        problem.element,
        problem.distance,
        second=problem.second,
    )
    return jax.tree.map(lambda x: jnp.broadcast_to(jnp.asarray(x, float), problem.rows.shape), kernel)


def _model(shares: Any, names: tuple[str, ...]) -> Amali:
    """The model of an implementation's shares, all other parameters neutral."""
    return model_of(prior_values("vector") | dict(zip(names, shares, strict=True)))


def _slowdowns(
    values: np.ndarray, problem: Problem, frame: pd.DataFrame, shape: tuple[int, int, tuple[str, ...]]
) -> np.ndarray:
    """How many times as long each row takes in the board's power limit, by counts and shares of ``values``."""
    shares, counts, _, _ = _parts(values, shape)
    rows = [(protocol_of(str(row.source)), row) for row in frame.itertuples()]
    launches = np.array([way.back_to_back(row) for way, row in rows], float)
    run_us = np.array([way.busy_us(row) for way, row in rows], float)
    model, kernels, drawn = _model(shares, shape[2]), built(problem, counts), np.ones(len(rows))
    return slowdowns(model, kernels, problem.gpus, launches, run_us, drawn)


def _predicted(values: Array, problem: Problem, shape: tuple[int, int, tuple[str, ...]]) -> Array:
    shares, counts, overheads, shadows = _parts(values, shape)
    model, kernels = _model(shares, shape[2]), built(problem, counts)
    time = us_of(timings(model, kernels, problem.gpus)) * problem.slower
    return as_read(time, overheads[problem.floor], shadows[problem.host])


def _told(
    values: np.ndarray,
    predicted: np.ndarray,
    kernels: list[str],
    floors: list[tuple[str, str, str]],
    shape: tuple[int, int, tuple[str, ...]],
) -> VectorFit:
    shares, counts, overheads, shadows = _parts(values, shape)
    named = {k: {n: float(counts[i, j]) for i, n in enumerate(FITTED_COUNTS)} for j, k in enumerate(kernels)}
    # A shadow below a hundredth of a microsecond is none.
    shadow = {host: float(s) if s > 0.01 else 0.0 for host, s in zip(_hosts(floors), shadows, strict=True)}
    found = {floor: (float(o), shadow[_host(floor)]) for floor, o in zip(floors, overheads, strict=True)}
    return VectorFit(dict(zip(shape[2], map(float, shares), strict=True)), named, found, predicted)
