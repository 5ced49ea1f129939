"""What protocols add: a device's own host, a board's own floor, loops that read the power."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from dse.base.package_tables import read_table
from dse.base.skipped_rows import Skipped
from dse.hardware.presets import find_preset, gpu_from_mapping
from dse.measured.device_models import device_models
from dse.measured.protocol import protocols
from dse.measured.protocol_overheads import ANY, host_slowness, on_host, overhead_of
from dse.measured.timed_rows import blocks
from dse.timing.calibration import SHARED, load_timing_calibration
from dse.validation.error_quantiles import errors_of
from dse.validation.group_errors import interval_of
from tests.measured.test_row_operator import product


def test_the_host_of_an_eager_product_is_a_devices_own_where_it_was_fitted():
    protocol = protocols()["neusight"]
    fitted = overhead_of(product(""), protocol)
    assert fitted != (protocol.overhead_us, 0.0)
    unknown = overhead_of(SimpleNamespace(**vars(product("")) | {"device": "L4"}), protocol)
    known = [row for row in read_table("calibration/operator_overheads.csv") if row["op"] == "bmm"]
    mine = [float(row["overhead_us"]) for row in known if row["device"] != ANY]
    assert len(mine) == 5
    assert unknown[0] == pytest.approx(np.exp(np.mean(np.log(mine))), rel=1e-4)  # the mean of the known hosts


def test_the_floor_of_a_graph_is_a_boards_own_where_it_is_stated():
    protocol = protocols()["aiconfigurator"]
    by_name, by_preset = (overhead_of(SimpleNamespace(device=d, op="gemm"), protocol) for d in ("B200-SXM", "b200"))
    assert by_name == by_preset != (protocol.overhead_us, 0.0)
    assert overhead_of(SimpleNamespace(device="H100-SXM5-80GB", op="gemm"), protocol) == (protocol.overhead_us, 0.0)
    assert overhead_of(SimpleNamespace(device="B200-SXM", op="attn_decode"), protocol) == (protocol.overhead_us, 0.0)


def test_a_host_that_is_known_from_its_products_alone_has_the_others_floors_as_slow_as_it_is():
    protocol = protocols()["neusight"]

    def floor(device):
        return overhead_of(SimpleNamespace(device=device, op="add"), protocol)

    hosts = ("A100-PCIE-40GB", "P100-PCIE-16GB", "T4", "V100-PCIE-32GB")
    known = {device: floor(device) for device in hosts}
    slow = {device: host_slowness("neusight", device) or np.nan for device in (*hosts, "H100-SXM5-80GB")}
    scaled = [known[device][0] / slow[device] for device in hosts]
    assert floor("H100-SXM5-80GB")[0] == pytest.approx(slow["H100-SXM5-80GB"] * np.exp(np.mean(np.log(scaled))))
    stated = [row for row in read_table("calibration/vector_overheads.csv") if row["op"] == "add"]
    assert {device: pair[0] for device, pair in known.items()} == {
        row["device"]: float(row["overhead_us"]) for row in stated if row["device"] in hosts
    }  # a host's own floor stays
    for one in hosts:  # the products of a host say what its vector kernels stand at, of hosts that differ by 1.7
        others = {device: pair for device, pair in known.items() if device != one}
        assert on_host(others, "neusight", one)[0] == pytest.approx(known[one][0], rel=0.2)


def test_a_host_of_which_nothing_is_known_is_a_mean_one():
    assert host_slowness("neusight", "L4") is host_slowness("unknown", "T4") is None
    assert on_host({"T4": (20.0, 4.0), "L4": (80.0, 6.0)}, "unknown", "V100-PCIE-32GB") == pytest.approx((40.0, 5.0))


@pytest.mark.parametrize("op", ["attn_decode", "attn_prefill"])
def test_attention_in_loops_that_read_the_power_has_an_overhead_of_its_own(op):
    protocol = protocols()["aiconfigurator"]
    row = {"device": "H200-SXM-141GB", "op": op}
    plain, powered, unread = (overhead_of(SimpleNamespace(**row, power_w=w), protocol) for w in (0.0, 400.0, np.nan))
    assert plain == unread == (protocol.overhead_us, 0.0)
    assert powered[0] > plain[0]
    product = SimpleNamespace(device="H200-SXM-141GB", op="gemm", power_w=400.0)
    assert overhead_of(product, protocol) == (protocol.overhead_us, 0.0)


TABLES = ("vector_overheads", "operator_overheads")


@pytest.mark.parametrize("table", TABLES)
def test_every_host_of_the_tables_is_a_presets_and_stands_once(table):
    rows = read_table(f"calibration/{table}.csv")
    keys = [(row["harness"], find_preset(row["device"]) or row["device"], row["op"]) for row in rows]
    assert len(set(keys)) == len(keys)
    assert {device for _, device, _ in keys if find_preset(device) is None} == {ANY}


OWN = {"base": "a100_pcie_40gb", "sm_count": 107}


def predicted_by(device: str, gpu: str | None):
    """The overhead of an eager softmax, the calibration's name for its GPU, and the interval of its error."""
    shape = {"rows": 4096.0, "cols": 512.0, "latency_us": 40.0}
    row = {"device": device, "op": "softmax", "dtype": "fp32", "source": "neusight", "group": "", **shape}
    frame = pd.DataFrame([row])
    models, _ = device_models(frame, gpu=gpu)
    used = models[device]
    (timed,) = blocks(frame, {device: used.sheet}, None, Skipped())
    assert used.calibration is not None
    called = used.calibration.called(used.sheet)
    judged = errors_of(timed.table.assign(implementation="pytorch_vector"), np.array([40.0]), called)
    low, high, *_ = interval_of(judged, used.calibration, called, "softmax", "fp32")
    return float(timed.table["overhead_us"].iloc[0]), float(low[0]), float(high[0])


@pytest.mark.parametrize(
    "device, gpu",
    [
        ("a100_pcie_40gb", None),
        ("A100 PCIe 40GB", None),
        ("NVIDIA A100-PCIE-40GB", None),
        ("my board", "a100_pcie_40gb"),
        ("my board", "A100 PCIe 40GB"),
        ("T4", "a100_pcie_40gb"),
    ],
)
def test_a_gpu_has_its_hosts_overhead_by_any_name_and_by_the_option(device, gpu):
    assert predicted_by(device, gpu) == predicted_by("A100-PCIE-40GB", None)


@pytest.mark.parametrize("name", ["mine", "a100_pcie_40gb"])
@pytest.mark.parametrize("device", ["my board", "A100-PCIE-40GB", "a100_pcie_40gb"])
def test_a_gpu_of_ones_own_has_the_overhead_and_the_interval_of_unknown_hosts(name, device, tmp_path):
    path = tmp_path / f"{name}.toml"
    path.write_text("".join(f"{key} = {value!r}\n" for key, value in OWN.items()))
    rows = read_table("calibration/vector_overheads.csv")
    unknown = [r for r in rows if (r["harness"], r["device"], r["op"]) == ("neusight", ANY, "softmax")]
    overhead, *ends = predicted_by(device, str(path))
    assert overhead == float(unknown[0]["overhead_us"])
    assert (overhead, *ends) == predicted_by("L4", None)


def test_the_errors_of_a_preset_are_no_others_of_its_name():
    shared = load_timing_calibration(SHARED)
    changed, same = (
        gpu_from_mapping(what, "x", name)
        for what, name in ((OWN, "a100_pcie_40gb"), ({"base": "a100_pcie_40gb"}, "mine"))
    )
    assert find_preset(shared.called(changed)) is None
    assert shared.called(same) == "a100_pcie_40gb"
