"""Sections of the scoreboard that other experiments' commands left in their READMEs: levels, whole services, watts."""

from collections.abc import Iterator
from typing import NamedTuple

from experiments.common.implementations import OVER
from experiments.common.modules import EXPERIMENTS
from experiments.common.readme_tables import table_in

NONE = float("nan")
Asked = tuple[float, float]
NOTHING = (NONE, NONE)

MIXTURES, ATTENTION, NETWORKS, POWER, NOVELTY = (
    "026_mixtures", "027_attention_today", "019_whole_networks", "006_board_power", "023_novelty",
)  # fmt: skip

FORWARD = "pytorch_eager"
"""The engine that serves nothing: single passes, none of them fitted."""

HOPPER, B200 = ("H100-SXM5-80GB", "H200-SXM-141GB"), "B200-SXM"

MIXED, BY_POWER_LAW = (10.0, 7.0), (14.0, 10.0)
TODAY: dict[str, Asked] = {B200: (9.0, 7.0)} | dict.fromkeys(HOPPER, (7.0, 5.0))
SERVED = (10.0, 8.0)
WATTS: dict[str, Asked] = {"H200": (14.0, 10.0), "B200": (14.0, 10.0), "A100 PCIe": (10.0, NONE)}
"""Required and aim [%]; of attention and watts by device."""


class Told(NamedTuple):
    """A line that a README tells: rows, an error [%], what is asked, and that of a roofline of three numbers [%]."""

    name: str
    rows: int
    error: float
    asked: Asked = NOTHING
    three: float = NONE


def table(folder: str, name: str) -> list[dict[str, str]]:
    """Return the rows of a table between marks of an experiment's README, by the words of its head."""
    head, _, *rows = (
        [cell.strip() for cell in line.strip().strip("|").split("|")]
        for line in table_in(EXPERIMENTS / folder / "README.md", name).splitlines()
    )
    return [dict(zip(head, row, strict=True)) for row in rows]


def mixtures() -> Iterator[Told]:
    """Yield left-out families of mixtures, all releases of a type together."""
    for row in table(MIXTURES, "mixtures"):
        if row["GPU"] or not row["implementation"].startswith("all of "):
            continue
        name = f"mixtures {row['implementation'].removeprefix('all of ')}, H100 and H200"
        out, three = int(row["left out"]), float(row["roofline, %"])
        yield Told(name, out, float(row["left out, %"]), MIXED, three)
        yield Told("... those of them with loads by a power law", out, float(row["by a power law"]), BY_POWER_LAW)
    for row in (*table(MIXTURES, "others"), *table(MIXTURES, "warp_level")):
        if row["implementation"].startswith("all of "):
            name = f"mixtures {row['implementation'].removeprefix('all of ')}, {row['GPU']}"
            yield Told(name, int(row["left out"]), float(row["left out, %"]), NOTHING, float(row["roofline, %"]))


def attention() -> Iterator[Told]:
    """Yield left-out head shapes of today's libraries."""
    for row in table(ATTENTION, "together"):
        asked = TODAY.get(row["GPU"], NOTHING)
        name = f"{row['operator'].removeprefix('attn_')}, {row['GPU']}"
        three = NONE if row["roofline, %"] == OVER else float(row["roofline, %"])
        yield Told(name, int(row["left out"]), float(row["left out, %"]), asked, three)


def networks() -> Iterator[Told]:
    """Yield whole runs and tokens of servers, by engine: families left out, networks and GPUs never seen."""
    for row in table(NETWORKS, "engines"):
        for column in ("left out", "a network never seen", "a GPU never seen"):
            if row[column] != "-":
                asked = SERVED if column == "left out" and row["engine"] != FORWARD else NOTHING
                yield Told(f"{row['engine']}, {column}", int(row["runs"]), float(row[column].split()[0]), asked)


def power() -> Iterator[Told]:
    """Yield watts of boards that are left out of the fit."""
    for row in table(POWER, "boards"):
        board, _, what = row["what"].partition(", ")
        error = row["its board left out: mean"]
        if what == "all" and error:
            yield Told(board, int(row["rows"]), float(error), WATTS.get(board, NOTHING))


def novelty() -> Iterator[tuple[str, int, float, str]]:
    """Yield what is new, classes, the share of rows within [%] and the median interval."""
    for row in table(NOVELTY, "kinds"):
        yield row["new"], int(row["classes"]), float(row["within, %"]), row["median interval"]


SECTIONS = (
    (
        "Mixtures of experts",
        MIXTURES,
        "Families left out; three numbers are fitted to the other families of each GPU and type.",
        mixtures,
    ),
    (
        "Attention of today's libraries",
        ATTENTION,
        "Head shapes left out; three numbers are fitted to each GPU, operator and type (none told: over 100 %).",
        attention,
    ),
    (
        "Whole networks and servers",
        NETWORKS,
        "Times of whole runs and of tokens, by engine; rows: all runs of the engine, three in ten of them left out.",
        networks,
    ),
    ("Board power", POWER, "Kernels from 200 us on and passes; each board left out of the fit.", power),
)
"""Title, experiment, what it says, and its lines."""
