"""Measured rows as the kernels that ran: what their notes and their source say of the library is heeded."""

import numpy as np
import pandas as pd
import pytest

from dse.base.skipped_rows import Skipped
from dse.hardware.presets import load_sheet
from dse.measured.row_kernels import load_launches
from dse.measured.row_operator import WRITES, operator_on
from dse.timing.amali import Amali
from dse.timing.roofline import Roofline
from dse.workload.implementation import IMPLEMENTATIONS


def rows(*notes: str, **columns: object) -> pd.DataFrame:
    """One prefill for each of some notes."""
    shape = {"batch": 4.0, "heads": 32.0, "kv_heads": 8.0, "head_dim": 128.0, "seq_q": 1024.0, "seq_kv": 1024.0}
    fixed = {"source": "aiconfigurator", "op": "attn_prefill", "dtype": "bf16", "latency_us": 100.0}
    return pd.DataFrame([fixed | shape | {"notes": text} | columns for text in notes])


def loaded(frame, preset="h100_sxm", model=None):
    """The launches of rows, and the reasons of those that have none."""
    skipped = Skipped()
    found = load_launches(frame, load_sheet(preset), model or Roofline(), skipped)
    assert found is not None
    return found, skipped


def test_the_library_that_the_notes_name_has_its_own_kernels():
    found, skipped = loaded(rows("", "vllm_flash_attn_fa3", "trtllm"))
    assert not skipped
    assumed, named, other = found.kernels.implementation.tolist()
    assert assumed == named != other


def test_a_row_that_holds_the_kernel_which_writes_the_cache_takes_longer():
    found, _ = loaded(rows("", WRITES), model=Amali())
    without, with_it = found.timing.microseconds.tolist()
    assert with_it > without


def test_rows_that_are_no_rate_of_the_gpu_are_counted_with_their_reason():
    decode = {"op": "attn_decode", "seq_q": 1.0, "window": 8192}
    found, skipped = loaded(rows("", "impl=sglang-0.5.14/trtllm_mha", **decode), "b200")
    assert len(found.frame) == 1
    why = "a window of 8192 keys is none in decodes of sglang: its rows take as long as all keys"
    assert skipped == {f"B200 SXM (HGX): attn_decode in bf16: {why}": 1}


@pytest.mark.parametrize(
    ("preset", "notes", "implementation"),
    [
        ("b200", "impl=trtllm-1.3.0rc20/torch_flow", "trtllm_gen_prefill"),
        ("b200", "impl=vllm-0.20.0/vllm_flashinfer", "trtllm_gen_vllm_0_19_prefill"),
        ("b200", "impl=vllm-0.25.0/vllm_flashinfer_trtllmprefill", "trtllm_gen_vllm_prefill"),
        ("b200", "impl=sglang-0.5.5/trtllm_mha", "trtllm_gen_sglang_0_5_10_prefill"),
        ("b200", "", "trtllm_gen_vllm_prefill"),
        ("h100_sxm", "impl=trtllm-1.3.0rc20/torch_flow", "trtllm_prefill"),
        ("h200", "impl=sglang-0.5.14/fa3", "fa3_sglang_prefill"),
        ("l40s", "impl=vllm-0.24.0/vllm_flash_attn_fa2", "fa2_gddr_today_prefill"),
        ("a100_sxm_80gb", "impl=vllm-0.14.0/vllm_flash_attn", "fa2_prefill"),
        ("rtx_pro_6000", "impl=trtllm-1.3.0rc20/torch_flow", "trtllm_gddr_prefill"),
    ],
)
def test_a_row_runs_what_its_framework_s_nearest_release_does_on_its_gpu(preset, notes, implementation):
    found, _ = loaded(rows(notes), preset)
    assert IMPLEMENTATIONS[int(found.kernels.implementation[0])] == implementation


@pytest.mark.parametrize("preset", ["h100_sxm", "a100_sxm_80gb"])
def test_the_chosen_kernel_is_one_of_the_operators(preset):
    found, _ = loaded(rows("trtllm" if preset == "h100_sxm" else "sglang"), preset)
    operator = operator_on(load_sheet(preset).numbers(), next(found.frame.itertuples()))
    ctas = {float(candidate.kernel.ctas) for candidate in operator.candidates}
    assert set(np.asarray(found.kernels.ctas).tolist()) <= ctas


def test_rows_of_which_no_kernel_runs_are_counted():
    wide = rows("", head_dim=2048.0, op="attn_decode", seq_q=1.0)
    skipped = Skipped()
    assert load_launches(wide, load_sheet("h100_sxm"), Roofline(), skipped) is None
    assert skipped == {"H100 SXM5 80GB runs none of the kernels of attn_decode bf16 with heads of 2048": 1}
    found, skipped = loaded(pd.concat([wide, rows("")]))
    assert len(found.frame) == len(found.kernels.ctas) == 1
    assert skipped.total() == 1
