"""One design question answered with the published model and with the calibrated one: ranks, front, regret.

Run with ``python experiments/016_calibrated_design/run.py`` (a minute), which writes the README's tables; ``--out
FOLDER`` writes the front's table. The
calibrated answer stands for the truth: it is off by what experiment 012 says, the published one by more.
"""

import argparse
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import kendalltau, spearmanr

from dse import sweep
from dse.base.pareto_filter import Box
from dse.pareto.fronts import front
from dse.space.shipped import find_space
from dse.space.space import Space, space_from_mapping
from experiments.common.readme_tables import markdown, write_table

QUESTION = "h100_tensor_core"

AXES = {
    "tensor_fma_bf16": [256, 384, 512, 768, 1024, 2048],
    "sm_count": [72, 96, 120, 132, 144, 168, 192],
    "l2_mib": [20, 30, 50, 80, 160],
    "dram_bandwidth_gbs": [1675, 2345, 3350, 4800, 6030, 8040],
    "tensor_clock_mhz": [1230, 1430, 1630, 1830],
    "l2_slice_bytes_per_cycle": [32, 64, 96, 128],
}
"""The question's axes with fewer values: 20,160 designs."""

TIMES = {"prefill": "prefill.ttft_ms", "decode": "decode.tbt_ms"}
COSTS = [*TIMES.values(), "die_mm2"]

TIMINGS = {"published": {"model": "amali"}, "calibrated": {"model": "amali", "calibration": "shared"}}

BUDGETS = (0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3)
"""Die areas that a choice must keep to, in units of the baseline's."""

WEIGHTS = {"prefill only": 1.0, "both alike": 0.5, "decode only": 0.0}
"""Share of the prefill in the geometric mean that a choice of one design minimises."""


def question(timing: dict[str, str]) -> Space:
    """Return the shipped space with the coarse axes and a timing model."""
    path = find_space(QUESTION)
    content = tomllib.loads(path.read_text(encoding="utf-8"))
    return space_from_mapping(content | {"axes": AXES, "timing": timing}, str(path), QUESTION)


def answers() -> tuple[dict[str, pd.DataFrame], pd.DataFrame]:
    """Return every design by model (feasible in both), and the two baselines."""
    found = {name: sweep(question(timing)) for name, timing in TIMINGS.items()}
    points = {name: result.points() for name, result in found.items()}
    runs = np.logical_and.reduce([frame["feasible"].to_numpy(bool) for frame in points.values()])
    baselines = pd.concat({name: result.baseline.iloc[0] for name, result in found.items()}, axis=1)
    return {name: frame[runs].reset_index(drop=True) for name, frame in points.items()}, baselines


def ranks(published: pd.DataFrame, calibrated: pd.DataFrame, baselines: pd.DataFrame) -> pd.DataFrame:
    """Return of each time: how far the models are apart (in speed-up over the baseline too), and how ranks agree."""
    rows = []
    for name, column in TIMES.items():
        a, b = published[column].to_numpy(), calibrated[column].to_numpy()
        gains = np.log((a / float(baselines["published"][column])) / (b / float(baselines["calibrated"][column])))
        moved = np.abs(np.argsort(np.argsort(a)) - np.argsort(np.argsort(b))) / len(a)
        rows.append(
            {
                "time": name,
                "published / calibrated": float(np.exp(np.log(a / b).mean())),
                "of the baseline": float(baselines["published"][column] / baselines["calibrated"][column]),
                "speed-ups apart, mean [%]": 100 * float(np.expm1(np.abs(gains).mean())),
                "most [%]": 100 * float(np.expm1(np.abs(gains).max())),
                "spearman": float(spearmanr(a, b).statistic),
                "kendall": float(kendalltau(a, b).statistic),
                "pairs reversed [%]": 100 * reversed_pairs(a, b),
                "moved > 10 % of ranks [%]": 100 * float((moved > 0.1).mean()),
            }
        )
    return pd.DataFrame(rows).set_index("time")


def reversed_pairs(a: np.ndarray, b: np.ndarray, draws: int = 1_000_000) -> float:
    """Return the share of pairs that the models order in opposite ways, from random pairs."""
    i, j = np.random.default_rng(0).integers(0, len(a), (2, draws))
    return float(((a[i] - a[j]) * (b[i] - b[j]) < 0).mean())


def who_moves(published: pd.DataFrame, calibrated: pd.DataFrame) -> pd.DataFrame:
    """Return calibrated over published time against the mean design's, at both ends of each axis: above 0 the published
    model flatters designs with that value."""
    rows = []
    for name, column in TIMES.items():
        ratio = np.log(calibrated[column].to_numpy() / published[column].to_numpy())
        for axis in AXES:
            mean = pd.Series(ratio - ratio.mean()).groupby(published[axis].to_numpy()).mean()
            rows.append(
                {
                    "time": name,
                    "axis": axis,
                    "lowest value [%]": 100 * float(np.expm1(mean.iloc[0])),
                    "highest value [%]": 100 * float(np.expm1(mean.iloc[-1])),
                }
            )
    return pd.DataFrame(rows).set_index(["time", "axis"])


def fronts(published: pd.DataFrame, calibrated: pd.DataFrame) -> dict[str, float]:
    """Return how the front moves: members kept, and what the published front is worth under the calibrated model."""
    costs = {"published": published[COSTS].to_numpy(float), "calibrated": calibrated[COSTS].to_numpy(float)}
    members = {name: front(c) for name, c in costs.items()}
    both = np.intersect1d(members["published"], members["calibrated"])
    truth, trusted = costs["calibrated"][members["calibrated"]], costs["calibrated"][members["published"]]
    box = Box.of(truth)
    still = front(trusted)
    loss = beyond(trusted, truth)
    return {
        "designs": len(published),
        "published front": len(members["published"]),
        "calibrated front": len(members["calibrated"]),
        "members of both": len(both),
        "published members kept [%]": 100 * len(both) / len(members["published"]),
        "calibrated members found [%]": 100 * len(both) / len(members["calibrated"]),
        "published members not dominated by each other [%]": 100 * len(still) / len(trusted),
        "hypervolume kept [%]": 100 * box.hypervolume(trusted) / box.hypervolume(truth),
        "published members: beyond the front, mean [%]": 100 * float(loss.mean()),
        "published members: beyond the front, most [%]": 100 * float(loss.max()),
    }


def beyond(designs: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Return of each design how much longer both its times are, at least, than those of a member of ``truth`` that
    has no more area: factor - 1, 0 on the front. Costs (designs, 3): the two times and the area."""
    logs = np.log(truth)
    longer = []
    for design in designs:
        apart = (np.log(design[:2]) - logs[truth[:, 2] <= design[2], :2]).min(axis=1)
        longer.append(float(np.expm1(apart.max())))
    return np.array(longer)


def choices(
    published: pd.DataFrame, calibrated: pd.DataFrame, baselines: pd.DataFrame, budget: float = 1.0
) -> pd.DataFrame:
    """Return the design that each model chooses within ``budget`` times the baseline's die area, and the regret of
    the published model's choice: how much more time it takes than the best, by the calibrated model."""
    area = budget * float(baselines["calibrated"]["die_mm2"])
    small = (calibrated["die_mm2"] <= area * (1 + 1e-6)).to_numpy()
    rows = []
    for name, weight in WEIGHTS.items():
        means = {}
        for model, frame in (("published", published), ("calibrated", calibrated)):
            logs = weight * np.log(frame[TIMES["prefill"]]) + (1 - weight) * np.log(frame[TIMES["decode"]])
            base = baselines[model]
            own = weight * np.log(base[TIMES["prefill"]]) + (1 - weight) * np.log(base[TIMES["decode"]])
            means[model] = np.where(small, logs - own, np.inf)
        places = {model: int(np.argmin(mean)) for model, mean in means.items()}
        trusted, truth = means["calibrated"][places["published"]], means["calibrated"][places["calibrated"]]
        ranking = np.sort(means["calibrated"][small])
        for model, place in places.items():
            rows.append(
                {"choice": name, "by": model}
                | {a: calibrated[a].iloc[place] for a in AXES}
                | {
                    "promised speed-up": float(np.exp(-means[model][place])),
                    "true speed-up": float(np.exp(-means["calibrated"][place])),
                    "regret [%]": 100 * float(np.expm1(trusted - truth)) if model == "published" else 0.0,
                    "true rank": int(np.searchsorted(ranking, means["calibrated"][place])) + 1,
                }
            )
    return pd.DataFrame(rows).set_index(["choice", "by"])


def most_moved(published: pd.DataFrame, calibrated: pd.DataFrame, count: int = 2) -> pd.DataFrame:
    """Return the designs that rise and fall most [% of all ranks] when the calibrated model judges."""
    parts = []
    for name, column in TIMES.items():
        by = [100 * frame[column].rank().to_numpy() / len(frame) for frame in (published, calibrated)]
        order = np.argsort(by[1] - by[0], kind="stable")
        places = [*order[:count], *order[-count:]]
        parts.append(
            calibrated[list(AXES)].iloc[places].assign(published=by[0][places], calibrated=by[1][places], time=name)
        )
    return pd.concat(parts).set_index("time")


def regrets(published: pd.DataFrame, calibrated: pd.DataFrame, baselines: pd.DataFrame) -> pd.DataFrame:
    """Return the regret [%] of the published model's choice by die area budget and by what is chosen for."""
    found = {}
    for budget in BUDGETS:
        table = choices(published, calibrated, baselines, budget)
        found[budget] = table.xs("published", level="by")["regret [%]"]
    return pd.DataFrame(found)


def table_of(frame: pd.DataFrame, first: str, digits: int = 1) -> str:
    """Return a table in Markdown: ``first`` over the index, then the columns, rounded to ``digits``."""
    names = [", ".join(name) if isinstance(name, tuple) else str(name) for name in frame.index]
    rows = [[name, *(f"{x:.{digits}f}" for x in row)] for name, row in zip(names, frame.to_numpy(float), strict=True)]
    return markdown([first, *map(str, frame.columns)], rows)


def write_readme(published: pd.DataFrame, calibrated: pd.DataFrame, baselines: pd.DataFrame) -> None:
    """Write the README's tables."""
    moved, front_moved = who_moves(published, calibrated), pd.Series(fronts(published, calibrated))
    tables = {
        "ranks": table_of(ranks(published, calibrated, baselines).T, "", 3),
        "moves": table_of(moved, "time, axis"),
        "front": table_of(front_moved.to_frame("Pareto front (prefill, decode, die area)"), "", 1),
        "regret": table_of(regrets(published, calibrated, baselines), "regret [%] at an area limit, of the H100's"),
    }
    for name, table in tables.items():
        write_table(Path(__file__).parent / "README.md", name, table)


def main() -> None:
    """Evaluate, write the README's tables, and print what is finer."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="folder for designs.csv: both models' times of both fronts")
    folder = parser.parse_args().out
    points, baselines = answers()
    published, calibrated = points["published"], points["calibrated"]
    pd.set_option("display.width", 200, "display.max_columns", 30, "display.precision", 3)
    write_readme(published, calibrated, baselines)
    print(baselines.loc[COSTS], most_moved(published, calibrated), sep="\n\n")
    print(choices(published, calibrated, baselines).T)
    if folder:
        folder.mkdir(parents=True, exist_ok=True)
        both = published[[*AXES, *COSTS]].join(calibrated[list(TIMES.values())], rsuffix=" calibrated")
        members = np.union1d(front(published[COSTS].to_numpy(float)), front(calibrated[COSTS].to_numpy(float)))
        both.iloc[members].to_csv(folder / "designs.csv", index=False)


if __name__ == "__main__":
    main()
