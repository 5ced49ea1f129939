"""Kernels of layers with a state, by hand: one token reads and writes it, a prompt passes it from chunk to chunk."""

from dataclasses import replace

from dse.workload.networks.states.recurrence import Recurrence
from tests.workload.networks.test_step import STEP

STATE = Recurrence(heads=4, keys=128, values=64, channels=1000, taps=4, chunk=32, products=3.0)
NUMBERS = 4 * 128 * 64


def made(step):
    return {operator.name: operator.candidates[0].kernel for operator in STATE.operators(step, "x")}


def test_what_is_kept_of_a_request():
    assert STATE.bytes(2) == NUMBERS * 4 + 1000 * 3 * 2


def test_one_token_reads_and_writes_the_state():
    kernels = made(replace(STEP, phase="decode", batch=5, queries=1))
    update, convolution = kernels["x_update"], kernels["x_convolution"]
    assert update.warm_bytes == update.write_bytes == 5 * NUMBERS * 4
    assert (update.fma, update.fma_lanes) == (3 * 5 * NUMBERS, 1)
    assert convolution.warm_bytes == convolution.write_bytes == 5 * 1000 * 4 * 2  # a token of its own and three kept


def test_a_prompt_is_scanned_in_chunks():
    tokens = 2 * 128
    kernels = made(replace(STEP, batch=2, queries=128, keys=128))
    fma = {name: kernel.fma for name, kernel in kernels.items() if kernel.fma}
    assert fma == {
        "x_scores": tokens * 4 * 32 * 128,
        "x_values": tokens * 4 * 32 * 64,
        "x_states": tokens * 4 * 128 * 64,
        "x_results": tokens * 4 * 128 * 64,
    }
    assert kernels["x_passing"].warm_bytes == kernels["x_passing"].write_bytes == tokens / 32 * NUMBERS * 4
    assert kernels["x_convolution"].warm_bytes == tokens * 1000 * 2


def test_a_prompt_shorter_than_a_chunk_is_one():
    assert made(replace(STEP, batch=1, queries=8, keys=8))["x_scores"].fma == 8 * 4 * 8 * 128
