"""Numbers and lists of a configuration, and their refusals."""

from pathlib import Path

import pytest

from dse.base.errors import InputError
from dse.workload.networks.configuration.values import listed, refuse_part, whole

FILE = Path("net.json")


def test_the_first_spelling_that_is_given_counts():
    assert whole({"n_embd": 8, "d_model": 9}, ("hidden_size", "n_embd", "d_model"), FILE) == 8
    assert whole({"n_embd": None}, ("n_embd",), FILE, 3) == 3


@pytest.mark.parametrize("value", [0, -1, True, 1.5, "8"])
def test_what_is_no_whole_number_is_refused(value):
    with pytest.raises(InputError, match=r"net\.json: n_embd = .* is not accepted; give a whole number from 1"):
        whole({"n_embd": value}, ("n_embd",), FILE)


def test_a_list_has_an_item_for_each_layer():
    assert listed({"a": [1, 0]}, "a", int, 2, FILE) == [1, 0]
    assert listed({}, "a", int, 2, FILE) == []
    with pytest.raises(InputError, match="a states 2 layers, and there are 3; give one each"):
        listed({"a": [1, 0]}, "a", int, 3, FILE)
    with pytest.raises(InputError, match="give a list of texts, one a layer"):
        listed({"a": [1, 0]}, "a", str, 2, FILE)


def test_a_part_is_of_the_whole():
    refuse_part(8, "experts a token", 8, FILE)
    with pytest.raises(InputError, match="9 experts a token do not go with 8"):
        refuse_part(9, "experts a token", 8, FILE)
