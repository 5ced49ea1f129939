"""The steps that a measured run took."""

import pytest

from dse.measured.network_runs.rows import predicted_runs
from tests.measured.network_runs.runs import MODEL, runs


def test_requests_beyond_the_memory_wait_for_their_turn():
    long = {"group": "x_Llama-2-7b-hf", "seq_q": 2048.0, "seq_kv": 2048.0}
    rows, _ = runs(long | {"batch": 16.0}, long | {"batch": 64.0})
    fits, waits = predicted_runs(MODEL, rows)[0]["predicted_us"]
    assert rows.steps[1][0].prompts < 64 and rows.steps[0][0].prompts == 16
    assert waits > 2.5 * fits
    assert rows.steps[1][0].runs == pytest.approx(64 / rows.steps[1][0].prompts)
