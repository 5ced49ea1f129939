"""Products in 8 bits whose activations are quantised in the same measured time."""

from dataclasses import replace
from types import SimpleNamespace

import pandas as pd
import pytest

from dse.measured.protocol import find_protocol, protocols
from dse.measured.quantisation_passes import Pass, quantises, ways
from dse.measured.row_operator import operator
from dse.validation.time import validate_time
from dse.workload.operators.gemm_library import TUNED

ROW = {
    "source": "aiconfigurator",
    "device": "H100-SXM5-80GB",
    "op": "gemm",
    "dtype": "fp8",
    "m": 64,
    "n": 512,
    "k": 16384,
    "latency_us": 40.0,
    "notes": "",
}


@pytest.fixture
def table(tmp_path):
    """The same product in fp8, in bf16, and in fp8 by a source that nothing is known of."""
    path = tmp_path / "t.csv"
    rows = [ROW, ROW | {"dtype": "bf16"}, ROW | {"source": "mine"}]
    pd.DataFrame(rows).to_csv(path, index=False)
    return path


def splits(row: dict, how: str) -> set[str]:
    """Splits of k among the kernels of a row."""
    protocol = replace(find_protocol("aiconfigurator"), quantises=how)
    found = operator(SimpleNamespace(**row), 9.0, protocol, TUNED).candidates
    return {c.label.partition(" split-k ")[2] or "1" for c in found}


def test_every_harness_quantises_in_a_known_way():
    assert {h.quantises for h in protocols().values()} <= set(ways())


def test_only_products_in_fp8_are_quantised():
    protocol = find_protocol("aiconfigurator")
    assert quantises(SimpleNamespace(**ROW), protocol) == "tensor"
    assert quantises(SimpleNamespace(**ROW | {"dtype": "bf16"}), protocol) == ""
    assert quantises(SimpleNamespace(**ROW), find_protocol("unknown")) == ""


def test_a_product_whose_scale_is_the_tensors_does_not_split_k():
    assert splits(ROW, "tensor") == {"1"}
    assert splits(ROW, "static") == splits(ROW, "") > {"1", "2"}
    assert splits(ROW | {"dtype": "bf16"}, "tensor") > {"1", "2"}


def test_passes_read_16_bits_and_write_8():
    rows, columns = 64.0, 4096.0
    static, largest = (Pass(*of).kernel(rows, columns) for of in ((0, 1), (1, 0)))
    assert float(static.warm_bytes) == pytest.approx(2 * rows * columns)
    assert float(static.write_bytes) == pytest.approx(rows * columns)
    assert float(largest.write_bytes) == 0


def test_a_note_tells_what_was_timed_with_the_product(table):
    (note,) = (note for note in validate_time(table).notes if "no split-K" in note)
    assert note.startswith("fp8 products as aiconfigurator times them: with a pass that finds the activations' largest")


def test_a_row_takes_its_product_and_its_passes(table):
    found = validate_time(table)
    by_kind = {(row["source"], row["dtype"]): row for _, row in found.rows.iterrows()}
    fp8, bf16 = (by_kind["aiconfigurator", dtype] for dtype in ("fp8", "bf16"))
    alone = by_kind["mine", "fp8"]
    assert (fp8["quantises"], bf16["quantises"], alone["quantises"]) == ("tensor", "", "")
    assert fp8["predicted_us"] > alone["predicted_us"] - alone["overhead_us"] + 2 * fp8["overhead_us"]
    stacks = {(row["harness"], row["dtype"]): row["stack_us"] for row in found.document["worst"]}
    assert [way for way, stack in stacks.items() if "quantisation" in stack] == [("aiconfigurator", "fp8")]
    for row in found.document["worst"]:
        assert sum(row["stack_us"].values()) == pytest.approx(row["predicted_us"], rel=1e-4)
