"""Power and SM clock of the board while a kernel runs in a loop, by NVML (nvidia-ml-py)."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from statistics import mean
from threading import Event, Thread
from time import perf_counter
from typing import Any

PERIOD_S = 0.02
INSTANT_S = 0.4
"""Length of the loop where NVML reports the present power [s]."""

AVERAGED_S = 2.0
"""Its length where NVML reports only the mean of the last second [s]."""

SETTLED = 0.5
"""Share of the loop after which samples count: the board has left its idle power behind."""

NVML_FI_DEV_POWER_INSTANT = 186


@dataclass(frozen=True)
class Draw:
    """Mean power [W] and SM clock [MHz] over the settled part of a loop."""

    watts: float
    sm_mhz: float
    samples: int


class Board:
    """One GPU as NVML sees it."""

    def __init__(self, nvml: Any, handle: Any) -> None:
        self._nvml, self._handle = nvml, handle
        self.instant = self._instant() is not None

    @property
    def seconds(self) -> float:
        """Length that a loop needs [s]."""
        return INSTANT_S if self.instant else AVERAGED_S

    def watts(self) -> float:
        """Return the board's power [W]."""
        now = self._instant() if self.instant else None
        return (now if now is not None else self._nvml.nvmlDeviceGetPowerUsage(self._handle)) / 1e3

    def sm_mhz(self) -> float:
        """Return the SM clock [MHz]."""
        return float(self._nvml.nvmlDeviceGetClockInfo(self._handle, self._nvml.NVML_CLOCK_SM))

    def limits(self) -> dict[str, str]:
        """Return the power limit that the board keeps [W] and its highest SM clock [MHz], as far as NVML says them."""
        said = {}
        try:
            said["limit_w"] = f"{self._nvml.nvmlDeviceGetEnforcedPowerLimit(self._handle) / 1e3:.0f}"
            said["most_sm_mhz"] = f"{self._nvml.nvmlDeviceGetMaxClockInfo(self._handle, self._nvml.NVML_CLOCK_SM):.0f}"
        except (self._nvml.NVMLError, AttributeError):
            pass
        return said

    def _instant(self) -> float | None:
        try:
            value = self._nvml.nvmlDeviceGetFieldValues(self._handle, [NVML_FI_DEV_POWER_INSTANT])[0]
        except (self._nvml.NVMLError, AttributeError):
            return None
        return float(value.value.uiVal) if value.nvmlReturn == self._nvml.NVML_SUCCESS and value.value.uiVal else None

    def during(self, loop: Callable[[float], None]) -> Draw | None:
        """Run ``loop(seconds)`` and return the board's power and clock; None where no sample was taken."""
        samples: list[tuple[float, float, float]] = []
        stop = Event()
        sampler = Thread(target=self._sample, args=(samples, stop), daemon=True)
        start = perf_counter()
        sampler.start()
        try:
            loop(self.seconds)
        finally:
            length = perf_counter() - start
            stop.set()
            sampler.join()
        settled = [(w, mhz) for at, w, mhz in samples if SETTLED * length <= at - start <= length]
        if not settled:
            return None
        return Draw(mean(w for w, _ in settled), mean(mhz for _, mhz in settled), len(settled))

    def _sample(self, samples: list[tuple[float, float, float]], stop: Event) -> None:
        while not stop.wait(PERIOD_S):
            try:
                samples.append((perf_counter(), self.watts(), self.sm_mhz()))
            except self._nvml.NVMLError:  # a reading that the driver refuses is no sample
                continue


def find_board(ordinal: int) -> tuple[Board | None, str]:
    """Return the board of JAX's device of this local number, or None and why there is none."""
    try:
        import pynvml  # pyright: ignore[reportMissingImports]
    except ImportError:
        return None, "no power: nvidia-ml-py is not installed (pip install 'gpu-dse[measure]')"
    try:
        pynvml.nvmlInit()
        return Board(pynvml, _handle(pynvml, ordinal)), ""
    except pynvml.NVMLError as error:
        return None, f"no power: NVML says {error}"


def _handle(nvml: Any, ordinal: int) -> Any:
    """Return NVML's handle of JAX's device, which CUDA_VISIBLE_DEVICES may name by number or by UUID."""
    visible = [name.strip() for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name.strip()]
    name = visible[ordinal] if ordinal < len(visible) else str(ordinal)
    if name.isdigit():
        return nvml.nvmlDeviceGetHandleByIndex(int(name))
    return nvml.nvmlDeviceGetHandleByUUID(name)
