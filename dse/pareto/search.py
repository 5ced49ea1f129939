"""The search: the best designs of a space too large to sweep, to the tables and the record that a sweep writes."""

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from dse.base.errors import InputError, expect, shown
from dse.grid.record import write_record
from dse.grid.result import SweepResult
from dse.grid.store import (
    TableWriter,
    alone_in,
    discard_record,
    provenance,
    refuse_other_kind,
    results_in,
    write_json,
    write_table,
    writing,
)
from dse.pareto.batch_model import BatchModel, EvaluatedDesigns
from dse.pareto.fronts import knees
from dse.pareto.gradient import Refinement
from dse.pareto.gradient import refine as refine_front
from dse.pareto.samplers import LOCAL, Searching, check_sampler, make_study
from dse.pareto.search_result import SearchResult
from dse.space.designs import SAMPLE
from dse.space.space import Space, space_of

ROWS = 32768
"""Designs in a row group of the table."""

GO_ON = "give the same command, which goes on"

SHARE, LEAST, MOST = 0.01, 2_000, 200_000
"""Evaluations where neither they nor the time are given: a share of the designs, within these."""


def default_evaluations(space: Space) -> int:
    """Return the designs that a search evaluates where neither their number nor the time is given."""
    return int(np.clip(SHARE * space.size, LEAST, MOST))


Progress = Callable[[int, int, float], None]
"""Called with the evaluations done, the designs on the front and the hypervolume; first with zeros, when XLA begins to
compile."""


def search(
    space: Space | str | Path,
    out: str | Path | None = None,
    *,
    sampler: str = LOCAL,
    evaluations: int | None = None,
    seconds: float | None = None,
    storage: str | None = None,
    seed: int = 0,
    refine: bool = False,
    progress: Progress | None = None,
) -> SearchResult:
    """Search a space (or the space file at a path) for its Pareto set and return the result.

    ``out``: a folder for ``points.parquet`` (what was evaluated), ``pareto.parquet`` and ``run.json``. ``sampler``: one
    of :data:`dse.pareto.samplers.SAMPLERS`. The search ends after ``evaluations`` designs in all or ``seconds`` of this
    run, whichever is first, or when no design is left. ``storage``: ``journal:PATH``, ``grpc://host:port`` or an SQL
    URL; by default a journal in ``out``, without it memory. The same search on a storage that holds it goes on.
    ``refine``: descend from the front between the grid's values (:mod:`dse.pareto.gradient`) when the search ends.
    Raises InputError.
    """
    check_sampler(sampler)
    evaluations, seconds = _budget(evaluations, seconds)
    seed = _whole("seed", seed, 0)
    space = space_of(space)
    expect("storage", storage, str | None, "give journal:PATH, grpc://host:port or an SQL URL")
    expect("refine", refine, bool, "give True or False")
    space.refuse_refinement(refine)
    expect("progress", progress, Callable | None, "give a function that takes evaluations, members and hypervolume")
    if evaluations is None and seconds is None:
        evaluations = default_evaluations(space)
    with _into(out, space.name) as folder:
        url = f"journal:{folder / 'search.journal'}" if storage is None and folder else storage
        study = make_study(space, url, sampler, seed, evaluations or MOST)
        if folder is not None:
            discard_record(folder)
        run = _Search(space, study, folder, progress or (lambda count, members, volume: None), evaluations)
        try:
            run.run(evaluations, seconds)
            answer = run.answer(sampler, seed, url, refine)
        except BaseException:
            run.points.abandon()
            raise
        finally:
            study.finish()
            study.close()
        study.publish()
        if folder is not None:
            _write(answer, folder)
        return answer


@contextmanager
def _into(out: str | Path | None, name: str) -> Iterator[Path | None]:
    """Lock the folder ``out`` for a space of this name; raises InputError where it cannot be written to."""
    if out is None:
        yield None
        return
    with results_in(out) as folder, alone_in(folder), writing(folder, GO_ON):
        refuse_other_kind(folder, search=True, name=name)
        yield folder


def _budget(evaluations: int | None, seconds: float | None) -> tuple[int | None, float | None]:
    if seconds is not None and (isinstance(seconds, bool) or not (isinstance(seconds, Real) and 0 < seconds < 1e9)):
        raise InputError(f"--seconds {shown(seconds)} is not accepted; give a number above 0")
    return None if evaluations is None else _whole("evaluations", evaluations, 1), seconds


def _whole(option: str, value: Any, least: int) -> int:
    """Return the value of an option as a whole number; raises InputError where it is none, or below ``least``."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise InputError(f"--{option} {shown(value)} is not accepted; give a whole number of at least {least}")
    return int(value)


def _write(answer: SearchResult, folder: Path) -> None:
    write_record(answer.result, folder)
    document = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    counts = {"restored": answer.restored, "repeated": answer.repeated}
    timing = document.pop("timing") | counts | {"history": answer.history}
    write_json(folder / "run.json", document | {"search": answer.record(), "timing": timing})


class _Points:
    """The table of evaluated designs, each once, in the order of evaluation."""

    def __init__(self, model: BatchModel, folder: Path | None) -> None:
        self._model = model
        self._writer = TableWriter(folder / "points.parquet", provenance(model.space)) if folder else None
        self._waiting: list[pa.Table] = []
        self.tables: list[pa.Table] = []
        self.reasons: Counter[str] = Counter()
        self.count = 0
        self._numbers: set[int] = set()

    def add(self, evaluated: EvaluatedDesigns) -> None:
        """Append the designs that are not in the table yet."""
        new = [i for i, number in enumerate(evaluated.index.tolist()) if not self._in_table(number)]
        table = self._model.table(evaluated).take(pa.array(new, pa.int64()))  # of none too: a batch may repeat
        self.count += len(new)
        self.reasons.update(Counter(text for text in table["reason"].to_pylist() if text))
        self._waiting.append(table)
        while sum(map(len, self._waiting)) >= ROWS:
            self._flush()

    def _in_table(self, number: int) -> bool:
        state = number in self._numbers
        self._numbers.add(number)
        return state

    def _flush(self) -> None:
        table = pa.concat_tables(self._waiting)
        self._waiting = [table.slice(ROWS)]
        group = table.slice(0, ROWS).unify_dictionaries().combine_chunks()
        if self._writer is None:
            self.tables.append(group)
        else:
            self._writer.write(group)

    def finish(self) -> None:
        """Write the remaining designs and give the file its name."""
        self._flush()
        if self._writer is not None:
            self._writer.finish()

    def abandon(self) -> None:
        """Remove what was written."""
        if self._writer is not None:
            self._writer.abandon()


class _Search:
    def __init__(
        self, space: Space, study: Searching, folder: Path | None, progress: Progress, evaluations: int | None
    ) -> None:
        self.space, self.study, self.folder, self.progress = space, study, folder, progress
        self.model = BatchModel(space, expected=evaluations)
        self.points = _Points(self.model, folder)
        self.seconds = {"compile": 0.0, "evaluate": 0.0, "write": 0.0}
        self.history: list[tuple[int, float, int, float]] = []
        self.restored = study.state.count
        self.repeated = 0
        self.took = 0.0
        self._own: set[int] = set()

    def run(self, evaluations: int | None, seconds: float | None) -> None:
        """Ask, evaluate and tell until the evaluations or the seconds are used up or nothing is left to ask."""
        start = time.perf_counter()
        self.model.trace()
        self.progress(0, 0, 0.0)
        self.model.compile()
        self.seconds["compile"] = time.perf_counter() - start
        self._restore()
        start = time.perf_counter()
        state = self.study.state
        while (evaluations is None or state.count < evaluations) and (seconds is None or self.took < seconds):
            batch = self.study.ask(self.model.generation if evaluations is None else evaluations - state.count)
            if batch is None:
                break
            evaluated = self._evaluate(batch.index)
            self.study.tell(batch, evaluated)
            self.points.add(evaluated)
            self.took = time.perf_counter() - start
            self.history.append((state.count, round(self.took, 3), len(state.local.index), state.hypervolume))
            self.progress(state.count, len(state.local.index) if state.feasible else 0, state.hypervolume)

    def _evaluate(self, index: np.ndarray) -> EvaluatedDesigns:
        start = time.perf_counter()
        evaluated = self.model(index)
        self.seconds["evaluate"] += time.perf_counter() - start
        return evaluated

    def _restore(self) -> None:
        """Evaluate the storage's designs again: their results were not kept, and the model is fast."""
        for index in self.study.state.designs:
            self.points.add(self.model(index))
            self.repeated += len(index)

    def answer(self, sampler: str, seed: int, storage: str | None, refining: bool) -> SearchResult:
        """Return the result, its tables written."""
        start = time.perf_counter()
        table, refinement = self._front(refining)
        front = table.to_pandas()
        self.points.finish()
        costs = np.stack([o.sign * front[o.name].to_numpy(float) for o in self.space.objectives], axis=1)
        state = self.study.state
        hypervolume = state.measured()
        if self.history:
            self.history[-1] = (*self.history[-1][:3], hypervolume)
        self.seconds["write"] = time.perf_counter() - start
        return SearchResult(
            self._result(front),
            sampler,
            seed,
            storage,
            state.count,
            self.restored,
            self.repeated,
            self.took,
            hypervolume,
            knees(costs),
            self.history,
            refinement,
        )

    def _front(self, refining: bool) -> tuple[pa.Table, Refinement | None]:
        """Return the front in grid order, evaluated again, then designs off the grid; write it into the folder."""
        state = self.study.state
        index = np.sort(state.local.index) if state.feasible else np.empty(0, np.int64)
        table = self.model.table(self.model(index) if len(index) else self.model.baseline())
        table = table if len(index) else table.slice(0, 0)
        refinement = refine_front(self.space, self.space.at(index), self.model) if refining else None
        table = refinement.table if refinement else table
        if self.folder is not None:
            write_table(self.folder / "pareto.parquet", table, provenance(self.space))
        return table, refinement

    def _result(self, front: pd.DataFrame) -> SweepResult:
        return SweepResult(
            space=self.space,
            baseline=self.model.table(self.model.baseline()).to_pandas(),
            front=front,
            axis_effects=self._axis_effects(front),
            sample=front.iloc[:: max(1, len(front) // SAMPLE)],
            n=self.points.count,
            n_feasible=self.points.count - sum(self.points.reasons.values()),
            infeasible=dict(sorted(self.points.reasons.items(), key=lambda item: (-item[1], item[0]))),
            seconds=self.seconds,
            folder=self.folder,
            table=None if self.folder else pa.concat_tables(self.points.tables),
        )

    def _axis_effects(self, front: pd.DataFrame) -> pd.DataFrame:
        """The best of each objective on the front at each value of each axis; a search has no medians of the grid."""
        rows = []
        for axis in self.space.axes:
            grouped = front.groupby(axis.name, observed=True)
            best = {
                o.name: grouped[o.name].min() if o.sign > 0 else grouped[o.name].max() for o in self.space.objectives
            }
            for number, value in zip(axis.numbers, axis.values, strict=True):
                row = (axis.name, number, value, axis.unit)
                rows += [(*row, name, None, figures.get(value), None) for name, figures in best.items()]
        columns = ["axis", "number", "value", "unit", "objective", "median", "best", "at_baseline"]
        return pd.DataFrame(rows, columns=columns).astype({"median": float, "best": float, "at_baseline": float})
