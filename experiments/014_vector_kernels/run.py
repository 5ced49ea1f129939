"""Calibrations of vector kernels by implementation: counts, floors, shared shares of rates, errors on unseen rows.

Run with ``python experiments/014_vector_kernels/run.py [--write] [--unseen]`` (three minutes on two cores). Families
(operator, columns, quarter of a doubling of the rows) whose CRC-32 modulo 10 is 7 or more are never fitted. Prints
the README's tables; ``--write`` writes the tables of counts and overheads and the implementations' TOMLs of this
checkout; ``--unseen`` adds each device predicted from the others; ``--intervals`` rewrites only the intervals of the
TOMLs (five minutes); ``--quick`` only judges the shipped calibrations, and writes the README's first table.
"""

import argparse
import csv
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from dse.base import package_tables as tables
from dse.base.skipped_rows import Skipped
from dse.calibration.timing.answer import TimingAnswer
from dse.calibration.timing.rows_fit import fit_timed, left_out
from dse.hardware.presets import GpuSheet, find_preset, load_sheet
from dse.measured.protocol import protocol_of
from dse.measured.protocol_overheads import ANY
from dse.measured.row_vector import VECTOR, vector_family
from dse.measured.table import OperatorTable, read_times
from dse.measured.timed_rows import TimedRows, blocks, joined
from dse.timing.calibration import implementation_calibration, shipped_implementations
from dse.validation.error_quantiles import coverage_by_others, errors_of, rewrite, seen
from dse.validation.error_quantiles import unseen as of_unseen
from dse.workload.operators import vector
from experiments import data
from experiments.common.implementations import HEADER, row_of, with_errors
from experiments.common.readme_tables import markdown, write_table
from experiments.common.vector_fit import VectorFit, fit_vector
from experiments.data.errors import rows_with_errors

SOURCES = {
    "vllm_vector": ("vidur__elementwise_norm",),
    "pytorch_vector": ("neusight__vector_fp32", "llmcompass__kernels_a100"),
    "quantise": ("aiconfigurator__quant_elementwise",),
    "vllm_0_19_vector": ("llmservingsim__layers",),
}
TICK_US = {"vllm_vector": 10.0}
"""A clock of whole microseconds says little of shorter kernels: they weigh their share of this."""

DATA = Path(tables.__file__).parent / "data" / "calibration"
HERE = "experiments/014_vector_kernels"


def rows_of(
    implementation: str, tables: Iterable[str] = ()
) -> tuple[list[OperatorTable], pd.DataFrame, dict[str, GpuSheet]]:
    """Return the vector rows that an implementation is fitted on, with families, and the GPUs of their devices; of
    other ``tables`` where given."""
    read = [read_times(data.path(name)) for name in tables or SOURCES[implementation]]
    frame = pd.concat([table.frame[table.frame["op"].isin(VECTOR)] for table in read], ignore_index=True)
    frame["family"] = [vector_family(row) for row in frame.itertuples()]
    n = frame.groupby(["source", "op"])["op"].transform("size").to_numpy()
    tick = TICK_US.get(implementation, 0.0)
    short = np.minimum(1.0, frame["latency_us"] / tick) if tick else 1.0
    frame["weight"] = short / np.sqrt(n)  # operators count by the root of their rows
    return read, frame, {str(d): load_sheet(str(d)) for d in frame["device"].unique() if find_preset(str(d))}


def errors(frame: pd.DataFrame, predicted: np.ndarray, out: np.ndarray, least: float) -> None:
    """Print errors by operator and device, of left-out rows of ``least`` us or more, with all fitted ones below."""
    off = 100 * np.abs(predicted / frame["latency_us"].to_numpy() - 1)
    long = frame["latency_us"].to_numpy() >= least
    table = frame.assign(off=off)[out & long].pivot_table(index="op", columns="device", values="off", aggfunc="mean")
    print(f"\n| left out, from {least:g} us |", " | ".join(table.columns), "|\n|---" + "|---" * table.shape[1] + "|")
    for op, values in table.iterrows():
        print(f"| {op} |", " | ".join(f"{v:.1f}" if v == v else "-" for v in values), "|")
    count = int((out & long).sum())
    print(
        f"left out {off[out & long].mean():.2f} % (median {np.median(off[out & long]):.2f}, {count} "
        f"rows), fitted {off[~out & long].mean():.2f} %; all sizes {off[out].mean():.2f} %",
        flush=True,
    )


def write_counts(fits: dict[str, VectorFit]) -> None:
    """Put fitted counts in place of the old ones, the facts untouched; and the overheads of every protocol."""
    path = DATA / "vector_counts.csv"
    rows = tables.read_table("calibration/vector_counts.csv")
    copied = [(row, row["source"].split(" ")[1:]) for row in rows if row["source"].startswith("as ")]
    for row in rows:
        fitted = fits[row["implementation"]].counts.get(row["op"], {}) if row["implementation"] in fits else {}
        if row["attribute"] in fitted and row["status"] in ("prior", "fitted"):
            row |= {"value": f"{fitted[row['attribute']]:.5g}", "source": HERE, "status": "fitted"}
    for row, (implementation, op) in copied:
        row["value"] = next(
            r["value"]
            for r in rows
            if (r["implementation"], r["op"], r["attribute"]) == (implementation, op, row["attribute"])
        )
    _write(path, rows)
    found = [row for fit in fits.values() for row in _overheads(fit)]
    new = {row["harness"] for row in found}
    kept = [row for row in tables.read_table("calibration/vector_overheads.csv") if row["harness"] not in new]
    _write(DATA / "vector_overheads.csv", kept + found)
    for cached in (tables._rows, vector.vector_counts, *_caches()):
        cached.cache_clear()


def _caches() -> tuple:
    from dse.measured import protocol_overheads as overheads

    return (overheads._overheads, overheads._stated, overheads.host_slowness)


def _overheads(fit: VectorFit) -> list[dict[str, str]]:
    """Rows of the table of overheads; for hosts that nobody has measured the mean of the known ones, by operator."""
    floors = dict(fit.floors)
    for harness, op in sorted({(h, op) for h, _, op in floors if op != ANY}):
        mine = [pair for (h, _, o), pair in floors.items() if (h, o) == (harness, op)]
        mean = float(np.exp(np.mean(np.log([o for o, _ in mine]))))
        floors[harness, ANY, op] = (mean, float(np.mean([s for _, s in mine])))
    return [
        {
            "harness": harness,
            "device": device,
            "op": op,
            "overhead_us": f"{o:.5g}",
            "shadow_us": f"{s:.4g}",
            "unit": "us",
            "source": HERE,
            "status": "fitted",
        }
        for (harness, device, op), (o, s) in floors.items()
    ]


def _write(path: Path, rows: list[dict[str, str]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def timed(frame: pd.DataFrame, sheets: dict[str, GpuSheet]) -> TimedRows:
    """Return rows with their kernels, of the counts as they stand in the tables."""
    return joined(list(blocks(frame, sheets, None, Skipped())))


def staged(
    implementation: str, read: list[OperatorTable], frame: pd.DataFrame, sheets: dict[str, GpuSheet], fit: VectorFit
) -> TimingAnswer:
    """Return the staged fit of shares and costs at the fitted counts, and print what it is worth."""
    rows = timed(frame, sheets)
    gpus = tuple(sorted({sheet.name for sheet in sheets.values()}))
    weight = rows.table["weight"].to_numpy(float)
    answer = fit_timed(
        implementation, read, gpus, rows, implementation=implementation, start=fit.sustained, weight=weight
    )
    for stage in answer.fit.stages:
        print(f"{stage.name}: fitted {stage.fitted or 0:.2f} %, left out {stage.left_out or 0:.2f} %")
    for c in answer.coefficients():
        words = "at its bound" if c["at_bound"] else "" if c["determined"] else "not determined"
        print(f"{c['name']} {c['value']:.4g} {c['unit']} ({c['low']:.3g} to {c['high']:.3g}) {words}")
    errors(rows.table, answer.fit.predicted_us, left_out(rows.table["family"]), TICK_US.get(implementation, 0.0))
    return answer


def unseen(
    implementation: str, frame: pd.DataFrame, sheets: dict[str, GpuSheet], known: bool = False
) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yield each device with the errors [%] and the times [us] of its rows under a fit to the others.

    ``known``: its host's floors are fitted with the rest, on the three smallest kernels of each operator, which count
    in no error.
    """
    us, least = frame["latency_us"].to_numpy(), TICK_US.get(implementation, 0.0)
    for device in sorted(sheets) if len(sheets) > 1 else ():
        mine, tiny = (frame["device"] == device).to_numpy(), smallest(frame, device)
        weights = np.where(mine & ~(tiny & known), 0.0, frame["weight"])
        off = 100 * np.abs(fit_vector(frame, sheets, implementation, weights).predicted_us / us - 1)
        judged = mine & ~tiny & (us >= least)
        yield device, off[judged], us[judged]


def show_unseen(implementation: str, frame: pd.DataFrame, sheets: dict[str, GpuSheet]) -> None:
    """Print the error on each device of a fit to the others; where the host shows, also with its floors known."""
    for known in (False, True) if implementation == "pytorch_vector" else (False,):
        for device, off, us in unseen(implementation, frame, sheets, known):
            print(
                f"{implementation}, {device} never seen{', floors known' * known}: {off.mean():.1f} % "
                f"({off[us >= 100].mean():.1f} % from 100 us)",
                flush=True,
            )


def transfers(implementation: str) -> dict[str, pd.DataFrame]:
    """Return each device's rows with errors under a fit to the others; a host's floors are then the others' mean."""
    _, frame, sheets = rows_of(implementation)
    found = {}
    for device in sorted(sheets) if len(sheets) > 1 else ():
        mine = (frame["device"] == device).to_numpy()
        fit = fit_vector(frame, sheets, implementation, np.where(mine, 0.0, frame["weight"]))
        way = [protocol_of(str(source)).name for source in frame["source"]]
        bare = frame.assign(harness=way, compute_us=0.0, memory_us=1.0)  # bytes rule all of them
        found[device] = errors_of(bare[mine], fit.predicted_us[mine])
    return found


def write_intervals(rows: pd.DataFrame, between: dict[str, dict[str, pd.DataFrame]]) -> None:
    """Rewrite the intervals of the shipped implementations; no parameter changes.

    ``rows``: of :func:`rows_with_errors`; ``between``: implementation -> its :func:`transfers`. PyTorch's are those of
    eager fp32; where one GPU alone was measured, those of vLLM's other kernels and of quantisation stand for its own.
    """
    rows = rows[rows["op"].isin(VECTOR)]
    for name in SOURCES:
        own = implementation_calibration(name)
        mine = rows[rows["implementation"] == name]
        found = seen(mine, own.overheads, own.gpus)
        pooled = between.get(name) or between["vllm_vector"] | {f"{d} fp8": t for d, t in between["quantise"].items()}
        pooled = [part[part["dtype"] == "fp32"] if name == "pytorch_vector" else part for part in pooled.values()]
        pooled = [part for part in pooled if len(part)]
        for op, dtype in sorted(set(mine[["op", "dtype"]].itertuples(index=False, name=None))):
            same = [part[part["op"] == op] for part in pooled]
            alike = pooled if name not in between else [part for part in same if len(part)]
            found += of_unseen(alike, name, str(op), str(dtype))
        rewrite(shipped_implementations()[name], found)


def smallest(frame: pd.DataFrame, device: str) -> np.ndarray:
    """Return the mask of a device's three smallest kernels of each operator."""
    size = (frame["rows"] * frame["cols"]).where(frame["device"] == device)
    return (size.groupby(frame["op"]).rank(method="first") <= 3).to_numpy()


def shipped_table() -> str:
    """Return the README's table of the shipped calibrations, of rows from TICK_US on."""
    lines = []
    for name in SOURCES:
        _, frame, sheets = rows_of(name)
        found = with_errors(name, timed(frame, sheets))
        found = found[found["latency_us"] >= TICK_US.get(name, 0.0)]
        lines += [row_of(name, str(device), part) for device, part in found.groupby("device", observed=True)]
        lines.append(row_of(name, "all", found))
    return markdown(HEADER, lines, 2)


def main() -> None:
    """Fit and print; write where asked."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--unseen", action="store_true")
    parser.add_argument("--intervals", action="store_true")
    parser.add_argument("--quick", action="store_true", help="only judge the shipped calibrations")
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    if arguments.quick:
        write_table(Path(__file__).parent / "README.md", "shipped", shipped_table())
        return
    if arguments.intervals:
        names = [table for source in SOURCES.values() for table in source]
        between = {name: transfers(name) for name in SOURCES if name != "vllm_0_19_vector"}
        eager = [part[part["dtype"] == "fp32"] for part in between["pytorch_vector"].values()]
        held = coverage_by_others([part for part in eager if len(part)])
        print("PyTorch's kernels on a GPU never seen, within the others' interval [%]:", held)
        write_intervals(rows_with_errors(names), between)
        return
    wanted = [name for name in SOURCES if arguments.only in ("", name)]
    read = {name: rows_of(name) for name in wanted}
    fits = {}
    for name, (_, frame, sheets) in read.items():
        out = left_out(frame["family"])
        fits[name] = fit_vector(frame, sheets, name, np.where(out, 0.0, frame["weight"]))
        print(f"\n## {name}: counts")
        errors(frame, fits[name].predicted_us, out, TICK_US.get(name, 0.0))
    if arguments.write:
        write_counts(fits)
        for name, (source, frame, sheets) in read.items():
            print(f"\n## {name}: stages")
            staged(name, source, frame, sheets, fits[name]).write(DATA / "implementations" / f"{name}.toml")
    for name, (_, frame, sheets) in read.items() if arguments.unseen else ():
        show_unseen(name, frame, sheets)


if __name__ == "__main__":
    main()
