"""Samplers by name: what is refused, and with what words."""

import importlib.util
from typing import Any

import pytest

from dse.base.errors import InputError
from dse.pareto.samplers import SAMPLERS, check_sampler


@pytest.mark.parametrize("name", [name for name in SAMPLERS if name != "gp"])
def test_a_sampler_of_the_list_is_accepted(name: str) -> None:
    check_sampler(name)


@pytest.mark.parametrize(
    ("name", "words"), [("nsga", "--sampler 'nsga' is not known; did you mean"), (3, "sampler = 3 is not accepted")]
)
def test_another_is_refused(name: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        check_sampler(name)


def test_one_that_needs_a_library_says_which_and_what_else_would_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InputError, match="needs torch, which is not installed; pip install torch, or use tpe"):
        check_sampler("gp")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    check_sampler("gp")
