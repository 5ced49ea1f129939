"""A metric as a function of a GPU: it is what a run answers, and its gradient is that of finite differences."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dse
from dse.hardware.gpu import Gpu


@pytest.fixture(scope="module")
def gemms(tmp_path_factory):
    path = tmp_path_factory.mktemp("objective") / "g.csv"
    path.write_text("m,n,k\n16,8192,8192\n")  # its bytes take longest
    return str(path)


def stepped(gpu, name, factor):
    return gpu.with_attributes({name: gpu.attribute(name) * factor})


def difference(function, gpu, name, step=0.01):
    up, down = (float(function(stepped(gpu, name, 1 + s))) for s in (step, -step))
    return (up - down) / (2 * step * float(gpu.attribute(name)))


def test_area_is_differentiable_compiled_and_mapped():
    area, gpu = dse.objective("unused", "die_mm2"), dse.load_gpu("h100_sxm")
    assert repr(area) == "WorkloadObjective(die_mm2 [mm2])"
    slope = jax.jit(jax.grad(area))(gpu)
    for name in ("l2_mib", "tensor_fma_fp16"):
        assert float(slope.attribute(name)) == pytest.approx(difference(area, gpu, name), rel=0.02)
    batch = jax.tree.map(lambda x: jnp.stack([x, x]), gpu)
    assert np.allclose(jax.vmap(area)(batch), float(area(gpu)))


@pytest.mark.parametrize(("metric", "words"), [("tbt_ms", "'tbt_ms' is not accepted"), (3, "give the name")])
def test_a_metric_that_the_workload_lacks_is_refused(gemms, metric, words):
    with pytest.raises(dse.InputError, match=words):
        dse.objective(gemms, metric)


@pytest.mark.slow
@pytest.mark.parametrize("metric", ["time_ms", "energy_j", "power_w"])
def test_value_is_a_runs_and_slopes_are_finite_differences(gemms, metric):
    function, gpu = dse.objective(gemms, metric), dse.load_gpu("h100_sxm")
    value, slope = function.value_and_grad(gpu)
    assert float(value) == pytest.approx(dse.run("h100_sxm", gemms).metrics[metric].value, rel=1e-4)
    assert isinstance(slope, Gpu)
    found = {name: float(x) for name, x in slope.attributes().items()}
    assert all(np.isfinite(list(found.values())))
    assert max(map(abs, found.values())) < 1e6  # no sentinel of a candidate that cannot run
    compiled = jax.jit(function, compiler_options=function.compiler_options)
    assert found["dram_bandwidth_gbs"] == pytest.approx(difference(compiled, gpu, "dram_bandwidth_gbs"), rel=0.03)


@pytest.mark.slow
def test_a_gpu_that_cannot_run_it_takes_forever_and_has_no_slope(gemms):
    function = dse.objective(gemms, "time_ms")
    gpu = dse.load_gpu("h100_sxm").with_attributes({"tensor_cores_per_sm": 0.0})
    value, slope = function.value_and_grad(gpu)
    assert np.isinf(value)
    assert not any(float(x) for x in slope.attributes().values())


@pytest.mark.slow
def test_designs_are_mapped(gemms):
    function = dse.objective(gemms, "time_ms")
    gpus = [stepped(dse.load_gpu("h100_sxm"), "dram_bandwidth_gbs", factor) for factor in (0.5, 1.0, 1.5)]
    batch = jax.tree.map(lambda *x: jnp.stack(x), *gpus)
    times = jax.jit(jax.vmap(function), compiler_options=function.compiler_options)(batch)
    alone = jax.jit(function, compiler_options=function.compiler_options)
    assert np.allclose(times, [float(alone(gpu)) for gpu in gpus], rtol=1e-5)
    assert times[0] > times[1] >= times[2]
