"""The attribute table: complete, consistent, and what it refuses."""

from dataclasses import fields

import pytest

from dse.base.errors import InputError
from dse.hardware.data_types import data_types
from dse.hardware.gpu import Gpu
from dse.hardware.schema import attribute, gpu_schema

SCHEMA = gpu_schema()


def test_the_record_has_exactly_the_attributes_of_the_schema_in_their_order():
    rates = [kind.tensor_rate for kind in data_types().values() if kind.operands]
    assert {f.name for f in fields(Gpu)} - {"tensor_fma"} | set(rates) == set(SCHEMA)
    assert [name for name in SCHEMA if name in rates] == rates
    assert [name for name in SCHEMA if name not in rates] == [f.name for f in fields(Gpu) if f.name != "tensor_fma"]


@pytest.mark.parametrize("attr", SCHEMA.values(), ids=list(SCHEMA))
def test_every_attribute_has_bounds_a_unit_a_meaning_and_a_source(attr):
    assert attr.type in ("int", "float", "bool", "choice")
    assert bool(attr.choices) == (attr.type == "choice")
    assert attr.low < attr.high
    assert attr.default is None or attr.low <= attr.default <= attr.high
    assert attr.unit and attr.description and attr.source


@pytest.mark.parametrize("attr", SCHEMA.values(), ids=list(SCHEMA))
def test_bounds_are_accepted_and_survive_the_record(attr):
    low = attr.choices[0] if attr.choices else attr.low
    assert attr.decode(attr.encode(low, "file")) == low
    if not attr.choices:
        assert attr.encode(attr.high, "file") == attr.high


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("sm_count", 0),
        ("sm_count", 1025),
        ("sm_count", 132.5),
        ("sm_count", "132"),
        ("sm_count", True),
        ("sm_count", None),
        ("sm_count", [132]),
        ("dram_bandwidth_gbs", float("nan")),
        ("dram_bandwidth_gbs", float("inf")),
        ("dram_bandwidth_gbs", -1.0),
        ("warpgroup_mma", 0.5),
        ("warpgroup_mma", "yes"),
        ("process", "tsmc_99"),
        ("process", 3),
        ("dram_type", True),
    ],
)
def test_what_lies_outside_is_refused_with_file_key_value_and_remedy(name, value):
    with pytest.raises(InputError) as refusal:
        attribute(name, "my.toml").encode(value, "my.toml")
    sentence = str(refusal.value)
    assert sentence.startswith(f"my.toml: {name} = {value!r} is not accepted")
    assert attribute(name, "").range_text in sentence


def test_an_unknown_attribute_is_refused_with_the_nearest_name():
    with pytest.raises(InputError, match=r"my.toml: 'sm_cuont' is not an attribute of a GPU; did you mean 'sm_count'"):
        attribute("sm_cuont", "my.toml")


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("subcores_per_sm", 3, "is no power of two"),
        ("cluster_size", 3, "is no power of two"),
        ("compute_capability", 9.99, "is no version"),
        ("tdp_w", 10**400, "is not accepted"),
    ],
)
def test_what_no_hardware_has_is_refused(name, value, words):
    with pytest.raises(InputError, match=words):
        gpu_schema()[name].encode(value, "x")
