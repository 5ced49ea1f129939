"""What a fit of power coefficients to AccelWattch's 26 kernels can and cannot show.

Reads experiments/data/accelwattch and writes the README's tables. Run it with ``models``, ``transfer``, ``synthetic``,
or nothing for all three.
"""

import argparse
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dse.calibration.bootstrap import PERCENTILES, benchmark_draws
from dse.calibration.losses import BEND
from dse.calibration.power.accelwattch_fit import CLASSES, STRENGTHS, UNFITTED, ClassErrors, fit_all, judge, multipliers
from dse.measured.table import KernelTable, read_kernels
from dse.power.counters import constants
from experiments import data
from experiments.common.readme_tables import markdown, write_table

README = Path(__file__).parent / "README.md"
MICROBENCHMARKS = 102
NOISE = 0.02
SPREAD = 0.4
"""Standard deviation of the logarithm of the drawn multipliers."""


class Recovered(NamedTuple):
    """A component's true multiplier, the fitted one, and its 95 % bootstrap interval [1]."""

    name: str
    truth: float
    value: float
    low: float
    high: float


def models(variant: str) -> dict[str, ClassErrors]:
    """Every class judged on the Volta kernels; written into the README."""
    table = read_kernels(data.ACCELWATTCH / "volta_kernels.csv", variant)
    print(f"\n{variant}: {len(table.watts)} kernels, {len(set(table.groups))} benchmarks")
    found, rows = {}, []
    for name in CLASSES:
        j = found[name] = judge(name, table)
        low, high = j.interval
        errors = (f"{x:.2f}" for x in (j.train, j.leave_one_kernel_out, j.leave_one_benchmark_out))
        rows.append([name, *errors, f"{low:.1f} to {high:.1f}", f"{j.better_than_published:.2f}"])
        print(*rows[-1], f"strength {j.strength:g}", sep=" | ", flush=True)
    header = ["model", "train", "LOO-k", "LOO-b", "95 %", "P(better than published)"]
    write_table(README, variant, markdown(header, rows))
    return found


def transfer() -> None:
    """Write the errors on Pascal and Turing of multipliers fitted on Volta, by strength of the prior."""
    volta = read_kernels(data.ACCELWATTCH / "volta_kernels.csv", "sass")
    others = {name: read_kernels(data.ACCELWATTCH / f"{name}_kernels.csv", "sass") for name in ("pascal", "turing")}
    turing = others["turing"]
    constant = turing.parts["CONSTP"] * constants()["turing_constant_sass_sim"]
    others["turing"] = replace(turing, parts=turing.parts | {"CONSTP": constant})
    with jax.enable_x64(True):
        problem = multipliers(volta)
        strengths = sorted([*STRENGTHS[::4], judge("multipliers", volta).strength])
        fits = fit_all(problem, np.ones((len(strengths), len(volta.watts))), np.array(strengths)).coefficients
    rows = {f"{s:g}": np.asarray(c) for s, c in zip(strengths, fits, strict=True)}
    lines = []
    for name, values in (rows | {"published": np.ones(len(problem.names))}).items():
        scale = dict(zip(problem.names, values.tolist(), strict=True))
        lines.append([name, *(f"{scaled_error(table, scale):.2f}" for table in (volta, *others.values()))])
    write_table(README, "transfer", markdown(["strength", "Volta, train", "Pascal", "Turing"], lines))


def scaled_error(table: KernelTable, scale: dict[str, float]) -> float:
    """Mean error [%] of a table's components with some multiplied."""
    watts = sum((w * scale.get(part, 1.0) for part, w in table.parts.items()), np.zeros(len(table.watts)))
    return float(100 * np.mean(np.abs(watts / table.watts - 1)))


def synthetic_table(kernels: KernelTable, truth: dict[str, float], bench: int, rng: np.random.Generator) -> KernelTable:
    """The kernels and ``bench`` microbenchmarks, each stressing one component, with watts drawn from ``truth``.

    A microbenchmark is a mix of two kernels' activities at 10 to 60 %, and 10 to 100 W of one component at
    published energies.
    """
    dynamic = [part for part in kernels.parts if part not in UNFITTED]
    n = len(kernels.watts)
    mixed = rng.dirichlet(np.ones(2), bench) * rng.uniform(0.1, 0.6, (bench, 1))
    pairs = rng.integers(0, n, (bench, 2))
    parts = {}
    for i, part in enumerate(kernels.parts):
        watts = kernels.parts[part]
        if part in UNFITTED:
            more = watts[pairs[:, 0]]
        else:
            stressed = np.arange(bench) % len(dynamic) == i
            more = (watts[pairs] * mixed).sum(axis=1) + stressed * rng.uniform(10.0, 100.0, bench)
        parts[part] = np.concatenate([watts, more])
    watts = sum((w * truth.get(part, 1.0) for part, w in parts.items()), np.zeros(n + bench))
    groups = (*kernels.groups, *(f"microbenchmark {i}" for i in range(bench)))
    return replace(
        kernels,
        kernels=groups,
        groups=groups,
        parts=parts,
        watts=watts * np.exp(NOISE * rng.standard_normal(n + bench)),
    )


def synthetic(bench: int = MICROBENCHMARKS, seed: int = 0, draws: int = 200) -> list[Recovered]:
    """Name, true multiplier, fitted one, and 95 % interval of every component; strength by leave-one-benchmark-out."""
    rng = np.random.default_rng(seed)
    kernels = read_kernels(data.ACCELWATTCH / "volta_kernels.csv", "sass")
    with jax.enable_x64(True):
        first = multipliers(kernels)
        drawn = np.exp(SPREAD * rng.standard_normal(len(first.names)))
        truth = np.asarray(first.linear.ranges.values(first.linear.ranges.parameters(jnp.asarray(drawn))))
        table = synthetic_table(kernels, dict(zip(first.names, truth, strict=True)), bench, rng)
        problem = multipliers(table)
        names = sorted(set(table.groups))
        masks = np.array([[float(g != name) for g in table.groups] for name in names])
        fits = fit_all(problem, np.tile(masks, (len(STRENGTHS), 1)), np.repeat(STRENGTHS, len(masks)), BEND)
        watts = np.asarray(problem.linear.watts(fits.coefficients)).reshape(len(STRENGTHS), len(masks), -1)
        errors = np.abs(watts / table.watts - 1) * (1 - masks)
        strength = STRENGTHS[int(np.argmin(errors.sum(axis=(1, 2))))]
        weights = np.concatenate([np.ones((1, len(table.watts))), benchmark_draws(table.groups, draws)])
        values = np.asarray(fit_all(problem, weights, np.full(len(weights), strength), BEND).coefficients)
    low, high = np.percentile(values[1:], PERCENTILES, axis=0)
    columns = (problem.names, truth.tolist(), values[0].tolist(), low.tolist(), high.tolist())
    return [Recovered(*row) for row in zip(*columns, strict=True)]


def report_synthetic() -> None:
    """Write the recovery over three seeds with and without microbenchmarks, and component by component of one seed."""
    lines = []
    for bench in (MICROBENCHMARKS, 0):
        if bench:
            cells = [
                [
                    name,
                    f"{truth:.3f}",
                    f"{value:.3f}",
                    f"{low:.3f} to {high:.3f}",
                    f"{100 * abs(value / truth - 1):.1f}",
                ]
                for name, truth, value, low, high in synthetic(bench)
            ]
            write_table(README, "components", markdown(["component", "true", "fitted", "95 %", "error %"], cells))
        every = [row for seed in range(3) for row in synthetic(bench, seed, 100)]
        errors = [100 * abs(value / truth - 1) for _, truth, value, _, _ in every]
        inside = np.mean([low <= truth <= high for _, truth, _, low, high in every])
        prior = [100 * abs(1 / truth - 1) for _, truth, *_ in every]
        numbers = (f"{np.median(errors):.1f}", f"{max(errors):.0f}", f"{np.median(prior):.1f}", f"{100 * inside:.0f}")
        lines.append([f"{bench} microbenchmarks and 26 kernels", *numbers])
    header = ["rows", "median error, %", "largest", "the prior's median", "true value inside the 95 % interval, %"]
    write_table(README, "recovery", markdown(header, lines))


def main() -> None:
    """Run the parts asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", default=["models", "transfer", "synthetic"])
    parts = parser.parse_args().parts
    if "models" in parts:
        for variant in ("hw", "sass"):
            models(variant)
    if "transfer" in parts:
        transfer()
    if "synthetic" in parts:
        report_synthetic()


if __name__ == "__main__":
    main()
