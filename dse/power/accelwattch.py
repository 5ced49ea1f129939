"""AccelWattch: GPU power from activity (Kandiah et al., MICRO 2021), with the coefficients of its four variants.

P = P_const + P_idle + P_static + sum_i a_i E_i / T (Eq. 10 to 12); ``PAPERS.md`` lists every departure.
"""

from collections.abc import Mapping
from functools import cache

import equinox as eqx
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from dse.base.errors import InputError, accepted
from dse.base.numerics import safe_div
from dse.base.package_tables import read_table
from dse.power.counters import COUNTERS, ENERGIES, AccelWattchActivity, constants
from dse.power.power import COMPONENTS, Power
from dse.power.static import StaticPower

PICO = 1e-12  # J in a pJ

VARIANTS = ("sass_sim", "ptx_sim", "hw", "hybrid", "sass_sim_from_ones", "ptx_sim_from_ones")
"""The published sets of coefficients; ``from_ones`` are fits that started at x = 1 (kept for reference)."""

PARTS: dict[str, str] = {
    "IBP": "instruction",
    "ICP": "instruction",
    "SCHEDP": "instruction",
    "DCP": "l1",
    "CCP": "constant_cache",
    "SHRDP": "shared_memory",
    "RFP": "register_file",
    "INTP": "int32",
    "INT_MULP": "int32",
    "INT_MUL24P": "int32",
    "INT_MUL32P": "int32",
    "INT_DIVP": "int32",
    "FPUP": "fp32",
    "FP_MULP": "fp32",
    "FP_DIVP": "fp32",
    "DPUP": "fp64",
    "DP_MULP": "fp64",
    "DP_DIVP": "fp64",
    "FP_SQRTP": "sfu",
    "FP_LGP": "sfu",
    "FP_SINP": "sfu",
    "FP_EXP": "sfu",
    "TENSORP": "tensor",
    "TEXP": "texture",
    "L2CP": "l2",
    "NOCP": "noc",
    "MCP": "dram",
    "DRAMP": "dram",
    "PIPEP": "pipeline",
    "IDLE_COREP": "idle_sm",
    "CONSTP": "constant",
    "STATICP": "static",
}
"""AccelWattch's components, each with the component of our vocabulary that holds it."""


class TargetScaling(eqx.Module):
    """What another GPU multiplies the watts of the reference GPU with: dynamic parts, idle SMs, constant, static."""

    dynamic: Array = eqx.field(default=1.0, converter=jnp.asarray)
    idle: Array = eqx.field(default=1.0, converter=jnp.asarray)
    constant: Array = eqx.field(default=1.0, converter=jnp.asarray)
    static: Array = eqx.field(default=1.0, converter=jnp.asarray)

    @classmethod
    def at_node(cls, process: str) -> "TargetScaling":
        """The same GPU at another technology node (a process of ``data/process/nodes.csv``): dynamic energy only."""
        return cls(dynamic=node_factor(process) / node_factor("tsmc_12ffn"))

    def __call__(self, parts: Mapping[str, Array]) -> dict[str, Array]:
        """The watts of a breakdown by AccelWattch's components on this GPU."""
        other = {"IDLE_COREP": self.idle, "CONSTP": self.constant, "STATICP": self.static}
        return {part: watts * other.get(part, self.dynamic) for part, watts in parts.items()}


class AccelWattch(eqx.Module):
    """Coefficients of AccelWattch, and watts of one launch on one GPU.

    ``energy_pj``: effective energy of one access (McPAT's times the fitted x) by counter, shape (counters,) [pJ].
    ``controller_pj``: what the same access costs in the memory controller and its tables [pJ]. ``controller_base_w``:
    the controller at rest [W]. ``constant_w`` [W]; ``idle_sm_w`` [W/SM]; ``static``: the static model; ``target``:
    factors of another GPU. Energies do not depend on clock, SM count or cache sizes. Fitted on a Quadro GV100 at 65 C.
    """

    energy_pj: Array
    controller_pj: Array
    controller_base_w: Array
    constant_w: Array
    idle_sm_w: Array
    static: StaticPower
    target: TargetScaling = eqx.field(default_factory=TargetScaling)
    calibration: str = eqx.field(default="uncalibrated", static=True)

    @classmethod
    def variant(
        cls, name: str, static: StaticPower | None = None, target: TargetScaling | None = None
    ) -> "AccelWattch":
        """Return the published coefficients of one of VARIANTS; raises InputError when there is none of that name.

        ``static``: the released reading unless given. A counter that the variant's XML does not list has x = 1
        (non-register operands; divisions, which SASS does not have).
        """
        if name not in VARIANTS:
            raise InputError(f"AccelWattch has no variant {name!r}; {accepted(name, VARIANTS)}")
        rows = read_table(ENERGIES)
        x = [float(row[f"x_{name}"] or 1) for row in rows]
        value = constants()
        return cls(
            energy_pj=jnp.asarray([float(row["energy_pj"]) * scale for row, scale in zip(rows, x, strict=True)]),
            controller_pj=jnp.asarray([float(r["controller_pj"]) * scale for r, scale in zip(rows, x, strict=True)]),
            controller_base_w=jnp.asarray(value["controller_base_w"]),
            constant_w=jnp.asarray(value["constant_w"]),
            idle_sm_w=jnp.asarray(value["idle_sm_w"]),
            static=StaticPower.from_table() if static is None else static,
            target=TargetScaling() if target is None else target,
            calibration=f"accelwattch_{name}",
        )

    def power(self, activity: AccelWattchActivity) -> Power:
        """Watts of one launch by component of COMPONENTS."""
        return by_component(self.watts_by_part(activity))

    def watts_by_part(self, activity: AccelWattchActivity) -> dict[str, Array]:
        """Watts of a launch, or of a batch, by AccelWattch's components (PARTS); they add up to the total, Eq. (10)."""
        return self.with_static(activity, self.static(activity))

    def with_static(self, activity: AccelWattchActivity, static_w: ArrayLike) -> dict[str, Array]:
        """The same with the static power stated [W], for launches whose mix of instructions is known otherwise."""
        watts = safe_div(activity.counts * self.energy_pj * PICO, activity.seconds[..., None])  # Eq. (11), (12)
        controller = safe_div(jnp.sum(activity.counts * self.controller_pj, axis=-1) * PICO, activity.seconds)
        zero = jnp.zeros_like(controller)
        parts = {part: sum((watts[..., row] for row in rows), zero) for part, rows in part_counters().items()}
        return self.target(
            parts
            | {
                "MCP": controller + self.controller_base_w,
                "IDLE_COREP": self.idle_sm_w * activity.idle_sms,
                "CONSTP": self.constant_w + zero,
                "STATICP": jnp.asarray(static_w),
            }
        )


def by_component(parts: Mapping[str, Array]) -> Power:
    """Return AccelWattch's components as a Power record; components of ours that it does not have are 0 W."""
    zero = jnp.zeros_like(next(iter(parts.values())))
    watts = dict.fromkeys(COMPONENTS, zero)
    for part, value in parts.items():
        watts[PARTS[part]] = watts[PARTS[part]] + value
    return Power(**watts)


def sheet_columns(parts: Mapping[str, Array]) -> dict[str, Array]:
    """Return the components as AccelWattch's sheet reports them: L2CP with the NoC in it, DRAMP with the controller."""
    columns = {part: watts for part, watts in parts.items() if part not in ("NOCP", "MCP")}
    return columns | {"L2CP": parts["L2CP"] + parts["NOCP"], "DRAMP": parts["DRAMP"] + parts["MCP"]}


@cache
def part_counters() -> dict[str, tuple[int, ...]]:
    """Return the rows of COUNTERS of every dynamic part."""
    parts: dict[str, tuple[int, ...]] = {}
    for row in read_table(ENERGIES):
        parts[row["part"]] = (*parts.get(row["part"], ()), COUNTERS.index(row["counter"]))
    return parts


def node_factor(process: str) -> float:
    """Return the dynamic energy of a technology node on AccelWattch's scale (16/14 nm 0.82, 12 nm 0.77).

    Raises InputError for a process that its table does not cover: it ends at 11/10 nm.
    """
    factors = {
        name: float(row["dynamic"])
        for row in read_table("power/accelwattch_nodes.csv")
        for name in row["processes"].split()
    }
    if process not in factors:
        raise InputError(f"AccelWattch has no energy scale for process {process!r}; {accepted(process, factors)}")
    return factors[process]


def superseded_idle_correction() -> float:
    """Return what multiplies the idle-SM watts of the published Pascal runs, made with an older value (3.8536)."""
    return constants()["idle_sm_w"] / constants()["idle_sm_w_superseded"]
