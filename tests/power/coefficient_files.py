"""Files of fitted power coefficients as ``dse calibrate power`` writes them."""

from dse.base.error_interval import ErrorInterval
from dse.calibration.power.accelwattch_fit import Coefficient
from dse.calibration.power.board_fit import units
from dse.calibration.power.coefficient_file import write_calibration
from dse.power.board import FREE, BoardPower


def written(path, kind="accelwattch_hw", fitted=(("DRAMP", 0.8), ("L2CP", 1.5))):
    rows = [Coefficient(name, value, units().get(name, "1"), 0.5 * value, 2 * value, 0.7) for name, value in fitted]
    left_out = ErrorInterval(0.9, 1.2, "kernels", ("h200",)) if kind == "board" else None
    write_calibration(path, kind, "refit", "folder/t.csv", "abc", rows, {"leave_one_benchmark_out": 7.5}, left_out)
    return path


SHIPPED = {name: float(getattr(BoardPower.from_table(), name, 1.5)) for name in FREE}


def board(path, **changes):
    """The board's calibration: the shipped coefficients (an FMA in bf16 of 1.5 pJ) with changes."""
    return written(path, "board", tuple((SHIPPED | changes).items()))
