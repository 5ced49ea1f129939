"""What AccelWattch charges for: events of a kernel launch, from Nsight counters and SASS instructions.

The table ``data/power/accelwattch_energies.csv`` lists every counter with the part of the GPU it belongs to, what one
access is, and the Nsight metrics it is read from; ``data/power/accelwattch_opcodes.csv`` books SASS opcodes.

A published reference, called from Python: profile a kernel (:func:`nsight_columns`, :func:`executed`), make its
activity (:func:`hw_activity`), and ask :class:`dse.power.accelwattch.AccelWattch` for its watts. Designs are priced by
:mod:`dse.power.board`, which needs no counters.
"""

from collections.abc import Iterable, Mapping
from functools import cache
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from dse.base.errors import InputError, accepted
from dse.base.numerics import safe_div
from dse.base.package_tables import read_table
from dse.base.units import GIGA

ENERGIES = "power/accelwattch_energies.csv"
OPCODES = "power/accelwattch_opcodes.csv"

COUNTERS: tuple[str, ...] = tuple(row["counter"] for row in read_table(ENERGIES))
"""AccelWattch's counters, in the order of ``AccelWattchActivity.counts``."""

_PIPES = tuple(f"sm__pipe_{pipe}_cycles_active.sum" for pipe in ("alu", "fma", "fp64", "shared", "tensor"))
_ELAPSED = "sm__cycles_elapsed.sum"
_ACTIVE = "smsp__cycles_active.avg.pct_of_peak_sustained_elapsed"


class AccelWattchActivity(eqx.Module):
    """What one kernel launch does on one GPU (scalars; ``counts`` has one entry a counter).

    ``counts``: events of the launch over the whole GPU in the order of COUNTERS, shape (counters,) [access; what one
    is stands in the table]. ``cycles``: length of the launch [core cycle]. ``clock_ghz``: core clock [GHz].
    ``lanes``: mean active lanes of a warp instruction on an execution unit, 0 where none ran [lane].
    ``idle_sms``: SMs without work, averaged over time [SM]. ``sm_count``: SMs of the GPU [SM].
    """

    counts: Array
    cycles: Array
    clock_ghz: Array
    lanes: Array
    idle_sms: Array
    sm_count: Array

    @classmethod
    def of(
        cls,
        counts: Mapping[str, ArrayLike],
        *,
        cycles: ArrayLike,
        clock_ghz: ArrayLike,
        lanes: ArrayLike,
        sm_count: ArrayLike,
        idle_sms: ArrayLike = 0.0,
    ) -> "AccelWattchActivity":
        """Return the activity with the counters given by name, the others 0; arrays of launches make a batch.

        Raises InputError for a counter that AccelWattch does not have.
        """
        for name in counts:
            if name not in COUNTERS:
                raise InputError(f"{name!r} is not a counter of AccelWattch; {accepted(name, COUNTERS)}")
        shared = jnp.broadcast_arrays(
            *(jnp.asarray(v, float) for v in (cycles, clock_ghz, lanes, idle_sms, sm_count)),
            *(jnp.asarray(v, float) for v in counts.values()),
        )
        given = dict(zip(counts, shared[5:], strict=True))
        zero = jnp.zeros_like(shared[0])
        return cls(jnp.stack([given.get(name, zero) for name in COUNTERS], axis=-1), *shared[:5])

    def count(self, counter: str) -> Array:
        """Events of one counter."""
        return self.counts[..., COUNTERS.index(counter)]

    def accesses(self, static_class: str) -> Array:
        """Events of one class of the static model: int_add, int_mul, fp, dp, sfu, tensor, tex, l1, shared or l2."""
        return sum((self.count(name) for name in class_counters()[static_class]), jnp.zeros_like(self.cycles))

    @property
    def seconds(self) -> Array:
        """Time of the launch [s]."""
        return self.cycles / (self.clock_ghz * GIGA)

    @property
    def active_sms(self) -> Array:
        """SMs with work, averaged over time [SM]."""
        return self.sm_count - self.idle_sms


class Executed(NamedTuple):
    """Instructions of a launch as counters: events by counter, and mean active lanes on execution units [lane]."""

    counts: dict[str, float]
    lanes: float


@cache
def constants() -> dict[str, float]:
    """Return the values of ``data/power/accelwattch_constants.csv`` by name."""
    return {row["name"]: float(row["value"]) for row in read_table("power/accelwattch_constants.csv")}


@cache
def class_counters() -> dict[str, tuple[str, ...]]:
    """Return the counters of every class of the static model."""
    classes: dict[str, tuple[str, ...]] = {}
    for row in read_table(ENERGIES):
        if row["static_class"]:
            classes[row["static_class"]] = (*classes.get(row["static_class"], ()), row["counter"])
    return classes


def nsight_columns(metrics: Mapping[str, ArrayLike], sm_count: ArrayLike) -> dict[str, Array]:
    """Return the columns of AccelWattch's ``hw_perf.csv`` from Nsight Compute's metrics by name.

    Raises InputError naming the metrics that are missing. Duty is the mean of five pipes' active fractions.
    """
    sums = {row["hw_perf"]: row["nsight"].split() for row in read_table(ENERGIES) if row["nsight"]}
    names = {term.removeprefix("2*") for terms in sums.values() for term in terms}
    _require(metrics, sorted(names | {*_PIPES, _ELAPSED, _ACTIVE}), "Nsight metrics")
    columns = {name: sum((_term(metrics, term) for term in terms), jnp.asarray(0.0)) for name, terms in sums.items()}
    elapsed = jnp.asarray(metrics[_ELAPSED], float)
    busy = sum((jnp.asarray(metrics[pipe], float) for pipe in _PIPES), jnp.asarray(0.0))
    return columns | {
        "Pipeline_Duty": safe_div(busy, len(_PIPES) * elapsed),
        "Num_Idle_SMs": (1 - jnp.asarray(metrics[_ACTIVE], float) / 100) * sm_count,
        "Elapsed_Cycles": elapsed / sm_count,
    }


def hw_counts(columns: Mapping[str, ArrayLike], sm_count: ArrayLike) -> dict[str, Array]:
    """Return events by counter from the columns of ``hw_perf.csv``; raises InputError naming columns that are missing.

    No hardware counter exists for L1I, register file and DRAM precharge: they stay 0. Instructions come from traces.
    """
    named = {row["counter"]: row["hw_perf"] for row in read_table(ENERGIES) if row["hw_perf"]}
    _require(columns, [*named.values(), "Pipeline_Duty", "Num_Idle_SMs", "Elapsed_Cycles"], "columns of hw_perf.csv")
    counts = {counter: jnp.asarray(columns[column], float) for counter, column in named.items()}
    duty, cycles = jnp.asarray(columns["Pipeline_Duty"], float), jnp.asarray(columns["Elapsed_Cycles"], float)
    return counts | {"PIPE_A": duty * sm_count * cycles}


def hw_activity(
    columns: Mapping[str, ArrayLike],
    instructions: Mapping[str, ArrayLike],
    *,
    lanes: ArrayLike,
    clock_ghz: ArrayLike,
    sm_count: ArrayLike,
) -> AccelWattchActivity:
    """Return the activity of the HW variant: hardware counters, with instructions from a trace (events by counter)."""
    counts = hw_counts(columns, sm_count)
    return AccelWattchActivity.of(
        counts | dict(instructions),
        cycles=columns["Elapsed_Cycles"],
        clock_ghz=clock_ghz,
        lanes=lanes,
        idle_sms=columns["Num_Idle_SMs"],
        sm_count=sm_count,
    )


def executed(instructions: Iterable[tuple[str, float, float]]) -> Executed:
    """Return the counters of SASS instructions: (opcode with modifiers, warp instructions, thread operations) each.

    As AccelWattch books them: an opcode with its modifiers counts by the whole text where the table holds it, else by
    its base (IMAD.MOV is integer, IMAD.MOV.U32 a multiplication). Raises InputError for an opcode without a row.
    """
    counts, unit_warps, unit_lanes = {"TOT_INST": 0.0, "FP_INT": 0.0}, 0.0, 0.0
    for opcode, warps, threads in instructions:
        counter, memory = booked(opcode)
        counts["TOT_INST"] += warps
        counts["FP_INT"] += 0.0 if memory else warps
        if counter:
            counts[counter] = counts.get(counter, 0.0) + threads
            unit_warps, unit_lanes = unit_warps + warps, unit_lanes + threads
    return Executed(counts, unit_lanes / unit_warps if unit_warps else 0.0)


def booked(opcode: str) -> tuple[str, bool]:
    """Return (counter of the thread operations or "", whether it is a memory instruction) of a SASS opcode."""
    table = _opcodes()
    base = opcode.split(".")[0]
    row = table.get(opcode) or table.get(base)
    if row is None:
        raise InputError(f"AccelWattch books no SASS opcode {base!r} (dse/data/{OPCODES}); {accepted(base, table)}")
    return row


@cache
def _opcodes() -> dict[str, tuple[str, bool]]:
    return {row["opcode"]: (row["counter"], row["memory"] == "1") for row in read_table(OPCODES)}


def _term(metrics: Mapping[str, ArrayLike], term: str) -> Array:
    factor, name = (2.0, term.removeprefix("2*")) if term.startswith("2*") else (1.0, term)
    return factor * jnp.asarray(metrics[name], float)


def _require(given: Mapping[str, ArrayLike], names: list[str], what: str) -> None:
    missing = [name for name in names if name not in given]
    if missing:
        raise InputError(f"{what}: no {', '.join(missing)}; give every one of them, 0 where nothing was counted")
