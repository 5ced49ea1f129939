"""GCoM for a batch of designs against its scalar twin, design by design."""

from dataclasses import replace

import jax
import numpy as np
import pytest

from benchmarks.gcom_batch import COMPONENTS, VARYING, GcomBatch
from dse.base.errors import InputError
from dse.timing.traced.gcom import cache_geometry, gcom, resident_ctas
from dse.timing.traced.gcom_config import GcomConfig, read_gcom_config
from dse.traces.cache_simulation import simulate
from dse.traces.representative_warp import representative_warp
from dse.traces.trace_files import read_directory
from dse.traces.warp_profile import WarpProfile
from experiments import data

CASES = sorted(path.name for path in (data.GCOM / "traces").glob("*"))

WHOLE = {"numSubcorePerSM": (1, 9), "subcoreIssueRate": (1, 4), "regFileReadThroughput": (1, 4), "nMSHR": (1, 300)}


def profile(case: str, config: GcomConfig) -> WarpProfile:
    directory = read_directory(data.GCOM / "traces" / case)
    kernel = directory.kernels[0]
    geometry = cache_geometry(kernel.header, config, resident_ctas(kernel.header, config, case), case)
    return simulate(kernel, geometry, representative_warp(directory, kernel))


def random_columns(config: GcomConfig, designs: int, seed: int) -> dict[str, np.ndarray]:
    """Return every key that may vary, around the configuration's value or in a range of whole numbers."""
    rng = np.random.default_rng(seed)
    columns = {}
    for key in VARYING:
        if key in WHOLE:
            columns[key] = rng.integers(*WHOLE[key], designs).astype(float)
        elif isinstance(config[key], int):
            columns[key] = rng.integers(1, 3 * config[key] + 8, designs).astype(float)
        else:
            columns[key] = config[key] * rng.uniform(0.3, 3.0, designs)
    return columns


def one(config: GcomConfig, columns: dict[str, np.ndarray], design: int) -> GcomConfig:
    values = {key: type(config[key])(column[design]) for key, column in columns.items()}
    return replace(config, values={**config.values, **values})


@pytest.mark.parametrize(
    ("policy", "case"),
    [
        *(("RTX2060", case) for case in CASES),
        ("RTX2060_lrr", CASES[0]),
        *(pytest.param("RTX2060_lrr", case, marks=pytest.mark.slow) for case in CASES[3::3]),
    ],
)
def test_a_batch_equals_single_calls(policy: str, case: str) -> None:
    config = read_gcom_config(data.GCOM / "configs" / f"{policy}.config")
    warp = profile(case, config)
    columns = random_columns(config, 60, seed=len(case))
    with jax.enable_x64(True):
        batch = {name: np.asarray(values) for name, values in GcomBatch(warp, config)(columns).items()}
    for design in range(60):
        stack = gcom(warp, one(config, columns, design)).stack
        for name in COMPONENTS:
            assert abs(batch[name][design] - getattr(stack, name)) <= 1e-9 * stack.cycles, (design, name)


@pytest.mark.slow
def test_a_thousand_designs_equal_a_thousand_calls() -> None:
    config = read_gcom_config(data.GCOM / "configs" / "RTX2060.config")
    warp = profile("c09_mix_imbalance", config)
    columns = random_columns(config, 1000, seed=1)
    with jax.enable_x64(True):
        call = GcomBatch(warp, config)
        numbers = {name: np.asarray(value) for name, value in call(columns).items()}
        for design in range(1000):
            alone = call({key: column[design] for key, column in columns.items()})
            singly = {name: float(value) for name, value in alone.items()}
            assert all(abs(numbers[n][design] - singly[n]) <= 1e-12 * singly["cycles"] for n in COMPONENTS)
    for design in range(1000):
        stack = gcom(warp, one(config, columns, design)).stack
        assert all(abs(numbers[n][design] - getattr(stack, n)) <= 1e-9 * stack.cycles for n in COMPONENTS)


def test_what_needs_a_new_simulation_is_refused() -> None:
    config = read_gcom_config(data.GCOM / "configs" / "RTX2060.config")
    batch = GcomBatch(profile("c01_fp32_chain_1warp", config), config)
    with pytest.raises(InputError, match="'numSMs' cannot vary"):
        batch({"numSMs": np.array([10.0, 20.0])})
