"""The program of a sweep that keeps the front: a call makes designs, evaluates them and reduces them on a device.

A call runs through chunks of designs, a chunk through blocks (:mod:`dse.evaluate.space_program`). The same program
evaluates designs that are given by their columns, so that a space is compiled once; on a GPU another one does, compiled
when it is first called, so that no results are written that nobody reads.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from dse.base.compilation import Options
from dse.evaluate.batching import float_type
from dse.evaluate.device_programs import (
    Columns,
    CompiledOnDevices,
    OfWorkloads,
    Program,
    lowered_on,
    lowered_text,
)
from dse.evaluate.infeasibility import Reasons
from dse.evaluate.platform import traced_for
from dse.evaluate.space_program import Evaluator
from dse.grid.device_designs import DeviceGrid, Rows
from dse.grid.reduction import KILLERS, LARGEST, WORD, Filters, Reduction, State, Survivors, survivors

ROW = 512
"""Designs of a row where rows have no axes in common."""

SURVIVING = 16
"""A chunk has room for the survivors among so many designs each: where more survive, all of it is fetched."""


class Arguments(NamedTuple):
    """What a call is given, beside the tables of groups and the base's results."""

    given: Columns  # columns of designs, (rows, size) or (designs,); none where those have a program of their own
    is_given: Any  # whether these are evaluated, instead of rows of the grid
    places: Any  # (rows,) which tables each row has
    first: Any  # (rows, axes) digits of each row's first design
    count: Any  # (rows,) designs of each row
    chunks: Any  # how many chunks have rows
    filters: Filters
    state: State


class Reduced(NamedTuple):
    """What a call leaves on the device: of all its designs the ``state``, of each chunk the rest."""

    state: State
    survivors: Survivors
    values: Array  # (chunks, objectives, designs)
    code: Array  # (chunks, designs), -1 where there is no design


class SweepProgram(CompiledOnDevices):
    """The program of a space, for an evaluator of it; ``chunks``: most chunks of a call; ``of_given``: what evaluates
    given designs where the platform holds both apart."""

    def __init__(
        self, evaluator: Evaluator, options: Options | None, reasons: Reasons, chunks: int, of_given: Program
    ) -> None:
        self._of_given = of_given if evaluator.platform.apart else None
        self._evaluator, self._options, self.chunks = evaluator, options, chunks
        self._names = [o.name for o in evaluator.space.objectives]
        self.reduction = Reduction(reasons, [len(axis) for axis in evaluator.space.axes])
        super().__init__()
        self._by_axis = jax.jit(self.reduction.by_axis)
        self._kept: dict[Any, tuple[OfWorkloads, Columns, State]] = {}

    @cached_property
    def grid(self) -> DeviceGrid:
        """The grid in rows of designs."""
        groups, block = self._evaluator.groups, self._evaluator.block
        size = groups.size if groups else block if block % ROW else ROW
        return DeviceGrid(self._evaluator.space, groups.attributes if groups else (), size)

    @property
    def rows(self) -> int:
        """Rows of a chunk in groups, else designs."""
        groups = self._evaluator.groups
        return groups.count if groups else self._evaluator.chunk

    @property
    def rows_of_chunk(self) -> int:
        """Rows of designs of a chunk."""
        groups = self._evaluator.groups
        return groups.count if groups else self._evaluator.chunk // self.grid.size

    @property
    def designs_of_chunk(self) -> int:
        """Places for designs in a chunk."""
        return self.rows_of_chunk * self.grid.size

    def __call__(self, columns: Columns, tables: OfWorkloads, of_base: Columns, device: Any) -> Mapping[str, Any]:
        """Return the results of designs given by ``columns`` (:class:`dse.evaluate.space_program.Program`)."""
        if self._of_given:
            return self._of_given(columns, tables, of_base, device)
        self.compile(columns, tables, of_base, device)
        return self.call(device, *self._given(columns, tables, of_base))[0]

    def compile_given(self, columns: Columns, tables: OfWorkloads, of_base: Columns, device: Any) -> None:
        """Compile what evaluates given designs, where that is a program of its own."""
        if self._of_given:
            self._of_given.compile(columns, tables, of_base, device)

    def reduced(self, rows: Rows, state: State, filters: Filters, device: Any) -> Reduced:
        """Return what is left of rows of the grid, at most ``chunks`` chunks of them, added to a ``state``.

        It returns at once: what is not fetched is still being computed.
        """
        if device not in self._compiled:
            self._evaluator.compile([device])
        tables, idle, _ = self._of_device(device)
        most = self.rows_of_chunk * self.chunks
        first, count, places = (_longer(x, most) for x in (rows.digits, rows.count, rows.combination))
        chunks = np.int32(-(-len(rows.count) // self.rows_of_chunk))
        arguments = Arguments(idle, np.asarray(False), places, first, count, chunks, filters, state)
        return self.call(device, arguments, tables, self._evaluator.base_results)[1]

    def empty(self, device: Any) -> State:
        """Return the state of no designs, on a device."""
        return self._of_device(device)[2]

    def call(self, device: Any, *arguments: Any) -> tuple[Columns, Reduced]:
        """Call the compiled program of a device."""
        return self._compiled[device](*arguments)

    def by_axis(self, state: State) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
        """Return a state's counts and lowest costs by axis (:meth:`Reduction.by_axis`), and designs by reason."""
        counts, lowest = self.summed(state)
        reasons = np.asarray(state["reasons"]).reshape(self.reduction.reasons, -1)
        return [np.asarray(x) for x in counts], np.asarray(lowest), reasons

    def summed(self, state: State) -> tuple[list[Array], Array]:
        """Return a state's counts and lowest costs by axis, on the device."""
        return self._by_axis(state)

    def lowered(self, columns: Columns, tables: OfWorkloads, of_base: Columns, platform: str) -> str:
        reduced = lowered_text(self._evaluate, platform, *self._given(columns, tables, of_base))
        return reduced + (self._of_given.lowered(columns, tables, of_base, platform) if self._of_given else "")

    def _lowered(self, columns: Columns, tables: OfWorkloads, of_base: Columns, device: Any) -> Any:
        return lowered_on(device, self._options, self._evaluate, *self._given(columns, tables, of_base))

    def _given(self, columns: Columns, tables: OfWorkloads, of_base: Columns) -> tuple[Arguments, OfWorkloads, Columns]:
        """The arguments of a call that evaluates designs by their columns."""
        rows, axes, objectives = self.rows_of_chunk * self.chunks, len(self.grid.lengths), len(self._names)
        filters = Filters(
            np.full((KILLERS, objectives), LARGEST, float_type()),
            np.zeros((objectives + 1, objectives), float_type()),
            np.full(objectives, LARGEST, float_type()),
            np.zeros((objectives, len(self.reduction.parts)), np.int32),
            np.zeros(objectives, np.int32),
            np.zeros(objectives, bool),
        )
        places = _longer(np.arange(self.rows_of_chunk, dtype=np.int32), rows)
        first, count = np.zeros((rows, axes), np.int32), np.zeros(rows, np.int32)
        state = self.reduction.empty()
        columns = {} if self._of_given else columns
        arguments = Arguments(columns, np.asarray(True), places, first, count, np.int32(1), filters, state)
        return arguments, self._filled(tables), of_base

    def _filled(self, tables: OfWorkloads) -> OfWorkloads:
        """Tables with as many rows as any call has."""
        if not tables:
            return tables
        most = max(self.rows_of_chunk, len(self._combinations[0]))
        return jax.tree.map(lambda x: _longer(np.asarray(x), most), tables)

    @cached_property
    def _combinations(self) -> list[np.ndarray]:
        """The numbers of groups' attributes, for each combination of the axes in common."""
        groups = self._evaluator.groups
        return list(self.grid.combinations(self._evaluator.space, groups.attributes if groups else ()).values())

    def _of_device(self, device: Any) -> tuple[OfWorkloads, Columns, State]:
        """The tables of all combinations, and columns and state of no designs, on a device."""
        if device not in self._kept:
            groups, tables = self._evaluator.groups, ()
            if groups:
                tables = self._evaluator.tables(dict(zip(groups.attributes, self._combinations, strict=True)))
            shape = (groups.count, groups.size) if groups else (self._evaluator.chunk,)
            idle = {} if self._of_given else {name: np.zeros(shape, float_type()) for name in self.grid.names}
            self._kept[device] = jax.device_put((self._filled(tables), idle, self.reduction.empty()), device)
        return self._kept[device]

    def _evaluate(self, arguments: Arguments, tables: OfWorkloads, of_base: Columns) -> tuple[Columns, Reduced]:
        """The program: the results of the last chunk, and what is left of all."""
        n, count = self.designs_of_chunk, len(self._names)
        floats, room = float_type(), self._room
        results = {name: jnp.zeros(n, np.int32 if name == "code" else floats) for name in self._results}
        left = Survivors(np.int32(0), np.zeros(room, np.int32), np.zeros((room, count), floats))
        each = (left, np.zeros((count, n), floats), np.zeros(n, np.int32))
        each = jax.tree.map(lambda x: jnp.zeros((self.chunks, *np.shape(x)), x.dtype), each)

        def chunk(number: Any, carry: tuple[Any, State, Any]) -> tuple[Any, State, Any]:
            results, state, each = carry
            with traced_for(self._evaluator.platform):
                results, digits, valid = self._chunk(number, results, arguments, tables, of_base)
            values = jnp.stack([results[name] for name in self._names])
            state, marks, code = self.reduction(
                state, arguments.filters, digits, values, results["code"], valid, self.grid.size
            )
            found = (survivors(marks, values, room), values, code)
            put = lambda whole, one: lax.dynamic_update_index_in_dim(whole, one, number, 0)  # noqa: E731
            return results, state, jax.tree.map(put, each, found)

        start = (results, jax.tree.map(jnp.asarray, arguments.state), each)
        done = chunk(0, start) if self.chunks == 1 else lax.fori_loop(0, arguments.chunks, chunk, start)
        results, state, each = done
        if self._of_given:
            return {}, Reduced(state, *each)
        shape = arguments.given[self.grid.names[0]].shape if self.grid.names else (n,)
        return {name: jnp.reshape(x, shape) for name, x in results.items()}, Reduced(state, *each)

    @property
    def _results(self) -> list[str]:
        """The results of designs: those that are reduced, or all where given designs are evaluated too."""
        return [*dict.fromkeys(self._names), "code"] if self._of_given else self._evaluator.names

    @property
    def _room(self) -> int:
        return min(max(self.designs_of_chunk // SURVIVING, 4 * WORD), self.designs_of_chunk)

    def _chunk(
        self, number: Any, results: dict[str, Array], arguments: Arguments, tables: OfWorkloads, of_base: Columns
    ) -> tuple[dict[str, Array], list[Array], Array]:
        """Return the results of a chunk, its designs' digits, and which of its places hold a design: all (designs,)."""
        rows, size = self.rows_of_chunk, self.grid.size
        first, count, places = (
            lax.dynamic_slice_in_dim(jnp.asarray(x), number * rows, rows)
            for x in (arguments.first, arguments.count, arguments.places)
        )
        digits = lax.optimization_barrier(self.grid.digits(first))
        columns = self.grid.columns(digits)
        if arguments.given:
            columns = {
                name: jnp.where(arguments.is_given, jnp.reshape(arguments.given[name], (rows, size)), x)
                for name, x in columns.items()
            }
        results = self._blocks(lax.optimization_barrier(columns), places, results, tables, of_base)
        valid = jnp.arange(size, dtype=jnp.int32) < count[:, None]
        return results, [x.reshape(-1) for x in digits], valid.reshape(-1)

    def _blocks(
        self, columns: Columns, places: Array, results: dict[str, Array], tables: OfWorkloads, of_base: Columns
    ) -> dict[str, Array]:
        """Return the results of a chunk's designs (rows, size), block by block, put into ``results``."""
        rows = self._evaluator.groups_of_block if tables else self._evaluator.block // self.grid.size

        def block(number: Any, results: dict[str, Array]) -> dict[str, Array]:
            some = {name: lax.dynamic_slice_in_dim(x, number * rows, rows).reshape(-1) for name, x in columns.items()}
            which = lax.dynamic_slice_in_dim(places, number * rows, rows)
            names = self._results if self._of_given else None
            found = self._evaluator.evaluate(some, of_base, simplified=True, tables=tables, places=which, names=names)
            start = number * rows * self.grid.size
            return {
                name: lax.dynamic_update_slice_in_dim(whole, found[name].astype(whole.dtype), start, 0)
                for name, whole in results.items()
            }

        if self.rows_of_chunk == rows:
            return block(0, results)
        return lax.fori_loop(0, self.rows_of_chunk // rows, block, results)


def _longer(rows: np.ndarray, count: int) -> np.ndarray:
    """Rows filled up with zeros to so many."""
    filled = np.zeros((count, *rows.shape[1:]), rows.dtype)
    filled[: len(rows)] = rows
    return filled
