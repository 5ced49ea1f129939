"""Evaluation of many designs, in blocks of a size that suits the platform.

The models are mapped over (designs, kernels) in :mod:`dse.evaluate.candidates`; a chunk runs in blocks whose (designs x
kernels) arrays fit a core's cache, inside one jitted program (docs/model/speed.md 2).
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dse.base.compilation import Options, threads
from dse.base.errors import InputError
from dse.base.units import GIGA, MILLI, NANO
from dse.evaluate.batching import float_type, in_blocks, needed_by, over_arrays
from dse.evaluate.by_workload import by_shared_programs, evaluation_of
from dse.evaluate.candidates import Candidates, Tabulated
from dse.evaluate.device_programs import Columns, OfWorkloads, OwnProgram, Program, SharedPrograms
from dse.evaluate.groups import Groups, TableCache, chosen_groups, cost_of
from dse.evaluate.infeasibility import Reasons
from dse.evaluate.platform import platform_of_device, traced_for
from dse.evaluate.shared_programs import DESIGNS
from dse.evaluate.steps import phase_metrics
from dse.hardware.area import DieArea
from dse.hardware.cost import DieCost
from dse.hardware.gpu import Gpu
from dse.hardware.peak import PEAK_METRICS, peak_tflops
from dse.hardware.prices import usd_per_million_tokens
from dse.hardware.schema import gpu_schema
from dse.power.sequence import LaunchSequence, SequenceTotals
from dse.space.designs import baseline
from dse.space.links import OF_BASE
from dse.space.metrics import USD, design_metrics, priced_metrics, workload_metrics
from dse.space.space import Space
from dse.timing.timing import causes_of
from dse.workload.workload import Workload


def gpu_batch(base: Mapping[str, float], columns: Columns) -> Gpu:
    """Return the designs' records: arrays (designs,) where ``columns`` vary an attribute, else numbers."""
    names = list(gpu_schema())
    with jax.ensure_compile_time_eval():  # known numbers, of which programs are made simpler
        values = {name: jnp.asarray(base[name], dtype=float) for name in names if name not in columns}
    return Gpu.from_attributes(values | {name: columns[name] for name in names if name in columns})


class Evaluator:
    """A space's designs to results: call it with the columns of a chunk, axes and links, each of shape (designs,).

    Every result column has shape (designs,) and is finite. ``code`` is 0 where a design can run, else the number of the
    first reason why not (:class:`dse.evaluate.infeasibility.Reasons`). ``chunk``: designs a call evaluates at most, the
    platform's by default.
    ``asked``: designs that will be asked for, all of the space by default; a few of them are worth no program of their
    own (:mod:`dse.evaluate.shared_programs`), and one of the ``devices``, all of this process's by default.
    ``in_order``: most designs come in the grid's order, so that groups of them have slow axes in common
    (:mod:`dse.evaluate.groups`).
    ``own``: makes the program of a space that is worth one.
    """

    def __init__(
        self,
        space: Space,
        reasons: Reasons,
        chunk: int | None = None,
        asked: int | None = None,
        *,
        in_order: bool = False,
        devices: Sequence[Any] | None = None,
        own: "Callable[[Evaluator, Options | None], Program] | None" = None,
    ) -> None:
        self.space = space
        self._reasons = reasons
        self._base = space.base.numbers()
        self._evaluations = [evaluation_of(workload, space.model, space.power) for workload in space.workloads]
        self._area, self._cost = DieArea.from_table(), DieCost.from_table(space.yield_model)
        self._of_base = space.of_base()
        self.devices = list(devices or jax.local_devices())
        self.platform = platform_of_device(self.devices[0])
        chunk = chunk or self.platform.chunk
        block = min(max(evaluation.block(self.platform) for evaluation in self._evaluations), chunk)
        asked = min(space.size if asked is None else asked, space.size)
        self._in_order, self.block = (
            in_order and not by_shared_programs(asked, space.workloads) and asked > block,
            block,
        )
        if by_shared_programs(asked, space.workloads):
            self.devices = self.devices[:1]
            self.chunk = _even(space.size, block, DESIGNS)
            self._program: Program = SharedPrograms(self._base, self._evaluations, self.results)
        else:
            self.chunk = _even(space.size, chunk, block)
            # A block is evaluated before the faster program would be compiled.
            options = self.platform.quick if asked <= block else self.platform.options
            self._program = own(self, options) if own else self.own_program(options)

    def __call__(
        self, columns: Mapping[str, np.ndarray], names: Sequence[str] | None = None, device: Any = None
    ) -> dict[str, np.ndarray]:
        """Return the results of at most ``chunk`` designs.

        ``names``: result columns to fetch, all by default; ``device``: where to evaluate, JAX's default by default.
        """
        wanted = result_columns(self.space) if names is None else names
        return self._call(columns, self.base_results, (*wanted, "code"), device or self.devices[0])

    def _call(self, columns: Columns, of_base: Columns, wanted: Sequence[str], device: Any) -> dict[str, np.ndarray]:
        """Return the results of designs: as many as the program takes after one another, the last ones filled up."""

        def program(some: Columns, tables: OfWorkloads = ()) -> dict[str, Any]:
            results = self._program(some, tables, of_base, device)
            return {name: results[name] for name in wanted}

        given = {name: np.asarray(values, float_type()) for name, values in columns.items()}
        if self.groups:
            results = self.groups.evaluated(program, self.tables, given)
        else:
            results = in_blocks(program, self._program.rows, given)
        return {name: results[name] for name in wanted}  # in this order

    @property
    def names(self) -> list[str]:
        """The results that a program returns."""
        return list(dict.fromkeys((*result_columns(self.space), *self._of_base, "code")))

    def _rows(self) -> int:
        return self.groups.count if self.groups else self.chunk

    @cached_property
    def groups(self) -> Groups | None:
        """The groups in which the space's own program takes designs; None where it takes them as they come."""
        if not self._in_order or None in self._candidates:
            return None
        every = [candidates for candidates in self._candidates if candidates is not None]
        return chosen_groups(self.space, self.chunk, partial(cost_of, every), self.platform.parts)

    @cached_property
    def tables(self) -> TableCache:
        """The tables of the groups' attributes, for each workload."""
        common = self.groups.attributes if self.groups else ()
        every = [candidates for candidates in self._candidates if candidates]
        return TableCache(lambda columns: [candidates.tables(columns, common) for candidates in every])

    @cached_property
    def _candidates(self) -> list[Candidates | None]:
        """Each workload's candidates on the designs of the space."""
        gpus = gpu_batch(self._base, {name: np.zeros(1, float_type()) for name in baseline(self.space)})
        return [evaluation.candidates(gpus) for evaluation in self._evaluations]

    @cached_property
    def base_results(self) -> dict[str, np.ndarray]:
        """What objectives and constraints name of the base GPU's results, by name (``base.prefill.ttft_ms``), by the
        program that evaluates designs, so that the base itself equals it to the last digit.

        Raises InputError where the base has no such result.
        """
        if not self._of_base:
            return {}
        found = self._call(baseline(self.space), self._unknown(), (*self._of_base, "code"), self.devices[0])
        if self._reasons.is_blank(found["code"])[0]:
            why = self._reasons.texts(found["code"], baseline(self.space))[0]
            named = " and ".join(OF_BASE + name for name in self._of_base)
            raise InputError(
                f"{self.space.name}: {named} has no value, since the base GPU runs no such workload ({why})"
            )
        return {OF_BASE + name: np.asarray(found[name][0], float_type()) for name in self._of_base}

    def _unknown(self) -> dict[str, np.ndarray]:
        """Results of the base before they are known."""
        return {OF_BASE + name: np.ones((), float_type()) for name in self._of_base}

    def trace(self, devices: Sequence[Any] | None = None) -> None:
        """Do what is Python's part of :meth:`compile`: what else needs Python gets on best after it."""
        self.on_each(self._program.trace, devices)

    def compile(self, devices: Sequence[Any] | None = None) -> None:
        """Compile the programs ahead of the first call."""
        self.on_each(self._program.compile, devices)

    def lowered(self, platform: str) -> str:
        """Return the program as StableHLO, lowered for one of JAX's platforms: "cuda" needs neither GPU nor plugin."""
        return self._program.lowered(*self._example(), platform)

    def own_program(self, options: Options | None) -> OwnProgram:
        """Return the space's program that returns all results of given designs."""
        return OwnProgram(self._in_blocks, self._rows, options)

    def on_each(self, do: Callable[..., None], devices: Sequence[Any] | None = None) -> None:
        """Call ``do`` with designs as a program takes them and each device, the first one by default."""
        example = self._example()
        devices = devices or self.devices[:1]
        with threads(len(devices)) as pool:
            list(pool.map(lambda device: do(*example, device), devices))

    def _example(self) -> tuple[Columns, OfWorkloads, Columns]:
        """Return arguments of a program: the base GPU as often as it takes designs."""
        rows, tables = self._program.rows, ()
        shape = (rows, self.groups.size) if self.groups else (rows,)
        base = {name: np.full(shape, value, float_type()) for name, value in baseline(self.space).items()}
        if self.groups:
            tables = self.tables({name: base[name][:, 0] for name in self.groups.attributes})
        return base, tables, self._unknown()

    def _in_blocks(self, columns: Columns, tables: OfWorkloads, of_base: Columns) -> dict[str, Array]:
        with traced_for(self.platform):
            return self._traced_in_blocks(columns, tables, of_base)

    @property
    def groups_of_block(self) -> int:
        """Groups whose designs are evaluated together: one a part, or all where the platform has no parts."""
        assert self.groups
        return self.platform.parts if self.platform.parts > 1 else self.groups.count

    def _traced_in_blocks(self, columns: Columns, tables: OfWorkloads, of_base: Columns) -> dict[str, Array]:
        shape = next(iter(columns.values())).shape
        parts = self.groups_of_block if self.groups else 1
        block = parts * self.groups.size if self.groups else self.block
        blocks = {name: jnp.reshape(values, (-1, block)) for name, values in columns.items()}
        of_blocks = jax.tree.map(lambda x: jnp.reshape(x, (len(x) // parts, parts, *x.shape[1:])), tables)

        def one(block: tuple[Columns, OfWorkloads]) -> dict[str, Array]:
            return self.evaluate(block[0], of_base, simplified=True, tables=block[1])

        results = jax.lax.map(one, (blocks, of_blocks))
        return {name: jnp.reshape(values, shape) for name, values in results.items()}

    def evaluate(
        self,
        columns: Columns,
        of_base: Columns,
        *,
        simplified: bool = False,
        tables: OfWorkloads = (),
        places: Array | None = None,
        names: Sequence[str] | None = None,
    ) -> dict[str, Array]:
        """Return the results of one block of designs (the program before jit: differentiable unless ``simplified``).

        ``of_base``: :attr:`base_results`; ``tables``: for each workload; ``places``: which of them each of the
        block's groups has, in this order by default; ``names``: results to return, all by default.
        """
        gpus, count = gpu_batch(self._base, columns), len(next(iter(columns.values())))
        tabulated = self._tabulated(tables, places) if tables else [None] * len(self._evaluations)

        def results(phases: Sequence[Any], runs: Sequence[Array]) -> dict[str, Array]:
            found = self.results(columns, of_base, phases, runs)
            return found if names is None else {name: found[name] for name in names}

        shapes = zip(*[evaluation.shapes(count) for evaluation in self._evaluations], strict=True)
        needed, _ = needed_by(results, *shapes)
        every = [
            evaluation.in_program(gpus, count, simplified=simplified, tabulated=of_candidates, needed=of_phases)
            for evaluation, of_candidates, of_phases in zip(self._evaluations, tabulated, needed, strict=True)
        ]
        return results(*zip(*every, strict=True))

    def _tabulated(self, tables: OfWorkloads, places: Array | None) -> list[Tabulated | None]:
        """Return each workload's candidates with the tables of the designs' groups."""
        common = self.groups.attributes if self.groups else ()
        every = zip(self._candidates, tables, strict=True)
        return [candidates and Tabulated(candidates, common, table, places) for candidates, table in every]

    def results(
        self, columns: Columns, of_base: Columns, phases: Sequence[Mapping[str, SequenceTotals]], runs: Sequence[Array]
    ) -> dict[str, Array]:
        """Return the results of designs on which each workload has these ``phases``, its operators ``runs``."""
        count = len(next(iter(columns.values())))
        results = self.untimed(columns) | dict(of_base)
        for workload, of_workload in zip(self.space.workloads, phases, strict=True):
            results |= workload_columns(workload, of_workload, self.space.usd_per_hour)
        results["total.time_ms"] = self.space.total_ms(results)
        code = self._reasons.codes(results, runs)
        results |= {o.name: o.expression(results, jnp) for o in self.space.objectives}
        kept = {name: results[name] for name in (*result_columns(self.space), *self._of_base)}
        # A design without a kernel has no time, one beyond a link's range no meaning: 0 here, empty in files.
        blank = self._reasons.is_blank(code)
        outputs = {name: jnp.where(blank, 0.0, jnp.broadcast_to(value, (count,))) for name, value in kept.items()}
        return outputs | {"code": code}

    def untimed(self, columns: Columns) -> dict[str, Any]:
        """Return what no workload decides, (designs,) or scalars: attributes, the base's too, areas, costs, peaks."""
        of_base = {OF_BASE + name: value for name, value in self._base.items()}
        return of_base | self.of_gpus(gpu_batch(self._base, columns))

    def of_gpus(self, gpus: Gpu) -> dict[str, Any]:
        """Return the attributes, areas, costs and peaks of GPUs."""
        results: dict[str, Any] = gpus.attributes()
        results["die_mm2"], results["die_usd"], results["memory_usd"] = over_arrays(self._die, gpus)
        results |= {name: peak_tflops(results, "tensor", kind.name) for name, kind in PEAK_METRICS.items()}
        return results

    def _die(self, gpu: Gpu) -> tuple[Array, Array, Array]:
        """Area [mm2] and cost [USD] of a GPU's dies, and of its memory [USD]."""
        area = self._area.total(gpu)
        cost = self._cost(area, gpu)
        return area, cost.cost_usd, cost.memory_usd


def workload_columns(
    workload: Workload, phases: Mapping[str, LaunchSequence | SequenceTotals], usd_per_hour: float | None = None
) -> dict[str, Array]:
    """Return the metrics and the stack [ms] of a workload on a batch of designs, by column name; dollars of tokens
    where a GPU's hour has a price."""
    runs = {phase.name: phase.runs for phase in workload.phases}
    columns = phase_metrics(workload, phases)
    columns["dram_gb"] = sum(phases[name].dram_bytes * count for name, count in runs.items()) / GIGA
    if usd_per_hour is not None and workload.tokens:
        columns[USD] = usd_per_million_tokens(usd_per_hour, workload.gpus, columns["tokens_per_s"])
    columns["memory_gb"] = jnp.full_like(columns["time_ms"], workload.memory.total / GIGA)
    for cause in causes_of(workload):
        parts = [phases[name].stack[cause] * count for name, count in runs.items() if cause in phases[name].stack]
        columns[f"{cause}_ms"] = sum(parts) * (NANO / MILLI)
    return {f"{workload.name}.{name}": value for name, value in columns.items()}


def _even(size: int, most: int, block: int) -> int:
    """Return the designs of a chunk, whole blocks: of at most ``most``, as many chunks of one size leave the least."""
    chunks = -(-size // most)
    return -(-size // (chunks * block)) * block


def result_columns(space: Space) -> list[str]:
    """Return the columns that leave the program: objectives, design metrics, each workload's metrics and stack [ms]."""
    if space.variants:
        return list(dict.fromkeys(name for one in space.variants.spaces for name in result_columns(one)))
    names = [o.name for o in space.objectives] + design_metrics()
    for workload in space.workloads:
        names += [f"{workload.name}.{metric}" for metric in workload_metrics(workload)]
        if space.usd_per_hour is not None:
            names += [f"{workload.name}.{metric}" for metric in priced_metrics(workload)]
        names += [f"{workload.name}.{cause}_ms" for cause in causes_of(workload)]
    return list(dict.fromkeys(names))
