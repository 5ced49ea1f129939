"""Two forms of the same: their operators side by side, and the place of a kernel that one of them has not."""

import numpy as np
import pytest

from dse.evaluate.shared_programs import timings_on
from dse.hardware.presets import load_sheet
from dse.timing.amali import Amali
from dse.timing.mdm import Mdm
from dse.timing.roofline import Roofline
from dse.workload.kernel import Kernel
from dse.workload.operators.attention import Attention, attention_operator
from dse.workload.operators.forms import NOTHING, either, is_nothing, usual_form
from dse.workload.operators.gemm import Gemm, gemm_operator
from dse.workload.operators.vector import vector_operator


def product(name):
    return gemm_operator(name, Gemm(64.0, 64.0, 64.0))


def attention(name):
    return attention_operator(name, Attention(1, 8, 8, 64, 1, 256), phase="decode")


ONES = [vector_operator("narrow", "copy", 8.0, 8.0, "bf16"), product("made_keys"), attention("attention")]
OTHERS = [product("into_queries"), attention("latents"), product("out_of_values")]


def test_attentions_stand_in_one_place_and_what_is_missing_is_no_kernel():
    joined = either("made", ONES, "absorbed", OTHERS)
    assert [o.name for o in joined] == ["narrow", "made_keys", "attention", "out_of_values"]
    assert all(o.forms == ("made", "absorbed") for o in joined)
    firsts = [[next(c for c in o.candidates if c.form == form) for o in joined] for form in ("made", "absorbed")]
    assert [[is_nothing(c) for c in one] for one in firsts] == [[False] * 3 + [True], [True] + [False] * 3]
    assert firsts[1][1].label.startswith("absorbed: into_queries 64 x 64 x 64")
    assert firsts[0][3].label == f"made: {NOTHING}"


def test_the_usual_form_is_the_first_alone():
    found = usual_form(either("made", ONES, "absorbed", OTHERS))
    assert [o.name for o in found] == [o.name for o in ONES]
    for operator, alone in zip(found, ONES, strict=True):
        assert [c.kernel for c in operator.candidates] == [c.kernel for c in alone.candidates]


def test_operators_without_forms_stay():
    assert usual_form(ONES) == ONES


@pytest.mark.parametrize("model", [Amali(), Mdm(), Roofline()], ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("name", ["a100_sxm_80gb", "h200", "b200_sxm"])
def test_no_kernel_takes_no_time_on_any_gpu(model, name):
    made = either("made", ONES, "absorbed", OTHERS)[3].candidates[0].kernel
    timing = timings_on(load_sheet(name).record(), Kernel.stack([made]), model)
    assert timing.feasible[0] == 1
    assert 0 <= float(np.asarray(timing.nanoseconds)[0]) < 1e-4
    assert float(np.asarray(timing.dram_bytes)[0]) == 0
