"""Fitted power coefficients as a TOML file of ``dse calibrate power``: its form, and the board model that one holds."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax.numpy as jnp

from dse.base.error_interval import ErrorInterval
from dse.base.errors import InputError, accepted
from dse.base.package_tables import read_table
from dse.base.toml_file import Allowed, check_format, coefficient, coefficient_of, read_toml, refuse_keys
from dse.hardware.own_gpus import TABLE as OWN_GPUS
from dse.hardware.own_gpus import read_own
from dse.power.board import FREE, OF_LOOPS, TABLE, BoardPower

FORMAT = "dse power calibration 2"

LEFT_OUT = "watts of single kernels, shape families left out of the fit"
"""What the interval of a file is of."""

BOARD = "board"
"""``model`` of a file whose coefficients are the board model's."""

FAR = 100.0
"""A coefficient stands within its prior's range, this many times wider at both ends: fits to a seventh of a GPU's true
watts stay within, too."""

KEYS = (
    "format",
    "model",
    "calibration",
    "table",
    "table_sha256",
    "error_percent",
    "left_out",
    "coefficients",
    OWN_GPUS,
)
TOLD = ("low", "high", "data_share", "identified")
"""Keys of a file, and what it says of a coefficient beside its value and unit."""

MOST_OFF = 1e3
"""Measured over predicted watts is at most this, and at least one over it."""


def read_head(path: Path) -> dict[str, Any]:
    """Return the content of a calibration, its coefficients unread; raises InputError for any other file."""
    content = read_toml(path)
    check_format(path, content, FORMAT, "dse calibrate power")
    refuse_keys(path, "a power calibration", content, KEYS)
    for key in ("model", "calibration", "table", "table_sha256"):
        if not isinstance(content.get(key), str):
            raise InputError(f"{path}: {key} is {content.get(key)!r}; give a text")
    return content


def read_coefficients(path: Path, content: dict[str, Any], allowed: Mapping[str, Allowed]) -> dict[str, float]:
    """Return the coefficients of a file's content, all of them ``allowed`` to its model; raises InputError."""
    rows, kind = content.get("coefficients"), content["model"]
    if not isinstance(rows, dict) or not rows:
        raise InputError(f"{path}: no table [coefficients]; each needs a value")
    for name in rows:
        if name not in allowed:
            raise InputError(f"{path}: {kind} has no fitted coefficient {name!r}; {accepted(name, allowed)}")
    return {name: coefficient_of(path, f"coefficients.{name}", row, allowed[name], TOLD) for name, row in rows.items()}


def calibrated_board(path: Path) -> BoardPower:
    """Return the board model with the coefficients of a file, and its errors on what that fit left out."""
    content = read_head(path)
    model = BoardPower.from_table().with_values(
        {name: jnp.asarray(value) for name, value in board_coefficients(path, content).items()}
    )
    return model.fitted_to(f"{content['calibration']} ({path.name})", _left_out(path, content))


def board_coefficients(path: Path, content: dict[str, Any]) -> dict[str, float]:
    """Return the board's coefficients in a file's content: every one that is fitted, and those of loops that it has;
    raises InputError."""
    if content["model"] != BOARD:
        raise InputError(
            f"{path}: model is {content['model']!r}, whose coefficients price a launch's counters; give one of "
            f"{BOARD!r} (of a table with shapes and power_w)"
        )
    values = read_coefficients(path, content, _allowed())
    missing = [name for name in FREE if name not in values]
    if missing:
        raise InputError(f"{path}: no table [coefficients.{missing[0]}]; give each of {', '.join(FREE)} a value")
    return values


def _allowed() -> dict[str, Allowed]:
    """The board's fitted coefficients, and what a file may give them."""
    rows = {row["coefficient"]: row for row in read_table(TABLE)}
    return {
        name: Allowed(rows[name]["unit"], float(rows[name]["low"]) / FAR, FAR * float(rows[name]["high"]))
        for name in (*FREE, *OF_LOOPS)
    }


def _left_out(path: Path, content: dict[str, Any]) -> ErrorInterval:
    errors = content.get("left_out")
    match errors:
        case {"low": low, "high": high, "gpus": list(gpus)} if all(isinstance(gpu, str) for gpu in gpus):
            refuse_keys(path, "left_out", errors, ("low", "high", "gpus"))
            ends = [
                coefficient(path, f"left_out.{key}", end, 1 / MOST_OFF, MOST_OFF)
                for key, end in (("low", low), ("high", high))
            ]
            if ends[0] <= ends[1]:
                return ErrorInterval(ends[0], ends[1], LEFT_OUT, tuple(gpus), own=read_own(content, str(path)))
    raise InputError(
        f"{path}: left_out is {errors!r}; give low and high (measured over predicted, in order) and gpus (names)"
    )
