"""Hypervolume of a search: per evaluation on the main space, and per second on spaces of more than 10^9 designs.

Run with ``python -m benchmarks.search [--json] [--seconds S] [--seeds N] [--spaces main,fine,wide]`` (about nine
minutes on two cores). Logarithms of the objectives are scaled to the box of the true front (main) or of the best
front that all drivers found together (fine, wide), reference point 1.1. On ``main`` (1.36 million designs) the search
may evaluate one design in a hundred. On the others every driver has the same wall time with the same jitted model, in
chunks that fit its batches, compilation left out, and is judged by the front of all that it evaluated: this package's
search; NSGA-II of pymoo with populations of 100, 200 and 1000, where it is installed (``pip install '.[benchmark]'``);
plain Optuna, NSGA-II (50) and TPE (10) asked in batches, in memory. The order of the drivers turns with the seed, for a
machine that others use too.
"""

import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

import numpy as np
import optuna

from benchmarks.arguments import parser
from dse.base.kept.between_commands import cache_compilations
from dse.base.pareto_filter import Box, FrontBuilder
from dse.pareto.batch_model import BatchModel
from dse.pareto.fronts import front
from dse.pareto.search import search
from dse.pareto.search_state import grid_of
from dse.space.shipped import find_space
from dse.space.space import Space, load_space, space_from_mapping

SHARE = 0.01

FINE = {
    "tensor_fma_bf16": {"from": 128, "to": 2048, "step": 16},
    "sm_count": {"from": 72, "to": 192, "step": 2},
    "l2_mib": {"from": 20, "to": 160, "step": 5},
    "dram_bandwidth_gbs": {"from": 1675, "to": 8040, "step": 50},
    "tensor_clock_mhz": {"from": 1030, "to": 1830, "step": 25},
    "l2_slice_bytes_per_cycle": {"from": 32, "to": 128, "step": 8},
}
"""The main space's axes in small steps: 1.2e10 designs."""

WIDE = FINE | {
    "l1_kib": {"from": 128, "to": 512, "step": 32},
    "l1_bytes_per_cycle": [64, 96, 128, 160, 192, 256],
    "fp32_lanes": [32, 64, 96, 128, 192, 256],
    "sfu_lanes": [4, 8, 16, 32],
    "registers_per_sm": [32768, 65536, 98304, 131072],
    "l2_port_bytes_per_cycle": [32, 48, 64, 96, 128],
}
"""Twice the axes: 4.4e14 designs, of which those on two exposure fields can be had."""


def spaces() -> dict[str, Space]:
    """Return the spaces by name."""
    main = load_space(find_space("h100_tensor_core"))
    wide = {"axes": WIDE, "constraints": ["die_mm2 <= 1628"]}
    wide["links"] = main.content["links"] | {"shared_memory_kib": "l1_kib - 28"}
    return {
        "main": main,
        "fine": space_from_mapping(main.content | {"axes": FINE}, "fine", "fine"),
        "wide": space_from_mapping(main.content | wide, "wide", "wide"),
    }


@dataclass
class Run:
    """What a driver evaluated: the costs of the feasible designs, and how many there were in all."""

    costs: list[np.ndarray] = field(default_factory=list)
    evaluations: int = 0

    def front(self) -> np.ndarray:
        """Return the costs of the front."""
        costs = np.vstack(self.costs)
        return costs[front(costs)]


def counted(model: BatchModel, run: Run, index: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Evaluate designs for a run; return costs and violation."""
    evaluated = model(index)
    run.costs.append(evaluated.costs[evaluated.violation == 0])
    run.evaluations += len(index)
    return evaluated.costs, evaluated.violation


def ours(space: Space, seconds: float, seed: int) -> Run:
    """Run this package's search."""
    found = search(space, seconds=seconds, seed=seed)
    signs = np.asarray([o.sign for o in space.objectives])
    names = [o.name for o in space.objectives]
    return Run([signs * found.result.front[names].to_numpy(float)], found.evaluations)


def pymoo(population: int) -> Callable[[Space, float, int], Run]:
    """Return pymoo's NSGA-II with a population, on whole numbers."""

    def drive(space: Space, seconds: float, seed: int) -> Run:
        from pymoo.algorithms.moo.nsga2 import NSGA2  # pyright: ignore[reportMissingImports]
        from pymoo.core.problem import Problem  # pyright: ignore[reportMissingImports]
        from pymoo.operators.crossover.sbx import SBX  # pyright: ignore[reportMissingImports]
        from pymoo.operators.mutation.pm import PM  # pyright: ignore[reportMissingImports]
        from pymoo.operators.repair.rounding import RoundingRepair  # pyright: ignore[reportMissingImports]
        from pymoo.operators.sampling.rnd import IntegerRandomSampling  # pyright: ignore[reportMissingImports]

        run, model, grid = Run(), BatchModel(space, -(-population // 16) * 16), grid_of(space)
        model.compile()

        class Designs(Problem):
            def __init__(self) -> None:
                zeros = np.zeros(len(grid.lengths))
                objectives = len(space.objectives)
                super().__init__(len(zeros), objectives, n_ieq_constr=1, xl=zeros, xu=grid.lengths - 1, vtype=int)

            def _evaluate(self, x: np.ndarray, out: dict, *args: Any, **kwargs: Any) -> None:
                costs, violation = counted(model, run, grid.index(x.astype(np.int64)))
                out["F"], out["G"] = costs, violation[:, None]

        rounded: dict[str, Any] = {"vtype": float, "repair": RoundingRepair()}
        algorithm = NSGA2(
            pop_size=population,
            sampling=IntegerRandomSampling(),
            crossover=SBX(prob=0.9, eta=15, **rounded),
            mutation=PM(eta=20, **rounded),
            eliminate_duplicates=True,
        )
        algorithm.setup(Designs(), termination=("n_gen", 10**9), seed=seed, verbose=False)
        start = time.perf_counter()
        while time.perf_counter() - start < seconds:
            algorithm.next()
        return run

    return drive


def plain_optuna(sampler: Callable[[int], Any], batch: int) -> Callable[[Space, float, int], Run]:
    """Return Optuna with a sampler, asked and told in batches."""

    def drive(space: Space, seconds: float, seed: int) -> Run:
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        run, model, grid = Run(), BatchModel(space, -(-batch // 16) * 16), grid_of(space)
        model.compile()
        ranges: dict[str, Any] = {
            axis.name: optuna.distributions.IntDistribution(0, len(axis) - 1) for axis in space.axes
        }
        directions = [optuna.study.StudyDirection.MINIMIZE] * len(space.objectives)
        study = optuna.create_study(directions=directions, sampler=sampler(seed))
        start = time.perf_counter()
        while time.perf_counter() - start < seconds:
            trials = [study.ask(ranges) for _ in range(batch)]
            digits = np.asarray([list(trial.params.values()) for trial in trials])
            for trial, cost, missed in zip(trials, *counted(model, run, grid.index(digits)), strict=True):
                trial.set_constraint("feasible", float(missed))
                study.tell(trial, cost.tolist())
        return run

    return drive


DRIVERS: dict[str, Callable[[Space, float, int], Run]] = {
    "dse search": ours,
    "pymoo NSGA-II 100": pymoo(100),
    "pymoo NSGA-II 200": pymoo(200),
    "pymoo NSGA-II 1000": pymoo(1000),
    "Optuna NSGA-II": plain_optuna(lambda seed: optuna.samplers.NSGAIISampler(seed=seed), 50),
    "Optuna TPE": plain_optuna(
        lambda seed: optuna.samplers.TPESampler(seed=seed, multivariate=True, constant_liar=True), 10
    ),
}


def installed() -> list[str]:
    """Return the drivers whose library is installed."""
    return [name for name in DRIVERS if find_spec("pymoo") or not name.startswith("pymoo")]


def equal_time(space: Space, seconds: float, seeds: int) -> dict[str, dict[str, Any]]:
    """Return hypervolumes, their mean logarithm and evaluations by driver."""
    names = installed()
    fronts: dict[str, list[np.ndarray]] = {name: [] for name in names}
    counts: dict[str, list[int]] = {name: [] for name in names}
    for seed in range(seeds):
        for name in names[seed % len(names) :] + names[: seed % len(names)]:
            run = DRIVERS[name](space, seconds, seed)
            fronts[name].append(run.front())
            counts[name].append(run.evaluations)
    everything = np.vstack([costs for each in fronts.values() for costs in each])
    box = Box.of(everything[front(everything)])
    table = {}
    for name in names:
        volumes = [box.hypervolume(costs) for costs in fronts[name]]
        table[name] = {
            "hypervolume": volumes,
            "mean_log_hypervolume": float(np.mean(np.log(volumes))),
            "evaluations": counts[name],
            "front": [len(costs) for costs in fronts[name]],
        }
    return table


def equal_evaluations(space: Space, seeds: int) -> dict[str, Any]:
    """Return the share of the true hypervolume that one evaluation in a hundred finds, by seed."""
    model, builder = BatchModel(space, 32768), FrontBuilder(len(space.objectives))
    costs = []
    for start in range(0, space.size, 32768):
        evaluated = model(np.arange(start, min(start + 32768, space.size)))
        builder.add(evaluated.costs[evaluated.violation == 0], evaluated.index[evaluated.violation == 0])
        costs.append(evaluated.costs)
    true = np.vstack(costs)[builder.index]
    box, names = Box.of(true), [o.name for o in space.objectives]
    signs = np.asarray([o.sign for o in space.objectives])
    shares, times, found = [], [], []
    for seed in range(seeds):
        result = search(space, evaluations=int(SHARE * space.size), seed=seed)
        shares.append(box.hypervolume(signs * result.result.front[names].to_numpy(float)) / box.hypervolume(true))
        times.append(result.seconds)
        found.append(len(result.result.front))
    return {
        "designs": space.size,
        "true_front": len(true),
        "evaluations": int(SHARE * space.size),
        "share_of_hypervolume": shares,
        "front": found,
        "seconds": times,
    }


def main() -> None:
    """Print the figures as tables, or as JSON with --json."""
    known = parser("search", __doc__)
    known.add_argument("--seconds", type=float, default=10.0, help="of each driver on a large space")
    known.add_argument("--seeds", type=int, default=3)
    known.add_argument("--spaces", default="main,fine,wide", help="names, separated by commas")
    options = known.parse_args()
    wanted = options.spaces.split(",")
    every = spaces()
    if unknown := set(wanted) - set(every):
        known.error(f"--spaces: {', '.join(sorted(unknown))} unknown; there are {', '.join(every)}")
    cache_compilations()
    if (left_out := DRIVERS.keys() - installed()) and set(wanted) != {"main"}:
        print(f"left out: {', '.join(sorted(left_out))}; pip install '.[benchmark]' for them", file=sys.stderr)
    document: dict[str, Any] = {}
    for name, space in every.items():
        if name not in wanted:
            continue
        if name == "main":
            document[name] = equal_evaluations(space, options.seeds)
        else:
            document[name] = equal_time(space, options.seconds, options.seeds)
        if not options.json:
            print(f"{name}: {space.size:.3g} designs")
            show(document[name])
    if options.json:
        print(json.dumps(document))


def show(found: dict[str, Any]) -> None:
    """Print the figures of one space."""
    if "true_front" in found:
        shares = ", ".join(f"{100 * share:.3f} %" for share in found["share_of_hypervolume"])
        print(
            f"  {found['evaluations']:,} evaluations find {shares} of the true hypervolume, in "
            f"{', '.join(f'{s:.2f} s' for s in found['seconds'])}"
        )
        return
    for name, row in found.items():
        volumes = " ".join(f"{volume:.5f}" for volume in row["hypervolume"])
        counts = " ".join(f"{count:9,}" for count in row["evaluations"])
        print(f"  {name:20s} mean log {row['mean_log_hypervolume']:+.5f}   each {volumes}   evaluations {counts}")


if __name__ == "__main__":
    main()
