"""Shards whose designs never leave the device: the host enqueues calls and takes what is left of each.

What it learns of the designs seen so far it gives to the next call: which dominate much, and how good the best are.
"""

from collections.abc import Callable
from threading import Lock
from typing import Any

import numpy as np

from dse.base.pareto_filter import STRESS, pareto_mask
from dse.evaluate.batching import float_type
from dse.evaluate.infeasibility import Reasons
from dse.grid.accumulator import NONE, TOP, Accumulator, keep_best
from dse.grid.device_designs import Rows
from dse.grid.killers import chosen_killers
from dse.grid.reduction import KILLERS, LARGEST, WINDOW, Filters
from dse.grid.statistics import BINS, HIGH, LOW, OCTAVE, bins_of
from dse.grid.sweep_program import Reduced, SweepProgram

AGAIN, MANY, SOONER = 2.0, 0.01, 1.2
"""Survivors are learned from, and killers chosen again, when the designs seen have grown by the first. Where more than
this share survive they are learned from at once, and killers chosen when the designs seen have grown by the last."""

REMEMBERED, TESTS = 4096, 1024
"""Designs seen that no other one dominates, among which they are chosen; last survivors, and designs of the sample,
that they are tried on."""

Tick = Callable[[int], None]


class DeviceShards:
    """Evaluates shards of a space by its program; ``size``: designs of the grid. Several threads call."""

    def __init__(self, program: SweepProgram, reasons: Reasons, size: int) -> None:
        self._program, self._reasons, self._size = program, reasons, size
        self._signs = np.asarray([o.sign for o in reasons.space.objectives])
        self._lock, self._known = Lock(), None

    def __call__(self, start: int, stop: int, device: Any, accumulator: Accumulator, tick: Tick) -> None:
        """Add the designs at positions ``start`` to ``stop`` to an accumulator; ``tick``: called with their number."""
        with self._lock:
            known = self._known = self._known or self._sampled(device)
        rows, most = self._program.grid.rows(start, stop), self._program.rows_of_chunk * self._program.chunks
        state, waiting = self._program.empty(device), None
        first, off_scale = known.window(), known.off_scale.copy()
        for begin in range(0, len(rows.count), most):
            part = rows.part(begin, begin + most)
            reduced = self._program.reduced(part, state, known.filters(first, off_scale), device)
            state = reduced.state
            if waiting:
                self._take(*waiting, known, accumulator, first, off_scale)
                tick(int(waiting[0].count.sum()))
            waiting = part, reduced
        if waiting:
            self._take(*waiting, known, accumulator, first, off_scale)
            counts, best, reasons = self._program.by_axis(state)
            accumulator.axes.add_counts(first, counts, np.where(best < LARGEST, best, np.inf))
            accumulator.axes.off_scale |= off_scale
            accumulator.reasons.update(self._reasons.named(reasons))
            tick(int(waiting[0].count.sum()))

    def _sampled(self, device: Any) -> "Knowledge":
        """Return what a chunk of rows from all over the grid tells."""
        program = self._program
        rows = program.grid.scattered(self._size, program.rows_of_chunk)
        known = Knowledge(self._signs, self._size, program)
        first, none = np.zeros(len(self._signs), np.int32), np.ones(len(self._signs), bool)
        reduced = program.reduced(rows, program.empty(device), known.filters(first, none), device)
        known.learn(*self._every(rows, reduced, 0), rows.count.sum())
        return known

    def _take(
        self,
        rows: Rows,
        reduced: Reduced,
        known: "Knowledge",
        accumulator: Accumulator,
        first: np.ndarray,
        off: np.ndarray,
    ) -> None:
        """Take the survivors of a call."""
        numbers, values = self._survivors(rows, reduced)
        known.learn(numbers, values, rows.count.sum())
        if not len(numbers):
            return
        place = bins_of(values) - first[:, None]
        beyond = ((place < 0) | (place >= WINDOW * OCTAVE)) & ~off[:, None]
        if beyond.any():
            accumulator.axes.add_some(numbers, values, beyond)
        accumulator.add_best(numbers, self._signs[:, None] * values)

    def _survivors(self, rows: Rows, reduced: Reduced) -> tuple[np.ndarray, np.ndarray]:
        """Return the numbers of the survivors of a call and their objectives, (objectives, designs)."""
        used = -(-len(rows.count) // self._program.rows_of_chunk)
        count, place, values = (np.asarray(x)[:used] for x in reduced.survivors)
        room = place.shape[1]
        most = int(count.max())  # they stand at the front: the rest of the room is not looked at
        held = count if most <= room else np.where(count <= room, count, 0)
        chunk, here = np.nonzero(np.arange(min(most, room)) < held[:, None])
        numbers, found = self._numbers(rows, chunk, place[chunk, here]), values[chunk, here].T
        if most > room:
            parts = [(numbers, found), *(self._every(rows, reduced, int(n)) for n in np.flatnonzero(count > room))]
            numbers, found = (np.concatenate(part, axis=-1) for part in zip(*parts, strict=True))
        return numbers, np.ascontiguousarray(found, float)

    def _every(self, rows: Rows, reduced: Reduced, chunk: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the same of all feasible designs of a chunk, of which more survive than there is room for."""
        place = np.flatnonzero(np.asarray(reduced.code[chunk]) == 0)
        values = np.ascontiguousarray(np.asarray(reduced.values[chunk])[:, place], float)
        return self._numbers(rows, np.full(len(place), chunk), place), values

    def _numbers(self, rows: Rows, chunk: np.ndarray, place: np.ndarray) -> np.ndarray:
        """Return the numbers of designs in the grid, given their chunks and places."""
        row, number = np.divmod(place, self._program.grid.size)
        return self._program.grid.numbers(rows.position[chunk * self._program.rows_of_chunk + row] + number)


class Knowledge:
    """What is known of a space's designs: killers, the best, and the scale of each objective."""

    def __init__(self, signs: np.ndarray, size: int, program: SweepProgram) -> None:
        self._lock, self._signs, self._size = Lock(), signs, size
        self._limits = program.reduction.limits
        self._sample = self._recent = self._killers = self._front = np.empty((0, len(signs)))
        self._top = [(np.full(TOP, np.inf), np.full(TOP, NONE)) for _ in signs]
        self._octaves = np.stack([np.full(len(signs), BINS // OCTAVE), np.full(len(signs), -1)])
        self.off_scale = np.zeros(len(signs), bool)
        self._weights = _stressed(np.ones(len(signs)))
        self._seen, self._chosen = 0, 0
        self._settle()

    def learn(self, numbers: np.ndarray, values: np.ndarray, among: int) -> None:
        """Take survivors of so many designs; ``values``: objectives, (objectives, survivors)."""
        costs, many = self._signs[:, None] * values, len(numbers) > MANY * among
        with self._lock:
            self._seen += int(among)
            grown = self._seen >= self._chosen * (SOONER if many else AGAIN)
            if not many and not grown:
                return
            if len(numbers):
                for best, column in zip(self._top, costs, strict=True):
                    keep_best(*best, column, numbers)
                octaves = bins_of(values) // OCTAVE
                self._octaves[0] = np.minimum(self._octaves[0], octaves.min(axis=1))
                self._octaves[1] = np.maximum(self._octaves[1], octaves.max(axis=1))
                self.off_scale |= ((values < LOW) | (values >= HIGH)).any(axis=1)
                self._remember(costs.T)
            if grown:
                self._choose()
            self._settle()

    def _remember(self, costs: np.ndarray) -> None:
        """Keep what killers are chosen from and tried on of survivors' costs (survivors, objectives)."""
        if not len(self._sample):
            self._sample = _some(costs, TESTS)
            self._weights = _stressed(np.ptp(costs, axis=0))
        self._recent = np.concatenate([self._recent, _some(costs, TESTS)])[-TESTS:]
        self._front = np.concatenate([self._front, costs])
        if len(self._front) > REMEMBERED:
            self._front = _some(np.unique(self._front[pareto_mask(self._front)], axis=0), REMEMBERED // 2)

    def _choose(self) -> None:
        self._chosen = self._seen
        if len(self._front):
            tests = np.concatenate([self._recent, self._sample])
            self._killers = chosen_killers(np.concatenate([self._killers, self._front]), tests, KILLERS)

    def _settle(self) -> None:
        """Make what calls are given of what is known."""
        low, high = self._octaves
        first = np.where(high < low, BINS // OCTAVE // 2, (low + high + 1 - WINDOW) // 2)
        self._window = np.clip(first, 0, BINS // OCTAVE - WINDOW).astype(np.int32) * OCTAVE
        killers = np.full((KILLERS, len(self._signs)), LARGEST, float_type())
        killers[: len(self._killers)] = self._killers
        cost = np.array([best[-1] for best, _ in self._top])
        number = np.array([of[-1] for _, of in self._top])
        limits = self._limits(np.minimum(number, self._size - 1))
        self._given = killers, self._weights, np.minimum(cost, LARGEST).astype(float_type()), limits

    def window(self) -> np.ndarray:
        """Return the first bin of each objective's window: in the middle of what has been seen."""
        return self._window

    def filters(self, first: np.ndarray, clipped: np.ndarray) -> Filters:
        """Return what decides which designs of the next call survive; ``first``: :meth:`window` of the shard."""
        return Filters(*self._given, first, clipped)


def _stressed(spans: np.ndarray) -> np.ndarray:
    """Return weights of costs that spread so far: all alike, and with stress on each, (objectives + 1, objectives)."""
    alike = np.where(spans > 0, 1 / np.where(spans > 0, spans, 1.0), 1.0)
    return (alike * np.vstack([np.ones(len(spans)), 1.0 + STRESS * np.eye(len(spans))])).astype(float_type())


def _some(rows: np.ndarray, most: int) -> np.ndarray:
    """Every so-many-th row, at most so many."""
    return rows[:: max(-(-len(rows) // most), 1)]
