"""A warp's stalls as linear forms of its latencies (docs/model/timing_traced.md 9.2).

Which operand a segment waits for, if any, is decided by inequalities between sums of latencies. The designs of a space
decide them in few ways, the *patterns*: within one, every stall is a linear form, and the hundreds of intervals of a
loop are a few distinct ones, many times over. The inequalities of a pattern tell exactly where it holds (in max-plus
terms, its cell), so that a design in no known pattern is known for one and left to the recurrence.
"""

from collections import Counter
from typing import NamedTuple

import numpy as np

from dse.traces.segments import COMPUTE, GLOBAL, NEVER, SHARED, Segments

CAUSES = (COMPUTE, SHARED, GLOBAL)

NEGLIGIBLE = 1e-12
"""Share of a time up to which a difference is the rounding error of 64-bit floats."""

MOST_PATTERNS = 16
MOST_MARGINS = 512
UNCOVERED = 1e-4
"""Share of the designs that may be in no pattern: a block with one of them runs the recurrence too."""

FEW = 64
"""Distinct intervals that always serve; more must be less than half as many as segments to be faster."""

MOST_STEPS = 10_000_000
"""Most steps (segments x designs) of the recurrence that finding patterns takes, half a second."""


class Pattern(NamedTuple):
    """What every segment waits for, and what follows; forms [..., R + 1]: coefficients of R latencies, then cycles.

    It holds where all ``margins`` [M] are 0 or more. ``stalled`` [cycle] in all; the last interval is done when each of
    ``after`` [D], of cause ``after_cause`` [D], is [cycle after the last instruction]; ``intervals``: how many.
    """

    margins: np.ndarray
    stalled: np.ndarray
    after: np.ndarray
    after_cause: np.ndarray
    intervals: int


class Forms(NamedTuple):
    """The J patterns of a warp and their U distinct intervals.

    An interval spans the segments ``spans`` [U, 2] (first, end), ends in a ``stall`` [U, R + 1] of ``cause`` [U], and
    occurs ``repeats`` [J, U] times in each pattern; the last one of a pattern ends in none. ``instructions`` in all.
    """

    patterns: tuple[Pattern, ...]
    stall: np.ndarray
    cause: np.ndarray
    repeats: np.ndarray
    spans: np.ndarray
    instructions: float


def samples(segments: Segments) -> int:
    """Return on how many designs patterns are looked for (and, on as many others, checked)."""
    return int(np.clip(MOST_STEPS // len(segments.length), 256, 16_384))


def find_forms(segments: Segments, counts: np.ndarray, latency: np.ndarray, fresh: np.ndarray) -> Forms | None:
    """Return the forms of a warp on designs like those of ``latency`` [R, designs], or None where they do not serve.

    ``counts`` [S, F]: whatever tells intervals apart beside their stalls. They do not serve where the designs have too
    many patterns, intervals hardly repeat, or the forms do not give what the recurrence does on ``fresh`` designs.
    """
    waits = _patterns(_walk(segments, latency).waits)
    followed = [_follow(segments, wait, len(latency)) for wait in waits]
    margins = [_binding(f.margins) for f in followed]
    lists = [_intervals(f, counts) for f in followed]
    if not waits or any(m is None for m in margins):
        return None
    keys, place = np.unique(np.concatenate([one.keys for one in lists]), axis=0, return_inverse=True)
    if len(keys) > max(FEW, len(segments.length) // 2):
        return None
    owner = np.repeat(np.arange(len(lists)), [len(one.keys) for one in lists])
    repeats = np.zeros((len(lists), len(keys)))
    np.add.at(repeats, (owner, place.reshape(-1)), 1.0)
    first = np.unique(place.reshape(-1), return_index=True)[1]
    stall, cause, spans = (np.concatenate(parts)[first] for parts in zip(*(one[:3] for one in lists), strict=True))
    patterns = [_pattern(segments, f, m) for f, m in zip(followed, margins, strict=True) if m is not None]
    # On an edge, where a stall of one pattern is 0 and none in another, the recurrence knows none; where two operands
    # are done at once, it names the one of the larger cause.
    order = sorted(range(len(patterns)), key=lambda j: (patterns[j].intervals, -(repeats[j] @ cause)))
    found = tuple(patterns[j] for j in order)
    forms = Forms(found, stall, cause, repeats[order], spans, float(segments.instructions))
    return forms if _equal_recurrence(forms, segments, fresh) else None


class _Walked(NamedTuple):
    """The recurrence on designs: the operand each segment waits for (-1: none) [S, designs], cycles stalled by cause
    [3, designs], and how many intervals [designs]."""

    waits: np.ndarray
    stalled: np.ndarray
    intervals: np.ndarray


def _walk(segments: Segments, latency: np.ndarray) -> _Walked:
    """Run the recurrence in 64 bits (:mod:`dse.timing.traced.scoreboard` is its form for many designs)."""
    designs = latency.shape[1]
    times = np.full((segments.slots, designs), -np.inf)
    before, stalled = np.zeros(designs), np.zeros((len(CAUSES), designs))
    waits = np.full((len(segments.length), designs), -1, np.int8)
    for s, slots in enumerate(segments.slot):
        live = np.flatnonzero(slots != NEVER)
        if len(live):
            done = times[slots[live]] + segments.offset[s, live, None] + latency[segments.row[s, live]]
            late = done.max(axis=0)
            stalls = late - before > NEGLIGIBLE * late
            # Of those that are done last, global memory's first, then shared memory's (timing_amali.md 12.17).
            last = np.where(done >= late * (1 - NEGLIGIBLE), segments.cause[s, live, None], -1).argmax(axis=0)
            waits[s] = np.where(stalls, live[last], -1)
            stalled[segments.cause[s, live[last]], np.arange(designs)] += np.where(stalls, late - before, 0.0)
            before = np.where(stalls, late, before)
        times[segments.write[s]] = before
    return _Walked(waits, stalled, 1 + (waits >= 0).sum(axis=0))


def _patterns(waits: np.ndarray) -> list[np.ndarray]:
    """Return the most frequent columns of ``waits``, at most MOST_PATTERNS; none where that leaves too many out."""
    every = Counter(map(bytes, np.ascontiguousarray(waits.T)))
    found = every.most_common(MOST_PATTERNS)
    if sum(count for _, count in found) < (1.0 - UNCOVERED) * waits.shape[1]:
        return []
    return [np.frombuffer(column, waits.dtype) for column, _ in found]


class _Followed(NamedTuple):
    """A pattern followed through the warp: cycles stalled after each segment [S, R + 1], and all its margins."""

    wait: np.ndarray
    cause: np.ndarray
    stalled: np.ndarray
    margins: np.ndarray


def _follow(segments: Segments, wait: np.ndarray, rows: int) -> _Followed:
    unit = np.eye(rows + 1)
    times: dict[int, np.ndarray] = {}
    before, stalled, margins = np.zeros(rows + 1), [], set()
    for s, slots in enumerate(segments.slot.tolist()):
        done = {
            o: times[slot] + unit[segments.row[s, o]] + segments.offset[s, o] * unit[-1]
            for o, slot in enumerate(slots)
            if slot != NEVER
        }
        here = done.pop(int(wait[s])) if wait[s] >= 0 else before
        margins |= {tuple(here - other) for other in (before, *done.values())}
        times[int(segments.write[s])] = before = here
        stalled.append(here)
    cause = segments.cause[np.arange(len(wait)), np.maximum(wait, 0)]
    return _Followed(wait, cause, np.array(stalled), np.array(sorted(margins)))


def _binding(margins: np.ndarray) -> np.ndarray | None:
    """Return those of ``margins`` [M, R + 1] that no others imply, latencies being 0 or more; None if too many."""
    kept = margins[margins.min(axis=1) < 0]
    if len(kept) > MOST_MARGINS:
        return None
    smaller = (kept[:, None] <= kept).all(axis=-1) & ~np.eye(len(kept), dtype=bool)  # they are distinct
    kept = kept[~smaller.any(axis=0)]
    for margin in list(kept):
        others = kept[(kept != margin).any(axis=1)]
        if len(others) and _implied(margin, others):
            kept = others
    return kept


def _implied(margin: np.ndarray, others: np.ndarray) -> bool:
    """Tell whether a margin is 0 or more wherever the others are."""
    from scipy.optimize import linprog  # half a second, where there is no trace in vain

    least = linprog(margin[:-1], A_ub=-others[:, :-1], b_ub=others[:, -1], method="highs")
    return least.status == 2 or (least.status == 0 and least.fun + margin[-1] >= 0)


class _Intervals(NamedTuple):
    """The intervals of a pattern in order: stalls, causes and spans as in :class:`Forms`, and what tells them apart."""

    stall: np.ndarray
    cause: np.ndarray
    spans: np.ndarray
    keys: np.ndarray


def _intervals(followed: _Followed, counts: np.ndarray) -> _Intervals:
    stalls = np.diff(followed.stalled, axis=0, prepend=0.0)
    starts = np.flatnonzero(np.r_[True, followed.wait[1:] >= 0])
    closed = starts[1:]
    stall = np.concatenate([stalls[closed], np.zeros((1, stalls.shape[1]))])
    cause = np.append(followed.cause[closed], 0)
    spans = np.stack([starts, np.append(closed, len(stalls))], axis=1)
    sums = np.add.reduceat(counts, starts, axis=0)
    return _Intervals(stall, cause, spans, np.column_stack([stall, cause, np.round(sums, 6)]))


def _pattern(segments: Segments, followed: _Followed, margins: np.ndarray) -> Pattern:
    """Return what follows from a pattern; only what is in the last interval belongs to its end."""
    stalled, last = followed.stalled[-1], segments.last
    home = np.searchsorted(segments.start, last.instruction, side="right") - 1
    begins = np.flatnonzero(np.r_[True, followed.wait[1:] >= 0])[-1]
    ends = np.flatnonzero(home >= begins)
    after = np.zeros((len(ends), len(stalled)))
    after[np.arange(len(ends)), last.row[ends]] = 1.0
    after[:, -1] = last.instruction[ends] - segments.instructions
    intervals = 1 + int((followed.wait >= 0).sum())
    return Pattern(margins, stalled, after, last.cause[ends], intervals)


def _equal_recurrence(forms: Forms, segments: Segments, latency: np.ndarray) -> bool:
    """Tell whether nearly all designs have a pattern, and those that do stall as in the recurrence, cause by cause."""
    x = np.vstack([latency, np.ones(latency.shape[1])])
    negligible = NEGLIGIBLE * x.sum(axis=0)
    pattern, best = np.zeros(latency.shape[1], int), np.full(latency.shape[1], -np.inf)
    for number, of in enumerate(forms.patterns):
        here = (of.margins @ x).min(axis=0, initial=np.inf)
        pattern, best = np.where(here > best + negligible, number, pattern), np.maximum(best, here)
    covered = best >= -negligible
    walked, lengths = _walk(segments, latency), forms.stall @ x
    by_cause = np.stack([(forms.repeats * (forms.cause == c)) @ lengths for c in CAUSES])  # [3, J, designs]
    chosen = np.take_along_axis(by_cause, pattern[None, None], axis=1)[:, 0]
    intervals = np.array([p.intervals for p in forms.patterns])[pattern]
    same = np.isclose(chosen, walked.stalled, rtol=1e-9, atol=1e-9 * x.sum(axis=0) * len(segments.length)).all(axis=0)
    same &= intervals == walked.intervals
    return bool(same[covered].all() and (~covered).mean() <= UNCOVERED)
