"""Energy factors of nodes and memory types: against their sources, bounds, order, and what a record may look up."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dse import load_gpu
from dse.base.errors import InputError
from dse.base.package_tables import read_table
from dse.hardware.node_power import MemoryPower, NodePower
from dse.hardware.process import memory_index, memory_names, node_index, node_names

# Stillmaker & Baas, Integration 58 (2017), table of the energy polynomial a2 V^2 + a1 V + a0, as coded in hwcomponents.
STILLMAKER = {
    "tsmc_16ff": (0.2958, -0.1241, 0.03024),
    "tsmc_n10": (0.2068, -0.09311, 0.02375),
    "tsmc_n7": (0.1776, -0.09097, 0.02447),
}


def nodes() -> NodePower:
    return NodePower.from_table()


def memory() -> MemoryPower:
    return MemoryPower.from_table()


@pytest.mark.parametrize("node", STILLMAKER)
def test_the_switching_energy_is_that_of_stillmaker_and_baas(node):
    energy = {name: np.polyval(coefficients, 0.8) for name, coefficients in STILLMAKER.items()}
    expected = energy[node] / energy["tsmc_n7"]
    assert float(nodes().switching_energy(node_index(node))) == pytest.approx(expected, rel=0.01)


def test_pascal_to_volta_is_what_accelwattch_scales_by():
    """Its Pascal sheet multiplies dynamic power by 0.82/0.77 (docs/model/power_accelwattch.md 7)."""
    volta = NodePower.from_table(reference="tsmc_12ffn")
    assert float(volta.switching_energy(node_index("tsmc_16ff"))) == pytest.approx(0.82 / 0.77, rel=0.01)


@pytest.mark.parametrize("reference", ["tsmc_n7", "tsmc_12ffn", "tsmc_4n"])
def test_the_reference_node_is_one(reference):
    power = NodePower.from_table(reference)
    index = node_index(reference)
    assert float(power.switching_energy(index)) == pytest.approx(1)
    assert float(power.leakage(index)) == pytest.approx(1)


def test_an_unknown_reference_is_refused():
    with pytest.raises(InputError, match=r"tsmc_n6.*tsmc_n7"):
        NodePower.from_table("tsmc_n6")


def test_energy_never_grows_from_an_older_node_to_a_newer_one():
    energy = nodes().energy[jnp.asarray([node_index(n) for n in node_names() if n.startswith("tsmc")])]
    assert (np.diff(energy) <= 0).all()


@pytest.mark.parametrize("row", read_table("process/node_power.csv"), ids=lambda row: row["process"])
def test_a_nodes_values_lie_within_their_bounds(row):
    for name in ("energy", "leakage_per_mm2"):
        assert 0 < float(row[f"{name}_low"]) <= float(row[name]) <= float(row[f"{name}_high"])
    assert 0.6 < float(row["voltage_v"]) < 1.1


@pytest.mark.parametrize("row", read_table("process/memory_power.csv"), ids=lambda row: row["dram_type"])
def test_a_memorys_values_lie_within_their_bounds(row):
    for name, bounds in (("access_pj_per_bit", "access"), ("idle_w_per_gb", "idle")):
        assert 0 < float(row[f"{bounds}_low"]) <= float(row[name]) <= float(row[f"{bounds}_high"])


def test_stacked_memory_spends_less_a_bit_than_graphics_memory():
    gpu = load_gpu("h100_sxm")
    of_type = {name: gpu.with_attributes({"dram_type": jnp.asarray(memory_index(name))}) for name in memory_names()}
    energy = {name: float(memory().access_energy(one)) for name, one in of_type.items()}
    stacked = [value for name, value in energy.items() if name.startswith("hbm")]
    assert max(stacked) < min(value for name, value in energy.items() if not name.startswith("hbm"))


def test_a_batch_of_records_looks_up_what_one_does():
    gpus = [load_gpu(name) for name in ("v100_sxm2_16gb", "rtx_3090", "h100_sxm")]
    batch = jax.tree.map(lambda *leaves: jnp.stack(leaves), *gpus)
    looked_up = jax.jit(jax.vmap(nodes().switching_energy))(batch.process)
    np.testing.assert_allclose(looked_up, [float(nodes().switching_energy(gpu.process)) for gpu in gpus])
    looked_up = jax.jit(jax.vmap(memory().access_energy))(batch)
    np.testing.assert_allclose(looked_up, [float(memory().access_energy(gpu)) for gpu in gpus])


STATUSES = {"published", "derived", "prior", "reference"}


@pytest.mark.parametrize(
    ("table", "fields"),
    [
        ("process/node_power.csv", [("source", "status"), ("leakage_source", "leakage_status")]),
        ("process/memory_power.csv", [("source", "status"), ("idle_source", "idle_status")]),
    ],
)
def test_every_number_has_a_source_and_a_status(table, fields):
    for row in read_table(table):
        for source, status in fields:
            assert row[source], row
            assert row[status] in STATUSES, row
            assert (
                row[status] != "prior" or "prior" in row[source] or "taken as" in row[source] or "times" in row[source]
            )


def test_a_model_can_be_made_while_a_program_is_traced():
    made = jax.jit(lambda: (NodePower.from_table(), MemoryPower.from_table()))()
    jax.tree.map(np.testing.assert_array_equal, made, (nodes(), memory()))
