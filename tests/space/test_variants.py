"""Variants: the baseline's, designs of each, columns around each base, and those that cannot be."""

from typing import Any

import numpy as np
import pytest

from dse.space import designs
from dse.space.space import Space, space_from_mapping

BASES = ["h100_sxm", "h200", "a100_sxm_80gb"]


def made(small: dict[str, Any], **axes: Any) -> Space:
    content = small | {"base": BASES, "axes": {"sm_count": [96, 132], **axes}, "links": {"l2_mib": "base.l2_mib / 2"}}
    return space_from_mapping(content, "here", "small")


def test_a_plain_space_has_none(small: dict[str, Any]):
    assert space_from_mapping(small, "here", "small").variants is None


def test_variants_vary_slowest_and_each_has_its_base_and_shape(small: dict[str, Any]):
    space = made(small, **{"decode.batch": [1, 8]})
    assert space.variants and len(space.variants.every) == 6
    columns = space.at(np.arange(space.size))
    assert space.variants.of(columns).tolist() == np.repeat(np.arange(6), 2).tolist()
    one = space.variants.every[3]
    assert one.space and one.base.name == "h200" and "batch 8" in one.space.workloads[1].description


def test_the_baseline_is_the_first_base_and_what_workloads_state(small: dict[str, Any]):
    space = made(small, **{"decode.batch": [1, 8, 64], "prefill.prompt": [128, 256]})
    assert space.variants and space.variants.numbers(space.variants.home) == {
        "base": 0.0,
        "decode.batch": 8.0,  # as its text states
        "prefill.prompt": 128.0,  # the first, since its text states 512
    }
    base = designs.baseline(space)
    assert base["sm_count"] == [132] and base["decode.batch"] == [8]


def test_links_follow_each_designs_own_base(small: dict[str, Any]):
    space = made(small)
    columns = designs.with_links(space, space.at(np.arange(space.size)))
    own = [variant.base.numbers()["l2_mib"] / 2 for variant in space.variants.every] if space.variants else []
    assert columns["l2_mib"].tolist() == np.repeat(own, 2).tolist()


def test_one_axis_at_a_time_moves_to_the_other_base_itself(small: dict[str, Any]):
    which, columns = designs.one_axis_at_a_time(made(small))
    place = which.index(("base", 2.0))
    assert columns["sm_count"][place] == 108 and columns["base"][place] == 2


def test_a_base_without_a_type_cannot_be_and_says_why(small: dict[str, Any]):
    small["workloads"]["decode"] = "gpt2_xl:phase=decode,dtype=fp8"
    space = made(small)
    assert space.variants and [one.space is None for one in space.variants.every] == [False, False, True]
    assert "fp8, which A100" in space.variants.every[2].reason


def test_the_digest_knows_bases_and_settings(small: dict[str, Any]):
    digests = {
        made(small).digest,
        made(small, **{"decode.batch": [8]}).digest,
        made(small, **{"decode.batch": [4]}).digest,
    }
    assert len(digests) == 3


def test_traces_have_no_variants(small: dict[str, Any], tmp_path: Any):
    (tmp_path / "kernelslist.g").write_text("", encoding="utf-8")
    small["workloads"]["decode"] = str(tmp_path)
    with pytest.raises(Exception, match="recorded on one GPU"):
        made(small)
