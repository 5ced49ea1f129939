"""Watts of kernels that no fit took: narrow types, windows, caches in 8 bits, mixtures, latent attention.

Run with ``python experiments/006_board_power/others.py`` (two minutes of processor time). Writes the README's table.
Nothing is fitted to these rows: their energies are those of 16 bits, by bits and bytes.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from dse.measured.board_watts import SETTLED_US
from dse.measured.device_models import device_models, power_limits
from dse.measured.power_rows import ALIKE, UNFILLED
from dse.measured.table import read_operators
from dse.power.board import BoardPower
from dse.validation.power import compared, without_power
from experiments import data
from experiments.common.readme_tables import markdown, write_table

README = Path(__file__).parent / "README.md"

FEWEST = 10
"""Rows of a line of the table, at least."""

OPERANDS = {"": "", UNFILLED: "over an unfilled cache", ALIKE: "operands all alike"}
"""How what is known of operands is told."""

TABLE = "aiconfigurator__power_new"


def judged() -> pd.DataFrame:
    """Return the rows from SETTLED_US on that no fit takes, with ``ratio``, predicted over measured watts."""
    rows, _ = compared(read_operators(data.path(TABLE)), "measured", BoardPower.from_table())
    models, unknown = device_models(rows)
    fitted = without_power(rows, unknown, power_limits(models)) == ""
    rows = rows[~fitted & (rows["latency_us"] >= SETTLED_US)]
    return rows.assign(ratio=rows["predicted_w"] / rows["power_w"], kernels=rows.apply(kernels, axis=1))


def kernels(row: pd.Series) -> str:
    """Return what a row is called in the table: operator, type and what else sets it apart."""
    words = [row["op"], row["dtype"]]
    if row["window"] > 0:
        words.append(f"window of {'128' if row['window'] == 128 else '1,024 and 8,192'}")
    if row["op"].startswith(("attn", "mla")) and row["kv_dtype"] not in (row["dtype"], None):
        words.append(f"keys and values in {row['kv_dtype']}" if isinstance(row["kv_dtype"], str) else "")
    words.append(OPERANDS[row["operands"]])
    return ", ".join(filter(None, words))


def main() -> None:
    """Write the table: rows, mean error [%], the geometric mean of predicted over measured, by library."""
    rows = judged()
    library = rows["notes"].str.extract(r"impl=([a-z]*)", expand=False)
    cells = [
        [board, what, name, str(len(r)), f"{100 * (r - 1).abs().mean():.1f}", f"{np.exp(np.log(r).mean()):.2f}"]
        for (board, what, name), r in rows.groupby([rows["gpu"], "kernels", library])["ratio"]
        if len(r) >= FEWEST
    ]
    write_table(README, "others", markdown(["board", "kernels", "library", "rows", "error, %", "bias"], cells))


if __name__ == "__main__":
    main()
