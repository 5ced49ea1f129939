"""Data types: the rows of ``data/schema/data_types.csv``, which say all that the models know of a type.

A type that tensor cores multiply has a tensor rate in ``data/schema/gpu.csv`` besides. Nothing here imports JAX.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from dse.base.package_tables import read_table

TENSOR_RATE = "tensor_fma_"
"""Begins the names of the tensor rates among a GPU's attributes, which end in a data type."""

SHARED_ARRAY, FP64_ARRAY = "shared", "fp64"
"""The multipliers that data types of tensor cores share, and those of FP64, which serve its lanes too."""


@dataclass(frozen=True)
class DataType:
    """One data type."""

    name: str
    title: str  # in words
    spellings: tuple[str, ...]  # other names of it
    bits: int  # [bit/element], scales apart
    scale_bits: float  # [bit/element] of scales that blocks of elements share
    roles: tuple[str, ...]  # what of a network may have it: activations, weights, kv
    computes_in: str  # type that a product with such weights computes in, unless its activations say
    multiplied_as: str  # type of the tensor instructions that multiply it: its own but for scaled formats of one
    operands: bool  # whether tensor cores multiply it
    result: str  # type in which a library returns a product
    instructions: Mapping[str, float]  # class of matrix instructions -> [FMA/warp instruction], see MatrixInstruction
    opcodes: tuple[str, ...]  # SASS opcodes that compute in it; with a dot in front: modifiers of any
    tensor_array: str  # multipliers of a tensor core that compute in it: SHARED_ARRAY or FP64_ARRAY
    tensor_area: float  # area of an FMA in tensor cores [FP16 FMA of the same area]
    tensor_energy: float  # energy of an FMA in tensor cores; only ratios between types count

    @property
    def tensor_rate(self) -> str:
        """Attribute of a GPU that holds its rate in tensor cores."""
        return TENSOR_RATE + self.name

    @property
    def bytes(self) -> float:
        """Bytes an element, scales included."""
        return (self.bits + self.scale_bits) / 8


@cache
def data_types() -> dict[str, DataType]:
    """Return the data types by name, in the order of the table."""
    return {row["dtype"]: _data_type(row) for row in read_table("schema/data_types.csv")}


def _data_type(row: dict[str, str]) -> DataType:
    pairs = (pair.split(":") for pair in _listed(row["instructions"]))
    return DataType(
        name=row["dtype"],
        title=row["title"],
        spellings=_listed(row["spellings"]),
        bits=int(row["bits"]),
        scale_bits=float(row["scale_bits"]) / float(row["scale_group"]) if row["scale_bits"] else 0.0,
        roles=_listed(row["roles"]),
        computes_in=row["computes_in"] or row["dtype"],
        multiplied_as=row["multiplied_as"] or row["dtype"],
        operands=row["tensor_cores"] == "operands",
        result=row["result"],
        instructions={name: float(fma) for name, fma in pairs},
        opcodes=_listed(row["opcodes"]),
        tensor_array=row["tensor_array"],
        tensor_area=float(row["tensor_area"] or 0.0),
        tensor_energy=float(row["tensor_energy"] or 0.0),
    )


def _listed(cell: str) -> tuple[str, ...]:
    return tuple(filter(None, cell.split(";")))


BITS = {name: kind.bits for name, kind in data_types().items()}
"""Bits an element of each type; blocks of some carry scales besides: see :func:`element_bytes`."""

TENSOR_DTYPES = tuple(name for name, kind in data_types().items() if kind.operands)
"""Data types that tensor cores multiply; ``Kernel.tensor_dtype`` is an index into this tuple."""

VECTOR_DTYPES = ("fp32",)
"""Data types whose peak is the CUDA cores'."""

COMPUTED = tuple(name for name, kind in data_types().items() if kind.instructions)
"""Data types that some instruction computes in."""


def element_bytes(dtype: str) -> float:
    """Return bytes an element of ``dtype``, scales of block formats included."""
    return data_types()[dtype].bytes


def with_role(role: str) -> tuple[str, ...]:
    """Return the data types that ``role`` of a network may have: ``activations``, ``weights`` or ``kv``."""
    return tuple(name for name, kind in data_types().items() if role in kind.roles)


@cache
def canonical(name: str) -> str:
    """Return the data type of a name or of another spelling of it, in capitals or with a framework's name too
    (``torch.bfloat16``); a name of none as it is."""
    plain = name.strip().lower().removeprefix("dtype.").rpartition(".")[2]
    kinds = data_types().values()
    return next((kind.name for kind in kinds if plain in (kind.name, *kind.spellings)), name)


def tensor_rates(numbers: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tensor rates by data type among attributes of a GPU."""
    return {dtype: numbers[TENSOR_RATE + dtype] for dtype in TENSOR_DTYPES}
