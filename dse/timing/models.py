"""Timing models by name: the one table through which the command line and TOML files choose code."""

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from dse.base.errors import InputError, accepted
from dse.hardware.presets import GpuSheet
from dse.timing.amali import Amali
from dse.timing.calibration import calibration_of, load_timing_calibration
from dse.timing.launch import LaunchLatency
from dse.timing.mdm import Mdm
from dse.timing.roofline import Roofline
from dse.timing.timing import TimingModel
from dse.timing.traced.reading import is_recorded
from dse.workload.workload import Workload

TIMING_MODELS: dict[str, type[TimingModel]] = {"amali": Amali, "mdm": Mdm, "roofline": Roofline}
"""Name -> model."""


def name_of(model: TimingModel) -> str:
    """Return the name of a model in TIMING_MODELS; of another one that of its class."""
    names = {of: name for name, of in TIMING_MODELS.items()}
    return names.get(type(model), type(model).__name__)


CALIBRATED = "amali"
"""The one that can be calibrated."""

CALIBRATES = ("launch", "sustained", "discrepancy", "calibrated_on", "errors")
"""What a calibration says of it; all else are switches."""


def default_model(sheets: Sequence[GpuSheet], workload: str | Workload) -> Amali:
    """Return AMALI with the shipped calibration of the GPUs (:func:`dse.timing.calibration.calibration_of`); for a
    trace, which has dependences and misses of its own, as the paper has it: nothing is fitted to traces."""
    return Amali() if is_recorded(workload) else load_timing_calibration(calibration_of(*sheets)).model


def timing_model(spec: Any, where: str, folder: Path = Path()) -> TimingModel:
    """Return the model that ``spec`` names: a name, or a table with ``model`` and switches; raises InputError.

    A table may name a ``calibration``: a shipped one, or the path of its TOML, which stands relative to ``folder``.
    """
    table = {"model": spec} if isinstance(spec, str) else spec
    if not isinstance(table, dict) or not isinstance(table.get("model"), str):
        raise InputError(f"{where}: {spec!r} is not accepted; give one of {', '.join(TIMING_MODELS)}")
    name, switches = table["model"], {key: value for key, value in table.items() if key != "model"}
    if name not in TIMING_MODELS:
        raise InputError(f"{where}: no model is called {name!r}; {accepted(name, TIMING_MODELS)}")
    model = TIMING_MODELS[name]
    parts: dict[str, Any] = {}
    launches = any(f.name == "launch" for f in fields(model))
    if "calibration" in switches:
        parts = _calibrated(switches.pop("calibration"), name, "launch" in switches, where, folder)
    elif launches:
        parts["launch"] = _launch(switches.pop("launch", {}), where)
    known = [f.name for f in fields(model) if f.type in (bool, "bool")]
    others = [key for key, takes in (("calibration", name == CALIBRATED), ("launch", launches)) if takes]
    for key, value in switches.items():
        if key not in known:
            switch = accepted(key, others + known) if others + known else "it has none"
            raise InputError(f"{where}: {key!r} is not a switch of {name}; {switch}")
        if not isinstance(value, bool):
            raise InputError(f"{where}: {key} = {value!r} is not accepted; give true or false")
    return model(**parts, **switches)


def _calibrated(spec: Any, name: str, with_launch: bool, where: str, folder: Path) -> dict[str, Any]:
    """Return the coefficients of a calibration, for the one model that can be calibrated."""
    if name != CALIBRATED:
        raise InputError(f'{where}: calibration = {spec!r}: {name} cannot be calibrated; give model = "amali"')
    if with_launch:
        raise InputError(f"{where}: launch and calibration are both given; a calibration holds the launch latency")
    if not isinstance(spec, str):
        raise InputError(f"{where}: calibration = {spec!r} is not accepted; give the name of a calibration or a path")
    path = folder / spec if spec.endswith(".toml") else spec
    model = load_timing_calibration(path, f"{where}: calibration").model
    return {name: getattr(model, name) for name in CALIBRATES}


def _launch(spec: Any, where: str) -> LaunchLatency:
    """Return the launch latency with the coefficients (alpha, beta, gamma, k) that a table states."""
    known = [f.name for f in fields(LaunchLatency)]
    if not isinstance(spec, dict):
        raise InputError(f"{where}: launch = {spec!r} is not accepted; give a table with {', '.join(known)}")
    for key, value in spec.items():
        if key not in known:
            raise InputError(f"{where}: launch.{key} is not a coefficient; {accepted(key, known)}")
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InputError(f"{where}: launch.{key} = {value!r} is not accepted; give a number")
    return LaunchLatency(**spec)
