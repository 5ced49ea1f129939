"""The sizes of miss-rate curves: half octaves that are whole lines, over every L2 that is built."""

import numpy as np

from dse.hardware.presets import gpu_index, preset_sheet
from dse.traces.curve_sizes import LINE_BYTES, SIZES


def test_sizes_are_whole_lines_half_an_octave_apart() -> None:
    assert (SIZES % LINE_BYTES == 0).all()
    np.testing.assert_allclose(SIZES[1:] / SIZES[:-1], np.sqrt(2), rtol=1e-3)


def test_every_shipped_l2_lies_between_the_ends() -> None:
    for name, row in gpu_index().items():
        if row["supported"] == "1":
            assert SIZES[0] <= preset_sheet(name).entries["l2_mib"].number * 2**20 <= SIZES[-1], name
