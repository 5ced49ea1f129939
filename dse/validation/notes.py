"""What the errors of a validation do not say: calibrations, operators outside of them, protocols, engines."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from dse.base.csv_table import notes_of_unit
from dse.base.errors import InputError
from dse.base.package_tables import read_table
from dse.measured.device_models import DeviceModel, Predictor
from dse.measured.layer_rows import LAYER_COLUMN
from dse.measured.network_runs.kinds import RUNS
from dse.measured.protocol import measured_boards
from dse.measured.quantisation_passes import ways
from dse.measured.row_shape import notes_of
from dse.measured.unit_check import far_rows
from dse.power.throttles import OPEN, YES
from dse.timing.calibration import MATRIX
from dse.validation.baselines import roofline_notes
from dse.validation.group_errors import of_no_release
from dse.workload.implementation import KINDS
from dse.workload.networks.names import network_of
from dse.workload.operators.expert_products import EXPERTS
from dse.workload.serving_engine import COSTS, SHARED, Engine, Fitted, engine_of, fitted_elsewhere

HOST = "whole networks: kernels at the sheet's clock, in the power limit, and what an engine's host adds"


def validation_notes(
    rows: pd.DataFrame,
    models: Mapping[str, DeviceModel],
    predictors: Sequence[Predictor],
    harness: str | None,
    engine: Engine | None,
    table_sha256: str,
) -> tuple[str, ...]:
    """Return the notes beside the predicted rows of a table; ``harness`` and ``engine`` that were given (None: by the
    rows' sources, by their notes)."""
    notes = []
    for predictor in predictors:
        mine = rows[rows["device"] == predictor.device]
        notes += _notes_of_device(mine, models[predictor.device], predictor) + _notes_of_limit(mine, predictor.device)
    whole = rows["op"].isin(RUNS)
    if whole.any() and engine is not None and engine.like:
        notes += _notes_of_own(rows[whole], models, engine, table_sha256)
    elif whole.any():
        notes += _notes_of_shipped(rows[whole])
    notes += _notes_of_quantised(rows[~whole]) if not whole.all() else []
    notes += roofline_notes(rows)
    layers = rows[rows[LAYER_COLUMN] != ""]
    if len(layers):
        ops = ", ".join(sorted(set(layers["op"])))
        notes.append(f"operators of a layer ({len(layers)} rows) stand under what they time: {ops}")
    if harness and whole.any():
        notes.append(
            f"--harness {harness} holds for the rows of kernels; runs of whole networks take an engine: "
            "--engine, else by their notes"
        )
    if not harness and not whole.all():
        notes.append(f"ways of measuring, by source: {', '.join(sorted(set(rows.loc[~whole, 'harness'])))}")
    return tuple(notes)


def _notes_of_device(rows: pd.DataFrame, used: DeviceModel, predictor: Predictor) -> list[str]:
    """Whose calibration was taken, and what it was not fitted to."""
    device = predictor.device
    calibration = f"calibration {predictor.calibration}" if used.calibration else predictor.calibration
    notes = [
        f"{device}: {predictor.gpu}, {predictor.model}, {calibration}",
        *_notes_of_boards(rows, device, used.sheet.name),
    ]
    if used.calibration is None:
        return notes
    part = rows[~rows["op"].isin(RUNS)]
    kinds = sorted(set(part[["implementation", "op", "dtype"]].itertuples(index=False, name=None)))
    if said := used.calibration.not_fitted_on(used.sheet):
        products = [f"{op} {dtype}" for name, op, dtype in kinds if name == MATRIX]
        notes.append(f"{device}: {said}" + (f": no interval of {', '.join(products)}" if products else ""))
        kinds = [kind for kind in kinds if kind[0] != MATRIX]
    for words, mine in part[part["widened_by"] != ""].groupby("widened_by"):
        notes.append(f"{device}: the interval of {len(mine)} rows is {words}")
    unnamed = part[of_no_release(part)]
    if len(unnamed):
        costs = ", ".join(sorted(set(unnamed["implementation"])))
        notes.append(f"{device}: {len(unnamed)} products name no release of a framework (impl=): costs of {costs}")
    mixtures = part[part["implementation"].map(lambda name: KINDS.get(str(name)) == EXPERTS).astype(bool)]
    for dtype, mine in mixtures.groupby("dtype"):
        costs = ", ".join(sorted(set(mine["implementation"])))
        notes.append(f"{device}: {len(mine)} mixtures in {dtype} have the costs of {costs}")
    bare = [f"{op} {dtype} of {name}" for name, op, dtype in kinds if not used.calibration.covers(name, op, dtype)]
    if bare:
        notes.append(f"{device}: uncalibrated: {', '.join(bare)} (the calibration was fitted on other rows)")
    if predictor.fitted_on_it and len(bare) < len(kinds):  # runs are judged by their engine
        notes.append(f"{device}: on rows that the calibration was fitted on, the error is partly a training error")
    return notes


def _notes_of_limit(rows: pd.DataFrame, device: str) -> list[str]:
    """In how many rows the board throttles at its power limit, and in how many that is open."""
    held, may = (int((rows["throttles"] == word).sum()) for word in (YES, OPEN))
    if not held + may:
        return []
    counts = f"the board throttles at its power limit in {held} of {len(rows)} rows, and in {may} that is open"
    return [f"{device}: {counts}: intervals hold both, where they are not of this GPU's own rows"]


def _notes_of_boards(rows: pd.DataFrame, device: str, preset: str) -> list[str]:
    """Which rows were measured on other boards than their table says."""
    sources = sorted(set(rows["source"].dropna().astype(str))) if "source" in rows else []
    own = {source: measured_boards().get((source, preset), {}) for source in sources}
    told = {source: ", ".join(f"{k} = {v:g}" for k, v in numbers.items()) for source, numbers in own.items() if numbers}
    return [f"{device}: rows of {source} are timed as of boards with {s}, not as named" for source, s in told.items()]


def _notes_of_quantised(kernels: pd.DataFrame) -> list[str]:
    """What was predicted with products whose activations are quantised in the same time."""
    kinds_of_rows = kernels[["harness", "dtype", "quantises"]].drop_duplicates()
    return [
        f"{row.dtype} products as {row.harness} times them: with {ways()[row.quantises].words}{_release(row.quantises)}"
        for row in kinds_of_rows.itertuples(index=False)
        if row.quantises
    ]


def _release(quantises: str) -> str:
    """Whose kernels quantise, in words, "" where they are those of static quantisation."""
    _, *release = quantises.split(", ")
    return f" (as {release[0]} does it)" if release else ""


def _fitted(engine: str) -> bool:
    """Whether any cost of a shipped engine is fitted to runs, not assumed."""
    rows = (row for row in read_table("engines/engines.csv") if row["engine"] == engine)
    return any(row["status"] == "fitted" and row["attribute"] in COSTS for row in rows)


def _ran(row: Any) -> str:
    """The engine that a run's own words tell, whichever predicted it."""
    return engine_of(notes_of(row), str(getattr(row, "source", "")), str(row.device)).name


def _notes_of_own(
    runs: pd.DataFrame, models: Mapping[str, DeviceModel], engine: Engine, table_sha256: str
) -> list[str]:
    """What the errors of whole networks under the engine of a TOML do not say: what it was fitted to, and where."""
    used = [models[device] for device in sorted(set(runs["device"]))]
    told = [_seen(runs, engine.fitted, table_sha256)]
    for one in used:
        told += fitted_elsewhere(engine, one.sheet.name, one.model.calibration)
    return [HOST, *(f"whole networks of {engine.name}: {words}" for words in dict.fromkeys(told))]


def _seen(runs: pd.DataFrame, fitted: Fitted, table_sha256: str) -> str:
    """Which of the runs a fit has seen."""
    if not fitted.tables:
        return "its file does not say to which runs it was fitted; on those, a training error"
    if any(table.endswith(table_sha256) for table in fitted.tables):
        return "it was fitted to runs of this table: on those, a training error"
    known = {_called(network) for network in fitted.networks}
    both = sorted({str(group) for group in runs["group"] if _called(str(group)) in known})
    names = ", ".join(table.partition(" ")[0] for table in fitted.tables)
    of = f", of {', '.join(both)} too" if both else ", of none of these networks"
    return f"it was fitted to another table ({names}){of}: no training error, unless runs of that stand here"


def _called(group: str) -> str:
    """The name of a group's network, or of a forward pass the group's own."""
    try:
        return network_of(group).name
    except InputError:
        return group


def _notes_of_shipped(runs: pd.DataFrame) -> list[str]:
    """What the errors of whole networks under shipped engines do not say: whose costs were taken."""
    names = sorted(set(runs["engine"]) - {SHARED})
    notes = [f"{HOST} ({', '.join(names)})" if names else HOST]
    its_own = runs[runs["engine"] == [_ran(row) for row in runs.itertuples()]]
    fitted = [name for name in names if _fitted(name) and (its_own["engine"] == name).any()]
    if fitted:
        which = "" if fitted == names else f" of {', '.join(fitted)}"
        count = int(its_own["engine"].isin(fitted).sum())
        of = "such runs" if count == int(runs["engine"].isin(fitted).sum()) else f"such runs as {count} of these are"
        notes[0] += f"; the host{which} is fitted to seven in ten of {of}: partly a training error"
    if (runs["engine"] == SHARED).any():
        notes.append(
            f"whole networks of an engine that no row's notes tell: the costs of {SHARED}, a mean of other "
            "engines'; 'dse calibrate engine' fits your own"
        )
    return notes


def notes_of_units(rows: pd.DataFrame) -> list[str]:
    """Return that times are in another unit, where most of kernels, or of runs, are far from what is predicted, or some
    are very far."""
    whole = rows["op"].isin(RUNS)
    return [*_of_unit(rows[~whole]), *(f"whole networks: {note}" for note in _of_unit(rows[whole]))]


def _of_unit(rows: pd.DataFrame) -> list[str]:
    if rows.empty:
        return []
    predicted = rows["predicted_us"].to_numpy()
    return notes_of_unit(float(np.median(predicted / rows["latency_us"]))) or far_rows(rows, predicted)
