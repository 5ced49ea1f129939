"""Command that predicts large systems from small ones: scale."""

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console

from dse.cli.app import Json, app, print_json


@app.command
def scale(
    table: Path,
    /,
    *,
    small: float | None = None,
    large: float | None = None,
    out: Annotated[Path | None, Parameter(name=["-o", "--out"], help="HTML page to write.")] = None,
    json_: Json = False,
) -> None:
    """Predict large GPUs from two small ones and a miss-rate curve, by scale models and six extrapolations.

    Writes a page with performance against size, errors and simulation time (by default scale-TABLE.html, here).

    Parameters
    ----------
    table:
        Spreadsheet (.xlsx) or CSV: benchmark, size (or #SM, #Chiplet), ipc, mpki; f_mem where a cliff is crossed;
        simulation_time_s and scaling (strong, weak) if known. A row without ipc is a size to predict.
    small:
        Size of the small scale model; with --large. Without both, the two smallest sizes of each sheet.
    large:
        Size of the large scale model.
    """
    from dse.reports.common.page_parts import check_writable
    from dse.reports.scale.data import scaling_notes
    from dse.reports.scale.page import write_scaling_page
    from dse.reports.scale.terminal import print_scaling
    from dse.scaling.scale import scale as answer_scale

    page = out or Path(f"scale-{table.stem}.html")
    check_writable(page, table)
    answer = answer_scale(table, small, large)
    write_scaling_page(answer, page)
    if json_:
        for note in scaling_notes(answer):
            print(f"dse: {note}", file=sys.stderr)
        print_json(answer.document())
    else:
        print_scaling(answer, Console())
        print(f"\nThe page with the plots: {page}")
