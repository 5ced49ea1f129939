"""Fitted power coefficients as a TOML file of ``dse calibrate power``: its form, and the board model that one holds."""

from pathlib import Path
from typing import Any

import jax.numpy as jnp

from dse.errors import InputError, accepted
from dse.hardware.own_gpus import read_own
from dse.power.board import FREE, BoardPower
from dse.toml_file import check_format, coefficient, read_toml
from dse.uncertainty import Uncertainty

FORMAT = "dse power calibration 2"

LEFT_OUT = "watts of single kernels, shape families left out of the fit"
"""What the interval of a file is of."""

BOARD = "board"
"""``model`` of a file whose coefficients are the board model's."""


def read_calibration(path: Path) -> tuple[dict[str, Any], dict[str, float]]:
    """Return the head of a calibration and its coefficients; raises InputError for any other file."""
    content = read_toml(path)
    check_format(path, content, FORMAT, "dse calibrate power")
    for key in ("model", "calibration", "table", "table_sha256"):
        if not isinstance(content.get(key), str):
            raise InputError(f"{path}: {key} is {content.get(key)!r}; give a text")
    return content, _values(path, content.get("coefficients"))


def refuse_unknown(path: Path, kind: str, values: dict[str, float], names: set[str]) -> None:
    """Raise InputError where a coefficient is none of a model's ``names``."""
    for name in values:
        if name not in names:
            raise InputError(f"{path}: {kind} has no fitted coefficient {name!r}; {accepted(name, names)}")


def calibrated_board(path: Path) -> BoardPower:
    """Return the board model with the coefficients of a file, and its errors on what that fit left out."""
    content, values = read_calibration(path)
    if content["model"] != BOARD:
        raise InputError(
            f"{path}: model is {content['model']!r}, whose coefficients are a launch's counters'; give one of "
            f"{BOARD!r} (of a table with shapes and power_w)"
        )
    refuse_unknown(path, BOARD, values, set(FREE))
    model = BoardPower.from_table().with_values({name: jnp.asarray(value) for name, value in values.items()})
    return model.fitted_to(f"{content['calibration']} ({path.name})", _left_out(path, content))


def _left_out(path: Path, content: dict[str, Any]) -> Uncertainty:
    errors = content.get("left_out")
    match errors:
        case {"low": float(low), "high": float(high), "gpus": list(gpus)} if 0 < low <= high:
            return Uncertainty(low, high, LEFT_OUT, tuple(gpus), own=read_own(content, str(path)))
    raise InputError(f"{path}: left_out is {errors!r}; give low and high (measured over predicted) and gpus")


def _values(path: Path, rows: Any) -> dict[str, float]:
    if not isinstance(rows, dict) or not rows:
        raise InputError(f"{path}: no table [coefficients]; each needs a value")
    values = {name: row.get("value") if isinstance(row, dict) else None for name, row in rows.items()}
    return {name: coefficient(path, f"coefficients.{name}.value", value) for name, value in values.items()}
