"""Which axes decide an attribute, through links of links."""

from dse.hardware.schema import gpu_schema
from dse.space.axis import make_axis
from dse.space.expression import parse_expression
from dse.space.links import deciding

AXES = [make_axis(gpu_schema()[name], [64, 96], "here") for name in ("sm_count", "l2_mib", "dram_gb")]
LINKS = [
    (name, parse_expression(text, "here"))
    for name, text in (("l2_slices", "2 * l2_mib"), ("dram_bus_bits", "32 * l2_slices + base.sm_count"))
]


def test_links_of_links_are_followed_to_their_axes():
    assert [axis.name for axis in deciding(AXES, LINKS, ["dram_bus_bits"])] == ["l2_mib"]
    assert [axis.name for axis in deciding(AXES, LINKS, ["l2_slices", "dram_gb"])] == ["l2_mib", "dram_gb"]
    assert deciding(AXES, LINKS, ["tdp_w"]) == []
