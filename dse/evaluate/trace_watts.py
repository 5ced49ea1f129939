"""Watts of the kernels of a trace, each repeated alone: what ``dse trace --power`` answers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax

from dse.base.errors import InputError
from dse.evaluate.steps import evaluate_recorded
from dse.power.accelwattch_designs import AccelWattchPower, scaled_beyond
from dse.power.board import BoardPower
from dse.power.power import PowerModel
from dse.timing.timing import Timing
from dse.timing.traced.trace_answer import TracedTiming, TraceQuestion
from dse.traces.traced_kernel import TracedKernel


@dataclass(frozen=True)
class TracedPower:
    """Timing and power of one kernel of a trace at the requested clock: ``watts`` by component of COMPONENTS [W]."""

    timing: TracedTiming
    watts: dict[str, float]
    board_w: float | None

    @property
    def total(self) -> float:
        """Power while the kernel repeats [W]."""
        return sum(self.watts.values())

    def document(self) -> dict[str, Any]:
        """Return the kernel as ``dse trace --json`` prints it; ``board_w``: the board model's watts, None where those
        are the answer."""
        beside = {} if self.board_w is None else {"board_w": self.board_w}
        return self.timing.document() | {"power_w": self.total, "watts": self.watts} | beside


def traced_watts(question: TraceQuestion, model: PowerModel) -> list[TracedPower]:
    """Return what each kernel of a trace takes and draws; raises InputError where one cannot run or be priced.

    No power limit is held: AccelWattch was measured at a locked clock. Where it is scaled beyond its nodes the board
    model's watts stand beside its own.
    """
    if question.timing == "gcom":
        raise InputError("--power: gcom gives cycles alone; give --timing amali, mdm or roofline")
    boards = BoardPower.from_table() if power_notes(question, model) else None
    return [_drawn(question, kernel, model, boards) for kernel in question.kernels()]


def power_notes(question: TraceQuestion, model: PowerModel) -> list[str]:
    """Return how far the watts are scaled beyond what the model was fitted to."""
    if not isinstance(model, AccelWattchPower):
        return []
    said = scaled_beyond(int(question.sheet.numbers()["process"]))
    return [f"{said}; the board model's watts stand beside"] if said else []


def mean_watts(results: Sequence[TracedPower]) -> dict[str, float]:
    """Return the watts by component of all kernels one after another [W]."""
    total = sum(result.timing.microseconds for result in results)
    weighted = [(result.watts, result.timing.microseconds / total) for result in results]
    return {name: sum(watts[name] * share for watts, share in weighted) for name in results[0].watts}


def _drawn(question: TraceQuestion, kernel: TracedKernel, model: PowerModel, board: BoardPower | None) -> TracedPower:
    def evaluated(gpu: Any) -> tuple[Timing, dict[str, Any], Any]:
        timing, power = evaluate_recorded(question.model, model, kernel, gpu)
        beside = None if board is None else board.uncapped(board.recorded_counts(kernel, timing, gpu), gpu).watts
        return timing, power.breakdown(), beside

    with jax.enable_x64(True):
        timing, watts, beside = jax.jit(evaluated)(question.sheet.record())
    by_component = {name: float(value) for name, value in watts.items()}
    return TracedPower(question.timed(kernel, timing), by_component, None if beside is None else float(beside))
