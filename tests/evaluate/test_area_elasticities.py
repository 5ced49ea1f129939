"""How areas hang on the coefficients of their model."""

import equinox as eqx
import numpy as np
import pytest

from dse.comparison.area_loading import coefficient_errors
from dse.evaluate.area_elasticities import area_elasticities, coefficients, is_exact
from dse.hardware.area import DieArea
from dse.hardware.presets import load_sheet

BASE = load_sheet("h100_sxm").numbers()


def of(*changes: dict[str, float]) -> dict[str, np.ndarray]:
    every = [BASE, *(BASE | change for change in changes)]
    return {name: np.array([one[name] for one in every]) for name in BASE}


def test_an_elasticity_is_what_one_percent_of_a_coefficient_changes() -> None:
    names = [name for name in coefficients() if not is_exact(name)]
    found = area_elasticities(of({"l2_mib": 100}))
    assert found.shape == (2, len(names)) == (2, len(coefficient_errors()))
    model, gpu = DieArea.from_table(), load_sheet("h100_sxm").record()
    more = eqx.tree_at(lambda m: m.l2, model, 1.01 * model.l2)
    assert found[0, names.index("l2")] == pytest.approx(np.log(more.total(gpu) / model.total(gpu)) / 0.01, rel=0.01)
    assert found[1, names.index("l2")] > 1.5 * found[0, names.index("l2")]
