"""Products that no calibration was fitted on: what fp8 rows hold, and LLMCompass's products and layer on an A100.

Run with ``python experiments/012_timing_calibration/others.py`` (two minutes). Prints the README's last tables.
Nothing here changes a calibration; one overhead is fitted where a table says so.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pandas as pd

from dse.base.skipped_rows import Skipped
from dse.evaluate.shared_programs import timings_of_rows
from dse.hardware.gpu import Gpu
from dse.hardware.presets import load_sheet
from dse.measured.protocol import find_protocol
from dse.measured.quantisation_passes import BY_TOKEN, LARGEST, STATIC, Pass
from dse.measured.quantisation_time import pass_timings
from dse.measured.table import read_times
from dse.measured.timed_rows import TimedRows, best, blocks, joined
from dse.timing.calibration import load_timing_calibration
from dse.workload.kernel import Kernel
from dse.workload.operator import Operator
from dse.workload.operators.collective import all_reduce_operator
from dse.workload.operators.gemm import Gemm, gemm_operator
from dse.workload.operators.vector import vector_operator
from experiments import data

FP8 = {"H100-SXM5-80GB": "h100_sxm", "H200-SXM-141GB": "h200"}
A100, A100_PRESET = "A100-SXM4-80GB", "a100_sxm_80gb"
MOST = 700
"""fp8 rows of a device, drawn at random."""

COLUMNS = {"rep_lo_us": "fastest table", "latency_us": "median", "rep_hi_us": "slowest table"}


def main() -> None:
    """Print all tables."""
    fp8_readings(data.path("aiconfigurator__gemm"))
    llmcompass_products(data.path("llmcompass__kernels_a100"))
    llmcompass_layer(data.path("llmcompass__layer_a100"))


def fp8_readings(path: Path) -> None:
    """Print the errors of each reading of the fp8 rows against the fastest, median and slowest framework's table."""
    frame = read_times(path).frame
    frame = frame[(frame["dtype"] == "fp8") & (frame["op"] == "gemm")]
    rows = pd.concat([_readings(frame[frame["device"] == device], device, preset) for device, preset in FP8.items()])
    lengths = pd.cut(rows["latency_us"], [0, 10, 50, np.inf])
    print("\n### fp8: error in percent (predicted over measured)")
    print("| reading | against | all | < 10 us | 10 to 50 us | > 50 us |")
    print("|---" * 6 + "|")
    for reading in (c for c in rows if str(c).startswith("product")):
        for column, words in COLUMNS.items():
            ratio = rows[reading] / rows[column]
            parts = [ratio, *(part for _, part in ratio.groupby(lengths, observed=True))]
            cells = (f"{100 * (p - 1).abs().mean():.1f} ({np.exp(np.log(p).mean()):.2f}) |" for p in parts)
            print(f"| {reading} | {words} |", *cells, flush=True)
    spread = rows["rep_hi_us"] / rows["rep_lo_us"]
    print(
        f"slowest over fastest table: median {spread.median():.2f}, 90 % {spread.quantile(0.9):.2f}; {len(rows)} rows"
    )


def _readings(frame: pd.DataFrame, device: str, preset: str) -> pd.DataFrame:
    """Rows of a device with the time [us] of each reading."""
    frame, sheet, protocol = (
        frame.sample(min(MOST, len(frame)), random_state=0),
        load_sheet(preset),
        find_protocol("aiconfigurator"),
    )
    model = load_timing_calibration(preset).model

    def built(quantises: str) -> TimedRows:
        return joined(list(blocks(frame, {device: sheet}, replace(protocol, quantises=quantises), Skipped())))

    rows = built("")
    whole, unsplit = best(model, rows)[0], best(model, built("tensor"))[0]
    every, overhead = np.arange(len(rows.table)), rows.table["overhead_us"].to_numpy()

    def launches(one: Pass) -> np.ndarray:
        return np.asarray(pass_timings(model, rows, every, one).microseconds)[: len(every)] + overhead

    static, token, largest = (launches(one) for one in (STATIC, BY_TOKEN, LARGEST))
    return rows.table.assign(
        **{
            "product alone": whole,
            "product and a static quantisation": whole + static,
            "product and a quantisation by token": whole + token,
            "product without split-K alone": unsplit,
            "product without split-K and a static quantisation": unsplit + static,
            "product without split-K, largest value and quantisation": unsplit + largest + static,
        }
    )


def llmcompass_products(path: Path) -> None:
    """Print the error of LLMCompass's products, with the protocol's overhead and with one fitted to them."""
    frame = read_times(path).frame
    frame = frame[(frame["op"] == "gemm") & (frame["device"] == A100)]
    rows = joined(list(blocks(frame, {A100: load_sheet(A100_PRESET)}, None, Skipped())))
    predicted = best(load_timing_calibration(A100_PRESET).model, rows)[0]
    measured, given = rows.table["latency_us"].to_numpy(), rows.table["overhead_us"].to_numpy()
    overhead = fitted_overhead(predicted - given, measured)
    print("\n### LLMCompass's products on the A100")
    print(
        f"overhead {given[0]:.0f} us as assumed: {_error(predicted, measured):.1f} %;"
        f" {overhead:.0f} us fitted: {_error(predicted - given + overhead, measured):.1f} %"
    )
    print("| m | n | k | measured us | ours us | ratio |\n" + "|---" * 6 + "|")
    for row, time in zip(rows.table.itertuples(), predicted - given + overhead, strict=True):
        print(
            f"| {row.m:g} | {row.n:g} | {row.k:g} | {row.latency_us:.1f} | {time:.1f} | {time / row.latency_us:.2f} |"
        )


def fitted_overhead(bare: np.ndarray, measured: np.ndarray) -> float:
    """The overhead [us] with the least mean relative error."""
    tried = np.linspace(0.0, 100.0, 401)
    return float(tried[np.argmin([_error(bare + x, measured) for x in tried])])


def _error(predicted: np.ndarray, measured: np.ndarray) -> float:
    return float(100 * np.abs(predicted / measured - 1).mean())


def llmcompass_layer(path: Path) -> None:
    """Print each operator of GPT-3's layer on four A100s, and the prefill's sum."""
    rows, overhead, ours, total = layer(path)
    print(f"\n### GPT-3's layer, 8 requests, four A100s; one overhead of {overhead:.1f} us fitted")
    print("| operator | measured us | ours us | ratio |\n" + "|---" * 4 + "|")
    for row in rows.itertuples():
        print(
            f"| {row.op.removeprefix('layer_')} | {row.latency_us:.1f} | {row.ours_us:.1f} | "
            f"{row.ours_us / row.latency_us:.2f} |"
        )
    print(
        f"operators {_error(rows['ours_us'].to_numpy(), rows['latency_us'].to_numpy()):.1f} %; the prefill's sum "
        f"{ours:.0f} us of {total:.0f} measured, {100 * (ours / total - 1):+.1f} %"
    )


def layer(path: Path) -> tuple[pd.DataFrame, float, float, float]:
    """Return the operators of GPT-3's layer with ``latency_us`` and ``ours_us``, the overhead [us] that is fitted to
    them, and the sum of the prefill's twelve, ours and the measured one [us]."""
    frame = pd.read_parquet(path)
    measured = dict(zip(frame["op"], frame["latency_us"], strict=True))
    ours = {
        f"layer_{phase}:{name}": time
        for phase, operators in (("prefill", _layer(2048, 2048)), ("decode", _layer(1, 3072)))
        for name, time in zip(operators, _times(list(operators.values())), strict=True)
    }
    known = [name for name in measured if name in ours]
    values, bare = np.array([measured[n] for n in known]), np.array([ours[n] for n in known])
    overhead = fitted_overhead(bare, values)
    rows = pd.DataFrame({"op": known, "latency_us": values, "ours_us": bare + overhead})
    prefill = sum(ours[n] + overhead for n in ours if n.startswith("layer_prefill"))
    return rows, overhead, prefill, measured["layer_prefill:SUM"]


def _layer(queries: int, keys: int, batch: int = 8, width: int = 12288, heads: int = 24) -> dict[str, Operator]:
    """The operators of a layer on one of four GPUs as LLMCompass ran them: unfused attention, NVLink reductions."""
    rows, dtype, head = batch * queries, "fp16", 128

    def product(m: float, n: float, k: float, many: float = 1.0) -> Operator:
        bare = Gemm(m, n, k, many, dtype, dtype, dtype, dtype)
        touched = bare.a_bytes + bare.b_bytes + bare.out_bytes  # the same buffers each time
        gemm = replace(bare, a_distance=touched, b_distance=touched, out_distance=touched)
        library = load_timing_calibration(A100_PRESET).model.library
        return gemm_operator("product", gemm, (8.0, 8.0), False, library=library)

    def vector(op: str, m: float, n: float) -> Operator:
        touched = 4.0 * m * n
        return vector_operator(op, op, m, n, dtype, "pytorch_vector", input_distance=touched, out_distance=touched)

    def reduce() -> Operator:
        return all_reduce_operator("all-reduce", 2.0 * rows * width, 4, "kernel")

    return {
        "LayerNorm_MHA": vector("layernorm", rows, width),
        "Q_K_V": product(rows, 3 * width / 4, width),
        "Q_mul_K": product(queries, keys, head, batch * heads),
        "Softmax": vector("softmax", batch * heads * queries, keys),
        "A_mul_V": product(queries, head, keys, batch * heads),
        "Wo_proj": product(rows, width, width / 4),
        "AllReduce_MHA": reduce(),
        "LayerNorm_FFN": vector("layernorm", rows, width),
        "W1_proj": product(rows, width, width),
        "GeLU": vector("gelu", rows, width),
        "W2_proj": product(rows, width, width),
        "AllReduce_FFN": reduce(),
    }


def _times(operators: Sequence[Operator]) -> list[float]:
    """The time of each operator's fastest kernel [us]."""
    model = load_timing_calibration(A100_PRESET).model
    gpu = jax.tree.map(np.float32, find_protocol("llmcompass").clocked(load_sheet(A100_PRESET).record()))
    found = []
    for operator in operators:
        kernels = jax.tree.map(np.float32, Kernel.stack([c.kernel for c in operator.candidates]))
        timing = timings_of_rows(model, kernels, _repeated(gpu, len(operator.candidates)))
        found.append(float(np.where(np.asarray(timing.feasible) > 0, timing.microseconds, np.inf).min()))
    return found


def _repeated(gpu: Gpu, count: int) -> Gpu:
    return jax.tree.map(lambda x: np.repeat(x, count), gpu)


if __name__ == "__main__":
    main()
