"""Command that predicts large systems from small ones: scale."""

from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from dse.base.errors import InputError
from dse.cli.app import Json, app, print_json, print_notes
from dse.cli.pages import Page, page_file, say_page

if TYPE_CHECKING:
    from dse.scaling.table import Sheet


@app.command
def scale(
    table: Path | None = None,
    /,
    *,
    trace: Path | None = None,
    gpu: str | None = None,
    small: float | None = None,
    large: float | None = None,
    out: Page = None,
    json_: Json = False,
) -> None:
    """Predict large GPUs from two small ones and a miss-rate curve, by scale models and six extrapolations.

    Writes a page with performance against size, errors and simulation time (by default scale-TABLE.html, here).

    Parameters
    ----------
    table:
        Spreadsheet (.xlsx) or CSV: benchmark, size (or #SM, #Chiplet), ipc, mpki; f_mem where a cliff is crossed;
        simulation_time_s and scaling (strong, weak) if known. A row without ipc is a size to predict.
    trace:
        Instead of a table: an Accel-Sim trace directory. Its kernels are timed on scale models of --gpu, which give
        IPC, miss-rate curve and f_mem; the GPU itself is the truth.
    gpu:
        With --trace, --small and --large: the GPU to predict, a name or a GPU TOML.
    small:
        Size of the small scale model; with --large. Without both, the two smallest sizes of each sheet.
    large:
        Size of the large scale model.
    """
    from dse.reports.scale.data import scaling_notes
    from dse.reports.scale.page import write_scaling_page
    from dse.reports.scale.terminal import print_scaling
    from dse.scaling.scale import scale as answer_scale

    given = table or trace
    if given is None or (table is not None and trace is not None):
        raise InputError("give a table, or --trace DIR with --gpu, --small and --large")
    page = page_file(out or Path(f"scale-{given.stem}.html"), given)
    answer = answer_scale(given if trace is None else _traced(trace, gpu, small, large), small, large)
    write_scaling_page(answer, page)
    if json_:
        print_notes(*scaling_notes(answer))
        print_json(answer.document())
    else:
        print_scaling(answer, Console())
    say_page(page, json_)


def _traced(trace: Path, gpu: str | None, small: float | None, large: float | None) -> "list[Sheet]":
    """A trace's kernels on scale models of a GPU."""
    from dse.scaling.from_trace import traced_sheet

    if gpu is None or small is None or large is None:
        raise InputError("--trace: give --gpu NAME, and the SMs of two scale models as --small and --large")
    return [traced_sheet(trace, gpu, int(small), int(large))]
