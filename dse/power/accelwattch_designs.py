"""AccelWattch as the power model of designs and traces: its published coefficients on activity that is counted here.

Coefficients are those of SASS_SIM on a Quadro GV100 (12 nm). On another node dynamic watts are multiplied by the
artifact's factors where it has one (16 and 12 nm), beyond them by the switching energies that the board model scales
with. Voltage: dynamic watts on the chip follow V^2, static and idle watts V, DRAM and the board nothing.
"""

import jax.numpy as jnp
import numpy as np
from jax import Array

from dse.base.errors import InputError
from dse.hardware.area import DieArea
from dse.hardware.gpu import Gpu
from dse.hardware.node_power import NodePower
from dse.hardware.process import node_index, node_names, value_at
from dse.power.accelwattch import AccelWattch, by_component, node_factor
from dse.power.accelwattch_counts import kernel_counts, trace_counts
from dse.power.board import BoardPower
from dse.power.counters import AccelWattchActivity, constants
from dse.power.power import Power, PowerModel
from dse.power.power_limit import VoltageLine, sustain
from dse.timing.timing import Timing
from dse.traces.traced_kernel import TracedKernel
from dse.workload.kernel import Kernel, RecordedKernel

FITTED_AT = "tsmc_12ffn"
"""The node of the GV100."""

VARIANT = "sass_sim"
"""The published variant whose counters these are: SASS opcodes, a simulator's caches and cycles."""

OFF_CHIP = ("DRAMP", "MCP", "CONSTP")
"""Components that no core voltage scales."""

AT_VOLTAGE = ("STATICP", "IDLE_COREP")
"""Components that follow the voltage, not its square."""


class AccelWattchPower(PowerModel):
    """AccelWattch on designs: valid from Volta to Turing, scaled beyond.

    ``model``: its coefficients; ``node`` (nodes,): dynamic energy relative to the GV100's node [1]; ``board``: the
    model of the board, whose line of voltage over clock and whose power limit hold, since AccelWattch has neither.
    ``area`` and ``cap_width`` are the board's, too.
    """

    model: AccelWattch
    node: Array
    board: BoardPower
    reference_voltage: Array
    area: DieArea
    cap_width: Array

    @classmethod
    def published(cls) -> "AccelWattchPower":
        """Return the published model, with the shipped board."""
        board = BoardPower.from_table()
        nominal = board.clock[node_index(FITTED_AT)]
        reference = VoltageLine(
            1e3 * constants()["reference_clock_ghz"] / nominal, board.voltage_slope, board.voltage_floor
        )
        node = jnp.asarray([_factor(name) for name in node_names()])
        return cls(
            model=AccelWattch.variant(VARIANT),
            node=node,
            board=board,
            reference_voltage=reference.voltage(1.0),
            area=board.area,
            cap_width=board.cap_width,
        )

    @property
    def calibration(self) -> str:
        """Name of the published coefficients."""
        return "AccelWattch SASS_SIM, fitted to a Quadro GV100 (data/power/accelwattch_energies.csv)"

    def with_area(self, area: DieArea) -> "AccelWattchPower":
        """Return itself: no watt of it follows an area."""
        return self

    def counts(self, kernel: Kernel, timing: Timing, gpu: Gpu) -> AccelWattchActivity:
        """Return what :meth:`uncapped` asks of a generated kernel (scalars)."""
        return kernel_counts(kernel, timing, gpu)

    def recorded_counts(self, kernel: RecordedKernel, timing: Timing, gpus: Gpu) -> AccelWattchActivity:
        """Return the same of a recorded kernel; fields of ``gpus`` are scalars or of shape (designs,)."""
        assert isinstance(kernel, TracedKernel)  # the one sort of recording that there is
        return trace_counts(kernel, timing, gpus)

    def uncapped(self, counts: AccelWattchActivity, gpu: Gpu) -> Power:
        """Return the watts of an activity by component if nothing limited them; scalars or (designs,)."""
        voltage = self.draw(counts.clock_ghz, gpu).voltage(1.0) / self.reference_voltage
        node = value_at(self.node, gpu.process)
        factors = dict.fromkeys(AT_VOLTAGE, voltage) | dict.fromkeys(OFF_CHIP, node) | {"CONSTP": jnp.ones_like(node)}
        on_chip = node * voltage**2
        parts = self.model.watts_by_part(counts)
        return by_component({part: watts * factors.get(part, on_chip) for part, watts in parts.items()})

    def __call__(self, kernel: Kernel, timing: Timing, gpu: Gpu) -> Power:
        """Return the watts by component that the board draws while the kernel repeats, the power limit held."""
        watts = self.uncapped(self.counts(kernel, timing, gpu), gpu)
        return sustain(self.draw(timing.clock_ghz, gpu), watts, timing, self.limit(gpu), self.cap_width).power

    def draw(self, clock_ghz: Array, gpu: Gpu) -> VoltageLine:
        """Return how voltage follows the clock of a launch that asks for ``clock_ghz`` [GHz]: the board's line."""
        return self.board.draw(clock_ghz, gpu)

    def limit(self, gpu: Gpu) -> Array:
        """Return the power at which the board settles [W]: the board's."""
        return self.board.limit(gpu)

    def idle(self, clock_ghz: Array, gpu: Gpu) -> Power:
        """Return the watts by component of a board that waits for its next kernel: all SMs are idle."""
        zero = jnp.zeros_like(clock_ghz)
        nothing = AccelWattchActivity.of(
            {}, cycles=zero + 1, clock_ghz=clock_ghz, lanes=0.0, sm_count=gpu.sm_count, idle_sms=gpu.sm_count
        )
        return self.uncapped(nothing, gpu)


def scaled_beyond(process: int) -> str:
    """Return how far a node's dynamic watts are scaled beyond the artifact's own factors, "" where they are not."""
    name = node_names()[process]
    try:
        node_factor(name)
    except InputError:
        return (
            f"AccelWattch was fitted at 12 nm and states factors down to 10 nm: on {name} its dynamic watts are "
            f"multiplied by {_factor(name):.3g}, the board model's ratio of switching energies"
        )
    return ""


def _factor(process: str) -> float:
    """Dynamic energy of a node relative to the GV100's: the artifact's where it states one, else the board model's."""
    try:
        return node_factor(process) / node_factor(FITTED_AT)
    except InputError:
        nodes = NodePower.from_table(FITTED_AT)
        return float(np.asarray(nodes.energy)[node_index(process)])
