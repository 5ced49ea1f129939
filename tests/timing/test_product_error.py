"""Intervals of workloads whose products are of narrow types."""

from dataclasses import replace
from math import exp

from dse.base.error_interval import ErrorInterval
from dse.hardware.presets import preset_sheet
from dse.timing.calibration import UNSEEN, implementation_calibration
from dse.timing.error_quantiles import NO_RELEASE
from dse.timing.product_error import fitted_products, with_fitted_products
from dse.workload.operators.gemm_library import TUNED
from dse.workload.parse import load_workload
from dse.workload.serving_engine import find_engine
from dse.workload.target import Target

KNOWN = ErrorInterval(0.99, 1.01, "made up", ("h100_sxm",))


def workload(dtype, gpu="h100_sxm"):
    """A decode step of a network on a GPU."""
    target = Target.of([preset_sheet(gpu).numbers()], TUNED)
    return load_workload(f"llama3_8b:phase=decode,batch=8,context=512,dtype={dtype}", target)


def implementations(some):
    """Narrow implementations of a workload's operators."""
    return set().union(*(fitted_products(o) for o in some.operators))


def test_a_workload_in_16_bits_keeps_its_interval():
    assert implementations(workload("bf16")) == set()
    assert with_fitted_products(KNOWN, [workload("bf16")], preset_sheet("h100_sxm")) == KNOWN


def test_the_widest_of_both_intervals_holds_where_products_are_narrow():
    some = workload("fp8")
    (name,) = implementations(some)
    found = with_fitted_products(KNOWN, [some], preset_sheet("h100_sxm"))
    assert found.low < KNOWN.low and found.high > KNOWN.high
    assert "products in narrow types of any framework" in found.source
    (mine,) = (r for r in implementation_calibration(name).error_quantiles if r.regime == "all" and r.way == NO_RELEASE)
    assert (found.low, found.high) == (exp(-mine.q90), exp(-mine.q10))


def test_an_engine_names_the_framework():
    served = replace(workload("fp8"), engine=find_engine("vllm_0_12"))
    found = with_fitted_products(KNOWN, [served], preset_sheet("h100_sxm"))
    wide = with_fitted_products(KNOWN, [workload("fp8")], preset_sheet("h100_sxm"))
    assert "products in narrow types in shapes left out" in found.source
    assert wide.low < found.low < found.high < wide.high


def test_a_gpu_that_was_not_measured_gets_the_errors_of_others():
    served = replace(workload("fp8", "gh200"), engine=find_engine("vllm_0_12"))
    found = with_fitted_products(KNOWN, [served], preset_sheet("gh200"))
    assert "left out" in found.source and "GPUs" in found.source
    name = implementations(workload("fp8", "gh200")).pop()
    assert any(r.gpu == UNSEEN for r in implementation_calibration(name).error_quantiles)


def test_products_of_latent_attention_are_those_of_its_usual_form():
    target = Target.of([preset_sheet("h200").numbers()], TUNED)
    made = load_workload("deepseek_v3:phase=prefill,prompt=512,dtype=fp8_block,tp=8", target).operators
    product = next(o for o in made if o.name == "key_value_projection_experts")
    other = next(o for o in made if o.name == "query_projection_experts")
    assert len(product.forms) == 2 and fitted_products(product) == fitted_products(other) != set()
