"""Data types: bytes an element, and the types in which a product of two operands is computed."""

from dataclasses import dataclass

from dse.base.errors import InputError, accepted

BITS = {"fp64": 64, "fp32": 32, "tf32": 32, "bf16": 16, "fp16": 16, "fp8": 8, "int8": 8, "int4": 4, "fp4": 4}
"""Bits an element of each type. 4-bit types also carry a scale: see :func:`element_bytes`."""

_SCALE_BITS = {"int4": 16 / 128, "fp4": 8 / 16}
"""Bits of scale an element: one FP16 scale per 128 (AWQ, GPTQ), one FP8 scale per 16 (NVFP4)."""


def element_bytes(dtype: str) -> float:
    """Return bytes an element of ``dtype``, scales of block formats included."""
    return (BITS[dtype] + _SCALE_BITS.get(dtype, 0.0)) / 8


@dataclass(frozen=True)
class Precision:
    """Data types of a network's weights, activations and KV cache.

    ``compute`` is the type of the tensor instructions: the activations' type; 4-bit integer and 8-bit weights under
    16-bit activations are widened first (weight-only quantisation).
    """

    weights: str
    activations: str
    kv: str

    @property
    def compute(self) -> str:
        """Type in which GEMMs are computed."""
        return self.activations

    @property
    def output(self) -> str:
        """Type of a GEMM's result and of the residual stream: 16-bit whatever the operands."""
        if self.activations in ("bf16", "fp16", "fp32", "tf32"):
            return self.activations
        return "fp16" if self.kv == "fp16" else "bf16"


_ACTIVATIONS = ("fp32", "tf32", "bf16", "fp16", "fp8", "int8", "fp4")
_WEIGHTS = (*_ACTIVATIONS, "int4")
_KV = ("fp32", "bf16", "fp16", "fp8", "int8", "fp4")


def precision(
    where: str, dtype: str = "bf16", weights: str | None = None, activations: str | None = None, kv: str | None = None
) -> Precision:
    """Return the precision that ``dtype`` (the default of all three) and its overrides state; raises InputError.

    ``dtype=int4`` means 4-bit weights under bf16 activations (weight-only); the KV cache keeps 16 bits unless asked.
    """
    _check(where, "dtype", dtype, _WEIGHTS)
    acts = activations or ("bf16" if dtype == "int4" else dtype)
    _check(where, "activations", acts, _ACTIVATIONS)
    result = Precision(weights or dtype, acts, kv or _default_kv(acts))
    _check(where, "weights", result.weights, _WEIGHTS)
    _check(where, "kv", result.kv, _KV)
    if BITS[result.weights] == BITS[acts] and result.weights != acts:
        raise InputError(
            f"{where}: weights={result.weights} under activations={acts}: no matrix instruction multiplies the two; "
            "give one type for both, or narrower weights"
        )
    if BITS[result.kv] > BITS[result.output]:
        raise InputError(f"{where}: kv={result.kv} is wider than the {result.output} that attention computes in")
    if BITS[result.weights] > BITS[acts]:
        raise InputError(
            f"{where}: weights={result.weights} under activations={acts}: weights may not be wider than activations"
        )
    return result


def _default_kv(activations: str) -> str:
    """Type of the KV cache unless asked for: 16 bits, or the activations' where those are wider."""
    if BITS[activations] == 32:
        return "fp32"
    return activations if BITS[activations] == 16 else "bf16"


def _check(where: str, key: str, value: str, names: tuple[str, ...]) -> None:
    if value not in names:
        raise InputError(f"{where}: {key}={value} is not a data type for it; {accepted(value, names)}")
