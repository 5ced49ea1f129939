"""What a calibration's equations leave of a library's products: by shape, for one implementation, never by design."""

import tomllib
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest

from dse.base.errors import InputError
from dse.hardware.presets import load_gpu
from dse.timing.amali import Amali
from dse.timing.calibration import load_timing_calibration
from dse.timing.discrepancy import Points, composed, likeness, read_points
from dse.workload.implementation import IMPLEMENTATIONS, KINDS, implementation_index
from dse.workload.kernel import PROBLEM, Kernel
from dse.workload.operators.attention import Attention, attention_operator
from dse.workload.operators.gemm import Gemm, gemm_operator
from dse.workload.operators.vector import vector_operator, vector_ops
from tests.programs import quick_jit


def sizes(*products: tuple[float, float, float]) -> np.ndarray:
    """Products (rows, PROBLEM)."""
    return np.pad(np.array(products, float), ((0, 0), (0, PROBLEM - 3)))


POINTS = Points("matrix", sizes((160, 8192, 4096), (4096, 4096, 4096)), np.array([0.4, -0.05]), 132.0)


def kernel(gemm: Gemm) -> Kernel:
    """The first kernel of a product, which is of the implementation ``matrix``."""
    return gemm_operator("g", gemm, (9.0, 9.0)).candidates[0].kernel


def factor(points: Points, gemm: Gemm) -> float:
    return float(points.record().of(0.0).factor(kernel(gemm).as_arrays()))


def test_a_point_counts_its_weight_and_far_shapes_nothing():
    apart = POINTS._replace(weights=np.array([0.4, 0.0]))
    assert factor(apart, Gemm(160, 8192, 4096)) == pytest.approx(np.exp(0.4), rel=1e-5)
    assert 1.05 < factor(apart, Gemm(168, 8192, 4096)) < np.exp(0.4)
    assert factor(apart, Gemm(16384, 512, 128)) == pytest.approx(1.0, abs=5e-3)


def test_the_next_wave_is_another_shape():
    """132 tiles of 128 x 128 fill 132 SMs, one more row of tiles starts the next wave."""
    full, over, one = (POINTS.features(sizes((m, 12 * 128, 4096))) for m in (1408, 1409, 1407))
    assert likeness(full, one)[0, 0] > 0.95
    assert likeness(full, over)[0, 0] < 0.75


def test_a_program_says_what_the_file_says():
    rng = np.random.default_rng(0)
    asked = np.rint(2.0 ** rng.uniform((4, 7, 7), (13, 14, 14), (200, 3)))
    found = [factor(POINTS, Gemm(*size)) for size in asked]
    np.testing.assert_allclose(np.log(found), POINTS.at(sizes(*asked)), atol=2e-5)


@pytest.mark.parametrize(
    "gemm",
    [
        Gemm(160, 8192, 4096, a="int8", b="int4"),
        Gemm(160, 8192, 4096, batch=8),
        Gemm(160, 8192, 4096, a="fp32", b="fp32", compute="fp32", out="fp32"),
    ],
)
def test_what_no_such_product_was_measured_of_is_left_alone(gemm):
    assert factor(POINTS, gemm) == 1.0


@pytest.mark.parametrize("narrow", [{"a": "fp8", "b": "fp8", "compute": "fp8"}, {"b": "int4"}])
def test_narrow_types_have_points_of_their_own(narrow):
    record = composed([POINTS if name == "matrix" else None for name in IMPLEMENTATIONS])
    assert record is not None
    asked = kernel(Gemm(160, 8192, 4096, **narrow))
    assert KINDS[IMPLEMENTATIONS[int(asked.implementation)]] == "narrow"
    assert float(record.of(asked.implementation).factor(asked.as_arrays())) == 1.0


def test_each_implementation_has_its_own_or_none():
    other = Points("matrix", POINTS.sizes[:1], np.array([-0.2]), 108.0)
    by_name = {"matrix": POINTS, "matrix_early": other}
    record = composed([by_name.get(name) for name in IMPLEMENTATIONS])
    assert record is not None
    asked = kernel(Gemm(160, 8192, 4096)).as_arrays()
    found = {name: float(record.of(implementation_index(name)).factor(asked)) for name in IMPLEMENTATIONS}
    assert found["matrix"] == pytest.approx(np.exp(POINTS.at(sizes((160, 8192, 4096)))[0]), rel=1e-5)
    assert found["matrix_early"] == pytest.approx(np.exp(-0.2), rel=1e-5)
    assert found["vllm_vector"] == 1.0
    assert composed([None] * len(IMPLEMENTATIONS)) is None


def test_attention_is_known_by_its_own_sizes():
    asked = Attention(4, 32, 8, 128, 1, 4096)
    points = Points("attention_decode", np.array([[128.0, 1, 4096, 128, 4]]), np.array([0.3]), 132.0)
    of = dict.fromkeys(("fa3_decode", "fa2_decode"), points)
    record = composed([of.get(name) for name in IMPLEMENTATIONS])
    assert record is not None

    def found(attention: Attention) -> float:
        asked = attention_operator("a", attention, (9.0, 9.0)).candidates[0].kernel
        return float(record.of(asked.implementation).factor(asked.as_arrays()))

    assert found(asked) == pytest.approx(np.exp(0.3), rel=1e-5)
    expected = np.exp(points.at(np.array([[256.0, 1, 8192, 128, 4]]))[0])
    assert found(replace(asked, batch=8, keys=8192)) == pytest.approx(expected, rel=1e-5) and 1.05 < expected < 1.3
    assert found(replace(asked, kv="fp8")) == found(replace(asked, chunk=1024)) == 1.0
    assert points.lines()[2:4] == [
        "points = [ # heads, queries, keys, head_dim, group, weight",
        "  [128, 1, 4096, 128, 4, 0.3000],",
    ]
    with pytest.raises(InputError, match="matrix_simt has none; products in 16 bits, attention and vectors do"):
        read_points(Path("mine.toml"), "", "matrix_simt", {"sm_count": 1})


def test_a_vector_kernel_is_known_by_its_operator():
    add = vector_ops()["add"].number
    points = Points("vector", np.array([[add, 4096.0, 8192, 2, 0]]), np.array([0.3]), 108.0)
    record = composed([points if name == "vllm_vector" else None for name in IMPLEMENTATIONS])
    assert record is not None

    def found(op: str, rows: float, dtype: str = "fp16", **options) -> float:
        asked = vector_operator("v", op, rows, 8192.0, dtype, **options).candidates[0].kernel
        return float(record.of(asked.implementation).factor(asked.as_arrays()))

    assert found("add", 4096) == pytest.approx(np.exp(0.3), rel=1e-5)
    assert 1.05 < found("add", 8192) < np.exp(0.3)
    for other in (found("gelu", 4096), found("add", 4096, "fp32"), found("add", 2.0**20)):
        assert other == pytest.approx(1.0, abs=2e-3)
    assert found("add", 4096, inputs=3.0) == 1.0  # reads another array: nobody measured that
    assert points.lines()[3] == '  ["add", 4096, 8192, 2, 0.3000],'
    back = read_points(Path("mine.toml"), "", "vllm_vector", tomllib.loads("\n".join(points.lines()))["discrepancy"])
    assert back is not None and back.sizes.tolist() == points.sizes.tolist()
    with pytest.raises(InputError, match="no vector operator is called 'ad'; did you mean 'add'"):
        read_points(Path("mine.toml"), "", "vllm_vector", {"sm_count": 1, "points": [["ad", 1, 1, 2, 0.1]]})


@quick_jit
def answers(model: Amali, gpu, asked: Kernel):
    return model(asked, gpu), model.nanoseconds(asked, gpu)


def test_the_stack_grows_in_proportion_and_adds_up_to_the_time():
    gpu, asked = load_gpu("h100_sxm"), kernel(Gemm(160, 8192, 4096)).as_arrays()
    plain, time = answers(Amali(), gpu, asked)
    corrected, longer = answers(Amali(discrepancy=POINTS.record()), gpu, asked)
    grown = np.exp(POINTS.at(sizes((160, 8192, 4096)))[0])
    assert float(longer / time) == pytest.approx(grown, rel=1e-4)
    for cause, cycles in plain.stack().items():
        assert float(corrected.stack()[cause]) == pytest.approx(float(cycles) * grown, rel=1e-4, abs=1e-3), cause
    assert float(corrected.nanoseconds) == pytest.approx(float(longer), rel=1e-4)
    assert float(corrected.dram_bytes) == float(plain.dram_bytes)


@pytest.mark.parametrize(("gemm", "compute"), [(Gemm(8192, 8192, 8192), True), (Gemm(16, 16384, 16384), False)])
def test_nothing_beats_the_data_sheet(gemm, compute):
    """However much faster a discrepancy says: 312 TFLOP/s, 2,039 GB/s."""
    gpu, asked = load_gpu("a100_sxm_80gb"), kernel(gemm).as_arrays()
    eager = Points("matrix", sizes((gemm.m, gemm.n, gemm.k)), np.array([-5.0]), 132.0)
    timing, time = answers(Amali(discrepancy=eager.record()), gpu, asked)
    flops, moved = 2.0 * gemm.m * gemm.n * gemm.k, float(timing.dram_bytes)
    least = 1e9 * flops / 312e12 if compute else moved / float(gpu.dram_bandwidth_gbs)
    assert float(time) == pytest.approx(least, rel=5e-3)
    assert float(timing.nanoseconds) == pytest.approx(float(time), rel=1e-5)


def test_designs_differ_by_the_equations_alone():
    """More SMs are not other waves of the measured GPU: the ratio of two designs is the equations'."""
    asked, gpu = kernel(Gemm(160, 8192, 4096)).as_arrays(), load_gpu("h100_sxm")
    larger = jax.tree.map(lambda x: x, gpu).__class__(**{**vars(gpu), "sm_count": gpu.sm_count * 1.2})
    for model in (Amali(), Amali(discrepancy=POINTS.record())):
        ratio = float(answers(model, larger, asked)[1] / answers(model, gpu, asked)[1])
        plain = float(answers(Amali(), larger, asked)[1] / answers(Amali(), gpu, asked)[1])
        assert ratio == pytest.approx(plain, rel=1e-5)


def test_a_file_holds_it_and_is_refused_by_what_is_wrong():
    path = Path("mine.toml")
    content = tomllib.loads("\n".join(POINTS.lines()))["discrepancy"]
    back = read_points(path, "", "matrix", content)
    assert back is not None
    np.testing.assert_allclose(back.sizes, POINTS.sizes)
    np.testing.assert_allclose(back.weights, POINTS.weights)
    assert back.sm_count == POINTS.sm_count and read_points(path, "", "matrix", None) is None
    wrong = {
        "points, number 2": content | {"points": [[1, 1, 1, 0.1], [1, 1, 1]]},
        "give a number from -100": content | {"points": [[1, 1, 1, "x"]]},
        "sm_count is None": {"points": content["points"]},
        "'weight' is no key": content | {"weight": 1},
        "give sm_count and points": {"sm_count": 132, "points": []},
    }
    for words, table in wrong.items():
        with pytest.raises(InputError, match=r"mine\.toml") as error:
            read_points(path, "implementations.matrix_early.", "matrix_early", table)
        assert words in str(error.value) and "implementations.matrix_early.discrepancy" in str(error.value)


def test_the_ends_of_a_weights_range_are_in_it():
    found = read_points(Path("x"), "", "matrix", {"sm_count": 132, "points": [[1, 1, 1, -10], [2, 2, 2, 10.0]]})
    assert found is not None and found.weights.tolist() == [-10.0, 10.0]


def test_only_what_was_measured_has_one_and_a_gpu_that_nobody_measured_has_none():
    assert load_timing_calibration("shared").model.discrepancy is None
    found = load_timing_calibration("v100_sxm2_16gb").model.discrepancy  # its own products gain nothing by one
    assert found is not None
    most = dict(zip(IMPLEMENTATIONS, np.abs(found.weights).max(axis=1), strict=True))
    assert most["matrix"] == most["matrix_simt"] == 0 and most["fa2_decode"] > 0 and most["quantise"] > 0
    ours = load_timing_calibration("h100_sxm").model.discrepancy
    assert np.abs(ours.weights[IMPLEMENTATIONS.index("matrix")]).max() > 0
    assert np.abs(ours.weights[IMPLEMENTATIONS.index("matrix_simt")]).max() == 0


def test_copied_operands_pass_the_dram_too():
    operator = attention_operator("a", Attention(64, 64, 8, 128, 1, 512), (8.0, 8.0))
    asked = next(c.kernel for c in operator.candidates if c.kernel.copied_bytes > 0)
    model, gpu = Amali(), load_gpu("a100_sxm_80gb")
    with_copies, without = (
        answers(model, gpu, replace(asked, copied_bytes=size).as_arrays())[0] for size in (asked.copied_bytes, 0.0)
    )
    share = min(float(model.sustained.copied), 1.0)
    moved = float(with_copies.dram_bytes) - float(without.dram_bytes)
    assert moved == pytest.approx(share * asked.copied_bytes, rel=1e-3) and moved > 0
