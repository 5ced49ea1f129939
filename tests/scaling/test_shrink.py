"""Scale models of a GPU record, the targets that are refused, and the timing model as their simulator."""

import jax.numpy as jnp
import pytest

from dse.base.errors import InputError
from dse.hardware.presets import load_gpu, preset_names
from dse.scaling.shrink import SHARED, refuse_disproportionate, shrink
from dse.scaling.simulate import fastest_kernel, instructions, simulated
from dse.timing.amali import Amali
from dse.workload.operators.gemm import Gemm, gemm_operator

H100 = load_gpu("h100_sxm")


def test_everything_shared_shrinks_and_nothing_else():
    quarter = shrink(H100, 33)
    for name, whole in H100.attributes().items():
        assert float(quarter.attribute(name)) == pytest.approx((0.25 if name in SHARED else 1.0) * float(whole))
    refuse_disproportionate(quarter, H100)
    assert float(quarter.tdp_w) == 0.25 * float(H100.tdp_w)


def test_a_scale_model_of_a_package_has_fewer_of_its_dies():
    values = {"dies": 4.0, "die_link_gbs": 900.0, "die_link_latency_ns": 80.0, "l2_partitions": 4.0}
    package = H100.with_attributes({name: jnp.asarray(value) for name, value in values.items()})
    half = shrink(package, 66)
    found = [float(half.attribute(name)) for name in values]
    assert found == [2, 900, 80, 2]
    refuse_disproportionate(half, package)
    with pytest.raises(InputError, match=r"dies would be 0\.5, which is no whole number; give 66 SMs"):
        shrink(half.with_attributes({"sm_count": jnp.asarray(132.0), "l2_slices": jnp.asarray(80.0)}), 33)


def test_misses_are_of_sectors_a_thousand_instructions():
    kernel = fastest_kernel(gemm_operator("g", Gemm(4096, 4096, 4096), (9.0, 9.0)), H100, Amali())
    (row,) = simulated({"gemm": kernel}, H100, (66, 132), Amali())
    traffic = float(Amali()(kernel, H100).dram_bytes)
    assert row.mpki[1] == pytest.approx(traffic / 32 / float(instructions(kernel)) * 1000)


@pytest.mark.parametrize(
    ("sms", "sentence"),
    [(50, "l2_slices would be 30.303, which is no whole number; give 33, 66, 99 SMs"), (0, "sm_count would be 0")],
)
def test_what_cannot_be_built_is_refused(sms, sentence):
    with pytest.raises(InputError) as refused:
        shrink(H100, sms)
    assert sentence in str(refused.value)


@pytest.mark.parametrize(
    ("attribute", "value"),
    [("l2_mib", 60.0), ("dram_bandwidth_gbs", 4800.0), ("l1_kib", 192.0), ("l2_latency_ns", 99.0)],
)
def test_disproportionate_targets_are_refused_by_name(attribute, value):
    target = H100.with_attributes({attribute: jnp.asarray(value)})
    with pytest.raises(InputError, match=f"{attribute} is {value:g}, in proportion it would be"):
        refuse_disproportionate(shrink(H100, 66), target)


def test_no_preset_is_a_proportional_edition_of_another_generation():
    with pytest.raises(InputError, match="covers proportional targets only"):
        refuse_disproportionate(load_gpu("a100_sxm_80gb"), H100)
    assert "h100_sxm" in preset_names()
