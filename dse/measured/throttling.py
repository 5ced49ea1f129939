"""How a board's power limit slows what is measured: not at all in a short run, to its steady clock in a long one.

The governor of a board follows a mean of its watts that forgets with the time constant G (GOVERNOR_US). From rest, P0,
a kernel of P watts at the requested clock brings that mean to the limit after

    tau = G ln((P - P0) / (P - limit)),

later the less it exceeds the limit. From then on the kernel takes F times as long, what the limit costs a run without
end, by :class:`dse.power.board.BoardPower`: time and power as one fixed point. So a reading that keeps the GPU busy for
T us takes 1 + (F - 1) max(0, 1 - tau / T) of its time at the requested clock. What belongs to the protocol is T
alone (``launches`` and ``run_us`` of :class:`dse.measured.protocol.Protocol`), and P where the operands are ``zeros``:
their products then cost what those of padding do.
"""

from collections.abc import Sequence
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jax import Array

from dse.base.compilation import quick_filter_jit
from dse.base.constants import constant
from dse.evaluate.batching import in_blocks
from dse.evaluate.steps import activities, settle_alone, settle_phase, timings, unlimited_power
from dse.evaluate.steps import launches as launches_on
from dse.hardware.gpu import Gpu
from dse.power.activity import with_still_operands
from dse.power.board import BoardPower
from dse.power.throttles import throttles
from dse.timing.timing import TimingModel
from dse.workload.kernel import Kernel

GOVERNOR_US = constant("governor_us")
"""Time constant of the mean that a board's governor holds to the limit [us]. Read off fitted families of
aiconfigurator's products on A100, H100 and H200 (10 ms: 0.2 points worse, 40 ms: 0.1)."""

EXCESS = 1e-3
"""Watts above the limit as a share of it, at least: where there are fewer, the limit costs nothing [1]."""

BLOCK = 256
"""Rows of one call: one compiled program whatever the table."""

LONGEST = 32
"""Kernels of a pass are filled up to a multiple of this, for few compiled programs."""

HELD = "power_limit"
"""Part of a measured time that the board's power limit adds, beside the causes of a kernel at the asked clock."""


def slowdowns(
    model: TimingModel,
    kernels: Kernel,
    gpus: Gpu,
    launches: np.ndarray,
    run_us: np.ndarray,
    drawn: np.ndarray,
    zeros: np.ndarray | float = 0.0,
) -> np.ndarray:
    """Return how many times as long as at the requested clock each row's kernel takes; all of shape (rows,).

    ``launches``: back-to-back launches of a reading, inf where it runs until the board has settled; ``run_us``: how
    long they take together at least [us]; ``drawn``: mean watts of a reading over those of its own kernel [1];
    ``zeros``: 1 where the operands of products are zeros.
    """
    if not len(launches):
        return np.ones(0)
    numbers = jax.tree.map(
        lambda x: np.asarray(x, np.float32), (kernels, gpus, launches, run_us, drawn, zeros + np.zeros(len(launches)))
    )
    return np.asarray(in_blocks(partial(_slowdowns, model.anonymous(), _board()), BLOCK, *numbers))


def watts_ends() -> tuple[float, float]:
    """Return between which factors of the predicted watts 80 % of those of boards lie that no fit has seen [1]."""
    interval = _board().error_interval
    return interval.low, interval.high


def pass_slowdowns(
    model: TimingModel,
    kernels: Kernel,
    gpus: Gpu,
    passes: Sequence[tuple[np.ndarray, np.ndarray]],
    drawn: float = 1.0,
) -> np.ndarray:
    """Return how many times as long as at the requested clock each pass through a network takes, (passes,).

    A pass: places of its kernels among ``kernels`` (operators,), and repeats of each; all run on one GPU. The limit
    holds for the mean of its kernels, which all slow down together (:mod:`dse.power.sequence`); a pass repeats until
    the board has settled.
    """
    widest = max((len(places) for places, _ in passes), default=0)
    shape = (len(passes), -(-max(widest, 1) // LONGEST) * LONGEST)
    at, repeats = np.zeros(shape, int), np.zeros(shape, np.float32)
    for row, (places, times) in enumerate(passes):
        at[row, : len(places)], repeats[row, : len(places)] = places, times
    gpu = jax.tree.map(lambda x: np.float32(np.asarray(x)[0]), gpus)
    anonymous, board = model.anonymous(), _board().drawing(drawn)

    def block(at: np.ndarray, repeats: np.ndarray) -> Array:
        taken = jax.tree.map(lambda x: np.asarray(x, np.float32)[at], kernels)
        return _pass_slowdowns(anonymous, board, taken, gpu, repeats)

    return np.asarray(in_blocks(block, BLOCK, at, repeats)) if passes else np.ones(0)


def limited_times(
    low_us: np.ndarray, high_us: np.ndarray, low_slower: np.ndarray, high_slower: np.ndarray
) -> pd.DataFrame:
    """Return columns of rows whose boards draw what the ends of :func:`watts_ends` say, all of shape (rows,).

    ``low_us``, ``high_us``: predicted times there [us]; ``low_slower``, ``high_slower``: how many times as long their
    kernels take as at the requested clock (:func:`dse.power.throttles.throttles`).
    """
    words = throttles(1 / low_slower, 1 / high_slower)
    return pd.DataFrame({"throttles": words, "low_power_us": low_us, "high_power_us": high_us})


@cache
def _board() -> BoardPower:
    return BoardPower.from_table()


@quick_filter_jit
def _slowdowns(
    model: TimingModel,
    board: BoardPower,
    kernels: Kernel,
    gpus: Gpu,
    launches: Array,
    run_us: Array,
    drawn: Array,
    zeros: Array,
) -> Array:
    timing = timings(model, kernels, gpus)
    counts, limit = activities(kernels, timing, gpus), board.limit(gpus)
    counts = with_still_operands(counts, jnp.zeros_like(zeros), zeros)
    settled = settle_alone(board, counts, timing, gpus, limit / drawn).timing
    busy = jnp.maximum(launches * timing.microseconds, run_us)
    watts = drawn * unlimited_power(board, counts, gpus).watts
    reached = _reached_us(watts, limit, board.idle(timing.clock_ghz, gpus).watts)
    shown = jnp.maximum(1.0 - reached / jnp.maximum(busy, 1e-3), 0.0)
    slower = 1.0 + (settled.microseconds / jnp.maximum(timing.microseconds, 1e-6) - 1.0) * shown
    return jnp.where(timing.feasible > 0, jnp.maximum(slower, 1.0), 1.0)


def _reached_us(watts: Array, limit: Array, rest: Array) -> Array:
    """When the mean of the watts reaches the limit, from rest [us]."""
    excess = jnp.maximum(watts - limit, EXCESS * limit)
    return GOVERNOR_US * jnp.log(jnp.maximum((watts - rest) / excess, 1.0))


@quick_filter_jit
def _pass_slowdowns(model: TimingModel, board: BoardPower, kernels: Kernel, gpu: Gpu, repeats: Array) -> Array:
    timing, power = launches_on(model, board, kernels, gpu)
    settled = settle_phase(board, True, timing, power, (repeats, None), gpu).nanoseconds
    asked = jnp.sum(repeats * timing.nanoseconds, axis=-1)
    slower = settled / jnp.maximum(asked, 1.0)
    runs = jnp.all((timing.feasible > 0) | (repeats == 0), axis=-1)
    return jnp.where(runs, jnp.maximum(slower, 1.0), 1.0)
