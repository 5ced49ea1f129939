"""Figures of merit by hand, and folds that leave groups out whole."""

import numpy as np
import pytest

from dse.prediction.merits import group_folds, inlier_ratio, merits, percentage_errors, random_folds, size_folds, splits


def test_merits_by_hand():
    figures = merits(np.array([110.0, 80.0, 300.0]), np.array([100.0, 100.0, 300.0]))
    assert figures["error"] == pytest.approx(10.0)
    assert figures["inliers"]["10"] == pytest.approx(200 / 3)
    assert figures["inliers"]["20"] == pytest.approx(100)
    assert list(figures["inliers"]) == ["1", "5", "10", "15", "20", "30", "40", "50"]
    assert figures["bias"] == pytest.approx((1.1 * 0.8) ** (1 / 3))
    assert merits(np.ones(3), np.arange(1.0, 4))["spearman"] == 0.0
    assert inlier_ratio(np.array([1.0, 1.0001]), 1) == 50


def test_folds_leave_groups_and_sizes_out_whole():
    groups = np.array(list("aabbccddeeff"))
    fold = group_folds(groups, 3)
    assert all(len(set(fold[groups == g])) == 1 for g in "abcdef")
    assert len(set(fold)) == 3
    sizes = np.arange(100.0)[::-1]
    assert all(np.ptp(sizes[out]) == 19 for _, out in splits(size_folds(sizes)))
    assert sorted(np.concatenate([out for _, out in splits(random_folds(25))])) == list(range(25))


def test_an_error_is_relative_to_what_was_measured():
    assert percentage_errors(np.array([50.0, 200.0]), np.array([100.0, 100.0])).tolist() == [50.0, 100.0]


def test_ranks_are_those_of_the_order_alone():
    measured = np.array([1.0, 2.0, 3.0, 4.0])
    assert merits(measured**3, measured)["spearman"] == pytest.approx(1.0)
    assert merits(1 / measured, measured)["kendall"] == pytest.approx(-1.0)
    assert merits(np.array([1.0, 2.0, 4.0, 3.0]), measured)["kendall"] == pytest.approx(4 / 6)  # five pairs of six


def test_fewer_groups_than_folds_are_one_fold_each():
    fold = group_folds(np.array(["b", "a", "b", "c"]), 10)
    assert sorted(set(fold)) == [0, 1, 2]
    assert fold[0] == fold[2]
