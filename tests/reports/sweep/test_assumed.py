"""Assumed numbers in words: the sentence of the first screen, lines of the terminal, JSON, and the page's section."""

import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import dse
from dse.explanation.assumed_effects import CHANGE, AssumedEffects
from dse.grid.result import SweepResult
from dse.reports.sweep.assumed import (
    MOST,
    assumed_numbers,
    change_text,
    document,
    lines,
    ranges_of,
    sentences,
    span_text,
    value_text,
)
from dse.reports.sweep.data import chosen_designs
from dse.reports.sweep.figures_assumed import assumed_figure
from dse.reports.sweep.page import page_html


@pytest.fixture(scope="module")
def effects(pair: SweepResult) -> AssumedEffects:
    """Of the designs that ``pair`` recommends."""
    effects = assumed_numbers(pair)
    assert effects is not None
    return effects


def with_changes(effects: AssumedEffects, *rows: tuple) -> AssumedEffects:
    return replace(effects, changes=pd.DataFrame(rows, columns=list(CHANGE)))


def place_of(effects: AssumedEffects, name: str) -> int:
    return next(place for place, number in enumerate(effects.numbers) if number.name == name)


def test_it_is_public() -> None:
    assert dse.assumed_numbers is assumed_numbers


def test_values_are_those_of_the_recommended_designs(pair: SweepResult, effects: AssumedEffects) -> None:
    chosen = chosen_designs(pair)
    rows = effects.effects.drop_duplicates(["objective", "design"]).set_index(["objective", "design"])["nominal"]
    for objective in pair.space.objectives:
        for _, design in chosen.iterrows():
            value = rows[objective.name, design["letter"] or "base"]
            assert value == pytest.approx(design[objective.name], rel=1e-5)


def test_an_answer_without_recommended_designs_has_none(impossible: SweepResult) -> None:
    assert assumed_numbers(impossible) is None
    assert sentences(impossible, None) == [] and document(impossible, None) is None
    assert 'id="assumed"' not in page_html(impossible)


def test_the_sentence_names_the_number_its_value_and_the_designs(pair: SweepResult, effects: AssumedEffects) -> None:
    slices = place_of(effects, "l2_slices")
    first, second = pair.space.objectives
    order = (slices, "high", 96.0, "order", first.name, "A", "B", 9.5, 9.0, "")
    base = (slices, "low", 75.0, "base", second.name, "A", "base", 950.0, 990.0, "")
    assert sentences(pair, with_changes(effects, base, order)) == [
        "An order rests on an assumed number: with L2 slices at 96 and not 80, A falls behind B in prefill time to "
        "first token (9.50 against 9.00 ms)."
    ]
    (text,) = sentences(pair, with_changes(effects, base, (place_of(effects, "l2_clock_mhz"), *base[1:])))
    assert text.startswith("A comparison with the baseline rests on an assumed number: with L2")
    assert "A is worse than the H100 SXM5 80GB in BF16 peak (950 against 990 TFLOP/s)" in text
    assert text.endswith("1 more such number does the like.")
    assert sentences(pair, with_changes(effects)) == []


def test_a_design_that_leaves_the_front_says_for_which(pair: SweepResult, effects: AssumedEffects) -> None:
    leak = place_of(effects, "leak_per_kelvin")
    rows = [
        (leak, "high", 0.03, "front", "", "A", "B", np.nan, np.nan, ""),
        (leak, "high", 0.03, "front", "", "A", "", np.nan, np.nan, ""),
        (leak, "high", 0.03, "lost", "", "A", "", np.nan, np.nan, "power: too much"),
    ]
    changed = with_changes(effects, *rows)
    texts = [change_text(pair, changed, row) for _, row in changed.changes.iterrows()]
    given = "with leak per kelvin of the power model at 0.03 and not 0.02 1/K"
    ends = ("B dominates A", "A leaves the front", "A cannot be had (power: too much)")
    assert texts == [f"{given}, {end}" for end in ends]


def test_values_have_their_units_unless_their_names_say_them(effects: AssumedEffects) -> None:
    by_name = {number.name: number for number in effects.numbers}
    assert value_text(by_name["l2_slices"], 80.0) == "80"
    assert value_text(by_name["l2_port_bytes_per_cycle"], 64.0) == "64 B/cycle"
    assert value_text(by_name["l2_latency_ns"], 125.4) == "125 ns"
    assert span_text(by_name["l2_clock_mhz"]) == "1584 to 2178"
    assert span_text(by_name["fu_queue_entries"]) == "1.33 to 3 by default"


def test_json_holds_both_ends_of_what_decides(pair: SweepResult, effects: AssumedEffects) -> None:
    found = json.loads(json.dumps(document(pair, effects)))
    assert found is not None and len(found["deciding"]) >= MOST
    largest = [number["largest_change"] for number in found["varied"]]
    assert len(largest) == len(effects.numbers) and largest == sorted(largest, reverse=True)
    for number in found["deciding"]:
        assert number["low"] <= number["value"] <= number["high"] and number["range_source"]
        assert number["range"] in ("stated", "default")
        assert {e["design"] for e in number["effects"]} == {
            letter or "base" for letter in chosen_designs(pair)["letter"]
        }
        assert {"nominal", "at_low", "at_high", "elasticity"} < set(number["effects"][0])
    assert "sentence" in (found["order_changes"] or [{"sentence": ""}])[0]


def test_lines_name_what_moves_most(pair: SweepResult, effects: AssumedEffects) -> None:
    texts = list(lines(effects, {o.name: o.name for o in pair.space.objectives}))
    assert 0 < len(texts) <= MOST
    first = ranges_of(effects, effects.deciding(MOST)[0])
    assert not first.empty and texts[0].count("%") == 2 * len(first)


def test_the_page_has_its_section_below_the_front(pair: SweepResult, effects: AssumedEffects) -> None:
    page = page_html(pair, assumed=effects)
    sections = re.findall(r'<section id="(\w+)"', page)
    assert sections[sections.index("words") + 1] == "assumed"
    assert page == page_html(pair, assumed=assumed_numbers(pair))  # the same bytes
    order = (
        place_of(effects, "l2_slices"),
        "high",
        96.0,
        "order",
        pair.space.objectives[0].name,
        "A",
        "B",
        9.5,
        9.0,
        "",
    )
    changed = page_html(pair, assumed=with_changes(effects, order))
    answer = changed[changed.index('id="answer"') : changed.index('class="caveats"')]
    assert "An order rests on an assumed number" in answer


def test_the_tornado_has_two_bars_a_design_and_objective(pair: SweepResult, effects: AssumedEffects) -> None:
    figure = assumed_figure(pair, effects)
    designs = len(chosen_designs(pair))
    assert len(figure.data) == 2 * designs * len(pair.space.objectives)
    assert sum(bool(trace.showlegend) for trace in figure.data) == designs
