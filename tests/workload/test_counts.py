"""Counts of settings and tables."""

import pytest

from dse.base.errors import InputError
from dse.workload.counts import LARGEST, positive


def test_a_count_is_a_whole_number_above_zero():
    assert [positive(text, "x", "a count") for text in ("1", "32", str(LARGEST))] == [1, 32, LARGEST]


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "1_000", "²", "", str(LARGEST + 1)])
def test_any_other_text_is_refused_with_its_meaning(text):
    with pytest.raises(InputError, match=r"batch is not accepted; give a whole number from 1 to 10000000 \(requests\)"):
        positive(text, "batch", "requests")
