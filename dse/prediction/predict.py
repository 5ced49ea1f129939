"""The answer of ``dse predict``: a device predicted from the others of a measured table, generation left out."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dse.base.csv_table import notes_of_unit
from dse.base.errors import InputError, accepted, expect, listed, path_of
from dse.base.skipped_rows import Skipped, counted, why_skipped
from dse.prediction.baselines import Calibrated
from dse.prediction.calibrated import calibrated_models
from dse.prediction.counters import Counters, counter_study
from dse.prediction.features import MODES
from dse.prediction.learning_rows import LearningRows, groups_of
from dse.prediction.predicted_timing import KINDS, Predicted, type_of
from dse.prediction.predictors import PREDICTORS
from dse.prediction.quantities import POWER, TIME, Response, quantity_named
from dse.prediction.sentences import beats, sentence
from dse.prediction.studies import feature_study, fewer_sms, host_study, version_study
from dse.prediction.table import MeasuredTable, generation, read_measured, target_preset
from dse.prediction.transfer import MIN_ROWS, ScoredPredictor, Transfer, transfer
from dse.prediction.watt_rows import load_rows, seen_by_power_model
from dse.timing.amali import Amali
from dse.timing.timing import TimingModel

STEPS = 6
"""Steps of progress an operator takes."""

TICKS = 4.0
"""How much farther off the timing model may be, in the median, on one device than on another, before a unit is doubted:
twice what it is between any two of the devices in the public tables, less than half of a slip by ten."""


@dataclass(frozen=True)
class PredictAnswer:
    """The answer of ``dse predict``: predictors with their errors, and the studies."""

    table: str
    table_sha256: str
    target: str
    host: str | None
    base: TimingModel
    transfers: dict[tuple[str, str], Transfer]  # (operator, data type) -> what was learned
    studies: dict[str, list[dict[str, Any]]]
    notes: tuple[str, ...]  # what was trained on, and why
    skipped: dict[str, int]  # reason -> rows
    rows: dict[str, int]  # rows of the table; of them used, skipped, and merged with one that they repeat
    doubted: bool = False  # times may be in different units, as a note says: no comparison with baselines holds
    quantity: Response = TIME

    def model(self, choose: Callable[[Transfer], ScoredPredictor] = lambda result: result.chosen) -> Predicted:
        """Return the chosen predictors as one timing model.

        Each kind of kernel and data type has the operator's with most rows; all others have the base's timing. Raises
        InputError where watts were predicted.
        """
        if self.quantity is not TIME:
            raise InputError(f"--quantity {self.quantity.name}: makes no timing model; give time")
        largest: dict[tuple[int, int], tuple[str, Transfer]] = {}
        for (op, dtype), result in sorted(self.transfers.items(), key=lambda item: len(item[1].train.y)):
            largest[KINDS[op], type_of(dtype)] = (f"{op} {dtype}", result)
        chosen = [choose(result) for _, result in largest.values()]
        devices = sorted({d for _, result in largest.values() for d in result.train.devices})
        what = ", ".join(name for name, _ in largest.values())
        return Predicted(
            self.base,
            predictors=tuple(predictor.fitted for predictor in chosen),
            kinds=tuple(kind for kind, _ in largest),
            types=tuple(dtype for _, dtype in largest),
            with_base=tuple(predictor.mode != "plain" for predictor in chosen),
            learned_on=f"{what} of {', '.join(devices)} in {Path(self.table).name}",
        )

    def to_frame(self) -> pd.DataFrame:
        """Return the chosen predictor of each operator and data type, with its errors [%] on the target."""
        rows = [
            {"op": op, "dtype": dtype, "predictor": r.chosen.name, "mode": r.chosen.mode, **r.chosen.target}
            for (op, dtype), r in self.transfers.items()
        ]
        return pd.DataFrame(rows).drop(columns="inliers", errors="ignore")

    def sentences(self) -> list[str]:
        """Return a sentence or two for each operator: what was chosen, how far off it is, and what it beats."""
        base = self.base.calibration
        return [sentence(self.target, base, key, result, self.doubted) for key, result in self.transfers.items()]

    def document(self) -> dict[str, Any]:
        """Return the JSON document of ``dse predict --json``."""
        groups = [_group(op, dtype, result, self.doubted) for (op, dtype), result in self.transfers.items()]
        return {
            "table": self.table,
            "table_sha256": self.table_sha256,
            "target": self.target,
            "quantity": self.quantity.name,
            "unit": self.quantity.unit,
            "host": self.host,
            "analytical_model": type(self.base).__name__.lower(),
            "calibration": self.base.calibration,
            "said": self.sentences(),
            "groups": groups,
            "features": dict(self.quantity.features),
            "modes": MODES,
            **self.studies,
            "notes": list(self.notes),
            "skipped": self.skipped,
            "rows": self.rows,
        }


def plan(measured: MeasuredTable) -> int:
    """Return the steps of progress that :func:`predict` reports for a table."""
    return 1 + STEPS * len(measured.frame.groupby(["op", "dtype"]))


def predict(
    table: str | Path | MeasuredTable,
    target: str,
    host: str | None = None,
    model: TimingModel | None = None,
    progress: Callable[[int], None] = lambda count: None,
    predictors: tuple[str, ...] = PREDICTORS,
    quantity: str = "time",
    counters: str | Path | None = None,
) -> PredictAnswer:
    """Predict a device of a measured table from the devices of other generations; raises InputError.

    ``host``: a device whose measured times are features too (the dissertation's host-to-target map, judged on shape
    families left out). ``model``: the analytical model, AMALI by default.
    ``predictors``: names of PREDICTORS, all by default. ``quantity``: time, or power of rows with ``power_w``.
    ``counters``: an export of Nsight Compute of a host, whose counters of the same shapes are features too.

    Worked example::

        from dse.prediction.predict import predict

        answer = predict("aiconfigurator__gemm.csv", "H100-SXM5-80GB")
        print(answer.to_frame())
        model = answer.model()                       # a timing model like Amali() or Roofline()
    """
    expect("target", target, str, "give the name of a GPU, as 'h100_sxm'")
    predictors = tuple(listed("predictors", predictors, "give a list of names, as ['nnls']"))
    _check_names(predictors)
    of_quantity = quantity_named(quantity)
    measured = table if isinstance(table, MeasuredTable) else read_measured(path_of("table", table), of_quantity)
    counted_host = None if counters is None else Counters.read(Path(counters))
    base = model or Amali()
    preset = target_preset(measured, target, "--target")
    host_preset = None if host is None else target_preset(measured, host, "--host")
    if host_preset == preset:
        raise InputError(f"--host: {host} is the target itself; give another device")
    _refuse_one_family(measured)
    trained, notes = _trained_on(measured, preset)
    rows, skipped = load_rows(
        measured, [*trained, preset, *([host_preset] if host_preset not in (None, *trained) else [])], base
    )
    counts = measured.skipped + skipped + _left_out(measured, {*trained, preset, host_preset}, preset)
    groups = groups_of(rows)
    doubts = _doubts(rows, groups)
    notes += _notes_of_seen(groups, preset) if measured.quantity is POWER else []
    progress(1)
    calibrated = calibrated_models(measured, [*trained, *([host_preset] if host_preset else [])], groups, preset, base)
    transfers = _transfers(groups, trained, preset, counts, predictors, progress, calibrated)
    if not transfers:
        raise InputError(f"{measured.path}: nothing to learn from: {why_skipped(counts)}")
    studies = {
        "feature_study": feature_study(transfers),
        "versions": version_study(groups, transfers),
        "fewer_sms": fewer_sms(measured, groups, preset, base),
    }
    of_hosts, more = _of_hosts(groups, host_preset, counted_host, preset, predictors)
    studies, notes = studies | of_hosts, notes + more
    notes += _notes_of_merged(measured)
    learned = (transfers, studies, (*notes, *doubts), dict(counts), _row_counts(measured, counts), bool(doubts))
    return PredictAnswer(measured.path, measured.sha256, preset, host_preset, base, *learned, measured.quantity)


def _doubts(rows: LearningRows, groups: Mapping[tuple[str, str], LearningRows]) -> list[str]:
    """Return notes of times that may be in different units."""
    return (_notes_of_units(rows) or _notes_of_ticks(groups)) if rows.quantity is TIME else []


def _notes_of_merged(measured: MeasuredTable) -> list[str]:
    return [f"{measured.merged} of {measured.rows} rows repeat another: averaged with it"] * bool(measured.merged)


def _row_counts(measured: MeasuredTable, counts: Skipped) -> dict[str, int]:
    used = measured.rows - counts.total() - measured.merged
    return {"table": measured.rows, "used": used, "skipped": counts.total(), "merged": measured.merged}


def _of_hosts(
    groups: Mapping[tuple[str, str], LearningRows],
    host: str | None,
    counters: Counters | None,
    target: str,
    predictors: tuple[str, ...],
) -> tuple[dict[str, list[dict[str, Any]]], list[str]]:
    """Return the studies of a host's times and of its counters, as far as they are given, and their notes."""
    studies: dict[str, list[dict[str, Any]]] = {}
    notes: list[str] = []
    if host:
        studies["host_to_target"], of_host = host_study(groups, host, target, predictors)
        notes += of_host
    if counters:
        studies["host_counters"], of_counters = counter_study(groups, counters, target, predictors)
        notes += of_counters
    return studies, notes


def _left_out(measured: MeasuredTable, read: set[str | None], preset: str) -> Skipped:
    """Count the rows of devices that are not read: others of the target's generation."""
    others = measured.frame.loc[~measured.frame["preset"].isin(read), "preset"]
    return counted(f"{name} is of {preset}'s generation" for name in others)


def _notes_of_seen(groups: Mapping[tuple[str, str], LearningRows], preset: str) -> list[str]:
    """Return a note where the power model's coefficients have seen what is predicted."""
    seen = [" ".join(key) for key, rows in groups.items() if preset in rows.devices and _seen(key, preset)]
    if not seen:
        return []
    return [
        f"the power model's shipped coefficients were fitted to rows of {preset} too ({', '.join(seen)}): it is no "
        "baseline there, and predictors in the modes analytical and residual know of them; those in mode plain do not"
    ]


def _seen(key: tuple[str, str], preset: str) -> bool:
    return seen_by_power_model(key[0], preset)


def _check_names(predictors: tuple[str, ...]) -> None:
    for place, name in enumerate(predictors):
        if name not in PREDICTORS:
            raise InputError(f"--predictors: no predictor is called {name!r}; {accepted(name, PREDICTORS, 20)}")
        if name in predictors[:place]:
            raise InputError(f"--predictors: {name!r} stands twice; give it once")


def _notes_of_units(rows: LearningRows) -> list[str]:
    """Return a note for each device whose times seem to be in another unit, by the timing model."""
    notes = []
    for device in rows.devices:
        part = rows.of(device)
        notes += notes_of_unit(float(np.median(part.analytical / part.y)), f" of {device}")
    return notes


def _notes_of_ticks(groups: Mapping[tuple[str, str], LearningRows]) -> list[str]:
    """Return a note where one device's times seem to be in another unit than another's.

    There the timing model is much farther off on one of them, in the median of the same operator and data type.
    """
    notes = []
    for (op, dtype), rows in groups.items():
        parts = {device: rows.of(device) for device in rows.devices}
        apart = {d: float(np.median(p.analytical / p.y)) for d, p in parts.items() if len(p.y) >= MIN_ROWS}
        low, high = (end(apart, key=lambda d: apart[d], default=None) for end in (min, max))
        if low and high and apart[high] > TICKS * apart[low]:
            notes.append(
                f"{op} {dtype}: the median row of {low} is predicted {apart[low]:.2g} times as long as measured, that "
                f"of {high} {apart[high]:.2g} times: is latency_us in microseconds for both?"
            )
    return notes


def _transfers(
    groups: Any,
    trained: list[str],
    preset: str,
    counts: Skipped,
    predictors: tuple[str, ...],
    progress: Callable[[int], None],
    calibrated: Mapping[tuple[str, str], list[Calibrated]],
) -> dict[tuple[str, str], Transfer]:
    transfers = {}
    for key, rows in groups.items():
        test = rows.of(preset)
        train = rows.take(rows.frame["preset"].isin(trained).to_numpy().nonzero()[0])
        if len(test.y) == 0:
            counts[f"{' '.join(key)}: no row of {preset}"] += len(rows.y)
            progress(STEPS)
            continue
        if len(train.y) < MIN_ROWS or train.frame["family"].nunique() < 2:
            why = f"{' '.join(key)}: fewer than {MIN_ROWS} rows or two shape families on the other devices"
            counts[why] += len(rows.y)
            progress(STEPS)
            continue
        fair = rows.quantity is TIME or not _seen(key, preset)
        transfers[key] = transfer(train, test, predictors, calibrated.get(key, ()), fair)
        progress(STEPS)
    return transfers


def _trained_on(measured: MeasuredTable, preset: str) -> tuple[list[str], list[str]]:
    """Return the devices to learn from: those of other generations, or, where there are none, all others."""
    others = sorted(set(measured.frame["preset"]) - {preset})
    if not others:
        usable = f" that can be used (skipped: {why_skipped(measured.skipped)})" if measured.skipped else ""
        raise InputError(
            f"--target: {measured.path} holds rows of {preset} only{usable}; a device is predicted from others: give a "
            "table with two devices"
        )
    own = generation(preset)
    older = [name for name in others if generation(name) != own]
    if not older:
        note = f"every other device is of {preset}'s generation ({own}) too: no generation could be left out"
        return others, [note]
    same = [name for name in others if name not in older]
    notes = [f"learned on {', '.join(older)}"]
    if same:
        notes.append(f"left out with {preset}, of the same generation ({own}): {', '.join(same)}")
    return older, notes


def _refuse_one_family(measured: MeasuredTable) -> None:
    families = sorted(set(measured.frame["family"]))
    if len(families) < 2:
        raise InputError(
            f"{measured.path}: holds one benchmark only, the shape family {families[0]!r}; two are needed, so that one "
            "can be left out"
        )


def _group(op: str, dtype: str, result: Transfer, doubted: bool) -> dict[str, Any]:
    return {
        "op": op,
        "dtype": dtype,
        "train_rows": len(result.train.y),
        "target_rows": len(result.test.y),
        "trained_on": result.train.devices,
        "predictors": [predictor.document() for predictor in ranked(result)],
        "baselines": [baseline.document() for baseline in result.baselines],
        "chosen": {"predictor": result.chosen.name, "mode": result.chosen.mode},
        "least_e_out": {"predictor": result.least_e_out.name, "mode": result.least_e_out.mode},
        "hindsight": {"predictor": result.hindsight.name, "mode": result.hindsight.mode},
        "beats_baselines": None if doubted else beats(result.chosen, result),
        "feature_ranking": result.ranking,
    }


def ranked(result: Transfer) -> list[ScoredPredictor]:
    """Return the predictors by E_out, as the dissertation's tables rank them."""
    return sorted(result.scored, key=lambda j: j.e_out["error"])
