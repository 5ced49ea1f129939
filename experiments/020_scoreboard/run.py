"""The scoreboard: how far off the shipped calibrations are on what no fit has seen, beside what is asked of them.

Run with ``python experiments/020_scoreboard/run.py [-o FILE] [--seen]`` (a quarter of an hour on two cores; four
minutes with ``--seen``, which leaves out the fits without each GPU in turn). Prints Markdown, and writes it to FILE.
"""

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from dse.base.error_interval import SHARE
from dse.base.skipped_rows import Skipped
from dse.calibration.timing.implementations import load_implementations
from dse.hardware.presets import load_sheet
from dse.measured.regimes import LONG_US
from dse.measured.row_vector import VECTOR
from dse.measured.table import read_times
from dse.reports.common.progress import doing
from dse.timing.calibration import calibration_for, implementation_calibration, load_timing_calibration
from experiments import data
from experiments.common.modules import EXPERIMENTS, experiment
from experiments.data.errors import rows_with_errors

Mask = Callable[[pd.DataFrame], pd.Series]

SLOPES = "021_natural_experiments"

A100, H100, H200 = "a100_sxm_80gb", "h100_sxm", "h200"
TICK_US = 10.0
"""vidur's clock ticks in microseconds: shorter vector kernels tell little [us]."""

BAND = (75.0, 85.0)
"""Of left-out rows an interval called 80 % is to hold so many [%]."""

LAYERS = {"vidur": ("vidur__gemm", "vidur__elementwise_norm"), "LLMServingSim": ("llmservingsim__layers",)}
"""Tables whose operators add up to layers."""

LAYER = ["group", "device", "tp", "tokens"]

SIMULATOR = {"gemm": 6.5, "softmax": 9.4, "layernorm": 8.7, "gelu": 5.5}
"""Errors of LLMCompass's simulator on its own A100 data [%] (its repository, run as it is)."""

INTERVALS = (
    f"Rows that no fit has seen within the interval called {100 * SHARE:.0f} %. By folds: each family held to the "
    "interval that nine tenths of the others make, as a new family would be. As shipped: held to the interval that it "
    "helped make."
)

ERRORS = ("predicted_us", "sheet_us", "three_us")
"""Columns of what is judged: our prediction and two rooflines'."""


Asked = tuple[float, float]
"""The mean error that is required, and the one that is aimed at [%]; NaN where none is."""

NOTHING = (np.nan, np.nan)


@dataclass(frozen=True)
class Line:
    """A line of the scoreboard: an error [%] beside what is asked and the errors of two rooflines [%]."""

    name: str
    count: int
    error: float
    asked: Asked = NOTHING
    sheet: float = np.nan
    three: float = np.nan

    def markdown(self) -> str:
        """Return the line of a table."""
        error, sheet, three = ("" if np.isnan(x) else f"{x:.1f}" for x in (self.error, self.sheet, self.three))
        asked = " / ".join(f"{x:.3g}" for x in self.asked if not np.isnan(x))
        return f"| {self.name} | {self.count} | **{error}** | {asked} | {self.verdict()} | {sheet} | {three} |"

    def verdict(self) -> str:
        """Return whether the aim, or at least what is required, is met."""
        required, aim = self.asked
        met = "aim met" if self.error <= aim else "met" if self.error <= required else "**missed**"
        return "" if np.isnan(required) else met


def _products(gpu: str, table: str = "aiconfigurator__gemm", dtype: str = "bf16", least: float = 0.0) -> Mask:
    return lambda r: (
        (r["table"] == table)
        & (r["op"] == "gemm")
        & (r["dtype"] == dtype)
        & (r["gpu"] == gpu)
        & (r["latency_us"] >= least)
    )


def _ran(*implementations: str) -> Mask:
    return lambda r: (r["table"] == "aiconfigurator__attention") & r["implementation"].isin(implementations)


def _vector(table: str, least: float = 0.0) -> Mask:
    return lambda r: (r["table"] == table) & r["op"].isin(VECTOR) & (r["latency_us"] >= least)


CHECKS: tuple[tuple[str, Mask, Asked], ...] = (
    ("products bf16, A100", _products(A100), (9.5, 8)),
    ("products bf16, H100", _products(H100), (5.5, 4.8)),
    ("products bf16, H200", _products(H200), (5.5, 4.8)),
    ("products bf16 from 50 us, A100", _products(A100, least=LONG_US), (7, 6)),
    ("products bf16 from 50 us, H100", _products(H100, least=LONG_US), (3.6, 3.2)),
    ("products bf16 from 50 us, H200", _products(H200, least=LONG_US), (3.6, 3.2)),
    ("products fp16 (vidur), A100", _products(A100, "vidur__gemm", "fp16"), (5.5, 5)),
    ("products fp16 (vidur), H100", _products(H100, "vidur__gemm", "fp16"), (7, 6)),
    ("prefill, FlashAttention 2 (vLLM, A100)", _ran("fa2_prefill"), (5, 4)),
    ("prefill, sglang (A100)", _ran("sglang_prefill"), (5, 4)),
    ("prefill, FlashAttention 3 (H100, H200)", _ran("fa3_prefill"), (7, 6)),
    ("prefill, TensorRT-LLM (H100)", _ran("trtllm_prefill"), (10, 7)),
    ("decode, FlashAttention 2 (vLLM, A100)", _ran("fa2_decode"), (8, 6.5)),
    ("decode, sglang (A100)", _ran("sglang_decode"), (8, 6.5)),
    ("decode, FlashAttention 3 (H100, H200)", _ran("fa3_decode"), (8, 6.5)),
    ("decode, TensorRT-LLM (H100)", _ran("trtllm_decode", "trtllm_decode_head"), (13.5, 10)),
    ("vector kernels from 10 us (vidur)", _vector("vidur__elementwise_norm", TICK_US), (6.5, 5)),
    ("vector kernels (NeuSight, fp32)", _vector("neusight__vector_fp32"), (6.5, 5)),
    ("quantisation (aiconfigurator)", _vector("aiconfigurator__quant_elementwise"), (12, 8)),
    ("vector kernels in the L2 (LLMServingSim)", _vector("llmservingsim__layers"), (8.5, 6)),
)
"""Name, rows and what is asked of left-out families, of GPUs and implementations that were fitted on others."""

LAYER_SUMS = (8.0, np.nan)
NEVER_PRODUCTS, AFTER_FEW = (13.0, 9.0), (9.0, 6.0)
NEVER_ATTENTION, NEVER_VECTOR = (17.0, 13.0), (15.0, 10.0)
"""Required and aim [%] on what no fit has seen, and after 24 rows of it."""


def line(name: str, rows: pd.DataFrame, asked: Asked = NOTHING) -> Line:
    """Return the line of some rows, or sums of rows."""
    ours, sheet, three = (100 * float((rows[c] / rows["latency_us"] - 1).abs().mean()) for c in ERRORS)
    return Line(name, len(rows), ours, asked, sheet, three)


def seen(rows: pd.DataFrame) -> Iterator[Line]:
    """Yield the lines of left-out families; fp8 was fitted nowhere, so all of its rows count."""
    out = rows[rows["out"]]
    yield from (line(name, out[mask(out)], asked) for name, mask, asked in CHECKS)
    yield line(
        "products fp8, as the rows are (aiconfigurator)",
        rows[(rows["table"] == "aiconfigurator__gemm") & (rows["dtype"] == "fp8")],
    )


def further(file: str) -> Iterator[Line]:
    """Yield the lines of a file of this folder, whose ``parts`` are names, rows and what is asked."""
    for name, rows, asked in experiment("020_scoreboard", file).parts():
        yield line(name, rows, asked)


def layers(rows: pd.DataFrame) -> Iterator[Line]:
    """Yield the errors of sums over the operators of a layer: each GPU's groups, and LLMCompass's prefill."""
    for source, names in LAYERS.items():
        mine = rows[rows["table"].isin(names)]
        mine = mine.assign(tokens=mine["m"].where(mine["m"].notna(), mine["rows"]))
        product = mine["op"].str.startswith("gemm")
        both = mine.assign(p=product, v=~product).groupby(LAYER)[["p", "v"]].transform("any").all(axis=1)
        for device, part in mine[both].groupby("device"):
            sums = part.groupby(LAYER)[["latency_us", *ERRORS]].sum()
            yield line(f"layers ({source}), {device}", sums, LAYER_SUMS)
    others = experiment("012_timing_calibration", "others.py")
    *_, ours, measured = others.layer(data.path("llmcompass__layer_a100"))
    yield Line("GPT-3's prefill layer (LLMCompass)", 1, 100 * abs(ours / measured - 1), LAYER_SUMS)


def simulated(rows: pd.DataFrame) -> Iterator[Line]:
    """Yield LLMCompass's kernels on the A100 beside its simulator's error; all of its rows."""
    mine = rows[(rows["table"] == "llmcompass__kernels_a100") & (rows["gpu"] == A100)]
    for op, theirs in SIMULATOR.items():
        yield line(f"{op} (LLMCompass, A100; its simulator {theirs})", mine[mine["op"] == op])


def intervals(rows: pd.DataFrame) -> Iterator[str]:
    """Yield a line an operator, then one an operator and type: rows that no fit has seen, and the share of them within
    their interval, by folds and as it is shipped."""
    coverage = experiment("012_timing_calibration", "interval_coverage.py")
    calibrations = {str(g): load_timing_calibration(calibration_for(str(g))) for g in rows["gpu"].unique()}
    rows = rows.assign(inside=coverage.inside(rows, calibrations))
    rows = rows[coverage.never_fitted(rows, calibrations)]
    dealt = coverage.by_folds(rows, calibrations)
    for columns in (["op"], ["op", "dtype"]):
        shares = coverage.share(rows, columns).join(coverage.share(dealt, columns)["within"].rename("new"))
        for name, count, within, new in shares.itertuples():
            label = name if isinstance(name, str) else " ".join(name)
            told = (in_band(held, count >= coverage.LEAST) for held in (new, within))
            yield f"| {label} | {count} | {' | '.join(told)} |"


def in_band(share: float, enough: bool) -> str:
    """Return two cells: a share of rows [%], and whether it lies in BAND; of too few rows that says nothing."""
    verdict = "few rows" if not enough else "met" if BAND[0] <= share <= BAND[1] else "**missed**"
    return f"{'' if np.isnan(share) else f'{share:.1f}'} | {verdict}"


def never_products() -> Iterator[tuple[Line, Line]]:
    """Yield a line for each device predicted by a fit to all others, from 50 us on, and one after 24 of its rows."""
    products = experiment("012_timing_calibration")
    devices = products.load(products.GRAPHS | products.OTHERS, products.MOST_SHARED)
    for preset in devices.rows:
        found = products.transfer(devices, preset)
        count = int((found.rows["latency_us"] >= LONG_US).sum())
        name = f"products from 50 us, {preset}"
        required, aim = NEVER_PRODUCTS
        required = min(required, found.sheet[1], found.pooled[1])  # never worse than the better roofline
        asked = (required, min(required, aim))
        yield (
            Line(name, count, found.never_seen[1], asked, found.sheet[1], found.pooled[1]),
            Line(name, count, found.after_few[1], AFTER_FEW),
        )


def never_attention() -> Iterator[Line]:
    """Yield a line for each implementation of attention with the mean costs of all others of its kind."""
    attention = experiment("013_attention")
    frame = pd.concat([read_times(data.path(name)).frame for name in attention.TABLES], ignore_index=True)
    rows = load_implementations(frame, {d: load_sheet(p) for d, p in attention.DEVICES.items()}, Skipped())
    for kind in (attention.PREFILL, attention.DECODE):
        costs = {name: implementation_calibration(name).values for name in kind}
        for name in kind:
            error = 100 * float(np.abs(attention.with_others(rows[name], name, costs) - 1).mean())
            yield Line(name.replace("_", " "), len(rows[name].table), error, NEVER_ATTENTION)


def never_vector() -> Iterator[Line]:
    """Yield a line for each device's vector kernels, its host's overhead unknown too."""
    vector = experiment("014_vector_kernels")
    for name in vector.SOURCES:
        _, frame, sheets = vector.rows_of(name)
        for device, off, _ in vector.unseen(name, frame, sheets):
            yield Line(f"{name}, {device}", len(off), float(off.mean()), NEVER_VECTOR)


def mean(lines: list[Line]) -> Line:
    """Return the mean error over several lines, each counting alike."""
    return Line("mean", sum(x.count for x in lines), float(np.mean([x.error for x in lines])), lines[0].asked)


HEAD = (
    "| | rows | error, % | required / aim | | data sheet's roofline, % | roofline of three numbers, % |\n|---|---|"
    "---|---|---|---|---|"
)


class Page:
    """Markdown that is printed as it comes and kept."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def add(self, *lines: str) -> None:
        """Print some lines and keep them."""
        self.lines += lines
        print(*lines, sep="\n", flush=True)

    def section(self, title: str, says: str, lines: Iterator[Line]) -> list[Line]:
        """Add a table; return its lines."""
        self.add("", f"## {title}", "", says, "", HEAD)
        found = []
        for each in lines:
            self.add(each.markdown())
            found.append(each)
        return found


def seen_sections(page: Page) -> None:
    """Add what the shipped calibrations are worth on left-out rows: no fit is made."""
    with doing("predicting the rows of thirteen tables, about four minutes"):
        rows = rows_with_errors()
    page.section(
        "Left-out families", "GPUs and implementations that were fitted, on shape families that never were.", seen(rows)
    )
    with doing("predicting products in narrow types, about four minutes"):
        lines = list(further("narrow_types.py"))
    page.section(
        "Products in narrow types",
        "With the pass over the activations; families that no fit has seen. Three numbers are fitted to each GPU, "
        "type and release apart.",
        iter(lines),
    )
    page.section(
        "Latent attention and messages",
        "Families and sizes of messages that no fit has seen; the roofline of three numbers has two for messages.",
        further("latent_and_messages.py"),
    )
    page.section(
        "Layers",
        "Sums over the operators of one network, GPU, tensor-parallel degree and token count; "
        "fitted and left-out rows.",
        layers(rows),
    )
    page.section("Beside LLMCompass", "All rows of its A100; nothing of its products was fitted.", simulated(rows))
    page.add("", "## Intervals", "", INTERVALS, "")
    page.add("| operator; operator and type | rows | by folds, % | | as shipped, % | |", "|---|---|---|---|---|---|")
    page.add(*intervals(rows))


def unseen_sections(page: Page) -> None:
    """Add what is known without any row of a GPU or an implementation: fits without each in turn."""
    few = []

    def never() -> Iterator[Line]:
        for unknown, known in never_products():
            few.append(known)
            yield unknown

    page.section(
        "GPUs never seen: products",
        "Each by a fit to the five others, beside its data sheet's roofline and "
        "the pooled one; required is also that neither is better.",
        never(),
    )
    page.section(
        "GPUs with 24 rows measured: products",
        "From 50 us; judged on its left-out families, the mean of three draws (rows: all of the GPU's).",
        iter(few),
    )
    for title, says, lines in (
        (
            "Implementations never seen: attention",
            "Each with the mean costs of all others of its kind.",
            never_attention(),
        ),
        (
            "GPUs never seen: vector kernels",
            "Each by a fit to the library's other GPUs, the host's overhead unknown.",
            never_vector(),
        ),
    ):
        page.add(mean(page.section(title, says, lines)).markdown())


def elsewhere_sections(page: Page) -> None:
    """Add what other experiments' commands left in their READMEs."""
    other = experiment("020_scoreboard", "elsewhere.py")
    for title, folder, says, lines in other.SECTIONS:
        told = (Line(x.name, x.rows, x.error, x.asked, three=x.three) for x in lines())
        page.section(title, f"{says} As the command of `experiments/{folder}` left it.", told)
    page.add("", "## Intervals by what is new", "", f"As `experiments/{other.NOVELTY}` left it.", "")
    page.add("| new | classes | within the interval called 80 %, % | | median interval |", "|---|---|---|---|---|")
    page.add(*(f"| {new} | {n} | {in_band(share, True)} | {width} |" for new, n, share, width in other.novelty()))


def before_elsewhere(text: str) -> list[str]:
    """Return the lines of a page before the sections that other experiments' READMEs tell."""
    first = experiment("020_scoreboard", "elsewhere.py").SECTIONS[0][0]
    lines = text.splitlines()
    return lines[: lines.index(f"## {first}") - 1]  # a blank line stands before a section


def slopes_section(page: Page) -> None:
    """Add what ratios between pairs of real GPUs are off by, as experiments/021_natural_experiments left it."""
    lines = pd.read_csv(EXPERIMENTS / SLOPES / "scores.csv")
    page.add("", "## Slopes", "", f"Mean |log(predicted ratio / measured ratio)| of `experiments/{SLOPES}`.", "")
    page.add(*experiment(SLOPES, "scores.py").by_kind(lines))


def main() -> None:
    """Judge, print, and write where asked."""
    parser = argparse.ArgumentParser()
    parser.add_argument("-o", "--out", type=Path)
    parser.add_argument("--seen", action="store_true", help="only what needs no fit")
    parser.add_argument("--told", action="store_true", help="only what other READMEs tell, anew in the page of --out")
    arguments = parser.parse_args()
    if arguments.told and not arguments.out:
        parser.error("--told: give the page with --out")
    page = Page()
    if arguments.told:
        page.lines += before_elsewhere(arguments.out.read_text(encoding="utf-8"))
    else:
        page.add("# Scoreboard", "", "Mean |predicted / measured - 1| in percent, of `run.py`; lower is better.")
        slopes_section(page)
        seen_sections(page)
        if not arguments.seen:
            unseen_sections(page)
    elsewhere_sections(page)
    if arguments.out:
        arguments.out.write_text("\n".join(page.lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
