"""What is predicted of a launch or a run, its time or its watts, and the features that each is learned from."""

from collections.abc import Mapping
from dataclasses import dataclass

from dse.base.errors import InputError, accepted
from dse.prediction.features import ANALYTICAL, DEMANDS
from dse.prediction.loads import LOADS


@dataclass(frozen=True)
class Response:
    """A response: its ``unit``, its ``features`` but for the model's own prediction (name -> meaning), and which of
    them a host's measurement is scaled by from the host's data sheet to the target's."""

    name: str
    unit: str
    column: str  # of a measured table
    features: Mapping[str, str]
    by_sheet: str
    model: str  # what predicts it by equations

    def feature_names(self, mode: str) -> tuple[str, ...]:
        """Return the features of a mode (:data:`dse.prediction.features.MODES`), in their order."""
        return tuple(self.features) if mode == "plain" else (*self.features, ANALYTICAL)

    def place(self, feature: str) -> int:
        """Return the column of a feature."""
        return list(self.features).index(feature)


TIME = Response("time", "us", "latency_us", DEMANDS, "roofline", "analytical model")
POWER = Response("power", "W", "power_w", LOADS, "limit", "power model")

QUANTITIES = {quantity.name: quantity for quantity in (TIME, POWER)}
"""Quantities by the name that ``--quantity`` takes."""


def quantity_named(name: str) -> Response:
    """Return a quantity; raises InputError for a name that none has."""
    if name not in QUANTITIES:
        raise InputError(f"--quantity: nothing that is predicted is called {name!r}; {accepted(name, QUANTITIES)}")
    return QUANTITIES[name]
