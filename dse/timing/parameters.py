"""Parameters of the timing model's calibrations: what each kind of implementation has, and what a file may give it."""

from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from dse.base.errors import InputError, accepted
from dse.base.package_tables import read_table
from dse.base.toml_file import Allowed, coefficient_of
from dse.timing.sustained import Sustained
from dse.workload.implementation import KINDS

LAUNCH = {"launch_k": "k", "launch_gamma": "gamma"}
"""Parameter of a calibration -> coefficient of the launch latency; its alpha and beta are 0."""

PARAMETERS = (*LAUNCH, *(f.name for f in fields(Sustained)))
"""Every parameter of the model."""

FORMER = {"matrix": ("kept",)}
"""Kind -> parameters of files of before: what survives in the L2 of products' operands is one law for all GPUs and
libraries (dse/workload/l2_hit_rate.py)."""

TOLD = ("low", "high", "data_share", "stage", "determined", "at_bound")
"""What a file says of a parameter beside its value and unit."""


def allowed_parameters(kind: str) -> dict[str, Allowed]:
    """Return the parameters that a kind of implementation has, with the bounds of its fits."""
    return {row["parameter"]: Allowed(row["unit"], float(row["low"]), float(row["high"])) for row in _priors(kind)}


def read_parameters(path: Path, place: str, rows: Any, implementation: Any) -> dict[str, float]:
    """Return every parameter of a file's table; those that the kind of implementation does not have are neutral.

    ``place``: of the table in the file, "" or the table around it and a dot. FORMER parameters are passed over. Raises
    InputError.
    """
    if implementation not in KINDS:
        raise InputError(f"{path}: implementation is {implementation!r}; {accepted(str(implementation), KINDS)}")
    known, rows = allowed_parameters(KINDS[implementation]), rows if isinstance(rows, dict) else {}
    rows = {name: row for name, row in rows.items() if name not in FORMER.get(KINDS[implementation], ())}
    for name in rows:
        if name not in known:
            hint = accepted(name, known)
            raise InputError(f"{path}: {place}parameters.{name} is not a parameter of {implementation}; {hint}")
    missing = [name for name in known if name not in rows]
    if missing:
        needed = ", ".join(known)
        raise InputError(f"{path}: no table [{place}parameters.{missing[0]}]; give each of {needed} a value")
    return {name: value for name, value in neutral_values().items() if name not in known} | {
        name: coefficient_of(path, f"{place}parameters.{name}", row, known[name], TOLD) for name, row in rows.items()
    }


def values_before_fits(kind: str) -> dict[str, float]:
    """Return every parameter as fits of a kind of implementation begin: at its prior, neutral where it has none."""
    return neutral_values() | {row["parameter"]: float(row["prior"]) for row in _priors(kind)}


def neutral_values() -> dict[str, float]:
    """Return the parameters that leave the published model as it is, without those of its launch."""
    return {name: float(value or 0.0) for name, value in asdict(Sustained()).items()}


def _priors(kind: str) -> list[dict[str, str]]:
    """The rows of a kind's table that are the model's; the protocol's overhead is none."""
    return [row for row in read_table(f"calibration/priors/{kind}.csv") if row["parameter"] in PARAMETERS]
