"""Workloads as a user writes them: ``llama3_8b:phase=decode,batch=32,context=2048``, a TOML, or a CSV of GEMMs."""

import os
import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from dse.base.csv_table import csv_rows, refuse_beyond, refuse_capitals, refuse_separators, refuse_twice
from dse.base.errors import InputError, accepted, expect, shown
from dse.base.text_file import printable, there_is
from dse.base.toml_file import read_toml
from dse.hardware.data_types import COMPUTED, canonical
from dse.hardware.presets import GpuSheet
from dse.workload.counts import positive
from dse.workload.dtypes import precision
from dse.workload.media import MEDIA_KEYS, media_of, refuse_short
from dse.workload.networks.degrees import DEGREE_KEYS, degrees
from dse.workload.networks.encoder import ENCODE
from dse.workload.networks.language_model import Serving, llm_workload
from dse.workload.networks.names import checkpoint_name, load_network, relative_to, stated_types
from dse.workload.networks.network import networks
from dse.workload.operator import FOREVER, Operator
from dse.workload.operators.attention_library import attention_libraries
from dse.workload.operators.gemm import Gemm, blas_result, gemm_operator
from dse.workload.operators.matrix_instructions import WGMMA, NoInstructionError
from dse.workload.serving_engine import Engine, find_engine
from dse.workload.target import Target
from dse.workload.workload import MemoryFootprint, Phase, Workload

KEYS = {
    "phase": "encode (images or sounds alone), prefill, decode or generate (prefill, then output tokens)",
    "batch": "requests served together",
    "prompt": "tokens of each prompt",
    "prefix": "tokens of each request before its prompt, whose keys and values are kept already",
    "context": "tokens each request attends in a decode step",
    "output": "tokens generated for each request",
    **MEDIA_KEYS,
    "dtype": "data type of weights, activations and KV cache",
    "weights": "data type of the weights",
    "activations": "data type of the activations",
    "kv": "data type of the KV cache",
    **DEGREE_KEYS,
    "engine": "serving engine whose host the GPU waits for (one of 'dse show engines', or a TOML of 'dse calibrate "
    "engine'); without it kernels alone count",
}
"""Keys of a workload and what they mean."""

PHASES = (ENCODE, "prefill", "decode", "generate")
MAX_CTAS = 2**23
"""Largest grid that the 32-bit batch counts exactly (:func:`dse.base.numerics.floor_div`)."""


def load_workload(
    text: str | Path, target: Target | None = None, name: str | None = None, gpus: Iterable[GpuSheet] = ()
) -> Workload:
    """Return the workload that ``text`` states.

    ``text`` is ``NETWORK:key=value,...`` (a network's name or the path of a Hugging Face config.json), the path of a
    workload TOML, whose keys such settings replace, or the path of a CSV of GEMMs. ``target`` limits the kernel
    candidates to GPUs that matter; ``gpus`` are those that are named where none of them computes in a data type. Raises
    InputError naming what is wrong and what would be accepted.
    """
    expect("workload", text, (str, os.PathLike), FORMS)
    expect("target", target, Target | None, "give a dse.workload.target.Target, or leave it out for every GPU")
    expect("name", name, str | None, "give a text")
    text = str(text)
    try:
        return _checked(_loaded(text, target), name)
    except NoInstructionError as error:
        if not (sheets := list(gpus)):
            raise
        raise InputError(f"{text}: {error.on(sheets)}") from None


FORMS = (
    "give a network with its settings, as llama3_8b:phase=decode,batch=32,context=2048 (see 'dse show networks'), "
    "or the path of a workload TOML, of a CSV of GEMMs, or of a trace directory"
)
"""How a workload is written."""


def _loaded(text: str, target: Target | None) -> Workload:
    network, settings = _parted(text)
    if not network.strip():
        raise InputError(f"workload {text!r}: is empty or names no network; {FORMS}")
    given = "=" in settings  # else the colon may be one of a path
    path = Path(network if given else text)
    kind = path.suffix.lower()
    if kind == ".csv" and given:
        raise InputError(
            f"{text}: a CSV of GEMMs takes no settings; give {path} alone, with {', '.join(GEMM_OPTIONAL)} as columns"
        )
    if kind == ".csv":
        return gemm_list(path, target)
    if kind == ".toml":
        return _from_toml(path, _settings(settings if given else "", text), text, target)
    if there_is(path, Path.is_dir) and not (path / "config.json").exists():
        raise InputError(f"{text}: is a folder with neither kernelslist.g (a trace) nor config.json (a network)")
    return _llm(network, _settings(settings, text), text, target)


def _parted(text: str) -> tuple[str, str]:
    """Return what stands before a workload's settings, and these; the colon of a drive (``C:``) parts nothing."""
    drive = re.match(r"[A-Za-z]:[\\/]", text)
    start = drive.end() if drive else 0
    network, _, settings = text[start:].partition(":")
    return text[:start] + network, settings


def with_setting(text: str, key: str, value: str) -> str:
    """Return a workload's text with one of its settings changed; raises InputError where it takes no such setting."""
    if key not in KEYS:
        raise InputError(f"{key} is not a key of a workload; {accepted(key, KEYS)}")
    network, settings = _parted(text)
    if Path(network).suffix.lower() == ".csv" or (
        Path(network).is_dir() and not (Path(network) / "config.json").exists()
    ):
        raise InputError(f"{text}: takes no settings, so that {key} cannot vary; give a network")
    every = _settings(settings, text) | {key: value}
    return f"{network}:{','.join(f'{name}={each}' for name, each in every.items())}"


def _checked(workload: Workload, name: str | None) -> Workload:
    for operator in workload.operators:
        _check_ctas(operator, f"{workload.name}: {operator.name}", "a smaller batch or prompt")
    return workload if name is None else replace(workload, name=name)


def _check_ctas(operator: Operator, what: str, remedy: str) -> None:
    ctas = min(float(c.kernel.ctas) for c in operator.candidates)
    if ctas >= MAX_CTAS:
        raise InputError(
            f"{what} launches {ctas:.3g} CTAs, more than the {MAX_CTAS} that are counted exactly; give {remedy}"
        )


def _settings(text: str, where: str) -> dict[str, str]:
    settings: dict[str, str] = {}
    for part in filter(None, (p.strip() for p in text.split(","))):
        key, equals, value = part.partition("=")
        key = key.strip()
        if not equals or not value.strip():
            raise InputError(f"{where}: {part!r} is not key=value; the keys are {', '.join(KEYS)}")
        if key in settings:
            raise InputError(f"{where}: {key} is given twice")
        settings[key] = value.strip()
    return settings


def _from_toml(path: Path, settings: dict[str, str], where: str, target: Target | None) -> Workload:
    """Return the workload of a file, ``settings`` in place of its own; ``where`` opens the sentences about both."""
    content = read_toml(path)
    network = content.pop("network", None)
    if network is not None and (not isinstance(network, str) or not network.strip()):
        raise InputError(f"{path}: network = {network!r} is not accepted; give a network's name or config.json")
    if network is None:
        raise InputError(
            f'{path}: network is missing; give network = "llama3_8b" (one of {", ".join(networks())}) '
            "or the path of a Hugging Face config.json"
        )
    network = relative_to(network, path.parent)
    if str(content.get("engine")).endswith(".toml"):
        content["engine"] = str(path.parent / content["engine"])
    for key, value in content.items():
        if isinstance(value, (dict, list)):
            raise InputError(f"{path}: {key} = {value!r} is not accepted; give a number or a text")
    return _llm(network, {k: str(v) for k, v in content.items()} | settings, where, target)


def _llm(name: str, settings: dict[str, str], where: str, target: Target | None) -> Workload:
    network = load_network(name, where)
    for key in settings:
        if key not in KEYS:
            raise InputError(f"{where}: {key!r} is not a key of a workload; {accepted(key, KEYS)}")
    phase = settings.get("phase", "decode")
    if phase not in PHASES:
        raise InputError(f"{where}: phase={phase} is not accepted; give one of {', '.join(PHASES)}")
    _check_lengths(settings, phase, where)
    media = media_of(network, settings, phase, where)
    prompt_key = "context" if phase == "prefill" and "prompt" not in settings else "prompt"
    prompt = _whole(settings, prompt_key, where, 2048)
    if phase != ENCODE:
        refuse_short(media, prompt, where)
    prefix = _whole(settings, "prefix", where, 0)
    output = _whole(settings, "output", where, 256 if phase == "generate" else 0)
    types = {key: settings[key] for key in ("dtype", "weights", "activations", "kv") if key in settings}
    if (stated := stated_types(name)).method and not types:
        if not stated.settings:
            raise InputError(
                f"{where}: {name} says that its weights are quantised ({stated.method}); give their type, as dtype=fp8 "
                "or weights=int4, or dtype=bf16 for the network as it was trained"
            )
        types = stated.settings
    engine = find_engine(settings["engine"], where) if "engine" in settings else None
    batch = _whole(settings, "batch", where, 1)
    serving = Serving(
        phase=phase,
        batch=batch,
        prompt=prompt,
        context=_context(settings, phase, prefix + prompt, output, where),
        output=output,
        precision=precision(where, **types),
        engine=engine,
        prefix=prefix,
        **degrees(network, settings, batch, where),
        **media,
    )
    found = llm_workload(network, serving, where, target if engine is None else _served(target or Target(), engine))
    if types or phase == ENCODE:
        return found
    return replace(found, caution="; ".join(filter(None, [_untold_types(name), found.caution])))


def _untold_types(name: str) -> str:
    """That a shipped network is published in narrower types than bf16, "" where it is not."""
    published = checkpoint_name(name)
    if not published:
        return ""
    return (
        f"no type is given, so that weights are bf16; the published checkpoint is {published}, which "
        f"dtype={published} times"
    )


def _served(target: Target, engine: Engine) -> Target:
    """Return ``target`` with the libraries of ``engine``: of matrix products where it is another one and not the same
    with fewer tiles, of attention unless the target's GPUs run different ones."""
    if engine.library.implementation != target.library.implementation:
        target = replace(target, library=engine.library.launched_as(target.library))
    # Of narrow types the framework's own kernels run, whatever the tiles that stand for its library.
    target = replace(target, library=replace(target.library, framework=engine.library.framework))
    lowest = target.capabilities[0] if target.capabilities else 0.0
    kinds = {target.warpgroup, target.warpgroup and lowest >= WGMMA.compute_capability}
    names = {engine.attention_for(warpgroup) for warpgroup in kinds}
    name = names.pop() if len(names) == 1 else ""
    if target.attention is not None or not name:
        return target
    return replace(target, attention=attention_libraries()[name])


def _check_lengths(settings: dict[str, str], phase: str, where: str) -> None:
    """Refuse lengths that the phase does not use, and an engine where nothing is known of its host."""
    if phase == ENCODE and (given := [key for key in ("prompt", "context", "output", "engine") if key in settings]):
        raise InputError(f"{where}: {given[0]} goes with a language model; phase={ENCODE} runs its encoder alone")
    if "prefix" in settings and phase in (ENCODE, "decode"):
        raise InputError(f"{where}: prefix stands before a prompt; give it with phase=prefill or phase=generate")
    if phase == "generate" and "context" in settings:
        raise InputError(f"{where}: context goes with phase=decode; give prompt and output for phase=generate")
    if phase == "prefill" and "output" in settings:
        raise InputError(f"{where}: output goes with phase=generate; phase=prefill computes the prompt alone")
    both = sorted({"prompt", "output"} & settings.keys())
    if "context" in settings and both:
        raise InputError(f"{where}: context and {both[0]} state the same length twice; give one of the two")


def _context(settings: dict[str, str], phase: str, prompt: int, output: int, where: str) -> float:
    """Tokens attended in a decode step: as given, or the mean over the output tokens, rounded up."""
    if phase == "decode" and "context" in settings:
        return float(_whole(settings, "context", where, prompt))
    return prompt + (output + 1) // 2


def _whole(settings: dict[str, str], key: str, where: str, default: int) -> int:
    return default if key not in settings else positive(settings[key], f"{where}: {key}={settings[key]}", KEYS[key])


GEMM_COLUMNS = ("m", "n", "k")
GEMM_OPTIONAL = ("batch", "dtype", "count", "name")


def gemm_list(path: Path, target: Target | None = None) -> Workload:
    """Return the workload of a CSV with columns m, n, k and optionally batch, dtype, count, name.

    Each row is C[m,n] = A[m,k] B[k,n], run ``count`` times with its operands in DRAM, whose bytes the next row's take
    over: the memory is that of the largest. Raises InputError naming the row.
    """
    target = target or Target()
    header, *lines = csv_rows(path) or [(1, [])]
    columns = [column.strip() for column in header[1]]
    refuse_separators(path, columns)
    refuse_capitals(path, columns, GEMM_COLUMNS + GEMM_OPTIONAL)
    if not lines:
        raise InputError(f"{path}: holds no GEMM; give a header m,n,k and a row for each")
    refuse_twice(path, filter(None, columns))
    refuse_beyond(path, len(columns), lines)
    rows = [(line, dict(zip(columns, cells, strict=False))) for line, cells in lines]
    for column in filter(None, columns):
        if column not in (*GEMM_COLUMNS, *GEMM_OPTIONAL):
            raise InputError(
                f"{path}: column {column!r} is not known; {accepted(column, GEMM_COLUMNS + GEMM_OPTIONAL)}"
            )
    for column in GEMM_COLUMNS:
        if column not in columns:
            raise InputError(f"{path}: column {column!r} is missing; give at least {', '.join(GEMM_COLUMNS)}")
    found = [_gemm_row(row, f"{path}, line {line}", target) for line, row in rows]
    return Workload(
        path.stem,
        f"{len(rows)} GEMM{'s' * (len(rows) > 1)} of {path.name}",
        tuple(operator for operator, _ in found),
        (Phase("kernel"),),
        max((memory for _, memory in found), key=lambda memory: memory.total),
    )


def _gemm_row(row: dict[str, str], where: str, target: Target) -> tuple[Operator, MemoryFootprint]:
    m, n, k = (_cell(row, key, where) for key in GEMM_COLUMNS)
    batch, count = (_cell(row, key, where, 1) for key in ("batch", "count"))
    dtype = canonical((row.get("dtype") or "bf16").strip() or "bf16")
    if dtype not in COMPUTED:
        raise InputError(f"{where}: dtype {dtype!r} is not accepted; {accepted(dtype, COMPUTED)}")
    gemm = Gemm(m, n, k, batch, dtype, dtype, dtype, blas_result(dtype), FOREVER, FOREVER, FOREVER)
    name = printable((row.get("name") or "").strip()) or f"{m}x{n}x{k}" + (f"x{batch}" if batch > 1 else "")
    operator = gemm_operator(name, gemm, target.capabilities, target.warpgroup, "kernel", count, target.library)
    given = f"{where}: m = {m}, n = {n}, k = {k}" + (f", batch = {batch}" if batch > 1 else "")
    _check_ctas(operator, given, "a smaller m or n" + (", or a smaller batch" if batch > 1 else ""))
    return operator, MemoryFootprint(weights=gemm.b_bytes, activations=gemm.a_bytes + gemm.out_bytes)


def _cell(row: dict[str, str], key: str, where: str, default: int | None = None) -> int:
    text = (row.get(key) or "").strip()
    if not text and default is not None:
        return default
    return positive(re.sub(r"\.0*$", "", text), f"{where}: {key} = {shown(text)}", "a dimension or a count")
