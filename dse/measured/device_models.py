"""Who predicts the rows of a measured device: its GPU, the timing model and the calibration."""

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from dse.base.errors import InputError
from dse.hardware.own_gpus import matching_name
from dse.hardware.presets import GpuSheet, find_preset, gpu_index, load_sheet, preset_sheet
from dse.timing.calibration import TimingCalibration, calibration_of, load_timing_calibration
from dse.timing.models import timing_model
from dse.timing.timing import TimingModel

UNNAMED = "(empty)"


@dataclass(frozen=True)
class DeviceModel:
    """What predicts the rows of one device; ``calibration`` is None for a model that has none."""

    sheet: GpuSheet
    model: TimingModel
    calibration: TimingCalibration | None


@dataclass(frozen=True)
class Predictor:
    """What predicted a device's rows: GPU, timing model, calibration and the GPUs that it was fitted on."""

    device: str
    rows: int
    gpu: str
    model: str
    calibration: str
    fitted_on: tuple[str, ...]
    fitted_on_it: bool


def device_models(
    frame: pd.DataFrame, timing: str = "amali", gpu: str | None = None, calibration: str | None = None
) -> tuple[dict[str, DeviceModel], dict[str, str]]:
    """Return what predicts each device of a table, and why others cannot be predicted.

    ``gpu``: a preset or TOML for devices without a preset, or for all where every device has one. ``calibration``:
    None takes the GPU's shipped one, else ``shared``; "none" leaves the model uncalibrated. Raises InputError for names
    that nothing has.
    """
    given = load_sheet(gpu) if gpu else None
    devices = [str(device) for device in frame["device"].unique()]
    without = [device for device in devices if find_preset(device) is None]
    models, unknown = {}, {}
    for device in devices:
        if given is not None and (device in without or not without):
            models[device] = _model_of(given, timing, calibration)
        elif device in without:
            unknown[device] = f"device {device!r} has no preset; give one with --gpu"
        elif gpu_index()[str(find_preset(device))]["supported"] != "1":
            unknown[device] = f"device {device!r}: {gpu_index()[str(find_preset(device))]['note']}"
        else:
            models[device] = _model_of(preset_sheet(str(find_preset(device))), timing, calibration)
    return models, unknown


def power_limits(models: Mapping[str, DeviceModel]) -> dict[str, float]:
    """Return device -> power limit of the GPU that predicts its rows [W]."""
    return {device: used.sheet.numbers()["tdp_w"] for device, used in models.items()}


def device_names(frame: pd.DataFrame) -> pd.Series:
    """Return the column ``device`` as words, UNNAMED where a row's is empty: such rows are counted, too."""
    return frame["device"].astype(object).where(frame["device"].notna(), UNNAMED).astype(str)


def _model_of(sheet: GpuSheet, timing: str, calibration: str | None) -> DeviceModel:
    if timing != "amali":
        if calibration not in (None, "none"):
            raise InputError(f"--calibration: {timing} cannot be calibrated; give --timing amali")
        return DeviceModel(sheet, timing_model(timing, "--timing"), None)
    if calibration == "none":
        return DeviceModel(sheet, timing_model(timing, "--timing"), None)
    name = calibration or calibration_of(sheet)
    loaded = load_timing_calibration(name, "--calibration")
    return DeviceModel(sheet, loaded.model, loaded.said_of(sheet))


def predictors(rows: pd.DataFrame, models: Mapping[str, DeviceModel]) -> tuple[Predictor, ...]:
    """Return what predicted the rows, a record a device."""
    found = []
    for device, part in rows.groupby("device", sort=True):
        used = models[str(device)]
        model, known = type(used.model).__name__.lower(), used.calibration
        fitted, own = (known.gpus, known.own) if known else ((), ())
        its_own = find_preset(str(device)) in (None, used.sheet.name)  # not another GPU's, which --gpu asks for
        found.append(
            Predictor(
                str(device),
                len(part),
                used.sheet.title,
                model,
                used.model.calibration,
                fitted,
                its_own and matching_name(used.sheet, fitted, own) != "",
            )
        )
    return tuple(found)
