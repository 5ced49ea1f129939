"""The tables of a page."""

import base64
import json
import re

import numpy as np

from dse.grid.result import SweepResult
from dse.reports.sweep import data as findings
from dse.reports.sweep.page import page_html


def test_a_button_for_every_design_of_the_tables(result: SweepResult) -> None:
    page = page_html(result)
    numbers = [int(n) for n in re.findall(r'data-front="(\d+)"', page)]
    data = json.loads(re.search(r'id="explorer-data">(.*?)</script>', page, re.S)[1])  # pyright: ignore
    drawn = np.frombuffer(base64.b64decode(data["number"]), "<u4") - 1
    assert set(findings.front_table(result)["position"]) - {-1} <= set(numbers)
    assert set(numbers) <= set(drawn.tolist())
