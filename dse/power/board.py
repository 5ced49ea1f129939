"""Power of a GPU board: what it draws at rest, what clocked SMs draw, and an energy for every operation and byte.

P = constant + static + clocked SMs + gated units + sum of energies / time, on-chip terms scaled by node and voltage,
and held to the power limit by :mod:`dse.power.power_limit`. In the form of AccelWattch (constant, static, idle SMs,
dynamic energies), with far fewer free numbers: measured board power does not identify more
(experiments/006_board_power). Every coefficient, its unit, range and source stand in ``data/power/board.csv``.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array

from dse.base.constants import constant
from dse.base.error_interval import ErrorInterval
from dse.base.numerics import held
from dse.base.package_tables import read_table
from dse.base.units import BITS_PER_BYTE, KIB, KILO, MILLI
from dse.hardware.area import DieArea
from dse.hardware.data_types import TENSOR_DTYPES, data_types
from dse.hardware.gpu import Gpu
from dse.hardware.node_power import MemoryPower, NodePower
from dse.hardware.process import node_index, node_names, value_at
from dse.power.activity import Activity, activity, recorded_activity
from dse.power.power import Power, PowerModel
from dse.power.power_limit import OperatingPoint, VoltageLine, sustain
from dse.timing.timing import Timing
from dse.timing.traced.operation_counts import operation_counts
from dse.workload.kernel import Kernel, RecordedKernel

TABLE = "power/board.csv"
ERRORS = "power/board_error.csv"

MEASURED = "watts of kernels and passes on four boards, each left out of the fit"
FITTED_ON = "H200, B200, A100 PCIe and A10"
MEASURED_GPUS = ("h200", "b200", "a100_pcie_40gb", "a10", "h100_sxm", "a100_sxm_80gb", "a100_sxm_40gb")
"""What the model was held against (experiments/006_board_power): the first four judge fits that have not seen them."""

FREE = ("pipeline", "tensor_bf16", "softmax", "dram_path", "voltage_slope", "cap_width")
"""Coefficients that are fitted to kernels of one board (``dse calibrate power``); the shipped ones were fitted to
several boards together (experiments/006_board_power)."""

OF_LOOPS = ("fp32", "l2")
"""Coefficients that only loops of one unit show (``dse measure --only power``)."""

CLOCKED_PARTS = ("sm_control", "register_file", "l1_shared")
"""Parts of the die that the clock drives wherever an SM has work."""

GATED_PARTS = ("fp32_int32", "fp64", "tensor_core", "tensor_memory")
"""Parts of the die whose clock stands still while they have nothing to compute: at work they pay by the operation."""

REFERENCE_DIE_MM2 = constant("reference_die_mm2")
REFERENCE_TDP_W = constant("reference_tdp_w")
REFERENCE_SLICE_KIB = constant("reference_l2_slice_kib")
REFERENCE_L1_KIB = constant("reference_l1_kib")
REFERENCE_REGISTERS = constant("reference_registers")

REFERENCE_NODE = "tsmc_4n"
"""The GPU whose energies the table states: an H200 (GH100, 60 MiB of L2 in 96 slices)."""


class BoardPower(PowerModel):
    """The power model of a board: its coefficients (``data/power/board.csv``, with units), and one call.

    Valid for NVIDIA data-centre GPUs of the designs that are swept (Ampere, Hopper, Blackwell-like), on four of which
    it was fitted. What the measured rows do not identify is a prior, and says so in the table. GPUs for graphics come
    out too high: their dies reach higher clocks at the same voltage.

    Energies hold for the operand values of the measured rows, which nobody recorded: values change board power by a
    third, so a single kernel may be off by that much (``left_out_errors``).

    ``fitted_on``: what the coefficients were fitted to; ``left_out``: errors on what that fit left out, None for the
    shipped coefficients, whose errors stand in ``data/power/board_error.csv``.
    """

    area: DieArea
    nodes: NodePower
    memory: MemoryPower
    clock: Array
    tensor: Array
    board: Array
    dram_path: Array
    leak: Array
    leak_per_kelvin: Array
    temperature: Array
    pipeline: Array
    idle_sm: Array
    waiting_sm: Array
    idle_units: Array
    instruction: Array
    register_file: Array
    int32: Array
    fp32: Array
    sfu: Array
    softmax: Array
    padding: Array
    shared_memory: Array
    l1: Array
    l2: Array
    noc: Array
    link: Array
    capacity_exponent: Array
    voltage_slope: Array
    voltage_floor: Array
    cap_share: Array
    cap_width: Array
    fitted_on: str = eqx.field(static=True, default=f"board power of {FITTED_ON} (data/power/board.csv)")
    left_out: ErrorInterval | None = eqx.field(static=True, default=None)

    @classmethod
    def from_table(cls) -> "BoardPower":
        """Return the fitted model, from ``data/power/board.csv``."""
        values = {row["coefficient"]: float(row["value"]) for row in read_table(TABLE)}
        clock = held([values[f"clock_{node}"] for node in node_names()])
        plain: dict[str, Any] = {name: held(x) for name, x in values.items() if name in cls.__dataclass_fields__}
        energy = {dtype: data_types()[dtype].tensor_energy for dtype in TENSOR_DTYPES}
        tensor = held([each * (values["tensor_bf16"] / energy["bf16"]) for each in energy.values()])
        nodes, memory = NodePower.from_table(REFERENCE_NODE), MemoryPower.from_table()
        return cls(area=DieArea.from_table(), nodes=nodes, memory=memory, clock=clock, tensor=tensor, **plain)

    @property
    def calibration(self) -> str:
        """Name of the calibration that the coefficients come from."""
        return self.fitted_on

    @property
    def error_interval(self) -> ErrorInterval:
        """Errors on shape families that its fit left out; for the shipped coefficients those on boards left out."""
        if self.left_out is not None:
            return self.left_out
        off = left_out_errors()
        return ErrorInterval(off["low"], off["high"], MEASURED, MEASURED_GPUS, anywhere=True)

    def with_values(self, values: Mapping[str, Array]) -> "BoardPower":
        """Return the model with some coefficients changed; tensor rates of all types follow ``tensor_bf16``.

        Clocks of single nodes (``clock_...``) stay as they are: no fit moves them apart. Raises KeyError for a name
        that is no coefficient.
        """
        unknown = (
            values.keys()
            - self.__dataclass_fields__.keys()
            - {"tensor_bf16", *(f"clock_{node}" for node in node_names())}
        )
        if unknown:
            raise KeyError(f"no coefficient of the board's power: {', '.join(sorted(unknown))}")
        changed = {name: value for name, value in values.items() if name in self.__dataclass_fields__}
        if "tensor_bf16" in values:
            changed["tensor"] = self.tensor * values["tensor_bf16"] / self.tensor[TENSOR_DTYPES.index("bf16")]
        return replace(self, **changed)

    def fitted_to(self, what: str, left_out: ErrorInterval) -> "BoardPower":
        """Return the model that tells what it was fitted to, and how far off it is on what that fit left out."""
        return replace(self, fitted_on=what, left_out=left_out)

    def __call__(self, kernel: Kernel, timing: Timing, gpu: Gpu) -> Power:
        """Return the watts by component that the board draws while the kernel repeats, the power limit held."""
        return self.sustained(self.counts(kernel, timing, gpu), timing, gpu).power

    def counts(self, kernel: Kernel, timing: Timing, gpu: Gpu) -> Activity:
        """Return what :meth:`uncapped` asks of a generated kernel (scalars)."""
        return activity(kernel, timing, gpu)

    def recorded_counts(self, kernel: RecordedKernel, timing: Timing, gpus: Gpu) -> Activity:
        """Return the same of a recorded kernel; fields of ``gpus`` are scalars or of shape (designs,)."""
        return recorded_activity(operation_counts(kernel, gpus), timing, gpus)

    def with_area(self, area: DieArea) -> "BoardPower":
        """Return the model with another area model, which its leakage and clocked parts follow."""
        return replace(self, area=area)

    def sustained(self, counts: Activity, timing: Timing, gpu: Gpu, limit: Array | None = None) -> OperatingPoint:
        """Return timing and power where the board settles while an activity repeats: the clock falls until the power
        limit holds, or ``limit`` [W] does."""
        limit = self.limit(gpu) if limit is None else limit
        return sustain(self.draw(timing.clock_ghz, gpu), self.uncapped(counts, gpu), timing, limit, self.cap_width)

    def draw(self, clock_ghz: Array, gpu: Gpu) -> VoltageLine:
        """Return how voltage follows the clock of a launch that asks for ``clock_ghz`` [GHz]."""
        return VoltageLine(clock_ghz / self._nominal_clock(gpu), self.voltage_slope, self.voltage_floor)

    def drawing(self, factor: float) -> "BoardPower":
        """Return the model of boards that settle as if they drew ``factor`` times as much [1]: their limit is that much
        nearer."""
        # In NumPy, whose quotient is the same: JAX would compile a program for it.
        return replace(self, cap_share=np.asarray(self.cap_share) / factor)

    def limit(self, gpu: Gpu) -> Array:
        """Return the power at which the board settles [W]: a little under its limit."""
        return self.cap_share * gpu.tdp_w

    def uncapped(self, counts: Activity, gpu: Gpu) -> Power:
        """Return the watts of an activity by component if nothing limited them (scalars)."""
        voltage = self.draw(counts.clock_ghz, gpu).voltage(1.0)
        die = sum(self.area(gpu).values(), jnp.zeros(()))
        on_chip = self.nodes.switching_energy(gpu.process) * voltage**2
        energies = {name: on_chip * value for name, value in self._energies(counts, gpu, die).items()}
        energies |= {
            "dram": (self.dram_path + BITS_PER_BYTE * self.memory.access_energy(gpu)) * counts.dram_bytes,
            "interconnect": self.link * counts.link_bytes,
        }
        watts = {name: MILLI * value / counts.nanoseconds for name, value in energies.items()}  # pJ/ns = mW
        clocked, gated = (energy * on_chip * counts.clock_ghz * MILLI for energy in self._cycle(gpu))
        zero = jnp.zeros_like(counts.nanoseconds)
        return Power(
            # Regulators and fans are sized for the watts that they serve: a card of 70 W has no 50 W of them.
            constant=zero + self.board * gpu.tdp_w / REFERENCE_TDP_W + self.memory.idle(gpu) * gpu.dram_gb,
            static=zero + self._static(die, gpu) * voltage**2,
            idle_sm=(clocked + gated) * self.idle_sm * (1 - counts.busy),
            idle_units=gated * counts.busy,
            pipeline=clocked * counts.busy,
            fp64=zero,
            texture=zero,
            constant_cache=zero,
            **watts,
        )

    def idle(self, clock_ghz: Array, gpu: Gpu) -> Power:
        """Return the watts by component of a board at rest, its clock held."""
        zero = jnp.zeros_like(clock_ghz)
        nothing = Activity(**dict.fromkeys(Activity._fields, zero))
        return self.uncapped(nothing._replace(nanoseconds=zero + 1, clock_ghz=clock_ghz), gpu)

    def between_kernels(self, clock_ghz: Array, gpu: Gpu) -> Power:
        """Return the watts by component of a board that waits for the next kernel of a run: clocks are up as at rest,
        and the SMs' are gated for part of so short a time alone."""
        rest = self.idle(clock_ghz, gpu)
        return replace(rest, idle_sm=rest.idle_sm * self.waiting_sm / self.idle_sm)

    def _energies(self, counts: Activity, gpu: Gpu, die: Array) -> dict[str, Array]:
        """Energies of a launch on the chip [pJ], at the node and voltage of the reference."""
        products = counts.tensor_fma + self.softmax * counts.softmax_fma + self.padding * counts.padding_fma
        slice_kib = gpu.l2_mib * KIB / gpu.l2_slices
        return {
            "instruction": self.instruction * counts.instructions,
            "register_file": self.register_file
            * self._grown(gpu.registers_per_sm, REFERENCE_REGISTERS)
            * counts.register_bytes,
            "int32": self.int32 * counts.int32,
            "fp32": self.fp32 * counts.fp32,
            "sfu": self.sfu * counts.sfu,
            "tensor": value_at(self.tensor, counts.tensor_dtype) * products,
            "shared_memory": self.shared_memory * self._grown(gpu.l1_kib, REFERENCE_L1_KIB) * counts.shared_bytes,
            "l1": self.l1 * self._grown(gpu.l1_kib, REFERENCE_L1_KIB) * counts.l1_bytes,
            "l2": self.l2 * self._grown(slice_kib, REFERENCE_SLICE_KIB) * counts.l2_bytes,
            # Wires cross the die: their length grows with its side.
            "noc": self.noc * jnp.sqrt(die / REFERENCE_DIE_MM2) * counts.l1_bytes,
        }

    def _grown(self, size: Array, reference: float) -> Array:
        """Energy of an access to an array, relative to that of the reference's size: word and bit lines lengthen."""
        return (size / reference) ** self.capacity_exponent

    def _cycle(self, gpu: Gpu) -> tuple[Array, Array]:
        """Energies of a cycle of all SMs [pJ], of clocked parts and of gated ones, before node and voltage: by the area
        they would take at tsmc_n7."""
        parts = self.area(replace(gpu, process=jnp.full_like(gpu.process, node_index("tsmc_n7"))))
        clocked, gated = (
            self.pipeline * gpu.sm_enabled_fraction * sum((parts[name] for name in names), jnp.zeros(()))
            for names in (CLOCKED_PARTS, GATED_PARTS)
        )
        return clocked, self.idle_units * gated

    def _static(self, die: Array, gpu: Gpu) -> Array:
        """Leakage of the die at nominal voltage [W]."""
        heat = jnp.exp(self.leak_per_kelvin * (self.temperature - 65.0))
        return self.leak * self.nodes.leakage(gpu.process) * die * heat

    def _nominal_clock(self, gpu: Gpu) -> Array:
        """Clock at which a die of this node stands at its nominal voltage [GHz]."""
        return value_at(self.clock, gpu.process) / KILO


def left_out_errors() -> dict[str, float]:
    """Return what :data:`ERRORS` states of boards left out of the fit, each of which counts alike [1].

    ``mean`` and quantiles ``q50`` ... of |predicted / measured - 1|; ``low`` and ``high``: a tenth of measured over
    predicted lies below and above.
    """
    rows = read_table(ERRORS)
    return {row["statistic"]: float(row["value"]) for row in rows}
