"""A workload under a serving engine: what its host does, which attention runs, and what stays as it was."""

from dataclasses import replace

import numpy as np
import pytest

from dse.base.errors import InputError
from dse.evaluate.run import run
from dse.hardware.presets import gpu_from_mapping, preset_sheet
from dse.space.space import load_space
from dse.timing.roofline import Roofline
from dse.workload.implementation import implementation_index
from dse.workload.operators.gemm_library import REPRESENTATIVE, TUNED
from dse.workload.parse import _served, load_workload
from dse.workload.serving_engine import Engine, Host, engines, find_engine
from dse.workload.target import Target

STEP = "llama3_8b:phase=decode,batch=4,context=512,tp=2"
MADE_UP = Engine("made_up", "Made up", 2.0, 300.0, 10.0, 40.0, 5.0, 0.0, -0.1, 0.1, "sglang", "fa3")
HOPPER, AMPERE, BOTH, ANY = (
    Target((9.0, 9.0), True),
    Target((8.0, 8.0), False),
    Target((8.0, 9.0), True),
    Target(),
)


def test_the_host_launches_samples_and_waits_for_all_reduces():
    host = MADE_UP.host(launches=100, reductions=6, requests=8)
    assert host == Host(overlapped_us=200.0, waits_us=300 + 80 + 30)
    assert host.idle_us(150.0) == 50 + 410
    assert host.idle_us(900.0) == 410
    assert MADE_UP.host(launches=0, reductions=0, prompts=2).waits_us == 300 + 80


def test_every_engine_counts_the_step_it_runs():
    kernels = load_workload(STEP, HOPPER)
    launches = sum(o.repeats for o in kernels.operators)
    for name, engine in engines().items():
        found = load_workload(f"{STEP},engine={name}", HOPPER)
        assert found.engine == engine
        assert found.phases[0].host == engine.host(launches, 64.0, requests=4.0)  # two all-reduces in each of 32 layers
        assert found.host("decode") == (None if found.phases[0].host == Host() else found.phases[0].host)


def test_without_an_engine_nothing_waits():
    found = load_workload("llama3_8b:phase=generate,batch=4,prompt=64,output=8", HOPPER)
    assert found.engine is None and not found.waits
    assert [found.host(phase) for phase in ("prefill", "decode")] == [None, None]
    assert repr(found.phases[0]) == "Phase(name='prefill', runs=1.0)"  # of which a space's digest is made


def test_the_description_names_the_engine():
    title = find_engine("vllm_2024").title
    assert load_workload(f"{STEP},engine=vllm_2024", HOPPER).description.endswith(f"bf16 on 2 GPUs under {title}")


def test_a_toml_names_an_engine_too(tmp_path):
    path = tmp_path / "decode.toml"
    path.write_text('network = "llama3_8b"\nphase = "decode"\nbatch = 4\ncontext = 512\ntp = 2\nengine = "vllm_2024"\n')
    found, line = load_workload(path, HOPPER), load_workload(f"{STEP},engine=vllm_2024", HOPPER)
    assert (found.phases, found.operators, found.engine) == (line.phases, line.operators, line.engine)


def test_an_engine_of_ones_own_stands_beside_what_names_it(tmp_path):
    costs = {"launch_us": 0, "step_us": 7e3, "request_us": 1, "prompt_us": 2, "reduce_us": 3, "turn": 0}
    numbers = "".join(f"{name} = {value}\n" for name, value in (costs | {"low": -0.1, "high": 0.1}).items())
    mine, workload, space = (tmp_path / name for name in ("mine.toml", "decode.toml", "space.toml"))
    mine.write_text(f'format = "gpu-dse engine 1"\nengine = "mine"\nlike = "vllm_2024"\n{numbers}')
    workload.write_text('network = "llama3_8b"\nbatch = 4\ncontext = 512\ntp = 2\nengine = "mine.toml"\n')
    found, line = load_workload(workload, HOPPER), load_workload(f"{STEP},engine={mine}", HOPPER)
    assert found.engine == line.engine and found.engine is not None
    assert (found.engine.name, found.phases) == ("mine", line.phases)
    assert str(tmp_path) not in repr(found.engine)  # of which a digest is made
    use = f'[workloads]\ndecode = "{STEP},engine=mine.toml"\n'
    goal = '[[objectives]]\nvalue = "decode.tbt_ms"\ngoal = "min"\n'
    space.write_text(f'name = "mine"\nbase = "h100_sxm"\n[axes]\nsm_count = [64, 132]\n{use}{goal}')
    assert load_space(space).workloads[0].engine == found.engine


@pytest.mark.parametrize("name", ["vlm_2024", "none"])
def test_an_unknown_engine_is_refused_with_what_is_known(name):
    with pytest.raises(InputError, match=f"no engine is called '{name}'; (did you mean 'vllm_2024'|.*vllm_2024)"):
        load_workload(f"{STEP},engine={name}", HOPPER)


@pytest.mark.parametrize(
    ("target", "library"),
    [(HOPPER, "fa3"), (AMPERE, "sglang"), (BOTH, None), (ANY, None)],
)
def test_attention_is_the_engines_where_all_gpus_run_the_same(target, library):
    found = _served(target, MADE_UP).attention
    assert (found and found.name) == library
    assert _served(target, replace(MADE_UP, attention="", warpgroup_attention="")) == target
    same = _served(target, replace(MADE_UP, attention="fa2", warpgroup_attention="fa2")).attention
    assert same is not None and same.name == "fa2"


def test_products_run_on_the_engines_library():
    """Of an engine of 2023: as ``validate`` and its own fit have them, whatever library runs without it."""
    step = "llama2_7b:phase=decode,batch=8,context=512,dtype=fp16"
    for library in (TUNED, REPRESENTATIVE):
        target = Target.of([preset_sheet("h100_sxm").numbers()], library)
        early = load_workload(f"{step},engine=vllm_2023_h100_host", target)
        products = [o for o in early.operators if o.kind == "gemm"]
        assert {c.kernel.implementation for o in products for c in o.candidates} == {
            implementation_index("matrix_early_hopper")
        }
        today = load_workload(f"{step},engine=vllm_2024", target)
        plain = load_workload(step, target)
        assert [o.candidates for o in today.operators if o.kind == "gemm"] == [
            o.candidates for o in plain.operators if o.kind == "gemm"
        ]


LITTLE_SHARED_MEMORY = {"base": "h100_sxm", "shared_memory_kib": 48.0}


@pytest.mark.parametrize("library", ["fa2", "fa3", "sglang", "trtllm"])
@pytest.mark.parametrize("gpu", ["t4", "v100_sxm2_16gb", "a100_sxm_80gb", "l40s", "h100_sxm", LITTLE_SHARED_MEMORY])
def test_a_library_makes_no_design_impossible(library, gpu):
    """Where it has no instruction, or no tile that fits, the default kernels run."""
    sheet = preset_sheet(gpu) if isinstance(gpu, str) else gpu_from_mapping(gpu, "here", "little")
    numbers = sheet.numbers()
    capability = numbers["compute_capability"]
    target = Target((capability, capability), numbers["warpgroup_mma"] > 0)
    engine = replace(MADE_UP, attention=library, warpgroup_attention=library)
    text = "gpt2_xl:phase=generate,batch=2,prompt=64,output=4,dtype=fp16"
    found = run(sheet, load_workload(text, _served(target, engine)), Roofline())
    assert np.isfinite(found.kernels["time_us"]).all()


def test_on_gpus_that_run_the_library_it_alone_is_chosen():
    text = "gpt2_xl:phase=generate,batch=2,prompt=64,output=4,dtype=fp16"
    for gpu, target, library in (("h100_sxm", HOPPER, "fa3"), ("a100_sxm_80gb", AMPERE, "sglang")):
        found = run(gpu, load_workload(text, _served(target, MADE_UP)), Roofline()).kernels
        labels = found[found["kernel"] == "attention"]["implementation"]
        assert len(labels) == 2 and labels.str.startswith(library).all()
