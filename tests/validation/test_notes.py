"""Notes of a validation: whose calibration was taken."""

from pathlib import Path

import pandas as pd

from dse.validation.time import validate_time
from tests.golden.inputs import SHIPPED


def test_a_table_of_whole_runs_alone_says_whose_calibration_it_has(tmp_path: Path) -> None:
    """None of its rows is a kernel's."""
    pd.read_csv(SHIPPED / "networks.csv").head(1).to_csv(tmp_path / "runs.csv", index=False)
    notes = validate_time(tmp_path / "runs.csv").notes
    assert any(note.startswith("A100-SXM4-80GB: ") and "calibration" in note for note in notes)
