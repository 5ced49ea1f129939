"""``dse search`` in the terminal: progress while it runs, then how it was searched above the table of the front."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.status import Status

from dse.report.terminal import front_table
from dse.search.search import SearchResult


@contextmanager
def searching() -> Iterator[Callable[[int, int, float], None]]:
    """Show evaluations, their rate, the front and its hypervolume on stderr; yields a function to call with them."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda count, members, volume: None
        return
    with Status("compiling", console=console) as status:
        first: list[tuple[float, int]] = []

        def show(count: int, members: int, volume: float) -> None:
            first.append((time.perf_counter(), count)) if not first else None
            passed = time.perf_counter() - first[0][0]
            rate = f"{(count - first[0][1]) / passed:,.0f}/s" if passed > 0 else ""
            status.update(f"{count:,} evaluations {rate}, {members:,} on the front, hypervolume {volume:.4f}")

        yield show


def print_search(found: SearchResult, console: Console, rows: int = 12) -> None:
    """Print what was evaluated and how, and the front."""
    size = f"{found.result.space.size:,}" if found.result.space.size < 1e9 else f"{found.result.space.size:.3g}"
    restored = f", {found.restored:,} of them from the storage" if found.restored else ""
    console.print(
        f"{size} designs, {found.evaluations:,} evaluations{restored} by {found.sampler} (seed {found.seed}), "
        f"{found.rate:,.0f}/s; hypervolume {found.hypervolume:.4f} (box of the first batch's front, reference 1.1)",
        markup=False, highlight=False,
    )  # fmt: skip
    if found.repeated:
        console.print(f"{found.repeated:,} designs evaluated again for the table: the storage keeps no results",
                      markup=False, highlight=False, style="dim")  # fmt: skip
    if found.refinement:
        console.print(found.refinement.sentence(), markup=False, highlight=False)
    front_table(found.result, console, rows)
