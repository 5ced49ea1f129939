"""A fingerprint changes with every value that decides a result, and with no name of Python's."""

from dataclasses import dataclass, replace
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from dse.space.fingerprint import fingerprint, implementations_in
from dse.space.space import space_from_mapping
from dse.timing.amali import Amali
from dse.timing.calibration import load_timing_calibration
from dse.timing.launch import LaunchLatency
from dse.timing.sustained import Sustained
from dse.workload.implementation import IMPLEMENTATIONS
from dse.workload.workload import Phase

CALIBRATED = load_timing_calibration("h100_sxm").model


class Coefficients(eqx.Module):
    """A model of two coefficients and a switch."""

    slope: Any
    offset: Any
    literal: bool = eqx.field(default=False, static=True)


class Renamed(eqx.Module):
    """The same by other names."""

    gain: Any
    bias: Any
    as_printed: bool = eqx.field(default=False, static=True)


@dataclass(frozen=True)
class Part:
    """A phase by another name."""

    called: str
    times: float
    host: Any


def test_names_of_classes_and_fields_do_not_count() -> None:
    for literal in (False, True):
        numbers = (jnp.arange(3.0), 2.5, literal)
        assert fingerprint(Coefficients(*numbers)) == fingerprint(Renamed(*numbers))
    phase = Phase("decode", 3.0)
    assert fingerprint([phase]) == fingerprint([Part("decode", 3.0, phase.host)])


def test_every_value_counts() -> None:
    models = [Coefficients(a, b, c) for a in (1.0, 2.0, jnp.ones(2)) for b in (1.0, None, "1.0") for c in (True, False)]
    assert len({fingerprint(model) for model in models}) == len(models)
    assert fingerprint(Coefficients(1.0, 2.0)) != fingerprint(Coefficients(2.0, 1.0))
    assert fingerprint(np.zeros((2, 3))) != fingerprint(np.zeros((3, 2)))


def test_a_number_is_the_same_in_any_array_type() -> None:
    assert fingerprint(Coefficients(0.5, 2)) == fingerprint(Coefficients(jnp.asarray(0.5), np.float64(2)))


def test_an_implementation_that_no_kernel_has_does_not_count() -> None:
    """A further one appends an entry to every array of coefficients."""

    def extended(record: Any) -> Any:
        values = {name: np.append(value, 9.0) for name, value in vars(record).items() if np.ndim(value)}
        return replace(record, **values)

    more = replace(CALIBRATED, launch=extended(CALIBRATED.launch), sustained=extended(CALIBRATED.sustained))
    more = replace(more, discrepancy=None)
    fewer = replace(CALIBRATED, discrepancy=None)
    assert isinstance(fewer.launch, LaunchLatency) and isinstance(fewer.sustained, Sustained)
    assert fingerprint(more, [0, 5]) == fingerprint(fewer, [0, 5])
    assert fingerprint(more) != fingerprint(fewer)


def test_an_implementation_that_a_kernel_has_counts() -> None:
    place = IMPLEMENTATIONS.index("vllm_vector")
    dram = np.array(CALIBRATED.sustained.dram)
    dram[place] *= 1.001
    other = replace(CALIBRATED, sustained=replace(CALIBRATED.sustained, dram=dram))
    assert fingerprint(other, [place]) != fingerprint(CALIBRATED, [place])
    assert fingerprint(other, [0]) == fingerprint(CALIBRATED, [0])


def test_switches_count_whatever_implementation_runs() -> None:
    assert fingerprint(Amali(launch_in_ns=True), [0]) != fingerprint(Amali(), [0])


def test_the_implementations_of_a_space_are_those_of_its_kernels(small: dict[str, Any]) -> None:
    space = space_from_mapping(small, "here", "small")
    used = {IMPLEMENTATIONS[place] for place in implementations_in(space.workloads)}
    assert "matrix" in used and "vllm_vector" in used and used < set(IMPLEMENTATIONS)
