"""Fitted coefficients as a TOML file, and back as a power model."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import equinox as eqx
import jax.numpy as jnp

from dse.calibrate.board_fit import FREE, with_values
from dse.calibrate.power_fit import COEFFICIENTS_OF, UNFITTED, Coefficient
from dse.errors import InputError, accepted
from dse.hardware.presets import read_toml
from dse.power.accelwattch import AccelWattch, part_counters
from dse.power.board import BoardPower

FORMAT = "dse power calibration 1"

SHEET = {"NOCP": "L2CP"}
"""Parts that a column of AccelWattch's sheet holds beside its own; MCP (the controller) stands in DRAMP's."""


@dataclass(frozen=True)
class PowerCalibration:
    """A calibration read back: the model with its coefficients, their values, and where they come from."""

    model: AccelWattch | BoardPower
    calibration: str
    coefficients: dict[str, float]
    table: str
    table_sha256: str


def write_calibration(
    path: Path, kind: str, calibration: str, table: str, sha256: str, fitted: list[Coefficient], errors: Mapping
) -> None:
    """Write coefficients with unit, interval and share of the data; the same fit gives the same bytes."""
    head = {"format": FORMAT, "model": kind, "calibration": calibration, "table": Path(table).name}
    lines = [f"{key} = {json.dumps(value)}" for key, value in (head | {"table_sha256": sha256}).items()]
    lines += ["", "[error_percent]", *(f"{name} = {value:.4g}" for name, value in errors.items())]
    for c in fitted:
        lines += ["", f"[coefficients.{c.name}]", f"value = {c.value:.6g}", f"unit = {json.dumps(c.unit)}"]
        lines += [f"low = {c.low:.6g}", f"high = {c.high:.6g}", f"data_share = {c.share:.3f}",
                  f"identified = {json.dumps(c.identified)}"]  # fmt: skip
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def load_power_calibration(path: Path) -> PowerCalibration:
    """Read a file of :func:`write_calibration`; raises InputError for any other file or coefficient."""
    content = read_toml(Path(path))
    if content.get("format") != FORMAT:
        found = content.get("format")
        raise InputError(f"{path}: format is {found!r}; give a file that 'dse calibrate power -o' wrote ({FORMAT!r})")
    for key in ("model", "calibration", "table", "table_sha256"):
        if not isinstance(content.get(key), str):
            raise InputError(f"{path}: {key} is {content.get(key)!r}; give a text")
    values = _values(path, content.get("coefficients"))
    model = _model(path, content["model"], content["calibration"], values)
    return PowerCalibration(model, content["calibration"], values, content["table"], content["table_sha256"])


def with_multipliers(model: AccelWattch, multipliers: Mapping[str, float]) -> AccelWattch:
    """Return AccelWattch with the columns of its sheet multiplied: L2CP holds the NoC, DRAMP all of the controller."""
    rows = part_counters()
    energy = model.energy_pj
    for part, places in rows.items():
        energy = energy.at[jnp.asarray(places)].multiply(multipliers.get(SHEET.get(part, part), 1.0))
    memory = multipliers.get("DRAMP", 1.0)
    changed = (energy, model.controller_pj * memory, model.controller_base_w * memory)
    return eqx.tree_at(lambda m: (m.energy_pj, m.controller_pj, m.controller_base_w), model, changed)


def _values(path: Path, rows: Any) -> dict[str, float]:
    if not isinstance(rows, dict) or not rows:
        raise InputError(f"{path}: no table [coefficients]; each needs a value")
    for name, row in rows.items():
        value = row.get("value") if isinstance(row, dict) else None
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e6:
            raise InputError(f"{path}: coefficients.{name}.value is {value!r}; give a number from 0 to 1e6")
    return {name: float(row["value"]) for name, row in rows.items()}


def _model(path: Path, kind: str, calibration: str, values: dict[str, float]) -> AccelWattch | BoardPower:
    """The model of a kind: "board", or "accelwattch_" and a variant."""
    kinds = {f"accelwattch_{variant}": name for variant, name in COEFFICIENTS_OF.items()}
    names = set(FREE) if kind == "board" else {p for p in part_counters() if p not in UNFITTED and p not in SHEET}
    if kind != "board" and kind not in kinds:
        raise InputError(f"{path}: model is {kind!r}; {accepted(kind, ('board', *kinds))}")
    for name in values:
        if name not in names:
            raise InputError(f"{path}: {kind} has no fitted coefficient {name!r}; {accepted(name, names)}")
    if kind == "board":
        return with_values(BoardPower.from_table(), {name: jnp.asarray(value) for name, value in values.items()})
    model = with_multipliers(AccelWattch.variant(kinds[kind]), values)
    return replace(model, calibration=calibration)
