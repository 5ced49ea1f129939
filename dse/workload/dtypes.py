"""Precision of a network: the data types of its weights, activations and KV cache."""

from dataclasses import dataclass
from functools import cache

from dse.base.errors import InputError, accepted
from dse.base.package_tables import read_table
from dse.hardware.data_types import BITS, canonical, data_types, with_role


@dataclass(frozen=True)
class Precision:
    """Data types of a network's weights, activations and KV cache.

    ``compute`` is the type of the tensor instructions: that which multiplies the activations; narrower weights are
    widened first (weight-only quantisation under 16-bit activations).
    """

    weights: str
    activations: str
    kv: str

    @property
    def compute(self) -> str:
        """Type in which GEMMs are computed."""
        return data_types()[self.activations].multiplied_as

    @property
    def output(self) -> str:
        """Type of a GEMM's result and of the residual stream: 16-bit whatever the operands."""
        if BITS[self.activations] >= 16:
            return self.activations
        return "fp16" if self.kv == "fp16" else "bf16"


@dataclass(frozen=True)
class NamedPrecision:
    """Types of weights and activations that go by one name, and how the activations are quantised."""

    weights: str
    activations: str
    quantises: str  # "", static, token or block: the pass over the activations before each product


@cache
def precisions() -> dict[str, NamedPrecision]:
    """Return the pairs of types that have a name of their own, by each of their names."""
    found = {}
    for row in read_table("schema/precisions.csv"):
        for name in (row["precision"], *filter(None, row["spellings"].split(";"))):
            found[name] = NamedPrecision(row["weights"], row["activations"], row["pass"])
    return found


def precision(
    where: str, dtype: str = "bf16", weights: str | None = None, activations: str | None = None, kv: str | None = None
) -> Precision:
    """Return the precision that ``dtype`` (the default of all three) and its overrides state; raises InputError.

    ``dtype=int4`` means 4-bit weights under bf16 activations (weight-only); names of pairs as ``w4a16`` or
    ``fp8_block`` stand for both. The KV cache keeps 16 bits unless asked.
    """
    if dtype in precisions():
        named = precisions()[dtype]
        dtype, activations = named.weights, activations or named.activations
    dtype = _named(where, "dtype", dtype, "weights")
    acts = _named(where, "activations", activations or data_types()[dtype].computes_in, "activations")
    own = _named(where, "weights", weights or dtype, "weights")
    result = Precision(own, acts, _named(where, "kv", kv or _default_kv(acts), "kv"))
    if BITS[result.weights] == BITS[acts] and result.weights != result.compute:
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
        known = (*names, *precisions()) if key == "dtype" else names
        raise InputError(f"{where}: {key}={value} is not a data type for it; {accepted(value, known)}")
    return name
