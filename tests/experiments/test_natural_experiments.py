"""Pairs of real GPUs: rows of the same shape, scores by hand, and a quick run of the experiment."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kendalltau

from dse.calibration.timing.fit import parameters
from dse.hardware.presets import load_sheet
from dse.measured.protocol import Protocol
from dse.workload.operators.gemm_library import REPRESENTATIVE, Library
from experiments.common.modules import EXPERIMENTS, experiment

FOLDER = "021_natural_experiments"
sys.path.insert(0, str(EXPERIMENTS / FOLDER))  # its modules import each other by their names
ablation = experiment(FOLDER, "ablation.py")
predictions = ablation.of_pairs
scores = experiment(FOLDER, "scores.py")
matched = experiment(FOLDER, "matched.py")
run = experiment(FOLDER)


def test_a_ratio_scores_by_its_log_error_and_its_side_of_one() -> None:
    found = scores.score(np.array([2.0, 0.5, 1.2, 1.0]), np.array([1.0, 0.8, 1.2, 1.05]))
    assert found.log_error == pytest.approx((np.log(2) + np.log(1.6) + 0 + np.log(1.05)) / 4)
    assert found.right_side == 1.0  # two rows have a side: 0.8 and 1.2
    assert scores.score(np.array([1.2, 0.7]), np.array([0.5, 0.5])).right_side == 0.5


def test_tau_is_scipys_where_nothing_is_tied() -> None:
    times = np.exp(np.random.default_rng(1).normal(size=(2, 40, 5)))
    ours = scores.tau_b(*times)
    compared = 0
    for i in range(40):
        logs = np.log(times[:, i])
        if all(np.abs(np.subtract.outer(x, x))[np.triu_indices(5, 1)].min() > scores.TIED for x in logs):
            assert ours[i] == pytest.approx(kendalltau(logs[0], logs[1]).statistic)
            compared += 1
    assert compared > 5


def test_members_within_five_percent_are_tied() -> None:
    tied, ordered = np.array([[1.0, 1.04, 2.0]]), np.array([[1.0, 1.5, 2.0]])
    assert scores.tau_b(tied, tied) == pytest.approx(1.0)
    assert scores.tau_b(tied, ordered) == pytest.approx(2 / np.sqrt(2 * 3))
    assert np.isnan(scores.tau_b(ordered, np.ones((1, 3))))


@pytest.mark.parametrize("pair", matched.pairs(), ids=lambda pair: f"{pair.kind} {pair.name}")
def test_rows_of_a_pair_have_the_same_shape_and_stand_on_their_own_gpus(pair) -> None:
    one, other = matched.matched(pair, 60)
    shape = [
        c for c in ("op", "batch", "m", "n", "k", "rows", "cols", "heads", "kv_heads", "seq_q", "seq_kv") if c in one
    ]
    pd.testing.assert_frame_equal(one[shape], other[shape], check_dtype=False)
    assert set(one["device"]) == {pair.one} and set(other["device"]) == {pair.other}
    assert set(one["dtype"]) == {pair.dtype} and set(other["dtype"]) == {pair.of or pair.dtype}
    assert min(one["latency_us"].min(), other["latency_us"].min()) >= matched.LEAST_US
    few = pd.read_csv(EXPERIMENTS / FOLDER / "few_rows.csv").set_index("pair")["rows"]
    assert few[pair.name] <= len(one) < 50 if pair.name in few.index else 50 <= len(one) <= 60


def test_a_side_that_names_no_library_is_compared_with_the_middle_of_all() -> None:
    """bf16 rows are medians over frameworks; those of fp8 in blocks are a framework's each."""
    pair = next(p for p in matched.pairs() if p.name == "fp8_block / bf16 on H100")
    one, other = matched.matched(pair, 10**6)
    assert one["notes"].astype(str).str.extract(matched.LIBRARY)[0].nunique() > 1
    assert not one[["m", "n", "k"]].duplicated().any() and not other[["m", "n", "k"]].duplicated().any()
    two_types = next(p for p in matched.pairs() if p.name == "nvfp4 / fp8 on B200")
    libraries = [side["notes"].astype(str).str.extract(matched.LIBRARY)[0] for side in matched.matched(two_types, 60)]
    assert libraries[0].notna().all() and libraries[0].equals(libraries[1])


def test_a_pair_that_is_not_nearer_says_by_how_much() -> None:
    assert run.margin({"ours": 0.1, "sheet": 0.25, "pooled": 0.15}) == "0.050"
    assert run.margin({"ours": 0.1, "sheet": 0.25, "pooled": 0.09}) == "**not, by 0.010**"
    text = (EXPERIMENTS / FOLDER / "README.md").read_text(encoding="utf-8")
    lines = pd.read_csv(EXPERIMENTS / FOLDER / "scores.csv").to_dict("records")
    for line in lines:
        row = next(row for row in text.splitlines() if row.startswith(f"| {line['pair']} |"))
        assert f"| {run.margin(line)} |" in row


@pytest.mark.slow
def test_a_quick_run_prints_every_kind_of_score() -> None:
    command = [sys.executable, str(EXPERIMENTS / FOLDER / "run.py"), "--quick"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=1800)
    assert "Kendall's tau-b" in done.stdout and "A100 / H100" in done.stdout and "mean of pairs" in done.stdout


@pytest.mark.parametrize("page", ["README.md", "docs/accuracy.md"])
def test_pages_tell_the_scores_by_kind(page: str) -> None:
    lines = scores.by_kind(pd.read_csv(EXPERIMENTS / FOLDER / "scores.csv"))
    assert len(lines) == 2 + 4 + 1
    assert "\n".join(lines) in (EXPERIMENTS.parent / page).read_text(encoding="utf-8")


def test_a_change_that_is_put_back_is_back_afterwards() -> None:
    before = [parameters("matrix"), Library.on, Protocol.of_zeros, predictions.load_sheet]
    for change in ablation.CHANGES:
        with change.put_back():
            pass
    assert before == [parameters("matrix"), Library.on, Protocol.of_zeros, predictions.load_sheet]


def test_what_a_change_puts_back() -> None:
    library = REPRESENTATIVE
    with ablation.pairs_of_ctas():
        assert library.on([16], registers=1e6).clusters == (2,) and not library.on([16], registers=1e6).larger_tiles
    with ablation.kept_by_fit():
        assert next(p for p in parameters("matrix") if p.name == "kept").stage == "memory"
    with ablation.without_ecc():
        assert predictions.load_sheet("a40").numbers()["dram_sustained_fraction"] == 0.977
        assert predictions.load_sheet("h100_sxm") == load_sheet("h100_sxm")
    assert next(p for p in parameters("matrix") if p.name == "kept").stage == "fixed"


def test_types_that_were_never_fitted_have_published_tiles_and_the_costs_of_16_bits() -> None:
    shipped = predictions.narrow_kernels("fp8", "fp8", "hopper", "vllm")
    with predictions.types_never_fitted():
        found = predictions.gemm.narrow_kernels("fp8", "fp8", "hopper", "trtllm-1.3.0")
        assert found == shipped._replace(implementation="") and found.tiles and shipped.implementation
        assert predictions.gemm.narrow_kernels("bf16", "bf16", "hopper") is None
        with ablation.tiles_of_16_bits():
            assert predictions.gemm.narrow_kernels("fp8", "fp8", "hopper") is None
    assert predictions.gemm.narrow_kernels("fp8", "fp8", "hopper", "vllm") == shipped


def test_every_changed_coefficient_names_what_set_it() -> None:
    found = ablation.coefficients()
    assert len(found) == len(ablation.SET_BY) + len(ablation.WITHOUT_ECC)
    assert found["set by"].str.len().min() > 40
