"""The steps that a measured run of a whole network took on one GPU, and the operators of each."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
import pandas as pd

from dse.base.constants import constant
from dse.base.errors import InputError, accepted
from dse.hardware.presets import GpuSheet
from dse.measured.network_runs.kinds import DTYPES, FORWARD, MOST, RUN_SHAPE, SHARED_OUT
from dse.measured.rooflines import sheet_times
from dse.measured.row_shape import given, notes_of
from dse.measured.timed_rows import TimedRows
from dse.workload.dtypes import Precision, precision
from dse.workload.kernel import Kernel
from dse.workload.networks.degrees import degrees
from dse.workload.networks.eager_forward import find_forward, forward_operators
from dse.workload.networks.language_model import Serving, llm_workload, memory_needed
from dse.workload.networks.names import network_of
from dse.workload.networks.network import Network
from dse.workload.operator import Operator
from dse.workload.operators.attention_library import attention_libraries
from dse.workload.operators.forms import usual_form
from dse.workload.serving_engine import Engine, engine_of
from dse.workload.target import Target

FUSED = "fusion=True"
"""Words in the notes of a forward pass whose kernels a compiler has fused."""

MEMORY_SHARE = constant("engine_memory_share")
"""Share of a GPU's memory that an engine takes (vLLM's gpu_memory_utilization, TensorRT-LLM's fraction: 0.9)."""


@dataclass(frozen=True)
class Step:
    """One pass through a network: ``places`` of its operators among the distinct ones, ``repeats`` of each in the pass.

    ``requests`` of a replica decode in it or its ``prompts`` are read, ``reductions`` of its launches are all-reduces;
    it runs ``runs`` times, or the engine's ``turn`` times that where it serves ``others``.
    """

    places: np.ndarray
    repeats: np.ndarray
    requests: float
    prompts: float
    reductions: float
    runs: float
    others: bool = False


class Steps:
    """The distinct operators of the runs on one GPU, as they are met."""

    def __init__(self, sheet: GpuSheet, engine: Engine | None) -> None:
        self._sheet, self._engine = sheet, engine
        numbers = sheet.numbers()
        self._capability, self._warpgroup = numbers["compute_capability"], numbers["warpgroup_mma"] > 0
        self._memory = MEMORY_SHARE * numbers["dram_gb"] * 1e9
        self._places: dict[bytes, int] = {}
        self._operators: list[Operator] = []
        self._sheet_us: list[tuple[float, float]] = []

    def run(self, row: Any) -> tuple[Engine, tuple[Step, ...]]:
        """The engine and the steps of a measured run; raises InputError saying why there are none."""
        theirs = engine_of(notes_of(row), str(getattr(row, "source", "")), str(row.device))  # refuses computed rows
        engine = self._engine or theirs
        if row.op == FORWARD:
            return engine, (self._forward(row),)
        _refuse_shape(row)
        network, types = network_of(_group(row)), self._types(row)
        shared = degrees(network, shared_out(row), int(row.batch), row.op)
        replicas = shared["replicas"]
        requests = self._resident(network, types, row, shared)
        rounds = row.batch / requests
        context = row.seq_q + (row.seq_kv + 1) // 2

        def passes(phase: str, batch: float, runs: float, others: bool = False) -> Step:
            serving = Serving(phase, int(batch), int(row.seq_q), context, 0, types, **shared)
            workload = llm_workload(network, serving, row.op, self._target(engine))
            return self.step(workload.operators, phase, batch / replicas, runs, others)

        if row.op == "llm_prefill":
            return engine, (passes("prefill", requests, rounds),)
        if row.op == "llm_decode_step_avg":
            return engine, (passes("decode", requests, rounds),)
        if row.op == "serving_tpot":  # one token of a request, and its share of the prefills that come between
            share = (requests / replicas - 1) / max(row.seq_kv - 1, 1)
            return engine, (passes("decode", requests, 1.0), passes("prefill", replicas, share, others=True))
        decodes = (row.seq_kv - 1) * rounds  # the prefill yields the first token
        return engine, (passes("prefill", requests, rounds), passes("decode", requests, decodes))

    def _forward(self, row: Any) -> Step:
        """A forward pass as PyTorch runs it: its tokens are read at once."""
        for column in ("batch", "seq_q"):
            _refuse_number(row, column)
        forward, fused = find_forward(_group(row).partition("_")[2]), FUSED in notes_of(row)
        made = forward_operators(forward, int(row.batch), int(row.seq_q), self._capability, fused)
        return self.step(tuple(made), "prefill", row.batch, 1.0, False)

    def _types(self, row: Any) -> Precision:
        if row.dtype not in DTYPES:
            raise InputError(f"{row.op}: dtype is {_cell(row.dtype)}; {accepted(str(row.dtype), DTYPES)}")
        found = precision(row.op, **DTYPES[row.dtype])
        if found.compute not in self._sheet.tensor_types():
            raise InputError(f"{self._sheet.title} has no tensor cores for {found.compute}")
        return found

    def _target(self, engine: Engine) -> Target:
        name = engine.attention_for(self._warpgroup)
        library = attention_libraries()[name] if name else None
        return Target.of([self._sheet.numbers()], engine.library, library)

    def _resident(self, network: Network, types: Precision, row: Any, shared: Mapping[str, Any]) -> int:
        """Requests whose weights and keys and values fit the GPUs at once, as many on each replica of attention: those
        beyond wait for their turn."""
        serving = Serving("generate", int(row.batch), int(row.seq_q), 0.0, int(row.seq_kv), types, **shared)
        needed = memory_needed(network, serving)
        most = int((self._memory - needed.weights) / needed.kv * serving.requests)
        if most < 1:
            gpus = serving.gpus * serving.replicas
            raise InputError(f"{network.title} does not fit {gpus} x {self._sheet.title}")
        return min(serving.requests, most) * serving.replicas

    def step(self, operators: tuple[Operator, ...], phase: str, batch: float, runs: float, others: bool) -> Step:
        """The pass of some ``operators``, in the form that engines run; they join the distinct ones."""
        operators = tuple(usual_form(operators))
        places = np.array([self._place(operator) for operator in operators])
        repeats = np.array([operator.repeats for operator in operators])
        reductions = sum(operator.repeats for operator in operators if operator.kind == "all_reduce")
        requests, prompts = (0.0, float(batch)) if phase == "prefill" else (float(batch), 0.0)
        return Step(places, repeats, requests, prompts, float(reductions), float(runs), others)

    def _place(self, operator: Operator) -> int:
        """Where an operator stands among the distinct ones: alike are those whose first kernels are."""
        first = operator.candidates[0].kernel
        key = np.asarray([len(operator.candidates), *jax.tree.leaves(first)], np.float64).tobytes()
        if key not in self._places:
            self._places[key] = len(self._operators)
            self._operators.append(operator)
            self._sheet_us.append(sheet_times(first, self._sheet))  # pyright: ignore[reportArgumentType]
        return self._places[key]

    def sheet_us(self, steps: tuple[Step, ...]) -> dict[str, float]:
        """Arithmetic and memory of a run by the data sheet [us], and its roofline: of each launch the longer."""
        own = [s for s in steps if not s.others]
        each = [np.asarray([self._sheet_us[p] for p in s.places]) for s in own]
        each = [np.column_stack([times, times.max(axis=1)]) for times in each]
        total = np.sum([s.runs * (s.repeats @ times) for s, times in zip(own, each, strict=True)], axis=0)
        return dict(zip(("compute_us", "memory_us", "sheet_us"), map(float, total), strict=True))

    def operators(self) -> TimedRows:
        """The distinct operators, one a row, at the sheet's clock: such runs are long."""
        counts = [len(o.candidates) for o in self._operators]
        record = jax.tree.map(float, self._sheet.record())
        gpus = jax.tree.map(lambda x: np.full(len(counts), x, np.float32), record)
        kernels = Kernel.stack([c.kernel for o in self._operators for c in o.candidates])
        labels = tuple(c.label for o in self._operators for c in o.candidates)
        table = pd.DataFrame({"name": [o.name for o in self._operators]})
        return TimedRows(
            table,
            gpus,
            jax.tree.map(lambda x: np.asarray(x, np.float32), kernels),
            np.repeat(np.arange(len(counts)), counts),
            labels,
        )


def shared_out(row: Any) -> dict[str, str]:
    """Return over how many GPUs a run's row says that layers, attention and experts are shared out, in a workload's
    words: its columns ``tp``, ``dp`` and ``moe_ep``, else its notes."""
    told = {key: value.lstrip("0") for key, value in SHARED_OUT.findall(notes_of(row).replace("_", " "))}
    columns = {"tp": "tp", "dp": "dp", "moe_ep": "ep"}
    told |= {key: f"{value:g}" for column, key in columns.items() if (value := given(row, column, 0.0))}
    return {key: value for key, value in told.items() if key == "tp" or value not in ("", "1")}


def _refuse_shape(row: Any) -> None:
    """Refuse a run whose requests, tokens or GPUs are no whole numbers."""
    for column in RUN_SHAPE:
        _refuse_number(row, column)


def _refuse_number(row: Any, column: str) -> None:
    value = float(getattr(row, column))
    if not (1 <= value <= MOST[column] and value.is_integer()):
        raise InputError(f"{row.op}: {column} is {_cell(value)}; give a whole number from 1 to {MOST[column]:,}")


def _cell(value: Any) -> str:
    """A cell of a table in a sentence."""
    if isinstance(value, float):
        return "empty" if np.isnan(value) else f"{value:g}"
    return repr(value)


def _group(row: Any) -> str:
    group = getattr(row, "group", None)
    if not isinstance(group, str):
        raise InputError(f"{row.op} without its group, the network's name: {_cell(group)}; see 'dse show networks'")
    return group
