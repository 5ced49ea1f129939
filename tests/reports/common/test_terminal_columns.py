"""Tables of the terminal: every column is shown, in one table or in several whose rows are named alike."""

from io import StringIO

from rich.console import Console
from rich.text import Text

from dse.reports.common.terminal_columns import Column, print_table, wrapped

NAMES = Column("", "", [Text("base"), Text("A"), Text(""), Text("")])
"""Names of rows: two have none."""


def column(name: str, cells: list[str], optional: bool = True) -> Column:
    return Column(name, "", [Text(cell) for cell in cells], optional)


def printed(width: int) -> list[str]:
    columns = [NAMES, *(column(f"axis_{n}", [f"{n}0{row}" for row in range(4)]) for n in range(1, 7))]
    out = StringIO()
    print_table(
        [*columns, column("time", ["8.1", "8.2", "8.3", "8.4"], optional=False)], Console(file=out, width=width)
    )
    return [line.rstrip() for line in out.getvalue().splitlines()]


def test_a_wide_window_has_one_table() -> None:
    lines = printed(100)
    assert [line.split()[0] for line in lines[-4:]] == ["base", "A", "102", "103"]
    assert sum("time" in line for line in lines) == 1 and len(lines) == 6


def test_a_narrow_window_has_tables_whose_rows_are_told_apart() -> None:
    lines = printed(24)
    assert max(map(len, lines)) <= 24
    text = "\n".join(lines)
    assert all(f"{n}0{row}" in text for n in range(1, 7) for row in range(4))
    firsts = [line.split()[0] for line in lines if line[:1].strip()]
    assert firsts == ["base", "A", "2", "3"] * (len(firsts) // 4) and len(firsts) >= 8


def test_headers_break_at_their_parts() -> None:
    assert wrapped("l2_slice_bytes_per_cycle", 10) == ["l2_slice_", "bytes_per_", "cycle"]
    assert wrapped("FMA/cycle/tensor core", 11) == ["FMA/cycle/", "tensor core"]
    assert wrapped("sm_count", 3) == ["sm_", "count"]
