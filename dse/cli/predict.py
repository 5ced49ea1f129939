"""Command that predicts a GPU from measurements of others: predict."""

from pathlib import Path

from rich.console import Console

from dse.cli.app import Json, app, print_json, print_notes
from dse.cli.pages import Page, page_file, say_page


@app.command
def predict(
    table: Path,
    /,
    *,
    target: str,
    quantity: str = "time",
    host: str | None = None,
    counters: Path | None = None,
    predictors: str | None = None,
    out: Page = None,
    json_: Json = False,
) -> None:
    """Predict a GPU's kernel times, or watts, from other generations, by statistics with and without the model.

    Writes a page with the predictors' ranking and inlier ratios (by default predict-TABLE-TARGET.html, here). Some
    minutes: every predictor is fitted in up to three modes and in every fold.

    Parameters
    ----------
    table:
        CSV of measured operators: device, op, dtype, latency_us, and the columns of their shapes; for power power_w.
    target:
        GPU to predict: any of its names; its rows, and those of its generation, are left out of training.
    quantity:
        What is predicted: time, or power, of products, attention and runs of whole networks.
    host:
        GPU whose measured times of the same shapes are features too: judged on shape families left out.
    counters:
        Export of Nsight Compute of a host: its counters of the same shapes are features too.
    predictors:
        Names with commas between, as nnls,forest; by default all.
    """
    from dse.base.kept.between_commands import cache_compilations
    from dse.measured.nsight_export import files_of
    from dse.prediction.predict import plan
    from dse.prediction.predict import predict as answer_predict
    from dse.prediction.predictors import PREDICTORS
    from dse.prediction.quantities import quantity_named
    from dse.prediction.table import read_measured
    from dse.reports.common.progress import counting
    from dse.reports.predict.page import write_predict_page
    from dse.reports.predict.terminal import print_predict

    cache_compilations()
    asked = None if out is None else page_file(out, table, *(files_of(counters) if counters else ()))
    measured = read_measured(table, quantity_named(quantity))
    names = PREDICTORS if predictors is None else tuple(name.strip() for name in predictors.split(","))
    with counting(plan(measured), "fitting and leaving out") as progress:
        answer = answer_predict(
            measured, target, host, progress=progress, predictors=names, quantity=quantity, counters=counters
        )
    of = "" if quantity == "time" else f"{quantity}-"
    page = asked or Path(f"predict-{of}{table.stem}-{answer.target}.html")
    write_predict_page(answer, page)
    if json_:
        print_notes(*answer.notes)
        print_json(answer.document())
    else:
        print_predict(answer, Console())
    say_page(page, json_)
