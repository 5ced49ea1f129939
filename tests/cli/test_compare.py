"""dse compare: names, an axis, prices, JSON, a page."""

import json
from pathlib import Path

import pytest

from dse.cli import run_command

WORKLOAD = "gpt2_xl:phase=decode,context=512,dtype=fp16"


def test_json_has_a_row_a_gpu_and_value(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "compare.html"
    arguments = ["compare", "h100_sxm", "h200", WORKLOAD, "--axis", "batch=1,8", "--price", "h200=3", "-o", str(page)]
    assert run_command([*arguments, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [(row["gpu"], row["value"]) for row in document["rows"]] == [
        ("h100_sxm", "1"),
        ("h200", "1"),
        ("h100_sxm", "8"),
        ("h200", "8"),
    ]
    assert document["prices"]["h200"] == {"usd_per_hour": 3.0, "list": "given", "assumed": False} and page.exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["h100_sxm", WORKLOAD], "two GPUs at least"),
        (["h100_sxm", "h200", WORKLOAD, "--axis", "batch"], "as batch=1,8,64"),
        (["h100_sxm", "h200", WORKLOAD, "--axis", "batch=1,1"], "given twice"),
        (["h100_sxm", "h200", WORKLOAD, "--axis", "batch=x,1"], "batch=x is not accepted; give a whole number"),
        (["h100_sxm", "h200", WORKLOAD, "--power", "nix"], "--power nix: neither a model"),
        (["h100_sxm", "h200", WORKLOAD, "--price", "h200=much"], "GPU=USD an hour"),
    ],
)
def test_wrong_input_is_a_sentence(arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["compare", *arguments]) == 2
    assert sentence in " ".join(capsys.readouterr().err.split())
