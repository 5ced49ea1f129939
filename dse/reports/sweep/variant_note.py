"""What a reader must know of a space with several base GPUs or settings of workloads."""

from dse.reports.common.words import joined
from dse.space.setting_axes import BASE
from dse.space.space import Space


def variant_note(space: Space) -> list[str]:
    """Return which variant the baseline is, and what is told of it alone; nothing of a plain space."""
    if space.variants is None:
        return []
    numbers = space.variants.numbers(space.variants.home)
    settings = [f"{a.name} = {a.attribute.decode(numbers[a.name])}" for a in space.variants.axes if a.name != BASE]
    home = joined([space.base.title, *settings])
    return [
        f"The baseline is {home}; verdicts of other axes are told around it alone, base. in an expression is each "
        "design's own base GPU, and assumed numbers are not varied."
    ]
