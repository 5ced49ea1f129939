"""The data of a page of validated times: points, bins, stacks."""

import numpy as np

from dse.reports.validate import data as findings_validate
from dse.reports.validate.figures import shape_figure


def test_points_are_thinned_evenly_and_keep_the_ends(found):
    every = findings_validate.points(found)
    assert len(every) == len(found.rows) == 33
    some = findings_validate.points(found, most=12)
    assert len(some) < 18
    for _, part in every.groupby(["device", "kind"]):
        mine = some[(some["device"] == part["device"].iloc[0]) & (some["kind"] == part["kind"].iloc[0])]
        assert len(mine) >= 1
        assert mine["measured_us"].min() == part["measured_us"].min()
    np.testing.assert_allclose(every["ratio"], every["predicted_us"] / every["measured_us"])


def test_bins_hold_every_row_of_a_varied_shape(found):
    tables = findings_validate.shape_errors(found)
    products = tables["Matrix products"]
    assert set(products["column"]) == {"m"}  # n and k do not vary
    assert products["n"].sum() <= 30
    assert ((products["low"] <= products["middle"]) & (products["middle"] <= products["high"])).all()
    assert set(tables["Attention"]["column"]) == {"seq_q", "seq_kv"}
    assert "Vector kernels" not in tables  # one row


def test_stacks_add_up_to_what_is_predicted(found):
    stacks = findings_validate.worst_stacks(found)
    whole = stacks.groupby("place").agg({"us": "sum", "predicted_us": "first"})
    assert len(whole) == 20
    np.testing.assert_allclose(whole["us"], whole["predicted_us"], rtol=1e-3)
    assert stacks.groupby("place")["share"].sum().max() < 1.001
    assert set(stacks["part"]) <= set(findings_validate.MEANINGS)


def test_few_rows_of_a_series_are_dots(found):
    bins = findings_validate.shape_errors(found)["Matrix products"]
    assert (bins["n"] == 1).all() and len(bins) == 30  # fifteen rows of each device
    figure = shape_figure(bins)
    assert {trace.mode for trace in figure.data} == {"markers"}
