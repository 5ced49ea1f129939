"""Board power of whole runs: what a board draws between kernels, fitted to some boards and held against the others.

Run with ``python experiments/019_whole_networks/power.py`` (half a minute). Predicted is what ``dse validate TABLE
--quantity power --time model`` predicts. A row's watts are kernels (1 - w) + rest w + s clocked w: w is the share of
its time that the GPU waits, ``rest`` what it then draws with its SMs' clocks gated, ``clocked`` those clocks, and s the
coefficient ``waiting_sm``. Kernels of a board are off by a factor of their own, else s would make up for it.
"""

from collections.abc import Iterable

import jax.numpy as jnp
import numpy as np
import pandas as pd

from dse.base.skipped_rows import Skipped
from dse.hardware.presets import GpuSheet
from dse.measured.device_models import device_models
from dse.measured.network_runs.power import run_watts
from dse.measured.table import read_operators, tensor_parallel
from dse.power.board import BoardPower
from experiments import data

TABLES = ("llm_inference_bench__e2e", "splitwise__llm_e2e")

SHARES = np.linspace(0.0, 1.0, 101)
"""Values of ``waiting_sm`` that are tried [1]."""

FACTORS = np.linspace(0.7, 1.7, 101)
"""Factors of a set's kernels that are tried [1]."""

STEP_PJ = 10.0
"""Step of the energy of a byte of DRAM [pJ/B]."""

BYTES_PJ = np.linspace(0.0, 60.0, 61)
"""What a byte of DRAM may cost beyond what the board's fit says: values that are tried [pJ/B]."""

AT_REST_W = 90.0
"""Readings below are of boards without work: Splitwise's runs of 8192 tokens say 69 to 73 W on 2, 4 and 8 GPUs [W]."""


def runs(model: BoardPower) -> pd.DataFrame:
    """Return runs with their watts, those without a gap (``kernels_w``) and the parts of a gap (``rest``,
    ``clocked``) [W]; ``share`` of the time [1] that the GPU waits, ``byte``: watts of a pJ more for each
    byte of DRAM [W/(pJ/B)], ``set`` and ``predicted_w``."""
    parts = []
    for name in TABLES:
        table = read_operators(data.path(name))
        models, _ = device_models(table.frame)
        frame = table.frame.assign(tp=tensor_parallel(table))
        frame = frame[(frame["power_w"] > AT_REST_W) & frame["device"].isin(models)]
        frame = frame[~((frame["op"] == "llm_prefill") & (frame["source"] == "splitwise"))]  # peaks, by their notes
        frame = frame[~frame["device"].str.contains("350W")]  # no measurement
        dearer = model.with_values({"dram_path": model.dram_path + STEP_PJ})
        found, more = (run_watts(frame, models, one, True, Skipped()) for one in (model, dearer))
        found = found.assign(byte=(more["predicted_w"] - found["predicted_w"]) / STEP_PJ)
        for device, mine in found.groupby("device"):
            parts.append(_with_gaps(mine, model, models[str(device)].sheet))
    return pd.concat(parts, ignore_index=True)


def _with_gaps(rows: pd.DataFrame, model: BoardPower, sheet: GpuSheet) -> pd.DataFrame:
    record = sheet.record()
    gap = model.between_kernels(jnp.asarray(record.boost_clock_mhz) / 1e3, record)
    clocked = float(gap.idle_sm) / float(model.waiting_sm)
    share = (rows["overhead_us"] / rows["predicted_us"]).to_numpy()
    kernels = (rows["predicted_w"].to_numpy() - share * float(gap.watts)) / (1 - share)
    return rows.assign(
        share=share, kernels_w=kernels, rest=float(gap.watts - gap.idle_sm), clocked=clocked, set=sheet.title
    )


def watts(rows: pd.DataFrame, waiting: float, factor: float = 1.0) -> np.ndarray:
    """Return the watts of runs with a value of ``waiting_sm``, their kernels' times ``factor``."""
    between = rows["rest"] + waiting * rows["clocked"]
    return (factor * (1 - rows["share"]) * rows["kernels_w"] + rows["share"] * between).to_numpy()


def losses(rows: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Return the least mean error of a set for each of SHARES, and the factor of its kernels that leaves it."""
    gaps = np.array([watts(rows, share, 0.0) for share in SHARES])[:, None]  # (shares, 1, rows)
    kernels = FACTORS[:, None] * ((1 - rows["share"]) * rows["kernels_w"]).to_numpy()
    off = np.abs((gaps + kernels) / rows["power_w"].to_numpy() - 1).mean(axis=-1)
    return off.min(axis=1), FACTORS[off.argmin(axis=1)]


def fitted(each: Iterable[tuple[np.ndarray, np.ndarray]]) -> int:
    """Return the place in SHARES of what sets ask for, each alike; of :func:`losses`."""
    return int(np.argmin(np.sum([least for least, _ in each], axis=0)))


def with_bytes(rows: pd.DataFrame, name: str) -> tuple[float, float, str]:
    """Return ``waiting_sm`` and a byte's further energy [pJ/B] of a fit to all sets but one, each alike, and the errors
    of that one."""
    others = [mine for other, mine in rows.groupby("set") if other != name]
    off = np.zeros((len(SHARES), len(BYTES_PJ)))
    for mine in others:
        gaps, byte = np.array([watts(mine, share) for share in SHARES])[:, None], mine["byte"].to_numpy()
        predicted = gaps + BYTES_PJ[:, None] * byte
        off += np.abs(predicted / mine["power_w"].to_numpy() - 1).mean(axis=-1)
    share, byte = (grid[at] for grid, at in zip((SHARES, BYTES_PJ), divmod(off.argmin(), len(BYTES_PJ)), strict=True))
    mine = rows[rows["set"] == name]
    return float(share), float(byte), _errors(mine, watts(mine, share) + byte * mine["byte"].to_numpy())


def main() -> None:
    """Fit, each set left out in turn, and print."""
    model = BoardPower.from_table()
    rows = runs(model)
    each = {str(name): losses(mine) for name, mine in rows.groupby("set")}
    whole = fitted(each.values())
    print(f"waiting_sm of all three: {SHARES[whole]:.2f}; shipped: {float(model.waiting_sm):.2f}\n")
    print("| runs | n | measured W | waits, % | gap W before, now | its waiting_sm | before | left out | as shipped |")
    print("|---" * 9 + "|")
    for name in each:
        mine = rows[rows["set"] == name]
        share = float(SHARES[fitted(found for other, found in each.items() if other != name)])
        between = (mine["rest"] + waiting * mine["clocked"] for waiting in (float(model.idle_sm), share))
        cells = [
            name,
            str(len(mine)),
            f"{mine['power_w'].min():.0f} to {mine['power_w'].max():.0f}",
            f"{100 * mine['share'].min():.0f} to {100 * mine['share'].max():.0f}",
            ", ".join(f"{one.mean():.0f}" for one in between),
            f"{share:.2f}",
            _errors(mine, watts(mine, float(model.idle_sm))),
            _errors(mine, watts(mine, share)),
            _errors(mine, mine["predicted_w"].to_numpy()),
        ]
        print(f"| {' | '.join(cells)} |")
    told = ", ".join(f"{factors[whole]:.2f} ({name})" for name, (_, factors) in each.items())
    print(f"\nKernels of these boards draw so many times what is predicted: {told}")
    for name in each:
        share, byte, errors = with_bytes(rows, name)
        print(f"{name}, left out, a byte of DRAM {byte:.0f} pJ dearer and waiting_sm {share:.2f}: {errors}")


def _errors(rows: pd.DataFrame, predicted: np.ndarray) -> str:
    """Mean error [%] and bias [1] of a set's watts."""
    ratio = predicted / rows["power_w"]
    return f"{100 * (ratio - 1).abs().mean():.1f} % ({float(np.exp(np.log(ratio).mean())):.2f})"


if __name__ == "__main__":
    main()
