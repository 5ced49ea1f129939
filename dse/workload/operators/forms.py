"""Forms: two ways of doing the same with several operators, of which each design takes the faster as a whole."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from dse.hardware.capability import ANY_NEWER
from dse.workload.kernel import Interval, Kernel
from dse.workload.operator import Candidate, Operator
from dse.workload.operators.vector import vector_operator

NOTHING = "no kernel"
"""Label of what stands where a form has fewer kernels than another."""

NEVER = 1e-9
"""Share of a smallest kernel's time that stands for none: what adds up does not tell it from 0, and nothing divides
by 0."""


def either(first: str, ones: Sequence[Operator], second: str, others: Sequence[Operator]) -> list[Operator]:
    """Return the operators of two forms, named, as one list: the same number for both, their attentions in one place.

    Names and shapes are those of the ``first`` form; of the ``second`` the labels of its candidates state them. Where a
    form has no kernel, one stands that takes no time.
    """
    places = [next(i for i, o in enumerate(form) if o.kind.startswith("attention")) for form in (ones, others)]
    before, after = max(places), max(len(ones) - places[0], len(others) - places[1])
    filled = [
        [*[None] * (before - place), *form, *[None] * (after - len(form) + place)]
        for form, place in zip((ones, others), places, strict=True)
    ]
    return [_joined(first, one, second, other) for one, other in zip(*filled, strict=True)]


def usual_form(operators: Sequence[Operator]) -> list[Operator]:
    """Return the operators of the first form alone, as where others have measured one."""
    found = []
    for operator in operators:
        form = operator.forms[0]
        kept = tuple(candidate for candidate in operator.candidates if candidate.form == form)
        if not is_nothing(kept[0]):
            found.append(replace(operator, candidates=kept) if len(kept) < len(operator.candidates) else operator)
    return found


def is_nothing(candidate: Candidate) -> bool:
    """Return whether a candidate stands for no kernel."""
    return candidate.label.endswith(NOTHING)


def _joined(first: str, one: Operator | None, second: str, other: Operator | None) -> Operator:
    shown = one or other
    assert shown is not None  # a place is no longer than the longer form
    candidates = [*_of(first, one, ""), *_of(second, other, _told(other, shown))]
    return replace(shown, candidates=tuple(candidates))


def _told(operator: Operator | None, shown: Operator) -> str:
    """What tells an operator from the one by whose name it goes, for its labels."""
    return f"{operator.name} {operator.shape}, " if operator and operator is not shown else ""


def _of(form: str, operator: Operator | None, told: str) -> Iterator[Candidate]:
    if operator is None:
        yield Candidate(f"{form}: {NOTHING}", _nothing(), form)
        return
    for candidate in operator.candidates:
        yield Candidate(f"{form}: {told}{candidate.label}", candidate.kernel, form)


def _nothing() -> Kernel:
    """A kernel that every GPU runs in next to no time, and that moves nothing."""
    kernel = vector_operator("nothing", "copy", 1.0, 1.0, "bf16").candidates[0].kernel
    assert isinstance(kernel, Kernel)  # generated, never recorded
    none = dict.fromkeys(("cold_bytes", "warm_bytes", "write_bytes", "result_bytes", "l2_bytes"), 0.0)
    anywhere = {"compute_capability": 0.0, "capability_end": ANY_NEWER, "problem": (0.0,) * len(kernel.problem)}
    parts = {name: replace(part, repeats=NEVER * part.repeats) for name, part in _intervals(kernel)}
    return replace(kernel, **none, **anywhere, **parts, launches=NEVER, stretch=NEVER)


def _intervals(kernel: Kernel) -> Iterator[tuple[str, Interval]]:
    return zip(("start", "loop", "end"), kernel.intervals, strict=True)
