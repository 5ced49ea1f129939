"""The page of a finished sweep or search, drawn again from its folder: what ``dse report`` does."""

from pathlib import Path

from dse.base.errors import path_of
from dse.explanation.axis_verdicts import axis_verdicts
from dse.reports.search.data import SearchReport, load_page
from dse.reports.sweep.assumed import assumed_numbers
from dse.reports.sweep.design_explanations import explain_designs
from dse.reports.sweep.page import write_page

PAGE = "report.html"
"""The page of a sweep or a search in its folder."""


def report(folder: str | Path) -> Path:
    """Draw the page of a finished sweep or search again, and return its path; raises InputError naming what is missing.

    Only the few designs that the page looks into are evaluated. Of a result that another version computed none is: the
    page shows what its files hold, and says so.
    """
    folder = path_of("folder", folder)
    path, shown = folder / PAGE, load_page(folder)
    result = shown.result if isinstance(shown, SearchReport) else shown
    if result.computed_by:
        write_page(shown, path)
        return path
    write_page(shown, path, explain_designs(result), assumed_numbers(result), axis_verdicts(result.space))
    return path
