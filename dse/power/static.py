"""AccelWattch's static power of active SMs: power gating of lanes and SMs, by the mix of instructions.

Each choice has the released code's behaviour, the paper's, and where it helps a third one, chosen by name.
"""

from typing import Any, Literal

import equinox as eqx
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from dse.base.constants import constant
from dse.base.errors import InputError, accepted
from dse.base.numerics import safe_div
from dse.base.package_tables import read_table
from dse.power.counters import AccelWattchActivity, constants

CATEGORIES: tuple[str, ...] = tuple(row["category"] for row in read_table("power/accelwattch_static.csv"))
"""The instruction mixes with static watts of their own, in table order; their meaning stands in the table."""

UNITS = ("int_add", "int_mul", "fp", "dp", "sfu", "tensor", "tex")
MEMORIES = ("l1", "shared", "l2")

ADDED_LANES = constant("added_lanes")  # from the first lane to a full warp
HALF_WARP = constant("half_warp_lanes")

READINGS: dict[str, dict[str, str]] = {
    "released": {"mix": "released", "lane_model": "linear", "sm_scaling": "released"},
    "paper": {"mix": "activity", "lane_model": "by_units", "sm_scaling": "per_sm"},
    "blend": {"mix": "blend", "lane_model": "linear", "sm_scaling": "released"},
}
"""The three readings as a whole: the released code's, the paper's, and the released one made differentiable."""

_CHOICES = {
    "mix": ("released", "activity", "blend"),
    "lane_model": ("linear", "half_warp", "by_units"),
    "sm_scaling": ("released", "per_sm", "first_sm"),
}


class StaticPower(eqx.Module):
    """Static power of the active SMs of one GPU; ``first_lane_w`` and ``added_lane_w`` [W] by category.

    ``mix``: which category a launch belongs to. "released": any counted operation, integer work always counts as
    present, and a launch without execution-unit operations is always l1 (what the released code does, and the
    published watts with it). "activity": the same rules on what is really there (the paper's). "blend": presence
    grows smoothly with the share of operations, share / (share + ``half_share``), and the categories are averaged; it
    tends to "activity" as ``half_share`` goes to 0.
    ``lane_model``: "linear" (Eq. 4; the released code for every mix, lanes rounded up), "half_warp" (Eq. 5),
    "by_units" (the paper's: half-warp for one unit, linear from three, their mean for two).
    ``sm_scaling``: "released" (active / all SMs of the target), "per_sm" (Eq. 9, 10 literally: active / 80), or
    "first_sm" (ours: the first SM carries ``first_sm_ratio`` times a later one, Fig. 3).
    """

    first_lane_w: Array
    added_lane_w: Array
    reference_sms: Array
    first_sm_ratio: Array
    half_share: Array
    mix: Literal["released", "activity", "blend"] = eqx.field(default="released", static=True)
    lane_model: Literal["linear", "half_warp", "by_units"] = eqx.field(default="linear", static=True)
    sm_scaling: Literal["released", "per_sm", "first_sm"] = eqx.field(default="released", static=True)

    @classmethod
    def from_table(cls, reading: str = "released", **choices: str) -> "StaticPower":
        """Return the published watts with one of READINGS, single choices replaced by name.

        Raises InputError for a reading or choice that does not exist.
        """
        if reading not in READINGS:
            raise InputError(f"static reading {reading!r} does not exist; {accepted(reading, READINGS)}")
        chosen = READINGS[reading] | choices
        for name, value in chosen.items():
            options = _CHOICES.get(name, ())
            if value not in options:
                raise InputError(f"static power: {name} = {value!r} does not exist; {accepted(value, options)}")
        rows = read_table("power/accelwattch_static.csv")
        value = constants()
        settings: dict[str, Any] = dict(chosen)
        return cls(
            first_lane_w=jnp.asarray([float(row["first_lane_w"]) for row in rows]),
            added_lane_w=jnp.asarray([float(row["added_lane_w"]) for row in rows]),
            reference_sms=jnp.asarray(value["reference_sms"]),
            first_sm_ratio=jnp.asarray(value["first_sm_ratio"]),
            half_share=jnp.asarray(value["blend_half_share"]),
            **settings,
        )

    def __call__(self, activity: AccelWattchActivity) -> Array:
        """Static power of the active SMs [W]."""
        presence = self.presence(activity)
        return self.of_mix(self.weights(activity), units_present(presence), activity)

    def of_mix(self, weights: Array, units: ArrayLike, activity: AccelWattchActivity) -> Array:
        """Static power [W] of a stated mix: ``weights`` of CATEGORIES (they add up to 1), ``units`` at work."""
        first = jnp.sum(weights * self.first_lane_w, axis=-1)
        added = jnp.sum(weights * self.added_lane_w, axis=-1)
        return (first + added * self.added_lanes(activity.lanes, units)) * self.sm_share(activity)

    def presence(self, activity: AccelWattchActivity) -> dict[str, Array]:
        """How present each of UNITS and MEMORIES is, from 0 to 1."""
        if self.mix == "blend":
            return self._share_presence(activity, UNITS) | self._share_presence(activity, MEMORIES)
        return {name: jnp.where(activity.accesses(name) > 0, 1.0, 0.0) for name in UNITS + MEMORIES}

    def weights(self, activity: AccelWattchActivity) -> Array:
        """Weight of each of CATEGORIES, shape (categories,); one of them is 1 unless they are blended."""
        presence = self.presence(activity)
        if self.mix != "released":
            return category_weights(presence)
        # the released code tests McPAT's coefficients, which are never 0, for integer additions, L1D, shared and L2
        one = jnp.ones_like(activity.cycles)
        with_units = category_weights(presence | {"int_add": one})
        return jnp.where(jnp.ceil(activity.lanes)[..., None] > 0, with_units, one_hot("l1"))

    def added_lanes(self, lanes: ArrayLike, units: ArrayLike) -> Array:
        """Lanes beyond the first that a mean warp of ``lanes`` lanes is charged for; 31 for a full warp."""
        if self.mix == "released":
            lanes = jnp.ceil(jnp.asarray(lanes))
        linear = linear_lanes(lanes)
        half = half_warp_lanes(lanes) * ADDED_LANES / (HALF_WARP - 1)  # P_add such that P(32) is P_32
        if self.lane_model == "linear":
            return linear
        if self.lane_model == "half_warp":
            return half
        share = jnp.clip((3.0 - jnp.asarray(units)) / 2.0, 0.0, 1.0)  # "in between" for two units: our mean
        return share * half + (1 - share) * linear

    def sm_share(self, activity: AccelWattchActivity) -> Array:
        """Static power of the active SMs over that of the reference GPU with all SMs active."""
        active = activity.active_sms
        if self.sm_scaling == "released":
            return safe_div(active, activity.sm_count)
        if self.sm_scaling == "per_sm":
            return active / self.reference_sms  # Eq. (9), (10)
        chip = self.first_sm_ratio - 1
        return (chip + active) / (chip + self.reference_sms)

    def _share_presence(self, activity: AccelWattchActivity, names: tuple[str, ...]) -> dict[str, Array]:
        counts = {name: activity.accesses(name) for name in names}
        total = sum(counts.values(), jnp.zeros_like(activity.cycles))
        shares = {name: safe_div(count, total) for name, count in counts.items()}
        return {name: share / (share + self.half_share) for name, share in shares.items()}


def category_weights(presence: dict[str, Array]) -> Array:
    """Weight of each of CATEGORIES from the presence of UNITS and MEMORIES (0 to 1), shape (categories,).

    The rules of ``calculate_static_power`` as products of what is present and absent, so that 0 and 1 give the hard
    switch and anything between a blend; what no rule covers is geomean.
    """
    add, mul, fp = presence["int_add"], presence["int_mul"], presence["fp"]
    dp, sfu, tensor, tex = (presence[name] for name in ("dp", "sfu", "tensor", "tex"))
    l1, shared, l2 = (presence[name] for name in MEMORIES)
    integer = 1 - (1 - add) * (1 - mul)
    both, integer_only = integer * fp, 1 - fp
    none = (1 - dp) * (1 - sfu) * (1 - tensor) * (1 - tex)
    idle = (1 - integer) * (1 - fp) * none
    weight = {
        "cat1": add * mul * integer_only * none,
        "cat2": both * none,
        "cat3": both * dp * (1 - sfu) * (1 - tensor) * (1 - tex),
        "cat4": both * sfu * (1 - dp) * (1 - tensor) * (1 - tex),
        "cat5": both * tex * (1 - dp) * (1 - sfu) * (1 - tensor),
        "cat6": both * tensor * (1 - dp) * (1 - sfu) * (1 - tex),
        "intadd": add * (1 - mul) * integer_only * none,
        "intmul": (1 - add) * mul * integer_only * none,
        "l1": idle * l1,
        "shared": idle * (1 - l1) * shared,
        "l2": idle * (1 - l1) * (1 - shared) * l2,
        "light": idle * (1 - l1) * (1 - shared) * (1 - l2),
    }
    weight["geomean"] = 1 - sum(weight.values(), jnp.zeros_like(idle))
    return jnp.stack([weight[category] for category in CATEGORIES], axis=-1)


def units_present(presence: dict[str, Array]) -> Array:
    """Kinds of unit at work: integer, FP, DP, SFU, tensor and texture, each from 0 to 1."""
    integer = 1 - (1 - presence["int_add"]) * (1 - presence["int_mul"])
    return integer + sum(presence[name] for name in UNITS[2:])


def one_hot(category: str) -> Array:
    """Weights of CATEGORIES that choose one by name; raises InputError when there is none."""
    if category not in CATEGORIES:
        raise InputError(f"{category!r} is not a category of static power; {accepted(category, CATEGORIES)}")
    return jnp.asarray([1.0 if name == category else 0.0 for name in CATEGORIES])


def linear_lanes(lanes: ArrayLike) -> Array:
    """Lanes beyond the first, y - 1, Eq. (4); 0 where no lane ran."""
    return jnp.maximum(jnp.asarray(lanes) - 1, 0.0)


def half_warp_lanes(lanes: ArrayLike) -> Array:
    """Lanes beyond the first as Eq. (5) counts them [lane]: above 16, the mean of a full and a partial half-warp.

    As printed it gives 15 at 16 lanes and at 32 alike, so its P_add is (P_16 - P_first) / 15.
    """
    y = jnp.asarray(lanes)
    return jnp.where(y <= HALF_WARP, linear_lanes(y), (HALF_WARP - 1) / 2 + (y - HALF_WARP - 1) / 2)


def idle_sm_power(
    full_w: ArrayLike, partial_w: ArrayLike, active_sms: ArrayLike, constant_w: ArrayLike, sm_count: ArrayLike
) -> Array:
    """Power of an idle SM [W/SM]: geometric mean over microbenchmarks, shape (benchmarks,) in, scalar out.

    ``full_w``: board power with all SMs at work; ``partial_w``: with ``active_sms``. All idle powers must be positive.
    """
    per_active = (jnp.asarray(full_w) - constant_w) / sm_count  # Eq. (6)
    of_idle = jnp.asarray(partial_w) - constant_w - active_sms * per_active
    idle = of_idle / (sm_count - jnp.asarray(active_sms))  # Eq. (7)
    return jnp.exp(jnp.mean(jnp.log(idle)))  # Eq. (8)
