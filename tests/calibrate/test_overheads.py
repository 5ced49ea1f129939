"""What ways of measuring add: a device's own host, a board's own floor, loops that read the power."""

from types import SimpleNamespace

import numpy as np
import pytest

from dse.calibrate.overheads import ANY, overhead_of
from dse.tables import read_table
from dse.workload.harness import harnesses
from tests.workload.test_measured_operator import product


def test_the_host_of_an_eager_product_is_a_devices_own_where_it_was_fitted():
    harness = harnesses()["neusight"]
    fitted = overhead_of(product(""), harness)
    assert fitted != (harness.overhead_us, 0.0)
    unknown = overhead_of(SimpleNamespace(**vars(product("")) | {"device": "L4"}), harness)
    known = [row for row in read_table("calibration/operator_overheads.csv") if row["op"] == "bmm"]
    mine = [float(row["overhead_us"]) for row in known if row["device"] != ANY]
    assert len(mine) == 5
    assert unknown[0] == pytest.approx(np.exp(np.mean(np.log(mine))), rel=1e-4)  # the mean of the known hosts


def test_the_floor_of_a_graph_is_a_boards_own_where_it_is_stated():
    harness = harnesses()["aiconfigurator"]
    by_name, by_preset = (overhead_of(SimpleNamespace(device=d, op="gemm"), harness) for d in ("B200-SXM", "b200"))
    assert by_name == by_preset != (harness.overhead_us, 0.0)
    assert overhead_of(SimpleNamespace(device="H100-SXM5-80GB", op="gemm"), harness) == (harness.overhead_us, 0.0)
    assert overhead_of(SimpleNamespace(device="B200-SXM", op="attn_decode"), harness) == (harness.overhead_us, 0.0)


@pytest.mark.parametrize("op", ["attn_decode", "attn_prefill"])
def test_attention_in_loops_that_read_the_power_has_an_overhead_of_its_own(op):
    harness = harnesses()["aiconfigurator"]
    row = {"device": "H200-SXM-141GB", "op": op}
    plain, powered, unread = (overhead_of(SimpleNamespace(**row, power_w=w), harness) for w in (0.0, 400.0, np.nan))
    assert plain == unread == (harness.overhead_us, 0.0)
    assert powered[0] > plain[0]
    product = SimpleNamespace(device="H200-SXM-141GB", op="gemm", power_w=400.0)
    assert overhead_of(product, harness) == (harness.overhead_us, 0.0)
