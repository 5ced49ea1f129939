"""Log errors of predicted times on GPUs of a class that no row of the fit was of: a memory type, a generation, a GPU.

error = log(predicted / measured), of rows of one kind of kernels on one GPU under one fit.
"""

from collections.abc import Iterable, Iterator
from functools import cache

import numpy as np
import pandas as pd

from dse.calibration.timing.fit import model_of
from dse.calibration.timing.implementations import by_implementation
from dse.hardware.presets import GpuSheet, load_sheet
from dse.measured.coverage import uncovered
from dse.measured.layer_rows import as_operators
from dse.measured.protocol import protocol_of
from dse.measured.table import read_times, tensor_parallel
from dse.measured.timed_rows import TimedRows, best, can_run
from dse.timing.calibration import implementation_calibration
from dse.timing.novelty import generation, memory_type, novelty
from dse.validation.error_quantiles import errors_of
from experiments import data
from experiments.common.modules import experiment
from experiments.common.vector_fit import fit_vector

natural = experiment("021_natural_experiments", "predictions.py")
vector = experiment("014_vector_kernels")

MOST, FITTED = 300, 300
"""Rows of a case, and of a device in a fit to products, that are drawn at random."""

UNFITTED = {
    "a40": ("vidur__gemm_released", "A40", "fp16"),
    "l40s": ("aiconfigurator__gemm_released", "L40S", "bf16"),
    "b200": ("aiconfigurator__gemm_released", "B200-SXM", "bf16"),
    "t4": ("deepbench__gemm_released", "T4", "fp16"),
}
"""Presets whose products are in no fit -> table, device and data type."""

ATTENTION = ("aiconfigurator__attention", "aiconfigurator__attention_released", "aiconfigurator__attention_new",
             "llmservingsim__attention")  # fmt: skip

ANOTHER = (("fa2", "fa2_gddr"), ("fa2_gddr", "fa2"))
"""One library on GPUs of two generations: the costs of the first on the rows of the second."""

SAME = {
    "fa2": r"/vllm_flash_attn(?:_fa2)?$",
    "fa2_gddr": r"^lss_",
    "fa3": r"/vllm_flash_attn(?:_fa3)?$",
    "sglang": r"/flash_attention$",
    "trtllm": r"/torch_flow$",
}
"""Library -> its kernels in the notes, whatever the version: rows of others tell of a library that is new, too."""

ALONE = {"fa3": ("h100_sxm", "h200")}
"""Library -> GPUs that are left out of the fit to it in turn."""

VECTOR = {
    "vllm_vector": ("vidur__elementwise_norm", "vidur__elementwise_norm_released"),
    "pytorch_vector": ("neusight__vector_fp32",),
}
"""Implementation of vector kernels -> tables of several GPUs that ran them; an A40's rows are in no shipped fit."""

LEAST = 30
"""Rows that a case needs."""

VECTOR_MOST = 600
"""Rows of a device in a fit to vector kernels."""

COLUMNS = ["kernels", "fit", "gpu", "alone", "memory_type", "generation", "where", "error"]
"""``fit``: GPUs of the fit; ``alone``: whether only the GPU was left out, as shipped intervals of unseen GPUs rest on;
``memory_type``, ``generation``: what of the GPU is new to the fit, "" for nothing; ``where``: regime of the time."""


def cases_of(kinds: Iterable[str]) -> pd.DataFrame:
    """Return the rows of all cases of some MADE in COLUMNS."""
    return pd.concat([one for kind in kinds for one in MADE[kind]()], ignore_index=True)


def kind_of(kernels: pd.Series) -> pd.Series:
    """Return of which MADE the cases of these kernels are."""
    return kernels.map({"products": "products", "prefill": "attention", "decode": "attention"}).fillna("vector")


def sets(fitted: Iterable[str]) -> list[frozenset[str]]:
    """Return what is left out of fits to some presets: nothing, each of them, each generation, each memory type."""
    fitted = list(fitted)
    found = [frozenset(), *(frozenset((name,)) for name in fitted)]
    for kind in (generation, memory_type):
        classes: dict[str, set[str]] = {}
        for name in fitted:
            classes.setdefault(kind(load_sheet(name)), set()).add(name)
        found += [frozenset(names) for names in classes.values()]
    return [out for out in dict.fromkeys(found) if len(out) < len(fitted)]


def case(kernels: str, rows: pd.DataFrame, us: np.ndarray, gpu: str, fit: Iterable[str], alone: bool) -> pd.DataFrame:
    """Return the errors of rows of one GPU in COLUMNS, with what is new about it to a ``fit`` of other GPUs."""
    fit = sorted(fit)
    new = novelty(load_sheet(gpu), map(load_sheet, fit))
    rows, us = rows[can_run(us)], us[can_run(us)]
    columns = {"memory_type": new.memory_type, "generation": new.generation, "alone": alone}
    table = errors_of(rows, us, gpu).assign(kernels=kernels, fit=" ".join(fit), gpu=gpu, **columns)
    return table[COLUMNS].round({"error": 4})


def products() -> Iterator[pd.DataFrame]:
    """Yield the cases of products on tensor cores: of each fit, the GPUs that it has not seen."""
    fits = natural.Fits(FITTED)
    rows = dict(fits.product_rows) | {name: _unfitted(*where) for name, where in UNFITTED.items()}
    for out in sets(fits.product_rows):
        model, fit = fits.product_model(out), fits.product_rows.keys() - out
        for gpu, mine in rows.items():
            if gpu not in fit and _tells(gpu, out, fit):
                yield case("products", mine.table, best(model, mine)[0], gpu, fit, out == {gpu})


def _tells(gpu: str, out: frozenset[str], fit: Iterable[str]) -> bool:
    """Whether a fit tells of a GPU what one with more GPUs does not: it is left out itself, or something of it is."""
    if not out or gpu in out:
        return True
    sheet = load_sheet(gpu)
    return novelty(sheet, map(load_sheet, fit)) != novelty(sheet, map(load_sheet, {*fit, *out}))


def _unfitted(table: str, device: str, dtype: str) -> TimedRows:
    frame = read_times(data.path(table)).frame
    return _timed(frame[(frame["op"] == "gemm") & (frame["device"] == device) & (frame["dtype"] == dtype)])


def _timed(frame: pd.DataFrame) -> TimedRows:
    return natural.timed(frame.sample(min(MOST, len(frame)), random_state=0))


def attention() -> Iterator[pd.DataFrame]:
    """Yield the cases of attention: libraries on GPUs that the costs of their kernels have not seen."""
    fits = natural.Fits(MOST)
    for (gpu, name), mine in _attention_rows().items():
        library, kernels = name.removesuffix("_head").rsplit("_", 1)
        shipped = implementation_calibration(name)
        fitted = [(shipped.values, set(shipped.gpus))]
        if gpu in ALONE.get(library, ()):
            fitted.append((fits.attention_costs(name, frozenset((gpu,))), set(shipped.gpus) - {gpu}))
        others = (implementation_calibration(f"{one}_{kernels}") for one, other in ANOTHER if other == library)
        fitted += [(one.values, set(one.gpus)) for one in others]
        for values, gpus in fitted:
            if gpu not in gpus:
                alone = values is not shipped.values and gpu in shipped.gpus
                yield case(kernels, mine.table, best(model_of(values), mine)[0], gpu, gpus, alone)


@cache
def _attention_rows() -> dict[tuple[str, str], TimedRows]:
    """The rows of attention in bf16 by preset and implementation."""
    frames = []
    for name in ATTENTION:
        read = read_times(data.path(name))
        frame = as_operators(read.frame.assign(noise=np.nan, tp=tensor_parallel(read)))
        frames.append(frame[(frame["dtype"] == "bf16") & (uncovered(frame, {}, {}, fits=True) == "")])
    frame, found = pd.concat(frames, ignore_index=True), {}
    for device, mine in frame.groupby("device"):
        drawn = mine.groupby(["op", "source", "group"], group_keys=False)[mine.columns.to_list()]
        rows = natural.timed(pd.concat([part.sample(min(MOST, len(part)), random_state=0) for _, part in drawn]))
        for name, some in by_implementation(rows).items():
            library = name.removesuffix("_head").rsplit("_", 1)[0]
            if library not in SAME:
                continue  # costs of a generation's own kernels: on another they would be of a new library
            ran = (
                some.table["notes"].astype(str).str.extract(r"impl=([^;]+)")[0].fillna(some.table["group"].astype(str))
            )
            same = ran.str.contains(SAME[library]).to_numpy()
            if same.sum() >= LEAST:
                found[load_sheet(str(device)).name, name] = some.keep(same)
    return found


def vector_kernels() -> Iterator[pd.DataFrame]:
    """Yield the cases of vector kernels: of each fit to a library, the GPUs that it has not seen."""
    for name, tables in VECTOR.items():
        frame, sheets = _vector_frame(name, tables)
        presets = {device: sheet.name for device, sheet in sheets.items()}
        gpu = frame["device"].map(presets).to_numpy()
        way = [protocol_of(str(source)).name for source in frame["source"]]
        bare = frame.assign(harness=way, compute_us=0.0, memory_us=1.0)  # bytes rule all of them
        for out in sets(presets.values())[1:]:
            fit = fit_vector(frame, sheets, name, np.where(np.isin(gpu, list(out)), 0.0, frame["weight"]))
            for one in sorted(out):
                mine = gpu == one
                yield case(name, bare[mine], fit.predicted_us[mine], one, set(presets.values()) - out, out == {one})


def _vector_frame(name: str, tables: tuple[str, ...]) -> tuple[pd.DataFrame, dict[str, GpuSheet]]:
    """Rows of a library's vector kernels with their GPUs by device."""
    _, frame, sheets = vector.rows_of(name, tables)
    frame = frame[frame["device"].isin(sheets)]
    drawn = [part.sample(min(VECTOR_MOST, len(part)), random_state=0) for _, part in frame.groupby("device")]
    return pd.concat(drawn, ignore_index=True), sheets


MADE = {"products": products, "attention": attention, "vector": vector_kernels}
"""Kind of kernels -> what makes its cases."""
