"""Board power of whole runs: the shipped models, nothing fitted to any of them.

Run with ``python experiments/019_whole_networks/power.py``. It is ``dse validate llm_inference_bench__e2e.parquet
--quantity power --time model`` with the range of the measured watts.
"""

import numpy as np

from dse.base.skipped_rows import Skipped
from dse.measured.device_models import device_models
from dse.measured.network_runs.power import run_watts
from dse.measured.table import read_operators, tensor_parallel
from dse.power.board import BoardPower
from experiments import data


def main() -> None:
    """Predict and print."""
    table = read_operators(data.path("llm_inference_bench__e2e"))
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
