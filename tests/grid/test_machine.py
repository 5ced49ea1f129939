"""What a result's last bits depend on, and in what two machines differ."""

import pytest

import dse
from dse.grid.machine import machine, unlike


def test_a_machine_is_like_itself() -> None:
    ours = machine()
    assert unlike(ours, machine()) == []
    assert ours["dse"] == dse.__version__
    assert ours["jax"] and ours["numpy"]


@pytest.mark.parametrize(
    ("theirs", "words"),
    [
        ({"jax": "1", "device": "H100"}, ["jax 1 instead of 2"]),
        ({"jax": "2", "device": ""}, ["device none instead of H100"]),
        ({}, ["jax none instead of 2", "device none instead of H100"]),
        ({"jax": "2", "device": "H100", "torch": "3"}, []),
    ],
)
def test_what_differs_is_listed_theirs_first(theirs: dict[str, str], words: list[str]) -> None:
    assert unlike({"jax": "2", "device": "H100"}, theirs) == words
