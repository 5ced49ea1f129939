"""O'Neal's further studies: a host's measurements as features, software versions, fewer units, features removed."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import permutations
from typing import Any

import numpy as np

from dse.hardware.presets import load_sheet
from dse.prediction.features import MODES
from dse.prediction.learning_rows import LearningRows, geometric_means, joined, same_shape
from dse.prediction.merits import group_folds, merits, percentage_errors
from dse.prediction.predictors import PREDICTORS, Rows, fit, left_out
from dse.prediction.table import MeasuredTable
from dse.prediction.transfer import MIN_ROWS, MOST_FOLD_ROWS, MOST_ROWS, Transfer, predictor_modes
from dse.prediction.watt_rows import load_rows
from dse.timing.timing import TimingModel

Groups = Mapping[tuple[str, str], LearningRows]

QUICK = ("ols", "nnls", "forest")
"""Predictors of the studies: one of each family."""

TREES = 128
"""Trees of a study's forest."""


def feature_study(transfers: Mapping[tuple[str, str], Transfer]) -> list[dict[str, Any]]:
    """Return the chosen predictor's error on the target [%] without each feature, and with all."""
    errors = []
    for (op, dtype), transferred in transfers.items():
        chosen, train = transferred.chosen, transferred.train.sample(MOST_ROWS)
        names = train.quantity.feature_names(chosen.mode)
        without = [None, *(n for n in names if not (chosen.mode == "residual" and n == names[-1]))]
        for removed in without:
            columns = [i for i, name in enumerate(names) if name != removed]
            rows, test = (
                Rows(r.x[:, columns], r.y) for r in (part.rows(chosen.mode) for part in (train, transferred.test))
            )
            answer = fit(chosen.name, rows, chosen.mode == "residual", chosen.trees or TREES).many(test.x)
            error = float(percentage_errors(answer, test.y).mean())
            errors.append(
                {
                    "op": op,
                    "dtype": dtype,
                    "predictor": chosen.name,
                    "mode": chosen.mode,
                    "without": removed,
                    "target_error": error,
                }
            )
    return errors


def host_study(
    groups: Groups, host: str, target: str, predictors: tuple[str, ...] = PREDICTORS
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return E_out on shape families left out, with the host's measured time of the same shape among the features, and
    notes of what was not judged and of times that are means.

    The host's time stands in microseconds of the target's clock, scaled by the data sheets' roofline, and, in the modes
    that know it, by the analytical model: the dissertation's map from a host to a target, trained on both.
    """
    scores, notes = [], []
    for (op, dtype), rows in groups.items():
        both, target_rows = with_host(rows, host, target), len(rows.of(target).y)
        enough = len(both.y) >= MIN_ROWS and both.frame["family"].nunique() > 1
        notes += [f"--host {host}: {op} {dtype}: {why}" for why in _host_notes(both, enough, target_rows)]
        if not enough:
            continue
        sample = both.sample(MOST_FOLD_ROWS)
        fold = group_folds(sample.frame["family"].to_numpy(), 5)
        for name, mode in predictor_modes(predictors, rows.quantity):
            learned = host_rows(sample, mode)
            predicted, _ = left_out(name, learned, fold, mode == "residual", TREES if name == "forest" else 0)
            row = {"op": op, "dtype": dtype, "predictor": name, "mode": mode, "rows": len(sample.y)}
            scores.append(row | {"e_out_families": merits(predicted, learned.y)})
    return sorted(scores, key=lambda r: (r["op"], r["dtype"], r["e_out_families"]["error"])), notes


def _host_notes(both: LearningRows, enough: bool, target_rows: int) -> list[str]:
    """Return why rows of the target with a host's time are not judged, or for how many that time is a mean."""
    rows, several = len(both.y), int((both.frame["host_times"] > 1).sum())
    if target_rows and not enough:
        families = both.frame["family"].nunique()
        return [
            f"not judged: the host ran the shapes of {rows} of the target's {target_rows} rows, of {families} "
            f"families; {MIN_ROWS} rows of two families are needed"
        ]
    if enough and several:
        return [
            f"the host ran the shapes of {several} of {rows} rows under several versions or sources: the geometric "
            "mean of its times stands for them"
        ]
    return []


HOST = ("host", "host_by_roofline", "host_by_analytical")
"""Features of a host: its measured time [cycle of the target], and the same scaled by either model."""


def with_host(rows: LearningRows, host: str, target: str) -> LearningRows:
    """Return the target's rows that the host ran too, with HOST before the analytical cycles.

    The host's time of a row is of the same shape, software and source (:func:`same_shape`), the geometric mean where
    several are; ``host_times`` of the frame counts them.
    """
    there, here = rows.of(host), rows.of(target)
    places = same_shape(here.frame, there.frame)
    here = here.take(np.flatnonzero([len(its) > 0 for its in places]))
    places = [its for its in places if len(its)]
    by_sheet = rows.quantity.place(rows.quantity.by_sheet)
    time = there.y / there.clock_ghz
    by_roofline, by_model = (time / (there.x[:, c] / there.clock_ghz) for c in (by_sheet, -1))
    time, by_roofline, by_model = (geometric_means(values, places) for values in (time, by_roofline, by_model))
    scaled = (time * here.clock_ghz, by_roofline * here.x[:, by_sheet], by_model * here.x[:, -1])
    frame = here.frame.assign(host_times=[len(its) for its in places])
    return replace(here, frame=frame, x=np.column_stack([here.x[:, :-1], *scaled, here.x[:, -1]]))


def host_rows(rows: LearningRows, mode: str) -> Rows:
    """Return the rows of a mode with a host's features: only modes with the analytical model see what scales by it."""
    return Rows(rows.x[:, :-2] if mode == "plain" else rows.x, rows.y)


def version_study(groups: Groups, transfers: Mapping[tuple[str, str], Transfer]) -> list[dict[str, Any]]:
    """Return how well one version of the software predicts another on the same device, by operator.

    ``same_shapes``: the first version's time (:func:`same_shape`, the geometric mean of several) taken for the
    second's, where both ran a shape; [%] and how many.
    """
    comparisons = []
    for (op, dtype), rows in groups.items():
        mode = transfers[op, dtype].chosen.mode if (op, dtype) in transfers else "analytical"
        for device in rows.devices:
            own = rows.of(device)
            counts = own.frame["version"].value_counts()
            versions = sorted(str(v) for v, count in counts.items() if v and count >= MIN_ROWS)
            for old, new in permutations(versions, 2):
                comparisons.append(
                    {"op": op, "dtype": dtype, "device": device, "from": old, "to": new, "mode": mode}
                    | _between(own, old, new, mode)
                )
    return comparisons


def _between(rows: LearningRows, old: str, new: str, mode: str) -> dict[str, Any]:
    versions = rows.frame["version"].to_numpy()
    before, after = (rows.take(np.flatnonzero(versions == v)) for v in (old, new))
    errors = _errors(before, after, mode)
    places = same_shape(after.frame, before.frame)
    same = np.array([len(its) > 0 for its in places])
    naive = None
    if same.any():
        naive_cycles = geometric_means(before.y, [its for its in places if len(its)])
        naive = float(percentage_errors(naive_cycles, after.y[same]).mean())
    return {
        "errors": errors,
        "analytical": float(percentage_errors(after.analytical, after.y).mean()),
        "same_shapes": {"error": naive, "rows": int(same.sum())},
    }


def _errors(train: LearningRows, test: LearningRows, mode: str) -> dict[str, float]:
    """Return the mean error of the quick predictors on ``test`` [%]."""
    rows, test_rows = train.sample(MOST_ROWS).rows(mode), test.rows(mode)
    return {
        name: float(percentage_errors(fit(name, rows, mode == "residual", TREES).many(test_rows.x), test_rows.y).mean())
        for name in QUICK
    }


def fewer_sms(measured: MeasuredTable, groups: Groups, target: str, model: TimingModel) -> list[dict[str, Any]]:
    """Return how well all devices with fewer SMs than the target, of any generation, predict it."""
    sms = {preset: load_sheet(preset).numbers()["sm_count"] for preset in set(measured.frame["preset"])}
    smaller = sorted(preset for preset, count in sms.items() if count < sms[target])
    missing = [p for p in smaller if all(p not in rows.devices for rows in groups.values())]
    if not smaller:
        return []
    more = load_rows(measured, missing, model)[0] if missing else None
    predictions = []
    for (op, dtype), rows in groups.items():
        parts = [p for p in (rows, more) if p is not None]
        train = [p.take(np.flatnonzero(_is(p, op, dtype) & p.frame["preset"].isin(smaller))) for p in parts]
        train = [p for p in train if len(p.y)]
        test = rows.of(target)
        if not train or sum(len(p.y) for p in train) < MIN_ROWS or not len(test.y):
            continue
        learned = joined(train)
        labels = {"op": op, "dtype": dtype, "from": {p: sms[p] for p in learned.devices}, "to": {target: sms[target]}}
        predictions.append(labels | {"errors": {mode: _errors(learned, test, mode) for mode in MODES}})
    return predictions


def _is(rows: LearningRows, op: str, dtype: str) -> np.ndarray:
    return ((rows.frame["op"] == op) & (rows.frame["dtype"] == dtype)).to_numpy()
