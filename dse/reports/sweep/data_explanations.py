"""The data of the figures that explain the chosen designs: watts, rooflines, tornado."""

from typing import Any

import pandas as pd

from dse.power.power import COMPONENTS
from dse.power.throttles import NO, OPEN, YES
from dse.reports.common.words import clock_span, joined
from dse.reports.sweep.data import REST, SMALL_SHARE
from dse.reports.sweep.design_explanations import DesignExplanations

MOST_BARS = 12
"""Attributes in a tornado."""

SHOWN_AT_FIRST = 2
"""Designs drawn before a reader asks for the others in the legend: the baseline and the first chosen."""

SMALLEST = 0.01
"""A slope below this in every metric is not drawn: 1 % more of the attribute changes less than 0.01 %."""


def power_stacks(explanations: DesignExplanations) -> pd.DataFrame:
    """Return the mean watts of each phase by component, a row a workload, design and component.

    ``watts`` [W], ``share`` of the design's total (0 to 1). Components below SMALL_SHARE in every design of a workload
    are summed as REST.
    """
    frame = explanations.watts[explanations.watts["watts"] > 0].copy()
    frame["share"] = frame["watts"] / frame.groupby(["workload", "name"])["watts"].transform("sum")
    largest = frame.groupby(["workload", "component"])["share"].transform("max")
    frame.loc[largest < SMALL_SHARE, "component"] = REST
    keys = ["workload", "name", "letter", "component"]
    summed = frame.groupby(keys, sort=False, as_index=False)[["watts", "share"]].sum()
    rank = {component: i for i, component in enumerate([*COMPONENTS, REST])}
    return summed.sort_values("component", key=lambda c: c.map(rank), kind="stable").reset_index(drop=True)


def limit_sentences(explanations: DesignExplanations) -> list[str]:
    """Return which boards throttle at their power limit, and of which that is open: the baseline and the chosen."""
    said = {
        OPEN: "It is open whether these throttle at their power limit, and their times hold both",
        YES: "These throttle at their power limit",
    }
    sentences = []
    for word, begins in said.items():
        rows = explanations.limits[explanations.limits["throttles"] == word]
        each = [
            f"{' '.join(row.name.split())} in {row.workload} ({clock_span(row.clock_low, row.clock_high)})"
            for row in rows.itertuples(index=False)
        ]
        sentences += [f"{begins}: {joined(each)}."] if each else []
    return sentences


def limits_document(explanations: DesignExplanations) -> list[dict[str, Any]]:
    """Return the rows of ``explanations.limits`` as ``--json`` has them, of what throttles or may."""
    rows = explanations.limits
    return rows[rows["throttles"] != NO].drop(columns="letter").to_dict("records")


def slope_bars(explanations: DesignExplanations) -> pd.DataFrame:
    """Return the slopes of the steepest attributes, steepest on the designs that are drawn at first on top.

    Columns as ``DesignExplanations.slopes``, and ``panel``, the workload with its metric.
    """
    frame = explanations.slopes
    first = frame[frame["letter"].isin(sorted(set(frame["letter"]))[:SHOWN_AT_FIRST])]
    steep = first.groupby("attribute", sort=False)["step"].agg(lambda step: step.abs().max())
    steep = steep[steep >= SMALLEST].sort_values(ascending=False, kind="stable").index[:MOST_BARS]
    rank = {attribute: i for i, attribute in enumerate(steep)}
    frame = frame[frame["attribute"].isin(steep)]
    frame = frame.sort_values("attribute", key=lambda c: c.map(rank), kind="stable")
    # "10 % more of the DRAM bandwidth sustained" goes without its preposition here
    text = [str(words).removeprefix("of the ") for words in frame["text"]]
    return frame.assign(panel=frame["workload"] + ": " + frame["metric"], text=text).reset_index(drop=True)


def roof_line(peak_tflops: float, slope_gbs: float, low: float, high: float) -> tuple[list[float], list[float]]:
    """Return intensity [FLOP/B] and height [TFLOP/s] of a roof between two intensities: the slope, then the peak."""
    ridge = peak_tflops * 1e3 / slope_gbs
    x = [low, min(max(ridge, low), high), high]
    return x, [min(peak_tflops, at * slope_gbs / 1e3) for at in x]
