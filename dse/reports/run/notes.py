"""Notes on the metrics of a run: what their intervals cover and leave out."""

from math import fsum

from dse.base.error_interval import SHARE
from dse.evaluate.limit_ends import CLOCK
from dse.evaluate.metric_error import CALIBRATED, WITHOUT_EXPERTS, uncovered_types
from dse.evaluate.run import RunResult
from dse.hardware.memory_pins import pins_note
from dse.hardware.own_guards import own_gpu_notes
from dse.hardware.presets import preset_sheet
from dse.hardware.tensor_area import turned_note
from dse.power.throttles import NO, OPEN
from dse.reports.common.words import clock_span, joined
from dse.timing.amali import Amali
from dse.workload.networks.latent_attention import LATENT
from dse.workload.networks.mlp_kinds import EXPERT
from dse.workload.operators.attention_library import attention_libraries
from dse.workload.serving_engine import fitted_elsewhere

INTERCONNECT = "interconnect"
"""The cause that messages between GPUs are booked under."""

NO_ENGINE = (
    "no engine: the GPU's own work; measured runs of whole networks are 24 to 44 % away from that, nearly all slower "
    "(engine=NAME adds what a serving engine's host does: 'dse show engines')"
)
"""Of runs without an engine: experiments/019_whole_networks."""

STATES, UNFITTED = "kernels of states and indexers", "products and attention that were measured alone"
"""What no interval covers of networks with states, and what intervals are of there."""

ROUNDED = 1.001
"""Kernels' bandwidth over the DRAM's that is no more than rounding."""


def run_notes(result: RunResult) -> list[str]:
    """Return what the metrics of a run stand for, and what they leave out."""
    lines = interval_notes(result)
    if result.workload.tokens and result.workload.engine is None:
        lines.append(NO_ENGINE)
    if result.workload.engine is not None:
        lines += fitted_elsewhere(result.workload.engine, result.gpu.name, result.calibration)
    lines += _dollars(result)
    numbers = result.gpu.numbers()
    if result.gpu.base:
        lines += [*own_gpu_notes(result.gpu), *filter(None, [turned_note(result.gpu, preset_sheet(result.gpu.base))])]
    workload = result.workload
    lines += filter(None, [_throttling(result), workload.caution, workload.static_batch, pins_note(numbers)])
    bandwidth = numbers["dram_bandwidth_gbs"]
    if any(row["dram_gbs"] > ROUNDED * bandwidth for row in result.rows):
        lines.append(f"kernels take more than the DRAM's {bandwidth:,.0f} GB/s: {_beyond_dram(result)}")
    return lines


def _dollars(result: RunResult) -> list[str]:
    """Return what the dollars rest on."""
    if result.price is None:
        return []
    remedy = "; --price states yours" if result.price.assumed else ""
    return [f"dollars an hour of a GPU: {result.price}; it never waits for requests{remedy}"]


def _fitted_latent(label: str) -> bool:
    """Whether a kernel is of a library of latent attention, all of which were fitted."""
    library = attention_libraries().get(label.split(" ", 1)[0])
    return library is not None and library.latent


def _beyond_dram(result: RunResult) -> str:
    """Why kernels may take more bytes a second than the DRAM gives."""
    if isinstance(result.model, Amali):
        return "measured ones of their library did so on the GPUs of its fit, bytes that the L2 keeps among them"
    return "this timing model has no roofline, which '--timing amali' holds to"


def _throttling(result: RunResult) -> str:
    """Return in words what the power limit does, and what the error of the watts leaves open of it; "" for nothing."""
    ends, known = result.limit_ends, result.metric_error("time_ms").error_interval is not None
    if ends is None or result.throttles == NO:
        return ""
    leaves, share = clock_span(*ends.clocks), 100 * result.metrics[CLOCK][0]
    held = "; the intervals of times hold all of that" if known else ""
    if result.throttles == OPEN:
        return f"it is open whether the board throttles at its power limit: that leaves {leaves}{held}"
    return f"the board throttles: its power limit leaves {share:.0f} % of the clock, {leaves}{held}"


def extrapolation(result: RunResult) -> str:
    """Return what of a design lies beyond the GPUs that were measured, "" for nothing."""
    words = "; ".join(result.extrapolated)
    return f"beyond the GPUs that were measured, and so extrapolated: {words}" if words else ""


def _uncovered(result: RunResult) -> str:
    """Why no metric has an interval although the calibration has, "" where it has none."""
    others = uncovered_types([result.workload])
    if result.model.error_interval is None or not others:
        return ""
    return f"no intervals: they were found on products in {joined(sorted(CALIBRATED))}, not in {joined(others, 'or')}"


def interval_notes(result: RunResult) -> list[str]:
    """Return what the intervals beside the metrics stand for, and what they leave out."""
    errors = [result.metric_error(name) for name in result.metrics]
    sources = [part for error in errors if error.error_interval for part in error.error_interval.source.split("; ")]
    if not sources:
        return list(filter(None, [_uncovered(result)]))
    lines = [
        f"{100 * SHARE:.0f} % of measured values lie so far from the predicted ({'; '.join(dict.fromkeys(sources))})"
    ]
    stacks = {phase.name: result.stack(phase.name) for phase in result.workload.phases}
    shares = [
        (stack.get(INTERCONNECT, 0.0) / sum(stack.values()), name, "messages between GPUs")
        for name, stack in stacks.items()
    ]
    states = [(begins, STATES) for begins in ("delta_", "state_", "index_", "conv_")]
    experts = [(EXPERT, "kernels of experts")] if any(error.scope in WITHOUT_EXPERTS for error in errors) else []
    for begins, what in (*experts, (LATENT, "latent attention"), *states):
        rows = [r for r in result.rows if r["kernel"].startswith(begins) and not _fitted_latent(r["implementation"])]
        for name in sorted({row["phase"] for row in rows}):
            shares.append((fsum(row["share"] for row in rows if row["phase"] == name), name, what))
    parts = [f"{share:.1%} of {name} is {what}".replace("%", " %") for share, name, what in shares if share > 0]
    scopes = dict.fromkeys(error.scope for error in errors if error.scope)
    if not scopes:  # nothing else says so
        scopes = dict.fromkeys([UNFITTED] if any(share > 0 for share, _, what in shares if what == STATES) else [])
    lines += [f"{scope}: {joined(parts)}, which no interval covers" for scope in scopes]
    return [*lines, *filter(None, [extrapolation(result)])]
