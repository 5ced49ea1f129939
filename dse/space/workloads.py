"""The workloads of a space: each entry of its table as the operators that run on the designs around its base GPU."""

import re
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import jax.numpy as jnp
import numpy as np

from dse.base.errors import InputError, accepted
from dse.hardware.gpu import Gpu
from dse.hardware.presets import GpuSheet
from dse.hardware.schema import gpu_schema
from dse.space.axis import Axis
from dse.space.expression import Expression
from dse.space.links import variants, with_links
from dse.space.replaced_kernels import Room, room_of, without_replaced
from dse.timing.timing import TimingModel
from dse.timing.traced.compiled_traces import compiled
from dse.timing.traced.reading import is_recorded, read_workload
from dse.timing.traced.trace_profile import KEYS, MOST_PROFILES
from dse.workload.target import Target
from dse.workload.workload import Workload


@dataclass(frozen=True)
class Around:
    """What a workload may need of the space that it stands in."""

    sheet: GpuSheet
    axes: tuple[Axis, ...]
    links: tuple[tuple[str, Expression], ...]
    target: Target
    folder: Path
    model: TimingModel

    @property
    def base(self) -> dict[str, float]:
        """The base GPU's attributes as numbers."""
        return self.sheet.numbers()

    @property
    def room(self) -> Room:
        """The shared memory that its designs have."""
        return room_of(self.base, self.axes, self.links)

    def load(self, use: str, name: str, where: str) -> Workload:
        """Return the workload that ``use`` states; a trace is simulated for every GPU that changes its misses."""
        use = _resolve(use, self.folder)
        gpus = partial(variants, self.base, self.axes, self.links, KEYS, MOST_PROFILES, where)
        read = read_workload(use, self.target, gpus, [self.sheet], name)
        return compiled(without_replaced(read, self.room), self.model, self.drawn)

    def drawn(self, count: int) -> Gpu:
        """Return designs of the grid drawn at random, the same every time."""
        draw = np.random.default_rng(0)
        axes = {axis.name: draw.choice(np.asarray(axis.numbers), count) for axis in self.axes}
        values = {**self.base, **with_links(self.base, self.links, axes)}
        return Gpu.from_attributes({k: jnp.asarray(np.broadcast_to(x, (count,)), float) for k, x in values.items()})


Loaded = dict[tuple[str, str, Target, Room], Workload]
"""Workloads that were read: text, name, target and room -> workload."""


def read_workloads(
    table: dict, where: str, around: Around, loaded: Loaded | None = None
) -> tuple[tuple[Workload, ...], tuple[float, ...]]:
    """Return the workloads of a space's table and their weights; raises InputError naming the entry.

    ``loaded``: workloads that variants of a space share; recorded ones are refused there.
    """
    workloads, weights = [], []
    for key, spec in table.items():
        here = f"{where}: [workloads] {key}"
        spec = {"use": spec} if isinstance(spec, str) else spec
        if isinstance(spec, dict) and (wrong := sorted(map(str, set(spec) - {"use", "weight"}))):
            raise InputError(
                f"{here}: {wrong[0]!r} is not a key of a workload; {accepted(wrong[0], ('use', 'weight'))}"
            )
        if not isinstance(spec, dict) or not isinstance(spec.get("use"), str):
            raise InputError(
                f'{here}: {spec!r} is not accepted; give use = "llama3_8b:phase=decode,batch=32" and weight'
            )
        weight = spec.get("weight", 1.0)
        if isinstance(weight, bool) or not isinstance(weight, (int, float)) or not 0 <= weight < 1e12:
            raise InputError(f"{here}: weight = {weight!r} is not accepted; give a number of at least 0")
        if not key.isidentifier() or key in ("base", "total") or key in gpu_schema():
            raise InputError(f"{here}: {key!r} cannot name a workload; give a plain word such as prefill or decode")
        try:
            workloads.append(_loaded(spec["use"], key, where, around, loaded))
        except InputError as error:
            raise InputError(f"{here}: {error}") from None
        weights.append(float(weight))
    return tuple(workloads), tuple(weights)


def _loaded(use: str, key: str, where: str, around: Around, loaded: Loaded | None) -> Workload:
    """Return a workload, one of a variant from those that were ``loaded`` before."""
    if loaded is None:
        return around.load(use, key, where)
    if is_recorded(_resolve(use, around.folder)):
        raise InputError("a trace is recorded on one GPU: axes over base GPUs or settings are not for it; leave it out")
    name = (use, key, around.target, around.room)
    if name not in loaded:
        loaded[name] = around.load(use, key, where)
    return loaded[name]


def _resolve(use: str, folder: Path) -> str:
    """A workload's file or trace directory, and its engine's file, stand relative to the space's folder."""
    head, colon, settings = use.partition(":")
    settings = re.sub(r"(?<=engine=)[^,]+\.toml", lambda found: str(folder / found[0].strip()), settings)
    use = head + colon + settings
    if not Path(head).is_absolute() and (
        head.lower().endswith((".toml", ".csv", ".json")) or is_recorded(folder / use)
    ):
        return str(folder / use)
    return use
