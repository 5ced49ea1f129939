"""The breakdown of power: one vocabulary, and a total that is its sum."""

from dataclasses import fields

import jax.numpy as jnp
import pytest

from dse.power.power import COMPONENTS, Power, PowerModel


def watts() -> Power:
    return Power(**{name: jnp.asarray(2.0**i) for i, name in enumerate(COMPONENTS)})


def test_fields_are_the_vocabulary_in_its_order():
    assert [field.name for field in fields(Power)] == list(COMPONENTS)
    assert all(COMPONENTS.values())


def test_breakdown_holds_every_component_and_adds_up_to_the_total():
    power = watts()
    assert list(power.breakdown()) == list(COMPONENTS)
    assert float(power.watts) == sum(float(w) for w in power.breakdown().values()) == 2.0 ** len(COMPONENTS) - 1


def test_a_power_model_must_say_what_it_draws():
    with pytest.raises(TypeError, match="abstract"):
        PowerModel()  # type: ignore[abstract]
