"""The half that a layer does not have: nothing of it, and no norm."""

from dse.workload.dtypes import precision
from dse.workload.networks.absent import Absent
from dse.workload.networks.layers import Layer
from dse.workload.networks.mlp_kinds import Dense
from tests.workload.networks.test_step import STEP


def test_it_holds_keeps_and_runs_nothing():
    none = Absent()
    assert (none.parameters(4096, 8), none.active_parameters(4096), none.columns(2)) == (0, 0, 0)
    assert none.cache_bytes(1000, precision("x"), 1) == 0
    assert list(none.operators(STEP)) == []


def test_a_layer_of_one_half_has_one_norm():
    layer = Layer(Absent(), Dense(1024, False, "relu"))
    names = [operator.name for operator in layer.operators(STEP)]
    assert names == ["mlp_norm", "up_projection", "relu", "down_projection"]
    assert layer.kind == "dense"
