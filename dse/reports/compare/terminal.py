"""``dse compare`` in the terminal: the answer, then a table a value of the axis."""

from rich.console import Console

from dse.explanation.gpu_comparison import GpuComparison
from dse.reports.common.terminal_parts import plain_table, say
from dse.reports.compare.data import (
    HEADS,
    answer,
    better_text,
    cells,
    compared_text,
    groups,
    own_names,
    ratio_text,
    refusals,
    shown_metrics,
)


def print_comparison(comparison: GpuComparison, console: Console) -> None:
    """Print which GPU is best in what, tables with ratios to the first GPU, and notes."""
    say(console, comparison.workload, "bold")
    for sentence in answer(comparison):
        say(console, sentence)
    for title, rows in groups(comparison):
        console.print()
        heads = [HEADS[name] for name in shown_metrics(comparison)]
        table = plain_table(title)
        table.add_column("GPU", no_wrap=True, min_width=max(len(str(name)) for name in rows["gpu"]))
        for head in (*heads, "ratio", "better"):
            table.add_column(head, justify="right", overflow="fold")
        for _, row in rows[rows["reason"] == ""].iterrows():
            texts = (str(row["gpu"]), *cells(comparison, row), ratio_text(row), better_text(row))
            table.add_row(*texts, style="dim" if row["beyond"] else "")
        if table.row_count:
            console.print(table)
        elif title:
            say(console, title, "bold")
        for sentence in refusals(rows):
            say(console, sentence, "yellow")
        for limit, beyond in rows[rows["beyond"] != ""].groupby("beyond", sort=False):
            say(console, f"beyond {limit}: {', '.join(beyond['gpu'])}", "yellow")
    console.print()
    say(console, f"{compared_text(comparison)}; USD/M: dollars a million tokens", "dim")
    for text in own_names(comparison):
        say(console, text, "dim")
    say(console, f"timing: calibration {comparison.calibration}", "dim")
    for text in comparison.notes:
        say(console, text, "dim")
