"""Progress bars: on stderr, with rate and time left, silent when stderr is no terminal."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text


class _Rate(ProgressColumn):
    def render(self, task: Task) -> Text:
        """Designs a second."""
        return Text(f"{task.speed:,.0f}/s" if task.speed else "compiling", style="progress.data.speed")


@contextmanager
def doing(what: str, minutes: bool = False) -> Iterator[None]:
    """Say what is being done while it lasts; where that is ``minutes``, in a line of a log too."""
    console = Console(stderr=True)
    if console.is_terminal:
        with console.status(what):
            yield
    else:
        if minutes:
            console.print(what, markup=False)
        yield


@contextmanager
def counting(total: int, what: str) -> Iterator[Callable[[int], None]]:
    """Show a bar over ``total`` of ``what``; yields a function to call with how many were done."""
    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f} %"))
    with Progress(
        *columns, _Rate(), TimeRemainingColumn(), console=console, disable=not console.is_terminal, transient=True
    ) as bar:
        task = bar.add_task(what, total=total)
        yield lambda count: bar.update(task, advance=count)
