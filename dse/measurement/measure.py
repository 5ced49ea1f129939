"""``dse measure``: kernels timed on the GPU at hand, with power and clock, written as a measured table."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import jax
from jax import Array

from dse.base.errors import InputError
from dse.base.skipped_rows import Skipped
from dse.hardware.presets import find_preset
from dse.measurement.board import Board, Draw, find_board
from dse.measurement.kernels import PALLAS, Measured, measured
from dse.measurement.program import NotMeasurableError, check_launches, compiled
from dse.measurement.stopwatch import WARM_UP, Times, busy, times
from dse.measurement.table import Table
from dse.measurement.tasks import Task, tasks

STAYS, ROTATES, COLD = "dse_measure_warm", "dse_measure", "dse_measure_cold"
"""Sources of the rows, and names of their protocols: every operand stays in one buffer; weights rotate through several;
every operand does."""

COLD_BYTES = 2**28
"""Bytes of all rotating buffers [B], or half of them: twice and once the largest L2 that is shipped (B200's
126 MB); where MOST_SETS buffers are smaller, there is no row with cold operands."""

MOST_SETS = 64
"""Buffers that an operand rotates through at most."""

LEAST_SETS = 8
"""Launches of a program at least, memory allowing."""

SHARE = 0.25
"""Share of the device's memory that operands, and that results, may take."""

HOST_BYTES = 2**30
"""Memory assumed of a device that does not report its own [B]."""


@dataclass(frozen=True)
class Care:
    """Effort of a measurement."""

    repeats: int = 9  # runs
    run_s: float = 0.02  # length of a run [s]
    cold_bytes: int = COLD_BYTES  # of rotating buffers [B]


QUICK = Care(repeats=3, run_s=0.005)


@dataclass(frozen=True)
class Session:
    """The device of a run of measurements, and how it measures."""

    device: Any  # of JAX
    board: Board | None  # None where NVML cannot be used
    care: Care
    graphs: bool  # launches of a program as one CUDA graph

    @property
    def memory(self) -> float:
        """Bytes of the device's memory."""
        stats = self.device.memory_stats() or {}
        return float(stats.get("bytes_limit", HOST_BYTES))


@dataclass(frozen=True)
class MeasureAnswer:
    """The answer of ``dse measure``: its table with ``rows`` in all, ``skipped`` operators (reason -> count), notes."""

    path: str
    device: str
    rows: int
    new_rows: int
    skipped: dict[str, int]
    notes: tuple[str, ...]

    def document(self) -> dict[str, Any]:
        """Return the JSON document of ``dse measure --json``."""
        return {
            "table": self.path,
            "device": self.device,
            "rows": self.rows,
            "new_rows": self.new_rows,
            "skipped": self.skipped,
            "notes": list(self.notes),
        }


class _Sized(NamedTuple):
    """Sizes of a program: sets of operands, launches a round, rounds."""

    sets: int
    launches: int
    rounds: int

    @property
    def written(self) -> int:
        """Launches that the program's text holds: a first round, and the loop's."""
        return self.launches * min(self.rounds, 2)


def find_device(platform: str | None) -> Any:
    """Return the first device of JAX to measure on; raises InputError where there is no GPU and none is named."""
    backend = platform or "gpu"
    try:
        return jax.local_devices(backend=backend)[0]
    except RuntimeError:
        present = ", ".join(dict.fromkeys(f"{d.platform} ({d.device_kind})" for d in jax.local_devices()))
        needed = "an NVIDIA GPU and JAX with CUDA (pip install 'jax[cuda13]')" if backend == "gpu" else "that device"
        raise InputError(f"measure: JAX finds no {backend} here, only {present}; it needs {needed}") from None


def plan(quick: bool, only: str) -> int:
    """Return how many operators a run would measure; raises InputError where ``only`` names none."""
    return len(tasks(quick, only))


def measure(
    out: Path,
    *,
    quick: bool = False,
    only: str = "",
    seconds: float | None = None,
    platform: str | None = None,
    graphs: bool = True,
    care: Care | None = None,
    progress: Callable[[int], None] = lambda done: None,
) -> MeasureAnswer:
    """Measure a grid of operators and append to the table ``out`` what it does not hold yet; raises InputError.

    ``seconds``: no operator is begun after so long; ``graphs``: a program's launches as one CUDA graph; ``progress`` is
    told of every operator done. Interrupted, the table holds what was measured.
    """
    if seconds is not None and not seconds > 0:
        raise InputError(f"--seconds: is {seconds:g}; give a positive time")
    todo, device = tasks(quick, only), find_device(platform)
    board, why = find_board(device.local_hardware_id) if device.platform == "gpu" else (None, "no power: no GPU")
    on_gpu = device.platform == "gpu"
    session = Session(device, board, care or (QUICK if quick else Care()), graphs and on_gpu)
    table, skipped, begun = Table(out), Skipped(), perf_counter()
    before = table.rows
    for task in todo:
        if seconds is not None and perf_counter() - begun > seconds:
            skipped["time was up"] += 1
            continue
        _into(table, task, session, skipped)
        progress(1)
    kind = str(device.device_kind)
    notes = [why] * bool(why)
    if find_preset(kind) is None:
        notes.append(f"{kind!r} is no preset: give calibrate and validate a GPU file of it")
    return MeasureAnswer(str(out), kind, table.rows, table.rows - before, skipped, tuple(notes))


def _into(table: Table, task: Task, session: Session, skipped: Skipped) -> None:
    """Write the rows of a task that the table lacks; what cannot be measured is counted."""
    try:
        for row in rows_of(task, session, table.has):
            table.add(row)
    except NotMeasurableError as error:
        reason = str(error)
    except (RuntimeError, ValueError) as error:  # what XLA and cuDNN raise where they refuse a shape or lack memory
        reason = f"{task.op}: {' '.join(str(error).split())[:160]}"
    else:
        return
    skipped[reason] += 1


def rows_of(task: Task, session: Session, has: Callable[[dict[str, Any]], bool]) -> Iterator[dict[str, Any]]:
    """Yield a task's rows of the measured table, one a state of the caches, but for those that ``has`` knows.

    Raises NotMeasurableError, and what JAX raises where a kernel does not compile or run.
    """
    missing = [
        source for source in _sources(task) if not any(has(_head(task, op, source, session)) for op in _names(task))
    ]
    if not missing:
        return
    what = _runnable(task, session)
    sets, launches = _sizes(what, session)
    missing = [s for s in missing if s == STAYS or sets * _rotating_bytes(what) >= session.care.cold_bytes / 2]
    if not missing:
        return
    sized, one, many = _programs(what, sets, launches, session)
    # Pallas' interpreter makes many instructions of a kernel, whose constants launches share.
    interpreted = what.implementation == PALLAS and session.device.platform != "gpu"
    extra = 0 if interpreted else check_launches(one, many, sized.written)
    for source in missing:
        operands = _operands(what, source, sized, session.device)
        run = lambda operands=operands: many(operands)  # noqa: E731
        dispatched = times(lambda operands=operands: one(operands[:1]), 1, session.care.repeats)
        took = times(run, sized.launches * sized.rounds, session.care.repeats)
        draw = session.board.during(lambda s, run=run: busy(run, s)) if session.board else None
        notes = {"notes": _notes(what, sized, (dispatched, took), draw, extra, session)}
        yield _head(task, what.op, source, session) | _numbers(took, draw) | notes


def _names(task: Task) -> tuple[str, ...]:
    return (task.op, f"{task.op}_xla") if task.kind == "attention" else (task.op,)


def _sources(task: Task) -> tuple[str, ...]:
    """A product's activations come from the kernel before, its weights from DRAM; other operators have no weights.

    Microbenchmarks have one state of the caches, that of the launch before.
    """
    if task.kind in ("latency", "launch", "power"):
        return (STAYS,)
    return (STAYS, ROTATES if task.kind == "gemm" else COLD)


def _head(task: Task, op: str, source: str, session: Session) -> dict[str, Any]:
    """Return the columns that tell a row from another."""
    shape = {"batch": 1} | task.shape if task.kind == "gemm" else task.shape
    graph = "graph" if session.graphs else "eager"
    return {
        "source": source,
        "group": f"{task.kind}_{graph}",
        "device": session.device.device_kind,
        "op": op,
        "dtype": task.dtype,
        **shape,
        "tp": 1,
    }


def _numbers(took: Times, draw: Draw | None) -> dict[str, Any]:
    return {
        "latency_us": f"{took.middle:.4f}",
        "rep_n": took.repeats,
        "rep_lo_us": f"{took.low:.4f}",
        "rep_hi_us": f"{took.high:.4f}",
        "power_w": f"{draw.watts:.1f}" if draw else "",
    }


def _notes(
    what: Measured, sized: _Sized, timed: tuple[Times, Times], draw: Draw | None, extra: int, session: Session
) -> str:
    """Return the notes of a row; ``timed``: a launch with its dispatch, and the row's own time."""
    dispatched, took = timed
    runs = WARM_UP + (took.repeats + 1) / 2  # those up to the median
    notes = {
        "impl": what.implementation,
        "jax": jax.__version__,
        "launches": sized.launches,
        "rounds": sized.rounds,
        "buffers": sized.sets,
        "extra_launches": extra,
        "graph": int(session.graphs),
        "dispatch_us": f"{dispatched.middle:.2f}",
        "busy_us": f"{runs * sized.launches * sized.rounds * took.middle:.0f}",
    }
    if draw and session.board:
        kind = "instant" if session.board.instant else "mean of a second"
        notes |= {"sm_mhz": f"{draw.sm_mhz:.0f}", "power": kind, "power_samples": draw.samples}
        notes |= session.board.limits()
    return "; ".join(f"{key}={value}" for key, value in notes.items())


def _runnable(task: Task, session: Session) -> Measured:
    """Return the task's function: cuDNN's attention where it runs, else XLA's kernels."""
    if task.kind == "attention" and session.device.platform == "gpu":
        what = measured(task, "cudnn")
        try:
            compiled(what.call, _sets(what, 1, (False,) * len(what.shapes), session.device), 1)
        except (RuntimeError, ValueError):  # cuDNN refuses the shape, or is not there
            return measured(task, "xla")
        return what
    return measured(task, interpret=session.device.platform != "gpu")


def _sizes(what: Measured, session: Session) -> tuple[int, int]:
    """Return the sets of operands and the launches of a round; raises NotMeasurableError where they are too large."""
    rotating = _rotating_bytes(what)
    room, out = SHARE * session.memory, max(what.out_bytes(), 1)
    if sum(what.operand_bytes()) + rotating > room or 2 * out > room:
        raise NotMeasurableError("more operands than a quarter of the device's memory holds")
    sets = max(2, min(ceil(session.care.cold_bytes / rotating), MOST_SETS, int(room / rotating)))
    launches = max(2, min(sets * ceil(LEAST_SETS / sets), int(room / out)))
    return min(sets, launches), launches


def _programs(what: Measured, sets: int, launches: int, session: Session) -> tuple[_Sized, Any, Any]:
    """Return the sizes of a program, one program of a single launch, and one of many."""
    one_set = _sets(what, 1, (False,) * len(what.shapes), session.device)
    one = compiled(what.call, one_set, 1, session.graphs)
    once = times(lambda: one(one_set), 1, 3).low
    rounds = ceil(session.care.run_s * 1e6 / (once * launches))
    rounds = 1 if rounds <= 1 else max(rounds, 3)  # a loop of one round would be written out, and its first left out
    return _Sized(sets, launches, rounds), one, compiled(what.call, one_set * launches, rounds, session.graphs)


def _rotating_bytes(what: Measured) -> int:
    """Return the bytes of the operands that rotate [B]."""
    return sum(size for size, rotates in zip(what.operand_bytes(), _rotating(what), strict=True) if rotates)


def _rotating(what: Measured) -> tuple[bool, ...]:
    """Return which operands rotate: weights where there are any, else all."""
    return what.weights if any(what.weights) else (True,) * len(what.weights)


def _operands(what: Measured, source: str, sized: _Sized, device: Any) -> list[tuple[Array, ...]]:
    """Return the operands of a round's launches."""
    if source == STAYS:
        return _sets(what, 1, (False,) * len(what.shapes), device) * sized.launches
    sets = _sets(what, sized.sets, _rotating(what), device)
    return [sets[i % sized.sets] for i in range(sized.launches)]


def _sets(what: Measured, count: int, rotating: tuple[bool, ...], device: Any) -> list[tuple[Array, ...]]:
    """Return ``count`` sets of random operands (zeros would draw less power); sets share those that do not rotate."""

    def fresh(seed: int, place: int) -> Array:
        if what.fill is not None:
            return jax.device_put(what.fill(), device)
        key = jax.random.fold_in(jax.random.key(place), seed)
        return jax.device_put(jax.random.normal(key, what.shapes[place], what.dtype), device)

    with jax.default_device(device):
        shared = [fresh(0, place) for place in range(len(rotating))]
        return [
            tuple(fresh(i, place) if rotates and i else shared[place] for place, rotates in enumerate(rotating))
            for i in range(count)
        ]
