"""One workload on one GPU, kernel by kernel: time and power."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import fsum, inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dse.base.brief import block, with_table
from dse.base.errors import expect, expect_one_of
from dse.base.quantity import Quantity
from dse.base.units import GIGA, MEGA
from dse.evaluate.by_workload import evaluation_of
from dse.evaluate.evaluation import WorkloadResult
from dse.evaluate.limit_ends import LimitEnds, limit_ends
from dse.evaluate.metric_error import MetricError, run_metric_errors, sheet_beyond
from dse.evaluate.refusals import expect_instructions, expect_kernels, expect_memory, expect_power
from dse.hardware.gpu import Gpu
from dse.hardware.presets import GpuSheet, sheet_of
from dse.hardware.prices import HourlyPrice, given_price, usd_per_million_tokens
from dse.power.models import PowerChoice, power_of
from dse.space.metrics import PRICED_METRICS, USD, WORKLOAD_METRICS
from dse.timing.models import TIMING_MODELS, default_model, timing_model
from dse.timing.timing import CAUSES, HOST, TimingModel
from dse.timing.traced.reading import read_workload
from dse.workload.operators.forms import is_nothing
from dse.workload.parse import FORMS
from dse.workload.target import Target
from dse.workload.workload import Workload

if TYPE_CHECKING:
    import pandas as pd  # imported where a table is asked for: it takes longer than a run's kernels

NOT_USED = "not used"
"""What a kernel is bound by that the form chosen on the design does not have."""


@dataclass(frozen=True)
class RunResult:
    """The answer for one design.

    ``rows``: one an operator, with times of 0 and bound by NOT_USED where the chosen form has it not: phase, name,
    class, shape, the chosen implementation, repeats, cycles and time of one launch [us] and of all repeats [ms] at the
    clock that the power limit leaves, share of the phase, achieved rate [TFLOP/s] and DRAM bandwidth [GB/s], board
    power if nothing limited it [W], the cause that costs most, and the stack [ms]. ``watts``: mean board power of each
    phase by component [W]. ``metrics``: TTFT, time between tokens, tokens/s, energy, dollars for a million tokens at
    :attr:`price` ... by name, each with its unit. ``waits``: how long the GPU waits for the host in each phase [ms], of
    those that a serving engine runs; the shares of the kernels then leave
    that out of 1. ``limit_ends``: what the error of the watts makes of the power limit (None: none holds).
    """

    gpu: GpuSheet
    workload: Workload
    model: TimingModel
    power: PowerChoice
    rows: Sequence[Mapping[str, Any]] = field(repr=False)
    watts: dict[str, dict[str, float]]
    metrics: dict[str, Quantity]
    waits: dict[str, float] = field(default_factory=dict)
    limit_ends: LimitEnds | None = None

    def __repr__(self) -> str:
        return block(
            self,
            f"{self.workload.description} on {self.gpu.title}",
            ", ".join(f"{name}={value:.4g}" for name, (value, _) in self.metrics.items()),
            f"{len(self.rows)} kernels; timing model {type(self.model).__name__}, calibration {self.calibration}",
        )

    def _repr_html_(self) -> str:
        return with_table(self, self.kernels)

    @cached_property
    def kernels(self) -> "pd.DataFrame":
        """The kernels, a row an operator: a table of :attr:`rows`."""
        import pandas as pd

        return pd.DataFrame(self.rows)

    def to_frame(self) -> "pd.DataFrame":
        """Return :attr:`kernels`."""
        return self.kernels

    def rows_of(self, phase: str) -> list[Mapping[str, Any]]:
        """Return the rows of a phase."""
        return [row for row in self.rows if row["phase"] == phase]

    @property
    def calibration(self) -> str:
        """Name of the timing model's calibration, or "uncalibrated"."""
        return self.model.calibration

    def stack(self, phase: str) -> dict[str, float]:
        """Return the stack of a phase [ms], causes that cost nothing left out; InputError where it is none of them."""
        expect_one_of("phase", phase, [p.name for p in self.workload.phases])
        rows = self.rows_of(phase)
        sums = {cause: fsum(row[f"{cause}_ms"] for row in rows) for cause in CAUSES}
        sums |= {HOST: self.waits[phase]} if phase in self.waits else {}
        return {cause: value for cause, value in sums.items() if value > 0}

    def metric_error(self, metric: str) -> MetricError:
        """Return how far a metric can be trusted; no board that is held to its limit draws more, whatever the error.

        Raises InputError where ``metric`` is none of ``metrics``.
        """
        expect_one_of("metric", metric, self.metrics)
        return self._metric_errors[metric]

    @cached_property
    def _metric_errors(self) -> dict[str, MetricError]:
        most = max(self.gpu.numbers()["tdp_w"] / self.metrics["power_w"][0], 1.0) if self.power.limit else inf
        power, ends = self.power.model, self.limit_ends
        return run_metric_errors(self.metrics, self.workload, self.model, power, self.gpu, most, ends)

    @property
    def price(self) -> HourlyPrice | None:
        """Price of the GPU's hour, which the dollars rest on; None of a workload without tokens."""
        return self.gpu.hourly_price if self.workload.tokens else None

    @property
    def throttles(self) -> str | None:
        """Whether the board throttles: yes, no, or open where the error of its watts leaves both; None without a
        limit."""
        return None if self.limit_ends is None else str(self.limit_ends.throttles[0])

    @property
    def extrapolated(self) -> list[str]:
        """What of the GPU lies outside those that the interval of its times rests on (none where it has none)."""
        known = self.metric_error("time_ms").error_interval
        return sheet_beyond(self.gpu, known) if known else []

    def summary(self) -> dict[str, Any]:
        """Return the JSON document of ``dse run --json``.

        ``interval_80`` is None where no calibration gives one; ``interval_80_of`` says what of the metric it is of,
        None for all of it. ``throttles``: :attr:`throttles`. ``price``: what the dollars rest on, None of a workload
        without tokens.
        """
        metrics = {
            name: {
                **quantity.document(),
                "interval_80": self.metric_error(name).interval(quantity.value),
                "interval_80_of": self.metric_error(name).scope or None,
            }
            for name, quantity in self.metrics.items()
        }
        return {
            "gpu": self.gpu.name,
            "title": self.gpu.title,
            "workload": self.workload.description,
            "calibration": self.calibration,
            "extrapolated": self.extrapolated,
            "throttles": self.throttles,
            "metrics": metrics,
            "price": self.price.document() if self.price else None,
            "stack_ms": {phase.name: self.stack(phase.name) for phase in self.workload.phases},
            "power_calibration": self.power.model.calibration,
            "power_w": self.watts,
            "kernels": list(map(dict, self.rows)),
        }


def run(
    gpu: str | Path | Gpu | GpuSheet,
    workload: str | Workload,
    model: str | dict[str, Any] | TimingModel | None = None,
    power: str | PowerChoice | None = None,
    price: float | None = None,
) -> RunResult:
    """Return time and power of one workload on one GPU (names, paths or records); InputError where it cannot run.

    ``model``: a timing model, its name, or a table as a space's ``timing``, by default the GPU's
    (:func:`dse.timing.models.default_model`); ``power``: a choice of a power model, or its name, "board" by default. A
    workload that is given by its text runs the kernels of the library that the model was fitted with; a record those
    that it was made with (:func:`dse.workload.parse.load_workload`). ``price`` of the GPU's hour [USD]: by default its
    file's, a list's, or an assumed one (:attr:`dse.hardware.presets.GpuSheet.hourly_price`).
    """
    sheet = sheet_of(gpu)
    sheet = sheet if price is None else replace(sheet, price=given_price(price, sheet.name))
    model = model_of(model, workload, sheet)
    power = power_of(power)
    if not isinstance(workload, Workload):
        workload = _load(workload, sheet, model)
    expect_memory(sheet, workload)
    expect_instructions(sheet, workload)
    evaluation = evaluation_of(workload, model, power)
    result = evaluation.on_gpu(sheet.record())
    expect_kernels(sheet, workload, result.timing)
    expect_power(sheet, workload, result.phases, power)
    waits = {p.name: result.waits(p.name, 0) / MEGA for p in workload.phases if HOST in result.phases[p.name].stack}
    rows = _with_shares([_row(result, k) for k in range(len(workload.operators))], waits)
    watts = {
        name: {component: float(value[0]) for component, value in phase.power.breakdown().items()}
        for name, phase in result.phases.items()
    }
    ends = limit_ends(evaluation, result, power)
    return RunResult(sheet, workload, model, power, rows, watts, _metrics(result, sheet), waits, ends)


def model_of(
    model: str | dict[str, Any] | TimingModel | None, workload: str | Workload, *sheets: GpuSheet
) -> TimingModel:
    """Return the timing model for GPUs: as given, by its name, or by default; InputError where it or the workload is
    none."""
    expect("workload", workload, str | Path | Workload, f"{FORMS}, or a loaded workload")
    if isinstance(model, str | dict):
        return timing_model(model, "model")
    remedy = f"give one of {', '.join(TIMING_MODELS)}, or a model as dse.Amali()"
    expect("model", model, TimingModel | None, remedy)
    return model or default_model(sheets, workload)


def _load(workload: str, sheet: GpuSheet, model: TimingModel) -> Workload:
    numbers = [sheet.numbers()]
    return read_workload(workload, Target.of(numbers, model.library), lambda: numbers, [sheet])


def _row(result: WorkloadResult, k: int) -> dict[str, Any]:
    """Return launch ``k`` at the clock that its phase is left."""
    operator, us = result.workload.operators[k], result.stack(0, k)
    total, ran = sum(us.values()), result.workload.candidate(k, result.chosen[0, k])
    row = {
        "phase": operator.phase,
        "kernel": operator.name,
        "class": operator.kind,
        "shape": operator.shape,
        "implementation": ran.label,
        "repeats": operator.repeats,
        "cycles": float(result.settled.cycles[0, k]),
        "share": 0.0,  # known when the rows of all kernels are
        "time_us": total,
        "time_ms": total * operator.repeats / 1e3,
        "tflops": 2 * float(ran.kernel.fma) / total * 1e-6,
        "dram_gbs": float(result.timing.dram_bytes[0, k]) / total * 1e-3,
        "power_w": float(result.power.watts[0, k]),
        "bound_by": result.bound_by(0, k),
        **{f"{cause}_ms": value * operator.repeats / 1e3 for cause, value in us.items()},
    }
    return row | dict.fromkeys(_measured(row), 0.0) | {"bound_by": NOT_USED} if is_nothing(ran) else row


def _with_shares(rows: Sequence[dict[str, Any]], waits: Mapping[str, float]) -> list[dict[str, Any]]:
    """Return the rows with the share that each has of its phase, waits included."""
    phases = {row["phase"] for row in rows}
    whole = {name: fsum(r["time_ms"] for r in rows if r["phase"] == name) + waits.get(name, 0.0) for name in phases}
    return [row | {"share": row["time_ms"] / whole[row["phase"]]} for row in rows]


def _measured(row: dict[str, Any]) -> list[str]:
    """What of a row a kernel that is not used has none of."""
    return [key for key, value in row.items() if isinstance(value, float) and key != "repeats"]


def _metrics(result: WorkloadResult, sheet: GpuSheet) -> dict[str, Quantity]:
    values, workload = {name: float(value[0]) for name, value in result.metrics.items()}, result.workload
    if workload.tokens:
        values[USD] = usd_per_million_tokens(sheet.hourly_price.usd, workload.gpus, values["tokens_per_s"])
    if workload.memory.total:
        values["memory_gb"] = workload.memory.total / GIGA
    units = WORKLOAD_METRICS | PRICED_METRICS
    return {name: Quantity(value, units[name][0]) for name, value in values.items()}
