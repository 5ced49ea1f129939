"""Errors in a calibration's file: their types, order and regimes."""

import pytest

from dse.base.errors import InputError
from dse.timing.error_quantiles import ErrorQuantiles, read_error_quantiles

ROW = {
    "implementation": "matrix",
    "op": "gemm",
    "dtype": "bf16",
    "regime": "all",
    "n": 40,
    "q10": -0.1,
    "q50": 0,
    "q90": 0.2,
}


def test_a_line_comes_back(tmp_path):
    assert read_error_quantiles(tmp_path, "residuals, number 1", ROW) == ErrorQuantiles(**ROW)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"q10": 0.9}, "q10, q50, q90 are 0.9, 0, 0.2; give them in order"),
        ({"q10": float("nan")}, "q10 is nan; give a log error from -10 to 10"),
        ({"q90": float("inf")}, "q90 is inf; give a log error"),
        ({"q90": 800.0}, "q90 is 800.0; give a log error"),
        ({"q10": "a"}, "q10 is 'a'; give a log error"),
        ({"n": "x"}, "n is 'x'; give a whole number of rows, 1 or more"),
        ({"n": 0}, "n is 0; give a whole number"),
        ({"n": True}, "n is True; give a whole number"),
        ({"regime": "under_10"}, "regime is 'under_10'; did you mean 'under_10us'"),
        ({"regime": ["all"]}, r"regime is \['all'\]; "),
        ({"implementation": "matrices"}, "implementation is 'matrices'; did you mean 'matrix'"),
        ({"op": 3}, "op is 3; give a text"),
        ({"fitted": 1}, "fitted is 1; give true or false"),
        ({"gpus": "h200"}, "'gpus' is no key of residuals, number 1; did you mean 'gpu'"),
    ],
)
def test_errors_that_make_no_interval_are_refused(tmp_path, change, words):
    with pytest.raises(InputError, match=words):
        read_error_quantiles(tmp_path / "mine.toml", "residuals, number 1", ROW | change)


@pytest.mark.parametrize("row", [3, {name: value for name, value in ROW.items() if name != "n"}])
def test_a_line_without_all_its_keys_is_refused(tmp_path, row):
    with pytest.raises(InputError, match=r"residuals, number 1 is .*; give implementation, op, dtype, regime, n, q10"):
        read_error_quantiles(tmp_path / "mine.toml", "residuals, number 1", row)
