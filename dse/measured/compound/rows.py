"""Rows whose time is that of several kernels in turn: a layer's experts, a module of attention."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np
import pandas as pd

from dse.base.errors import InputError
from dse.base.skipped_rows import Skipped
from dse.hardware.own_gpus import preset_of
from dse.hardware.presets import GpuSheet
from dse.measured.compound.compressed import COMPRESSED_MODULES, compressed_operators
from dse.measured.compound.experts import MIXTURE, expert_operators
from dse.measured.compound.latent import MODULES, module_operators
from dse.measured.compound.quantised_product import quantised_product
from dse.measured.compound.sparse_latent import SPARSE_MODULES, sparse_operators
from dse.measured.network_runs.steps import Step, Steps
from dse.measured.protocol import Protocol, as_measured, protocol_of
from dse.measured.protocol_overheads import overhead_of
from dse.measured.row_operator import family as alone
from dse.measured.row_shape import PRODUCTS, given
from dse.measured.timed_rows import NEVER_US, TimedRows, can_run, fastest_us
from dse.timing.timing import TimingModel
from dse.workload.implementation import IMPLEMENTATIONS, KINDS
from dse.workload.operator import Operator
from dse.workload.operators.expert_products import EXPERTS
from dse.workload.target import Target

COMPOUND = (MIXTURE, *MODULES, *SPARSE_MODULES, *COMPRESSED_MODULES)
"""Operators of a table whose rows are several kernels."""


@dataclass(frozen=True)
class CompoundRows:
    """Rows of one GPU and one way of measuring: ``table``, the distinct ``operators`` of all, and each row's step."""

    table: pd.DataFrame
    operators: TimedRows
    steps: tuple[Step, ...]


def operators_of(row: Any, target: Target) -> tuple[Operator, ...]:
    """Return the kernels of a row in the order they run; raises InputError saying why it has none.

    A row of another operator than COMPOUND is a product and the passes that quantise its activations.
    """
    if row.op in PRODUCTS:
        return quantised_product(row, target)
    if row.op in SPARSE_MODULES:
        return sparse_operators(row, target)
    if row.op in COMPRESSED_MODULES:
        return compressed_operators(row, target)
    return module_operators(row, target) if row.op in MODULES else expert_operators(row, target)


def compound_rows(
    frame: pd.DataFrame, sheet: GpuSheet, protocol: Protocol | None, skipped: Skipped
) -> Iterator[CompoundRows]:
    """Yield the rows of a table by who measured them; those without kernels count in ``skipped``."""
    sources = frame["source"] if "source" in frame else pd.Series("", frame.index)
    for source, part in frame.groupby(sources, sort=True, dropna=False):
        found = _of_source(part, sheet, protocol or protocol_of(str(source)), str(source), skipped)
        if found is not None:
            yield found


def _of_source(
    frame: pd.DataFrame, sheet: GpuSheet, way: Protocol, source: str, skipped: Skipped
) -> CompoundRows | None:
    made, target = Steps(sheet, None), Target.of([sheet.numbers()], way.library)
    kept, columns, steps = [], [], []
    for i, row in enumerate(frame.itertuples()):
        try:
            operators = operators_of(row, target)
        except InputError as error:
            skipped[f"{row.op}: {error}"] += 1
            continue
        step = made.step(operators, "decode", 1.0, 1.0, False)
        launches = float(step.repeats.sum())
        overhead, _ = overhead_of(row, way, preset_of(sheet))
        columns.append({"family": family(row), "overhead_us": launches * overhead, **made.sheet_us((step,))})
        kept.append(i)
        steps.append(step)
    if not kept:
        return None
    table = frame.iloc[kept].reset_index(drop=True).assign(**pd.DataFrame(columns), harness=way.name)
    operators = made.operators()
    record = as_measured(sheet.record(), sheet.name, source, way)
    count = len(operators.table)
    gpus = jax.tree.map(lambda x: np.full(count, float(x), np.float32), record)
    return CompoundRows(table, replace(operators, gpus=gpus), tuple(steps))


def family(row: Any) -> str:
    """Return the name of a row's shape family."""
    if row.op in PRODUCTS:
        return alone(row)
    if row.op in COMPRESSED_MODULES:
        return f"{row.op}_{row.heads:g}_{row.tp:g}"
    if row.op in (*MODULES, *SPARSE_MODULES):
        return f"{row.op}_{row.heads:g}_{given(row, 'hidden', 0.0):g}"
    return f"{row.op}_{row.hidden:g}_{row.inter:g}_{row.experts:g}_{row.topk:g}"


def predicted_compound(model: TimingModel, rows: CompoundRows) -> tuple[pd.DataFrame, np.ndarray]:
    """Return the rows with ``predicted_us`` and what else a predicted row has, and the time of each operator [us].

    A row with an operator that no kernel of the GPU can carry out takes NEVER_US.
    """
    each, places = fastest_us(model, rows.operators)
    kernels = np.array([step.repeats @ each[step.places] for step in rows.steps])
    us = np.where(can_run(kernels), kernels + rows.table["overhead_us"], NEVER_US)
    longest = [step.places[np.argmax(step.repeats * each[step.places])] for step in rows.steps]
    labels = [rows.operators.labels[places[i]] for i in longest]
    names = _implementations(rows, places)
    return rows.table.assign(predicted_us=us, shadow_us=0.0, kernel=labels, implementation=names, quantises=""), each


def _implementations(rows: CompoundRows, places: np.ndarray) -> list[str]:
    """The implementation of each row's products of experts, whose fit is of whole rows; else its operator."""
    ran = np.asarray(rows.operators.kernels.implementation)[places].astype(int)
    every = [{IMPLEMENTATIONS[i] for i in np.unique(ran[step.places])} for step in rows.steps]
    return [
        next((name for name in names if KINDS[name] == EXPERTS), str(op))
        for names, op in zip(every, rows.table["op"], strict=True)
    ]


def parts_us(rows: CompoundRows, each: np.ndarray, row: int) -> Mapping[str, float]:
    """Return the time of each kernel of a row [us], by its name; ``each``: of every operator."""
    step, names = rows.steps[row], rows.operators.table["name"]
    found: dict[str, float] = {}
    for place, us in zip(step.places, step.repeats * each[step.places], strict=True):
        found[names[place]] = found.get(names[place], 0.0) + float(us)
    return found
