"""Expressions that no design can give a value, told before a design is evaluated."""

import pytest

from dse.base.errors import InputError
from dse.hardware.presets import preset_sheet
from dse.hardware.schema import gpu_schema
from dse.space.axis import Axis, make_axis
from dse.space.expression import Expression, parse_expression
from dse.space.impossible import refuse_expression, refuse_links

BASE = preset_sheet("h100_sxm").numbers()


def axes(**values: list[float]) -> list[Axis]:
    return [make_axis(gpu_schema()[name], some, "here") for name, some in values.items()]


def links(**texts: str) -> list[tuple[str, Expression]]:
    return [(name, parse_expression(text, "here")) for name, text in texts.items()]


AXES = axes(sm_count=[64, 128])


def test_a_link_that_some_design_keeps_in_range_is_no_matter() -> None:
    refuse_links(BASE, AXES, links(l2_mib="sm_count"), "here")
    refuse_links(BASE, AXES, links(l2_mib="100 / (sm_count - 64)"), "here")  # one of two designs divides by zero


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("-sm_count", "is -128 to -64 in every design; give"),
        ("0 * sm_count - 1", "is -1 in every design"),
        ("sm_count / (base.sm_count - 132)", "divides by 'base.sm_count - 132', which is 0 in every design"),
        ("sqrt(-sm_count)", "is no finite number in any design"),
        ("-1 / (sm_count - 64)", "is -0.015625 in every design that does not divide by zero"),
    ],
)
def test_a_link_that_no_design_can_have_is_refused(text: str, words: str) -> None:
    with pytest.raises(InputError, match=r"here: \[links\] l2_mib") as told:
        refuse_links(BASE, AXES, links(l2_mib=text), "here")
    assert words in str(told.value)


def test_a_link_of_a_link_is_followed_to_the_axes() -> None:
    with pytest.raises(InputError, match=r"\[links\] dram_gb = .* is -130 to -66 in every design"):
        refuse_links(BASE, AXES, links(l2_mib="sm_count + 2", dram_gb="-l2_mib"), "here")


def test_of_too_many_combinations_nothing_is_told() -> None:
    many = axes(
        sm_count=list(range(1, 101)), l2_mib=list(range(1, 101)), dram_gb=list(range(1, 101))
    )  # a million, beyond what is evaluated here
    refuse_links(BASE, many, links(tdp_w="-sm_count * l2_mib * dram_gb"), "here")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("base.sm_count + base.die_mm2", "is the same in every design; name an attribute or a result"),
        ("die_mm2 / (base.sm_count - 132)", "divides by 'base.sm_count - 132', which is 0"),
        ("die_mm2 / (sm_count - sm_count)", "divides by 'sm_count - sm_count'"),
        ("log(0 * sm_count)", "is no finite number in any design"),
    ],
)
def test_an_objective_that_has_no_value_is_refused(text: str, words: str) -> None:
    with pytest.raises(InputError, match="here") as told:
        refuse_expression(parse_expression(text, "here"), BASE, AXES, [], "here")
    assert words in str(told.value)


@pytest.mark.parametrize("text", ["die_mm2", "sm_count / 2", "decode.tbt_ms / (sm_count - 64)", "1 / prefill.ttft_ms"])
def test_one_that_may_have_a_value_is_not(text: str) -> None:
    refuse_expression(parse_expression(text, "here"), BASE, AXES, [], "here")
