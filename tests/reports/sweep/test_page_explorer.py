"""The explorer of a page."""

import json
import re

from dse.grid.result import SweepResult
from dse.reports.sweep.page import page_html
from tests.reports.conftest import HOSTILE


def test_the_script_is_not_ended_by_the_data(maximised: SweepResult) -> None:
    """A user's "</script>" in a name stays within the data."""
    page = page_html(maximised)
    data = json.loads(re.search(r'id="explorer-data">(.*?)</script>', page, re.S)[1])  # pyright: ignore
    assert data["objectives"][3]["name"] == HOSTILE
