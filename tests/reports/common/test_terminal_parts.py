"""Parts of the terminal's answers: texts as they are, tables without lines, notes."""

import io

from rich.console import Console

from dse.reports.common.terminal_parts import plain_table, print_notes, say


def console(width: int = 60) -> Console:
    return Console(file=io.StringIO(), width=width, force_terminal=False)


def printed(one: Console) -> str:
    assert isinstance(one.file, io.StringIO)
    return one.file.getvalue()


def test_brackets_in_a_text_are_no_markup() -> None:
    one = console()
    say(one, "die [mm2] of [bold]any[/bold] GPU: 814")
    assert printed(one) == "die [mm2] of [bold]any[/bold] GPU: 814\n"


def test_a_table_breaks_texts_and_never_numbers() -> None:
    one = console(width=24)
    table = plain_table("", ["kernel"], ["time [ms]"])
    table.add_row("gate_up_projection_of_a_layer", "1,234.5")
    one.print(table)
    assert "1,234.5" in printed(one)
    assert "".join(line[:12].strip() for line in printed(one).splitlines()[1:]).startswith("gate_up")


def test_rows_that_were_left_out_come_before_notes() -> None:
    one = console()
    print_notes({"no kernel": 2}, ["times are made up"], one)
    assert printed(one).splitlines() == ["skipped: 2 rows: no kernel", "note: times are made up"]
    empty = console()
    print_notes({}, [], empty)
    assert printed(empty) == ""
