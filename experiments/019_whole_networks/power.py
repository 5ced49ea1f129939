"""Board power of whole runs: the shipped models, nothing fitted to any of them.

Run with ``python experiments/019_whole_networks/power.py FOLDER``; FOLDER holds llm_inference_bench__e2e.csv. It is
``dse validate llm_inference_bench__e2e.csv --quantity power --time model`` with the range of the measured watts.
"""

import argparse
from pathlib import Path

import numpy as np

from dse.base.skipped_rows import Skipped
from dse.measured.device_models import device_models
from dse.measured.network_runs.power import run_watts
from dse.measured.table import read_operators, tensor_parallel
from dse.power.board import BoardPower


def main() -> None:
    """Predict and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    table = read_operators(parser.parse_args().folder / "llm_inference_bench__e2e.csv")
    skipped = Skipped()
    models, _ = device_models(table.frame)
    frame = run_watts(table.frame.assign(tp=tensor_parallel(table)), models, BoardPower.from_table(), True, skipped)
    print("| GPU | runs | measured W | error % | bias |\n" + "|---" * 5 + "|")
    for device, mine in frame.groupby("device"):
        ratio = mine["predicted_w"] / mine["power_w"]
        ends = f"{mine['power_w'].min():.0f} to {mine['power_w'].max():.0f}"
        bias = float(np.exp(np.log(ratio).mean()))
        print(f"| {device} | {len(mine)} | {ends} | {100 * (ratio - 1).abs().mean():.1f} | {bias:.2f} |")
    for reason, n in skipped.items():
        print(f"\n{n} runs are skipped: {reason}")


if __name__ == "__main__":
    main()
