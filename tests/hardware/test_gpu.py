"""The record: one class for one GPU and for many, and the quantities derived from its attributes."""

import jax
import jax.numpy as jnp
import pytest

from dse.base.errors import InputError
from dse.hardware.data_types import TENSOR_DTYPES
from dse.hardware.gpu import ATTRIBUTES, Gpu
from dse.hardware.presets import load_gpu, preset_sheet


def test_every_field_is_a_scalar_float_array():
    gpu = load_gpu("h100_sxm")
    for name, value in gpu.attributes().items():
        assert value.shape == () and jnp.issubdtype(value.dtype, jnp.floating), name
    numbers = preset_sheet("h100_sxm").numbers()
    assert float(gpu.dram_bandwidth_gbs) == numbers["dram_bandwidth_gbs"] == 3350


def test_a_batch_is_the_same_class():
    one, two = load_gpu("h100_sxm"), load_gpu("t4")
    both = jax.tree.map(lambda a, b: jnp.stack([a, b]), one, two)
    assert isinstance(both, Gpu)
    assert both.l2_bytes.tolist() == [float(one.l2_bytes), float(two.l2_bytes)]


def test_derived_quantities_by_hand():
    gpu = load_gpu("h100_sxm")
    assert float(gpu.l2_bytes) == 50 * 2**20
    assert float(gpu.dram_bytes_per_ns) == pytest.approx(3350 * 0.899)
    assert float(gpu.l2_bytes_per_ns) == pytest.approx(132 * 36 * 1.98)  # less than 80 slices of 64 B
    assert (float(gpu.tensor_clock_ghz), float(gpu.boost_clock_ghz)) == pytest.approx((1.83, 1.98))


def test_initiation_intervals_are_a_warp_over_the_lanes_of_a_subcore():
    passes = {name: float(value) for name, value in load_gpu("a100_sxm_80gb").warp_passes.items()}
    assert passes == {"fp32": 2.0, "int32": 2.0, "sfu": 8.0, "fp64": 4.0}  # AMALI Eq. (14) on the A100


def test_tensor_rates_stand_by_data_type_and_are_attributes_by_their_names():
    gpu = load_gpu("h100_sxm")
    assert set(gpu.tensor_fma) == set(TENSOR_DTYPES)
    assert float(gpu.tensor_fma["fp8"]) == float(gpu.attribute("tensor_fma_fp8")) == 1024
    faster = gpu.with_attributes({"tensor_fma_fp8": 2048.0})
    changed = [name for name, value in faster.attributes().items() if float(value) != float(gpu.attribute(name))]
    assert changed == ["tensor_fma_fp8"] and faster.tensor_fma["fp8"] == 2048.0


def test_a_record_is_made_of_all_attributes_whatever_stands_for_their_values():
    places = dict(zip(ATTRIBUTES, range(len(ATTRIBUTES)), strict=True))
    assert Gpu.from_attributes(places).attributes() == places
    assert Gpu.from_attributes(dict.fromkeys(ATTRIBUTES)).tensor_fma == dict.fromkeys(TENSOR_DTYPES)


def test_the_tensor_clock_never_exceeds_the_boost_clock():
    numbers = preset_sheet("h100_sxm").numbers() | {"boost_clock_mhz": 1000.0}
    assert float(Gpu.from_numbers(numbers).tensor_clock_ghz) == pytest.approx(1.0)


def test_a_gpu_is_shown_by_what_tells_it_apart_alone_and_in_a_batch():
    gpu = load_gpu("h100_sxm")
    assert repr(gpu).startswith("Gpu(sm_count=132, boost_clock_mhz=1980, tensor_fma_bf16=512, l2_mib=50, ")
    batch = repr(jax.tree.map(lambda x: jnp.stack([x, x]), gpu))
    assert "sm_count=f32[2]" in batch and "\n" not in batch


@pytest.mark.parametrize(
    ("numbers", "sentence"),
    [
        (5, "numbers = 5 is not accepted; give the number of every attribute"),
        ({"sm_coun": 132}, "numbers: 'sm_coun' is not an attribute of a GPU; did you mean 'sm_count'"),
        ({"sm_count": 132}, "numbers: compute_capability, .* missing"),
    ],
)
def test_numbers_that_make_no_gpu_are_refused(numbers, sentence):
    with pytest.raises(InputError, match=f"^{sentence}"):
        Gpu.from_numbers(numbers)
