"""Scale-model prediction of SeyyedAghaei, Naderan-Tahan and Eeckhout (HPCA 2024), and extrapolations to compare with.

Every method is a function of the two scale models, the cliffs beyond them, and the target's size. Performance is IPC
[instruction/cycle], or anything else that is proportional to the work done in a cycle.
"""

from collections.abc import Callable, Sequence
from math import exp, log
from typing import NamedTuple

from dse.base.errors import InputError
from dse.scaling.cliffs import Cliff


class ScaleModels(NamedTuple):
    """The two scale models: sizes ``n_S`` < ``n_L`` [SM or chiplet] and their performance ``IPC_S``, ``IPC_L``."""

    n_S: float  # noqa: N815
    IPC_S: float
    n_L: float  # noqa: N815
    IPC_L: float

    @property
    def ratio(self) -> float:
        """n_L / n_S: the step of the recursion (2 in the paper)."""
        return self.n_L / self.n_S


Method = Callable[[ScaleModels, Sequence[Cliff], float], float]
_Grow = Callable[[float, float, float], float]


def equations(models: ScaleModels, cliffs: Sequence[Cliff], target: float) -> float:
    """Return the target's IPC by the equations as printed; a second cliff starts from the first's far side."""
    C = (models.IPC_L / models.IPC_S) / models.ratio  # Eq. (1)

    def grow(ipc: float, at: float, size: float) -> float:
        return ipc * (size / at) * C  # Eq. (2); Eq. (4) past a cliff

    def cross(ipc: float, at: float, cliff: Cliff) -> float:
        return ipc * (cliff.after / at) / (1.0 - _waiting(cliff))  # Eq. (3)

    return _walk(models, cliffs, target, grow, cross)


def recursion(models: ScaleModels, cliffs: Sequence[Cliff], target: float) -> float:
    """Return the target's IPC by the recursion that produced the published figures: the correction compounds.

    Steps of the scale models' ratio; sizes between two steps take a fraction of one. Raises InputError where the
    larger model is so slow that the correction is no longer positive.
    """
    c0 = 2.0 - models.ratio * models.IPC_S / models.IPC_L  # not C of Eq. (1): docs/model/scaling.md 3
    if c0 <= 0:
        raise InputError(
            "the large scale model is no faster than half of proportional: the recursion has no correction"
        )
    return _compounding(models, cliffs, target, c0)


def recursion_ratio(models: ScaleModels, cliffs: Sequence[Cliff], target: float) -> float:
    """Return the target's IPC by the recursion with the correction of Eq. (1)."""
    return _compounding(models, cliffs, target, (models.IPC_L / models.IPC_S) / models.ratio)


def proportional(models: ScaleModels, cliffs: Sequence[Cliff], target: float) -> float:
    """Return IPC_S T / n_S."""
    return models.IPC_S * target / models.n_S


def linear(models: ScaleModels, cliffs: Sequence[Cliff], target: float) -> float:
    """Return a + b T through both models."""
    slope = (models.IPC_L - models.IPC_S) / (models.n_L - models.n_S)
    return models.IPC_L + slope * (target - models.n_L)


def power_law(models: ScaleModels, cliffs: Sequence[Cliff], target: float) -> float:
    """Return a T^b through both models; raises InputError where that is no number."""
    exponent = log(models.IPC_L / models.IPC_S) / log(models.ratio)
    try:
        return models.IPC_L * (target / models.n_L) ** exponent
    except OverflowError:
        raise InputError(f"the power law of the scale models gives no number at {target:g}") from None


def logarithmic(models: ScaleModels, cliffs: Sequence[Cliff], target: float) -> float:
    """Return a + b ln T through both models."""
    slope = (models.IPC_L - models.IPC_S) / log(models.ratio)
    return models.IPC_L + slope * log(target / models.n_L)


METHODS: dict[str, Method] = {
    "recursion": recursion,
    "equations": equations,
    "recursion_ratio": recursion_ratio,
    "proportional": proportional,
    "linear": linear,
    "power_law": power_law,
    "logarithmic": logarithmic,
}
"""Name -> method, the published one first."""

SEES_CLIFFS = ("recursion", "equations", "recursion_ratio")
SPREAD = (*SEES_CLIFFS, "linear", "power_law")
"""Methods that go by both models and can scale in proportion (a logarithm cannot). Past a cliff only those that see it
count."""


NOTHING = 0.01
"""Share of the large scale model's IPC below which an extrapolation has fallen to nothing."""


def falls_to_nothing(models: ScaleModels, ipc: float) -> bool:
    """Whether a method's IPC at a larger size is no prediction: below NOTHING of the large scale model's."""
    return ipc < NOTHING * models.IPC_L


def interval(models: ScaleModels, cliffs: Sequence[Cliff], target: float) -> tuple[float, float]:
    """Return the interval of the recursion at a size: low and high IPC, a factor to either side.

    The factor reaches the farthest of the methods of SPREAD and of scaling from the large model without a correction;
    those that fall to nothing do not count. It is a disagreement between methods, not a confidence level: how often
    the truth lay in it on the authors' table is in ``experiments/009_scale_model``. Raises InputError as the methods
    do.
    """
    at = recursion(models, cliffs, target)
    crossed = any(target > cliff.before for cliff in cliffs)
    others = [METHODS[name](models, cliffs, target) for name in (SEES_CLIFFS if crossed else SPREAD)]
    others.append(_compounding(models, cliffs, target, 1.0))
    factor = max(max(other / at, at / other) for other in others if not falls_to_nothing(models, other))
    return at / factor, at * factor


def _compounding(models: ScaleModels, cliffs: Sequence[Cliff], target: float, c: float) -> float:
    """Steps k = 1, 2, ... multiply by ratio x c^k; the step past a cliff also by 1/(1 - f_mem), and k starts again."""

    def grow(ipc: float, at: float, size: float) -> float:
        steps = log(size / at) / log(models.ratio)
        try:
            return ipc * (size / at) * c ** (steps * (steps + 1) / 2)
        except OverflowError:
            raise InputError(f"the ratio of the scale models gives no number at {size:g}") from None

    def cross(ipc: float, at: float, cliff: Cliff) -> float:
        return grow(ipc, at, cliff.after) / (1.0 - _waiting(cliff))

    return _walk(models, cliffs, target, grow, cross)


def _walk(
    models: ScaleModels,
    cliffs: Sequence[Cliff],
    target: float,
    grow: _Grow,
    cross: Callable[[float, float, Cliff], float],
) -> float:
    """Grow from the large model to the target, across every cliff on the way."""
    at, ipc = models.n_L, models.IPC_L
    for cliff in cliffs:
        if cliff.before < models.n_L:
            raise InputError(
                "a cliff of the miss rate lies below the large scale model: it cannot stand for larger ones"
            )
        if target <= cliff.before:
            break
        past = cross(ipc, at, cliff)
        if target < cliff.after:
            return _on_the_cliff(cliff, grow(ipc, at, cliff.before) if cliff.before > at else ipc, past, target)
        at, ipc = cliff.after, past
    return ipc if target == at else grow(ipc, at, target)


def _on_the_cliff(cliff: Cliff, before: float, after: float, target: float) -> float:
    """Between the sizes around a cliff: the power law through both sides (the paper has no size there)."""
    share = log(target / cliff.before) / log(cliff.after / cliff.before)
    return exp((1 - share) * log(before) + share * log(after))


def _waiting(cliff: Cliff) -> float:
    if cliff.f_mem is None:
        raise InputError("a cliff of the miss rate needs f_mem of the large scale model, and the table gives none")
    return cliff.f_mem
