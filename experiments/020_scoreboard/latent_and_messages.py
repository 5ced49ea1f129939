"""Lines of the scoreboard of latent attention and all-reduces: rows and sizes that no fit has seen."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from dse.base.skipped_rows import Skipped
from dse.calibration.timing.rows_fit import left_out
from dse.hardware.presets import load_sheet
from dse.validation.baselines import with_rooflines
from experiments.common.implementations import shipped_us
from experiments.common.modules import experiment

FOLDER = "025_latent_and_mixtures"

ASKED = {"mla_decode": (9.0, 7.0), "mla_prefill": (10.0, 7.0)}
MESSAGES = (13.0, 9.0)
"""Required and aim [%]."""

DEVICES = ("H100", "H200", "B200")
"""Beginnings of the devices that were asked for."""


def parts() -> Iterator[tuple[str, pd.DataFrame, tuple[float, float]]]:
    """Yield the name of a line, its rows with what is predicted and both rooflines [us], and what is asked."""
    latent = experiment(FOLDER, "latent.py")
    _, rows = latent.latent_rows(Skipped())
    every = [
        with_rooflines(rows[name].table).assign(predicted_us=shipped_us(name, rows[name])) for name in latent.FITTED
    ]
    frame = pd.concat(every, ignore_index=True)
    frame = frame[left_out(frame["family"]) & frame["device"].astype(str).str.startswith(DEVICES)]
    for op, asked in ASKED.items():
        yield f"{op}, TensorRT-LLM and sglang ({', '.join(DEVICES)})", frame[frame["op"] == op], asked
    yield "all-reduces over NVLink, vLLM (A100, H100, H200, B200)", _reduced(), MESSAGES


def _reduced() -> pd.DataFrame:
    """All-reduces of left-out sizes; the sheet's roofline is the ring's bytes over the link."""
    reduces = experiment(FOLDER, "all_reduces.py")
    rows = reduces.of_library(reduces.measured_rows())
    link = rows["gpu"].map({gpu: load_sheet(gpu).numbers()["nvlink_gbs"] * 1e3 for gpu in rows["gpu"].unique()})
    sheet = 2 * (rows["ranks"] - 1) / rows["ranks"] * rows["size"] / link
    three = reduces.three_numbers(rows)
    rows = rows.assign(predicted_us=reduces.predicted_us(rows), sheet_us=sheet, three_us=three)
    return rows[np.asarray(rows["out"], bool)]
