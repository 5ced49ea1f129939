"""``dse calibrate engine``: what a serving engine's host adds to kernels, from measured runs, with provenance."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from dse.calibrate.engine_fit import Runs, fits, measured_runs
from dse.calibrate.measured import OperatorTable, notes_of_gpus, read_times
from dse.calibrate.residuals import quantiles
from dse.calibrate.timing import FAR_OFF
from dse.csv_table import OTHER_UNIT
from dse.errors import InputError
from dse.skipped import Skipped, why_skipped
from dse.toml_text import pairs
from dse.workload.engine import COSTS, FORMAT, SHARED, Engine, find_engine

FEWEST = 8
"""Runs that a fit needs at least."""

NOTHING = 1e-6
"""A cost below this is none: the fit ends near 0, never at it."""

DRAWS = 100
"""Bootstrap draws of the families behind the intervals of costs."""


@dataclass(frozen=True)
class Cost:
    """One cost of an engine: its ``value`` with the ends of its 95 % interval, or why the runs do not tell it."""

    name: str
    value: float
    unit: str
    low: float
    high: float
    held: str = ""


FEW_NAMES = 3
"""Networks that a title names, beyond which it counts them."""


@dataclass(frozen=True)
class EngineAnswer:
    """A fitted engine: its costs, and errors [%] of kernels alone, of fitted runs and of those left out (None: none).

    ``alone_left_out``: of kernels alone on the runs left out. ``low``, ``high``: the log errors that 80 % of the
    left-out runs lie between (of all runs where none was left out). ``notes``: what the runs did not say.
    """

    name: str
    like: Engine
    tables: tuple[OperatorTable, ...]
    rows: int
    rows_left_out: int
    costs: tuple[Cost, ...]
    kernels_alone: float
    fitted: float
    left_out: float | None
    alone_left_out: float | None
    low: float
    high: float
    skipped: Skipped
    networks: tuple[str, ...]
    devices: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """What the engine is called where its interval is told: with the networks it knows."""
        few = len(self.networks) <= FEW_NAMES
        of = ", ".join(self.networks) if few else f"{len(self.networks)} networks"
        return f"{self.name}, fitted to {self.rows} runs of {of}"

    @property
    def warnings(self) -> tuple[str, ...]:
        """What speaks against taking the engine: that the kernels alone come nearer to the runs that judge it."""
        off, alone, runs = self.left_out, self.alone_left_out, f"{self.rows_left_out} runs left out"
        if off is None or alone is None:
            off, alone, runs = self.fitted, self.kernels_alone, f"{self.rows} runs that it was fitted to"
        if off <= alone:
            return ()
        told = f"on the {runs} the engine is {off:.1f} % off, the kernels alone {alone:.1f} %"
        return (f"{told}: these costs do not carry over to other runs, do not take them",)

    def document(self) -> dict[str, Any]:
        """Return the JSON document of ``dse calibrate engine --json``."""
        return {
            "name": self.name, "like": self.like.name, "rows": self.rows, "rows_left_out": self.rows_left_out,
            "tables": [{"name": Path(t.path).name, "sha256": t.sha256} for t in self.tables],
            "costs": [{"name": c.name, "value": c.value, "unit": c.unit, "low": c.low, "high": c.high,
                       "determined": not c.held, "note": c.held} for c in self.costs],
            "mape": {"kernels_alone": self.kernels_alone, "fitted": self.fitted, "left_out": self.left_out,
                     "kernels_alone_left_out": self.alone_left_out},
            "warnings": list(self.warnings), "notes": list(self.notes), "interval_80": [self.low, self.high],
            "rows_skipped": self.skipped,
        }  # fmt: skip

    def write(self, path: Path) -> None:
        """Write the engine as TOML: a workload's ``engine=`` takes its path."""
        head = {
            "format": FORMAT, "engine": self.name, "title": self.title,
            "like": self.like.like or self.like.name,  # a shipped one: the file stands by itself
            "date": datetime.now(UTC).date().isoformat(), "rows": self.rows,
            "rows_left_out": self.rows_left_out, "networks": list(self.networks), "devices": list(self.devices),
            "tables": [f"{Path(t.path).name} {t.sha256}" for t in self.tables],
        }  # fmt: skip
        numbers = {c.name: c.value for c in self.costs} | {"low": self.low, "high": self.high}
        lines = [*pairs(head), *pairs(numbers, 6)]
        Path(path).write_text("\n".join(lines) + "\n", encoding="utf-8")


def calibrate_engine(
    name: str, tables: Sequence[Path], like: str = SHARED, eager: bool = False, gpu: str | None = None,
    calibration: str | None = None,
) -> EngineAnswer:  # fmt: skip
    """Fit the costs of an engine to the runs of whole networks in measured tables.

    ``like``: the engine whose kernel libraries ran, and whose costs stand in for what the runs do not tell; ``eager``:
    launches are not replayed as a graph, so that their host time is fitted too. ``gpu``: a preset or TOML for devices
    without a preset, or for all where every device has one; ``calibration`` of the kernels: None takes the device's
    shipped one, else ``shared``. Families of network and GPUs a layer are left out where there are enough to judge the
    fit. Raises InputError with fewer than FEWEST runs.
    """
    if not name.strip():
        raise InputError("NAME: '' is no name; give the engine's, as vllm_2025")
    if not tables:
        raise InputError("TABLE: none is given; give one or more CSVs of measured runs after the engine's name")
    base, skipped = find_engine(like, "--like"), Skipped()
    read = tuple(read_times(Path(table)) for table in tables)
    notes = tuple(f"{Path(table.path).name}: {note}" for table in read for note in notes_of_gpus(table))
    runs = Runs(part for table in read for part in measured_runs(table, skipped, base, gpu, calibration))
    if len(runs.table) < FEWEST:
        others = "; ".join((why_skipped(skipped) or "none", *notes))
        raise InputError(f"{', '.join(map(str, tables))}: {len(runs.table)} runs of whole networks can be fitted, "
                         f"{FEWEST} are needed; others: {others}")  # fmt: skip
    out = runs.table["out"].to_numpy()
    every = np.ones(len(out), bool)
    seen = ~out if 0 < out.sum() <= len(out) / 2 else every
    held = _held(runs, seen, eager)
    costs = _costs(runs, seen, base, held)
    values = {c.name: c.value for c in costs}
    some, kernels = bool((~seen).any()), {"turn": base.turn}
    _refuse_other_unit(runs.error(seen, values), runs.error(every, kernels))
    judging = ~seen if some else every
    judged = runs.error(judging, values)
    low, _, high = quantiles(judged, runs.table["family"][judging])
    left_out, alone = (_percent(judged), _percent(runs.error(judging, kernels))) if some else (None, None)
    return EngineAnswer(
        name, base, read, int(seen.sum()), int((~seen).sum()), costs, _percent(runs.error(every, kernels)),
        _percent(runs.error(seen, values)), left_out, alone, low, high, skipped,
        *(tuple(sorted(set(runs.table[column].astype(str)))) for column in ("group", "device")),
        notes=notes,
    )  # fmt: skip


def _refuse_other_unit(fitted: np.ndarray, alone: np.ndarray) -> None:
    """Refuse runs that are far shorter than their kernels, or so long that no host explains it; log errors (runs,)."""
    short, long = float(np.exp(np.median(fitted))), float(np.exp(np.median(alone)))
    if short > FAR_OFF or long < 1 / OTHER_UNIT:
        told = f"fitted, {short:.3g}" if short > FAR_OFF else f"of the kernels alone, {long:.3g}"
        raise InputError(
            f"calibrate engine: the median of predicted over measured times is, {told}: is latency_us in microseconds, "
            "and are the runs of this GPU and network?"
        )


def _percent(error: np.ndarray) -> float:
    return float(100 * np.mean(np.abs(np.expm1(error))))


def _held(runs: Runs, seen: np.ndarray, eager: bool) -> dict[str, str]:
    """Costs that the fitted runs do not tell, and why."""
    passes, served = runs.passes(seen), set(runs.table["op"][seen])

    def one(values: np.ndarray) -> bool:
        return len(np.unique(values)) < 2

    reasons = {
        "launch_us": "" if eager else "launches are replayed as a graph (else: --eager)",
        "request_us": "every step decodes as many requests" if one(passes.requests[passes.prompts == 0]) else "",
        "prompt_us": "" if "llm_prefill" in served else "no prefill by itself (llm_prefill)",
        "reduce_us": "every run has as many all-reduces" if one(passes.reductions) else "",
        "turn": "" if "serving_tpot" in served else "no token of a server (serving_tpot)",
    }
    return {name: why for name, why in reasons.items() if why}


def _costs(runs: Runs, seen: np.ndarray, base: Engine, held: dict[str, str]) -> tuple[Cost, ...]:
    """The costs, with intervals by a bootstrap over shape families."""
    free = [name for name in COSTS if name not in held]
    kept = {name: 0.0 if name == "launch_us" else getattr(base, name) for name in held}
    family, place = np.unique(runs.table["family"][seen].to_numpy(str), return_inverse=True)
    rng = np.random.default_rng(0)
    drawn = rng.multinomial(len(family), np.full(len(family), 1 / len(family)), DRAWS).astype(float)
    weights = np.concatenate([np.ones((1, len(place))), drawn[:, place]])
    found = fits(runs.passes(seen), runs.table["latency_us"][seen].to_numpy(), free, kept, weights)
    units = dict.fromkeys(COSTS, "us") | {"turn": "1"}
    costs = []
    for name in COSTS:
        ends = np.quantile(found[name][1:], (0.025, 0.975))
        value, low, high = (float(x) if x > NOTHING else 0.0 for x in (found[name][0], *ends))
        costs.append(Cost(name, value, units[name], low, high, held.get(name, "")))
    return tuple(costs)
