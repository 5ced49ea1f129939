"""Command that predicts a GPU from measurements of others: predict."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console

from dse.cli.app import Json, app, print_json, print_notes


@app.command
def predict(
    table: Path,
    /,
    *,
    target: str,
    host: str | None = None,
    predictors: str | None = None,
    out: Annotated[Path | None, Parameter(name=["-o", "--out"], help="HTML page to write.")] = None,
    json_: Json = False,
) -> None:
    """Predict a GPU's kernel times from measurements of other generations, by statistics with and without the model.

    Writes a page with the predictors' ranking and inlier ratios (by default predict-TABLE-TARGET.html, here). Some
    minutes: every predictor is fitted in up to three modes and in every fold.

    Parameters
    ----------
    table:
        CSV of measured operators: device, op, dtype, latency_us, and the columns of their shapes.
    target:
        GPU to predict: any of its names; its rows, and those of its generation, are left out of training.
    host:
        GPU whose measured times of the same shapes are features too: judged on shape families left out.
    predictors:
        Names with commas between, as nnls,forest; by default all.
    """
    from dse.base.compilation import cache_compilations
    from dse.prediction.predict import plan
    from dse.prediction.predict import predict as answer_predict
    from dse.prediction.predictors import PREDICTORS
    from dse.prediction.table import read_measured
    from dse.reports.common.page_parts import check_writable
    from dse.reports.common.progress import counting
    from dse.reports.predict.page import write_predict_page
    from dse.reports.predict.terminal import print_predict

    cache_compilations()
    check_writable(out, table)
    measured = read_measured(table)
    names = PREDICTORS if predictors is None else tuple(name.strip() for name in predictors.split(","))
    with counting(plan(measured), "fitting and leaving out") as progress:
        answer = answer_predict(measured, target, host, progress=progress, predictors=names)
    page = out or Path(f"predict-{table.stem}-{answer.target}.html")
    write_predict_page(answer, page)
    if json_:
        print_notes(*answer.notes)
        print_json(answer.document())
    else:
        print_predict(answer, Console())
        print(f"\nThe page with the plots: {page}")
