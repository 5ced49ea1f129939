"""Fitted power coefficients as a TOML file, and those of AccelWattch back as a model.

The board model's are read by :mod:`dse.power.calibration`.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import equinox as eqx
import jax.numpy as jnp

from dse.base.atomic_files import write_whole
from dse.base.error_interval import ErrorInterval
from dse.base.errors import InputError, accepted
from dse.base.toml_file import Allowed
from dse.base.toml_text import literal, pairs
from dse.calibration.power.accelwattch_fit import COEFFICIENTS_OF, HIGH, LOW, UNFITTED, Coefficient
from dse.hardware.own_gpus import own_lines
from dse.power.accelwattch import AccelWattch, part_counters
from dse.power.calibration import FORMAT, read_coefficients, read_head

SHEET = {"NOCP": "L2CP"}
"""Parts that a column of AccelWattch's sheet holds beside its own; MCP (the controller) stands in DRAMP's."""


def write_calibration(
    path: Path,
    kind: str,
    calibration: str,
    table: str,
    sha256: str,
    fitted: list[Coefficient],
    errors: Mapping,
    left_out: ErrorInterval | None = None,
) -> None:
    """Write coefficients with unit, interval and share of the data; the same fit gives the same bytes.

    ``left_out``: errors on what the fit left out, with the GPUs of the table.
    """
    head = {"format": FORMAT, "model": kind, "calibration": calibration, "table": Path(table).name}
    lines = pairs(head | {"table_sha256": sha256})
    lines += ["", "[error_percent]", *(f"{name} = {value:.4g}" for name, value in errors.items())]
    if left_out is not None:
        lines += [
            "",
            "[left_out]",
            f"low = {left_out.low:.4f}",
            f"high = {left_out.high:.4f}",
            f"gpus = {literal(left_out.gpus)}",
            *own_lines(left_out.own),
        ]
    for c in fitted:
        lines += ["", f"[coefficients.{c.name}]", f"value = {c.value:.6g}", f"unit = {literal(c.unit)}"]
        lines += [
            f"low = {c.low:.6g}",
            f"high = {c.high:.6g}",
            f"data_share = {c.share:.3f}",
            f"identified = {literal(c.identified)}",
        ]
    write_whole(path, "\n".join(lines) + "\n")


def with_multipliers(model: AccelWattch, multipliers: Mapping[str, float]) -> AccelWattch:
    """Return AccelWattch with the columns of its sheet multiplied: L2CP holds the NoC, DRAMP all of the controller."""
    rows = part_counters()
    energy = model.energy_pj
    for part, places in rows.items():
        energy = energy.at[jnp.asarray(places)].multiply(multipliers.get(SHEET.get(part, part), 1.0))
    memory = multipliers.get("DRAMP", 1.0)
    changed = (energy, model.controller_pj * memory, model.controller_base_w * memory)
    return eqx.tree_at(lambda m: (m.energy_pj, m.controller_pj, m.controller_base_w), model, changed)


def calibrated_accelwattch(path: Path) -> AccelWattch:
    """Return AccelWattch with the multipliers of a file; parts that the fitted table did not hold keep the published.

    The twin of :func:`dse.power.calibration.calibrated_board`, for use from Python: the command line prices designs
    with the board model, whose coefficients need no counters. Raises InputError for any other file or coefficient.
    """
    content = read_head(path)
    kind, kinds = content["model"], {f"accelwattch_{variant}": name for variant, name in COEFFICIENTS_OF.items()}
    if kind not in kinds:
        raise InputError(f"{path}: model is {kind!r}; {accepted(kind, kinds)}")
    known = (part for part in part_counters() if part not in UNFITTED and part not in SHEET)
    values = read_coefficients(path, content, dict.fromkeys(known, Allowed("1", LOW, HIGH)))
    model = with_multipliers(AccelWattch.variant(kinds[kind]), values)
    return replace(model, calibration=content["calibration"])
