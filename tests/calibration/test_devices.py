"""Fits of a batch on several devices: what one device finds, and each device takes some."""

import json
import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dse.calibration.devices import shared_out
from dse.calibration.optimiser import LinearProblem, Ranges, solve

ROOT = Path(__file__).parents[2]

FOUR = """
import json, sys
import jax
from tests.calibration.test_devices import cubes, fits
jax.config.update("jax_enable_x64", True)
print(json.dumps([jax.local_device_count(), fits().tolist(), *cubes()]))
"""


def fits() -> np.ndarray:
    """Coefficients of seven fits, each of which leaves one of eight rows out: no multiple of four."""
    rng = np.random.default_rng(2)
    design = rng.uniform(0, 50, (8, 2))
    watts = 60 + design @ np.array([0.5, 2.0]) + rng.normal(0, 3, 8)
    ranges = Ranges(jnp.full(2, 1e-3), jnp.full(2, 5.0), jnp.zeros(2), (-1, -1))
    problem = LinearProblem(jnp.asarray(design), jnp.full(8, 60.0), jnp.asarray(watts), ranges, jnp.eye(2), jnp.ones(2))
    weights = jnp.asarray(1.0 - np.eye(7, 8))
    return np.asarray(solve(problem, jnp.ones(2), weights, jnp.full(7, 1e-3), 0.1).coefficients)


def cubes() -> tuple[list[float], int]:
    """Cubes of 0 to 5, less a number that is no part of the batch, and how many fits a device was traced for."""
    sizes = []

    def cube(x: jax.Array, less: jax.Array) -> jax.Array:
        sizes.append(len(x))
        return x**3 - less

    @jax.jit
    def program(x: jax.Array, less: jax.Array) -> jax.Array:
        return shared_out(lambda some: cube(some, less), (x,))

    return program(jnp.arange(6.0), jnp.asarray(1.0)).tolist(), sizes[0]


@pytest.mark.usefixtures("in_64_bits")
def test_four_devices_find_what_one_does() -> None:
    environment = os.environ | {"XLA_FLAGS": "--xla_force_host_platform_device_count=4", "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-c", FOUR]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    devices, found, powers, size = json.loads(done.stdout)
    assert devices == 4
    assert size == 2  # six fits, filled up to eight
    assert powers == [i**3 - 1 for i in range(6)]
    np.testing.assert_allclose(found, fits(), rtol=1e-9)
    assert cubes()[1] == 6  # one device takes all
