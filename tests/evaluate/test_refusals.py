"""What a GPU cannot run is refused before anything is compiled, with the words that its times would have led to."""

import pytest

from dse.base.errors import InputError
from dse.evaluate import run as runs
from dse.evaluate.by_workload import evaluation_of
from dse.evaluate.refusals import expect_instructions, expect_kernels
from dse.evaluate.run import run
from dse.hardware.presets import load_sheet
from dse.power.models import power_of
from dse.timing.roofline import Roofline
from dse.workload.parse import load_workload

REFUSED = [
    ("a100_sxm_80gb", "llama3_8b:phase=decode,dtype=fp8", "its tensor cores have no fp8; they have "),
    ("h200", "deepseek_v3:phase=decode,batch=256,dtype=fp8,dp=16", "it sends between 16 GPUs, and NVLink joins 8"),
]


@pytest.mark.parametrize(("gpu", "workload", "why"), REFUSED)
def test_nothing_is_timed_for_it(gpu: str, workload: str, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(runs, "evaluation_of")
    with pytest.raises(InputError, match=why):
        run(gpu, workload)


def test_times_say_the_same() -> None:
    sheet, workload = load_sheet("a100_sxm_80gb"), load_workload("llama3_8b:phase=decode,dtype=fp8")
    with pytest.raises(InputError) as at_once:
        expect_instructions(sheet, workload)
    timing = evaluation_of(workload, Roofline(), power_of("board")).on_gpu(sheet.record()).timing
    with pytest.raises(InputError) as timed:
        expect_kernels(sheet, workload, timing)
    assert str(at_once.value) == str(timed.value)


@pytest.mark.parametrize("gpu", ["v100_sxm2_32gb", "a100_sxm_80gb", "h100_sxm", "b200", "l40s"])
def test_what_runs_is_not_refused(gpu: str) -> None:
    expect_instructions(load_sheet(gpu), load_workload("llama3_8b:phase=decode,dtype=fp16"))
