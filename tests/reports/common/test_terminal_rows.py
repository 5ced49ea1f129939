"""Tables of what is shipped: whole numbers and names in any terminal, and what has no room is said."""

import json
from io import StringIO

import pytest
from rich.console import Console

from dse.reports.common.terminal_rows import print_rows

ROWS = [
    {
        "attribute": "dram_bandwidth_gbs",
        "value": 3352.32,
        "unit": "GB/s",
        "note": "5 stacks at 5.2 Gbit/s a pin, by the product page of the maker",
        "source": "H100SPEC",
    },
    {"attribute": "sm_count", "value": 132, "unit": "SM", "note": "", "source": "H100SPEC"},
]


def printed(width: int, **options) -> list[str]:
    """The lines of ROWS in a terminal of a width."""
    text = StringIO()
    print_rows(ROWS, Console(width=width, file=text), False, **options)
    return [line.rstrip() for line in text.getvalue().splitlines()]


@pytest.mark.parametrize("width", range(30, 130, 7))
def test_nothing_is_cut_and_what_has_no_room_is_named(width):
    lines = printed(width, rest=("source",))
    assert max(map(len, lines)) <= width
    text = " ".join(" ".join(lines).split())
    assert "dram_bandwidth_gbs" in text
    shown = lines[0].split()
    for name in ("value", "unit", "note", "source"):
        assert (name in shown) != (text.partition(": in a wider terminal")[0].endswith(name) or f"{name}," in text)
    if "value" in shown:
        assert "3352.32" in text and "132" in text
    if "note" in shown:
        assert all(word in text for word in ROWS[0]["note"].split())


def test_the_rest_goes_first_and_then_the_last():
    assert printed(100, rest=("source",))[0].split() == ["attribute", "value", "unit", "note", "source"]
    assert printed(68, rest=("source",))[0].split() == ["attribute", "value", "unit", "note"]
    assert printed(40, rest=("source",))[0].split() == ["attribute", "value", "unit"]
    assert printed(68)[0].split() == ["attribute", "value", "unit", "note"]


def test_json_holds_every_column(capsys):
    print_rows(ROWS, Console(width=20), True, rest=("source",))
    assert json.loads(capsys.readouterr().out) == ROWS
