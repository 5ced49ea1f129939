"""A sweep that another model began is not gone on with."""

from dse.grid import model_version as module
from dse.grid.checkpoint import differences, identity
from dse.space.space import space_from_mapping

SPACE = {
    "base": "h100_sxm",
    "axes": {"sm_count": [96, 132]},
    "workloads": {"gemm": "llama3_8b:phase=decode,batch=1,context=64"},
    "objectives": [{"value": "die_mm2", "goal": "min"}],
}


def test_it_is_the_same_for_the_same_code():
    assert module.model_version() == module.model_version.__wrapped__()
    assert len(module.model_version()) == 8


def test_another_model_is_a_difference_of_the_checkpoint():
    now = identity(space_from_mapping(SPACE, "s.toml", "s"), "all", 8, 8)
    assert differences(now, now) == []
    assert differences(now | {"model": "0123abcd"}, now) == [f"code of the model (0123abcd, now {now['model']})"]
