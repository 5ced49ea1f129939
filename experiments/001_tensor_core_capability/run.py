"""Tensor-core capability: cycles of five GEMMs at 128, 256 and 512 FMA/cycle/tensor core (AMALI, figures 15 and 16).

Run with ``python experiments/001_tensor_core_capability/run.py``; writes the tables of the README beside this file, and
every stack to ``stacks.csv``.
"""

from pathlib import Path

import jax
import jax.numpy as jnp
import pandas as pd

from dse import Amali, Gpu, load_gpu, load_workload
from dse.timing.timing import CAUSES, TimingModel
from dse.workload.kernel import Kernel
from dse.workload.target import Target
from experiments.common.readme_tables import markdown, write_table

HERE = Path(__file__).parent
PLATFORM = "a100_pcie_80gb"
"""AMALI's GPU: 256 FMA/cycle/tensor core in the data sheet."""

RATES = (128.0, 256.0, 512.0)
MODELS: dict[str, TimingModel] = {
    "amali": Amali(),
    "without modifiers": Amali(tensor_modifiers=False),
}
"""AMALI, and the same model with GCoM's tensor core: a unit of fixed initiation interval."""


def gpu_at(rate: float) -> Gpu:
    """Return the platform with another tensor-core rate [FMA/cycle/tensor core] and nothing else changed."""
    return load_gpu(PLATFORM).with_attributes(dict.fromkeys(("tensor_fma_bf16", "tensor_fma_fp16"), jnp.asarray(rate)))


def stacks(model: TimingModel, kernels: Kernel, gpu: Gpu) -> dict[str, jax.Array]:
    """Return cycles by cause and in all ("cycles") of every kernel, shape (kernels,)."""

    def one(kernel: Kernel) -> dict[str, jax.Array]:
        timing = model(kernel, gpu)
        return {**timing.stack(), "cycles": timing.cycles, "feasible": timing.feasible}

    return jax.jit(jax.vmap(one))(kernels)


def study() -> pd.DataFrame:
    """Return a row a model, GEMM and rate: cycles by cause, with the kernel that is fastest at 256 FMA/cycle.

    The kernel is held, as a trace holds it; ``retuned_cycles`` are those of the kernel that is fastest at that rate.
    """
    base = load_gpu(PLATFORM)
    capability = float(base.compute_capability)
    workload = load_workload(HERE / "gemms.csv", Target((capability, capability), warpgroup=False))
    kernels = workload.kernels.as_arrays()
    rows = []
    for name, model in MODELS.items():
        by_rate = {rate: stacks(model, kernels, gpu_at(rate)) for rate in RATES}
        for operator, part in zip(workload.operators, workload.slices, strict=True):
            totals = {
                rate: jnp.where(s["feasible"][part] > 0, s["cycles"][part], jnp.inf) for rate, s in by_rate.items()
            }
            held = part.start + int(jnp.argmin(totals[256.0]))
            for rate, stack in by_rate.items():
                causes = {cause: float(stack[cause][held]) for cause in CAUSES}
                rows.append(
                    {
                        "model": name,
                        "gemm": operator.name,
                        "rate": rate,
                        "kernel": operator.candidates[held - part.start].label,
                        "cycles": float(stack["cycles"][held]),
                        "retuned_cycles": float(totals[rate].min()),
                        **causes,
                    }
                )
    return pd.DataFrame(rows)


def summary(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a row a model and GEMM: cycles at each rate, the ratio of math-pipe throttle 512 to 256, the top cause."""
    rows = []
    for (model, gemm), part in frame.groupby(["model", "gemm"], sort=False):
        at = part.set_index("rate")
        math = at["math_pipe_throttle"]
        rows.append(
            {
                "model": model,
                "gemm": gemm,
                "kernel": at["kernel"].iloc[0],
                **{f"cycles at {rate:g}": round(at.loc[rate, "cycles"]) for rate in RATES},
                "retuned at 512": round(at.loc[512.0, "retuned_cycles"]),
                "math pipe 512/256": f"{math[512.0] / math[256.0]:.2f}" if math[256.0] > 0 else "-",
                "top cause at 512": max(CAUSES, key=lambda cause: at.loc[512.0, cause]),
            }
        )
    return pd.DataFrame(rows)


def main() -> None:
    """Write the README's tables, and every stack to stacks.csv beside this file."""
    frame = study()
    frame.to_csv(HERE / "stacks.csv", index=False, float_format="%.1f")
    found = summary(frame).astype(str)
    for name, model in (("amali", "amali"), ("fixed", "without modifiers")):
        mine = found[found["model"] == model].drop(columns="model")
        write_table(HERE / "README.md", name, markdown(list(mine), mine.to_numpy().tolist(), 2))


if __name__ == "__main__":
    main()
