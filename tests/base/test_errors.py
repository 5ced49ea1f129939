"""Arguments that are refused: named, with the value in a line and what would be accepted."""

import numpy as np
import pytest

from dse.base.errors import LONGEST, InputError, expect, expect_one_of, shown


def test_a_value_is_repeated_in_a_line_that_ends():
    assert shown("a\nb") == r"'a\nb'"
    long = shown(np.zeros((50, 50)))
    assert "\n" not in long and len(long) == LONGEST + len(" ...")


def test_what_is_of_another_type_is_refused_with_what_would_be_accepted():
    expect("out", "folder", str | None, "give a path")
    expect("out", None, str | None, "give a path")
    with pytest.raises(InputError, match=r"^out = 5 is not accepted; give a path$"):
        expect("out", 5, str | None, "give a path")


@pytest.mark.parametrize(
    ("value", "sentence"),
    [("decod", "phase = 'decod' is not accepted; did you mean 'decode'"), (["decode"], r"phase = \['decode'\] is not")],
)
def test_what_is_none_of_the_names_is_refused_with_the_nearest(value, sentence):
    expect_one_of("phase", "decode", ("prefill", "decode"))
    with pytest.raises(InputError, match=f"^{sentence}"):
        expect_one_of("phase", value, ("prefill", "decode"))
