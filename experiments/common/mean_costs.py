"""The costs of an implementation that no fit has seen: the mean of others of its kind."""

from collections.abc import Mapping, Sequence

import numpy as np


def mean_costs(costs: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the geometric mean of several implementations' costs, the mean where one of them is 0."""
    found = {}
    for name in costs[0]:
        values = np.array([cost[name] for cost in costs])
        found[name] = float(np.exp(np.log(values).mean()) if (values > 0).all() else values.mean())
    return found
