"""Die areas against published dies: whole dies, GA100's blocks, and what must grow the area."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dse.hardware.area import COMPONENTS, DieArea
from dse.hardware.process import memory_index, node_index

COMMON = {
    "sm_enabled_fraction": 1.0,
    "subcores_per_sm": 4.0,
    "issue_rate": 1.0,
    "registers_per_sm": 65536.0,
    "l1_kib": 128.0,
    "l1_bytes_per_cycle": 128.0,
    "fp32_lanes": 128.0,
    "int32_lanes": 64.0,
    "fp64_lanes": 2.0,
    "sfu_lanes": 16.0,
    "tensor_cores_per_sm": 4.0,
    "l2_enabled_fraction": 1.0,
    "l2_slice_bytes_per_cycle": 64.0,
    "l2_port_bytes_per_cycle": 64.0,
    "nvlink_gbs": 0.0,
    "pcie_gbs": 32.0,
} | {f"tensor_fma_{kind}": 0.0 for kind in ("fp64", "tf32", "bf16", "fp16", "fp8", "int8", "fp4")}


def full_die(process: str, dram_type: str, tensor: dict[str, float], **attributes: float) -> dict[str, float]:
    """Attributes of a whole die; the tensor rates are FMA/cycle/tensor core."""
    rates = {f"tensor_fma_{kind}": rate for kind, rate in tensor.items()}
    names = {"process": float(node_index(process)), "dram_type": float(memory_index(dram_type))}
    return COMMON | names | rates | attributes


AMPERE = {"fp64": 16.0, "tf32": 128.0, "bf16": 256.0, "fp16": 256.0, "int8": 512.0}
HOPPER = {kind: 2 * rate for kind, rate in AMPERE.items()} | {"fp8": 1024.0}
ADA = {"tf32": 64.0, "bf16": 128.0, "fp16": 128.0, "fp8": 256.0, "int8": 256.0}
GEFORCE_AMPERE = {"tf32": 32.0, "bf16": 128.0, "fp16": 128.0, "int8": 256.0}
TURING = {"fp16": 64.0, "int8": 128.0}

TURING_SM = {
    "l1_kib": 96.0,
    "fp32_lanes": 64.0,
    "tensor_cores_per_sm": 8.0,
    "l2_slice_bytes_per_cycle": 32.0,
    "pcie_gbs": 16.0,
}
# Published SM, L2, bus and link counts of the whole dies (NVIDIA whitepapers, TechPowerUp), slices by the rule of two a
# memory channel; GP102's 96 KiB of shared memory and 48 KiB of L1 count together.
DIES = {
    "GP102": (471.0, full_die("tsmc_16ff", "gddr5x", {}, sm_count=30, l2_mib=3, l2_slices=24, dram_bus_bits=384,
              l1_kib=144, int32_lanes=128, fp64_lanes=4, sfu_lanes=32, l2_slice_bytes_per_cycle=32, pcie_gbs=16)),
    "GV100": (815.0, full_die("tsmc_12ffn", "hbm2", {"fp16": 64.0}, **TURING_SM | {"l1_kib": 128.0}, sm_count=84,
              fp64_lanes=32, l2_mib=6, l2_slices=64, dram_bus_bits=4096, nvlink_gbs=150)),
    "TU106": (445.0, full_die("tsmc_12ffn", "gddr6", TURING, **TURING_SM, sm_count=36, l2_mib=4, l2_slices=32,
              dram_bus_bits=256)),
    "TU104": (545.0, full_die("tsmc_12ffn", "gddr6", TURING, **TURING_SM, sm_count=48, l2_mib=4, l2_slices=32,
              dram_bus_bits=256, nvlink_gbs=25)),
    "GA102": (628.0, full_die("samsung_8n", "gddr6x", GEFORCE_AMPERE, sm_count=84, l2_mib=6, l2_slices=48,
              dram_bus_bits=384, nvlink_gbs=56, l2_slice_bytes_per_cycle=32)),
    "GA100": (826.0, full_die("tsmc_n7", "hbm2e", AMPERE, sm_count=128, l1_kib=192, fp32_lanes=64, fp64_lanes=32,
              l2_mib=48, l2_slices=96, dram_bus_bits=6144, nvlink_gbs=300)),
    "GH100": (814.0, full_die("tsmc_4n", "hbm3", HOPPER, sm_count=144, l1_kib=256, fp64_lanes=64, l2_mib=60,
              l2_slices=96, dram_bus_bits=6144, nvlink_gbs=450, pcie_gbs=64)),
    "AD102": (609.0, full_die("tsmc_4n", "gddr6x", ADA, sm_count=144, l2_mib=96, l2_slices=48, dram_bus_bits=384)),
    "AD104": (294.0, full_die("tsmc_4n", "gddr6", ADA, sm_count=60, l2_mib=48, l2_slices=24, dram_bus_bits=192)),
}  # fmt: skip

SM_COMPONENTS = ("sm_control", "register_file", "l1_shared", "fp32_int32", "fp64", "tensor_core")
# LLMCompass@2e015fd2 ae/figure6/real_hardware/die_area.csv [mm2]
GA100_BLOCKS = {
    SM_COMPONENTS: 476.25,
    ("noc",): 76.44,
    ("l2",): 119.31,
    ("memory_phy",): 58.0,
    ("memory_controller",): 31.77,
    ("nvlink",): 20.95,
    ("other",): 40.0,
}
GROWS = {
    "sm_count": "other",
    "subcores_per_sm": "sm_control",
    "issue_rate": "sm_control",
    "registers_per_sm": "register_file",
    "l1_kib": "l1_shared",
    "l1_bytes_per_cycle": "l1_shared",
    "fp32_lanes": "fp32_int32",
    "int32_lanes": "fp32_int32",
    "sfu_lanes": "fp32_int32",
    "fp64_lanes": "fp64",
    "tensor_cores_per_sm": "tensor_core",
    "l2_mib": "l2",
    "l2_slices": "noc",
    "l2_slice_bytes_per_cycle": "noc",
    "l2_port_bytes_per_cycle": "noc",
    "nvlink_gbs": "nvlink",
    "pcie_gbs": "other",
} | {name: "tensor_core" for name in COMMON if name.startswith("tensor_fma_")}


@pytest.fixture(scope="module")
def model() -> DieArea:
    return DieArea.from_table()


@pytest.mark.parametrize("die", DIES)
def test_a_whole_die_is_within_ten_per_cent(model, die):
    published, attributes = DIES[die]
    assert float(model.total(SimpleNamespace(**attributes))) == pytest.approx(published, rel=0.10)


@pytest.mark.parametrize("names", GA100_BLOCKS, ids=lambda names: names[0])
def test_the_blocks_of_ga100_are_within_fifteen_per_cent(model, names):
    areas = model(SimpleNamespace(**DIES["GA100"][1]))
    assert float(sum(areas[name] for name in names)) == pytest.approx(GA100_BLOCKS[names], rel=0.15)


def test_the_turing_sm_agrees_with_its_die_shot(model):
    """TU106: 10.89 mm2 a pair of SMs, 0.70 of it ray tracing (hardwareluxx.de 49205, whatnext.pl): not fitted."""
    areas = model(SimpleNamespace(**DIES["TU106"][1]))
    assert float(sum(areas[name] for name in SM_COMPONENTS)) / 36 == pytest.approx((10.89 - 0.70) / 2, rel=0.10)


def test_switched_off_parts_are_on_the_die(model):
    whole = DIES["GA100"][1]
    product = whole | {"sm_count": 108, "sm_enabled_fraction": 108 / 128, "l2_mib": 40, "l2_enabled_fraction": 40 / 48}
    expected = float(model.total(SimpleNamespace(**whole)))
    assert float(model.total(SimpleNamespace(**product))) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("name", GROWS)
def test_more_of_an_attribute_takes_more_area(model, name):
    start = DIES["GA100"][1]
    more = start | {name: start[name] * 1.5 + 1.0}
    before, after = model(SimpleNamespace(**start)), model(SimpleNamespace(**more))
    assert after[GROWS[name]] > before[GROWS[name]]
    assert all(after[component] >= before[component] for component in COMPONENTS)


def test_a_wider_bus_takes_more_area(model):
    start = DIES["GA100"][1]
    before, after = (model(SimpleNamespace(**start | {"dram_bus_bits": bits})) for bits in (5120, 6144))
    assert after["memory_phy"] > before["memory_phy"]
    assert after["memory_controller"] > before["memory_controller"]


def test_a_batch_is_a_loop_and_every_component_is_finite(model):
    records = [attributes for _, attributes in DIES.values()]
    batch = {name: jnp.asarray([record[name] for record in records], dtype=float) for name in records[0]}
    batched = jax.jit(jax.vmap(lambda numbers: model(SimpleNamespace(**numbers))))(batch)
    looped = [model(SimpleNamespace(**record)) for record in records]
    assert tuple(looped[0]) == COMPONENTS
    for component in COMPONENTS:
        expected = np.asarray([float(areas[component]) for areas in looped])
        np.testing.assert_allclose(batched[component], expected, rtol=1e-5)
        assert np.isfinite(expected).all() and (expected >= 0).all()


def test_the_gradient_is_the_finite_difference(model):
    start = {name: float(value) for name, value in DIES["GH100"][1].items()}

    def total(rate):
        return model.total(SimpleNamespace(**start | {"tensor_fma_bf16": rate}))

    expected = (float(total(1024.0)) - float(total(512.0))) / 512.0  # the model is linear in a rate
    assert float(jax.grad(total)(512.0)) == pytest.approx(expected, rel=1e-2)
