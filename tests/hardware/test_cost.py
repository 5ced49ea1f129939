"""Dies on a wafer, yield and cost: against other people's formulas and figures, and what must hold of any cost."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dse import load_gpu
from dse.base.errors import InputError
from dse.base.package_tables import read_table
from dse.hardware.area import DieArea
from dse.hardware.cost import YIELD_MODELS, Cost, DieCost, Murphy, NegativeBinomial
from dse.hardware.process import node_index

MODELS = list(YIELD_MODELS)
RETICLE = 858.0


@pytest.fixture(scope="module", params=MODELS)
def model(request) -> DieCost:
    return DieCost.from_table(request.param)


def gpu(name="h100_sxm", **changes):
    record = load_gpu(name)
    values = {field: getattr(record, field) for field in type(record).__dataclass_fields__}
    return type(record)(**values | {key: jnp.asarray(float(value)) for key, value in changes.items()})


def whole(name="h100_sxm"):
    """A GPU with every SM of its die switched on."""
    return gpu(name, sm_enabled_fraction=1.0)


def test_more_dies_than_the_field_asks_for_yield_better_and_cost_no_package():
    model = DieCost.from_table()
    one, two = (model(700.0, gpu(sm_enabled_fraction=1.0, dies=dies)) for dies in (1, 2))
    assert [float(x.dies) for x in (one, two)] == [1, 2]
    assert float(two.die_mm2) == 350
    assert float(two.die_yield) > float(one.die_yield)
    assert float(two.cost_usd) < float(one.cost_usd)
    assert float(model(2000.0, gpu(dies=2)).dies) == 3  # a scanner's field decides where it asks for more


# --- against others


def test_dies_per_wafer_of_the_usual_formula():
    """500 mm2 on 300 mm without scribe and edge: 111.6 (TFSDxr-Neuron-Quantization, TCO addendum, public table)."""
    bare = DieCost.from_table()
    bare = eqx.tree_at(lambda m: (m.edge_exclusion, m.scribe), bare, (jnp.asarray(0.0), jnp.asarray(0.0)))
    assert float(bare.dies_per_wafer(500.0)) == pytest.approx(111.6, abs=0.05)


@pytest.mark.parametrize(("node", "area"), [("tsmc_n7", 826.0), ("tsmc_n5", 200.0), ("tsmc_28", 450.0)])
def test_a_known_good_die_costs_what_chiplet_actuary_says(node, area):
    """Feng & Ma, DAC 2022, as their program writes it: cost of a known good die, without harvesting."""
    model = DieCost.from_table()
    index = node_index(node)
    defects, wafer = float(model.defects_per_cm2[index]), float(model.wafer_usd[index])
    chip = area + 2 * 0.2 * np.sqrt(area) + 0.2**2
    total = np.pi * (300 / 2 - 5) ** 2 / chip - np.pi * (300 - 2 * 5) / np.sqrt(2 * chip)
    good = (1 + defects / 100 * area / 10) ** -10
    cost = model(area, gpu("a100_sxm_80gb", process=index, sm_enabled_fraction=1.0))
    assert float(cost.cost_usd) == pytest.approx(wafer / (total * good), rel=1e-4)


@pytest.mark.parametrize(("area", "expected"), [(17.92, 0.80), (100.0, 0.320)])
def test_murphys_yield_is_what_is_published_of_early_5nm(area, expected):
    """1.271 defects/cm2 is 80 % at 17.92 mm2 and 32.0 % at 100 mm2 (AnandTech, December 2019)."""
    assert float(Murphy().plain(jnp.asarray(1.271 * area / 100))) == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("x", [0.0, 1e-4, 0.1, 0.7, 2.0, 8.0])
def test_yields_are_their_closed_forms(x):
    murphy = 1.0 if x == 0 else (-np.expm1(-x) / x) ** 2
    assert float(Murphy().plain(jnp.asarray(x))) == pytest.approx(murphy, rel=1e-5)
    clustered = NegativeBinomial(jnp.asarray(3.0))
    assert float(clustered.plain(jnp.asarray(x))) == pytest.approx((1 + x / 3) ** -3, rel=1e-5)


# --- yield


@pytest.mark.parametrize("x", [0.05, 0.7, 2.0])
def test_the_numbers_of_defects_are_a_distribution_of_the_given_mean(model, x):
    chance = np.asarray(model.yield_model.defects(jnp.asarray(x)), dtype=float)
    assert chance.sum() == pytest.approx(1, abs=1e-5)
    assert chance @ np.arange(len(chance)) == pytest.approx(x, rel=1e-4)


def test_harvesting_agrees_with_dice(model):
    """A die is sold with at most two defects, all in its SMs: drawn defect by defect."""
    rng = np.random.default_rng(0)
    x, share, spare, dies = 0.8, 0.6, 2, 400_000
    if isinstance(model.yield_model, Murphy):
        mean = x * rng.triangular(0, 1, 2, dies)
    else:
        alpha = float(model.yield_model.alpha)
        mean = x * rng.gamma(alpha, 1 / alpha, dies)
    defects = rng.poisson(mean)
    in_sms = rng.binomial(defects, share)
    sold = np.mean((defects == in_sms) & (in_sms <= spare))
    assert float(model.yield_model.harvested(jnp.asarray(x), share, spare)) == pytest.approx(sold, abs=3e-3)


def test_without_spare_sms_harvesting_is_the_plain_yield(model):
    x = jnp.asarray(0.8)
    plain = float(model.yield_model.plain(x))
    assert float(model.yield_model.harvested(x, 0.6, 0.0)) == pytest.approx(plain)


def test_spare_sms_raise_the_yield_and_lower_the_cost(model):
    none, some, many = (model(800.0, gpu(sm_enabled_fraction=f)) for f in (1.0, 0.99, 0.9))
    assert float(none.die_yield) < float(some.die_yield) < float(many.die_yield) < 1
    assert float(none.cost_usd) > float(some.cost_usd) > float(many.cost_usd)


def test_dies_share_out_the_spare_sms(model):
    """Two dies with the SMs of both between them are sold as often as one with half of them."""
    two, one = (model(area, gpu(sm_count=sms, sm_enabled_fraction=0.97)) for area, sms in ((1600.0, 132), (800.0, 66)))
    assert float(two.dies) == 2 and float(two.die_yield) == pytest.approx(float(one.die_yield))


# --- cost


def test_a_larger_die_costs_more_a_mm2(model):
    small, large = (model(area, whole()).cost_usd / area for area in (200.0, 800.0))
    assert float(large) > 1.2 * float(small)


def test_cost_never_falls_with_area_across_the_exposure_field(model):
    areas = jnp.asarray([50.0, 400.0, 850.0, 857.9, 858.1, 900.0, 1100.0, 1400.0, 1715.9, 1716.1, 2000.0, 2600.0])
    cost = jax.jit(jax.vmap(lambda area: model(area, gpu())))(areas)
    assert (np.diff(cost.cost_usd) >= 0).all()
    np.testing.assert_array_equal(cost.dies, [1, 1, 1, 1, 2, 2, 2, 2, 2, 3, 3, 4])
    assert (np.asarray(cost.die_mm2) <= RETICLE).all()


def test_a_b200_is_two_dies_and_an_h100_is_one(model):
    area = DieArea.from_table()
    dies = {name: float(model(area.total(gpu(name)), gpu(name)).dies) for name in ("b200", "h100_sxm", "rtx_pro_6000")}
    assert dies == {"b200": 2, "h100_sxm": 1, "rtx_pro_6000": 1}


def test_two_dies_share_the_spare_sms(model):
    """A GPU of two dies of 700 mm2 is two GPUs of half the SMs and 700 mm2 each."""
    pair, one = model(1400.0, gpu(sm_count=264.0)), model(700.0, gpu())
    assert float(pair.die_yield) == pytest.approx(float(one.die_yield))
    assert float(pair.cost_usd) == pytest.approx(2 * float(one.cost_usd))


def test_just_above_the_exposure_field_two_dies_cost_what_the_largest_one_does(model):
    largest, above = model(RETICLE, gpu()), model(RETICLE + 0.01, gpu())
    assert float(above.dies) == 2
    assert float(above.cost_usd) == pytest.approx(float(largest.cost_usd))


def test_memory_is_a_component_of_its_own(model):
    less, more = (model(800.0, gpu(dram_gb=size)) for size in (80.0, 160.0))
    assert float(more.memory_usd) == pytest.approx(2 * float(less.memory_usd))
    assert float(more.cost_usd) == float(less.cost_usd)


def test_another_yield_model_is_refused_with_what_is_accepted():
    with pytest.raises(InputError, match=r"'murphey'.*'murphy'"):
        DieCost.from_table("murphey")


def test_a_batch_is_a_loop_and_every_number_is_finite(model):
    names = ["p100_pcie_16gb", "v100_sxm2_16gb", "rtx_3090", "a100_sxm_80gb", "h100_sxm", "b200"]
    gpus = [gpu(name) for name in names]
    areas = jnp.asarray([0.0, 1.0, 300.0, 826.0, 5e3, 1e5])
    batch = jax.tree.map(lambda *leaves: jnp.stack(leaves), *gpus)
    batched = jax.jit(jax.vmap(model))(areas, batch)
    alone = jax.jit(lambda area, record: model(area, record))
    looped = [alone(area, record) for area, record in zip(areas, gpus, strict=True)]
    for field in Cost._fields:
        expected = np.asarray([float(getattr(cost, field)) for cost in looped])
        assert np.isfinite(expected).all()
        assert (expected >= 0).all()
        np.testing.assert_allclose(getattr(batched, field), expected, rtol=1e-4)


def test_the_gradient_is_finite_and_the_finite_difference(model):
    areas = np.asarray([0.0, 100.0, 800.0, 1300.0], np.float32)
    cost = jax.jit(jax.vmap(jax.value_and_grad(lambda area: model(area, gpu()).cost_usd)))
    gradient = cost(areas)[1]
    assert np.isfinite(gradient).all()
    above, below = (cost(areas + step)[0] for step in (8, -8))
    np.testing.assert_allclose(gradient[1:], ((above - below) / 16)[1:], rtol=2e-2)


@pytest.mark.parametrize("name", ["process", "sm_count", "sm_enabled_fraction", "dram_gb"])
def test_the_gradient_by_an_attribute_is_finite(model, name):
    record = gpu(sm_enabled_fraction=0.985)
    cost = jax.jit(jax.grad(lambda value: model(800.0, gpu_with(record, name, value)).cost_usd))
    gradient = cost(getattr(record, name))
    assert np.isfinite(float(gradient))


def gpu_with(record, name, value):
    return eqx.tree_at(lambda g: getattr(g, name), record, value)


@pytest.mark.parametrize("table", ["process/wafers.csv", "process/memory_cost.csv", "process/cost.csv"])
def test_every_number_has_a_source_and_a_status(table):
    for row in read_table(table):
        assert row["source"] and row["status"] in {"published", "measured", "prior", "estimate"}, row
        for value in ("wafer_usd", "defects_per_cm2", "usd_per_gb"):
            if value in row:
                assert float(row[f"{value}_low"]) <= float(row[value]) <= float(row[f"{value}_high"])
