"""What operands may be worth: long kernels by board and library, with other energies of their products.

Run with ``python experiments/006_board_power/operands.py`` (a minute of processor time). No fit: the shipped
coefficients, but for ``softmax`` (the energy of an attention product over that of another) or ``tensor_bf16`` (of any).
"""

import jax.numpy as jnp
import numpy as np
import pandas as pd
from boards import b200_rows
from rows import power_rows

from dse.hardware.data_types import TENSOR_DTYPES
from dse.measured.board_watts import SETTLED_US, watts_of
from dse.measured.power_rows import MeasuredLaunches
from dse.power.board import BoardPower

BOARDS = {"H200": power_rows, "B200": b200_rows}

CHANGES = {
    "shipped": ("softmax", 1.0),
    "softmax 1": ("softmax", None),
    "half": ("tensor_bf16", 0.5),
}
"""What a column is called -> the coefficient and how many times the shipped one it is (None: it is 1)."""

OF_ALL = "vLLM 0.22.0"
"""The library of tables that name one for all of their rows."""


def judged(board: str, rows: MeasuredLaunches) -> pd.DataFrame:
    """Return a board's kernels from SETTLED_US on, with the ratio of predicted to measured watts in each change."""
    shipped = BoardPower.from_table()
    ratios = {}
    for name, (coefficient, times) in CHANGES.items():
        value = {"softmax": shipped.softmax, "tensor_bf16": shipped.tensor[TENSOR_DTYPES.index("bf16")]}[coefficient]
        changed = shipped.with_values({coefficient: jnp.asarray(1.0 if times is None else times * float(value))})
        ratios[name] = watts_of(changed, rows) / rows.table["power_w"].to_numpy()
    library = rows.table["notes"].astype(str).str.extract(r"impl=([^/;\s]*)")[0].fillna(OF_ALL)
    return rows.table.assign(board=board, library=library, **ratios)[rows.table["latency_us"] >= SETTLED_US]


def main() -> None:
    """Print the table: mean error [%], and the geometric mean of predicted over measured."""
    every = pd.concat([judged(board, rows()) for board, rows in BOARDS.items()], ignore_index=True)
    print(f"| board | kernels | library | rows | {' | '.join(CHANGES)} |\n{'|---' * (4 + len(CHANGES))}|")
    for (board, op, library), rows in every.groupby(["board", "op", "library"]):
        off = [f"{100 * (rows[c] - 1).abs().mean():.1f} ({np.exp(np.log(rows[c]).mean()):.2f})" for c in CHANGES]
        print(f"| {board} | {op} | {library} | {len(rows)} | {' | '.join(off)} |")


if __name__ == "__main__":
    main()
