"""Which predictor is chosen without having seen the target."""

from types import SimpleNamespace

from dse.prediction.transfer import Transfer


def test_what_is_chosen_has_not_seen_the_target():
    """The least error on devices left out of training, then under folds; the target's own is hindsight."""

    def scored(name, transfer, out, target):
        return SimpleNamespace(name=name, e_transfer=transfer, e_out={"error": out}, target={"error": target})

    three = SimpleNamespace(scored=(scored("a", 9.0, 1.0, 9.0), scored("b", 5.0, 3.0, 8.0), scored("c", 5.0, 4.0, 1.0)))
    assert Transfer.chosen.fget(three).name == "b"
    assert Transfer.least_e_out.fget(three).name == "a"
    assert Transfer.hindsight.fget(three).name == "c"
