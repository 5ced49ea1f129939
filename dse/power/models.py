"""Power models by name: the one table through which TOML files choose code."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dse.base.errors import InputError, accepted, shown
from dse.power.accelwattch_designs import AccelWattchPower
from dse.power.board import BoardPower
from dse.power.calibration import calibrated_board
from dse.power.power import PowerModel

POWER_MODELS = {"board": BoardPower.from_table, "accelwattch": AccelWattchPower.published}
"""Name -> what makes the model."""


@dataclass(frozen=True)
class PowerChoice:
    """A power model, and whether designs are held to their power limit (``tdp_w``)."""

    model: PowerModel
    limit: bool = True

    def __repr__(self) -> str:
        return f"PowerChoice({type(self.model).__name__}, calibration={self.model.calibration!r}, limit={self.limit})"


def power_choice(spec: Any, where: str, folder: Path = Path()) -> PowerChoice:
    """Return what ``spec`` says: a model's name, or a table with ``model``, ``limit`` and ``calibration``.

    ``calibration``: path of a TOML of ``dse calibrate power``, which stands relative to ``folder``. Raises InputError.
    """
    table = {"model": spec} if isinstance(spec, str) else spec
    form = (
        'give power = "board", or power = { model = "board", limit = false } for clocks that no limit lowers, or '
        'power = { model = "board", calibration = "mine.toml" } for coefficients of \'dse calibrate power\''
    )
    known = {"model": str, "limit": bool, "calibration": str}
    if not isinstance(table, dict) or any(not isinstance(v, known.get(k, ())) for k, v in table.items()):
        raise InputError(f"{where}: {shown(spec)} is not accepted; {form}")
    name = table.get("model", "board")
    if name not in POWER_MODELS:
        raise InputError(f"{where}: no power model is called {name!r}; {accepted(name, POWER_MODELS)}")
    calibration = table.get("calibration")
    if calibration is not None and name != "board":
        raise InputError(f"{where}: coefficients of a file are the board model's; leave calibration out, or {name!r}")
    model = POWER_MODELS[name]() if calibration is None else calibrated_board(folder / calibration)
    return PowerChoice(model, bool(table.get("limit", True)))


def power_of(power: str | PowerChoice | None) -> PowerChoice:
    """Return a choice of a power model: as given, by its name, or the board's; raises InputError where it is none."""
    return power if isinstance(power, PowerChoice) else power_choice("board" if power is None else power, "power")
