"""The data of the figures that explain the chosen designs: watts, rooflines, tornado."""

import pandas as pd

from dse.power.power import COMPONENTS
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
    text = frame["text"].str.removeprefix("of the ")  # "10 % more of the DRAM bandwidth sustained" goes without it here
    return frame.assign(panel=frame["workload"] + ": " + frame["metric"], text=text).reset_index(drop=True)


def roof_line(peak_tflops: float, slope_gbs: float, low: float, high: float) -> tuple[list[float], list[float]]:
    """Return intensity [FLOP/B] and height [TFLOP/s] of a roof between two intensities: the slope, then the peak."""
    ridge = peak_tflops * 1e3 / slope_gbs
    x = [low, min(max(ridge, low), high), high]
    return x, [min(peak_tflops, at * slope_gbs / 1e3) for at in x]
