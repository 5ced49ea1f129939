"""Measured kernels of Llama-shaped networks, and what each variant says of them.

Rows are chosen by rule (see ``select``), never by how well a model does on them; nothing is fitted here. The counts of
vector kernels are experiment 014's, fitted to vidur's rows, of which these are some.
"""

from collections.abc import Callable
from types import SimpleNamespace

import jax
import numpy as np
import pandas as pd
from variants import FULL, VARIANTS

from dse import load_gpu
from dse.hardware.gpu import Gpu
from dse.measured.protocol import find_protocol
from dse.measured.row_vector import distances_of, keys_of
from dse.timing.timing import CAUSES, Timing
from dse.workload.kernel import Kernel
from dse.workload.operator import Operator
from dse.workload.operators.gemm import Gemm, gemm_operator
from dse.workload.operators.vector import vector_operator
from dse.workload.target import Target
from dse.workload.workload import Phase, Workload
from experiments import data

DEVICES = {"A100-SXM4-80GB": "a100_sxm_80gb", "H100-SXM5-80GB": "h100_sxm"}
"""Device of the tables -> preset."""

NETWORKS = {
    "vidur_Meta-Llama-3-8B": "Llama-3-8B",
    "vidur_Llama-2-7b-hf": "Llama-2-7B",
    "vidur_internlm-20b": "Llama-2-13B's layer (InternLM-20B)",
}
"""vidur's networks of the paper's kind, on one GPU; InternLM-20B's layer has the shape of the paper's 13B Llama."""

SIDES = (4096, 16384)
"""Range of n and k for GEMMs that belong to no network (aiconfigurator's grid): Llama's hidden and MLP widths."""

BATCHES, PROMPTS = (1, 64), (128, 6144)
"""Tokens of a decode step (one a request) and of a prefill: the paper's study."""

TOKEN_EDGES = [0.5, 1.5, 4.5, 16.5, 64.5, 255.5, 511.5, 1023.5, 2047.5, 4095.5, 6144.5]
TOKEN_NAMES = ["1", "2-4", "5-16", "17-64", "128-255", "256-511", "512-1023", "1024-2047", "2048-4095", "4096-6144"]


def select() -> pd.DataFrame:
    """Return the measured rows: A100 and H100, 16-bit, of NETWORKS on one GPU or with both sides in SIDES.

    Adds ``kind`` (gemm, elementwise), ``tokens``, ``phase`` (decode: tokens in BATCHES; prefill: in PROMPTS; others
    are left out) and ``bin`` of tokens.
    """
    gemms = pd.concat([data.frame(f"{name}__gemm") for name in ("aiconfigurator", "vidur")])
    vectors = data.frame("vidur__elementwise_norm")
    rows = pd.concat([gemms, vectors], ignore_index=True)
    in_network = rows["group"].isin(NETWORKS) & (rows["tp"] == 1)
    in_grid = (rows["source"] == "aiconfigurator") & rows["n"].between(*SIDES) & rows["k"].between(*SIDES)
    rows = rows[rows["device"].isin(DEVICES) & rows["dtype"].isin(["fp16", "bf16"]) & (in_network | in_grid)].copy()
    rows["kind"] = np.where(rows["op"] == "gemm", "gemm", "elementwise")
    rows["tokens"] = rows["m"].fillna(rows["rows"]).astype(int)
    decode, prefill = rows["tokens"].between(*BATCHES), rows["tokens"].between(*PROMPTS)
    rows["phase"] = np.select([decode, prefill], ["decode", "prefill"], "")
    rows["bin"] = pd.cut(rows["tokens"], TOKEN_EDGES, labels=TOKEN_NAMES)
    rows = rows[rows["phase"] != ""]
    return rows.sort_values(["device", "kind", "phase"], ascending=[True, False, False], ignore_index=True)


def operator_of(row: pd.Series, target: Target) -> Operator:
    """Return the operator of a measured row, with the cache state in which it was measured."""
    name = f"{row['op']} {row['tokens']}"
    if row["op"] == "gemm":
        return gemm_operator(name, _gemm(row), target.capabilities, target.warpgroup)
    fields = SimpleNamespace(**row)
    inputs, results, _ = distances_of(fields, find_protocol("vidur"), sm_count=0.0)
    return vector_operator(
        name,
        row["op"],
        float(row["rows"]),
        float(row["cols"]),
        row["dtype"],
        "vllm_vector",
        second=keys_of(fields),
        input_distance=inputs,
        out_distance=results,
    )


def _gemm(row: pd.Series) -> Gemm:
    """Weights are cold in vidur's layer, one of six copies in aiconfigurator's loop; activations were just written."""
    m, n, k, dtype = float(row["m"]), float(row["n"]), float(row["k"]), row["dtype"]
    a, b, out = 2.0 * m * k, 2.0 * n * k, 2.0 * m * n
    if row["source"] == "vidur":
        return Gemm(m, n, k, 1, dtype, dtype, dtype, dtype, a_distance=2.0 * a)
    once = a + b + out
    return Gemm(m, n, k, 1, dtype, dtype, dtype, dtype, a_distance=once, b_distance=6.0 * b, out_distance=once)


def predict(rows: pd.DataFrame, device: str, done: Callable[[int], None] = lambda _: None) -> pd.DataFrame:
    """Return a row a measured row of ``device`` and variant: time [us], its stack [us], and the error.

    ``us``: of the kernel that is fastest under FULL, held for all variants; ``own_us``: of the variant's own fastest.
    """
    part = rows[rows["device"] == device].reset_index(drop=True)
    gpu = load_gpu(DEVICES[device])
    capability = float(gpu.compute_capability)
    target = Target((capability, capability), bool(gpu.warpgroup_mma > 0))
    operators = tuple(operator_of(row, target) for _, row in part.iterrows())
    workload = Workload("measured", device, operators, (Phase("kernel"),))
    done(1)
    times = _times(workload.kernels.as_arrays(), gpu)
    done(1)
    held = _fastest(times[FULL], workload.slices)
    frames = []
    for name in VARIANTS:
        of = times[name]
        own = of["us"][_fastest(of, workload.slices)]
        stack = {cause: of[cause][held] for cause in CAUSES}
        frames.append(part.assign(variant=name, us=of["us"][held], own_us=own, **stack))
    return pd.concat(frames, ignore_index=True)


def _times(kernels: Kernel, gpu: Gpu) -> dict[str, dict[str, np.ndarray]]:
    """Return by variant the stack and its sum [us] and feasibility of every candidate."""

    def one(kernel: Kernel) -> dict[str, dict[str, jax.Array]]:
        return {name: _microseconds(model(kernel, gpu)) for name, model in VARIANTS.items()}

    return jax.tree.map(lambda values: np.asarray(values, float), jax.jit(jax.vmap(one))(kernels))


def _microseconds(timing: Timing) -> dict[str, jax.Array]:
    per_cycle = 1e-3 / timing.clock_ghz
    stack = {cause: cycles * per_cycle for cause, cycles in timing.stack().items()}
    return stack | {"us": timing.microseconds, "feasible": timing.feasible}


def _fastest(times: dict[str, np.ndarray], slices: tuple[slice, ...]) -> np.ndarray:
    """Return where the fastest feasible candidate of each operator stands."""
    us = np.where(times["feasible"] > 0, times["us"], np.inf)
    return np.array([part.start + int(us[part].argmin()) for part in slices])


def errors(rows: pd.DataFrame, by: list[str], of: str = "us") -> pd.DataFrame:
    """Return by group and variant: rows, MAPE and median absolute error [%], bias (geometric mean predicted/measured).

    A model that predicts too little can err by 100 % at most; the bias tells.
    """
    ratio = rows[of] / rows["latency_us"]
    frame = rows[[*by, "variant"]].assign(error=100 * (ratio - 1).abs(), log=np.log(ratio))
    groups = frame.groupby([*by, "variant"], sort=False, observed=True)
    table = groups.agg(n=("error", "size"), mape=("error", "mean"), median=("error", "median"), bias=("log", "mean"))
    return table.assign(bias=np.exp(table["bias"])).reset_index()


def stacks(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the mean of each cause's share of the measured time, by device, kind, phase and variant.

    Cycles per instruction over measured cycles per instruction: the instructions are the same.
    """
    shares = rows[list(CAUSES)].div(rows["latency_us"], axis=0)
    keys = ["device", "kind", "phase", "variant"]
    return pd.concat([rows[keys], shares], axis=1).groupby(keys, sort=False).mean().reset_index()
