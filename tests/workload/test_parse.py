"""Workloads as a user writes them, and the sentence that refuses each mistake."""

import json
from types import SimpleNamespace

import pytest

from dse.base.errors import InputError
from dse.hardware.presets import preset_sheet
from dse.measured.row_shape import product_of
from dse.workload.networks.names import checkpoint_name
from dse.workload.parse import load_workload
from dse.workload.target import Target

H100 = Target((9.0, 9.0), True)


def load(text):
    """A workload with candidates for Hopper alone."""
    return load_workload(text, H100)


def test_a_line_states_network_phase_and_lengths():
    found = load("llama3_8b:phase=decode,batch=32,context=2048,dtype=bf16")
    assert found.phases[0].name == "decode" and found.tokens == 32
    assert found.description == "Llama-3-8B, decode at 2048 tokens of context, batch 32, bf16"
    assert load("llama3_8b").phases[0].name == "decode"


@pytest.mark.parametrize(
    ("line", "description"),
    [
        ("llama3_8b:phase=prefill,context=512", "prefill of 512 tokens"),
        ("llama3_8b:phase=prefill,prompt=512", "prefill of 512 tokens"),
        ("llama3_8b:phase=decode,prompt=100", "decode at 100 tokens"),
        ("llama3_8b:phase=decode,prompt=100,output=50", "decode at 125 tokens"),
        ("llama3_8b:phase=generate,prompt=100,output=50", "100 prompt and 50 output tokens"),
        ("llama3_8b:tp=8", "on 8 GPUs"),
        ("llama3_8b:weights=int4", "int4 weights, bf16, bf16 KV"),
        (" llama3_8b: batch = 4 , phase = decode ".strip(), "batch 4"),
    ],
)
def test_lengths_of_each_phase(line, description):
    assert description in load(line).description


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("lama3_8b:batch=1", "no network is called 'lama3_8b'; did you mean 'llama3_8b'"),
        ("Qwen3-32B-FP8:batch=1", r"its weights are quantised \(FP8\); give their type, as dtype=fp8"),
        ("llama3_8b:bach=1", "'bach' is not a key of a workload; did you mean 'batch'"),
        ("llama3_8b:batch", "'batch' is not key=value"),
        ("llama3_8b:batch=", "'batch=' is not key=value"),
        ("llama3_8b:batch=1,batch=2", "batch is given twice"),
        ("llama3_8b:batch=0", "batch=0 is not accepted; give a whole number from 1 to 10000000"),
        ("llama3_8b:batch=1.5", "batch=1.5 is not accepted"),
        ("llama3_8b:batch=99999999", "batch=99999999 is not accepted"),
        ("llama3_8b:phase=train", "phase=train is not accepted; give one of encode, prefill, decode, generate"),
        ("llama3_8b:tp=1025", "tp=1025 is not accepted; give a whole number from 1 to 1,024"),
        ("llama3_8b:tp=9", "tp=9 does not divide the 32 attention heads"),
        ("llama3_8b:tp=3", "tp=3 does not divide the 32 attention heads"),
        ("llama3_8b:dtype=bf15", "dtype=bf15 is not a data type"),
        ("llama3_8b:phase=generate,context=5", "context goes with phase=decode"),
        ("llama3_8b:phase=prefill,output=5", "output goes with phase=generate"),
        ("llama3_8b:phase=prefill,context=5,prompt=6", "context and prompt state the same length twice"),
        ("llama3_8b:phase=decode,context=5,output=6", "context and output state the same length twice"),
        ("llama3_8b:phase=prefill,batch=10000,prompt=1000000", "more than the 8388608 that are counted exactly"),
    ],
)
def test_mistakes_are_refused(line, sentence):
    with pytest.raises(InputError, match=sentence):
        load(line)


def test_a_toml_states_the_same(tmp_path):
    path = tmp_path / "decode.toml"
    path.write_text('network = "llama3_8b"\nphase = "decode"\nbatch = 4\ncontext = 100\n')
    assert load(path).operators == load("llama3_8b:phase=decode,batch=4,context=100").operators
    path.write_text("batch = 4\n")
    with pytest.raises(InputError, match="network is missing"):
        load(path)
    path.write_text('network = "llama3_8b"\nbatch = [1, 2]\n')
    with pytest.raises(InputError, match=r"batch = \[1, 2\] is not accepted"):
        load(path)


def test_settings_replace_those_of_a_toml(tmp_path):
    path = tmp_path / "decode.toml"
    path.write_text('network = "llama3_8b"\nbatch = 4\ncontext = 100\n')
    assert load(f"{path}:batch=8,dtype=fp8").description == load("llama3_8b:batch=8,context=100,dtype=fp8").description
    for settings, sentence in (
        ("foo=bar", r"decode\.toml:foo=bar: 'foo' is not a key of a workload"),
        ("network=gpt2_xl", "'network' is not a key of a workload"),
        ("batch=x", "batch=x is not accepted"),
        ("prompt=5", "context and prompt state the same length twice"),
    ):
        with pytest.raises(InputError, match=sentence):
            load(f"{path}:{settings}")


@pytest.mark.parametrize("network", ["../net", "../net/config.json"])
def test_the_network_of_a_toml_stands_relative_to_it(tmp_path, network):
    (tmp_path / "net").mkdir()
    shape = {
        "num_hidden_layers": 2,
        "hidden_size": 256,
        "num_attention_heads": 4,
        "intermediate_size": 512,
        "vocab_size": 1000,
    }
    (tmp_path / "net" / "config.json").write_text(json.dumps(shape))
    path = tmp_path / "work" / "w.toml"
    path.parent.mkdir()
    path.write_text(f'network = "{network}"\n')
    assert load(path).description.startswith("net, decode")
    (path.parent / "llama3_8b").mkdir()  # a folder does not stand in for a shipped network
    path.write_text('network = "llama3_8b"\n')
    assert load(path).description.startswith("Llama-3-8B, decode")


def test_a_csv_takes_no_settings(tmp_path):
    path = tmp_path / "one.csv"
    path.write_text("m,n,k\n1,2,3\n")
    with pytest.raises(InputError, match=r"one\.csv:batch=2,dtype=fp8: a CSV of GEMMs takes no settings; give"):
        load(f"{path}:batch=2,dtype=fp8")


@pytest.mark.parametrize("settings", ["", ":batch=2"])
def test_the_colon_of_a_drive_parts_no_settings(settings):
    with pytest.raises(InputError, match=r"^C:\\work\\w\.toml: no such file"):
        load(f"C:\\work\\w.toml{settings}")
    assert load("llama3_8b:batch=2").phases[0].name == "decode"


def test_a_csv_lists_gemms(tmp_path):
    path = tmp_path / "layers.csv"
    path.write_text("m,n,k,batch,dtype,count,name\n1,4096,4096,,,32,qkv\n8,128,64,16,fp16,,\n")
    found = load(path)
    assert [(o.name, o.repeats) for o in found.operators] == [("qkv", 32), ("8x128x64x16", 1)]
    assert [o.candidates[0].kernel.fma for o in found.operators] == [4096 * 4096, 16 * 8 * 128 * 64]
    assert [o.candidates[0].kernel.tensor_dtype for o in found.operators] == [2, 3]
    assert (found.name, found.phases[0].name) == ("layers", "kernel")


def test_a_list_needs_the_memory_of_its_largest_product(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("m,n,k,batch,dtype\n1000,2000,3000,4,fp8\n10,10,10,1,fp32\n")
    memory = load(path).memory
    assert (memory.weights, memory.activations) == (4 * 3000 * 2000, 4 * (1000 * 3000 + 2 * 1000 * 2000))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("m,n,k\n", "holds no GEMM"),
        ("m,n\n1,2\n", "column 'k' is missing"),
        ("m,n,k,dtyp\n1,2,3,bf16\n", "column 'dtyp' is not known; did you mean 'dtype'"),
        ("M,n,k\n1,2,3\n", "column 'M' is not known; did you mean 'm'"),
        ("m,m ,n,k\n1,1,2,3\n", "column 'm' stands twice"),
        ("m,n,k\n1,2,4_096\n", "line 2: k = '4_096' is not accepted"),
        ("m,n,k\n1,2,\u0664\n", "line 2: k = '\u0664' is not accepted"),
        ("m,n,k\n1,2,x\n", "line 2: k = 'x' is not accepted; give a whole number from 1"),
        ("m,n,k\n1,2,\n", "line 2: k = '' is not accepted"),
        ("m,n,k\n0,2,3\n", "line 2: m = '0' is not accepted"),
        ("m,n,k,dtype\n1,2,3,int4\n", "line 2: dtype 'int4' is not accepted"),
        ("m;n;k\n1;2;3\n", "its columns stand apart by semicolons; give commas"),
        ("m\tn\tk\n1\t2\t3\n", "its columns stand apart by tabs"),
        ("m,n,k\n1,2,3,4\n", "row 2: '4' stands beyond the 3 columns"),
        ("m,n,k,k\n1,2,3,4\n", "column 'k' stands twice"),
        (
            "m,n,k\n1,2,3\n1000000,1000000,1000000\n",
            r"x\.csv, line 3: m = 1000000, n = 1000000, k = 1000000 launches .* give a smaller m or n$",
        ),
        ("m,n,k,batch\n64,64,64,9999999\n", r"x\.csv, line 2: .*, batch = 9999999 .* or a smaller batch$"),
    ],
)
def test_a_wrong_csv_is_refused(tmp_path, text, sentence):
    path = tmp_path / "x.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=sentence):
        load(path)


def test_blanks_in_a_header_and_a_suffix_in_capitals_are_read(tmp_path):
    path = tmp_path / "CASE.CSV"
    path.write_text(" m , n , k \n1,4096,4096\n")
    assert [operator.name for operator in load(path).operators] == ["1x4096x4096"]
    path = tmp_path / "W.TOML"
    path.write_text('network = "llama3_8b"\nbatch = 4\n')
    assert "batch 4" in load(path).description


def test_files_that_are_absent_and_folders_are_refused(tmp_path):
    for name, sentence in (("x.csv", "no such file"), ("x.toml", "no such file")):
        with pytest.raises(InputError, match=sentence):
            load(tmp_path / name)
    with pytest.raises(InputError, match="neither kernelslist"):
        load(tmp_path)


@pytest.mark.parametrize("text", ["", " ", ":", ":batch=2"])
def test_an_empty_workload_is_refused_with_how_one_is_written(text):
    with pytest.raises(InputError, match=r"^workload .* is empty .*llama3_8b:phase=decode.*TOML.*CSV.*trace"):
        load(text)


@pytest.mark.parametrize("value", ['""', "3"])
def test_a_file_that_names_no_network_is_refused(tmp_path, value):
    path = tmp_path / "x.toml"
    path.write_text(f"network = {value}\n")
    with pytest.raises(InputError, match=r"x\.toml: network = .* is not accepted; give a network's name"):
        load(path)


@pytest.mark.parametrize(
    ("preset", "types"),
    [("v100_sxm2_32gb", "Tesla V100.* can in fp32, fp16$"), ("p100_pcie_16gb", "Tesla P100.* can in fp32$")],
)
def test_a_data_type_that_a_gpu_lacks_is_refused_with_the_types_that_it_has(preset, types):
    sheet = preset_sheet(preset)
    capability = sheet.numbers()["compute_capability"]
    target = Target((capability, capability), False)
    with pytest.raises(InputError, match=f"^gpt2_xl:dtype=bf16: qkv_projection computes in bf16, in which .*{types}"):
        load_workload("gpt2_xl:dtype=bf16", target, gpus=[sheet])


def test_results_of_a_csv_have_the_type_of_measured_rows(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("m,n,k,dtype\n8192,8192,64,int8\n8192,8192,64,fp8\n")
    for operator, dtype, size in zip(load(str(path)).operators, ("int8", "fp8"), (4, 2), strict=True):
        row = SimpleNamespace(m=8192, n=8192, k=64, dtype=dtype, batch=1, notes="")
        assert operator.candidates[0].kernel.result_bytes == 8192 * 8192 * size
        assert product_of(row, lambda *sizes: sizes).out_bytes == 8192 * 8192 * size


def test_a_workload_is_shown_by_what_it_runs_and_needs():
    workload = load_workload("llama3_8b:phase=decode,batch=32,tp=2")
    first, second = repr(workload).splitlines()
    assert first == f"Workload('{workload.name}': {workload.description}"
    assert second.startswith(f"  decode: {len(workload.operators)} operators, ") and "GB on each of 2 GPUs)" in second


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((5,), "workload = 5 is not accepted; give a network with its settings"),
        ((None,), "workload = None is not accepted"),
        (("gpt2_xl", "h100_sxm"), "target = 'h100_sxm' is not accepted; give a dse.workload.target.Target"),
        (("gpt2_xl", None, 5), "name = 5 is not accepted; give a text"),
    ],
)
def test_arguments_of_another_type_are_refused(arguments, sentence):
    with pytest.raises(InputError, match=f"^{sentence}"):
        load_workload(*arguments)


@pytest.mark.parametrize(
    ("text", "published"),
    [
        ("gpt_oss_20b:batch=1,context=128", "w4a16_mxfp4"),
        ("deepseek_v3:phase=prefill,prompt=128", "fp8_block"),
        ("gpt_oss_20b:batch=1,context=128,dtype=bf16", ""),
        ("gpt_oss_20b:batch=1,context=128,weights=mxfp4", ""),
        ("llama3_8b:batch=1,context=128", ""),
    ],
)
def test_a_network_that_is_published_in_narrower_types_says_so_where_none_is_given(text, published):
    caution = load_workload(text).caution
    assert ("no type is given" in caution) == bool(published)
    assert f"the published checkpoint is {published}, which dtype={published} times" in caution or not published


def test_every_published_type_is_a_type_of_a_workload():
    for name in ("gpt_oss_20b", "devstral_small_2"):
        published = checkpoint_name(name)
        assert not load_workload(f"{name}:context=128,dtype={published}").caution
