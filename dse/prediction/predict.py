"""The answer of ``dse predict``: a device predicted from the others of a measured table, generation left out."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dse.base.csv_table import notes_of_unit
from dse.base.errors import InputError, accepted
from dse.base.skipped_rows import Skipped, counted, why_skipped
from dse.prediction.calibrated import calibrated_models
from dse.prediction.features import DEMANDS, MODES
from dse.prediction.learning_rows import LearningRows, groups_of, load_learning_rows
from dse.prediction.predicted_timing import KINDS, Predicted, type_of
from dse.prediction.predictors import PREDICTORS
from dse.prediction.studies import feature_study, fewer_sms, host_study, version_study
from dse.prediction.table import MeasuredTable, generation, read_measured, target_preset
from dse.prediction.transfer import MIN_ROWS, ROOFLINES, Calibrated, ScoredPredictor, Transfer, transfer
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

    def model(self, choose: Callable[[Transfer], ScoredPredictor] = lambda result: result.chosen) -> Predicted:
        """Return the chosen predictors as one timing model.

        Each kind of kernel and data type has the operator's with most rows; all others have the base's timing.
        """
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
        return [_sentence(self.target, base, key, result, self.doubted) for key, result in self.transfers.items()]

    def document(self) -> dict[str, Any]:
        """Return the JSON document of ``dse predict --json``."""
        groups = [_group(op, dtype, result, self.doubted) for (op, dtype), result in self.transfers.items()]
        return {
            "table": self.table,
            "table_sha256": self.table_sha256,
            "target": self.target,
            "host": self.host,
            "analytical_model": type(self.base).__name__.lower(),
            "calibration": self.base.calibration,
            "said": self.sentences(),
            "groups": groups,
            "features": DEMANDS,
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
) -> PredictAnswer:
    """Predict a device of a measured table from the devices of other generations; raises InputError.

    ``host``: a device whose measured times are features too (the dissertation's host-to-target map, judged on shape
    families left out). ``model``: the analytical model, AMALI by default.
    ``predictors``: names of PREDICTORS, all by default.

    Worked example::

        from dse.prediction.predict import predict

        answer = predict("aiconfigurator__gemm.csv", "H100-SXM5-80GB")
        print(answer.to_frame())
        model = answer.model()                       # a timing model like Amali() or Roofline()
    """
    _check_names(predictors)
    measured = table if isinstance(table, MeasuredTable) else read_measured(Path(table))
    base = model or Amali()
    preset = target_preset(measured, target, "--target")
    host_preset = None if host is None else target_preset(measured, host, "--host")
    if host_preset == preset:
        raise InputError(f"--host: {host} is the target itself; give another device")
    _refuse_one_family(measured)
    trained, notes = _trained_on(measured, preset)
    rows, skipped = load_learning_rows(
        measured, [*trained, preset, *([host_preset] if host_preset not in (None, *trained) else [])], base
    )
    counts = measured.skipped + skipped + _left_out(measured, {*trained, preset, host_preset}, preset)
    groups = groups_of(rows)
    doubts = _notes_of_units(rows) or _notes_of_ticks(groups)
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
    if host_preset:
        studies["host_to_target"], of_host = host_study(groups, host_preset, preset, predictors)
        notes += of_host
    if measured.merged:
        notes.append(f"{measured.merged} of {measured.rows} rows repeat another: averaged with it")
    used = measured.rows - counts.total() - measured.merged
    row_counts = {"table": measured.rows, "used": used, "skipped": counts.total(), "merged": measured.merged}
    learned = (transfers, studies, (*notes, *doubts), dict(counts), row_counts, bool(doubts))
    return PredictAnswer(measured.path, measured.sha256, preset, host_preset, base, *learned)


def _left_out(measured: MeasuredTable, read: set[str | None], preset: str) -> Skipped:
    """Count the rows of devices that are not read: others of the target's generation."""
    others = measured.frame.loc[~measured.frame["preset"].isin(read), "preset"]
    return counted(f"{name} is of {preset}'s generation" for name in others)


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
        transfers[key] = transfer(train, test, predictors, calibrated.get(key, ()))
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


def beats(predictor: ScoredPredictor, result: Transfer) -> bool:
    """Whether a predictor is nearer to the target than every baseline that has not seen it."""
    return all(predictor.target["error"] < b.target["error"] for b in result.baselines if b.fair)


def _sentence(target: str, base: str, key: tuple[str, str], result: Transfer, doubted: bool) -> str:
    fair = [b for b in result.baselines if b.fair]
    analytical = fair[0].target["error"]
    roofline = min(b.target["error"] for b in fair if b.name in ROOFLINES)
    known = [b for b in fair[1:] if b.name not in ROOFLINES]
    calibrated = "".join(f", {b.name.replace('analytical model, ', '')} {b.target['error']:.1f} %" for b in known)
    chosen, best = result.chosen, result.hindsight
    first = result.least_e_out
    verdict = "it beats them all" if beats(chosen, result) else "it does not beat them all"
    firsts = " and beats them all" if beats(first, result) else " and loses"
    bests = "" if beats(best, result) else ": none beats them all"
    if doubted:
        verdict, firsts, bests = "whether it beats them cannot be told while a unit is in doubt (see the notes)", "", ""
    text = (
        f"{' '.join(key)} on {target} from {', '.join(result.train.devices)}: {chosen.name} ({chosen.mode}), "
        f"chosen without the target, is {chosen.target['error']:.1f} % off; the analytical model alone ({base}) "
        f"{analytical:.1f} %{calibrated}, the calibrated roofline of the other devices {roofline:.1f} %: {verdict}."
    )
    if first is not chosen:
        text += f" The least E_out ({first.name}, {first.mode}: {first.e_out['error']:.1f} %) is "
        text += f"{first.target['error']:.1f} % off there{firsts}."
    if best is not chosen:
        text += f" In hindsight {best.name} ({best.mode}) was best, {best.target['error']:.1f} %{bests}."
    return text
