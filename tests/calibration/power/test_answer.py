"""What a calibration of power answers, and what it does not fit."""

import pandas as pd
import pytest

from dse.base.errors import InputError
from dse.calibration.power.answer import calibrate_power
from tests.calibration.tables import operator_table


@pytest.mark.slow
def test_watts_of_another_board_are_not_fitted(tmp_path):
    path = operator_table(tmp_path / "t.csv", device=[None] * 3)
    frame = pd.read_csv(path)
    pd.concat([frame.assign(n=frame.n + 64 * i, power_w=5 * frame.power_w) for i in range(4)]).to_csv(path, index=False)
    with pytest.raises(InputError, match=r"the median power_w is \d+ W, [\d.]+ times the tdp_w of H200 SXM"):
        calibrate_power(path, gpu="h200")  # rows without a device are those of --gpu
