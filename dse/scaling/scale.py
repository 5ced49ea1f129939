"""The answer of ``dse scale``: every larger size predicted from two scale models, by every method."""

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

import pandas as pd

from dse.base.errors import InputError, expect, path_of
from dse.base.skipped_rows import Skipped, why_skipped
from dse.scaling.cliffs import Cliff, ambiguous_steps, find_cliffs
from dse.scaling.scale_model import METHODS, NOTHING, ScaleModels, falls_to_nothing, interval
from dse.scaling.table import Benchmark, Sheet, read_scale_table, refuse_twice


class Point(NamedTuple):
    """One prediction of a benchmark's performance at a size."""

    method: str
    benchmark: str
    size: float  # [SM or chiplet]
    ipc: float  # predicted [instruction/cycle]
    truth: float | None  # of the table [instruction/cycle]
    interval: tuple[float, float] | None = None  # the recursion's [instruction/cycle]

    @property
    def error(self) -> float | None:
        """Absolute error [%], None without a truth."""
        return None if self.off is None else abs(self.off)

    @property
    def off(self) -> float | None:
        """Signed error [%], None without a truth."""
        return None if self.truth is None else 100 * (self.ipc / self.truth - 1)

    def document(self) -> dict[str, Any]:
        """Return the row of the JSON document."""
        return {
            "benchmark": self.benchmark,
            "size": self.size,
            "method": self.method,
            "ipc": self.ipc,
            "interval": self.interval,
            "truth": self.truth,
            "off_percent": self.off,
        }


class SpeedUp(NamedTuple):
    """Simulation time of the target over that of both scale models together."""

    benchmark: str
    size: float
    factor: float


@dataclass(frozen=True)
class SheetAnswer:
    """One sheet predicted from its scale models of ``small`` and ``large`` units; ``cliffs`` by benchmark."""

    sheet: Sheet
    small: float
    large: float
    points: tuple[Point, ...]
    cliffs: dict[str, tuple[Cliff, ...]]
    speed_ups: tuple[SpeedUp, ...]

    def errors(self) -> dict[str, dict[float, dict[str, Any]]]:
        """Return method -> size -> mean and maximum absolute error [%].

        Over the ``n`` benchmarks with a truth that the method predicts, and over the ``shared_n`` that every method
        predicts, by which methods compare (None without any).
        """
        by_method: dict[str, dict[float, dict[str, float]]] = {}
        for point in self.points:
            if point.error is not None:
                by_method.setdefault(point.method, {}).setdefault(point.size, {})[point.benchmark] = point.error
        return {
            method: {size: _merits(by_size[size], self._shared(by_method, size)) for size in sorted(by_size)}
            for method, by_size in by_method.items()
        }

    @staticmethod
    def _shared(by_method: Mapping[str, Mapping[float, Mapping[str, float]]], size: float) -> set[str]:
        """Return the benchmarks that every method with an error at a size predicts there."""
        return set.intersection(*(set(by_size[size]) for by_size in by_method.values() if size in by_size))

    def predictions(self) -> dict[str, dict[str, dict[str, float]]]:
        """Return method -> benchmark -> size -> IPC."""
        by_method: dict[str, dict[str, dict[str, float]]] = {method: {} for method in METHODS}
        for point in self.points:
            by_method[point.method].setdefault(point.benchmark, {})[f"{point.size:.0f}"] = point.ipc
        return by_method

    def coverage(self) -> dict[float, tuple[int, int]]:
        """Return size -> (truths inside the recursion's interval, truths)."""
        inside_by_size: dict[float, list[bool]] = {}
        for point in self.points:
            if point.interval and point.truth is not None:
                low, high = point.interval
                inside_by_size.setdefault(point.size, []).append(low <= point.truth <= high)
        return {size: (sum(inside), len(inside)) for size, inside in sorted(inside_by_size.items())}


@dataclass(frozen=True)
class ScaleAnswer:
    """The answer of ``dse scale``: all sheets of a table, ``skipped`` predictions (reason -> count), and notes."""

    table: str
    sheets: tuple[SheetAnswer, ...]
    skipped: dict[str, int]
    notes: tuple[str, ...] = ()

    def to_frame(self) -> pd.DataFrame:
        """Return the predictions, a row a sheet, benchmark, size and method."""
        return pd.DataFrame([{"sheet": one.sheet.name} | p.document() for one in self.sheets for p in one.points])

    def document(self) -> dict[str, Any]:
        """Return the JSON document of ``dse scale --json``, by sheet's name; ``points`` holds a row a prediction."""
        sheets = {answer.sheet.name: answer for answer in self.sheets}
        return {
            "table": self.table,
            "scale_models": {
                name: {"unit": one.sheet.unit, "small": one.small, "large": one.large} for name, one in sheets.items()
            },
            "predictions": {name: one.predictions() for name, one in sheets.items()},
            "errors": {
                name: {method: _by_size(one.errors().get(method, {})) for method in METHODS}
                for name, one in sheets.items()
            },
            "points": [{"sheet": name} | point.document() for name, one in sheets.items() for point in one.points],
            "coverage": {
                name: _by_size({size: {"inside": inside, "truths": n} for size, (inside, n) in one.coverage().items()})
                for name, one in sheets.items()
            },
            "cliffs": {
                name: {
                    benchmark: [cliff._asdict() for cliff in its_cliffs] for benchmark, its_cliffs in one.cliffs.items()
                }
                for name, one in sheets.items()
            },
            "speed_ups": [{"sheet": name} | s._asdict() for name, one in sheets.items() for s in one.speed_ups],
            "notes": list(self.notes),
            "skipped": self.skipped,
        }


def _merits(errors: Mapping[str, float], shared: Set[str]) -> dict[str, Any]:
    """Return the mean and maximum of a method's errors, over its own benchmarks and over those of every method."""
    own, common = list(errors.values()), [error for benchmark, error in errors.items() if benchmark in shared]
    return {
        "mean": mean(own),
        "max": max(own),
        "n": len(own),
        "shared_mean": mean(common) if common else None,
        "shared_max": max(common, default=None),
        "shared_n": len(common),
    }


def _by_size(values: dict[float, Any]) -> dict[str, Any]:
    """Return ``values`` by the size's text, as keys of JSON are."""
    return {f"{size:.0f}": value for size, value in values.items()}


def scale(table: str | Path | list[Sheet], small: float | None = None, large: float | None = None) -> ScaleAnswer:
    """Predict every size above the large scale model, of every benchmark of a table (a path, or sheets).

    ``small`` and ``large`` are the sizes of the scale models, by default the two smallest of each sheet. What cannot be
    predicted is counted by reason. Raises InputError for a wrong table, or where nothing can be predicted at all.

    Worked example, a working set that begins to fit between 64 and 128 SMs::

        from dse.scaling.scale import scale
        from dse.scaling.table import Benchmark, Sheet

        dct = Benchmark("dct", sizes=(8, 16, 32, 64, 128), ipc=(112.7, 226.4, None, None, None),
                        mpki=(6.17, 6.18, 6.16, 5.52, 0.10), f_mem=(0.52, None, None, None, None),
                        seconds=(None,) * 5)
        for point in scale([Sheet("mine", "SM", (dct,))]).sheets[0].points:
            print(point.method, point.size, point.ipc, point.interval)
    """
    for name, size in (("small", small), ("large", large)):
        expect(name, size, Real | None, "give a size, as 8")
    if (small is None) != (large is None):
        raise InputError("--small and --large: give both sizes, or neither")
    if small is not None and large is not None and not 0 < small < large:
        raise InputError(f"--small {small:g} --large {large:g}: give two sizes, the smaller first")
    sheets = table if isinstance(table, list) else read_scale_table(path_of("table", table))
    name = "sheets" if isinstance(table, list) else str(table)
    refuse_twice(f"{name}: sheet", [sheet.name for sheet in sheets])
    skipped = Skipped()
    answers = [_answer(name, sheet, small, large, skipped) for sheet in sheets]
    if not any(answer.points for answer in answers):
        raise InputError(
            f"{name}: nothing can be predicted: {why_skipped(skipped) or 'no size is larger than the scale models'}"
        )
    notes = (note for answer in answers for note in _notes(answer))
    return ScaleAnswer(name, tuple(answers), dict(skipped), tuple(notes))


def _notes(answer: SheetAnswer) -> Iterator[str]:
    """Yield notes on steps in which a cliff cannot be seen, and on errors of a single benchmark."""
    if len(answer.cliffs) == 1 and answer.errors():
        yield f"{answer.sheet.name}: one benchmark only; its errors say nothing of others"
    for benchmark in answer.sheet.benchmarks:
        if benchmark.weak or benchmark.name not in answer.cliffs:
            continue
        for before, after in ambiguous_steps(*_curve(benchmark, answer.small)):
            yield (
                f"{answer.sheet.name}: {benchmark.name}: mpki falls from {benchmark.at('mpki', before):g} to "
                f"{benchmark.at('mpki', after):g} between {before:g} and {after:g} {answer.sheet.unit}s, by less than "
                "2x a doubling: taken as no cliff; rows of sizes between would tell"
            )


def _answer(name: str, sheet: Sheet, small: float | None, large: float | None, skipped: Skipped) -> SheetAnswer:
    if small is None or large is None:
        sizes = sorted({size for benchmark in sheet.benchmarks for size in benchmark.sizes})
        if len(sizes) < 2:
            raise InputError(
                f"{name}: sheet {sheet.name}: holds one size only ({sizes[0]:g}); two scale models are needed"
            )
        small, large = sizes[:2]
    points: list[Point] = []
    cliffs: dict[str, tuple[Cliff, ...]] = {}
    speed_ups: list[SpeedUp] = []
    for benchmark in sheet.benchmarks:
        models = _models(benchmark, small, large, sheet.unit, skipped)
        if models is None:
            continue
        cliffs[benchmark.name] = _cliffs(benchmark, small, large)
        if benchmark.sizes[-1] <= large:
            skipped[f"no size above {large:g} {sheet.unit}s to predict"] += 1
        points += _points(benchmark, models, cliffs[benchmark.name], skipped)
        speed_ups += _speed_ups(benchmark, small, large)
    return SheetAnswer(sheet, small, large, tuple(points), cliffs, tuple(speed_ups))


def _models(benchmark: Benchmark, small: float, large: float, unit: str, skipped: Skipped) -> ScaleModels | None:
    """Return the benchmark's scale models; None, and counted, where the table lacks one or a miss rate it needs."""
    low, high = benchmark.at("ipc", small), benchmark.at("ipc", large)
    if low is None or high is None:
        skipped[f"no ipc at {small:g} or {large:g} {unit}s: the scale models are not in the table"] += 1
        return None
    if not benchmark.weak and None in benchmark.mpki:
        skipped["strong scaling without mpki at every size: cliffs cannot be seen"] += 1
        return None
    return ScaleModels(small, low, large, high)


def _cliffs(benchmark: Benchmark, small: float, large: float) -> tuple[Cliff, ...]:
    """Return the cliffs from the small model on, with their f_mem; weak scaling has none by definition."""
    if benchmark.weak:
        return ()
    cliffs = find_cliffs(*_curve(benchmark, small))
    return tuple(cliff._replace(f_mem=benchmark.f_mem_of(cliff.after, large)) for cliff in cliffs)


def _curve(benchmark: Benchmark, small: float) -> tuple[list[float], list[float]]:
    """Sizes from the small model on, and their miss rates."""
    curve = [(n, m) for n, m in zip(benchmark.sizes, benchmark.mpki, strict=True) if n >= small and m is not None]
    return [n for n, _ in curve], [m for _, m in curve]


def _points(benchmark: Benchmark, models: ScaleModels, cliffs: tuple[Cliff, ...], skipped: Skipped) -> Iterator[Point]:
    for size in (size for size in benchmark.sizes if size > models.n_L):
        truth = benchmark.at("ipc", size)
        for name, method in METHODS.items():
            try:
                ipc = method(models, cliffs, size)
            except InputError as error:
                skipped[f"{name}: {error}"] += 1
                continue
            if falls_to_nothing(models, ipc):
                why = f"falls below {NOTHING:g} of the large scale model's IPC: no prediction, and in no interval"
                skipped[f"{name}: {why}"] += 1
                continue
            bounds = interval(models, cliffs, size) if name == "recursion" else None
            yield Point(name, benchmark.name, size, ipc, truth, bounds)


def _speed_ups(benchmark: Benchmark, small: float, large: float) -> Iterator[SpeedUp]:
    low, high = benchmark.at("seconds", small), benchmark.at("seconds", large)
    for size, seconds in zip(benchmark.sizes, benchmark.seconds, strict=True):
        if size > large and low and high and seconds:
            yield SpeedUp(benchmark.name, size, seconds / (low + high))
