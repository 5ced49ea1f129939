"""Fits of mixtures of experts: an implementation a framework's release and type, its products and passes together."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jax import Array
from rows import Part

from dse.base.package_tables import read_table
from dse.calibration.losses import absolute, weighted_mean
from dse.calibration.optimiser import descend
from dse.calibration.timing.answer import TimingAnswer
from dse.calibration.timing.fit import FIXED, NAMES, Determined, Priors, model_of, parameters, prior_values, priors
from dse.calibration.timing.stages import StagedFit, errors_after
from dse.evaluate.batching import over_arrays
from dse.measured.table import OperatorTable
from dse.timing.calibration import implementation_calibration
from dse.timing.error_quantiles import ErrorQuantiles
from dse.validation.error_quantiles import errors_of, seen, unseen
from dse.workload.implementation import KINDS
from dse.workload.operators.expert_products import COSTS, EXPERTS, WARP_LEVELS

FREE = {p.name for p in parameters(EXPERTS) if p.stage != FIXED} - {"overhead_us"}
"""Costs of products that are fitted."""

STARTS = {"launches": (6.0, 1.0, 40.0), "expert_waits": (0.05, 0.001, 1.0), "pair_waits": (0.5, 0.01, 20.0),
          "stretch": (1.2, 1.0, 5.0), "unaligned": (3.0, 1.0, 12.0)}  # fmt: skip
"""Costs of passes: where a fit starts, and their bounds."""

SPREAD = 0.7
"""Deviation of their priors in logarithm."""

STEPS, RATE = 250, 0.1

STRENGTH = 0.05 / 8
"""Weight of the priors against the mean error: rows are of eight shape families or fewer."""

SIZE = 256
"""Rows to whose multiples fits are padded: a few compiled programs."""

BEGUN = {"experts_fp8_vllm_0_24_hopper": {"l2": 0.15, "dram": 0.9, "tensor": 0.6}}
"""Costs about which the priors of an implementation stand, where those of the kind are far from what its rows say: this
one reads weights at half a terabyte a second, on an H100 and an H200 alike."""

OTHERS = 2
"""Implementations of the same type whose costs stand for those of a release or GPU that nobody measured."""

TYPES = ("fp8_block", "fp8", "bf16", "nvfp4", "int4", "mxfp4_mxfp8", "mxfp4")
"""Types in the names of implementations; the first that fits counts."""


NEWEST = ("vllm_0_24", "sglang_0_5_14")
"""Releases whose kernels of MXFP4 are known."""

LIKE = {
    **{f"experts_mxfp4_{one}_hopper": 2 * (f"experts_bf16_{one}_hopper",) for one in NEWEST},
    **{
        f"experts_mxfp4_mxfp8_{one}_blackwell": (f"experts_nvfp4_{one}_blackwell", f"experts_fp8_block_{one}_blackwell")
        for one in NEWEST
    },
}
"""Implementations of types whose families are all left out -> those whose costs they have, and whose share of the
tensor cores' rate: of the same release, with as narrow weights, and multiplied in the same type."""


@dataclass(frozen=True)
class Fitted:
    """Costs of a part's ``products`` and ``passes``, by name."""

    products: dict[str, float]
    passes: dict[str, float]


def padded(part: Part, keep: np.ndarray) -> tuple[Any, ...]:
    """Return a part's rows of a mask as a fit takes them, padded to a multiple of SIZE, and their weights."""
    used = np.flatnonzero(keep)
    size = -(-len(used) // SIZE) * SIZE
    place = np.resize(used, size)
    arrays = (part.products, part.gpus, part.plain_us, part.bytes_us, part.launch_us, part.wait_us, part.experts,
              part.pairs, part.unaligned, part.table["latency_us"].to_numpy(float))  # fmt: skip
    weights = jnp.asarray(np.arange(size) < len(used), float)
    return *jax.tree.map(lambda x: jnp.asarray(np.asarray(x)[place], float), arrays), weights


def predicted(costs: Array, passes: Array, rows: tuple[Any, ...]) -> Array:
    """Return the time of each row [us]."""
    products, gpus, plain, over_bytes, launch, wait, experts, pairs, unaligned, *_ = rows
    model = model_of(dict(zip(NAMES, costs, strict=True)))
    gpus = jax.tree.map(lambda x: x[:, None, None], gpus)
    us = jnp.min(over_arrays(model.nanoseconds, products, gpus), axis=2) * 1e-3
    launches, expert_waits, pair_waits, stretch, factor = passes
    small = plain + (launches - 1.0) * launch + (expert_waits * experts + pair_waits * pairs) * wait
    return small + stretch * over_bytes + jnp.sum(us * (1.0 + (factor - 1.0) * unaligned), axis=1)


LOW, HIGH = (np.log([STARTS[name][i] for name in COSTS]) for i in (1, 2))
CENTRE = np.log([STARTS[name][0] for name in COSTS])


def passes_of(y: Array) -> Array:
    """Return the passes' costs of deviations from their starts."""
    return jnp.exp(jnp.clip(CENTRE + SPREAD * y, LOW, HIGH))


@jax.jit
def _fit(free: Array, prior: Priors, rows: tuple[Any, ...]) -> Array:
    measured, weights = rows[-2], rows[-1]

    def loss(x: Array) -> Array:
        z, y = free * x[: len(NAMES)], x[len(NAMES) :]
        error = jnp.log(predicted(prior.values(z), passes_of(y), rows) / measured)
        return weighted_mean(absolute(error), weights) + 0.5 * STRENGTH * (jnp.sum(z**2) + jnp.sum(y**2))

    return descend(loss, jnp.zeros(len(NAMES) + len(COSTS)), STEPS, RATE)


def fit(part: Part) -> Fitted:
    """Return the fitted costs of a part's products and of its passes."""
    free = jnp.asarray([float(name in FREE) for name in NAMES])
    prior = priors(EXPERTS, BEGUN.get(part.name))
    x = _fit(free, prior, padded(part, ~part.out))
    costs, passes = prior.values(free * x[: len(NAMES)]), passes_of(x[len(NAMES) :])
    return Fitted(
        dict(zip(NAMES, np.asarray(costs).tolist(), strict=True)),
        dict(zip(COSTS, np.asarray(passes).tolist(), strict=True)),
    )


_predicted = jax.jit(predicted)


def predicted_us(part: Part, costs: Fitted) -> np.ndarray:
    """Return what costs predict of all rows of a part [us]."""
    rows = padded(part, np.ones(len(part.table), bool))
    values = jnp.asarray([costs.products[name] for name in NAMES]), jnp.asarray([costs.passes[name] for name in COSTS])
    return np.asarray(_predicted(*values, rows))[: len(part.table)]


class MixtureAnswer(TimingAnswer):
    """The answer of a fit whose parameters have no intervals: launches and passes trade with each other."""

    def coefficients(self) -> list[dict[str, Any]]:
        """Return the parameters with their units and stage."""
        known = (p for p in parameters(EXPERTS) if p.name in FREE)
        return [{"name": p.name, "value": self.fit.values[p.name], "unit": p.unit, "stage": p.stage} for p in known]


def shipped_costs(name: str) -> Fitted:
    """Return the costs of an implementation that stand in its files."""
    row = next(r for r in read_table("calibration/expert_products.csv") if r["implementation"] == name)
    products = prior_values(EXPERTS) | implementation_calibration(name).values
    return Fitted({key: products[key] for key in NAMES}, {key: float(row[key]) for key in COSTS})


def costs_like(costs: Fitted, rates: Fitted) -> Fitted:
    """Return costs with the share of the tensor cores' rate that others have."""
    return replace(costs, products=costs.products | {"tensor": rates.products["tensor"]})


def answer_of(part: Part, costs: Fitted, others: Sequence[Fitted], table: OperatorTable) -> TimingAnswer:
    """Return the answer of a part, with the errors of its left-out rows under its own costs and those of ``others``."""
    us, out = predicted_us(part, costs), part.out
    count = int((~out).sum())
    stage = errors_after("all at once", part.table, out, us, tuple(sorted(FREE)), count)
    values = {name: value for name, value in costs.products.items() if name != "overhead_us"}
    judged = errors_of(part.table, us).assign(implementation=part.name, out=out)
    gpus = tuple(sorted(judged["gpu"].unique()))
    unfitted = [] if count else list(judged["dtype"].unique())
    return MixtureAnswer(
        part.name,
        gpus,
        (table,),
        count,
        int(out.sum()),
        {str(way): float(mean) for way, mean in part.table.groupby("harness")["overhead_us"].mean().items()},
        StagedFit(values, (stage,), Determined((), *(np.zeros(0) for _ in range(5))), us),
        seen(judged[out], set(judged["way"]), gpus, unfitted) + _elsewhere(part, others),
        part.name,
    )


def _elsewhere(part: Part, others: Sequence[Fitted]) -> tuple[ErrorQuantiles, ...]:
    """The errors of a part's left-out rows under the costs of other releases: of GPUs and releases not measured."""
    transfers = [_left_out(part, predicted_us(part, one)) for one in others]
    dtype = str(part.table["dtype"].iloc[0])
    return unseen(transfers, part.name, "moe", dtype) if transfers else ()


def _left_out(part: Part, us: np.ndarray) -> pd.DataFrame:
    return errors_of(part.table, us)[part.out]


def fitted(parts: Sequence[Part], table: OperatorTable) -> tuple[dict[str, TimingAnswer], dict[str, Fitted]]:
    """Fit every part; return the answers and the costs."""
    costs = {part.name: fit(part) for part in parts if part.name not in LIKE}

    def of(name: str) -> Fitted:
        return costs[name] if name in costs else shipped_costs(name)

    costs |= {part.name: costs_like(*map(of, LIKE[part.name])) for part in parts if part.name in LIKE}
    answers = {}
    for part in parts:
        alike = _alike(part.name)
        answers[part.name] = answer_of(part, costs[part.name], list(map(of, alike[:OTHERS])), table)
        stage = answers[part.name].fit.stages[-1]
        print(f"| {part.name} | {stage.rows} | {stage.fitted or 0.0:.1f} | {stage.left_out or 0.0:.1f} |", flush=True)
    return answers, costs


def _alike(implementation: str) -> list[str]:
    """Implementations of the same type and generation; where there is no other, of any warp-level generation."""
    others = [name for name, kind in KINDS.items() if kind == EXPERTS and name != implementation]
    same = [name for name in others if type_of(name) == type_of(implementation)]
    nearest = [name for name in same if _kind(name) == _kind(implementation)]
    return nearest or [name for name in same if _kind(name)[1] in WARP_LEVELS]


def _kind(implementation: str) -> tuple[str, str]:
    """The type and the generation of instructions of an implementation."""
    return type_of(implementation), implementation.rpartition("_")[2]


def type_of(implementation: str) -> str:
    """Return the type of products that an implementation is of."""
    return next(kind for kind in TYPES if implementation.startswith(f"experts_{kind}_"))
