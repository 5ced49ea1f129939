"""Board power of whole runs: the shipped models, nothing fitted to any of them.

Run with ``python experiments/019_whole_networks/power.py FOLDER``; FOLDER holds llm_inference_bench__e2e.csv.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dse.calibrate.measured import read_operators, tensor_parallel
from dse.errors import InputError
from dse.hardware.presets import find_preset
from dse.sweep.run import run
from dse.timing.calibration import calibration_for, load_timing_calibration
from dse.workload.engine import engine_of


def predicted(row: Any) -> tuple[float, float]:
    """Return the mean watts of a board over a row's run, and the run's time [us]; raises InputError if none is."""
    engine, gpu = engine_of(row.notes, row.source, row.device), str(find_preset(row.device))
    served = f"batch={row.batch:g},prompt={row.seq_q:g},output={row.seq_kv:g},dtype={row.dtype},tp={row.tp:g}"
    model = load_timing_calibration(calibration_for(gpu)).model
    found = run(gpu, f"{row.group.partition('_')[2]}:phase=generate,{served},engine={engine.name}", model).metrics
    return found["power_w"][0], 1e3 * found["time_ms"][0]


def main() -> None:
    """Predict and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    table = read_operators(parser.parse_args().folder / "llm_inference_bench__e2e.csv")
    rows, beyond = [], 0
    for row in table.frame.assign(tp=tensor_parallel(table)).itertuples():
        try:
            rows.append((row.device, row.power_w, *predicted(row)))
        except InputError:  # its keys and values do not fit the memory at once
            beyond += 1
    frame = pd.DataFrame(rows, columns=["device", "measured", "predicted", "us"])
    print("| GPU | runs | measured W | error % | bias |\n" + "|---" * 5 + "|")
    for device, mine in frame.groupby("device"):
        ratio = mine["predicted"] / mine["measured"]
        ends = f"{mine['measured'].min():.0f} to {mine['measured'].max():.0f}"
        bias = float(np.exp(np.log(ratio).mean()))
        print(f"| {device} | {len(mine)} | {ends} | {100 * (ratio - 1).abs().mean():.1f} | {bias:.2f} |")
    print(f"\n{beyond} runs do not fit the memory at once.")


if __name__ == "__main__":
    main()
