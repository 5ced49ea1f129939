"""Evaluation of spaces with variants: other base GPUs, other shapes of workloads.

Each variant has candidates of its own. They are arguments of the programs that all workloads share
(:mod:`dse.evaluate.shared_programs`), filled up to one number, so that nothing more is compiled for more variants.
"""

from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Any

import jax
import numpy as np

from dse.base.compilation import quick_to_compile
from dse.base.errors import InputError
from dse.evaluate.batching import float_type
from dse.evaluate.device_programs import Columns, filled_batch
from dse.evaluate.infeasibility import Reasons, VariantReasons
from dse.evaluate.platform import platform_of_device
from dse.evaluate.shared_programs import DESIGNS
from dse.evaluate.space_program import Evaluator, result_columns
from dse.evaluate.variants.one_variant import OfVariant
from dse.space.designs import baseline
from dse.space.links import OF_BASE, around
from dse.space.space import Space

CHUNK = 4096
"""Designs of a call, at most: a second's."""


class VariantsEvaluator:
    """What :class:`~dse.evaluate.space_program.Evaluator` is for a plain space: columns of designs to results.

    The columns hold those of the variants' axes too. Several threads call.
    """

    groups = None

    def __init__(
        self, space: Space, reasons: VariantReasons, chunk: int | None = None, devices: Sequence[Any] | None = None
    ) -> None:
        assert space.variants
        self.space, self._variants, self._reasons = space, space.variants, reasons
        self.devices = list(devices or jax.local_devices())[:1]
        self.platform = platform_of_device(self.devices[0])
        self.block = DESIGNS
        size = min(chunk or CHUNK, max(space.size, 1))
        self.chunk = -(-size // DESIGNS) * DESIGNS
        self._lock, self._made = Lock(), dict[int, OfVariant | None]()
        plain = Evaluator(self._variants.home_space, reasons.of_variant(self._variants.home), asked=1)
        self._untimed = jax.jit(plain.of_gpus, compiler_options=quick_to_compile())

    @property
    def names(self) -> list[str]:
        """The results that a call returns."""
        return [*result_columns(self.space), "code"]

    def __call__(
        self, columns: Mapping[str, np.ndarray], names: Sequence[str] | None = None, device: Any = None
    ) -> dict[str, np.ndarray]:
        """Return the results of designs, any number of them; those that a variant does not have are 0."""
        wanted = result_columns(self.space) if names is None else names
        count = len(next(iter(columns.values())))
        found = {name: np.zeros(count, float_type()) for name in wanted}
        code = np.zeros(count, np.int32)
        for variant, places in self._variants.parts(columns):
            part = self.of_variant(variant)
            if part is None:
                code[places] = self._reasons.starts[variant]
                continue
            results = part(self._columns(part, columns, places), self._own(part, wanted), device)
            code[places] = self._reasons.combined(variant, results.pop("code"))
            for name, values in results.items():
                found[name][places] = values
        return found | {"code": code}

    def _own(self, part: OfVariant, wanted: Sequence[str]) -> list[str]:
        own = set(result_columns(part.space))
        return [name for name in wanted if name in own]

    def _columns(self, part: OfVariant, columns: Columns, places: np.ndarray) -> dict[str, np.ndarray]:
        outer = {axis.name for axis in self._variants.axes}
        return {n: values[places] for n, values in columns.items() if n not in outer} or part.as_base(len(places))

    def of_variant(self, variant: int) -> OfVariant | None:
        """Return the evaluator of a variant; None where it cannot be, or its base has no result that is asked for."""
        with self._lock:
            if variant not in self._made:
                self._made[variant] = self._make(variant)
            return self._made[variant]

    def _make(self, variant: int) -> OfVariant | None:
        space = self._variants.every[variant].space
        if space is None:
            return None
        made = OfVariant(space, self._reasons.of_variant(variant), self._untimed, self.devices)
        try:
            _ = made.base_results
        except InputError as error:
            self._reasons.refuse(variant, str(error).removeprefix(f"{space.name}: "))
            return None
        return made

    def of_bases(self, columns: Columns) -> dict[str, np.ndarray]:
        """Return what expressions may name of the base GPU of each design, (designs,): attributes, and results that
        they name."""
        count = len(next(iter(columns.values())))
        found: dict[str, np.ndarray] = {}
        for variant, places in self._variants.parts(columns):
            part = self.of_variant(variant)
            results = part.base_results if part else {}
            for name, value in (around(self._variants.every[variant].base.numbers()) | dict(results)).items():
                found.setdefault(name, np.zeros(count))[places] = value
        return found

    def untimed(self, columns: Columns) -> dict[str, Any]:
        """Return what no workload decides of designs, (designs,), in NumPy."""
        count = len(next(iter(columns.values())))
        found: dict[str, np.ndarray] = {}
        for variant, places in self._variants.parts(columns):
            base = self._variants.every[variant].base.numbers()
            mine = {n: np.asarray(v)[places] for n, v in columns.items() if n in base}
            values = self._untimed(filled_batch(base, mine, len(places)))
            for name, value in ({OF_BASE + n: v for n, v in base.items()} | dict(values)).items():
                found.setdefault(name, np.zeros(count, float_type()))[places] = np.asarray(value)
        return found

    def trace(self, devices: Sequence[Any] | None = None) -> None:
        """Do nothing: each program is traced when it is compiled."""

    def compile(self, devices: Sequence[Any] | None = None) -> None:
        """Compile the programs, by the baseline."""
        self(baseline(self.space))


def evaluator_of(
    space: Space, reasons: Reasons, chunk: int | None = None, asked: int | None = None, **options: Any
) -> Evaluator | VariantsEvaluator:
    """Return the evaluator of a space, plain or with variants; ``options`` are :class:`Evaluator`'s."""
    if isinstance(reasons, VariantReasons):
        return VariantsEvaluator(space, reasons, chunk, options.get("devices"))
    return Evaluator(space, reasons, chunk, asked, **options)
