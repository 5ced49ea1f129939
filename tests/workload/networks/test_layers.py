"""Kinds of layers: one layer of each written out by hand, networks of several kinds, and what an added kind touches."""

import json
import shutil
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path

import pytest

import dse
from dse.base.package_tables import read_table
from dse.workload.dtypes import precision
from dse.workload.networks.language_model import Serving, llm_workload
from dse.workload.networks.layers import ATTENTION_KINDS, MLP_KINDS
from dse.workload.networks.names import load_network
from dse.workload.target import Target

H100 = Target((9.0, 9.0), True)


def layer(network, phase, batch, tokens, gpus):
    """Name, operations [FLOP] and bytes of each kernel of one layer in bf16, in order."""
    serving = Serving(phase, batch, tokens, tokens, 0, precision("x"), gpus)
    operators = llm_workload(network, serving, "x", H100).operators[1:-3]  # without embedding, norm, logits, sampling
    depth = network.layers[0][1]
    assert {operator.repeats for operator in operators} == {depth}
    assert {operator.phase for operator in operators} == {phase}
    for operator in operators:
        assert len({candidate.kernel.fma for candidate in operator.candidates}) == 1, operator.name
    kernels = [operator.candidates[0].kernel for operator in operators]
    moved = [kernel.cold_bytes + kernel.warm_bytes + kernel.write_bytes for kernel in kernels]
    return [(o.name, 2 * k.fma, m) for o, k, m in zip(operators, kernels, moved, strict=True)]


def attended(phase, batch, tokens, window):
    """Pairs of a query and a key, and keys that are read, of all requests."""
    if phase == "decode":
        return batch * min(tokens, window), batch * min(tokens, window)
    full = min(tokens, window)
    return batch * (full * (full + 1) // 2 + (tokens - full) * window), batch * tokens


def grouped_queries(rows, pairs, keys, n):
    """Llama 3 and Mistral: 4096 wide, 32 query heads on 8 key-value heads of 128, rotated."""
    return [
        ("attention_norm", 0, 2 * 4 * rows * 4096),
        ("qkv_projection", 2 * rows * 6144 * 4096 / n, 2 * (rows * 4096 + 6144 * 4096 / n + rows * 6144 / n)),
        ("rope", 0, 2 * 2 * rows * 5120 / n),
        ("kv_write", 0, 2 * 2 * rows * 2048 / n),
        ("attention", 4 * pairs * 4096 / n, 2 * (2 * keys * 1024 / n + 2 * rows * 4096 / n)),
        ("output_projection", 2 * rows * 4096 * 4096 / n, 2 * (rows * 4096 / n + 4096 * 4096 / n + rows * 4096)),
    ]


def gated(rows, pairs, keys, n):
    """Llama 3 of 8B and Mistral 7B: a gated MLP of 14336."""
    return [
        *grouped_queries(rows, pairs, keys, n),
        ("mlp_norm", 0, 2 * 4 * rows * 4096),
        ("gate_up_projection", 2 * rows * 28672 * 4096 / n, 2 * (rows * 4096 + 28672 * 4096 / n + rows * 28672 / n)),
        ("silu", 0, 2 * 3 * rows * 14336 / n),
        ("down_projection", 2 * rows * 4096 * 14336 / n, 2 * (rows * 14336 / n + 4096 * 14336 / n + rows * 4096)),
    ]


def mixture(rows, pairs, keys, n):
    """Mixtral: two of eight gated experts of 14336 a token, of which 8 (1 - (1 - 2/8)^rows) are used."""
    read, used = 8 * (1 - 0.75**rows), 2 * rows
    up, down = (read * columns * 4096 * 14336 / n for columns in (2, 1))
    return [
        *grouped_queries(rows, pairs, keys, n),
        ("mlp_norm", 0, 2 * 4 * rows * 4096),
        ("router", 2 * rows * 8 * 4096, 2 * (rows * 4096 + 8 * 4096 + rows * 8)),
        ("expert_choice", 0, 2 * 2 * rows * 8),
        ("expert_sort", 0, 2 * 2 * 4 * used),
        ("expert_gate_up_projection", 2 * used * 28672 * 4096 / n, 2 * (used * 4096 + up + used * 28672 / n)),
        ("expert_silu", 0, 2 * 3 * used * 14336 / n),
        ("expert_down_projection", 2 * used * 4096 * 14336 / n, 2 * (used * 14336 / n + down + used * 4096)),
        ("combine_experts", 0, 2 * 3 * rows * 4096),
    ]


def plain(rows, pairs, keys, n):
    """OPT of 6.7B: 4096 wide, 32 heads of 128 with keys of their own, no rotation, an MLP of 16384 without a gate."""
    return [
        ("attention_norm", 0, 2 * 4 * rows * 4096),
        ("qkv_projection", 2 * rows * 12288 * 4096 / n, 2 * (rows * 4096 + 12288 * 4096 / n + rows * 12288 / n)),
        ("kv_write", 0, 2 * 2 * rows * 8192 / n),
        ("attention", 4 * pairs * 4096 / n, 2 * (2 * keys * 4096 / n + 2 * rows * 4096 / n)),
        ("output_projection", 2 * rows * 4096 * 4096 / n, 2 * (rows * 4096 / n + 4096 * 4096 / n + rows * 4096)),
        ("mlp_norm", 0, 2 * 4 * rows * 4096),
        ("up_projection", 2 * rows * 16384 * 4096 / n, 2 * (rows * 4096 + 16384 * 4096 / n + rows * 16384 / n)),
        ("relu", 0, 2 * 2 * rows * 16384 / n),
        ("down_projection", 2 * rows * 4096 * 16384 / n, 2 * (rows * 16384 / n + 4096 * 16384 / n + rows * 4096)),
    ]


@pytest.mark.parametrize("gpus", [1, 2, 8])
@pytest.mark.parametrize(("phase", "batch"), [("prefill", 1), ("decode", 32)])
@pytest.mark.parametrize(
    ("network", "by_hand", "tokens", "window"),
    [
        ("llama3_8b", gated, 2048, 2048),
        ("mistral_7b", gated, 8192, 4096),
        ("mixtral_8x7b", mixture, 2048, 2048),
        ("opt_6_7b", plain, 2048, 2048),
    ],
)
def test_a_layer_is_what_is_written_out_by_hand(network, by_hand, tokens, window, phase, batch, gpus):
    rows = batch * (tokens if phase == "prefill" else 1)
    expected = by_hand(rows, *attended(phase, batch, tokens, window), gpus)
    if gpus > 1:
        reduced = 2 * 2 * rows * 4096  # what is summed is read and written
        middle = next(i for i, kernel in enumerate(expected) if kernel[0] == "mlp_norm")
        expected.insert(middle, ("attention_all_reduce", 0, reduced))
        expected.append(("mlp_all_reduce", 0, reduced))
    made = layer(load_network(network), phase, batch, tokens, gpus)
    assert [name for name, *_ in made] == [name for name, *_ in expected]
    for kernel, wanted in zip(made, expected, strict=True):
        assert kernel[1:] == pytest.approx(wanted[1:], rel=1e-6), kernel[0]


def several_kinds():
    """A network of one dense layer, two of attention in a window, and three of all of it."""
    mixed = load_network("mixtral_8x7b")
    ((sparse, _),) = mixed.layers
    dense = load_network("llama3_8b").layers[0][0].mlp
    window = replace(sparse.attention, window=512)
    layers = (
        (replace(sparse, mlp=dense, label="first"), 1),
        (replace(sparse, attention=window, label="local"), 2),
        (replace(sparse, label="global"), 3),
    )
    return replace(mixed, layers=layers)


def test_a_network_of_several_kinds_runs_each_as_often_as_it_has_layers():
    network, one = several_kinds(), load_network("mixtral_8x7b")
    serving = Serving("decode", 4, 2048, 2048, 0, precision("x"))
    found = llm_workload(network, serving, "x", H100)
    repeats = {operator.name: operator.repeats for operator in found.operators}
    assert len(repeats) == len(found.operators)
    assert [repeats[f"attention_{label}"] for label in ("first", "local", "global")] == [1, 2, 3]
    assert repeats["gate_up_projection_first"] == 1 and repeats["expert_gate_up_projection_local"] == 2
    token = 4 * 2 * 8 * 128 * 2
    assert found.memory.kv == token * (2 * 512 + 4 * 2048)
    attention, expert = 2 * 4096 * (4096 + 1024), 3 * 4096 * 14336
    ends = 2 * 32000 * 4096
    assert found.memory.weights == 2 * (6 * attention + (1 + 5 * 8) * expert + ends) == 2 * network.parameters
    assert network.depth == 6 and one.depth == 32
    assert network.shared(type(one.layers[0][0].attention)) is None


@pytest.mark.parametrize("row", read_table("networks/layers.csv"), ids=lambda row: row["network"])
def test_a_row_of_the_table_states_what_its_kinds_have_and_no_more(row):
    kinds = ATTENTION_KINDS[row["attention"]], MLP_KINDS[row["mlp"]]
    ends = {"network", "label", "count", "arrangement", "streams", "attention", "mlp"}
    stated = {column for column, cell in row.items() if cell} - ends
    assert stated - {"source", "note"} == {field.name for kind in kinds for field in fields(kind)}


LATENT = '''

@dataclass(frozen=True)
class ThinAttention:
    """A toy: every head's keys and values are one shared vector."""

    thin_heads: int
    rank: int

    @property
    def facts(self):
        return {"heads": f"{self.thin_heads} x {self.rank}"}

    def check(self, gpus, name, title):
        refuse_uneven(self.thin_heads, "attention heads", gpus, name, title)

    def parameters(self, hidden, gpus=1):
        return 2.0 * hidden * self.thin_heads * self.rank + hidden * self.rank * gpus

    def cache_bytes(self, tokens, precision, gpus):
        return tokens * self.rank * element_bytes(precision.kv)

    def operators(self, step):
        width = self.thin_heads // step.gpus * self.rank
        yield from step.gemm("thin_projection", step.rows, width + self.rank, step.hidden)
        yield from step.gemm("output_projection", step.rows, step.hidden, width)
'''

PROGRAM = """
import json
from dse.workload.parse import load_workload
found = load_workload("thin:phase=decode,batch=2,context=1000,tp=2")
names = [operator.name for operator in found.operators]
print(json.dumps([names, found.memory.weights, found.memory.kv]))
"""


def test_an_added_kind_of_layer_touches_four_files(tmp_path):
    """The kind, its name in the table of kinds, and a network of it in the two tables of networks."""
    package = tmp_path / "dse"
    shutil.copytree(Path(dse.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    before = {path: path.read_bytes() for path in package.rglob("*") if path.is_file()}
    networks, data = package / "workload" / "networks", package / "data" / "networks"

    (networks / "attention_kinds.py").open("a").write(LATENT)
    table, name = (networks / "layers.py").read_text(), "GroupedQueryAttention"
    table = table.replace(f"import {name}", f"import {name}, ThinAttention")
    table = table.replace(f'"grouped_query": {name}', f'"grouped_query": {name}, "thin": ThinAttention')
    (networks / "layers.py").write_text(table)
    head, *rows = (data / "layers.csv").read_text().splitlines()
    thin = dict.fromkeys(head.split(","), "") | {"network": "thin", "count": "3", "attention": "thin", "mlp": "dense"}
    thin |= {"ffn": "1024", "gated": "1", "activation": "silu", "source": "a test"}
    lines = [f"{head},thin_heads,rank", *(f"{row},," for row in rows), ",".join(thin.values()) + ",8,64"]
    (data / "layers.csv").write_text("\n".join(lines) + "\n")
    (data / "networks.csv").open("a").write("thin,Thin,,256,1000,rmsnorm,0,0,a test,\n")

    after = {path for path in package.rglob("*") if path.is_file()}
    assert after == set(before) and sum(path.read_bytes() != before[path] for path in after) == 4
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    names, weights, kv = json.loads(ran.stdout)
    assert {"thin_projection", "output_projection", "attention_all_reduce", "gate_up_projection"} <= set(names)
    attention = 2 * 256 * 8 * 64 + 256 * 64 * 2
    assert weights == (3 * (attention + 3 * 256 * 1024) + 2 * 1000 * 256) * 2 / 2
    assert kv == 3 * 2 * 1000 * 64 * 2
