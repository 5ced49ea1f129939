"""The page of a search: what it says, what it draws, and that a folder gives it again."""

from dataclasses import replace
from pathlib import Path

import pytest

from dse import sweep
from dse.base.errors import InputError
from dse.grid.result import SweepResult
from dse.pareto.search_result import SearchResult
from dse.reports.search.data import LEAST, SearchReport, evaluated_effects, load_page
from dse.reports.sweep.answer import answer, caveats
from dse.reports.sweep.page import page_html, write_page


def test_sentences_say_that_it_was_a_search(evaluated: SearchReport) -> None:
    result = evaluated.result
    assert result.n == 1200
    start = f"Of 1,200 designs evaluated (of 12,544 in the space), {len(result.front)} are Pareto-optimal among them:"
    assert answer(result)[0].startswith(start)
    assert not [note for note in caveats(result) if "No objective moves" in note]
    page = page_html(evaluated).split("</head>")[1]
    assert "A search: designs that were not evaluated may be better; the last tenth of the evaluations added" in page
    assert f"other feasible designs ({result.n_feasible - len(result.front):,})" in page
    assert "local, seed 0: 1,200 evaluations" in page


def test_a_search_of_everything_is_exact(evaluated: SearchReport) -> None:
    whole = replace(evaluated, result=replace(evaluated.result, n=evaluated.result.space.size))
    assert "The search evaluated every design: its Pareto set is exact." in page_html(whole)


def test_a_folder_gives_the_same_page(searched: SearchResult, evaluated: SearchReport, tmp_path: Path) -> None:
    assert searched.result.folder is not None
    write_page(evaluated, tmp_path / "a.html")
    again = load_page(searched.result.folder)
    assert isinstance(again, SearchReport)
    write_page(again, tmp_path / "b.html")
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


def test_a_folder_of_a_sweep_is_a_sweeps(single: SweepResult, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"run\.json: no such file"):
        load_page(tmp_path)
    sweep(single.space, tmp_path)
    again = load_page(tmp_path)
    assert isinstance(again, SweepResult)
    assert again.front.equals(single.front)


def test_effects_are_those_of_the_axis(evaluated: SearchReport) -> None:
    """Where an objective is a product of one factor an axis, pairs tell each factor whatever else was evaluated."""
    result = evaluated.result
    feasible = result.points().query("feasible")
    feasible = feasible.assign(die_mm2=feasible["tensor_fma_bf16"] ** 0.5 * feasible["sm_count"] * feasible["l2_mib"])
    frame = evaluated_effects(result, feasible)
    assert frame[["median", "best", "at_baseline"]].isna().all(axis=None)
    effects = frame.query("axis == 'tensor_fma_bf16' and objective == 'die_mm2'").set_index("number")["paired"].dropna()
    assert {256, 512, 1024} <= set(effects.index)
    area = result.baseline["die_mm2"].iloc[0]
    assert effects.to_numpy() == pytest.approx(area * (effects.index.to_numpy() / 512) ** 0.5, rel=1e-6)


def test_few_pairs_tell_nothing(evaluated: SearchReport) -> None:
    result = evaluated.result
    few = result.points().query("feasible").iloc[: LEAST - 1]
    frame = evaluated_effects(result, few)
    effects = frame.groupby(["axis", "objective"])["paired"].count()
    assert (effects == 1).all()  # the baseline alone


def test_late_gain(evaluated: SearchReport) -> None:
    gain = evaluated.late_gain
    assert gain is not None
    assert 0 <= gain < 0.5
    assert replace(evaluated, history=evaluated.history.iloc[:0]).late_gain is None
