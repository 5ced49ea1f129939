"""Power and clock by NVML, on a stand-in for the library."""

import sys
from time import sleep
from types import SimpleNamespace

import pytest

from dse.measurement.board import AVERAGED_S, INSTANT_S, Board, find_board


class NvmlError(Exception):
    """What the stand-in raises."""


class Nvml:
    """A board of 300 W at rest and 650 W from its third reading on, with or without a power of the moment."""

    NVMLError, NVML_SUCCESS, NVML_CLOCK_SM = NvmlError, 0, 1

    def __init__(self, instant: bool) -> None:
        self.instant, self.readings, self.handle = instant, 0, None

    def nvmlInit(self) -> None:  # noqa: N802
        """Nothing to be done."""

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:  # noqa: N802
        self.handle = index
        return index

    def nvmlDeviceGetHandleByUUID(self, name: str) -> str:  # noqa: N802
        self.handle = name
        return name

    def nvmlDeviceGetFieldValues(self, handle, fields):  # noqa: N802
        if not self.instant:
            raise NvmlError("not supported")
        return [SimpleNamespace(nvmlReturn=0, value=SimpleNamespace(uiVal=self._milliwatts()))]

    def nvmlDeviceGetPowerUsage(self, handle) -> int:  # noqa: N802
        return self._milliwatts()

    def nvmlDeviceGetClockInfo(self, handle, kind) -> int:  # noqa: N802
        return 1755

    def _milliwatts(self) -> int:
        self.readings += 1
        return 650_000 if self.readings > 3 else 300_000


@pytest.mark.parametrize(("instant", "seconds"), [(True, INSTANT_S), (False, AVERAGED_S)])
def test_the_settled_part_of_a_loop_counts(instant, seconds):
    board = Board(Nvml(instant), 0)
    assert (board.instant, board.seconds) == (instant, seconds)
    draw = board.during(lambda length: sleep(0.3))
    assert draw is not None
    assert (draw.watts, draw.sm_mhz) == (650.0, 1755.0)
    assert draw.samples >= 2


def test_a_loop_too_short_for_a_sample_has_no_power():
    assert Board(Nvml(True), 0).during(lambda length: None) is None


def test_the_board_is_the_one_that_jax_sees(monkeypatch):
    nvml = Nvml(True)
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    for visible, handle in (("", 1), ("3,5", 5), ("GPU-a,GPU-b", "GPU-b")):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
        board, why = find_board(1)
        assert board is not None
        assert (why, nvml.handle) == ("", handle)


def test_without_nvml_the_remedy_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    board, why = find_board(0)
    assert board is None
    assert "gpu-dse[measure]" in why
