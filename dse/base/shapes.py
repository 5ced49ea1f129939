"""Shapes of the arrays in records and in calls of models, which the test run checks (jaxtyping)."""

from typing import TYPE_CHECKING, TypeAlias

from jax import Array

if TYPE_CHECKING:
    Scalar: TypeAlias = Array
    OnBatch: TypeAlias = Array
else:
    from jaxtyping import ArrayLike, Num

    Scalar = Num[ArrayLike, ""]
    """One number: of one kernel on one GPU."""

    OnBatch = Num[ArrayLike, "*#batch"] | None
    """A field of a record: a number, or an array whose shape broadcasts with those of the record's other fields.

    None in a record of axes, where a field does not vary.
    """
