"""The protocol as a record: launch path, caches, clock; it belongs to a source, never to a GPU."""

import re
from dataclasses import dataclass, replace
from functools import cache
from math import inf, isinf, nan
from typing import Any

import jax.numpy as jnp

from dse.base.errors import InputError, accepted
from dse.base.package_tables import read_table
from dse.hardware.gpu import Gpu
from dse.measured.compound.latent import MODULES
from dse.measured.row_shape import PRODUCTS, framework_of, measured_network, notes_of
from dse.workload.networks.attention_kinds import GroupedQueryAttention
from dse.workload.networks.mlp_kinds import Dense
from dse.workload.networks.network import Network
from dse.workload.operator import FOREVER
from dse.workload.operators.gemm_library import LIBRARIES, Library

BUSY = re.compile(r"\bbusy_us=([^\s;,]*)")
"""What the notes of a row may say of its reading: the microseconds that the board was kept busy."""

COPIES = re.compile(r"\bw_copies=(?:\S*\D)?(\d+)(?=[\s;]|$)")
"""The same of the copies of the weights that rotate: a number, or the largest of several."""


LATENT_DECODES = ("mla_decode", "mla_decode_module")
"""Operators that decode by latent attention."""


@dataclass(frozen=True)
class Protocol:
    """How rows were measured: the launch path, the state of the caches, the clock and the length of a reading."""

    name: str
    sources: tuple[str, ...]  # values of a table's column ``source`` that it stands for
    overhead_us: float  # [us] added to every launch
    weight_copies: float  # [1] buffers of the weights that rotate; inf: other weights always pass between two uses
    warm_activations: bool  # inputs and results stay where the launch before left them
    clock: str  # that is asked for: "boost", at which short runs stand, or "sheet", of long ones
    launches: float  # [1] that follow each other in a reading; inf: until the board has settled
    library: Library  # whose kernels were measured
    source: str  # where the facts come from
    run_us: float = 0.0  # [us] that a reading takes at least
    fitted: bool = False  # the overhead is fitted
    vector: tuple[str, ...] = ("vllm_vector",)  # implementations of the vector kernels; of several the fastest
    quantises: str = ""  # how a product's activations are quantised within its time (quantisation_passes.ways)
    product_launches: float | None = None  # [1] of products, where they differ
    layers: float = 0.0  # [1] layers of the row's network that run up to a product's reading, in place of its launches
    layer_host_us: float = 0.0  # [us] in which the host launches each
    powered_loop: bool = False  # a row with watts was timed in the long loop that they were read in
    large_tile_age: float = 1.0  # [1] by which results of large tiles seem to be older
    zeros: tuple[str, ...] = ()  # data types of products whose operands are all zeros
    writes_cache: bool = False  # attention of a framework's layers writes the new keys and values in its time
    unfilled: tuple[str, ...] = ()  # words in the notes of prefills that read keys and values which nobody wrote
    unfilled_latent: tuple[str, ...] = ()  # the same of decodes of latent attention, and of modules around them
    constant_modules: tuple[str, ...] = ()  # of modules of latent attention whose operands are one number

    def back_to_back(self, row: Any) -> float:
        """Return how many launches of a row's operator follow each other in its reading [1], inf: until the board has
        settled, 0 where the layers of a network do (:func:`dse.measured.profiled_layer.reading`)."""
        if self.powered_loop and getattr(row, "power_w", 0.0) > 0:
            return inf
        if self.layered(row):
            return 0.0
        products = self.product_launches if row.op in PRODUCTS else None
        return self.launches if products is None else products

    def layered(self, row: Any) -> Network | None:
        """Return the network whose layers fill a row's reading, None where launches of its own operator do.

        Its layers are alike: grouped-query attention and a dense MLP.
        """
        network = measured_network(row) if self.layers and row.op in PRODUCTS else None
        return network if network and all(map(network.shared, (GroupedQueryAttention, Dense))) else None

    def busy_us(self, row: Any) -> float:
        """Return how long a row's reading keeps the board busy at least [us]: as its notes say, else as usual; raises
        InputError where they say no time."""
        said = BUSY.search(notes_of(row))
        if said is None:
            return self.run_us
        try:
            us = float(said[1])
        except ValueError:
            us = nan
        if not 0 <= us < inf:
            raise InputError(f"notes say {said[0]}; give microseconds from 0 on")
        return us

    def as_noted(self, notes: str) -> "Protocol":
        """Return the protocol with the copies of the weights that the notes of a row state."""
        said = COPIES.search(notes)
        return replace(self, weight_copies=float(said[1])) if said else self

    def writes(self, row: Any) -> bool:
        """Return whether a row's attention writes into the cache: of a framework's layer, but in loops for power."""
        return self.writes_cache and bool(framework_of(notes_of(row))) and not getattr(row, "power_w", 0.0) > 0

    def of_zeros(self, row: Any) -> bool:
        """Return whether a row's product was measured on zeros, whose multipliers hardly toggle."""
        return row.op in PRODUCTS and str(row.dtype) in self.zeros

    def reads_unfilled(self, row: Any) -> bool:
        """Return whether a row's attention read keys and values from a cache that nobody filled: what they were, zeros
        or what another test had left, was not recorded."""
        words = {"attn_prefill": self.unfilled, **dict.fromkeys(LATENT_DECODES, self.unfilled_latent)}
        return _says(row, words.get(row.op, ()))

    def of_constants(self, row: Any) -> bool:
        """Return whether all operands of a row's products were one number: weights, activations and cache."""
        return row.op in MODULES and _says(row, self.constant_modules)

    def distances(self, a: float, b: float, c: float) -> tuple[float, float, float]:
        """Return the bytes touched between two uses of A, of the weights B and of C, each of so many bytes."""
        passing = 0.0 if isinf(self.weight_copies) else self.weight_copies * b
        activations = passing + a + c if self.warm_activations else FOREVER
        return activations, FOREVER if isinf(self.weight_copies) else passing + a + c, activations

    def clocked(self, gpu: Gpu, preset: str = "") -> Gpu:
        """Return the GPU at the clock that these measurements ask for."""
        if self.clock == "sheet":
            return gpu
        highest = jnp.asarray(highest_clocks().get(preset, gpu.boost_clock_mhz))
        return replace(gpu, boost_clock_mhz=highest, tensor_clock_mhz=highest)


@cache
def highest_clocks() -> dict[str, float]:
    """Return preset -> clock of short runs [MHz], of cards whose sheet states a lower one as boost."""
    return {row["preset"]: float(row["clock_mhz"]) for row in read_table("calibration/highest_clocks.csv")}


@cache
def protocols() -> dict[str, Protocol]:
    """Return the known protocols by name."""
    facts: dict[str, dict[str, dict[str, str]]] = {}
    for row in read_table("calibration/harness.csv"):
        facts.setdefault(row["harness"], {})[row["attribute"]] = row
    return {name: _protocol(name, rows) for name, rows in facts.items()}


@cache
def measured_boards() -> dict[tuple[str, str], dict[str, float]]:
    """Return (source, preset) -> attributes of the boards that a source measured, where the preset has others."""
    found: dict[tuple[str, str], dict[str, float]] = {}
    for row in read_table("calibration/measured_boards.csv"):
        found.setdefault((row["measured_by"], row["preset"]), {})[row["attribute"]] = float(row["value"])
    return found


def as_measured(gpu: Gpu, preset: str, source: str, way: Protocol) -> Gpu:
    """Return a GPU as the rows of a ``source`` met it: its own board, at the clock that its protocol asks for.

    ``preset``: name of the GPU's sheet.
    """
    own = {name: jnp.asarray(value) for name, value in measured_boards().get((source, preset), {}).items()}
    return replace(way.clocked(gpu, preset), **own)


def _protocol(name: str, rows: dict[str, dict[str, str]]) -> Protocol:
    return Protocol(
        name=name,
        sources=tuple(filter(None, rows["sources"]["value"].split(";"))),
        overhead_us=float(rows["overhead_us"]["value"]),
        weight_copies=float(rows["weight_copies"]["value"]),
        warm_activations=rows["warm_activations"]["value"] == "1",
        clock=rows["clock"]["value"],
        launches=float(rows["launches"]["value"]),
        run_us=float(rows["run_us"]["value"]) if "run_us" in rows else 0.0,
        library=LIBRARIES[rows["library"]["value"]],
        source=rows["sources"]["source"],
        fitted=rows["overhead_us"]["status"] == "fitted",
        vector=tuple(rows["vector"]["value"].split(";")),
        quantises=rows["quantises"]["value"] if "quantises" in rows else "",
        powered_loop="powered_loop" in rows and rows["powered_loop"]["value"] == "1",
        product_launches=float(rows["product_launches"]["value"]) if "product_launches" in rows else None,
        layers=float(rows["layers"]["value"]) if "layers" in rows else 0.0,
        layer_host_us=float(rows["layer_host_us"]["value"]) if "layer_host_us" in rows else 0.0,
        large_tile_age=float(rows["large_tile_age"]["value"]) if "large_tile_age" in rows else 1.0,
        zeros=tuple(rows["zeros"]["value"].split(";")) if "zeros" in rows else (),
        writes_cache="writes_cache" in rows and rows["writes_cache"]["value"] == "1",
        unfilled=_words(rows, "unfilled_cache"),
        unfilled_latent=_words(rows, "unfilled_latent_cache"),
        constant_modules=_words(rows, "constant_modules"),
    )


def _words(rows: dict[str, dict[str, str]], attribute: str) -> tuple[str, ...]:
    return tuple(rows[attribute]["value"].split("|")) if attribute in rows else ()


def _says(row: Any, words: tuple[str, ...]) -> bool:
    return any(one in notes_of(row) for one in words)


def find_protocol(name: str, where: str = "--harness") -> Protocol:
    """Return a protocol by name; raises InputError."""
    if name not in protocols():
        raise InputError(f"{where}: no harness is called {name!r}; {accepted(name, protocols())}")
    return protocols()[name]


def protocol_of(source: str) -> Protocol:
    """Return the way a source measured, "unknown" where nothing is known of it."""
    return next((h for h in protocols().values() if source in h.sources), protocols()["unknown"])
