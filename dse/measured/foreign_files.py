"""Files of measurements that other programs write and that are no measured table: each told with the way to one."""

from pathlib import Path

from dse.base.csv_table import PARQUET
from dse.base.errors import InputError
from dse.base.text_file import TABLE, read_text

START = 4000
"""Characters by which a file is known."""

KNOWN = (
    (
        ("Total Time (ns)", "Instances", "Name"),
        "is a summary of Nsight Systems, which says no shapes; profile with Nsight Compute (ncu --nvtx --csv), or "
        "give a table of device, op, dtype, shape and latency_us",
    ),
    (
        ("HW_power", "st_dev"),
        "holds AccelWattch's measured watts alone, and a fit needs the counters of each kernel too; give a table with "
        "kernel, benchmark_group, meas_W and the components (hw_..._W)",
    ),
    (
        ("ttft", "tpot", "{"),
        "is the JSON of a serving benchmark; give a CSV of its runs: device, op (serving_tpot, llm_prefill), dtype, "
        "group (the network), batch, seq_q (prompt), seq_kv (output), tp, latency_us (a mean_tpot_ms of 9.1 is 9100)",
    ),
)
"""Words that all stand at a file's start -> what it is, and what to give instead."""


def refuse_foreign(path: Path) -> None:
    """Raise InputError where a file is another program's, or JSON; one that cannot be read passes."""
    if Path(path).suffix == PARQUET:
        return
    try:
        start = read_text(path, TABLE, any_bytes=True)[:START]
    except InputError:
        return  # who reads the table says why
    for words, sentence in KNOWN:
        if all(word in start for word in words):
            raise InputError(f"{path}: {sentence}")
    if start.lstrip().startswith(("{", "[{")):
        raise InputError(f"{path}: is JSON; give a CSV or Parquet table of device, op, dtype, shape and latency_us")
