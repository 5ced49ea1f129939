"""The cache sizes of every miss-rate curve."""

import numpy as np

LINE_BYTES = 128
SIZES = LINE_BYTES * np.round(2.0 ** np.arange(10.0, 22.01, 0.5)).astype(np.int64)
"""Cache sizes of every curve [B]: 128 KiB to 512 MiB in steps of half an octave."""
