"""A power model against a measured table: answers by device and operator, long and short runs apart."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dse.base.brief import count_of
from dse.base.errors import InputError, accepted
from dse.base.skipped_rows import Skipped, counted, why_skipped
from dse.measured.board_watts import SETTLED_US, watts_of
from dse.measured.compound.quantised_product import is_quantised
from dse.measured.compound.rows import COMPOUND
from dse.measured.compound.watts import compound_watts
from dse.measured.coverage import uncovered
from dse.measured.device_models import device_models, device_names, power_limits
from dse.measured.network_runs.kinds import RUNS
from dse.measured.network_runs.power import run_watts
from dse.measured.power_rows import ALIKE, UNFILLED, UNFILLED_ZEROS, load_rows
from dse.measured.protocol import LATENT_DECODES
from dse.measured.row_shape import ATTENTION, ENCODER, LATENT, PRODUCTS, notes_of_masks
from dse.measured.table import OperatorTable, notes_of_gpus, read_operators, tensor_parallel
from dse.power.board import BoardPower

OPERATORS = ("gemm", *ATTENTION, ENCODER)
DTYPES = ("bf16", "fp16")
"""What the board's power was fitted to: rows of another kind are skipped, and counted."""

NOT_FITTED = "the board's power was not fitted to "

POWERED = (*PRODUCTS, *ATTENTION, ENCODER, *LATENT, *COMPOUND)
"""Kernels whose watts are compared, in all their types."""

NOT_PREDICTED = "board power is not compared for "

FITTED_ON = ("h200", "b200", "a100_pcie_40gb", "a10")
SEEN = (
    "The shipped coefficients were fitted to kernels of H200 and B200 and to passes of A100 PCIe and A10: on rows of "
    "those boards the error is partly a training error (left-out errors: experiments/006_board_power)."
)
OWN_FIT = (
    "Coefficients of a file: on rows that they were fitted to the error is a training error; what its fit left out "
    "stands in the file."
)
OF_RUNS = (
    "Runs of whole networks: the mean over kernels and waits for the host, kernels by the GPU's timing calibration; "
    "what a board draws between kernels is fitted to such runs of A100s and an H100, their kernels are not "
    "(experiments/019_whole_networks)."
)
OF_UNFILLED = f"{UNFILLED_ZEROS:.0%} of their products are taken for products of zeros (experiments/006_board_power)"

OF_ALIKE = (
    "one number in weights, activations and cache: their products are taken for products of zeros, their bytes "
    "for those of others (experiments/006_board_power)"
)

PEAK = "peak for prefill"
"""Words in the notes of rows whose power is a prefill's peak."""

TIMES = {"measured": "the measured latency: the power model alone", "model": "the timing model's own time"}


def validate_power(
    table: Path, time: str = "measured", model: BoardPower | None = None, gpu: str | None = None
) -> dict[str, Any]:
    """Return the errors of a power model on a measured table, by device and operator, as a document.

    ``kinds``: the same by data type and ``operands`` (:mod:`dse.measured.power_rows`), too.

    ``power_mape`` is the mean |predicted / measured - 1| [%], ``power_bias`` the mean of predicted / measured - 1 [%].
    ``gpu`` as for :func:`~dse.measured.device_models.device_models`. Rows that the model does not cover are counted by
    reason. Raises InputError when no row is left.
    """
    if time not in TIMES:
        raise InputError(f"--time: no time is called {time!r}; {accepted(time, TIMES)}")
    measured = read_operators(table)
    shipped, model = model is None, model or BoardPower.from_table()
    predicted_rows, skipped = compared(measured, time, model, gpu)
    notes = [SEEN] if shipped and predicted_rows["gpu"].isin(FITTED_ON).any() else []
    notes += [] if shipped else [OWN_FIT]
    notes += _notes_of_kernels(predicted_rows, shipped)
    notes += _notes_of_runs(predicted_rows[predicted_rows["op"].isin(RUNS)])
    notes += [f"{note}." for note in (*notes_of_masks(predicted_rows), *notes_of_gpus(measured))]
    long = predicted_rows["latency_us"] >= SETTLED_US
    return {
        "table": measured.path,
        "table_sha256": measured.sha256,
        "quantity": "power",
        "calibration": model.calibration,
        "time": TIMES[time],
        "short_us": SETTLED_US,
        **_errors(predicted_rows[long]),
        "short": _errors(predicted_rows[~long]),
        "note": " ".join(notes),
        "skipped": [{"reason": reason, "n": n} for reason, n in skipped.items()],
    }


def compared(
    measured: OperatorTable, time: str, model: BoardPower, gpu: str | None = None
) -> tuple[pd.DataFrame, Skipped]:
    """Return the rows that the model covers with their ``gpu``, ``operands`` and ``predicted_w``, and how many others
    there are, by reason."""
    frame = measured.frame.assign(tp=tensor_parallel(measured), device=device_names(measured.frame))
    models, unknown = device_models(frame, gpu=gpu)
    reason = uncovered(frame, unknown, power_limits(models))
    reason = reason.where((reason != "") | frame["op"].isin((*POWERED, *RUNS)), NOT_PREDICTED + frame["op"].astype(str))
    skipped = measured.skipped + counted(reason)
    covered, parts = frame[reason == ""], []
    runs = covered["op"].isin(RUNS)
    for device, group in covered[~runs].groupby("device", sort=True):
        used = models[str(device)]
        several = group["op"].isin(COMPOUND) | pd.Series(map(is_quantised, group.itertuples()), group.index, dtype=bool)
        rows = load_rows(group[~several], used.sheet, skipped, used.model)
        if rows is not None:
            parts.append(rows.table.assign(predicted_w=watts_of(model, rows, own_time=time == "model")))
        parts += compound_watts(group[several], used, model, time == "model", skipped)
    if runs.any():
        parts.append(run_watts(covered[runs], models, model, time == "model", skipped).assign(operands=""))
    if not sum(map(len, parts)):
        raise InputError(f"{measured.path}: no row can be compared: {why_skipped(skipped)}")
    predicted_rows = pd.concat(parts, ignore_index=True)
    return predicted_rows.assign(gpu=[models[str(device)].sheet.name for device in predicted_rows["device"]]), skipped


def without_power(frame: pd.DataFrame, unknown: Mapping[str, str], limits: Mapping[str, float]) -> pd.Series:
    """Return why no fit takes the power of each row, "" where one does: kernels of the fit, and runs of them.

    ``frame``, ``unknown`` and ``limits`` as for :func:`dse.measured.coverage.uncovered`.
    """
    reason, op = uncovered(frame, unknown, limits, fits=True), frame["op"].astype(str)
    other = ~op.isin((*OPERATORS, *RUNS))
    wide = ~other & ~op.isin(RUNS) & ~frame["dtype"].isin(DTYPES)  # run_watts says what a run lacks
    reason = reason.where((reason != "") | ~other, NOT_FITTED + op)
    return reason.where((reason != "") | ~wide, NOT_FITTED + op + " in " + frame["dtype"].astype(str))


def _notes_of_kernels(rows: pd.DataFrame, shipped: bool) -> list[str]:
    """What kernels were taken for whose kind no fit has seen, or whose operands are not known."""
    notes = []
    kernels = rows[~rows["op"].isin(RUNS)]
    other = kernels[~(kernels["op"].isin(OPERATORS) & kernels["dtype"].isin(DTYPES))]
    if shipped and len(other):
        kinds = sorted({f"{op} in {dtype}" for op, dtype in zip(other["op"], other["dtype"], strict=True)})
        stand_in = "energies of 16 bits, by bits and bytes, stand for them."
        notes.append(f"No fit of watts has seen {', '.join(kinds)}: {stand_in}")
    unfilled = kernels[kernels["operands"] == UNFILLED]
    if len(unfilled):
        decodes = int(unfilled["op"].isin(LATENT_DECODES).sum())
        counts = {"prefill": len(unfilled) - decodes, "decode": decodes}
        who = " and ".join(count_of(n, name) for name, n in counts.items() if n)
        notes.append(f"{who} read keys and values that nobody wrote: {OF_UNFILLED}.")
    if alike := int((kernels["operands"] == ALIKE).sum()):
        notes.append(f"{count_of(alike, 'module')} ran with {OF_ALIKE}.")
    return notes


def _notes_of_runs(runs: pd.DataFrame) -> list[str]:
    """What the errors of runs of whole networks do not say."""
    if runs.empty:
        return []
    notes = [OF_RUNS]
    if (runs["notes"].map(_words).str.contains(PEAK) & (runs["op"] == "llm_prefill")).any():
        notes.append("Power of prefills is a peak in these rows, by their notes; a mean is predicted.")
    return notes


def _words(cell: Any) -> str:
    return cell if isinstance(cell, str) else ""


def _errors(rows: pd.DataFrame) -> dict[str, Any]:
    """The scores of rows by device and operator, by data type and operands too, and of all."""
    kinds = _answers(rows, ("device", "op", "dtype", "operands"))
    return {"device": _answers(rows), "kinds": kinds, "all": _scores(rows)}


def _answers(predicted_rows: pd.DataFrame, by: tuple[str, ...] = ("device", "op")) -> list[dict[str, Any]]:
    return [
        dict(zip(by, key, strict=True)) | _scores(group) for key, group in predicted_rows.groupby(list(by), sort=True)
    ]


def _scores(rows: pd.DataFrame) -> dict[str, Any]:
    """Count and errors; no error where there is no row."""
    if rows.empty:
        return {"n": 0}
    error = 100 * (rows["predicted_w"] / rows["power_w"] - 1).to_numpy()
    return {"n": len(rows), "power_mape": float(np.mean(np.abs(error))), "power_bias": float(np.mean(error))}
