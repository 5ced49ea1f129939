"""One self-contained HTML page of ``dse validate --quantity time``: how far off, where, and by which cause."""

from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from dse.base.brief import count_of
from dse.reports.common.page_parts import (
    document,
    drawn,
    folded_notes,
    note,
    row,
    section,
    swatches,
    table,
    write_document,
)
from dse.reports.common.words import MISSING, REGIMES, joined
from dse.reports.validate import data as validate_data
from dse.reports.validate import figures as validate_figures
from dse.validation.baselines import FITTED_ROOFLINE
from dse.validation.time import TimeValidation

COLUMNS = (
    ("rows", "n", "{:,}"),
    ("mean error [%]", "mape", "{:.1f}"),
    ("bias", "bias", "{:.2f}"),
    ("within 10 % [%]", "inlier_10", "{:.0f}"),
    ("within 20 % [%]", "inlier_20", "{:.0f}"),
    ("sheet roofline [%]", "roofline_mape", "{:.1f}"),
    ("fitted roofline [%]", "roofline3_mape", "{:.1f}"),
    ("noise floor [%]", "noise_floor", "{:.1f}"),
    ("in 80 % interval [%]", "interval_80_coverage", "{:.0f}"),
)
"""Heading, key of a group, format."""

FEW = 20
"""Rows that a group needs to be named nearest or farthest."""


BEWARE = ("uncalibrated", "training error", "was fitted on")
"""Words of the notes that stand beside the answer."""


def write_validation_page(validation: TimeValidation, path: Path) -> None:
    """Write the page; it gets its name only when it is whole. Same validation, same bytes."""
    write_document(path, validation_page_html(validation))


def validation_page_html(validation: TimeValidation) -> str:
    """Return the page as one HTML document that loads nothing."""
    title = f"{Path(validation.table).name}: predicted against measured time"
    parts = [
        _head(validation, title),
        _scatter(validation),
        _groups(validation),
        _shapes(validation),
        _worst(validation),
        _predicted(validation),
    ]
    return document(title, "\n".join(filter(None, [*parts, _skipped(validation)])))


def _head(validation: TimeValidation, title: str) -> str:
    figures, groups = validate_data.overall(validation), validate_data.whole_groups(validation)
    devices = groups["device"].nunique()
    on = f"{devices} devices" if devices > 1 else str(groups["device"].iloc[0])
    fitted = f", one of three numbers fitted to the same device's other shapes {figures['three']:.1f} %"
    off = f"{figures['mean']:.1f} % off on average, {figures['median']:.1f} % at the median"
    if len(validation.rows) == 1:
        off = f"{figures['mean']:.1f} % off"
    verb = "is" if len(validation.rows) == 1 else "are"
    fitted = "" if np.isnan(figures["three"]) else fitted
    sentences = [
        f"{rows_text(len(validation.rows))} of {on} {verb} predicted {off}; geometric bias {figures['bias']:.2f}.",
        f"The roofline of the data sheet is {figures['sheet']:.0f} % off{fitted}.",
    ]
    covered = groups[groups["interval_80_coverage"].notna()]
    if 0 < len(covered) < len(groups):
        mean = (covered["mape"] * covered["n"]).sum() / covered["n"].sum()
        sentences.append(
            f"Of what the calibrations have been judged on, {rows_text(covered['n'].sum())}: {mean:.1f} %."
        )
    large = groups[groups["n"] >= FEW]
    if len(large) > 1:
        best, least = large.loc[large["mape"].idxmin()], large.loc[large["mape"].idxmax()]
        sentences.append(
            f"Nearest: {_named(best)} with {best['mape']:.1f} %; farthest: {_named(least)} with {least['mape']:.1f} %."
        )
    beware = [
        n
        for n in validation.notes
        if not n.startswith(FITTED_ROOFLINE) and (any(word in n for word in BEWARE) or n.startswith("whole networks"))
    ]
    answer = "\n".join(f"<p>{escape(_spaced(text))}</p>" for text in sentences)
    caveats = f"\n{folded_notes([_spaced(text) for text in beware], _gist(beware))}" if beware else ""
    heading = f"<header><h1>{escape(title)}</h1></header>"
    return f'{heading}\n<section id="answer" class="answer">\n{answer}\n</section>{caveats}'


def _gist(beware: list[str]) -> str:
    """The notes that change how the mean is read, counted: errors of training, and devices without a calibration."""
    devices = [text for text in beware if not text.startswith("whole networks")]
    trained, bare = (sum(word in text for text in devices) for word in ("training error", "uncalibrated"))
    parts = [f"{count_of(trained, 'device')} on rows that the calibration was fitted on"] if trained else []
    return joined([*parts, *([f"{count_of(bare, 'device')} uncalibrated"] if bare else [])])


def rows_text(count: int) -> str:
    """Return how many rows there are, in words."""
    return "1 row" if count == 1 else f"{count:,} rows"


def _named(group: Any) -> str:
    return f"{group['op']} {group['dtype']} on {group['device']}"


def _spaced(text: str) -> str:
    return text.replace(" %", "\u00a0%")


def _scatter(validation: TimeValidation) -> str:
    points = validate_data.points(validation)
    few = len(points) < len(validation.rows)
    shown = f"{len(points):,} of {len(validation.rows):,} rows, evenly over measured time" if few else "Every row"
    small_print = note(
        f"{shown}. Dotted: a fifth too long, a fifth too short. Click an operator in the legend to show or hide it."
    )
    return section(
        "points",
        "Predicted against measured",
        small_print,
        drawn(validate_figures.scatter_figure(points), "figure-points"),
        drawn(validate_figures.ratio_figure(points), "figure-ratio"),
    )


def _groups(validation: TimeValidation) -> str:
    small_print = note(
        "Error: mean |predicted / measured - 1|; bias: geometric mean of predicted / measured. Fitted roofline: "
        "overhead and two efficiencies of the device, fitted to its other shape families. Noise "
        "floor: mean deviation of one repeat from the row's time, from the range of the table's own repeats (taken as "
        "normal); – where it has none, near 0 where a clock's ticks hide it. Regimes are of measured time, by side of "
        "the data sheet's roofline. Green: nearer than both rooflines; red: farther than one of them."
    )
    names = ("device", "operator", "regime")
    head = "".join(f'<th scope="col">{name}</th>' for name in names)
    head += "".join(f'<th scope="col" class="n">{escape(_spaced(title))}</th>' for title, _, _ in COLUMNS)
    rows, last = [], ("", "")
    for g in validation.document["groups"]:
        this = (g["device"], f"{g['op']} {g['dtype']}")
        cells = [f'<td class="w">{escape(a if this != last else "")}</td>' for a in this]
        cells.append(f'<td class="w">{escape(REGIMES[g["regime"]])}</td>')
        rows.append(row("".join(cells) + "".join(_cell(g, *column[1:]) for column in COLUMNS), g["regime"] == "all"))
        last = this
    fitted = [note(n + ".") for n in validation.notes if n.startswith(FITTED_ROOFLINE)]
    return section("groups", "Errors by device, operator and regime", small_print, *fitted, table(head, rows))


def _cell(group: dict[str, Any], key: str, form: str) -> str:
    if group[key] is None:
        return f'<td class="n">{MISSING}</td>'
    mark = ""
    if key == "mape":
        rooflines = [group[name] for name in ("roofline_mape", "roofline3_mape") if group[name] is not None]
        mark = " better" if group[key] <= min(rooflines) else " worse"
    return f'<td class="n{mark}">{form.format(group[key])}</td>'


def _shapes(validation: TimeValidation) -> str:
    parts = []
    for i, (family, frame) in enumerate(validate_data.shape_errors(validation).items()):
        parts += [f"<h3>{escape(family)}</h3>", drawn(validate_figures.shape_figure(frame), f"figure-shape-{i}")]
    if not parts:
        return ""
    small_print = note(
        "Lines: medians of bins of equally many rows; bands: 80 % of the rows. A bin has rows of many other sizes. "
        f"Of fewer than {validate_data.FEWEST_BINNED} rows each is a dot."
    )
    return section("shapes", "Error over shape", small_print, *parts)


def _worst(validation: TimeValidation) -> str:
    frame = validate_data.worst_stacks(validation)
    count = frame["place"].nunique()
    small_print = note(
        "What each predicted time is made of, in the unit at its right, as a share of the longer of predicted and "
        "measured time; the black mark is the measured time. A bar beyond the mark is predicted too long, one that "
        "ends before it too short. Of a kernel that runs while the host still works, what outlasts the host is drawn."
    )
    legend = {
        part: (colour, validate_data.MEANINGS[part])
        for part, colour in validate_figures.PART_COLOURS.items()
        if part in set(frame["part"])
    }
    figure = drawn(validate_figures.worst_stacks_figure(frame), "figure-worst")
    title = "The row that is farthest off" if count == 1 else f"The {count} rows that are farthest off"
    return section("worst", title, small_print, figure, swatches(legend))


def _predicted(validation: TimeValidation) -> str:
    head = "".join(f'<th scope="col">{h}</th>' for h in ("device", "rows", "GPU", "model", "calibration", "fitted on"))
    rows = []
    for p in validation.predictors:
        fitted = (
            ", ".join(p.fitted_on) + (" (this GPU among them)" if p.fitted_on_it else "") if p.fitted_on else MISSING
        )
        cells = (p.device, f"{p.rows:,}", p.gpu, p.model, p.calibration, fitted)
        rows.append(row("".join(f"<td>{escape(cell)}</td>" for cell in cells)))
    small_print = [note(n + ".") for n in validation.notes if n.startswith(("ways of measuring", "--harness"))]
    return section("predictors", "What predicted them", table(head, rows), *small_print)


def _skipped(validation: TimeValidation) -> str:
    skipped = validation.document["rows_skipped"]
    if not skipped:
        return section("skipped", "Skipped", note("No row: all are predicted."))
    head = '<th scope="col" class="n">rows</th><th scope="col">why</th>'
    most = sorted(skipped.items(), key=lambda item: -item[1])
    rows = [row(f'<td class="n">{n:,}</td><td>{escape(reason)}</td>') for reason, n in most]
    return section("skipped", "Skipped", table(head, rows))
