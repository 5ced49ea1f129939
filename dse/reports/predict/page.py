"""One self-contained HTML page of ``dse predict``: the answer, inlier ratios, the ranking of the predictors."""

from html import escape
from pathlib import Path

import pandas as pd

from dse.base.skipped_rows import lines
from dse.prediction.predict import PredictAnswer
from dse.prediction.quantities import TIME
from dse.prediction.transfer import Transfer
from dse.reports.common.page_parts import document, figure_section, note, row, section, table, write_document
from dse.reports.predict import data as predict_data
from dse.reports.predict import figures as predict_figures


def write_predict_page(answer: PredictAnswer, path: Path) -> None:
    """Write the page; it gets its name only when it is whole."""
    write_document(path, predict_page_html(answer))


def predict_page_html(answer: PredictAnswer) -> str:
    """Return the page as one HTML document that loads nothing."""
    what = "" if answer.quantity is TIME else f"{answer.quantity.name} of "
    title = f"{what}{answer.target} predicted from {Path(answer.table).name}"
    sentences = "".join(f"<p>{escape(sentence)}</p>" for sentence in answer.sentences())
    notes = "".join(map(note, (*answer.notes, *lines(answer.skipped))))
    parts = [f"<h1>{escape(title)}</h1>", f'<section class="answer">{sentences}</section>', notes]
    for number, ((op, dtype), transfer) in enumerate(answer.transfers.items()):
        parts += _operator(f"{op} {dtype}", transfer, number)
    for name, rows in answer.studies.items():
        if rows:
            parts.append(section("", STUDIES[name], _table(pd.json_normalize(rows))))
    return document(title, "\n".join(parts))


STUDIES = {
    "feature_study": "Features removed: error of the chosen predictor on the target [%]",
    "versions": "One software version predicting another: error [%]",
    "fewer_sms": "Fewer SMs predicting more: error [%]",
    "host_counters": "A host's counters among the features, and without them: error with shape families left out [%]",
    "host_to_target": "Host to target, shape families left out: the host's measured time is a feature",
}


def _operator(name: str, transfer: Transfer, number: int) -> list[str]:
    curves = predict_figures.inlier_figure(predict_data.inlier_curves(transfer))
    devices = ", ".join(transfer.train.devices)
    counts = [f"{len(rows.y):,} rows" for rows in (transfer.train, transfer.test)]
    learned = f"Learned on {counts[0]} of {devices}, judged on {counts[1]} of the target."
    features = [{"mode": mode, **one} for mode, rows in transfer.ranking.items() for one in rows]
    chosen = f"{transfer.chosen.name} ({transfer.chosen.mode})"
    against = predict_figures.predicted_figure(
        predict_data.predicted_against_measured(transfer), chosen, transfer.train.quantity
    )
    equal = "On the line prediction and measurement are equal; between the dotted lines they are within 20 %."
    return [
        figure_section(f"{name}: predicted against measured", equal, against, f"figure-predicted-{number}"),
        figure_section(f"{name}: inlier ratio", learned, curves, f"figure-inliers-{number}"),
        section("", f"{name}: baselines", _table(predict_data.baseline_table(transfer))),
        section(
            "",
            f"{name}: predictors by E_out",
            note(
                "Errors in percent. E_out, families and devices (or blocks of sizes) left out: on the devices "
                "that were learned from. I(t): rows of the target within t %."
            ),
            _table(predict_data.ranking(transfer)),
        ),
        section(
            "",
            f"{name}: features",
            note("Share of a forest's decrease in squares; p-value of relative least squares."),
            _table(pd.DataFrame(features)),
        ),
    ]


def _table(frame: pd.DataFrame) -> str:
    head = "".join(f'<th scope="col" class="n">{escape(str(column))}</th>' for column in frame.columns)
    return table(head, [row("".join(map(_cell, values))) for values in frame.itertuples(index=False)])


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f'<td class="n">{"" if value != value else f"{value:.3g}"}</td>'
    return f"<td>{'' if value is None else escape(str(value))}</td>"
