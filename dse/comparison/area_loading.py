"""What the error of a ratio of two areas hangs on: the coefficients of the area model, by the intervals they state."""

from collections.abc import Mapping

import numpy as np

from dse.base.error_interval import DEVIATIONS
from dse.base.package_tables import read_table
from dse.comparison.ratio_terms import Loading, terms
from dse.evaluate.area_elasticities import area_elasticities, coefficients, is_exact

STATED = "stated"
"""Term of the area: what widens the intervals that coefficients state, learnt from pairs of dies."""


def area_loading(numbers: Mapping[str, np.ndarray]) -> Loading:
    """Return the loading of the areas of designs on the coefficients of the area model.

    ``numbers``: attribute -> (designs,). The unknowns are the logarithms of the coefficients.
    """
    elasticities = area_elasticities(numbers)
    return Loading({"area": elasticities * coefficient_errors()}, {})


def coefficient_errors() -> np.ndarray:
    """Return the standard deviation of the logarithm of each coefficient, (coefficients,).

    By its own interval where ``process/area.csv`` has one, relative to its value where that begins at 0, as pairs of
    dies widen it; else by what they teach.
    """
    known = terms("area", "all")
    rows = {row["coefficient"]: row for row in read_table("process/area.csv")}
    found = []
    for name in coefficients():
        if is_exact(name):
            continue
        learnt = known["node" if name.startswith("nodes.") else "coefficient"]
        found.append(known[STATED] * stated_error(rows.get(name, {})) or learnt)
    return np.array(found)


def stated_error(row: Mapping[str, str]) -> float:
    """Return the standard deviation by a coefficient's stated interval, 0 where it states none."""
    low, high = (float(row.get(end) or 0.0) for end in ("low", "high"))
    if not 0.0 <= low < high:
        return 0.0
    return float(np.log(high / low) if low else (high - low) / float(row["value"])) / (2 * DEVIATIONS)
