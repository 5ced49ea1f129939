"""Kernels of today's networks before anything is fitted: which kinds are beyond a factor of two of what was measured.

Run with ``python experiments/029_before_calibration/run.py`` (minutes). Writes the README's tables.
"""

import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from dse.measured.row_shape import framework_of
from dse.timing.calibration import PRIORS
from dse.validation.validate import validate
from experiments import data
from experiments.common.readme_tables import markdown, write_table

README = Path(__file__).parent / "README.md"
TABLES = ("aiconfigurator__gemm_narrow", "aiconfigurator__moe", "aiconfigurator__mla", "aiconfigurator__attention_new",
          "aiconfigurator__encoder_attention")  # fmt: skip
GROUP = ("table", "op", "device", "dtype", "library")
MOST = 14
"""Rows of a group that are drawn: what is judged is the kind, not its thousands of shapes."""

FEWEST = 5
"""Rows of a group that has a middle one."""

BEYOND = 2.0
"""Factor between the middle predicted and measured time from which a kind counts as far off."""

STAGES = {"uncalibrated": "none", "at the priors": PRIORS, "as shipped": None}
"""Stage of a calibration -> what `--calibration` says."""

HEADER = (
    "operator",
    "groups",
    *(f"beyond a factor of two, {stage}" for stage in STAGES),
    *(f"error {stage}, %" for stage in STAGES),
    "three numbers, %",
)


class Group(NamedTuple):
    """Middle ratio of predicted to measured time of a group, mean error [%] of ours and of three numbers."""

    middle: float
    ours: float
    three: float


Scores = dict[tuple[str, ...], Group]


def of_groups(frame: pd.DataFrame, table: str) -> pd.DataFrame:
    """Return rows with the columns of GROUP: a library is what the notes call the framework and its release."""
    notes = frame["notes"].fillna("")
    return frame.assign(table=table.rpartition("__")[2], library=notes.map(framework_of))


def drawn(frame: pd.DataFrame) -> pd.DataFrame:
    """Return at most MOST rows of each group, the same each time."""
    shuffled = frame.sample(frac=1, random_state=0)
    return shuffled.groupby(list(GROUP), dropna=False).head(MOST).sort_index()


def scores(rows: pd.DataFrame) -> Scores:
    """Return the score of each group with FEWEST rows."""
    found = {}
    for key, part in rows.groupby(list(GROUP)):
        if len(part) < FEWEST:
            continue
        ratio = part["predicted_us"] / part["latency_us"]
        three = (part["three_us"] / part["latency_us"] - 1).abs().mean()
        found[key] = Group(float(ratio.median()), 100 * float((ratio - 1).abs().mean()), 100 * float(three))
    return found


def predicted(calibration: str | None) -> Scores:
    """Return the scores of all tables' groups with a calibration, "none" for what is uncalibrated."""
    found: Scores = {}
    for table in TABLES:
        rows = drawn(of_groups(data.frame(table), table))
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"{table}.parquet"
            rows.drop(columns=["table", "library"]).to_parquet(path, index=False)
            answer = validate(path, "time", calibration=calibration).to_frame()
        found |= scores(of_groups(answer, table))
    return found


def beyond(group: Group) -> bool:
    """Whether a group's middle row is beyond a factor of two."""
    return not 1 / BEYOND <= group.middle <= BEYOND


def middle_error(groups: Iterable[Group], name: str) -> str:
    """Return the middle of the groups' errors, of ``ours`` or ``three``."""
    return f"{np.median([getattr(group, name) for group in groups]):.0f}"


def line(words: str, stages: Sequence[Scores]) -> list[str]:
    """Return a row of the table of operators."""
    far = [f"{sum(map(beyond, groups.values()))}" for groups in stages]
    errors = [middle_error(groups.values(), "ours") for groups in stages]
    return [words, f"{len(stages[0])}", *far, *errors, middle_error(stages[0].values(), "three")]


def operators(stages: Sequence[Scores]) -> str:
    """Return the table of operators: groups, those beyond a factor of two, and middle errors."""
    names = sorted({key[:2] for key in stages[0]})
    of = [[{k: g for k, g in groups.items() if k[:2] == name} for groups in stages] for name in names]
    lines = [line(name[1], groups) for name, groups in zip(names, of, strict=True)]
    return markdown(HEADER, [*lines, line("all", stages)])


def far_groups(stages: Sequence[Scores]) -> str:
    """Return the table of groups beyond a factor of two once a stage knows more than the equations: middle predicted /
    measured at each stage."""
    far = sorted({key for groups in stages[1:] for key, group in groups.items() if beyond(group)})
    lines = [[*key[1:], *(f"{groups[key].middle:.2f}" for groups in stages)] for key in far]
    return markdown(["operator", "GPU", "type", "library", *STAGES], lines, left=4)


def main() -> None:
    """Write the tables."""
    stages = [predicted(calibration) for calibration in STAGES.values()]
    write_table(README, "operators", operators(stages))
    write_table(README, "far", far_groups(stages))


if __name__ == "__main__":
    main()
