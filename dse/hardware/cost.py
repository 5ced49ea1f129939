"""What the dies of a GPU cost: dies on a wafer, yield, and the price of a wafer shared by the dies that can be sold.

Prices and defect densities are published or estimated, each with its source in ``data/process/wafers.csv``; foundries
confirm none of them. Test, packaging, design and masks are not in the cost. Memory is a component of its own.
"""

from abc import abstractmethod
from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from dse.base.errors import InputError, accepted
from dse.base.numerics import held
from dse.base.package_tables import read_table
from dse.hardware.gpu import Gpu
from dse.hardware.process import memory_column, node_column, own_or_type, value_at

MOST_DEFECTS = 24
"""Defects of one die that harvesting looks at: at the largest die of the tables (one defect on average) more are rarer
than 1e-10, so more SMs to spare help no more."""

TRIANGLE_NODES = 12
"""Gauss-Legendre nodes a side of Murphy's triangle: below 1e-6 of its closed form up to eight defects a die."""

SMALLEST_MM2 = 1.0  # no die is smaller; keeps the root differentiable
MM2_PER_CM2 = 100.0


class Cost(NamedTuple):
    """What the silicon of a GPU costs: a package of ``dies`` equal dies."""

    dies: Array  # dies in the package
    die_mm2: Array  # area of one die [mm2]
    dies_per_wafer: Array
    die_yield: Array  # share of the dies that can be sold
    cost_usd: Array  # all dies of the package [USD]
    memory_usd: Array  # its DRAM [USD], not in cost_usd


class YieldModel(eqx.Module):
    """How defects spread over dies: the distribution of their number on a die with x of them on average."""

    @abstractmethod
    def defects(self, x: Array) -> Array:
        """Probability of 0, 1, ... MOST_DEFECTS defects on a die, shape (MOST_DEFECTS + 1,)."""

    def plain(self, x: Array) -> Array:
        """Share of dies without a defect."""
        return self.defects(x)[0]

    def harvested(self, x: Array, share: ArrayLike, spare: ArrayLike) -> Array:
        """Share of dies with every defect in the harvestable share of the area, and at most ``spare`` of them.

        Each defect costs an SM of its own, which is too strict when two meet in one. A fraction of a spare SM counts
        as that fraction: the exact sum at whole numbers, continuous between.
        """
        count = jnp.arange(MOST_DEFECTS + 1.0)
        counted = jnp.clip(spare + 1 - count, 0.0, 1.0).at[0].set(1.0)
        return jnp.sum(counted * self.defects(x) * jnp.asarray(share) ** count)


class NegativeBinomial(YieldModel):
    """Defects cluster: their density varies over dies as a gamma distribution of shape alpha (Stapper 1973)."""

    alpha: Array

    def defects(self, x: Array) -> Array:
        """Return the negative binomial distribution; its first term is (1 + x / alpha)^-alpha."""
        count = jnp.arange(float(MOST_DEFECTS))
        ratios = (self.alpha + count) / (count + 1) * x / (self.alpha + x)
        none = jnp.exp(-self.alpha * jnp.log1p(x / self.alpha))
        return none * jnp.concatenate([jnp.ones(1), jnp.cumprod(ratios)])


class Murphy(YieldModel):
    """Defect density varies over dies as a triangle from 0 to twice its mean (Murphy 1964)."""

    def defects(self, x: Array) -> Array:
        """Return Poisson distributions mixed over the triangle; the first term is ((1 - e^-x) / x)^2."""
        nodes, weights = np.polynomial.legendre.leggauss(TRIANGLE_NODES)
        rising, weight = (nodes + 1) / 2, weights / 2
        density = np.concatenate([rising, 2 - rising])  # of a die, relative to the mean
        share = np.concatenate([weight * rising, weight * rising])
        mean = x * density[:, None]
        ratios = mean / (1.0 + np.arange(float(MOST_DEFECTS)))
        poisson = jnp.exp(-mean) * jnp.concatenate([jnp.ones_like(mean), jnp.cumprod(ratios, axis=1)], axis=1)
        return jnp.asarray(share) @ poisson


YIELD_MODELS: dict[str, Callable[[Array], YieldModel]] = {
    "negative_binomial": NegativeBinomial,
    "murphy": lambda alpha: Murphy(),
}
"""Name -> yield model for a cluster parameter alpha, which Murphy's has no use for."""


class DieCost(eqx.Module):
    """The cost model: one call for the cost of a GPU of a given area.

    Scalars in, scalars out; coefficients and units stand in ``data/process/cost.csv`` and ``wafers.csv``. There are as
    many dies as the record states. An area above the exposure field of a scanner is at least the fewest equal dies
    that fit it. Smaller dies yield better, and their package is not charged: so that crossing the field makes no
    design cheaper, a package costs at least what the largest of one die fewer than the field asks for does. What is
    switched off raises the yield in SMs only (``Gpu.sm_enabled_fraction``): L2 slices, links and memory channels that
    are switched off too save no die here.
    """

    yield_model: YieldModel
    wafer_usd: Array
    defects_per_cm2: Array
    usd_per_gb: Array
    wafer_diameter: Array
    edge_exclusion: Array
    scribe: Array
    reticle: Array
    harvestable_share: Array

    @classmethod
    def from_table(cls, yield_model: str = "negative_binomial") -> "DieCost":
        """The model of the tables with a yield model of YIELD_MODELS; raises InputError for another name."""
        values = {row["coefficient"]: held(float(row["value"])) for row in read_table("process/cost.csv")}
        if yield_model not in YIELD_MODELS:
            raise InputError(
                f"yield_model = {yield_model!r} is not a yield model; {accepted(yield_model, YIELD_MODELS)}"
            )
        return cls(
            yield_model=YIELD_MODELS[yield_model](values.pop("alpha")),
            wafer_usd=node_column("process/wafers.csv", "wafer_usd"),
            defects_per_cm2=node_column("process/wafers.csv", "defects_per_cm2"),
            usd_per_gb=memory_column("process/memory_cost.csv", "usd_per_gb"),
            **values,
        )

    def __call__(self, area_mm2: ArrayLike, gpu: Gpu) -> Cost:
        """Cost of the dies of a GPU whose dies measure area_mm2 together [mm2]."""
        area = jnp.asarray(area_mm2)
        fewest = jnp.maximum(jnp.ceil(area / self.reticle), 1.0)
        dies = jnp.maximum(fewest, gpu.dies)
        fewer = jnp.maximum(fewest - 1, 1.0)
        die_yield = self._yield(area / dies, dies, gpu)
        per_wafer = self.dies_per_wafer(area / dies)
        wafer_usd = value_at(self.wafer_usd, gpu.process)
        good = self.dies_per_wafer(self.reticle) * self._yield(self.reticle, fewer, gpu)
        floor = jnp.where(fewest > 1, fewer * wafer_usd / good, 0.0)
        return Cost(
            dies=dies,
            die_mm2=area / dies,
            dies_per_wafer=per_wafer,
            die_yield=die_yield,
            cost_usd=jnp.maximum(dies * wafer_usd / (per_wafer * die_yield), floor),
            memory_usd=own_or_type(gpu.dram_usd_per_gb, self.usd_per_gb, gpu.dram_type) * gpu.dram_gb,
        )

    def dies_per_wafer(self, die_mm2: ArrayLike) -> Array:
        """Whole square dies on a wafer, by area less those the edge cuts; at least one, so that a cost stays finite."""
        die = jnp.maximum(die_mm2, SMALLEST_MM2)
        cut = die + 2 * self.scribe * jnp.sqrt(die) + self.scribe**2
        usable = self.wafer_diameter - 2 * self.edge_exclusion
        return jnp.maximum(jnp.pi * usable**2 / (4 * cut) - jnp.pi * usable / jnp.sqrt(2 * cut), 1.0)

    def _yield(self, die_mm2: Array, dies: Array, gpu: Gpu) -> Array:
        """Share of the dies that can be sold with the SMs switched off that the record switches off."""
        x = value_at(self.defects_per_cm2, gpu.process) * die_mm2 / MM2_PER_CM2
        spare = gpu.sm_count * (1 / gpu.sm_enabled_fraction - 1) / dies
        return self.yield_model.harvested(x, self.harvestable_share, spare)
