"""What each change of the equations and tables buys: the same pairs with one of them put back at a time.

A put-back lives here alone: it replaces a function or a table's rows while the pairs are predicted, and nothing of it
is in the package.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import pandas as pd
import predictions as of_pairs
from matched import Pair

from dse.base.package_tables import read_table
from dse.calibration.timing import fit
from dse.hardware.presets import GpuSheet, changed, load_sheet
from dse.measured.protocol import Protocol
from dse.workload.operators.gemm_library import Library

KEPT = {"parameter": "kept", "stage": "memory", "prior": "0.33", "low": "0.05", "high": "1.0", "spread": "0.4",
        "unit": "1"}  # fmt: skip
"""The parameter that stood for the law of the L2: a share of it for each fit."""

WITHOUT_ECC = {"a40": 0.977, "l40s": 0.978}
"""Preset -> what a stream that only reads has without ECC, of the sheet's bandwidth (process/dram_streams.csv)."""

PAIR_OF_CTAS = 2

WIDEST = 512
"""Bytes a cycle that no SM asks of the L2: the network on chip never binds."""


class Change(NamedTuple):
    """A change: its name, how it is put back, which pairs it concerns, and whether their fits are made anew."""

    name: str
    put_back: Callable[[], AbstractContextManager[Any]]
    concerns: Callable[[Pair], bool]
    refit: bool


@contextmanager
def pairs_of_ctas() -> Iterator[None]:
    """Clusters of two CTAs alone, and no tile beyond 256 x 128."""
    launched = Library.on

    def on(library: Library, *where: Any, **more: Any) -> Library:
        found = launched(library, *where, **more)
        clusters = tuple(c for c in found.clusters if c <= PAIR_OF_CTAS) or found.clusters
        return Library(**{**vars(found), "clusters": clusters, "larger_tiles": ()})

    with patch.object(Library, "on", on):
        yield


@contextmanager
def kept_by_fit() -> Iterator[None]:
    """A share of the L2 that survives, fitted with the other costs, in place of one law with a cliff."""

    def table(path: str) -> list[dict[str, str]]:
        return read_table(path) + ([KEPT] if path == "calibration/priors/matrix.csv" else [])

    with patch.object(fit, "read_table", table):
        fit.parameters.cache_clear()
        try:
            yield
        finally:
            fit.parameters.cache_clear()


def without_ecc() -> AbstractContextManager[Any]:
    """Boards with inline ECC that sustain what a stream without it does."""

    def sheet(name: str) -> GpuSheet:
        found = load_sheet(name)
        share = WITHOUT_ECC.get(found.name)
        return changed(found, {"dram_sustained_fraction": share}, "ablation") if share else found

    return patch.object(of_pairs, "load_sheet", sheet)


@contextmanager
def slices_alone() -> Iterator[None]:
    """GPUs whose L2 gives what its slices do, however few SMs ask."""

    def sheet(name: str) -> GpuSheet:
        return changed(load_sheet(name), {"l2_crossbar_bytes_per_cycle": WIDEST}, "ablation")

    with patch.object(of_pairs, "load_sheet", sheet), patch.object(of_pairs.products_of, "load_sheet", sheet):
        yield


def full_of_numbers() -> AbstractContextManager[Any]:
    """Products of zeros that draw what products of random numbers draw."""
    return patch.object(Protocol, "of_zeros", lambda protocol, row: False)


def never_limited() -> AbstractContextManager[Any]:
    """The sheet's clock whatever a board draws; the fits stay."""

    def ones(model: Any, kernels: Any, gpus: Any, launches: np.ndarray, *rest: Any) -> np.ndarray:
        return np.ones(len(launches))

    return patch("dse.measured.timed_rows.slowdowns", ones)


def without_passes() -> AbstractContextManager[Any]:
    """Narrow products without the pass that quantises their operands."""
    return patch.object(of_pairs, "quantising_us", lambda model, rows: 0.0)


def tiles_of_16_bits() -> AbstractContextManager[Any]:
    """Narrow products in any tile of a tuned library, split along k where that pays, as products in 16 bits."""
    return patch.object(of_pairs, "narrow_kernels", lambda *types: None)


def hosts_by_prior() -> AbstractContextManager[Any]:
    """Hosts of which no row was fitted at the prior of an eager call, whatever the operator and the host."""
    return patch("experiments.common.vector_fit._of_unseen_hosts", lambda values, *rest: values)


def _has(*devices: str) -> Callable[[Pair], bool]:
    return lambda pair: pair.kind == "products" and any(d in (pair.one, pair.other) for d in devices)


EAGER = ("neusight__vector_fp32",)
"""Tables of kernels that a host launches one by one."""

REFITTED = (
    ("A100-SXM4-80GB", "H100-SXM5-80GB"),
    ("H100-SXM5-80GB", "H200-SXM-141GB"),
    ("H100-SXM5-80GB", "L40S"),
    ("A100-SXM4-80GB", "A40"),
)
"""Pairs whose fits are made anew where a change asks for it: one of each set of GPUs left out."""


def _refitted(pair: Pair) -> bool:
    return pair.kind == "products" and (pair.one, pair.other) in REFITTED


def _of_another_network(pair: Pair) -> bool:
    return _refitted(pair) or (pair.kind == "products" and (pair.one, pair.other) == ("H100-SXM5-80GB", "B200-SXM"))


CHANGES = (
    Change("inline ECC", without_ecc, _has("A40", "L40S"), refit=False),
    Change("zeros draw less", full_of_numbers, _has("T4"), refit=False),
    Change("power limit", never_limited, _has("T4", "A40", "L40S", "RTXA6000"), refit=False),
    Change("pass that quantises", without_passes, lambda pair: pair.kind == "data types", refit=False),
    Change("published tiles", tiles_of_16_bits, lambda pair: pair.kind == "data types", refit=False),
    Change("slowness of hosts", hosts_by_prior, lambda pair: pair.tables == EAGER, refit=False),
    Change("clusters of 4 and 8", pairs_of_ctas, _refitted, refit=True),
    Change("one law of the L2", kept_by_fit, _refitted, refit=True),
    Change("network on chip", slices_alone, _of_another_network, refit=True),
)
"""What changed the times of pairs, and can be put back."""

SET_BY = ("l2_kept_share", "l2_cliff", "multicast_loss")
"""Constants behind the changes; the shares of boards with inline ECC stand in their sheets."""


def ablation(
    pairs: list[Pair], fits: of_pairs.Fits, score: Callable[[of_pairs.Fits, Pair], float | None]
) -> pd.DataFrame:
    """Return the score of each pair (rows) as it is, and with each change put back (columns); NaN where it has no part.

    ``score``: mean |log ratio error| of a pair under some fits, None of a pair with too few rows.
    """
    found = {pair.name: {"as it is": score(fits, pair)} for pair in pairs}
    for change in CHANGES:
        with ExitStack() as stack:
            stack.enter_context(change.put_back())
            mine = of_pairs.Fits(fits.most) if change.refit else fits
            for pair in (p for p in pairs if change.concerns(p) and found[p.name]["as it is"] is not None):
                found[pair.name][change.name] = score(mine, pair)
                print(change.name, "put back,", pair.name, found[pair.name], flush=True)
    return pd.DataFrame.from_dict(found, orient="index", dtype=float).dropna(subset="as it is")


def coefficients() -> pd.DataFrame:
    """Return what set each changed coefficient: its value, and the rows or boards with its interval, in words."""
    constants = {row["name"]: row for row in read_table("constants.csv")}
    rows = [(name, float(constants[name]["value"]), constants[name]["source"]) for name in SET_BY]
    for preset in WITHOUT_ECC:
        entry = load_sheet(preset).entries["dram_sustained_fraction"]
        rows.append((f"dram_sustained_fraction of {preset}", entry.number, entry.note))
    return pd.DataFrame(rows, columns=["coefficient", "value", "set by"])
