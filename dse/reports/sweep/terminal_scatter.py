"""The front as a scatter in the terminal: two objectives, axes with units, the baseline marked."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from rich.console import Console
from rich.text import Text

from dse.grid.result import SweepResult
from dse.reports.common.ticks import axis_range, log_ticks
from dse.reports.common.words import bracketed, gpu_name, label
from dse.reports.sweep.data import measured_baseline
from dse.space.space import Objective

HEIGHT, WIDEST, NARROWEST = 18, 100, 50
"""Rows of the plot; its most and fewest columns, the labels of the axis included."""

DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
"""Bits of a Braille character, by column and row of its dots."""

BRAILLE = 0x2800


@dataclass(frozen=True)
class Span:
    """The range of an axis: ends, in logarithms where ``log``."""

    low: float
    high: float
    log: bool

    @classmethod
    def of(cls, values: np.ndarray) -> "Span":
        """Return the range that holds values, with a margin."""
        drawn = axis_range(values)
        return cls(*drawn["range"], log=drawn.get("type") == "log")

    def place(self, values: np.ndarray) -> np.ndarray:
        """Return where values lie, 0 (low end) to 1."""
        return ((np.log10(values) if self.log else values) - self.low) / (self.high - self.low)

    def ticks(self, most: int) -> list[float]:
        """Return at most ``most`` round values."""
        if self.log:
            return log_ticks(10**self.low, 10**self.high, most)
        step = (self.high - self.low) / max(most, 1)
        power = 10.0 ** np.floor(np.log10(step))
        step = next(s * power for s in (1, 2, 5, 10) if s * power >= step * (1 - 1e-9))
        return [float(k * step) for k in range(int(np.ceil(self.low / step)), int(self.high / step) + 1)]


def print_scatter(result: SweepResult, console: Console) -> None:
    """Print the Pareto set over its last and first objective; nothing where the output is no terminal or too narrow."""
    objectives = result.space.objectives
    width = min(console.width, WIDEST)
    if not console.is_terminal or len(objectives) < 2 or result.front.empty or width < NARROWEST:
        return
    console.print()
    for line in scatter_lines(result, objectives[-1], objectives[0], width):
        console.print(line, highlight=False)


def scatter_lines(result: SweepResult, x: Objective, y: Objective, width: int) -> list[Text]:
    """Return the lines of a scatter of the front in ``width`` columns: title, plot, axis, legend."""
    base = measured_baseline(result)
    spans = [Span.of(_values(pd.concat([result.front, base]), o)) for o in (x, y)]
    ticks = {_row(spans[1], value): f"{value:,.4g}" for value in spans[1].ticks(5)}
    margin = max(len(text) for text in ticks.values()) + 1
    cells = _cells(spans, _values(result.front, x), _values(result.front, y), width - margin - 1)
    if len(base):
        row, column = _row(spans[1], _values(base, y)[0]), _column(spans[0], _values(base, x)[0], len(cells[0]))
        cells[row][column] = ("◆", "bold dark_orange3")
    lines = [Text(bracketed(label(y), y.unit), style="bold")]
    for row, line in enumerate(cells):
        text = Text(f"{ticks.get(row, ''):>{margin}}{'┤' if row in ticks else '│'}")
        for mark, style in line:
            text.append(mark, style)
        lines.append(text)
    lines += [Text(" " * margin) + line for line in _across(spans[0], x, len(cells[0]))]
    legend = Text("⣿ ", style="cyan").append(f"Pareto set ({len(result.front):,})", style="default")
    if len(base):
        legend.append("   ◆ ", style="bold dark_orange3").append(f"baseline: {gpu_name(result.space)}")
    return [*lines, legend]


def _values(frame: pd.DataFrame, objective: Objective) -> np.ndarray:
    return frame[objective.name].to_numpy(dtype=float)


def _row(span: Span, value: float) -> int:
    return int(np.clip((1 - span.place(np.asarray(value))) * HEIGHT, 0, HEIGHT - 1))


def _column(span: Span, value: float, columns: int) -> int:
    return int(np.clip(span.place(np.asarray(value)) * columns, 0, columns - 1))


def _cells(spans: list[Span], x: np.ndarray, y: np.ndarray, columns: int) -> list[list[tuple[str, str]]]:
    """Designs as dots, two by four in a character."""
    across = np.clip((spans[0].place(x) * columns * 2).astype(int), 0, columns * 2 - 1)
    down = np.clip(((1 - spans[1].place(y)) * HEIGHT * 4).astype(int), 0, HEIGHT * 4 - 1)
    bits = np.zeros((HEIGHT, columns), int)
    np.bitwise_or.at(bits, (down // 4, across // 2), np.asarray(DOTS)[across % 2, down % 4])
    return [[(chr(BRAILLE + b) if b else " ", "cyan") for b in row] for row in bits]


def _across(span: Span, objective: Objective, columns: int) -> list[Text]:
    """The horizontal axis: a line with ticks, their labels where they do not touch, and the title."""
    line, labels, free = ["└", *"─" * columns], [" "] * (columns + 1), 0
    for value in span.ticks(max(columns // 10, 2)):
        at, text = 1 + _column(span, value, columns), f"{value:,.4g}"
        start = min(max(at - len(text) // 2, 0), columns + 1 - len(text))
        if start < free:
            continue
        line[at] = "┬"
        labels[start : start + len(text)] = text
        free = start + len(text) + 1
    title = Text(f"{bracketed(label(objective), objective.unit):>{columns + 1}}", style="bold")
    return [Text("".join(line)), Text("".join(labels)), title]
