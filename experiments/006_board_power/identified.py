"""What the boards identify of the coefficients: profiles."""

from boards import measured
from several import FITTED, fit, pairs

from dse.base.package_tables import read_table


def profile() -> dict[str, tuple[float, float]]:
    """Loss [%] over that of the fit with a coefficient held at the low and at the high end of its range, the others
    refitted."""
    ranges = {row["coefficient"]: row for row in read_table("power/board.csv")}
    best = fit(measured(), pairs())[1]
    found = {}
    for name in FITTED:
        losses = (fit(measured(), pairs(), {name: float(ranges[name][end])})[1] for end in ("low", "high"))
        found[name] = tuple(100 * (loss - best) for loss in losses)
    return found
