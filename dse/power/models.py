"""Power models by name: the one table through which TOML files choose code."""

from dataclasses import dataclass
from typing import Any

from dse.errors import InputError, accepted
from dse.power.board import BoardPower

POWER_MODELS = {"board": BoardPower.from_table}
"""Name -> what makes the model."""


@dataclass(frozen=True)
class PowerChoice:
    """A power model, and whether designs are held to their power limit (``tdp_w``)."""

    model: BoardPower
    limit: bool = True


def power_choice(spec: Any, where: str) -> PowerChoice:
    """Return what ``spec`` says: a model's name, or a table with ``model`` and ``limit``; raises InputError."""
    table = {"model": spec} if isinstance(spec, str) else spec
    form = 'give power = "board", or power = { model = "board", limit = false } for clocks that no limit lowers'
    if not isinstance(table, dict) or set(table) - {"model", "limit"} or not isinstance(table.get("limit", True), bool):
        raise InputError(f"{where}: {spec!r} is not accepted; {form}")
    name = table.get("model", "board")
    if name not in POWER_MODELS:
        raise InputError(f"{where}: no power model is called {name!r}; {accepted(str(name), POWER_MODELS)}")
    return PowerChoice(POWER_MODELS[name](), bool(table.get("limit", True)))
