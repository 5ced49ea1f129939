"""An H100 predicted from older GPUs on public tables: every predictor, baselines, versions, features.

Run with ``python experiments/011_predict_h100/run.py [--predictors nnls,lasso]`` (five minutes a table on two
idle cores with all predictors). Prints the README's tables.
"""

import argparse
from pathlib import Path

import pandas as pd

from dse.prediction.predict import PredictAnswer, predict
from dse.prediction.predictors import PREDICTORS
from dse.reports.predict.data import baseline_table, ranking
from experiments import data

TABLES = {
    "vidur__gemm": "H100-SXM5-80GB",
    "aiconfigurator__gemm": "H100-SXM5-80GB",
    "aiconfigurator__attention": "H100-SXM5-80GB",
}
"""Table -> the device left out, with its generation."""


def print_answer(answer: PredictAnswer) -> None:
    """Print findings, ranking, baselines and studies of one table."""
    print(f"\n== {Path(answer.table).name} -> {answer.target}")
    print(*answer.sentences(), *answer.notes, sep="\n")
    for key, found in answer.transfers.items():
        print(*key, f"{len(found.train.y)} rows to learn from, {len(found.test.y)} of the target")
        print(ranking(found).to_string(index=False, float_format="%.2f"))
        print(baseline_table(found).to_string(index=False, float_format="%.2f"))
    for name, rows in answer.studies.items():
        if rows:
            print(name)
            print(pd.json_normalize(rows).to_string(index=False, float_format="%.1f"))


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--predictors", default=",".join(PREDICTORS))
    arguments = parser.parse_args()
    for table, target in TABLES.items():
        print_answer(predict(data.path(table), target, predictors=tuple(arguments.predictors.split(","))))


if __name__ == "__main__":
    main()
