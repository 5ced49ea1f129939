"""Short texts of records: scalars as numbers, all else as it is, and never an error."""

from collections import namedtuple

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

from dse.base.brief import MOST, block, brief, some_of, with_table

Pair = namedtuple("Pair", "a b")


def test_scalars_are_numbers_and_arrays_shapes():
    assert brief(Pair(0, 0), {"a": jnp.asarray(3350.0), "b": 0.1234567}) == "Pair(a=3350, b=0.123457, ...)"
    assert brief(Pair(0, 0), {"a": jnp.zeros(8, jnp.float32), "b": np.zeros((2, 1))}).startswith(
        "Pair(a=f32[8], b=f64[2,1]"
    )


def test_what_is_no_number_is_shown_as_it_is():
    assert brief(Pair(0, 0), {"a": None, "b": "text"}) == "Pair(a=None, b='text', ...)"
    shown = []
    jax.jit(lambda x: shown.append(brief(Pair(0, 0), {"a": x})) or x)(jnp.zeros((), jnp.float32))
    assert shown == ["Pair(a=f32[], ...)"]


def test_lines_stand_below_the_first():
    assert block(Pair(0, 0), "one", "two", "three") == "Pair(one\n  two\n  three)"


def test_a_list_says_how_much_more_there_is():
    assert some_of(["a"]) == ["a"]
    assert some_of(["a"] * (MOST + 2))[MOST:] == ["... 2 more of sentences()"]


def test_html_is_the_text_and_the_table():
    text = with_table("<text>", pd.DataFrame({"column": [1]}))
    assert text.startswith("<pre>&#x27;&lt;text&gt;&#x27;</pre>") and "<th>column</th>" in text
    with pd.option_context("display.notebook_repr_html", False):
        assert with_table("text", pd.DataFrame({"column": [1]})) == "<pre>&#x27;text&#x27;</pre>"
