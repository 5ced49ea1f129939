"""Designs as GPU files: the TOML that ``dse run``, ``dse explain`` and a space's ``base`` read again."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from dse.base.toml_text import literal
from dse.hardware.presets import find_preset, preset_sheet
from dse.space.designs import of_table
from dse.space.setting_axes import BASE
from dse.space.space import Space

NUMBER = "{number}"
"""Where the head's name takes the design's number."""


@dataclass(frozen=True)
class DesignFiles:
    """The GPU files of many designs: lines that all share, then a line for each attribute that the space varies.

    ``head`` holds NUMBER once; ``names``: attributes; ``literals``: attribute -> the distinct TOML values it takes;
    ``codes``: attribute -> which of them each design has, shape (designs,).
    """

    head: str
    names: list[str]
    literals: dict[str, list[str]]
    codes: dict[str, np.ndarray]

    def text(self, design: int, number: int) -> str:
        """Return the file of one design; ``number`` is how its name counts it."""
        lines = [f"{name} = {self.literals[name][self.codes[name][design]]}" for name in self.names]
        return "\n".join([self.head.replace(NUMBER, str(number)), *lines]) + "\n"


def design_files(space: Space, front: pd.DataFrame) -> DesignFiles:
    """Return the GPU files of designs of a space, given their axes."""
    columns = _columns(space, front)
    literals, codes = {}, {}
    if space.variants and BASE in front:
        names, codes[BASE] = np.unique([find_preset(str(name)) or "" for name in front[BASE]], return_inverse=True)
        literals[BASE] = [literal(str(name)) for name in names]
    for name, numbers in columns.items():
        values, code = np.unique(np.broadcast_to(numbers, len(front)), return_inverse=True)
        literals[name] = [literal(space.base.entries[name].attribute.decode(float(value))) for value in values]
        codes[name] = code.reshape(-1)
    return DesignFiles(_head(space, set(columns), BASE in codes), list(codes), literals, codes)


def _columns(space: Space, front: pd.DataFrame) -> dict[str, np.ndarray]:
    """Return the attributes that designs set; where a base GPU is no preset, all in which the bases differ."""
    columns = of_table(space, front)
    own = {name: values for name, values in columns.items() if name in space.base.entries}
    if not space.variants or BASE not in front or all(find_preset(one.base.name) for one in space.variants.every):
        return own
    of_bases = space.variants.of_bases(columns)
    return {name: values for name, values in of_bases.items() if len(np.unique(values)) > 1} | own


def _head(space: Space, varied: set[str], own_base: bool) -> str:
    """Name and base, unless designs have an ``own_base``, and what the space's base GPU itself differs in; every
    attribute where it is no preset."""
    preset = find_preset(space.base.name)
    numbers = preset_sheet(preset).numbers() if preset else {}
    lines = [f"name = {literal(f'{space.name}: Pareto design {NUMBER}')}"]
    lines += [f"base = {literal(preset)}"] if preset and not own_base else []
    lines += [f"price_usd_h = {space.base.price.usd:.6g}"] if space.base.price else []
    for name, entry in space.base.entries.items():
        if name not in varied and numbers.get(name) != entry.number:
            lines.append(f"{name} = {literal(entry.value)}")
    return "\n".join(lines)
