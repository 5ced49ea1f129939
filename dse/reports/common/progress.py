"""Progress bars: on stderr, with rate and time left, silent when stderr is no terminal."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text


def _lines(total: int, what: str, console: Console) -> Callable[[int], None]:
    """A function that prints how many are done and how long they took."""
    begun, done = perf_counter(), 0

    def tell(count: int) -> None:
        nonlocal done
        done += count
        said = f"dse: {what}: {done} of {total} done, {perf_counter() - begun:,.0f} s"
        console.print(said, markup=False, highlight=False, soft_wrap=True)

    return tell


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
def counting(total: int, what: str, log: bool = False) -> Iterator[Callable[[int], None]]:
    """Show a bar over ``total`` of ``what``; yields a function to call with how many were done.

    With ``log``, what takes minutes says each part in a line of a log, too.
    """
    console = Console(stderr=True)
    if log and not console.is_terminal:
        yield _lines(total, what, console)
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f} %"))
    with Progress(
        *columns, _Rate(), TimeRemainingColumn(), console=console, disable=not console.is_terminal, transient=True
    ) as bar:
        task = bar.add_task(what, total=total)
        yield lambda count: bar.update(task, advance=count)
