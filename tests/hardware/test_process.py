"""Technology nodes and memory types: row order, densities, refusals."""

import numpy as np
import pytest

from dse.base.errors import DseError, InputError
from dse.base.package_tables import read_table
from dse.hardware.process import (
    MemoryTypes,
    Nodes,
    densities_at,
    memory_index,
    memory_names,
    node_column,
    node_index,
    node_names,
)


def test_row_order_is_what_the_presets_encode():
    older = ["tsmc_28", "samsung_14", "tsmc_16ff", "tsmc_12ffn", "tsmc_n10", "samsung_8n"]
    assert node_names() == [*older, "tsmc_n7", "tsmc_n5", "tsmc_4n", "tsmc_4np", "tsmc_n3e"]
    gddr = ["gddr5", "gddr5x", "gddr6", "gddr6x", "gddr7"]
    assert memory_names() == [*gddr, "hbm2", "hbm2e", "hbm3", "hbm3e", "hbm4"]


@pytest.mark.parametrize("field", ["logic_density", "sram_density", "analog_density"])
def test_densities_are_relative_to_n7_and_never_fall_along_tsmc(field):
    density = np.asarray(getattr(Nodes.from_table(), field))
    assert density[node_index("tsmc_n7")] == 1.0
    tsmc = [node_index(name) for name in node_names() if name.startswith("tsmc")]
    assert (np.diff(density[tsmc]) >= 0).all()


def test_logic_scales_most_and_analog_least():
    nodes = Nodes.from_table()
    newer = node_index("tsmc_n5")
    assert nodes.logic_density[newer] > nodes.sram_density[newer] > nodes.analog_density[newer] > 1


@pytest.mark.parametrize(
    ("name", "bits"), [("hbm2e", 128), ("hbm3e", 128), ("gddr6", 16), ("gddr6x", 16), ("gddr5x", 32)]
)
def test_channel_widths(name, bits):
    assert MemoryTypes.from_table().channel_bits[memory_index(name)] == bits


@pytest.mark.parametrize(
    ("lookup", "wrong", "hint"), [(node_index, "tsmc_n6", "tsmc_n7"), (memory_index, "hbm5", "hbm4")]
)
def test_an_unknown_name_is_refused_with_what_is_accepted(lookup, wrong, hint):
    with pytest.raises(InputError, match=rf"{wrong}.*{hint}"):
        lookup(wrong)


@pytest.mark.parametrize("table", ["process/nodes.csv", "process/memory.csv", "process/area.csv"])
def test_every_number_has_a_source_and_a_status(table):
    for row in read_table(table):
        assert row["source"], row
        assert row["status"] in {"measured", "derived", "fitted", "assumed"}, row


@pytest.mark.parametrize("name", ["tsmc_28", "tsmc_16ff", "tsmc_n7", "tsmc_4n"])
def test_interpolation_passes_through_the_measured_nodes(name):
    row = read_table("process/nodes.csv")[node_index(name)]
    between = densities_at(float(row["node_nm"]))
    assert between == pytest.approx({field: float(row[field]) for field in between})


def test_interpolation_is_a_straight_line_in_logarithms():
    between = densities_at((7 * 12) ** 0.5)["logic_density"]
    ends = densities_at(7.0)["logic_density"] * densities_at(12.0)["logic_density"]
    assert between == pytest.approx(ends**0.5)


@pytest.mark.parametrize("node_nm", [2.0, 3.0, 40.0])
def test_interpolation_beyond_what_dies_have_measured_is_refused(node_nm):
    with pytest.raises(InputError, match=rf"node_nm = {node_nm:g}.*from 4 to 28 nm"):
        densities_at(node_nm)


def test_a_table_that_misses_a_node_is_refused():
    with pytest.raises(DseError, match=r"held_out_dies\.csv"):
        node_column("process/held_out_dies.csv", "area_mm2")
