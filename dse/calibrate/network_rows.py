"""Measured runs of whole networks: the steps that ran, their kernels' time, and what the engine's host adds."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
import pandas as pd

from dse.calibrate.held import pass_slowdowns
from dse.calibrate.sheet_roofline import sheet_times
from dse.calibrate.timed import NEVER_US, TimedRows, can_run, candidate_us, timings
from dse.errors import InputError, accepted
from dse.hardware.presets import GpuSheet
from dse.timing.timing import TimingModel
from dse.workload.attention_library import attention_libraries
from dse.workload.dtypes import Precision, precision
from dse.workload.eager import find_forward, forward_operators
from dse.workload.engine import COSTS, Engine, engine_of, host_of
from dse.workload.kernel import Kernel
from dse.workload.llm import Serving, Target, llm_workload, memory_needed
from dse.workload.measured_row import notes_of
from dse.workload.network import Network, load_network, networks
from dse.workload.operator import Operator, fastest

FORWARD = "model_inf"
"""A forward pass over all tokens at once, as PyTorch runs it eagerly in fp32."""

RUNS = ("llm_prefill", "llm_decode_step_avg", "llm_e2e", "serving_tpot", FORWARD)
"""Operators of a table's column ``op`` that are runs of whole networks."""

RUN_SHAPE = ("batch", "seq_q", "seq_kv", "tp")
"""Requests, tokens of a prompt, tokens generated, GPUs that share each layer."""

MOST = dict.fromkeys(RUN_SHAPE, 10_000_000) | {"tp": 8}
"""Largest number of a run's shape: those of a workload (:data:`dse.workload.parse.KEYS`)."""

FUSED = "fusion=True"
"""Words in the notes of a forward pass whose kernels a compiler has fused."""

WHY_NOT = {
    "serving_ttft": "the time to a first token is mostly spent in a queue, and queues are not modelled",
    "model_train": "the backward pass of a training step is not modelled",
}
"""Runs that are not predicted, and why."""

DTYPES = {
    "bf16": {"dtype": "bf16"}, "fp16": {"dtype": "fp16"}, "fp8": {"dtype": "fp8"}, "fp8_block": {"dtype": "fp8"},
    "nvfp4": {"dtype": "fp4", "kv": "fp8"},
}  # fmt: skip
"""Column ``dtype`` -> the types of a network's weights and activations. Its KV cache has 16 bits but with NVFP4, whose
checkpoints keep it in fp8 (nvidia/Qwen3-32B-NVFP4, hf_quant_config.json)."""

SHAPES = 32
"""Operators of a run that are timed together are filled up to a multiple of this, for few compiled programs."""

MEMORY_SHARE = 0.9
"""Share of a GPU's memory that an engine takes (vLLM's gpu_memory_utilization, TensorRT-LLM's fraction: 0.9)."""


@dataclass(frozen=True)
class Step:
    """One pass through a network: ``places`` of its operators among the distinct ones, ``repeats`` of each in the pass.

    ``requests`` decode in it or ``prompts`` are read, ``reductions`` of its launches are all-reduces; it runs ``runs``
    times, or the engine's ``turn`` times that where it serves ``others``.
    """

    places: np.ndarray
    repeats: np.ndarray
    requests: float
    prompts: float
    reductions: float
    runs: float
    others: bool = False


@dataclass(frozen=True)
class NetworkRows:
    """Runs of whole networks on one GPU.

    ``table``: the rows, with ``family``, ``engine`` and the data sheet's ``compute_us`` and ``memory_us``;
    ``operators``: the distinct operators of all their ``steps`` (a tuple a row), one a row.
    """

    table: pd.DataFrame
    engines: tuple[Engine, ...]
    operators: TimedRows
    steps: tuple[tuple[Step, ...], ...]


@dataclass(frozen=True)
class Passes:
    """Every step of every row, arrays of shape (steps,): the ``row`` it belongs to and what decides its time."""

    row: np.ndarray
    gpu_us: np.ndarray
    launches: np.ndarray
    requests: np.ndarray
    prompts: np.ndarray
    reductions: np.ndarray
    runs: np.ndarray
    others: np.ndarray

    def total_us(self, costs: Mapping[str, Any]) -> Any:
        """Return each step's time in its row [us] with an engine's ``costs`` (COSTS, scalars or of shape (steps,))."""
        host = host_of(costs, self.launches, self.reductions, self.requests, self.prompts)
        turn = 1.0 + self.others * (costs["turn"] - 1.0)
        return self.runs * turn * (self.gpu_us + host.idle_us(self.gpu_us))


def network_rows(
    frame: pd.DataFrame, sheet: GpuSheet, skipped: dict[str, int], engine: Engine | None = None
) -> NetworkRows | None:
    """Return the runs of ``frame`` on a GPU with their steps, None where none is left; others count in ``skipped``.

    ``engine`` that all of them ran; None: by their notes.
    """
    made = _Made(sheet, engine)
    kept, columns, engines, steps = [], [], [], []
    for i, row in enumerate(frame.itertuples()):
        try:
            ran, passes = made.run(row)
        except InputError as error:
            skipped[str(error)] = skipped.get(str(error), 0) + 1
            continue
        kept.append(i)
        engines.append(ran)
        steps.append(passes)
        columns.append((f"{row.group}_{row.tp:g}", ran.name, *made.sheet_us(passes)))
    if not kept:
        return None
    names = ["family", "engine", "compute_us", "memory_us"]
    table = frame.iloc[kept].reset_index(drop=True).assign(**dict(zip(names, zip(*columns, strict=True), strict=True)))
    return NetworkRows(table, tuple(engines), made.operators(), tuple(steps))


def passes_of(model: TimingModel, rows: NetworkRows) -> tuple[Passes, np.ndarray]:
    """Return every step of the rows, its kernels in the board's power limit, and each operator's fastest candidate."""
    operator_us, places = fastest_us(model, rows)
    every = [(i, step) for i, steps in enumerate(rows.steps) for step in steps]
    kernels = jax.tree.map(lambda x: x[places], rows.operators.kernels)
    slower = pass_slowdowns(model, kernels, rows.operators.gpus, [(s.places, s.repeats) for _, s in every])
    columns = zip(
        *(
            (i, held * float(s.repeats @ operator_us[s.places]), float(s.repeats.sum()), s.requests, s.prompts,
             s.reductions, s.runs, s.others)
            for (i, s), held in zip(every, slower, strict=True)
        ),
        strict=True,
    )  # fmt: skip
    return Passes(*(np.asarray(column) for column in columns)), places


def fastest_us(model: TimingModel, rows: NetworkRows) -> tuple[np.ndarray, np.ndarray]:
    """Return the time of each distinct operator [us] and the place of its fastest candidate."""
    time = candidate_us(model, rows.operators)
    places = fastest(time, rows.operators.starts)
    return time[places], places


def predicted_runs(model: TimingModel, rows: NetworkRows) -> tuple[pd.DataFrame, np.ndarray]:
    """Return the rows with ``predicted_us`` and ``overhead_us``, what the host adds [us]; and the fastest candidates.

    A run with an operator that no kernel of the GPU can carry out takes NEVER_US.
    """
    passes, places = passes_of(model, rows)
    costs = {name: np.array([getattr(e, name) for e in rows.engines])[passes.row] for name in COSTS}
    total = np.bincount(passes.row, passes.total_us(costs))
    kernels = np.bincount(passes.row, passes.total_us(dict.fromkeys(COSTS, 0.0) | {"turn": costs["turn"]}))
    total = np.where(can_run(kernels), total, NEVER_US)
    names = rows.table["engine"]
    found = rows.table.assign(predicted_us=total, overhead_us=total - kernels, shadow_us=0.0, kernel=names,
                              implementation=names, harness=names)  # fmt: skip
    return found, places


def run_stack(model: TimingModel, rows: NetworkRows, places: np.ndarray, row: int) -> dict[str, float]:
    """Return the kernels' time of one run at the asked clock by cause [us], causes that cost nothing left out."""
    turn = rows.engines[row].turn
    every = [(s.places, s.repeats * s.runs * (turn if s.others else 1.0)) for s in rows.steps[row]]
    used, weights = (np.concatenate(x) for x in zip(*every, strict=True))
    used, weights = (np.pad(x, (0, -len(x) % SHAPES)) for x in (used, weights))
    kernels = jax.tree.map(lambda x: x[places[used]], rows.operators.kernels)
    timing = timings(model, kernels, jax.tree.map(lambda x: x[used], rows.operators.gpus))
    stack = {cause: np.asarray(cycles / timing.clock_ghz) / 1e3 for cause, cycles in timing.stack().items()}
    return {cause: float(weights @ us) for cause, us in stack.items() if weights @ us > 0}


class _Made:
    """The distinct operators of the runs on one GPU, as they are met."""

    def __init__(self, sheet: GpuSheet, engine: Engine | None) -> None:
        self._sheet, self._engine = sheet, engine
        numbers = sheet.numbers()
        self._capability, self._warpgroup = numbers["compute_capability"], numbers["warpgroup_mma"] > 0
        self._memory = MEMORY_SHARE * numbers["dram_gb"] * 1e9
        self._known: dict[bytes, int] = {}
        self._operators: list[Operator] = []
        self._sheet_us: list[tuple[float, float]] = []

    def run(self, row: Any) -> tuple[Engine, tuple[Step, ...]]:
        """The engine and the steps of a measured run; raises InputError saying why there are none."""
        theirs = engine_of(notes_of(row), str(getattr(row, "source", "")), str(row.device))  # refuses computed rows
        engine = self._engine or theirs
        if row.op == FORWARD:
            return engine, (self._forward(row),)
        _refuse_shape(row)
        network, types = _network(row), self._types(row)
        requests = self._resident(network, types, row)
        rounds = row.batch / requests
        context = row.seq_q + (row.seq_kv + 1) // 2

        def passes(phase: str, batch: float, runs: float, others: bool = False) -> Step:
            serving = Serving(phase, int(batch), int(row.seq_q), context, 0, types, int(row.tp))
            workload = llm_workload(network, serving, row.op, self._target(engine))
            return self._step(workload.operators, phase, batch, runs, others)

        if row.op == "llm_prefill":
            return engine, (passes("prefill", requests, rounds),)
        if row.op == "llm_decode_step_avg":
            return engine, (passes("decode", requests, rounds),)
        if row.op == "serving_tpot":  # one token of a request, and its share of the prefills that come between
            share = (requests - 1) / max(row.seq_kv - 1, 1)
            return engine, (passes("decode", requests, 1.0), passes("prefill", 1, share, others=True))
        decodes = (row.seq_kv - 1) * rounds  # the prefill yields the first token
        return engine, (passes("prefill", requests, rounds), passes("decode", requests, decodes))

    def _forward(self, row: Any) -> Step:
        """A forward pass as PyTorch runs it: its tokens are read at once."""
        for column in ("batch", "seq_q"):
            _refuse_number(row, column)
        forward, fused = find_forward(_group(row).partition("_")[2]), FUSED in notes_of(row)
        made = forward_operators(forward, int(row.batch), int(row.seq_q), self._capability, fused)
        return self._step(tuple(made), "prefill", row.batch, 1.0, False)

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
        return Target((self._capability, self._capability), self._warpgroup, engine.library, library)

    def _resident(self, network: Network, types: Precision, row: Any) -> int:
        """Requests whose weights and keys and values fit the GPU at once: those beyond wait for their turn."""
        serving = Serving("generate", int(row.batch), int(row.seq_q), 0.0, int(row.seq_kv), types, int(row.tp))
        needed = memory_needed(network, serving)
        most = int((self._memory - needed.weights) / needed.kv * row.batch)
        if most < 1:
            raise InputError(f"{network.title} does not fit {row.tp:g} x {self._sheet.title}")
        return min(int(row.batch), most)

    def _step(self, operators: tuple[Operator, ...], phase: str, batch: float, runs: float, others: bool) -> Step:
        places = np.array([self._place(operator) for operator in operators])
        repeats = np.array([operator.repeats for operator in operators])
        reductions = sum(operator.repeats for operator in operators if operator.kind == "all_reduce")
        requests, prompts = (0.0, float(batch)) if phase == "prefill" else (float(batch), 0.0)
        return Step(places, repeats, requests, prompts, float(reductions), float(runs), others)

    def _place(self, operator: Operator) -> int:
        """Where an operator stands among the distinct ones: alike are those whose first kernels are."""
        first = operator.candidates[0].kernel
        key = np.asarray([len(operator.candidates), *jax.tree.leaves(first)], np.float64).tobytes()
        if key not in self._known:
            self._known[key] = len(self._operators)
            self._operators.append(operator)
            self._sheet_us.append(sheet_times(first, self._sheet))  # pyright: ignore[reportArgumentType]
        return self._known[key]

    def sheet_us(self, steps: tuple[Step, ...]) -> tuple[float, float]:
        """Arithmetic and memory of a run on the data sheet's roofline [us]."""
        own = [s for s in steps if not s.others]
        times = [s.runs * (s.repeats @ np.asarray([self._sheet_us[p] for p in s.places])) for s in own]
        arithmetic, memory = np.sum(times, axis=0)
        return float(arithmetic), float(memory)

    def operators(self) -> TimedRows:
        """The distinct operators, one a row, at the sheet's clock: such runs are long."""
        counts = [len(o.candidates) for o in self._operators]
        record = jax.tree.map(float, self._sheet.record())
        gpus = jax.tree.map(lambda x: np.full(len(counts), x, np.float32), record)
        kernels = Kernel.stack([c.kernel for o in self._operators for c in o.candidates])
        labels = tuple(c.label for o in self._operators for c in o.candidates)
        table = pd.DataFrame({"name": [o.name for o in self._operators]})
        return TimedRows(table, gpus, jax.tree.map(lambda x: np.asarray(x, np.float32), kernels),
                         np.repeat(np.arange(len(counts)), counts), labels)  # fmt: skip


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


def _network(row: Any) -> Network:
    """The network of a run: its group's name, as it is or without a source's mark (``anl_Llama-2-7b-hf``)."""
    group = _group(row)
    for name in (group, group.partition("_")[2]):
        try:
            return load_network(name)
        except InputError:
            continue
    raise InputError(f"no network is called {group!r} ('dse show networks'); {accepted(group.lower(), networks(), 4)}")


def _group(row: Any) -> str:
    group = getattr(row, "group", None)
    if not isinstance(group, str):
        raise InputError(f"{row.op} without its group, the network's name: {_cell(group)}; see 'dse show networks'")
    return group
