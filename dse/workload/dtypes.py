"""Precision of a network: the data types of its weights, activations and KV cache."""

from dataclasses import dataclass

from dse.base.errors import InputError, accepted
from dse.hardware.data_types import BITS, canonical, data_types, with_role


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
        if BITS[self.activations] >= 16:
            return self.activations
        return "fp16" if self.kv == "fp16" else "bf16"


def precision(
    where: str, dtype: str = "bf16", weights: str | None = None, activations: str | None = None, kv: str | None = None
) -> Precision:
    """Return the precision that ``dtype`` (the default of all three) and its overrides state; raises InputError.

    ``dtype=int4`` means 4-bit weights under bf16 activations (weight-only); the KV cache keeps 16 bits unless asked.
    """
    dtype = _named(where, "dtype", dtype, "weights")
    acts = _named(where, "activations", activations or data_types()[dtype].computes_in, "activations")
    own = _named(where, "weights", weights or dtype, "weights")
    result = Precision(own, acts, _named(where, "kv", kv or _default_kv(acts), "kv"))
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


def _named(where: str, key: str, value: str, role: str) -> str:
    """The data type of a name that ``role`` may have; raises InputError."""
    name, names = canonical(value), with_role(role)
    if name not in names:
        raise InputError(f"{where}: {key}={value} is not a data type for it; {accepted(value, names)}")
    return name
