"""The board model: breakdown, monotony, gradients, the power limit, and what its table states."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dse.base.package_tables import read_table
from dse.hardware.data_types import TENSOR_DTYPES
from dse.hardware.gpu import Gpu
from dse.hardware.presets import load_sheet
from dse.hardware.process import memory_names, node_names
from dse.power.activity import Activity, activity
from dse.power.board import GATED_PARTS, BoardPower, left_out_errors
from dse.power.power import COMPONENTS
from dse.timing.amali import Amali
from dse.workload.operators.attention import Attention, attention_operator
from dse.workload.operators.gemm import Gemm, gemm_operator
from tests.programs import quick_jit
from tests.timing.designs import drawn_gpu, drawn_kernels, gpu_batch

TABLE = read_table("power/board.csv")
VALUE = {row["coefficient"]: float(row["value"]) for row in TABLE}
MODEL = BoardPower.from_table()
WORK = [name for name in Activity._fields if name not in ("nanoseconds", "clock_ghz", "tensor_dtype", "busy")]
INDEX = ("process", "dram_type")
"""Fields of a GPU that are rows of a table: no derivative. (And a memory type's channel width is the mark of graphics
dies, at whose threshold HBM stands: a kink of the area model.)"""


def kernel(kind="gemm"):
    operator = {
        "gemm": lambda: gemm_operator("g", Gemm(4096, 8192, 8192), (9.0, 9.0)),
        "small": lambda: gemm_operator("g", Gemm(256, 512, 4096), (9.0, 9.0)),
        "decode": lambda: attention_operator("a", Attention(64, 32, 8, 128, 1, 8192), (9.0, 9.0)),
    }[kind]()
    return operator.candidates[0].kernel.as_arrays()


def gpu(preset="h200", **changed):
    return Gpu.from_numbers(load_sheet(preset).numbers() | changed)


def watts(kind="gemm", preset="h200", **changed):
    record = gpu(preset, **changed)
    return MODEL(kernel(kind), Amali()(kernel(kind), record), record).watts


def counts(**changed):
    """A kernel's counts in which nothing is zero."""
    base = activity(kernel(), Amali()(kernel(), gpu()), gpu())._asdict()
    filled = {name: jnp.asarray(float(value) if float(value) > 0 else 1e9) for name, value in base.items()}
    return Activity(**(filled | {"busy": jnp.asarray(0.5)} | {k: jnp.asarray(v) for k, v in changed.items()}))


def test_the_breakdown_adds_up_to_the_board():
    found = MODEL(kernel(), Amali()(kernel(), gpu()), gpu())
    assert list(found.breakdown()) == list(COMPONENTS)
    assert float(found.watts) == pytest.approx(sum(map(float, found.breakdown().values())), rel=1e-6)
    assert float(found.watts) == pytest.approx(0.99 * 700, rel=0.01)  # a large GEMM stands at the limit


def test_clocked_sms_are_charged_by_their_area_at_one_node():
    """Registers and L1 shrink less than logic: their area at a node says nothing of what they switch."""
    nodes = [gpu(process=float(number)) for number in range(len(node_names()))]
    for energies in zip(*(map(float, MODEL._cycle(node)) for node in nodes), strict=True):
        assert energies == pytest.approx([energies[0]] * len(energies), rel=1e-6)


def test_what_a_component_costs_by_hand():
    """An H200's tensor cores: FMAs a second times the table's energy, at voltage 1 (the node's nominal clock)."""
    found = MODEL.uncapped(
        counts(tensor_fma=3e14, softmax_fma=0.0, padding_fma=1e14, nanoseconds=1e9, clock_ghz=1.98), gpu()
    )
    expected = (3e14 + VALUE["padding"] * 1e14) * VALUE["tensor_bf16"] * 1e-12
    assert float(found.tensor) == pytest.approx(expected, rel=1e-5)
    memory = next(row for row in read_table("process/memory_power.csv") if row["dram_type"] == "hbm3e")
    assert float(found.constant) == pytest.approx(
        VALUE["board"] * float(gpu().tdp_w) / 700 + 141 * float(memory["idle_w_per_gb"]), rel=1e-5
    )
    assert float(MODEL.uncapped(counts(dram_bytes=4e12, nanoseconds=1e9), gpu()).dram) == pytest.approx(
        4 * (VALUE["dram_path"] + 8 * float(memory["access_pj_per_bit"])), rel=1e-5
    )


BY_THE_COUNT = {
    "instruction": "instructions",
    "register_file": "register_bytes",
    "int32": "int32",
    "fp32": "fp32",
    "sfu": "sfu",
    "shared_memory": "shared_bytes",
    "l1": "l1_bytes",
    "l2": "l2_bytes",
}
"""Components of the chip and what they pay for, coefficients of the component's name."""


def drawn(of=None, **changed):
    """Watts by component of a second of counts at the H200's nominal clock, where its voltage is 1."""
    found = MODEL.uncapped(counts(nanoseconds=1e9, clock_ghz=1.98, **changed), of or gpu()).breakdown()
    return {name: float(value) for name, value in found.items()}


def test_what_the_chip_does_costs_the_tables_energy_on_the_gpu_that_the_table_states():
    found = drawn(**dict.fromkeys([*BY_THE_COUNT.values(), "link_bytes"], 1e12))  # a pJ each is a watt
    assert {name: found[name] for name in BY_THE_COUNT} == pytest.approx({name: VALUE[name] for name in BY_THE_COUNT})
    assert found["interconnect"] == pytest.approx(VALUE["link"])


def test_a_larger_array_costs_more_by_the_access():
    """Word and bit lines grow with the side of an array; a slice of the L2 is one, and more slices lengthen none."""
    grown, plain = 4 ** VALUE["capacity_exponent"], drawn()
    for change, names in (
        ({"registers_per_sm": 4 * 65536.0}, ["register_file"]),
        ({"l1_kib": 4 * 256.0}, ["shared_memory", "l1"]),
        ({"l2_mib": 4 * float(gpu().l2_mib)}, ["l2"]),
        ({"l2_mib": 4 * float(gpu().l2_mib), "l2_slices": 4 * float(gpu().l2_slices)}, []),
    ):
        found = drawn(gpu(**change))
        longer = {name: grown if name in names else 1.0 for name in BY_THE_COUNT}
        assert {name: found[name] / plain[name] for name in longer} == pytest.approx(longer, rel=1e-5), change


def test_wires_across_the_die_are_as_long_as_its_side():
    for design in (gpu(), gpu(sm_count=33.0), gpu(l2_mib=400.0)):
        side = (sum(map(float, MODEL.area(design).values())) / 814) ** 0.5
        assert drawn(design, l1_bytes=1e12)["noc"] == pytest.approx(VALUE["noc"] * side, rel=1e-5)


def test_a_product_with_probabilities_costs_its_share_of_a_product():
    products = {"tensor_fma": 0.0, "softmax_fma": 1e14, "padding_fma": 0.0}
    assert drawn(**products)["tensor"] == pytest.approx(VALUE["softmax"] * VALUE["tensor_bf16"] * 100, rel=1e-5)


def test_sms_without_work_draw_their_share_of_the_clock_and_a_die_at_rest_leaks():
    busy, half, idle = (drawn(busy=share) for share in (1.0, 0.5, 0.0))
    assert (busy["idle_sm"], idle["pipeline"], idle["idle_units"]) == (0, 0, 0)
    clocked = busy["pipeline"] + busy["idle_units"]
    assert idle["idle_sm"] == pytest.approx(VALUE["idle_sm"] * clocked, rel=1e-6)
    assert half["pipeline"] + half["idle_units"] + half["idle_sm"] == pytest.approx(
        (clocked + idle["idle_sm"]) / 2, rel=1e-6
    )
    rest = {name: float(value) for name, value in MODEL.idle(jnp.asarray(1.98), gpu()).breakdown().items()}
    assert {name for name, value in rest.items() if value > 0} == {"constant", "static", "idle_sm"}
    assert rest["idle_sm"] == pytest.approx(idle["idle_sm"], rel=1e-6)
    die = sum(map(float, MODEL.area(gpu()).values()))
    assert rest["static"] == pytest.approx(VALUE["leak"] * die, rel=1e-5)
    warm = MODEL.with_values({"temperature": jnp.asarray(65.0 + np.log(2) / VALUE["leak_per_kelvin"])})
    assert float(warm.idle(jnp.asarray(1.98), gpu()).static) == pytest.approx(2 * rest["static"], rel=1e-5)


def test_between_kernels_clocks_are_gated_in_part():
    """More than at rest, less than the clock of SMs at work, and nothing else."""
    rest, between = (draw(jnp.asarray(1.98), gpu()).breakdown() for draw in (MODEL.idle, MODEL.between_kernels))
    assert {name for name in rest if float(rest[name]) != float(between[name])} == {"idle_sm"}
    whole = float(rest["idle_sm"]) / float(MODEL.idle_sm)
    assert float(rest["idle_sm"]) < float(between["idle_sm"]) < whole
    assert float(between["idle_sm"]) == pytest.approx(whole * float(MODEL.waiting_sm))


@pytest.mark.parametrize("preset", ["h200", "a100_sxm_80gb", "b200"])
def test_idle_tensor_cores_cost_their_leakage_and_at_most_a_fiftieth_beside_it(preset):
    """A decode that DRAM binds, the tensor rate doubled: the same work in the same time."""
    plain = gpu(preset)
    doubled = gpu(preset, **{f"tensor_fma_{dtype}": 2 * float(rate) for dtype, rate in plain.tensor_fma.items()})
    timing = Amali()(kernel("decode"), plain)
    before, after = (MODEL(kernel("decode"), timing, design).breakdown() for design in (plain, doubled))
    added = {name: float(after[name] - before[name]) for name in before}
    silicon = float(MODEL.area.total(doubled) - MODEL.area.total(plain))
    voltage = float(MODEL.draw(timing.clock_ghz, plain).voltage(1.0))
    leakage = VALUE["leak"] * float(MODEL.nodes.leakage(plain.process)) * silicon * voltage**2
    assert added["static"] == pytest.approx(leakage, rel=0.01)
    assert leakage > 0
    assert 0 <= sum(added.values()) - added["static"] < 0.02 * sum(map(float, before.values()))


def test_what_gated_units_draw_is_shown_apart():
    area = MODEL.area(gpu(process=float(node_names().index("tsmc_n7"))))
    units = sum(float(area[name]) for name in GATED_PARTS) * float(gpu().sm_enabled_fraction)
    expected = VALUE["pipeline"] * VALUE["idle_units"] * units * 1.98e-3
    assert drawn(busy=1.0)["idle_units"] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("name", [*WORK, "busy"])
def test_more_work_in_the_same_time_never_draws_less(name):
    model, record = quick_jit(lambda c: MODEL.uncapped(c, gpu()).watts), counts()
    more = record._replace(**{name: 1.5 * getattr(record, name)})
    assert float(model(more)) > float(model(record))


def test_the_same_work_in_less_time_draws_more():
    assert float(MODEL.uncapped(counts(nanoseconds=5e5), gpu()).watts) > float(
        MODEL.uncapped(counts(nanoseconds=1e6), gpu()).watts
    )


def test_physics_of_designs():
    small = watts("small")
    assert watts("small", dram_gb=282.0) > small  # memory at rest
    assert watts("small", boost_clock_mhz=1600.0, tensor_clock_mhz=1600.0) < small  # slower and at lower voltage
    assert watts("small", l2_mib=240.0) > small  # larger arrays, larger die
    assert watts("small", process=float(node_names().index("tsmc_n7"))) > small
    assert watts("decode", dram_type=float(memory_names().index("gddr6"))) > watts("decode")
    limit = float(watts("gemm", tdp_w=500.0))
    assert limit == pytest.approx(495.0, rel=0.01)


def test_a_lower_limit_is_slower_and_cheaper_by_the_joule():
    def operation(limit):
        record = gpu(tdp_w=limit)
        timing = Amali()(kernel(), record)
        found = MODEL.sustained(activity(kernel(), timing, record), timing, record)
        return float(found.timing.nanoseconds), float(found.power.watts * found.timing.nanoseconds)

    (fast, dear), (slow, cheap) = operation(700.0), operation(500.0)
    assert slow > fast
    assert cheap < dear


def test_a_board_that_draws_more_settles_where_a_lower_limit_would_put_it():
    record = gpu(tdp_w=700.0)
    timing = Amali()(kernel(), record)
    counts = activity(kernel(), timing, record)
    more = MODEL.drawing(1.3).sustained(counts, timing, record)
    lower = MODEL.sustained(counts, timing, record, MODEL.limit(record) / 1.3)
    assert float(more.timing.nanoseconds) == pytest.approx(float(lower.timing.nanoseconds))
    assert float(more.timing.nanoseconds) > float(MODEL.sustained(counts, timing, record).timing.nanoseconds)


def test_the_sustained_power_is_the_models_own_at_the_sustained_timing():
    """Scaling the components and evaluating the model at the lower clock are the same."""
    with jax.enable_x64(True):
        model, record = BoardPower.from_table(), gpu(tdp_w=550.0)
        timing = Amali()(kernel(), record)
        found = model.sustained(activity(kernel(), timing, record), timing, record)
        again = model.uncapped(activity(kernel(), found.timing, record), record)
        assert float(found.clock) < 0.95
        for name, value in found.power.breakdown().items():
            assert float(value) == pytest.approx(float(getattr(again, name)), rel=1e-9, abs=1e-12), name


@pytest.mark.parametrize("kind", ["gemm", "small", "decode"])
def test_gradients_by_every_coefficient_equal_finite_differences(kind):
    with jax.enable_x64(True):
        model, record = BoardPower.from_table(), gpu()
        timing = Amali()(kernel(kind), record)
        check_gradients(lambda m: m(kernel(kind), timing, record).watts, model, ("channel_bits",))


@pytest.mark.parametrize("kind", ["gemm", "small", "decode"])
def test_gradients_by_every_design_parameter_equal_finite_differences(kind):
    """The model's own part: the timing is held, since its whole waves jump."""
    with jax.enable_x64(True):
        own = {
            "dram_pj_per_bit": 2.0,
            "dram_idle_w_per_gb": 0.1,
            "dram_phy_mm2_per_bit": 0.01,
        }  # 0 would be another memory's, a jump
        model, record = BoardPower.from_table(), gpu(**own)
        timing = Amali()(kernel(kind), record)
        check_gradients(lambda g: model(kernel(kind), timing, g).watts, record, INDEX)


def check_gradients(function, record, skipped=()):
    """jax.grad of a record against central differences, number by number."""
    leaves, tree = jax.tree_util.tree_flatten_with_path(record)
    ours = jax.tree.leaves(quick_jit(jax.grad(function))(record))
    values = [leaf for _, leaf in leaves]
    evaluate = quick_jit(lambda values: function(jax.tree.unflatten(tree, values)))
    seen = 0
    for i, (path, leaf) in enumerate(leaves):
        if any(name in jax.tree_util.keystr(path) for name in skipped):
            continue
        for place in np.ndindex(leaf.shape):
            step = 1e-6 * max(abs(float(leaf[place])), 1e-3)
            low, high = ([*values[:i], leaf.at[place].add(s), *values[i + 1 :]] for s in (-step, step))
            theirs = float(evaluate(high) - evaluate(low)) / (2 * step)
            # 1e-9 of a kilowatt over the step is what rounding leaves of a difference.
            assert float(ours[i][place]) == pytest.approx(theirs, rel=2e-4, abs=1e-12 * 1e3 / step), (path, place)
            seen += theirs != 0
    assert seen > 10


def test_drawn_designs_and_kernels_stay_finite():
    """32 bits, over the whole ranges of the schema, kernels that cannot run included; batch = loop."""
    rng = np.random.default_rng(7)
    _, kernels = drawn_kernels(rng)
    designs = gpu_batch([drawn_gpu(rng) for _ in range(8)])
    batch = jax.tree.map(lambda x: jnp.asarray(x[:192], jnp.float32), kernels)

    def one(kernel, design):
        timing = Amali()(kernel, design)
        found = MODEL.sustained(activity(kernel, timing, design), timing, design)
        return found.power.breakdown(), found.power.watts, found.clock, found.timing.nanoseconds

    mapped = quick_jit(jax.vmap(jax.vmap(one, (0, None)), (None, 0)))
    parts, total, clock, time = jax.tree.map(np.asarray, mapped(batch, designs))
    for name, values in parts.items():
        assert np.isfinite(values).all() and (values >= 0).all(), name
    assert np.isfinite(time).all() and (clock > 0).all() and (clock <= 1).all()
    np.testing.assert_allclose(total, sum(parts.values()), rtol=1e-5)
    first = quick_jit(one)(jax.tree.map(lambda x: x[5], batch), jax.tree.map(lambda x: x[3], designs))
    assert float(first[1]) == pytest.approx(float(total[3, 5]), rel=1e-4)


def test_every_node_and_data_type_has_its_coefficients():
    names = {row["coefficient"] for row in TABLE}
    assert {f"clock_{node}" for node in node_names()} <= names
    known = set(BoardPower.__dataclass_fields__)
    clocks = {f"clock_{node}" for node in node_names()}
    assert names - known - clocks == {"tensor_bf16"}  # nothing unread
    per_fma = dict(zip(TENSOR_DTYPES, map(float, MODEL.tensor), strict=True))
    assert per_fma["bf16"] == pytest.approx(VALUE["tensor_bf16"])
    assert per_fma["fp64"] > per_fma["tf32"] > per_fma["bf16"] > per_fma["fp8"] > per_fma["fp4"] > 0


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row["coefficient"])
def test_every_coefficient_says_where_it_comes_from(row):
    assert row["status"] in ("fitted", "prior", "published")
    assert row["unit"] and row["source"]
    low, prior, high = (float(row[name]) for name in ("low", "prior", "high"))
    assert low <= prior <= high
    assert low * 0.99 <= float(row["value"]) <= high * 1.01
    if row["status"] != "fitted":
        assert float(row["value"]) == prior


def test_the_uncertainty_is_stated():
    found = left_out_errors()
    assert found["rows"] > 200
    assert 0 < found["q50"] < found["q68"] < found["q80"] < found["q90"] < found["q95"] < 1
    assert MODEL.calibration != "uncalibrated"


def test_a_name_that_is_no_coefficient_is_refused():
    with pytest.raises(KeyError, match="tensor_bf17"):
        MODEL.with_values({"tensor_bf17": jnp.ones(())})
