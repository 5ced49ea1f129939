"""All-reduces over NVLink: costs of a library's algorithms, fitted to some sizes of messages, judged by the others."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from zlib import crc32

import numpy as np
import pandas as pd
from scipy.optimize import least_squares

from dse import Workload, run
from dse.calibration.timing.answer import LEFT_OUT
from dse.hardware.presets import load_sheet
from dse.measured.protocol import protocols
from dse.workload.kernel import Kernel
from dse.workload.operator import Candidate, Operator
from dse.workload.operators.collective import IN_SWITCH_GPUS, all_reduce_operator
from dse.workload.workload import Phase
from experiments import data

TABLE = "aiconfigurator__comm"
DEVICES = {
    "A100-SXM4-80GB": "a100_sxm_80gb",
    "B200-SXM": "b200",
    "H100-SXM5-80GB": "h100_sxm",
    "H200-SXM-141GB": "h200",
}

LIBRARY = "vllm"
"""Library whose all-reduces are fitted: its own kernel, and NCCL's above 8 or 16 MB."""

HELD_US = 2.0
"""Latency of a link of all but B200 [us], the rule of their files: with the messages of an algorithm free, only its
ratio to B200's is told."""

SPREAD, ROUNDED = 0.02, 0.1
"""Weight of the priors, and log error beyond which a row counts by its distance."""

PRIORS = {
    "latency": 4.0,
    "one_shot messages": 1.0,
    "one_shot further": 0.04,
    "one_shot share": 0.55,
    "two_shot messages": 3.0,
    "two_shot further": 0.2,
    "two_shot share": 0.7,
    "ring messages": 8.0,
    "ring further": 0.3,
    "ring share": 0.9,
    "in_switch messages": 8.0,
    "in_switch share": 0.65,
}
"""Latency of a B200's link [us], and costs of the algorithms, as a fit starts."""

NAMES, START = tuple(PRIORS), np.log(list(PRIORS.values()))


def measured_rows() -> pd.DataFrame:
    """Return the all-reduces of frameworks in CUDA graphs, with ``library``, ``gpu``, ``size``, and ``out``: whether
    the size is left out of the fit (by the CRC-32 of its power of two)."""
    frame = data.frame(TABLE)
    frame = frame[frame["op"].eq("all_reduce_custom") & frame["device"].isin(list(DEVICES))]
    notes = frame["notes"].astype(str)
    frame = frame[~notes.str.contains("eager")].copy()
    frame["library"] = frame["notes"].astype(str).str.extract(r"impl=([a-z]+)")[0]
    power = np.log2(frame["message_bytes"]).round().astype(int)
    out = [crc32(f"collective {i}".encode()) % 10 >= LEFT_OUT for i in power]
    frame = frame.assign(gpu=frame["device"].map(DEVICES), size=2.0**power, out=out)
    return frame.astype({"ranks": int}).reset_index(drop=True)


def of_library(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the library that is fitted."""
    return rows[rows["library"] == LIBRARY].reset_index(drop=True)


def predicted_us(rows: pd.DataFrame) -> np.ndarray:
    """Return what is predicted of rows [us]: the fastest algorithm, and a graph's overhead."""
    return times_of(rows, lambda row: all_reduce_operator("r", row.size, row.ranks, "kernel")) + overhead_us()


def alone_us(rows: pd.DataFrame) -> np.ndarray:
    """Return what the kernels of rows take beside their messages [us]."""

    def alone(row: Any) -> Operator:
        first = all_reduce_operator("r", row.size, row.ranks, "kernel").candidates[0].kernel
        assert isinstance(first, Kernel)
        kernel = replace(first, link_bytes=0.0, link_messages=0.0)
        return Operator("r", "all_reduce", (Candidate("alone", kernel),))

    return times_of(rows, alone)


def times_of(rows: pd.DataFrame, operator: Callable[[Any], Operator]) -> np.ndarray:
    """Return the time of an operator of each row [us], by one run of all of a GPU's."""
    found = pd.Series(0.0, rows.index)
    for gpu, part in rows.groupby("gpu"):
        kinds = part.drop_duplicates(["ranks", "size"])
        made = (replace(operator(row), name=f"r{i}") for i, row in enumerate(kinds.itertuples()))
        kernels = run(str(gpu), Workload("all", "all-reduces", tuple(made), (Phase("kernel"),))).kernels
        us = dict(zip(zip(kinds["ranks"], kinds["size"], strict=True), kernels["time_us"], strict=True))
        found[part.index] = [us[key] for key in zip(part["ranks"], part["size"], strict=True)]
    return found.to_numpy()


def overhead_us() -> float:
    """Return what a replayed graph adds to a kernel [us]."""
    return protocols()["aiconfigurator"].overhead_us


def fit(rows: pd.DataFrame) -> dict[str, float]:
    """Return fitted costs by name; each generation of links counts alike."""
    seen, link = rows[~rows["out"]], {gpu: load_sheet(gpu).numbers()["nvlink_gbs"] * 1e3 for gpu in DEVICES.values()}
    p, size, bandwidth = seen["ranks"].to_numpy(), seen["size"].to_numpy(), seen["gpu"].map(link).to_numpy()
    rest, us = alone_us(seen) + overhead_us(), seen["latency_us"].to_numpy()
    blackwell, older = (seen["gpu"] == "b200").to_numpy(), (seen["gpu"] == "a100_sxm_80gb").to_numpy()
    weight = 1 / np.sqrt(seen.groupby(bandwidth)["size"].transform("size").to_numpy())
    weight /= weight.mean()

    def error(logs: np.ndarray) -> np.ndarray:
        c = dict(zip(NAMES, np.exp(logs), strict=True))
        latency = np.where(blackwell, c["latency"], HELD_US)

        def of(name: str, sent: np.ndarray) -> np.ndarray:
            messages = c[f"{name} messages"] + c.get(f"{name} further", 0.0) * (p - 2)
            return latency * messages + sent / (c[f"{name} share"] * bandwidth)

        scattered, summed = 2 * (p - 1) / p * size, (1 + 1 / p) * size
        able = (p >= IN_SWITCH_GPUS) & ~older
        ways = [of("one_shot", (p - 1) * size), of("two_shot", scattered), of("ring", scattered)]
        ways.append(np.where(able, of("in_switch", summed), np.inf))
        return np.r_[weight * np.log((rest + np.min(ways, axis=0)) / us), SPREAD * (logs - START)]

    found = least_squares(error, START, loss="soft_l1", f_scale=ROUNDED)
    return dict(zip(NAMES, np.exp(found.x).tolist(), strict=True))


def three_numbers(rows: pd.DataFrame) -> np.ndarray:
    """Return the times of rows [us] by an overhead and a share of the link, fitted to each GPU's, ranks' and library's
    fitted sizes."""
    found = pd.Series(0.0, rows.index)
    for _, part in rows.groupby(["gpu", "ranks", "library"]):
        sent, seen = part["size"].to_numpy(), ~part["out"].to_numpy()
        us = np.log(part["latency_us"].to_numpy()[seen])
        best = least_squares(lambda x, s=sent[seen], u=us: np.log(np.exp(x[0]) + s / np.exp(x[1])) - u, [1.5, 12.0])
        found[part.index] = np.exp(best.x[0]) + sent / np.exp(best.x[1])
    return found.to_numpy()
