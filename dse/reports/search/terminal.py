"""``dse search`` in the terminal: progress while it runs, then how it was searched above the table of the front."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

from dse.explanation.assumed_effects import AssumedEffects
from dse.explanation.axis_verdicts import AxisVerdicts
from dse.pareto.search import default_evaluations
from dse.pareto.search_result import HYPERVOLUME_OF, SearchResult
from dse.reports.common.terminal_parts import say
from dse.reports.sweep.terminal import print_front
from dse.space.space import Space


@contextmanager
def searching(
    space: Space, evaluations: int | None = None, seconds: float | None = None
) -> Iterator[Callable[[int, int, float], None]]:
    """Show evaluations, their rate, the front, its hypervolume and the time left on stderr, where it is a terminal.

    Yields a function to call with evaluations done, members of the front and hypervolume. ``evaluations`` and
    ``seconds`` as :func:`dse.pareto.search.search` takes them: what is used up first tells the time left.
    """
    console = Console(stderr=True)
    if evaluations is None and seconds is None:
        evaluations = default_evaluations(space)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f} %"))
    with Progress(
        *columns, TimeRemainingColumn(), console=console, disable=not console.is_terminal, transient=True
    ) as bar:
        task = bar.add_task("compiling", total=1.0)
        first: list[tuple[float, int]] = []

        def show(count: int, members: int, volume: float) -> None:
            if not count:
                return
            now = time.perf_counter()
            first.append((now, count)) if not first else None
            passed = now - first[0][0]
            rate = f" {(count - first[0][1]) / passed:,.0f}/s" if passed > 0 else ""
            shares = [count / evaluations] if evaluations else []
            shares += [passed / seconds] if seconds else []
            text = f"{count:,} evaluations{rate}, {members:,} on the front, hypervolume {volume:.4f}"
            bar.update(task, completed=min(max(shares), 1.0), description=text)

        yield show


def print_search(
    search: SearchResult,
    console: Console,
    rows: int = 12,
    assumed: AssumedEffects | None = None,
    verdicts: AxisVerdicts | None = None,
    notes: bool = False,
) -> None:
    """Print what was evaluated and how, the front, what each axis is worth, and the ``assumed`` numbers that decide."""
    size = f"{search.result.space.size:,}" if search.result.space.size < 1e9 else f"{search.result.space.size:.3g}"
    restored = f", {search.restored:,} of them from the storage" if search.restored else ""
    console.print(
        f"{size} designs, {search.evaluations:,} evaluations{restored} by {search.sampler} (seed {search.seed}), "
        f"{search.rate:,.0f}/s; hypervolume {search.hypervolume:.4f} ({HYPERVOLUME_OF})",
        markup=False,
        highlight=False,
    )
    if search.repeated:
        console.print(
            f"{search.repeated:,} designs evaluated again for the table: the storage keeps no results",
            markup=False,
            highlight=False,
            style="dim",
        )
    if search.refinement:
        say(console, search.refinement.sentence())
    print_front(search.result, console, rows, assumed, verdicts, notes)
