"""Serving engines: what launching, scheduling and sampling on the host add to the kernels of a step."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from dse.base.csv_table import OTHER_UNIT
from dse.base.errors import InputError, accepted
from dse.base.package_tables import read_table
from dse.base.toml_file import check_format, coefficient, read_toml, refuse_keys
from dse.hardware.presets import begins
from dse.workload.operators.gemm_library import LIBRARIES, REPRESENTATIVE, Library

SHARED = "shared"
"""The engine of whatever nobody has measured: fitted to all that were measured alike."""

FORMAT = "gpu-dse engine 1"
"""First line of an engine's TOML."""

COSTS = ("launch_us", "step_us", "request_us", "prompt_us", "reduce_us", "turn")
"""Attributes of an engine that are fitted; what they mean stands at :class:`Engine`."""

NUMBERS = (*COSTS, "low", "high")
"""Attributes of an engine that are numbers."""

MOST_US, MOST_TURN = 1e8, 10.0
"""Largest cost of an engine's TOML [us]: 100 s; and its largest ``turn`` [1], which in a queue may pass 1, all of the
others' prefills."""

FARTHEST = math.log(OTHER_UNIT)
"""Farthest end of an engine's interval, a log error: times that are farther off are in another unit."""

FITTED = ("networks", "tables", "gpus", "calibrations", "judged_by")
"""Keys of an engine's TOML that are lists of words: the attributes of :class:`Fitted`."""

TOLD = ("format", "engine", "title", "like", "date", "rows", "rows_left_out", "devices", *FITTED)
"""Keys of an engine's TOML beside its numbers."""


@dataclass(frozen=True)
class Host:
    """What the host does in one run of a phase [us]: ``overlapped_us`` while the GPU works, ``waits_us`` while it
    waits.

    Numbers, or arrays of one shape.
    """

    overlapped_us: Any = 0.0
    waits_us: Any = 0.0

    def idle_us(self, gpu_us: Any) -> Any:
        """Return how long the GPU has nothing to do [us], in a phase whose kernels take ``gpu_us``."""
        late = self.overlapped_us - gpu_us
        return (late + abs(late)) / 2 + self.waits_us  # the positive part, of numbers and arrays alike


def host_of(costs: Mapping[str, Any], launches: Any, reductions: Any, requests: Any = 0.0, prompts: Any = 0.0) -> Host:
    """Return what a host of ``costs`` (COSTS) does in a step of ``launches`` kernels, ``reductions`` of them
    all-reduces, in which so many ``requests`` decode and so many ``prompts`` are read; numbers, or arrays."""
    each = costs["request_us"] * requests + costs["prompt_us"] * prompts
    waits = costs["step_us"] + each + costs["reduce_us"] * reductions
    return Host(costs["launch_us"] * launches, waits)


@dataclass(frozen=True)
class Fitted:
    """What the engine of a TOML was fitted to and judged by, () where its file does not say.

    ``networks`` of the runs, as their tables call them, and those ``tables`` (name and SHA-256); ``gpus`` that stood
    for their devices; the timing ``calibrations`` of the kernels. ``judged_by``: the kinds of left-out runs
    (``llm_prefill`` ...) that its interval rests on, none where too few were left out; None: its file does not say.
    """

    networks: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    gpus: tuple[str, ...] = ()
    calibrations: tuple[str, ...] = ()
    judged_by: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Engine:
    """What a serving engine costs a step of prefill or decode, apart from its kernels.

    ``launch_us`` [us] of host work for each kernel, beside the GPU's (0: launches are replayed as one graph);
    ``step_us`` [us] a step, ``request_us`` [us] a request that decodes in it and ``prompt_us`` [us] a prompt that it
    reads, in which the GPU waits (scheduling, sampling, text); ``reduce_us`` [us] that an all-reduce costs beyond
    NVLink's latency and bandwidth. ``turn``: share of the prefills of all other requests that a request waits for while
    it decodes, with a constant number in flight.
    ``attention``, ``warpgroup_attention``: attention library without and with warpgroup instructions ("": the
    default); ``library`` of matrix products. ``low``, ``high``: ends of the log errors (predicted over measured)
    that 80 % of measured runs have. ``title`` and ``source`` say what it was fitted on; ``like`` names the shipped
    engine whose libraries one of a TOML has ("": it is shipped itself), and ``fitted`` what such a one rests on.
    """

    name: str
    title: str
    launch_us: float
    step_us: float
    request_us: float
    prompt_us: float
    reduce_us: float
    turn: float
    low: float
    high: float
    attention: str = ""
    warpgroup_attention: str = ""
    library: Library = REPRESENTATIVE
    source: str = ""
    like: str = ""
    fitted: Fitted = field(default_factory=Fitted, repr=False)  # no time follows from it

    def host(self, launches: float, reductions: float, requests: float = 0.0, prompts: float = 0.0) -> Host:
        """Return what the host does in a step (:func:`host_of`)."""
        return host_of({name: getattr(self, name) for name in COSTS}, launches, reductions, requests, prompts)

    def attention_for(self, warpgroup: bool) -> str:
        """Return the attention library on GPUs with ``warpgroup`` instructions or without; "" for the default."""
        return self.warpgroup_attention if warpgroup else self.attention


@cache
def engines() -> dict[str, Engine]:
    """Return the known engines by name."""
    facts: dict[str, dict[str, dict[str, str]]] = {}
    for row in read_table("engines/engines.csv"):
        facts.setdefault(row["engine"], {})[row["attribute"]] = row
    return {name: _engine(name, rows) for name, rows in facts.items()}


def _engine(name: str, rows: dict[str, dict[str, str]]) -> Engine:
    return Engine(
        name=name,
        title=rows["title"]["value"],
        **{number: float(rows[number]["value"]) for number in NUMBERS},
        attention=rows["attention"]["value"],
        warpgroup_attention=rows["warpgroup_attention"]["value"],
        library=replace(LIBRARIES[rows["library"]["value"]], framework=name),
        source=rows["title"]["source"],
        like="",
        fitted=Fitted(),
    )


@cache
def _intervals() -> dict[tuple[str, str], tuple[float, float]]:
    rows = read_table("engines/intervals.csv")
    return {(row["engine"], row["op"]): (float(row["low"]), float(row["high"])) for row in rows}


STANDS_FOR = {
    "llm_decode_step_avg": ("llm_decode_step_avg", "serving_tpot", "llm_e2e"),
    "llm_prefill": ("llm_prefill", "model_inf"),
}
"""Kind of run -> the kinds whose errors are its own, the nearest first: a server's tokens are decode steps, of which
whole runs mostly are, and a forward pass is a prefill."""


def interval_of(engine: Engine, op: str) -> tuple[float, float]:
    """Return the ends of the log errors that 80 % of an engine's runs have, of one kind (``llm_prefill`` ...).

    The widest of its own and of an engine that nobody has measured where that kind was not measured, or did not judge
    the fit of an engine's TOML.
    """
    own = (engine.low, engine.high)
    if not _has_errors_of(engine, op):
        return unmeasured(*own)
    if engine.like:
        return own
    kinds = (_intervals().get((engine.name, kind)) for kind in STANDS_FOR.get(op, (op,)))
    return next(filter(None, kinds), own)


def unmeasured(low: float, high: float) -> tuple[float, float]:
    """Return the widest ends of an interval of log errors and of that of an engine that nobody has measured."""
    shared = engines()[SHARED]
    return min(low, shared.low), max(high, shared.high)


def runs_of(engine: Engine, op: str) -> str:
    """Return of what runs the interval of a kind of run is (:func:`interval_of`)."""
    if _has_errors_of(engine, op):
        return f"runs of {engine.title}"
    if not engine.like:
        kinds = ", ".join(sorted(_measured(engine)))
        return f"runs of engines that nobody has measured and of {engine.title}: measured by {kinds}, not by {op}"
    kinds = ", ".join(engine.fitted.judged_by or ())
    why = f"judged by {kinds} alone, not by {op}" if kinds else "too few of its own were left out of the fit"
    return f"runs of engines that nobody has measured and of {engine.title}: {why}"


def _measured(engine: Engine) -> set[str]:
    """The kinds of runs whose errors are kept of an engine that is shipped; none of one for any engine."""
    return {kind for name, kind in _intervals() if name == engine.name}


def _has_errors_of(engine: Engine, op: str) -> bool:
    """Whether runs of a kind judged the fit of an engine, or its file does not say."""
    if not engine.like:
        mine = _measured(engine)
        return not mine or not mine.isdisjoint(STANDS_FOR.get(op, (op,)))
    return engine.fitted.judged_by is None or op in engine.fitted.judged_by


def fitted_elsewhere(engine: Engine, gpu: str, calibration: str) -> list[str]:
    """Return what sets a GPU (its name) and the timing ``calibration`` of its kernels apart from an engine's fit."""
    known = engine.fitted
    if known.gpus and gpu not in known.gpus:
        return [f"the host of {engine.name} was fitted on {', '.join(known.gpus)}, not on {gpu}"]
    if known.calibrations and calibration not in known.calibrations:
        return [
            f"the host of {engine.name} was fitted beside kernels timed by {', '.join(known.calibrations)}, not by "
            f"{calibration}: its costs make up for what those missed"
        ]
    return []


def find_engine(name: str, where: str = "engine") -> Engine:
    """Return an engine by name, or the one of a TOML that ``dse calibrate engine`` wrote; raises InputError."""
    if name.endswith(".toml"):
        return _from_toml(Path(name))
    if name not in engines():
        raise InputError(
            f"{where}: no engine is called {name!r}; {accepted(name, engines())} (or a TOML of 'dse calibrate engine')"
        )
    return engines()[name]


def _from_toml(path: Path) -> Engine:
    content = read_toml(path)
    check_format(path, content, FORMAT, "dse calibrate engine")
    refuse_keys(path, "an engine", content, (*TOLD, *NUMBERS))
    numbers = {key: _number(path, content, key) for key in NUMBERS}
    if numbers["low"] > numbers["high"]:
        raise InputError(f"{path}: low = {numbers['low']:g} is above high = {numbers['high']:g}; give them in order")
    like = _shipped(path, content)
    name = str(content.get("engine", path.stem))
    told = {"name": name, "title": str(content.get("title", name)), "source": path.name, "like": like.name}
    return replace(
        like, **told, **numbers, fitted=Fitted(**{key: _words(path, content, key) for key in FITTED if key in content})
    )


def _words(path: Path, content: Mapping[str, Any], key: str) -> tuple[str, ...]:
    """A list of words of an engine's TOML."""
    found = content[key]
    if not isinstance(found, list) or not all(isinstance(word, str) for word in found):
        raise InputError(f"{path}: {key} is {found!r}; give a list of words")
    return tuple(found)


def _number(path: Path, content: Mapping[str, Any], key: str) -> float:
    """A cost of an engine's TOML, or an end of its interval."""
    if key not in content:
        raise InputError(f"{path}: {key} is missing; give a number")
    if key not in COSTS:
        return coefficient(path, key, content[key], -FARTHEST, FARTHEST)
    return coefficient(path, key, content[key], high=MOST_TURN if key == "turn" else MOST_US)


def _shipped(path: Path, content: Mapping[str, Any]) -> Engine:
    """The engine that a TOML is ``like``: a shipped one, so that no chain of files can end where it began."""
    if "like" not in content:
        raise InputError(
            f"{path}: like is missing; give the shipped engine whose libraries ran: {accepted('', engines())}"
        )
    like = str(content["like"])
    if like not in engines():
        raise InputError(f"{path}: like is {like!r}, which is no shipped engine; {accepted(like, engines())}")
    return engines()[like]


def engine_of(notes: str, source: str, device: str) -> Engine:
    """Return the engine of a measured row: that of the first row of ``engines/measured.csv`` whose words stand in its
    notes, whose source is its own, and as which one of its GPU's names begins; raises InputError where that says why
    such rows are no measurement."""
    for row in read_table("engines/measured.csv"):
        known = row["words"] in notes and row["measured_by"] in ("", source)
        if known and begins(device, row["device"]):
            if row["why_not"]:
                raise InputError(row["why_not"])
            return engines()[row["engine"]]
    return engines()[SHARED]
