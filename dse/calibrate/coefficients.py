"""Fitted coefficients as a TOML file, and back as a power model."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import equinox as eqx
import jax.numpy as jnp

from dse.calibrate.power_fit import COEFFICIENTS_OF, HIGH, LOW, UNFITTED, Coefficient
from dse.errors import InputError, accepted
from dse.hardware.own_gpus import own_lines
from dse.power.accelwattch import AccelWattch, part_counters
from dse.power.board import BoardPower
from dse.power.calibration import BOARD, FORMAT, board_coefficients, calibrated_board, read_coefficients, read_head
from dse.toml_file import Allowed
from dse.toml_text import literal, pairs
from dse.uncertainty import Uncertainty

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
    path: Path, kind: str, calibration: str, table: str, sha256: str, fitted: list[Coefficient], errors: Mapping,
    left_out: Uncertainty | None = None,
) -> None:  # fmt: skip
    """Write coefficients with unit, interval and share of the data; the same fit gives the same bytes.

    ``left_out``: errors on what the fit left out, with the GPUs of the table.
    """
    head = {"format": FORMAT, "model": kind, "calibration": calibration, "table": Path(table).name}
    lines = pairs(head | {"table_sha256": sha256})
    lines += ["", "[error_percent]", *(f"{name} = {value:.4g}" for name, value in errors.items())]
    if left_out is not None:
        lines += ["", "[left_out]", f"low = {left_out.low:.4f}", f"high = {left_out.high:.4f}",
                  f"gpus = {literal(left_out.gpus)}", *own_lines(left_out.own)]  # fmt: skip
    for c in fitted:
        lines += ["", f"[coefficients.{c.name}]", f"value = {c.value:.6g}", f"unit = {literal(c.unit)}"]
        lines += [f"low = {c.low:.6g}", f"high = {c.high:.6g}", f"data_share = {c.share:.3f}",
                  f"identified = {literal(c.identified)}"]  # fmt: skip
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def load_power_calibration(path: Path) -> PowerCalibration:
    """Read a file of :func:`write_calibration`; raises InputError for any other file or coefficient."""
    path = Path(path)
    content = read_head(path)
    if content["model"] == BOARD:
        model, values = calibrated_board(path), board_coefficients(path, content)
    else:
        model, values = _accelwattch(path, content)
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


def _accelwattch(path: Path, content: dict[str, Any]) -> tuple[AccelWattch, dict[str, float]]:
    """AccelWattch of a file's kind ("accelwattch_" and a variant), and the multipliers of those parts that the fitted
    table held; the others keep the published energies."""
    kind, kinds = content["model"], {f"accelwattch_{variant}": name for variant, name in COEFFICIENTS_OF.items()}
    if kind not in kinds:
        raise InputError(f"{path}: model is {kind!r}; {accepted(kind, (BOARD, *kinds))}")
    known = (part for part in part_counters() if part not in UNFITTED and part not in SHEET)
    values = read_coefficients(path, content, dict.fromkeys(known, Allowed("1", LOW, HIGH)))
    model = with_multipliers(AccelWattch.variant(kinds[kind]), values)
    return replace(model, calibration=content["calibration"]), values
