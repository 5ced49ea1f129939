"""Compiled traces against the recurrence they were compiled from."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dse.hardware.gpu import Gpu
from dse.timing.amali import Amali
from dse.timing.mdm import Mdm
from dse.timing.timing import CAUSES, TimingModel
from dse.timing.traced.by_latency_forms import by_forms
from dse.timing.traced.models import on_trace, trace_latencies
from dse.timing.traced.scoreboard import lone_warp
from dse.traces.traced_kernel import TracedKernel, with_forms
from tests.programs import quick_jit
from tests.timing.traced.test_traced_intervals import A100, designs, kernel, line, mixed_ctas

models = pytest.mark.parametrize(
    "model", [pytest.param(Amali(), id="amali"), pytest.param(Mdm(), id="mdm", marks=pytest.mark.slow)]
)


def products(trips: int = 12) -> list[list[list[str]]]:
    """Return CTAs of two warps that load a trip ahead, share what they loaded, and multiply it."""

    def warp(number: int) -> list[str]:
        lines = []
        for trip in range(trips):
            here, before = 40 + trip % 2, 40 + (trip + 1) % 2
            lines.append(line("LDG.E.SYS", here, [1], 0x7F0000000000 + 4096 * number + 128 * trip))
            lines += [f"0010 ffffffff 0 STS 1 R{before} 4 1 0x100 4", "0010 ffffffff 1 R60 LDS 1 R3 4 1 0x100 4"]
            lines += [line("HMMA.16816.F32", 8 + 4 * k, [60, 8 + 4 * k]) for k in range(4)]
        return [*lines, line("STG.E.SYS", None, [8], 0x7F1000000000 + 4096 * number), line("EXIT")]

    return [[warp(2 * cta + w) for w in range(2)] for cta in range(30)]


def compiled(record: TracedKernel, model: TimingModel) -> TracedKernel:
    """Return a kernel with its forms for designs around an A100."""
    with jax.enable_x64(True):
        latency = [np.asarray(trace_latencies(model, record, designs(4096, seed))) for seed in (11, 12)]
    return with_forms(record, *latency)


@models
@pytest.mark.parametrize("ctas", [mixed_ctas, products], ids=["mixed", "products"])
def test_equal_the_recurrence(tmp_path: Path, model: TimingModel, ctas) -> None:
    record = kernel(tmp_path, ctas())
    by_form = compiled(record, model)
    assert by_form.compiled is not None
    assert by_form.compiled.forms is not None
    with jax.enable_x64(True):
        batch = designs(1000, 13)
        found, expected = (quick_jit(lambda g, k=k: on_trace(model, k, g))(batch) for k in (by_form, record))
        for cause in CAUSES:
            assert np.allclose(getattr(found, cause), getattr(expected, cause), rtol=1e-9, atol=1e-6), cause
        latency = trace_latencies(model, record, batch)
        lone, plain = by_forms(by_form.compiled.forms, latency).lone, lone_warp(record.segments, latency)
        assert np.allclose(lone.stalled, plain.stalled, rtol=1e-12, atol=1e-9)
        assert np.allclose(lone.drain, plain.drain, rtol=1e-12, atol=1e-9)
        assert np.array_equal(lone.intervals, plain.intervals)


@models
def test_32_bits_are_as_good_as_64(tmp_path: Path, model: TimingModel) -> None:
    """The recurrence adds rounding errors up until some look like stalls; forms add up a few latencies."""
    record = compiled(kernel(tmp_path, products()), model)
    found = []
    for x64 in (False, True):
        with jax.enable_x64(x64):
            found.append(np.asarray(quick_jit(lambda g: on_trace(model, record, g).cycles)(designs(2000, 14)), float))
    assert (np.abs(found[0] / found[1] - 1) < 1e-5).mean() > 0.999  # the rest is ready to a thousandth of a cycle


def test_edges_between_patterns_are_the_recurrences(tmp_path: Path) -> None:
    """Whole latencies, among which operands are often ready to the cycle, in 32 bits."""
    record = kernel(tmp_path, products())
    base = np.round(np.asarray(trace_latencies(Amali(), record, Gpu.from_numbers(A100))))[:, None]
    drawn = [base + np.random.default_rng(seed).integers(-3, 4, (len(base), 3000)) for seed in (1, 2)]
    forms = with_forms(record, *(np.maximum(d, 1.0) for d in drawn)).compiled
    assert forms is not None
    assert forms.forms is not None
    latency = jnp.asarray(np.maximum(drawn[1], 1.0), jnp.float32)
    found, expected = by_forms(forms.forms, latency), lone_warp(record.segments, latency)
    assert found.exact.mean() > 0.999
    for name in ("stalled", "drain", "intervals", "drain_cause"):
        assert np.array_equal(
            np.asarray(getattr(found.lone, name))[found.exact], np.asarray(getattr(expected, name))[found.exact]
        ), name


@pytest.mark.slow
def test_a_design_in_no_pattern_gets_the_recurrence_and_its_neighbours_do_not_notice(tmp_path: Path) -> None:
    model, record = Amali(), kernel(tmp_path, mixed_ctas())
    with jax.enable_x64(True):
        near = np.asarray(trace_latencies(model, record, Gpu.from_numbers(A100)))[:, None]
        narrow = with_forms(
            record, *(near * np.random.default_rng(s).uniform(0.99, 1.01, (len(near), 500)) for s in (1, 2))
        )
        assert narrow.compiled is not None
        batch = designs(400, 15)
        here = {name: np.asarray(getattr(batch, name)) for name in A100}
        among = Gpu.from_attributes({name: jnp.asarray(np.append(value, A100[name])) for name, value in here.items()})
        exact = np.asarray(by_forms(narrow.compiled.forms, trace_latencies(model, record, among)).exact)
        assert exact[-1]
        assert 10 < exact.sum() < 300
        found, expected = (quick_jit(lambda g, k=k: on_trace(model, k, g).cycles)(among) for k in (narrow, record))
        assert np.allclose(found, expected, rtol=1e-9)
        alone = quick_jit(lambda g: on_trace(model, narrow, g).cycles)(Gpu.from_numbers(A100))
        assert float(alone) == float(found[-1])


@pytest.mark.slow
def test_gradients_are_those_of_the_recurrence(tmp_path: Path) -> None:
    record, model = kernel(tmp_path, products()), Amali()
    by_form = compiled(record, model)
    with jax.enable_x64(True):
        batch = designs(50, 16)

        def total(k):
            return quick_jit(jax.grad(lambda g: on_trace(model, k, g).cycles.sum()))(batch)

        for a, b in zip(jax.tree.leaves(total(by_form)), jax.tree.leaves(total(record)), strict=True):
            assert np.allclose(a, b, rtol=1e-6, atol=1e-6 * (1 + np.abs(b).max()))
