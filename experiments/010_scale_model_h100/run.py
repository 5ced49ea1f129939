"""A GPU of 132 SMs predicted from scale models of 33 and 66 by our own interval model, beside its direct evaluation.

Run with ``python experiments/010_scale_model_h100/run.py`` (a minute). Three questions: the same kernels at every size
(as a binary is), each size its own fastest kernels (as a tuned library chooses), and work that grows with the GPU. Then
the paper's chiplets: a package of 16 dies, each a quarter of an H100, from packages of 4 and 8, with work that grows.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

import jax.numpy as jnp
import pandas as pd

from dse import Amali, Gpu, load_gpu
from dse.scaling.scale import scale
from dse.scaling.shrink import SHARED, refuse_disproportionate, shrink
from dse.scaling.simulate import fastest_kernel, simulated
from dse.scaling.table import Benchmark, Sheet
from dse.timing.timing import TimingModel
from dse.workload.operator import Operator
from dse.workload.operators.attention import Attention, attention_operator
from dse.workload.operators.gemm import Gemm, gemm_operator
from dse.workload.operators.vector import vector_operator
from experiments.common.readme_tables import markdown, write_table

TARGET = load_gpu("h100_sxm")
SIZES = (33, 66, 132)
HOPPER = (9.0, 9.0)
QUESTIONS = {
    "same kernels": "one binary at all sizes",
    "own kernels": "fastest kernel of each size",
    "weak": "work grows with the GPU",
}
"""Question -> its column in the README."""

CHIPLETS = (4, 8, 16)
LINKS = {"900 GB/s, 100 ns": (900.0, 100.0), "100 GB/s, 100 ns": (100.0, 100.0)}
"""Column of the README -> bandwidth of a chiplet's link in one direction [GB/s] and its latency [ns]."""

SHOWN = ("recursion", "recursion_ratio", "equations", "proportional", "power_law")


def gemm(m: float, n: float, k: float, reuse: float = 1e6) -> Operator:
    """Return a product whose operands are used again after ``reuse`` times their own bytes."""
    touched = reuse * 2.0 * (m * k + n * k + m * n)
    return gemm_operator("gemm", Gemm(m, n, k, a_distance=touched, b_distance=touched, out_distance=touched), HOPPER)


def attention(batch: float, queries: float, keys: float) -> Operator:
    """Return attention of Llama-3-8B's heads."""
    return attention_operator("attention", Attention(batch, 32, 8, 128, queries, keys), HOPPER)


OPERATORS: dict[str, Callable[[float], Operator]] = {
    "GEMM 4096 x 4096 x 4096": lambda s: gemm(4096 * s, 4096, 4096),
    "GEMM 8192 x 8192 x 8192": lambda s: gemm(8192 * s, 8192, 8192),
    "GEMM 1024 x 4096 x 4096": lambda s: gemm(1024 * s, 4096, 4096),
    "GEMM 2048 x 6144 x 4096": lambda s: gemm(2048 * s, 6144, 4096),
    "GEMM 3000 x 5000 x 4096": lambda s: gemm(3000 * s, 5000, 4096),
    "GEMM 256 x 14336 x 4096": lambda s: gemm(256 * s, 14336, 4096),
    "GEMM 8 x 28672 x 4096": lambda s: gemm(8, 28672 * s, 4096),
    "GEMM 8 x 4096 x 4096": lambda s: gemm(8, 4096 * s, 4096),
    "GEMM 64 x 4096 x 4096 again": lambda s: gemm(64, 4096 * s, 4096, 1.0),
    "GEMM 2048 x 2048 x 2048 again": lambda s: gemm(2048 * s, 2048, 2048, 1.0),
    "prefill 1 x 4096": lambda s: attention(1 * s, 4096, 4096),
    "prefill 8 x 2048": lambda s: attention(8 * s, 2048, 2048),
    "decode 32 x 4096": lambda s: attention(32 * s, 1, 4096),
    "decode 4 x 8192": lambda s: attention(4 * s, 1, 8192),
    "add of 64 Mi elements": lambda s: vector_operator("add", "add", 2.0**14 * s, 4096),
    "add of 1 Mi elements": lambda s: vector_operator("add", "add", 2.0**8 * s, 4096),
}
"""Name -> the operator whose work is multiplied by a factor (weak scaling)."""


def benchmarks(model: TimingModel, question: str) -> tuple[Benchmark, ...]:
    """Return the rows of ``dse scale`` for one question: "same kernels", "own kernels" or "weak"."""
    gpus = {size: shrink(TARGET, size) for size in SIZES if size < 132} | {132: TARGET}
    refuse_disproportionate(gpus[33], TARGET)
    rows = []
    for name, make in OPERATORS.items():
        if question == "same kernels":  # those of the large scale model: the target is not there to be asked
            kernel = fastest_kernel(make(1.0), gpus[66], model)
            rows += simulated({name: kernel}, TARGET, SIZES, model)
        elif question == "own kernels":
            by_size = {size: fastest_kernel(make(1.0), gpu, model) for size, gpu in gpus.items()}
            rows += simulated({name: by_size}, TARGET, SIZES, model)
        else:
            rows.append(_weak(name, make, gpus, model, 132))
    return tuple(rows)


def chiplets(gbs: float, latency_ns: float) -> dict[int, Gpu]:
    """Return packages of quarters of an H100 by their dies, whose links have ``gbs`` [GB/s] and ``latency_ns`` [ns]."""
    most = CHIPLETS[-1]
    larger = {name: float(TARGET.attribute(name)) * most / 4 for name in SHARED}
    values = {"dies": most, "l2_partitions": most, "die_link_gbs": gbs, "die_link_latency_ns": latency_ns}
    target = TARGET.with_attributes({name: jnp.asarray(float(value)) for name, value in (larger | values).items()})
    return {size: shrink(target, 33 * size) for size in CHIPLETS[:-1]} | {most: target}


def of_chiplets(model: TimingModel, gpus: Mapping[int, Gpu]) -> tuple[Benchmark, ...]:
    """Return the rows of ``dse scale`` for packages of chiplets, work in proportion to them."""
    return tuple(_weak(name, make, gpus, model, 4) for name, make in OPERATORS.items())


def _weak(
    name: str, make: Callable[[float], Operator], gpus: Mapping[int, Gpu], model: TimingModel, whole: int
) -> Benchmark:
    """Work in proportion to the size, all of it at ``whole``: performance is work over cycles."""
    ipc = []
    for size, gpu in gpus.items():
        kernel = fastest_kernel(make(size / whole), gpu, model)
        ipc.append(size / float(model(kernel, gpu).cycles))
    none = (None,) * len(gpus)
    return Benchmark(name, tuple(float(size) for size in gpus), tuple(ipc), none, none, none, weak=True)


def table(rows: tuple[Benchmark, ...], unit: str = "SM") -> pd.DataFrame:
    """Return what each benchmark's target is predicted to reach [% off the direct evaluation], by method."""
    answer = scale([Sheet("h100", unit, rows)])
    (sheet,) = answer.sheets
    frame = pd.DataFrame(
        [
            {"benchmark": p.benchmark, "method": p.method, "off": 100 * (p.ipc / p.truth - 1)}
            for p in sheet.points
            if p.truth
        ]
    ).pivot(index="benchmark", columns="method", values="off")
    frame = frame.reindex([row.name for row in rows])[list(SHOWN)]
    frame["S to L"] = [(row.ipc[1] or 0) / (row.ipc[0] or 1) for row in rows]
    frame["L to T"] = [(row.ipc[2] or 0) / (row.ipc[1] or 1) for row in rows]
    frame["f_mem"] = [row.f_mem[0] for row in rows]
    frame["cliff"] = ["yes" if sheet.cliffs.get(row.name) else "" for row in rows]
    print("skipped:", answer.skipped)
    return frame


def summary(answers: Mapping[str, pd.DataFrame]) -> str:
    """Return the README's table: the recursion's error by kernel and question, those of a fifth and more in bold."""
    cliff = answers["same kernels"]["cliff"]
    rows = []
    for name in cliff.index:
        cells = [_off(answer["recursion"][name]) for answer in answers.values()]
        rows.append([f"{name} (cliff)" if cliff[name] else name, *cells])
    return markdown(["kernel", *QUESTIONS.values()], rows)


def bound_by_links(make: Callable[[float], Operator], gpu: Gpu, model: TimingModel) -> float:
    """Return the share of the target's time that waits for links between dies [1]."""
    timing = model(fastest_kernel(make(4.0), gpu, model), gpu)
    return float(timing.die_link / timing.cycles)


def package_summary(answers: Mapping[str, pd.DataFrame], shares: Mapping[str, Mapping[str, float]]) -> str:
    """Return the README's table of packages: the recursion's error at 16 chiplets, and what waits for links there."""
    heads = [head for title in answers for head in (title, "waits for links")]
    rows = []
    for name in OPERATORS:
        cells = [(_off(answers[title]["recursion"][name]), f"{100 * shares[title][name]:.0f} %") for title in answers]
        rows.append([name, *(text for pair in cells for text in pair)])
    return markdown(["kernel", *heads], rows)


def _off(percent: float) -> str:
    text = "refused" if pd.isna(percent) else f"{percent:+.{0 if abs(percent) >= 100 else 1}f} %"
    return f"**{text}**" if abs(percent) >= 20 else text


def main() -> None:
    """Print the tables and write the README's."""
    model, answers = Amali(), {}
    for question in QUESTIONS:
        frame = answers[question] = table(benchmarks(model, question))
        print(f"\n{question}: error of the target [%]")
        print(frame.to_string(float_format="%.2f", na_rep=""))
        for what, part in (("all", frame), ("without a cliff", frame[frame["cliff"] == ""])):
            off = part[list(SHOWN)].abs()
            print(f"{what}: mean {off.mean().round(2).to_dict()}, median {off.median().round(2).to_dict()}")
    write_table(Path(__file__).parent / "README.md", "errors", summary(answers))
    packages, link_share = {}, {}
    for title, link in LINKS.items():
        gpus = chiplets(*link)
        packages[title] = table(of_chiplets(model, gpus), "chiplet")
        link_share[title] = {name: bound_by_links(make, gpus[16], model) for name, make in OPERATORS.items()}
        print(f"\nchiplets of {title}: error of 16 [%]")
        print(packages[title].to_string(float_format="%.2f", na_rep=""))
        print(packages[title][list(SHOWN)].abs().mean().round(2).to_dict())
    write_table(Path(__file__).parent / "README.md", "chiplets", package_summary(packages, link_share))


if __name__ == "__main__":
    main()
