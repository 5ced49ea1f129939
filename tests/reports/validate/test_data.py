"""The data of a page of validated times: points, bins, stacks."""

import numpy as np

from dse.reports.validate import data as validate_data
from dse.reports.validate.figures import shape_figure


def test_points_are_thinned_evenly_and_keep_the_ends(validation):
    every = validate_data.points(validation)
    assert len(every) == len(validation.rows) == 33
    some = validate_data.points(validation, most=12)
    assert len(some) < 18
    for _, part in every.groupby(["device", "kind"]):
        own = some[(some["device"] == part["device"].iloc[0]) & (some["kind"] == part["kind"].iloc[0])]
        assert len(own) >= 1
        assert own["measured_us"].min() == part["measured_us"].min()
    np.testing.assert_allclose(every["ratio"], every["predicted_us"] / every["measured_us"])


def test_bins_hold_every_row_of_a_varied_shape(validation):
    tables = validate_data.shape_errors(validation)
    products = tables["Matrix products"]
    assert set(products["column"]) == {"m"}  # n and k do not vary
    assert products["n"].sum() <= 30
    assert ((products["low"] <= products["middle"]) & (products["middle"] <= products["high"])).all()
    assert set(tables["Attention"]["column"]) == {"seq_q", "seq_kv"}
    assert "Vector kernels" not in tables  # one row


def test_stacks_add_up_to_what_is_predicted(validation):
    stacks = validate_data.worst_stacks(validation)
    whole = stacks.groupby("place").agg({"us": "sum", "predicted_us": "first"})
    assert len(whole) == 20
    np.testing.assert_allclose(whole["us"], whole["predicted_us"], rtol=1e-3)
    assert stacks.groupby("place")["share"].sum().max() < 1.001
    assert set(stacks["part"]) <= set(validate_data.MEANINGS)


def test_few_rows_of_a_series_are_dots(validation):
    bins = validate_data.shape_errors(validation)["Matrix products"]
    assert (bins["n"] == 1).all() and len(bins) == 30  # fifteen rows of each device
    figure = shape_figure(bins)
    assert {trace.mode for trace in figure.data} == {"markers"}
