"""Model types of Hugging Face: what of a network its class decides, whatever its configuration says."""

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from dse.base.errors import InputError, shown
from dse.base.package_tables import read_table
from dse.workload.networks.configuration.values import SPELLINGS, Config

SIZES = "networks/class_sizes.csv"
"""Sizes of the classes of language models that are parts of others."""

REFUSED = "networks/refused_types.csv"
"""Model types that are not covered, with what keeps them out."""

UNKNOWN = "?"
"""Default of a key that differs between releases or is not known: where it is missing, a configuration is refused."""


@dataclass(frozen=True)
class ModelType:
    """A row of ``networks/model_types.csv``.

    ``layers``: kinds of attention in turn where no ``layer_types`` says them, "" for all alike; ``interval``: key of
    how many there are in a turn, the last one of another kind. ``unrotated``: kind whose queries and keys have no
    positions, or all. ``shared``: key of the width of what every token passes beside its experts, or count: a number of
    experts. ``shared_gate``: whether a gate scales it. ``defaults`` of keys that may be missing.
    """

    name: str
    norm: str
    arrangement: str
    qk_norm: str
    tied: bool
    gated: bool
    attention: str
    layers: tuple[str, ...]
    interval: str
    unrotated: str
    shared: str
    shared_gate: bool
    defaults: dict[str, Any]

    @property
    def old(self) -> bool:
        """Whether it is one of the networks with LayerNorm, biases and an MLP without gate."""
        return not self.gated and self.norm == "layernorm"


@cache
def model_types() -> dict[str, ModelType]:
    """Return the model types that are covered, by name."""
    return {row["model_type"]: _from_row(row) for row in read_table("networks/model_types.csv")}


def _from_row(row: dict[str, str]) -> ModelType:
    turns = re.findall(r"(\w+)(?:\*(\d+))?", row["layers"])
    return ModelType(
        row["model_type"],
        row["norm"],
        row["arrangement"],
        row["qk_norm"],
        row["tied"] == "1",
        row["gated"] == "1",
        row["attention"],
        tuple(kind for kind, count in turns for _ in range(int(count or 1))),
        row["interval"],
        row["unrotated"],
        row["shared"],
        row["shared_gate"] == "1",
        _settings(row["defaults"]),
    )


def _settings(text: str) -> dict[str, Any]:
    pairs = dict(pair.split("=") for pair in filter(None, text.split(";")))
    return {key: value if value == UNKNOWN else _value(value) for key, value in pairs.items()}


def _value(text: str) -> Any:
    return json.loads(text) if re.fullmatch(r"[0-9.]+|true|false", text) else text


def find_model_type(name: str, path: Path) -> ModelType:
    """Return a model type by name; raises InputError where it is not covered."""
    if name not in model_types():
        why = next((f" ({row['reason']})" for row in read_table(REFUSED) if name in row["model_types"].split(";")), "")
        raise InputError(
            f"{path}: model_type = {name!r}: this architecture is not covered{why}, as {len(model_types())} "
            "others are (docs/workloads.md links their list). Where it is built as one of these, give that one's"
        )
    return model_types()[name]


def type_of_class(named: Any, path: Path) -> ModelType:
    """Return the model type whose class a file names in ``architectures`` (LlamaForCausalLM); raises InputError where
    it is not covered."""
    first = str(named[0] if isinstance(named, list) and named else named)
    stem = re.sub(r"For[A-Z].*$|LMHeadModel$|Model$", "", first).lower().replace("_", "")
    names = {name.replace("_", ""): name for name in reversed(model_types())}
    known = next((names[word] for word in (stem, f"{stem}text") if word in names), None)
    if known is None:
        raise InputError(
            f"{path}: model_type is missing, and architectures = {shown(named)} is not covered, as "
            f"{len(model_types())} model types are (docs/workloads.md links their list). Where it is built as one of "
            "these, give that one's"
        )
    return model_types()[known]


@cache
def class_sizes() -> dict[str, dict[str, Any]]:
    """Return the sizes that the class of a model type has, by its name: a file leaves out those of a part."""
    return {row["model_type"]: _settings(row["sizes"]) for row in read_table(SIZES)}


def with_defaults(config: Config, kind: ModelType, path: Path, is_part: bool = False) -> Config:
    """Return a configuration with its class's defaults of what is missing; raises InputError where those are not sure:
    what such a file means depends on the release that reads it. Sizes are left out of a part of a file alone."""
    found = dict(config)
    for key, value in class_sizes().get(kind.name, {}).items() if is_part and config.get("model_type") else ():
        if not any(spelling in config for spelling in _spellings(key)):
            found[key] = value
    for key, value in kind.defaults.items():
        named = key.split("|")
        if any(spelling in config for name in named for spelling in _spellings(name)):
            continue
        if value == UNKNOWN:
            raise InputError(
                f"{path}: {' or '.join(named)} is missing, and model_type = {kind.name!r} has a default of its own "
                f"for it; give {named[0]}"
            )
        found[key] = value
    return found


def _spellings(key: str) -> tuple[str, ...]:
    """A key with the others that say the same: a default does not stand beside what a file says in other words."""
    return next((spellings for spellings in SPELLINGS.values() if key in spellings), (key,))
