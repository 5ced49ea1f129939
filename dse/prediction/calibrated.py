"""The timing model as it was calibrated to other devices, on the rows of the target: what a predictor has to beat."""

from collections.abc import Mapping, Sequence

import numpy as np

from dse.measured.row_shape import PRODUCTS
from dse.prediction.baselines import Calibrated
from dse.prediction.learning_rows import LearningRows, groups_of, load_learning_rows
from dse.prediction.quantities import TIME
from dse.prediction.table import MeasuredTable
from dse.timing.amali import Amali
from dse.timing.calibration import load_timing_calibration, shipped_calibrations
from dse.timing.timing import TimingModel


def calibrated_models(
    measured: MeasuredTable,
    devices: Sequence[str],
    groups: Mapping[tuple[str, str], LearningRows],
    target: str,
    base: TimingModel,
) -> dict[tuple[str, str], list[Calibrated]]:
    """Return what the model says of the target's rows with the shipped calibration of each of ``devices`` that has one,
    by operator and data type; nothing of watts, or where the ``base`` is another model than those are of.

    Fair where the calibration has not seen the target: products are fitted device by device, and attention of all
    devices together.
    """
    found: dict[tuple[str, str], list[Calibrated]] = {}
    if not isinstance(base, Amali) or measured.quantity is not TIME:
        return found
    for device in dict.fromkeys(devices):
        if device not in shipped_calibrations():
            continue
        calibration = load_timing_calibration(device)
        rows, _ = load_learning_rows(measured, [target], calibration.model)
        for key, part in groups_of(rows).items():
            own = groups[key].of(target) if key in groups else None
            if own is None or not _same(own, part):
                continue
            fair = key[0] in PRODUCTS and target not in calibration.gpus
            found.setdefault(key, []).append(Calibrated(device, fair, part.analytical))
    return found


def _same(rows: LearningRows, others: LearningRows) -> bool:
    """Whether both are of the same launches: a calibration may choose kernels, never rows."""
    return len(rows.y) == len(others.y) and bool(np.all(rows.frame["shape"] == others.frame["shape"]))
