"""The first screen of a sweep's page: question, numbers, the answer in a few words, and its notes, folded."""

from html import escape

from dse.base.brief import count_of
from dse.explanation.assumed_effects import AssumedEffects
from dse.explanation.axis_verdicts import AxisVerdicts
from dse.grid.result import SweepResult
from dse.reports.common.price_note import price_headline
from dse.reports.common.words import capital, gpu_name, label, quantity, signed_percent
from dse.reports.search.data import SearchReport
from dse.reports.sweep.answer import all_notes, answer, good_to, question
from dse.reports.sweep.assumed import sentences as decided_by
from dse.reports.sweep.data import best_no_worse, chosen_designs, gains, measured_baseline
from dse.reports.sweep.verdicts import headline, setting_headline
from dse.space.unlinked import unlinked_headline

MOST_NUMBERS = 4
"""Numbers that stand below the question."""


def page_head(
    result: SweepResult, search: SearchReport | None, assumed: AssumedEffects | None, verdicts: AxisVerdicts | None
) -> str:
    """Return the head of a page: what was asked, up to four numbers, the answer in brief, and notes that unfold."""
    words = result.calibration if result.calibration == "uncalibrated" else f"calibration {result.calibration}"
    badge = f'<span class="badge">{escape(words)}</span>'
    lead = f"{result.space.name}: {result.space.size:,} designs around the {gpu_name(result.space)}"
    if search is not None:
        lead += f", {result.n:,} of them evaluated by a search"
    notes = all_notes(result) + ([how_far(search)] if search is not None else [])
    beware = "\n".join(f"<p>{escape(text)}</p>" for text in notes)
    careful = unlinked_headline(result.space) + price_headline(result.space)
    summary = f"{capital(good_to(result))}; {count_of(len(notes), 'note')}"
    return (
        f'<header>\n<p class="lead">{escape(lead)}{badge}</p>\n<h1>{escape(question(result))}</h1>\n</header>\n'
        f'<section id="answer" class="answer">\n{_numbers(result)}\n'
        f"{paragraphs(brief(result, verdicts) + careful + decided_by(result, assumed))}\n</section>\n"
        f'<details class="caveats">\n<summary>{escape(summary)}</summary>\n{beware}\n</details>'
    )


def brief(result: SweepResult, verdicts: AxisVerdicts | None) -> list[str]:
    """Return what pays and which settings are best, in a sentence each; where nothing can be had, why."""
    if result.front.empty:
        return answer(result)
    return [text for text in (*setting_headline(result), headline(verdicts)) if text]


def paragraphs(sentences: list[str]) -> str:
    """Return sentences as paragraphs whose numbers stay with their units and arrows."""
    kept = [sentence.replace(" %", "\u00a0%").replace(" → ", "\u00a0→\u00a0") for sentence in sentences]
    return "\n".join(f"<p>{escape(sentence)}</p>" for sentence in kept)


def numbers(result: SweepResult) -> list[tuple[str, str, str]]:
    """Return the numbers that answer, each with what it is and where: the best of an objective, the others no worse.

    At most MOST_NUMBERS; the last is how many designs are on the front. None where the front is empty.
    """
    if result.front.empty:
        return []
    base, chosen = measured_baseline(result), chosen_designs(result)
    found = []
    for o in [o for o in result.space.objectives if len(base) and gains(result, o)][: MOST_NUMBERS - 1]:
        position = best_no_worse(result, o)
        value, before = float(result.front[o.name].iloc[position]), float(base[o.name].iloc[0])
        letter = chosen.loc[chosen["position"] == position, "letter"]
        change = signed_percent(value, before)
        where = ", ".join([*([f"design {letter.iloc[0]}"] if len(letter) else []), *([change] if change else [])])
        found.append((label(o), quantity(value, o.unit), where))
    of = f"of {result.n:,} designs" if result.n == result.space.size else f"of {result.n:,} designs seen"
    return [*found, ("on the Pareto front", f"{len(result.front):,}", of)]


def _numbers(result: SweepResult) -> str:
    cells = [
        f"<div><span>{escape(capital(what))}</span><b>{escape(value)}</b><span>{escape(where)}</span></div>"
        for what, value, where in numbers(result)
    ]
    return f'<div class="numbers">{"".join(cells)}</div>' if cells else ""


def how_far(search: SearchReport) -> str:
    """Return what a reader must know of a search: designs that were not evaluated, and whether it had settled."""
    result = search.result
    if result.n == result.space.size:
        return "The search evaluated every design: its Pareto set is exact."
    gain = search.late_gain
    late = "" if gain is None else f"; the last tenth of the evaluations added {100 * gain:.2g} % to the hypervolume"
    return f"A search: designs that were not evaluated may be better{late}."
