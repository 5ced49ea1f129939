"""The programs that evaluate designs on a device: a space's own, and those that every space shares."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import fields
from typing import Any, Protocol

import jax
import numpy as np
from jax import Array

from dse.base.compilation import Options
from dse.evaluate.candidates import Tables
from dse.evaluate.evaluation import Evaluation
from dse.evaluate.pallas.own_kernels import with_own_kernels
from dse.evaluate.platform import platform_of_device
from dse.evaluate.shared_programs import DESIGNS
from dse.hardware.gpu import Gpu
from dse.hardware.schema import gpu_schema

Columns = Mapping[str, Any]
"""Attribute or result -> array of shape (designs,)."""


OfWorkloads = Sequence[Tables]
"""The tables of groups, for each workload; empty where designs come in no groups."""


class Program(Protocol):
    """What evaluates ``rows`` designs at once on a device."""

    @property
    def rows(self) -> int: ...  # groups where designs come in groups

    def __call__(self, columns: Columns, tables: OfWorkloads, of_base: Columns, device: Any) -> Mapping[str, Any]:
        """Return the results of designs, each array (rows,), or (groups, designs) where designs come so.

        ``tables``: of the groups, for each workload, where there are groups.
        """
        ...

    def trace(self, columns: Columns, tables: OfWorkloads, of_base: Columns, device: Any) -> None:
        """Do for a device what is Python's part of compiling, as far as it can be told apart."""
        ...

    def compile(self, columns: Columns, tables: OfWorkloads, of_base: Columns, device: Any) -> None:
        """Compile for a device, ahead of the first call."""
        ...

    def lowered(self, columns: Columns, tables: OfWorkloads, of_base: Columns, platform: str) -> str:
        """Return the program as StableHLO, lowered for one of JAX's platforms of which no device need be there."""
        ...


class CompiledOnDevices(ABC):
    """A program that is traced and compiled once for each device."""

    def __init__(self) -> None:
        self._traced: dict[Any, Any] = {}
        self._compiled: dict[Any, Callable[..., Any]] = {}

    @abstractmethod
    def _lowered(self, columns: Columns, tables: OfWorkloads, of_base: Columns, device: Any) -> Any:
        """Return the program, lowered for a device."""

    def trace(self, columns: Columns, tables: OfWorkloads, of_base: Columns, device: Any) -> None:
        if device not in self._compiled:
            self._traced[device] = self._lowered(columns, tables, of_base, device)

    def compile(self, columns: Columns, tables: OfWorkloads, of_base: Columns, device: Any) -> None:
        if device not in self._compiled:
            traced = self._traced.pop(device, None) or self._lowered(columns, tables, of_base, device)
            self._compiled[device] = traced.compile()


class OwnProgram(CompiledOnDevices):
    """A space's own program, compiled for each device: every device runs the same, on designs of its own."""

    def __init__(
        self,
        evaluate: Callable[[Columns, OfWorkloads, Columns], dict[str, Array]],
        rows: Callable[[], int],
        options: Options | None,
    ) -> None:
        self._rows, self._evaluate, self._options = rows, evaluate, options
        super().__init__()

    @property
    def rows(self) -> int:
        """Designs of a call, which are asked for where it is traced."""
        return self._rows()

    def __call__(self, columns: Columns, tables: OfWorkloads, of_base: Columns, device: Any) -> dict[str, Array]:
        self.compile(columns, tables, of_base, device)
        return self._compiled[device](columns, tables, of_base)

    def lowered(self, columns: Columns, tables: OfWorkloads, of_base: Columns, platform: str) -> str:
        return lowered_text(self._evaluate, platform, columns, tables, of_base)

    def _lowered(self, columns: Columns, tables: OfWorkloads, of_base: Columns, device: Any) -> Any:
        return lowered_on(device, self._options, self._evaluate, columns, tables, of_base)


class SharedPrograms:
    """Programs that every space shares (:mod:`dse.evaluate.shared_programs`), and a small one for the ``results``,
    or none where these are not ``compiled``."""

    rows = DESIGNS

    def __init__(
        self,
        base: Mapping[str, float],
        evaluations: Sequence[Evaluation],
        results: Callable[..., Any],
        compiled: bool = True,
    ) -> None:
        self._base, self._evaluations, self._results = base, evaluations, results
        self._compiles = compiled
        self._compiled: dict[Any, Callable[..., dict[str, Array]]] = {}

    def __call__(self, columns: Columns, tables: OfWorkloads, of_base: Columns, device: Any) -> dict[str, Array]:
        if device not in self._compiled:
            quick = platform_of_device(device).quick
            self._compiled[device] = on_device(self._results, device, quick) if self._compiles else self._results
        gpus = filled_batch(self._base, columns, DESIGNS)
        with jax.default_device(device):
            every = [evaluation.by_shared_programs(gpus) for evaluation in self._evaluations]
            return self._compiled[device](columns, of_base, *zip(*every, strict=True))

    def trace(self, columns: Columns, tables: OfWorkloads, of_base: Columns, device: Any) -> None:
        pass  # each is traced when it is compiled

    def compile(self, columns: Columns, tables: OfWorkloads, of_base: Columns, device: Any) -> None:
        self(columns, tables, of_base, device)  # each is compiled when it is first called

    def lowered(self, columns: Columns, tables: OfWorkloads, of_base: Columns, platform: str) -> str:
        gpus = filled_batch(self._base, columns, DESIGNS)
        every = [evaluation.by_shared_programs(gpus) for evaluation in self._evaluations]
        return lowered_text(self._results, platform, columns, of_base, *zip(*every, strict=True))


def lowered_text(function: Callable[..., Any], platform: str, *arguments: Any) -> str:
    """Return a program as StableHLO, lowered for one of JAX's platforms, of which this machine may have no device."""
    with _standing_in(platform):
        return jax.jit(function).trace(*arguments).lower(lowering_platforms=(platform,)).as_text()


STAND_IN = "NVIDIA H100 80GB HBM3"
"""GPU for which own kernels are lowered where there is none."""


def _standing_in(platform: str) -> AbstractContextManager[Any]:
    """Tell JAX of a GPU that is not there: from 0.12 on Pallas asks which one it lowers for."""
    device = jax.sharding.AbstractDevice
    if platform != "cuda" or "platform" not in {field.name for field in fields(device)}:
        return nullcontext()
    kind: Any = {"device_kind": STAND_IN, "num_cores": None, "platform": "gpu"}
    mesh = jax.sharding.AbstractMesh((), (), abstract_device=device(**kind))
    return jax.sharding.use_abstract_mesh(mesh)


def lowered_on(device: Any, options: Options | None, function: Callable[..., Any], *arguments: Any) -> Any:
    """Return a program lowered for a device, with own kernels where they lower there; its ``compile`` is XLA's part."""

    def lower() -> Any:
        again = lambda *x: function(*x)  # noqa: E731 - a function that JAX has not traced yet
        return on_device(again, device, options).lower(*arguments)

    return with_own_kernels(lower)


def on_device(function: Callable[..., Any], device: Any, options: Options | None) -> Any:
    """Return a program of one device; ``options``: how to compile it."""
    here = jax.sharding.SingleDeviceSharding(device)
    return jax.jit(function, in_shardings=here, out_shardings=here, compiler_options=options)


def filled_batch(base: Mapping[str, float], columns: Columns, count: int) -> Gpu:
    """Return the designs' records with every field of shape (count,)."""
    return Gpu.from_attributes({name: np.broadcast_to(columns.get(name, base[name]), count) for name in gpu_schema()})
