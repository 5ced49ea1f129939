"""``dse predict`` in the terminal: the answer in sentences, and the predictors with the baselines."""

from rich.console import Console
from rich.table import Table

from dse.prediction.baselines import CALIBRATED, OF_OTHERS, OF_TARGET, SHARE_OF_OTHERS, SHARE_OF_TARGET
from dse.prediction.predict import PredictAnswer, ranked
from dse.prediction.quantities import QUANTITIES
from dse.prediction.transfer import Transfer
from dse.reports.common.terminal_parts import plain_table, print_notes, say

BASELINES = {f"{quantity.model} alone": quantity.model for quantity in QUANTITIES.values()} | {
    OF_OTHERS.format("cycles"): "others' roofline, cycles",
    OF_OTHERS.format("us"): "others' roofline, us",
    OF_TARGET: "target's own roofline",
    SHARE_OF_OTHERS: "others' share of limit",
    SHARE_OF_TARGET: "target's own share",
}
"""Baseline -> what it is called where there is little room."""

HEADS = (
    "* whole devices, or blocks of sizes of one device, left out of training; bold: chosen by it\n"
    "E_out: rows left out at random; in 10: % of the target's rows within 10 %;\nrank: Spearman's correlation"
)
"""What the short heads of a ranking mean."""


def print_predict(answer: PredictAnswer, console: Console) -> None:
    """Print the findings, the ranking of each operator, and what was skipped."""
    for sentence in answer.sentences():
        say(console, sentence, "bold")
    for (op, dtype), transfer in answer.transfers.items():
        console.print()
        console.print(_ranking(f"{op} {dtype}", transfer))
        say(console, HEADS, "dim italic")
    for row in answer.studies.get("host_to_target", [])[:5]:
        line = (
            f"from {answer.host} as host, families out: {row['op']} {row['dtype']} {row['predictor']} ({row['mode']})"
        )
        say(console, f"{line} {row['e_out_families']['error']:.1f} %")
    for row in _least(answer.studies.get("host_counters", [])):
        what = f"with {row['counters']} counters of the host" if row["counters"] else "without them"
        line = f"{what}, families out: {row['op']} {row['dtype']} {row['predictor']} ({row['mode']})"
        say(console, f"{line} {row['e_out_families']['error']:.1f} %")
    print_notes(answer.skipped, answer.notes, console)


def _least(rows: list[dict]) -> list[dict]:
    """Return the best predictor with counters and the best without, of each operator and data type."""
    best: dict[tuple, dict] = {}
    for row in rows:  # in the order of their errors
        best.setdefault((row["op"], row["dtype"], row["counters"]), row)
    return list(best.values())


def _ranking(title: str, transfer: Transfer) -> Table:
    table = plain_table(f"{title}: error, %")
    table.add_column("predictor", no_wrap=True)
    table.add_column("mode", no_wrap=True)
    for name in ("E_out", "out*", "target", "in 10", "rank"):
        table.add_column(name, justify="right", no_wrap=True)
    for predictor in ranked(transfer):
        cells = [f"{predictor.e_out['error']:.1f}", f"{predictor.e_transfer:.1f}", *_target(predictor.target)]
        table.add_row(predictor.name, predictor.mode, *cells, style="bold" if predictor is transfer.chosen else None)
    for baseline in transfer.baselines:
        table.add_row(
            BASELINES.get(baseline.name, baseline.name.replace(CALIBRATED.format(""), "model of ")),
            "baseline" if baseline.fair else "reference",
            "",
            "",
            *_target(baseline.target),
            style=None if baseline.fair else "dim",
        )
    return table


def _target(merits: dict) -> list[str]:
    return [f"{merits['error']:.1f}", f"{merits['inliers']['10']:.0f}", f"{merits['spearman']:.3f}"]
