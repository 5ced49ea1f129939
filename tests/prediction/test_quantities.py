"""What may be predicted, and the features of each mode."""

import pytest

from dse.base.errors import InputError
from dse.prediction.features import ANALYTICAL, DEMANDS
from dse.prediction.loads import LOADS
from dse.prediction.quantities import POWER, TIME, quantity_named


def test_names_of_features():
    assert TIME.feature_names("plain") == tuple(DEMANDS)
    assert POWER.feature_names("residual") == (*LOADS, ANALYTICAL)
    for quantity in (TIME, POWER):
        assert list(quantity.features)[quantity.place(quantity.by_sheet)] == quantity.by_sheet


def test_a_quantity_that_nothing_predicts_is_refused():
    assert quantity_named("power") is POWER
    with pytest.raises(InputError, match="--quantity: nothing that is predicted is called 'watts'"):
        quantity_named("watts")
