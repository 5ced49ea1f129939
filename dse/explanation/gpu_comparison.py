"""Several GPUs on one workload, over the values of one of its settings: times, energy, dollars, and how sure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from dse.base.brief import block, with_table
from dse.base.drawn import Drawn
from dse.base.errors import InputError, expect, listed
from dse.comparison.run_ratios import run_ratio_errors
from dse.evaluate.run import RunResult, model_of, run
from dse.explanation.comparison_limits import broken, read_limits
from dse.explanation.explain import records
from dse.hardware.gpu import Gpu
from dse.hardware.presets import GpuSheet, sheet_of
from dse.hardware.prices import HourlyPrice, given_price
from dse.power.models import PowerChoice, power_of
from dse.space.metrics import USD
from dse.timing.timing import TimingModel
from dse.workload.parse import load_workload, with_setting

METRICS = ("ttft_ms", "tbt_ms", "time_ms", "tokens_per_s", "tokens_per_joule", "power_w", USD)
"""Metrics of a row, those that the workload has."""


@dataclass(frozen=True)
class GpuComparison(Drawn):
    """GPUs side by side on one workload.

    ``table``: a row a GPU and value: gpu, title, value of ``axis`` ("" without), reason where it cannot run, METRICS as
    far as the workload has them, usd_per_hour, and against the first GPU at the same value: ``ratio``
    of ``compared`` [1], where 80 % of measured ratios lie (ratio_low, ratio_high), probability_better, and ``unknown``,
    why there is no interval ("" where there is). ``beyond``: the first of ``limits`` that a row breaks, "" for none.
    """

    workload: str
    axis: str
    compared: str
    gpus: tuple[GpuSheet, ...]
    prices: Mapping[str, HourlyPrice]
    calibration: str
    table: pd.DataFrame
    notes: tuple[str, ...]
    limits: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return block(self, f"{', '.join(gpu.name for gpu in self.gpus)} on {self.workload}")

    def _repr_html_(self) -> str:
        return with_table(self, self.table)

    def to_frame(self) -> pd.DataFrame:
        """Return the table, a row a GPU and value of the axis."""
        return self.table

    def document(self) -> dict[str, Any]:
        """Return the JSON document of ``dse compare``."""
        prices = {name: price.document() for name, price in self.prices.items()}
        return {
            "workload": self.workload,
            "axis": self.axis or None,
            "compared": self.compared,
            "gpus": [gpu.name for gpu in self.gpus],
            "prices": prices,
            "calibration": self.calibration,
            "limits": list(self.limits),
            "rows": records(self.table),
            "notes": list(self.notes),
        }


def compare_gpus(
    gpus: Sequence[str | Path | Gpu | GpuSheet],
    workload: str,
    axis: str = "",
    values: Sequence[str | float] = (),
    model: str | TimingModel | None = None,
    power: str | PowerChoice | None = None,
    prices: Mapping[str, float] | None = None,
    limits: Sequence[str] = (),
) -> GpuComparison:
    """Return GPUs (names, paths or records) on a workload, given by its text, over ``values`` of its key ``axis``.

    One timing model for all: as given, or by default the one that was fitted to all measured GPUs. ``prices``: GPU ->
    price of its hour [USD], in place of the lists in dse/data/prices/hourly.csv. ``limits``: conditions on METRICS, as
    "tbt_ms <= 40"; a row beyond one is told, and no best. A GPU that cannot run has a row with its reason. Raises
    InputError where the workload, a GPU or a limit is wrong, or no GPU can run it.
    """
    expect("prices", prices, Mapping | None, "give the price of an hour by GPU, as {'h100_sxm': 2.5}")
    limits = listed("limits", limits, "give a list of conditions, as ['tbt_ms <= 40']")
    conditions = read_limits(limits, (*METRICS, "usd_per_hour"))
    sheets = _priced(
        [sheet_of(gpu) for gpu in listed("gpus", gpus, "give a list, as ['h100_sxm', 'h200']")], prices or {}
    )
    _refuse_count(sheets)
    texts = _texts(workload, axis, listed("values", values, "give a list, as [1, 8, 64]"))
    timing, watts = model_of(model, workload, *sheets), power_of(power)
    rows, ran = [], []
    for value, text in texts.items():
        first: RunResult | None = None
        for number, sheet in enumerate(sheets):
            try:
                result = run(sheet, text, timing, watts)
            except InputError as error:
                rows.append({"gpu": sheet.name, "title": sheet.title, "value": value, "reason": str(error)})
                if number == 0 and axis:
                    load_workload(text)  # a value that is wrong for any GPU is refused before others are timed
                continue
            first = result if number == 0 else first
            ran.append(result)
            rows.append(_row(sheet, value, result, first))
            if first is None:
                rows[-1]["unknown"] = f"{sheets[0].name}, which they are compared to, cannot run it"
    if not ran:
        raise InputError(f"no GPU can run the workload: {rows[0]['reason']}")
    for row in rows:
        row["beyond"] = "" if row["reason"] else broken(conditions, row)
    return GpuComparison(
        ran[0].workload.description if not axis else workload,
        axis,
        compared_metric(ran[0]),
        sheets,
        {sheet.name: sheet.hourly_price for sheet in sheets},
        timing.calibration,
        _table(rows, ran[0]),
        (*_notes(ran, sheets), *_unsure(rows)),
        tuple(limits),
    )


def compared_metric(result: RunResult) -> str:
    """Return the metric of a workload whose ratio is told: tokens a second, else its time."""
    return "tokens_per_s" if "tokens_per_s" in result.metrics else "time_ms"


def _texts(workload: str, axis: str, values: Sequence[Any]) -> dict[str, str]:
    """The workload's text at each value of an axis, by the value; the text itself, by "", without an axis."""
    expect("axis", axis, str, "give a key of the workload, as 'batch'")
    if bool(axis) != bool(values):
        raise InputError(f"axis = {axis!r}, values = {list(values)}: give both, as 'batch' and [1, 8, 64], or neither")
    if axis:
        expect("workload", workload, str, "give its text, as 'llama3_8b:phase=decode', where a setting varies")
    return {str(value): with_setting(workload, axis, str(value)) for value in values} if axis else {"": workload}


def _refuse_count(sheets: Sequence[GpuSheet]) -> None:
    if not sheets:
        raise InputError("gpus = [] is not accepted; give one GPU at least")
    names = [sheet.name for sheet in sheets]
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice:
        raise InputError(f"{twice[0]} is given twice; give each GPU once")


def _priced(sheets: Sequence[GpuSheet], given: Mapping[str, float]) -> tuple[GpuSheet, ...]:
    """GPUs with the prices given in place of their own."""
    names = [sheet.name for sheet in sheets]
    for name in given:
        if name not in names:
            raise InputError(f"price of {name}: is none of the GPUs compared; give one of {', '.join(names)}")
    prices = {name: given_price(usd, name) for name, usd in given.items()}
    return tuple(replace(sheet, price=prices.get(sheet.name, sheet.price)) for sheet in sheets)


def _row(sheet: GpuSheet, value: str, result: RunResult, first: RunResult | None) -> dict[str, Any]:
    numbers = {name: result.metrics[name][0] for name in METRICS if name in result.metrics}
    row: dict[str, Any] = {"gpu": sheet.name, "title": sheet.title, "value": value, "reason": "", **numbers}
    row["usd_per_hour"] = sheet.hourly_price.usd
    if first is not None and first is not result:
        row |= _ratio(first, result)
    return row


def _ratio(first: RunResult, second: RunResult) -> dict[str, Any]:
    metric = compared_metric(second)
    errors = run_ratio_errors(metric, first, second)
    span, better = errors.ratio_interval(0, 1), errors.probability_better(0, 1)
    return {
        "ratio": second.metrics[metric][0] / first.metrics[metric][0],
        "ratio_low": None if span is None else span[0],
        "ratio_high": None if span is None else span[1],
        "probability_better": None if better is None else float(better),
        "unknown": errors.reason,
    }


def _table(rows: Sequence[Mapping[str, Any]], result: RunResult) -> pd.DataFrame:
    metrics = [name for name in METRICS if name in result.metrics]
    columns = ["gpu", "title", "value", "reason", *metrics, "usd_per_hour"]
    compared = ["ratio", "ratio_low", "ratio_high", "probability_better", "unknown", "beyond"]
    return pd.DataFrame(list(rows)).reindex(columns=[*columns, *compared]).fillna({"unknown": ""})


def _unsure(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Why there is no ratio, or none with an interval: each reason once with its GPUs."""
    found: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        if row.get("unknown"):
            what = "interval for the ratio" if "ratio" in row else "ratio"
            found.setdefault((what, row["unknown"]), []).append(row["gpu"])
    return [f"No {what} of {', '.join(dict.fromkeys(gpus))}: {why}." for (what, why), gpus in found.items()]


def _notes(ran: Sequence[RunResult], sheets: Sequence[GpuSheet]) -> list[str]:
    prices = {sheet.name: sheet.hourly_price for sheet in sheets}
    lists = ", ".join(f"{name} {price}" for name, price in prices.items())
    notes = [f"Dollars an hour of a GPU: {lists}; the GPU never waits for requests."]
    without = [name for name, price in prices.items() if price.assumed]
    if without:
        notes.append(f"No list has a price of {', '.join(without)}: it is assumed; give --price {without[0]}=USD.")
    static = next((result.workload.static_batch for result in ran if result.workload.static_batch), "")
    return notes + ([f"{static[0].upper()}{static[1:]}."] if static else [])
