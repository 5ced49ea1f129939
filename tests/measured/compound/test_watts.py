"""Board power of rows that are several kernels: the mean over their kernels, and every kind of kernel that is timed."""

import pytest

from dse.measured.power_rows import ALIKE, UNFILLED
from dse.measured.table import read_operators
from dse.power.board import BoardPower
from dse.validation.power import compared, validate_power
from tests.calibration.tables import operator_table

EXPERTS = {"op": "moe", "tokens": 8192.0, "hidden": 4096.0, "inter": 1536.0, "experts": 128.0, "topk": 8.0,
           "moe_tp": 1.0, "moe_ep": 1.0, "distribution": "balanced", "notes": "impl=vllm-0.22.0/vllm_fused_moe",
           "m": None, "n": None, "k": None, "latency_us": 3000.0}  # fmt: skip
LATENT = {"op": "mla_decode_module", "batch": 256.0, "heads": 16.0, "seq_q": 1.0, "seq_kv": 16384.0,
          "q_lora_rank": 1536.0, "kv_lora_rank": 512.0, "rope_dim": 64.0, "kv_dtype": "bf16",
          "kv_heads": 1.0, "head_dim": 576.0, "m": None, "n": None, "k": None, "latency_us": 1500.0}  # fmt: skip
PRODUCT = {"n": 8192.0, "latency_us": 2000.0}


def rows(path, time="measured", **columns):
    """A table's rows with their predicted watts; source and notes as of loops for power."""
    table = operator_table(path, **{"source": "aiconfigurator"} | columns)
    return compared(read_operators(table), time, BoardPower.from_table())


@pytest.mark.parametrize(
    "columns",
    [EXPERTS, EXPERTS | {"dtype": "fp8"}, LATENT, PRODUCT | {"dtype": "fp8"}, PRODUCT | {"dtype": "fp8_block"}],
    ids=["mixture", "mixture in fp8", "module of latent attention", "product in fp8", "product in blocks"],
)
def test_every_kind_that_is_timed_has_watts_between_rest_and_limit(tmp_path, columns):
    found, skipped = rows(tmp_path / "t.csv", **columns)
    assert len(found) == 3 and not skipped
    assert (found["predicted_w"] > 120).all() and (found["predicted_w"] <= 700).all()


def test_a_longer_time_for_the_same_work_draws_less(tmp_path):
    found, _ = rows(tmp_path / "t.csv", **EXPERTS | {"latency_us": [4000.0, 8000.0, 64000.0]})
    near, twice, long = found["predicted_w"]
    assert near > twice > long
    own, _ = rows(tmp_path / "t.csv", "model", **EXPERTS | {"latency_us": [4000.0, 8000.0, 64000.0]})
    assert own["predicted_w"].nunique() == 1  # whatever was measured


def test_a_product_with_its_pass_draws_more_in_the_same_time(tmp_path):
    shape = {"m": 16384, "n": 1024, "k": 8192, "latency_us": 800.0, "dtype": "fp8"}
    alone, _ = rows(tmp_path / "t.csv", **shape | {"source": "mine"})
    both, _ = rows(tmp_path / "u.csv", **shape)
    assert (both["predicted_w"] > alone["predicted_w"]).all()  # the pass's bytes come on top
    assert (both["family"] == alone["family"]).all()


def test_answers_name_types_and_what_no_fit_has_seen(tmp_path):
    answer = validate_power(operator_table(tmp_path / "t.csv", source="aiconfigurator", **EXPERTS | {"dtype": "fp8"}))
    (kind,) = answer["kinds"]
    assert (kind["device"], kind["op"], kind["dtype"], kind["n"]) == ("H200-SXM-141GB", "moe", "fp8", 3)
    assert "No fit of watts has seen moe in fp8" in answer["note"]


def test_prefills_over_a_cache_that_nobody_filled_draw_less_and_say_so(tmp_path):
    shape = {"op": "attn_prefill", "batch": 4, "heads": 32, "kv_heads": 8, "head_dim": 128, "seq_q": 4096,
             "seq_kv": 4096, "latency_us": 2000.0}  # fmt: skip
    known, _ = rows(tmp_path / "t.csv", **shape)
    unknown, _ = rows(tmp_path / "u.csv", notes="impl=vllm-0.22.0/vllm_flash_attn", **shape)
    assert (unknown["predicted_w"] < known["predicted_w"]).all()
    assert set(unknown["operands"]) == {UNFILLED} and set(known["operands"]) == {""}
    note = validate_power(tmp_path / "u.csv")["note"]
    assert "3 prefills read keys and values that nobody wrote" in note


def test_modules_of_one_number_draw_less_and_stand_in_a_line_of_their_own(tmp_path):
    notes = ["impl=vllm-0.22.0/default", "impl=trtllm-1.3.0rc15/default", "impl=sglang-0.5.10/default"]
    found, _ = rows(tmp_path / "t.csv", **LATENT | {"heads": 128.0, "latency_us": 8000.0, "notes": notes})
    alike, unfilled, known = (found["predicted_w"][found["operands"] == o].item() for o in (ALIKE, UNFILLED, ""))
    assert alike < unfilled < known
    answer = validate_power(tmp_path / "t.csv")
    assert {(kind["operands"], kind["n"]) for kind in answer["kinds"]} == {(ALIKE, 1), (UNFILLED, 1), ("", 1)}
    assert "1 decode read keys and values that nobody wrote" in answer["note"]
    assert "1 module ran with one number" in answer["note"]
