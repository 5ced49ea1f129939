"""The explorer's data: what is drawn, in which units, and that nothing of a front's edges is thinned away."""

import base64
import json
from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from dse.grid.result import SweepResult
from dse.reports.sweep import data_explorer as findings_explorer
from dse.reports.sweep.data import costs
from dse.reports.sweep.data_explorer import edge, explorer, others, packed, shown_front


def column(text: str, kind: str) -> np.ndarray:
    """Numbers as the page's script unpacks them."""
    return np.frombuffer(base64.b64decode(text), kind)


def test_columns_are_the_fronts(result: SweepResult) -> None:
    data = explorer(result, [])
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert (column(data["number"], "<u4") == np.arange(len(result.front)) + 1).all()
    for shown, o in zip(data["objectives"], result.space.objectives, strict=True):
        assert (column(shown["front"], "<f4") == result.front[o.name].to_numpy(np.float32)).all()
        assert shown["baseline"] == pytest.approx(result.baseline[o.name].iloc[0])
        assert shown["unit"] in ("ms", "mm²")
    for shown in data["axes"]:
        texts = [shown["texts"][code] for code in column(shown["front"], "<u4")]
        assert [float(text) for text in texts] == result.front[shown["name"]].tolist()
        assert shown["scale"]["numbers"] == sorted(shown["scale"]["numbers"])


def test_axes_of_words_have_no_scale(maximised: SweepResult) -> None:
    data = {axis["name"]: axis for axis in explorer(maximised, [])["axes"]}
    assert data["process"]["scale"] is None
    assert data["async_copy"]["texts"] == ["false", "true"]
    assert data["sm_count"]["scale"]["numbers"] == [120, 132, 144]


@pytest.mark.parametrize(
    ("name", "plots", "colour"),
    [
        ("pair", [[1, 0]], None),
        ("result", [[2, 0], [2, 1]], 1),
        ("maximised", [[3, 0], [3, 1]], 2),
    ],
)
def test_plots_at_first(name: str, plots: list, colour: int | None, request: pytest.FixtureRequest) -> None:
    data = explorer(request.getfixturevalue(name), [])
    assert data["plots"] == plots
    assert data["colour"] == colour


def test_without_a_baseline(without_baseline: SweepResult) -> None:
    data = explorer(without_baseline, [])
    assert data["baseline"] is None
    assert all(part["baseline"] is None for part in (*data["objectives"], *data["axes"]))


def test_an_edge_only_gets_better(result: SweepResult, maximised: SweepResult) -> None:
    for explored in (result, maximised):
        for x, y in combinations(explored.space.objectives, 2):
            values = costs(explored.front[edge(explored.front, x, y)], [x, y])
            values = values[np.argsort(values[:, 0])]
            assert (np.diff(values[:, 0]) > 0).all()
            assert (np.diff(values[:, 1]) < 0).all()


def test_thinning_keeps_edges_and_what_the_table_shows(result: SweepResult, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(findings_explorer, "FRONT_DOTS", 2)
    monkeypatch.setattr(findings_explorer, "CLOUD", 10)
    positions = shown_front(result, [3])
    assert 3 in positions
    for pair in combinations(result.space.objectives, 2):
        assert set(np.flatnonzero(edge(result.front, *pair))) <= set(positions)
    data = explorer(result, [3])
    assert data["cloud_text"] == f"5 of {45 - len(result.front)} shown"
    assert len(column(data["objectives"][0]["cloud"], "<f4")) == 5


def test_the_cloud_leaves_the_front_and_the_baseline_out(result: SweepResult, maximised: SweepResult) -> None:
    for explored in (result, maximised):
        rest, names = others(explored), [axis.name for axis in explored.space.axes]
        marked = pd.concat([explored.front[names], explored.baseline[names]]).astype(object).drop_duplicates()
        assert len(rest) == explored.n_feasible - len(marked)
        assert rest.astype(object).merge(marked, on=names).empty


def test_packing_is_little_endian() -> None:
    assert packed([1, 258], "<u4") == base64.b64encode(bytes([1, 0, 0, 0, 2, 1, 0, 0])).decode()
