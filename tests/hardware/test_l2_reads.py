"""What SMs read of the L2 together: presets follow from public read streams, by SMs and not by slices."""

from math import exp, log
from statistics import mean, pstdev

import pytest

from dse.base.package_tables import read_table
from dse.hardware.presets import load_gpu, preset_names

READS = {row["preset"]: row for row in read_table("process/l2_reads.csv")}

DIES = {row["preset"]: row["chip"] for row in read_table("gpus/index.csv")}


def an_sm(preset: str) -> float:
    """What an SM reads in a cycle of the L2's clock [B]."""
    gpu = load_gpu(preset)
    return float(READS[preset]["gbs"]) * 1e3 / float(gpu.l2_clock_mhz) / float(gpu.sm_count)


def parts(die: str) -> list[str]:
    return [name for name, row in READS.items() if row["die"] == die]


@pytest.mark.parametrize("die", sorted({row["die"] for row in READS.values()}))
def test_every_part_of_a_die_has_the_mean_of_those_that_were_read(die):
    expected = exp(mean(log(an_sm(name)) for name in parts(die)))
    for name in preset_names():
        if DIES[name] == die:
            assert float(load_gpu(name).l2_crossbar_bytes_per_cycle) == pytest.approx(expected, rel=0.006)


@pytest.mark.parametrize("preset", READS)
def test_the_bandwidth_of_the_l2_is_what_was_read(preset):
    assert float(load_gpu(preset).l2_bytes_per_ns) == pytest.approx(float(READS[preset]["gbs"]), rel=0.05)


def test_parts_of_one_die_agree_by_sms_and_not_by_slices():
    def spread(of):
        return pstdev([log(of(name)) for name in parts("GH100")])

    def a_slice(name):
        gpu = load_gpu(name)
        return float(READS[name]["gbs"]) / float(gpu.l2_clock_mhz) / float(gpu.l2_slices)

    assert spread(an_sm) < 0.035
    assert spread(a_slice) > 2 * spread(an_sm)


def test_the_narrower_of_slices_and_network_decides():
    gpu = load_gpu("h100_sxm")
    slices, network = 80 * 64 * 1.98, 132 * 36 * 1.98
    assert float(gpu.l2_bytes_per_ns) == pytest.approx(network)
    assert float(gpu.with_attributes({"l2_crossbar_bytes_per_cycle": 64.0}).l2_bytes_per_ns) == pytest.approx(slices)
