"""What the data identify of the coefficients: a bootstrap over families, and profiles."""

import jax.numpy as jnp
import numpy as np
import pandas as pd
from judged import arrays, scores
from rows import masks, pair_rows, power_rows, seen

from dse.base.package_tables import read_table
from dse.calibration.power.board_fit import FREE, fit, prior_model
from dse.measured.board_watts import watts_of


def bootstrap(free: tuple[str, ...], count: int = 40) -> pd.DataFrame:
    """Coefficients of fits to families drawn with replacement, one row a draw."""
    rows, pairs = power_rows(), pair_rows()
    train, pair_train = masks(rows)["train"], seen(pairs)
    names = np.unique(rows.table.family[train])
    rng, draws = np.random.default_rng(0), []
    for _ in range(count):
        drawn = pd.Series(rng.choice(names, len(names))).value_counts()
        keep = rows.table.family.map(drawn).fillna(0).to_numpy() * train
        pair_keep = pairs.table.family.map(drawn).fillna(0).to_numpy() * pair_train
        # Every weight is kept above zero, so that all draws share one compiled fit.
        draws.append(
            fit(
                rows,
                np.where(train, np.maximum(keep, 1e-9), 0),
                pairs,
                np.where(pair_train, np.maximum(pair_keep, 1e-9), 0),
                free,
            )
        )
    return pd.DataFrame(draws)


def profile(names: tuple[str, ...]) -> dict[str, tuple[float, float]]:
    """Training error [%] with a coefficient held at the low and at the high end of its range, the others refitted."""
    rows, pairs = power_rows(), pair_rows()
    train, pair_train = masks(rows)["train"], seen(pairs)
    ranges = {row["coefficient"]: row for row in read_table("power/board.csv")}
    found = {}
    for name in names:
        free = tuple(x for x in FREE if x != name)
        errors = []
        for end in ("low", "high"):
            held = prior_model().with_values({name: jnp.asarray(float(ranges[name][end]))})
            values = fit(rows, train, pairs, pair_train, free, held)
            errors.append(scores(rows, watts_of(held.with_values(arrays(values)), rows), train)["mean"])
        found[name] = (errors[0], errors[1])
    return found
