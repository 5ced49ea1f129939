"""The steps that a measured run took."""

import pytest

from dse.measured.network_runs.rows import predicted_runs
from tests.measured.network_runs.runs import MODEL, ROW, runs

MIXTURE = {"op": "serving_tpot", "group": "x_Qwen3-30B-A3B", "batch": 32.0}


def test_requests_beyond_the_memory_wait_for_their_turn():
    long = {"group": "x_Llama-2-7b-hf", "seq_q": 2048.0, "seq_kv": 2048.0}
    rows, _ = runs(long | {"batch": 16.0}, long | {"batch": 64.0})
    fits, waits = predicted_runs(MODEL, rows)[0]["predicted_us"]
    assert rows.steps[1][0].prompts < 64 and rows.steps[0][0].prompts == 16
    assert waits > 2.5 * fits
    assert rows.steps[1][0].runs == pytest.approx(64 / rows.steps[1][0].prompts)


@pytest.mark.parametrize(
    ("notes", "column"), [("backend=vllm; dp=4", {}), ("backend=vllm; id=x_c32_tp1_dp4_ep4_2", {}), ("", {"dp": 4.0})]
)
def test_replicas_of_attention_are_told_by_notes_or_a_column(notes, column):
    """Each replica decodes a quarter of the requests, reads one prompt at a time, and nothing is reduced."""
    rows, _ = runs(MIXTURE | {"notes": notes} | column)
    decode, prefill = rows.steps[0]
    assert (decode.requests, decode.reductions, prefill.prompts) == (8, 0, 1)
    assert prefill.runs == pytest.approx((8 - 1) / (ROW["seq_kv"] - 1))
    assert any(name.startswith("expert_dispatch") for name in rows.operators.table["name"])


def test_experts_that_ranks_share_out_are_others_than_slices_of_all():
    shared, sliced = (runs(MIXTURE | {"tp": 4.0} | more)[0] for more in ({"moe_ep": 4.0}, {}))
    assert shared.steps[0][0].requests == sliced.steps[0][0].requests == 32
    assert predicted_runs(MODEL, shared)[0]["predicted_us"][0] != predicted_runs(MODEL, sliced)[0]["predicted_us"][0]


def test_degrees_that_share_nothing_out_evenly_are_refused():
    rows, skipped = runs(MIXTURE | {"batch": 30.0, "notes": "dp=4"}, MIXTURE | {"tp": 4.0, "notes": "ep=3"})
    assert rows is None
    assert [reason.partition(":")[2][:30] for reason in skipped] == [
        " dp=4 does not divide the 30 r",
        " ep=3 does not divide tp=4; gi",
    ]


def test_a_checkpoint_in_four_bits_runs_in_four_bits():
    rows, _ = runs({"group": "x_gpt-oss-20b", "dtype": "mxfp4"}, {"group": "x_gpt-oss-20b", "dtype": "bf16"})
    us = predicted_runs(MODEL, rows)[0]["predicted_us"]
    assert us[0] < 0.75 * us[1]


def test_latent_attention_runs_in_the_form_of_engines():
    """Of prompts keys and values are made, of decode steps heads attend latents: no form is chosen kernel by kernel."""
    rows, _ = runs({"op": "serving_tpot", "group": "x_DeepSeek-V2-Lite", "batch": 4.0, "seq_q": 512.0, "seq_kv": 8.0})
    names = [str(name) for name in rows.operators.table["name"]]
    assert any(name.startswith("key_value_projection") for name in names)
    assert not any(label.endswith("no kernel") for label in rows.operators.labels)
    forms = [label.partition(":")[0] for label in rows.operators.labels]
    for row in set(rows.operators.row[[form in ("made", "absorbed") for form in forms]].tolist()):
        assert len({form for form, its in zip(forms, rows.operators.row, strict=True) if its == row}) == 1
