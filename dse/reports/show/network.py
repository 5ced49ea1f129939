"""``dse show network``: what a network is made of, what it holds, and what it keeps of a request."""

import json
from typing import Any

from rich.console import Console

from dse.reports.common.terminal_rows import print_rows
from dse.workload.dtypes import Precision, precision
from dse.workload.media import SIDE
from dse.workload.networks.encoder import Encoder
from dse.workload.networks.images import Images
from dse.workload.networks.names import checkpoint_precision, load_network
from dse.workload.networks.network import Network

WIDE = precision("show", "bf16")
"""Types in which a cache is counted where nothing else is said: 16 bits."""

FAR = 1e9
"""Tokens beyond every window [token]."""


def network_document(name: str) -> dict[str, Any]:
    """Return what ``dse show network`` prints of a network, by name or path; raises InputError.

    ``kv_bytes_per_token`` [B] in 16 bits of a token that all layers keep; ``kv_bytes_beyond_windows`` [B] of a further
    one where layers with windows or chunks are full; ``kv_bytes_as_stated`` [B] in the checkpoint's own type.
    """
    network = load_network(name)
    types, method = checkpoint_precision(name)
    return {
        "network": network.name,
        "name": network.title,
        "parameters": network.parameters,
        "active_parameters": network.active_parameters,
        "kv_bytes_per_token": _grown(network, 0.0, WIDE),
        "kv_bytes_beyond_windows": _grown(network, FAR, WIDE),
        "kv_bytes_as_stated": None if types is None else _grown(network, 0.0, types),
        "state_bytes_per_request": network.cache_bytes(0.0, WIDE),
        "layers": [_layer(layer, count) for layer, count in network.layers],
        "encoder": _encoder(network.encoder),
        "dtypes": _types(types, method),
        "checkpoint": method,
        "hidden": network.hidden,
        "vocabulary": network.vocab,
        "positions": network.positions,
        "source": network.source,
    }


def _grown(network: Network, tokens: float, types: Precision) -> float:
    """Bytes that a request's cache grows by after so many tokens."""
    return network.cache_bytes(tokens + 1.0, types) - network.cache_bytes(tokens, types)


def _layer(layer: Any, count: int) -> dict[str, Any]:
    shown = {name: value for _, block in layer.blocks for name, value in block.facts.items() if value != ""}
    return {"kind": layer.kind, "count": count, "label": layer.label, "norms": layer.arrangement, **shown}


def _encoder(encoder: Encoder | None) -> dict[str, Any] | None:
    """What is beside the language model: ``tokens`` of an image of 1024 x 1024 pixels, or of a piece of sound."""
    if encoder is None:
        return None
    source = encoder.source
    grid = source.grid(SIDE, SIDE) if isinstance(source, Images) else source.grid(source.seconds)
    return {
        "of": encoder.medium,
        "parameters": encoder.parameters,
        "layers": [_layer(layer, count) for layer, count in encoder.layers],
        "hidden": encoder.hidden,
        "patches": grid.pieces * grid.patches,
        "tokens": grid.tokens,
        "sample": f"{SIDE} x {SIDE} pixels" if isinstance(source, Images) else f"{source.seconds} s",
    }


def _types(types: Precision | None, method: str) -> dict[str, str]:
    """The types of a checkpoint; in its own words where no pair of types is that of all its weights."""
    if types is None:
        return {"weights": method}
    return {"weights": types.weights, "activations": types.activations, "kv": types.kv}


def print_network(name: str, console: Console, as_json: bool) -> None:
    """Print a network's layers, parameters, cache, state and types."""
    document = network_document(name)
    if as_json:
        print(json.dumps(document, indent=1, allow_nan=False))
        return
    console.print(f"{document['name']} ({document['network']})\n", markup=False, style="bold")
    columns = dict.fromkeys(name for row in document["layers"] for name in ("kind", *row))
    print_rows([{**dict.fromkeys(columns, ""), **row} for row in document["layers"]], console, False)
    types = ", ".join(f"{key} {value}" for key, value in document["dtypes"].items())
    rows = [
        ("parameters", f"{document['parameters'] / 1e9:.4g}", "1e9"),
        ("of these a token passes", f"{document['active_parameters'] / 1e9:.4g}", "1e9"),
        ("keys and values of a token in 16 bits", f"{document['kv_bytes_per_token']:,.0f}", "B"),
        ("the same beyond all windows", f"{document['kv_bytes_beyond_windows']:,.0f}", "B"),
        ("state of a request", f"{document['state_bytes_per_request']:,.0f}", "B"),
        ("types of the checkpoint", types, ""),
        ("positions", f"{document['positions']:,}", "token"),
    ]
    if encoder := document["encoder"]:
        rows.append((f"encoder of {encoder['of']}", f"{encoder['parameters'] / 1e9:.4g}", "1e9"))
        rows.append((f"tokens of {encoder['sample']}", f"{encoder['tokens']:,}", "token"))
    console.print()
    print_rows([dict(zip(("what", "value", "unit"), row, strict=True)) for row in rows], console, False)
    console.print(f"\n{document['source']}", markup=False, style="dim")
