"""The workloads of a space: weights, names, and files that stand beside the space."""

from pathlib import Path
from typing import Any

import pytest

from dse.base.errors import InputError
from dse.hardware.presets import preset_sheet
from dse.space.workloads import Around, read_workloads
from dse.timing.roofline import Roofline
from dse.workload.target import Target

H100 = preset_sheet("h100_sxm")
USE = "gpt2_xl:phase=decode,batch=1,context=16"


def around(folder: Path = Path()) -> Around:
    return Around(H100, (), (), Target.of([H100.numbers()]), folder, Roofline())


def test_a_text_stands_for_a_table_of_weight_1() -> None:
    workloads, weights = read_workloads({"decode": USE, "twice": {"use": USE, "weight": 2}}, "here", around())
    assert [workload.name for workload in workloads] == ["decode", "twice"]
    assert weights == (1.0, 2.0)


def test_a_file_stands_beside_the_space(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("m,n,k,dtype\n64,64,64,bf16\n")
    (workload,), _ = read_workloads({"products": "mine.csv"}, "here", around(tmp_path))
    assert len(workload.operators) == 1
    absolute = str(tmp_path / "mine.csv")
    assert read_workloads({"products": absolute}, "here", around())[0][0].operators[0].name


@pytest.mark.parametrize(
    ("key", "entry", "words"),
    [
        ("decode", 3, "3 is not accepted; give use ="),
        ("decode", {"weight": 1}, "is not accepted; give use ="),
        ("decode", {"use": USE, "wieght": 1}, "'wieght' is not a key of a workload; did you mean 'weight'"),
        ("decode", {"use": USE, "weight": -1}, "weight = -1 is not accepted; give a number of at least 0"),
        ("decode", {"use": USE, "weight": True}, "weight = True is not accepted"),
        ("decode", {"use": USE, "weight": float("nan")}, "weight = nan is not accepted"),
        ("de code", USE, "'de code' cannot name a workload"),
        ("base", USE, "'base' cannot name a workload"),
        ("total", USE, "'total' cannot name a workload"),
        ("sm_count", USE, "'sm_count' cannot name a workload"),
        ("decode", "mine.csv", "mine.csv"),
        ("decode", "gpt2_xl:batc=1", "'batc'"),
    ],
)
def test_what_is_wrong_is_told_with_its_entry(key: str, entry: Any, words: str) -> None:
    with pytest.raises(InputError) as told:
        read_workloads({key: entry}, "space.toml", around())
    assert str(told.value).startswith(f"space.toml: [workloads] {key}: ")
    assert words in str(told.value)
