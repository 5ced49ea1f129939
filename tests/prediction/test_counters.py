"""A host's counters among the features: read from an export, joined by shape, judged with and without them."""

import csv

import numpy as np
import pandas as pd
import pytest

from dse.base.errors import InputError
from dse.prediction.counters import Counters, counter_study, with_counters
from dse.prediction.learning_rows import groups_of, load_learning_rows
from dse.prediction.table import read_measured
from dse.timing.amali import Amali
from tests.prediction.tables import SIZES, gemm_table

HIDDEN = np.random.default_rng(5).uniform(1.0, 4.0, 64)
"""What makes each shape slower, and only a counter shows."""

SHAPES = [(m, n, k) for m in (1, *SIZES[:3]) for n in SIZES for k in SIZES]


def export(path, shapes, us, hidden):
    """Write an export of a host's launches (a column a metric), each with two counters and a rate."""
    names = ["ID", "Kernel Name", "Block Size", "Grid Size", "thread Domain:Push/Pop_Range:PL_Type:PL_Value:CLR_Type",
             "gpu__time_duration.sum", "smsp__inst_executed.sum", "dram__bytes_read.sum", "sm__cycles_active.avg",
             "smsp__warps_launched.sum"]  # fmt: skip
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(names)
        rows.writerow(["", "", "", "", "", "us", "inst", "byte", "cycle", "warp"])
        for i, ((m, n, k), time, extra) in enumerate(zip(shapes, us, hidden, strict=True)):
            said = f"gemm m={m} n={n} k={k} dtype=fp16 device=V100-SXM2-16GB"
            rows.writerow([i, "kernel", "(128, 1, 1)", "(1, 1, 1)", said, f"{time:.4f}", f"{1e4 * time * extra:.0f}",
                           f"{2 * (m * k + k * n)}", "5", "64"])  # fmt: skip
    return path


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    """A target whose times hold what only the host's counter of instructions shows, and the host's export."""
    folder = tmp_path_factory.mktemp("counters")
    frame = pd.read_csv(gemm_table(folder / "t.csv", noise=0.0))
    target = frame["device"] == "H100-SXM5-80GB"
    assert [tuple(row) for row in frame.loc[target, ["m", "n", "k"]].to_numpy()] == SHAPES
    frame.loc[target, "latency_us"] *= HIDDEN
    frame.to_csv(folder / "t.csv", index=False)
    host = frame.loc[frame["device"] == "V100-SXM2-16GB", "latency_us"]
    rows, _ = load_learning_rows(read_measured(folder / "t.csv"), ["h100_sxm"], Amali())
    return groups_of(rows), export(folder / "host.csv", SHAPES, host, HIDDEN)


def test_counts_are_read_and_rates_are_not(case):
    counters = Counters.read(case[1])
    assert counters.names == ("dram__bytes_read.sum", "smsp__inst_executed.sum")  # warps_launched never varies
    assert (counters.device, len(counters.of)) == ("V100-SXM2-16GB", len(SHAPES))
    (rows,) = case[0].values()
    joined, names = with_counters(rows, counters)
    assert names == counters.names and len(joined.y) == len(rows.y)
    (m, n, k) = joined.frame.iloc[7][["m", "n", "k"]]
    place = SHAPES.index((m, n, k))
    assert joined.x[7, -3] == 2 * (m * k + k * n)
    instructions = 1e4 * joined.x[7, -4] / joined.per_unit[7] * HIDDEN[place]
    assert np.isclose(joined.x[7, -2], instructions, rtol=1e-3)
    assert np.array_equal(joined.x[:, -1], rows.analytical)


def test_a_counter_that_shows_what_else_is_hidden_takes_the_error_away(case):
    scores, notes = counter_study(case[0], Counters.read(case[1]), "h100_sxm", ("forest",))
    assert notes == []
    best = {used: min(r["e_out_families"]["error"] for r in scores if r["counters"] == used) for used in (0, 2)}
    assert best[2] < 0.7 * best[0], best


def test_an_export_without_counts_or_of_other_shapes_is_told(case, tmp_path):
    groups, path = case
    frame = pd.read_csv(path, dtype=str)
    frame.drop(columns=[c for c in frame if c.startswith(("smsp", "dram"))]).to_csv(tmp_path / "bare.csv", index=False)
    with pytest.raises(InputError, match=r"no metric that ends in \.sum stands with every kernel"):
        Counters.read(tmp_path / "bare.csv")
    other = export(tmp_path / "other.csv", [(3, 5, 7), (3, 5, 9)], [1.0, 2.0], [1.0, 2.0])
    scores, (note,) = counter_study(groups, Counters.read(other), "h100_sxm", ("ols",))
    assert scores == [] and "it holds the shapes of 0 of the target's 64 rows" in note
