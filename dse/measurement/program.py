"""A compiled program of many launches, one after the other, of which XLA merges or removes none."""

import re
from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax import Array, lax

from dse.base.errors import DseError

FREE = {"parameter", "constant", "tuple", "get-tuple-element", "bitcast", "call", "while", "conditional", "iota"}
"""Opcodes of an optimised program that launch nothing themselves."""

GRAPH = {"xla_gpu_command_buffer_scheduling_mode": "SERIALIZE"}
EAGER = {"xla_gpu_enable_command_buffer": ""}
"""Options of XLA: launches of a program as one CUDA graph, in order; each launch by itself."""


class NotMeasurableError(DseError):
    """A kernel that cannot be measured here; the sentence says why."""


def compiled(call: Callable[..., Any], sets: Sequence[tuple[Array, ...]], rounds: int, graphs: bool = True) -> Any:
    """Return a program of ``rounds`` x len(sets) launches, one a set and round; call it with ``sets``.

    Barriers chain the launches (a later one may not start, be merged with or be taken for an earlier one) and the
    rounds (nothing is moved out of the loop); every result is kept, so that none is left out. They cost no kernel. The
    first round stands before the loop: its results are what the others write over, without a fill.
    """

    def program(sets: Sequence[tuple[Array, ...]]) -> Any:
        first = _launches(call, sets)
        if rounds == 1:
            return first

        def one_round(_: Any, carried: Any) -> Any:
            operands, token = lax.optimization_barrier((sets, carried[1]))
            return _launches(call, operands), token + 1

        return lax.fori_loop(1, rounds, one_round, (first, jax.numpy.zeros((), jax.numpy.int32)))

    options: dict[str, Any] = {}
    if jax.tree.leaves(sets)[0].devices().pop().platform == "gpu":
        options = GRAPH if graphs else EAGER
    try:
        return jax.jit(program, compiler_options=options).lower(sets).compile()
    except jax.errors.JaxRuntimeError as error:
        if graphs and "No such compile option" in str(error):
            raise NotMeasurableError("this XLA cannot be asked for a CUDA graph; give --no-graphs") from error
        raise


def _launches(call: Callable[..., Any], sets: Sequence[tuple[Array, ...]]) -> list[Any]:
    results: list[Any] = []
    for operands in sets:
        if results:
            operands, results[-1] = lax.optimization_barrier((operands, results[-1]))
        results.append(call(*operands))
    return results


def launch_count(text: str) -> tuple[int, int]:
    """Return the instructions of an optimised program that launch a kernel, and those that only copy.

    Those inside of fusions do not count.
    """
    inside = set(re.findall(r"(?:calls|to_apply|condition)=%?([\w.-]+)", "\n".join(_fused(text))))
    work, copies, current = 0, 0, ""
    for line in text.splitlines():
        if head := re.match(r"(?:ENTRY )?%?([\w.-]+) \(.*->.*\{$", line):
            current = head.group(1)
        match = re.match(r"\s+(?:ROOT )?%?([\w.-]+) = (?:\([^=]*?\)|\S+) ([\w-]+)\(", line)
        if match and current not in inside and match.group(2) not in FREE:
            only_copies = match.group(2).startswith("copy") or re.match(r"(wrapped_)?copy", match.group(1)) is not None
            work, copies = work + (not only_copies), copies + only_copies
    return work, copies


def _fused(text: str) -> list[str]:
    """Return the lines whose computations run inside of one kernel, or only control a loop."""
    return [line for line in text.splitlines() if not re.search(r"\bcall\(", line)]


def check_launches(one: Any, many: Any, launches: int) -> int:
    """Return the launches of ``many`` beyond ``launches`` times those of ``one``: a loop's own, and copies.

    Raises NotMeasurableError where it has fewer: the compiler has merged some, and copies their results.
    """
    single, copied = launch_count(one.as_text())
    work, copies = launch_count(many.as_text())
    if single == 0 or work < launches * single:
        raise NotMeasurableError(f"the compiler left {work} of {launches * single} launches")
    return work + copies - launches * (single + copied)
