"""What chosen candidates add up to as one kernel of a GPU: the sums, and so the phases, of XLA's program."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dse.base.compilation import LEAST
from dse.evaluate.by_workload import evaluation_of
from dse.evaluate.candidates import Candidates
from dse.evaluate.device_programs import lowered_text
from dse.evaluate.evaluation import Evaluation
from dse.evaluate.pallas.choice import Run, which_run
from dse.evaluate.pallas.launches import BLOCK, PhaseRuns, phase_runs
from dse.evaluate.space_program import gpu_batch
from dse.hardware.gpu import Gpu
from dse.power.sequence import SequenceTotals, of_sums
from dse.space.space import Space
from tests.evaluate.pallas.spaces import drawn, several_kinds
from tests.evaluate.two_programs import LEFT_OVER, assert_close

ROOFLINE = several_kinds(timing="roofline")


def evaluation(space: Space) -> Evaluation:
    return evaluation_of(space.workloads[0], space.model, space.power)


def candidates(space: Space) -> Candidates:
    found = evaluation(space).candidates(gpu_batch(space.base.numbers(), drawn(space)))
    assert found is not None
    return found


def totals(space: Space, sums: list[jax.Array], gpu: Gpu) -> SequenceTotals:
    return of_sums(space.power, sums, gpu).totals


@pytest.mark.slow
@pytest.mark.parametrize("space", [ROOFLINE, several_kinds()], ids=lambda x: "")
def test_phases_are_those_of_the_other_program(space: Space) -> None:
    columns, base, of_space = drawn(space), space.base.numbers(), candidates(space)
    choice = of_space.choice(interpret=True)
    launches = of_space.launches(space.power.model, [partial(totals, space)], interpret=True)

    def phases(columns: dict[str, jax.Array]) -> object:
        varied = [columns[name] for name in of_space.names]
        chosen = choice(varied)
        return {"decode": launches(varied, chosen)[0]}, which_run(chosen).T

    def others(columns: dict[str, jax.Array]) -> object:
        count = len(next(iter(columns.values())))
        return evaluation(space).in_program(gpu_batch(base, columns), count, simplified=True)

    found, expected = (jax.jit(f, compiler_options=LEAST)(columns) for f in (phases, others))
    (found, my_runs), (expected, their_runs) = jax.tree.map(np.asarray, (found, expected))
    np.testing.assert_array_equal(my_runs, their_runs)
    mine, theirs = found["decode"], expected["decode"]
    for cause, cycles in theirs.stack.items():
        assert_close(cause, mine.stack[cause], cycles, theirs.nanoseconds if cause in LEFT_OVER else 0.0)
    for name in ("nanoseconds", "joules", "clock", "dram_bytes"):
        assert_close(name, getattr(mine, name), getattr(theirs, name))


def test_it_lowers_to_one_kernel_of_a_gpu() -> None:
    of_space = candidates(ROOFLINE)
    columns = [jax.ShapeDtypeStruct((2 * BLOCK,), jnp.float32)] * len(of_space.names)
    chosen = jax.ShapeDtypeStruct((len(ROOFLINE.workloads[0].operators), 2 * BLOCK), jnp.int32)
    launches = of_space.launches(ROOFLINE.power.model, [partial(totals, ROOFLINE)])
    text = lowered_text(launches, "cuda", columns, chosen)
    assert text.count("custom_call") == text.count("triton") == 1
    assert "f64" not in text and "callback" not in text


def test_a_phase_has_the_runs_of_its_own_operators() -> None:
    kinds, slices = [np.array([0, 1, 3]), np.array([2])], [slice(0, 1), slice(1, 3), slice(3, 4)]
    found = phase_runs(kinds, slices, np.array([[2.0, 3.0, 0.0], [0.0, 0.0, 5.0]]))
    first = [
        PhaseRuns(0, [Run(0, 0, 1, 0, 1), Run(1, 1, 2, 1, 1)], [2.0, 3.0]),
        PhaseRuns(1, [Run(1, 0, 1, 2, 0)], [3.0]),
    ]
    assert found == [first, [PhaseRuns(0, [Run(2, 2, 3, 3, 1)], [5.0])]]
