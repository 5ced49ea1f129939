"""What is known of the values that measured rows multiplied."""

import numpy as np
import pandas as pd

from dse.measured.power_rows import ALIKE, UNFILLED, UNFILLED_ZEROS, still_shares, with_operands


def test_operands_by_source_and_what_of_them_stands_still():
    table = pd.DataFrame(
        {
            "op": ["mla_decode_module", "mla_decode", "attn_decode", "mla_decode_module"],
            "notes": [
                "impl=vllm-0.22.0/default",
                "impl=trtllm-1.3.0/default",
                "impl=vllm-0.22.0/vllm_flash_attn",
                None,
            ],
            "source": ["aiconfigurator", "aiconfigurator", "aiconfigurator", "mine"],
        }
    )
    found = with_operands(table)
    assert list(found["operands"]) == [ALIKE, UNFILLED, "", ""]
    np.testing.assert_allclose(still_shares(found), [[1, 1], [UNFILLED_ZEROS, 0], [0, 0], [0, 0]])
    assert still_shares(found[:0]).shape == (0, 2)
