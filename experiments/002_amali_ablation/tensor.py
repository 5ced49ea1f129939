"""HMMA.16816 against HMMA.1688: one GEMM main loop in both instructions, under a fixed tensor unit and Eq. (25)."""

import gzip
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from variants import VARIANTS

from dse.hardware.presets import GpuSheet, changed, preset_sheet
from dse.timing.traced.gcom import gcom_trace
from dse.timing.traced.gcom_gpu import config_of_sheet
from dse.timing.traced.models import on_trace
from dse.timing.traced.trace_profile import traced_workload
from dse.traces.trace_files import read_directory

HMMA = {"HMMA.16816.F32": 2048, "HMMA.1688.F32": 1024}
"""Opcode -> FMA a warp instruction; the second needs twice as many for the same product."""

WARPS, CTAS = 8, 2
STEPS = (8, 16)
"""Steps of 16 in k of the short and the long trace; what lies between them has no prologue in it."""

ACCUMULATORS = [64 + 4 * i for i in range(32)]
"""First registers of the m16n8 accumulators of a warp's 64 x 64 results."""

HEADER = """-kernel name = {name}
-kernel id = 1
-grid dim = ({ctas},1,1)
-block dim = ({threads},1,1)
-shmem = 32768
-nregs = 232
-binary version = 75
-cuda stream id = 0
-shmem base_addr = 0x00007f0000000000
-local mem base_addr = 0x00007f0002000000
-nvbit version = 1.5.5
-accelsim tracer version = 3

#traces format = PC mask dest_num [reg_dests] opcode src_num [reg_srcs] mem_width [adrrescompress?] [mem_addresses]

"""
"""Binary version 75, which GCoM reads, whatever GPU the trace is timed on."""


def warp_lines(opcode: str, steps: int) -> Iterator[str]:
    """Yield a warp's main loop: fragments of the next step are read while the 64 x 64 x 16 products of this one run.

    Eight 128-bit reads bring a step's fragments (A 64 x 16, B 16 x 64, in 16 bits); no accumulator is used twice
    within 32 instructions.
    """
    halves = 2048 // HMMA[opcode]
    for step in range(steps):
        here, ahead = 32 * (step % 2), 32 * ((step + 1) % 2)
        for read in range(8):
            yield f"R{ahead + 4 * read} LDS.128 1 R252 16 1 {hex(0x100 + 0x200 * read)} 16"
        for half in range(halves):
            for i, sums in enumerate(ACCUMULATORS):
                a, b = here + 4 * (i // 8) + 2 * half * (halves - 1), here + 16 + 4 * (i % 8 // 2) + half
                yield f"R{sums} {opcode} 3 R{a - a % 4} R{b - b % 4} R{sums} 0"
        yield "R252 IADD3 1 R252 0"
        yield "R253 ISETP.LT.AND 2 R252 R254 0"


def write_trace(folder: Path, opcode: str, steps: int) -> Path:
    """Write the trace directory of a kernel of CTAS x WARPS warps that all run the loop."""
    body = [f"{16 * pc:04x} ffffffff 1 {line}" for pc, line in enumerate(warp_lines(opcode, steps))]
    body.append(f"{16 * len(body):04x} ffffffff 0 EXIT 0 0")
    warps = "".join(f"warp = {w}\ninsts = {len(body)}\n" + "\n".join(body) + "\n\n" for w in range(WARPS))
    blocks = "".join(f"#BEGIN_TB\n\nthread block = {c},0,0\n\n{warps}#END_TB\n\n" for c in range(CTAS))
    text = HEADER.format(name=opcode, ctas=CTAS, threads=32 * WARPS) + blocks
    folder.mkdir(parents=True)
    (folder / "kernel-1.traceg.gz").write_bytes(gzip.compress(text.encode(), 1, mtime=0))
    (folder / "kernelslist.g").write_text("kernel-1.traceg.gz\n", encoding="utf-8")
    return folder


def gpus() -> dict[str, GpuSheet]:
    """Return A100 and H100, and an H100 whose warp-level HMMA reach the whole rate, as Eq. (25) alone has it."""
    h100 = preset_sheet("h100_sxm")
    whole = changed(h100, {"warp_mma_fraction": 1.0}, "H100, Eq. (25) alone")
    return {"A100": preset_sheet("a100_sxm_80gb"), "H100": h100, "H100, Eq. (25) alone": whole}


def gcom_cycles(trace: Path, sheet: GpuSheet) -> float:
    """Return GCoM's cycles; its L2 hash knows up to 64 sets a slice, so the L2 is made 10 MiB (the loop reads none)."""
    config = config_of_sheet(changed(sheet, {"l2_mib": 10.0}, "64 sets a slice"))
    return gcom_trace(read_directory(trace), config)[0].stack.cycles


def amali_cycles(trace: Path, sheets: Sequence[GpuSheet]) -> np.ndarray:
    """Return AMALI's cycles on each GPU."""
    kernel = traced_workload(trace, [sheet.numbers() for sheet in sheets]).recorded[0]
    batch = jax.tree.map(lambda *values: jnp.stack(values), *(sheet.record() for sheet in sheets))
    return np.asarray(jax.jit(lambda gpu: on_trace(VARIANTS["amali as printed"], kernel, gpu).cycles)(batch), float)


def study(steps: tuple[int, int] = STEPS) -> pd.DataFrame:
    """Return a row a GPU, model and opcode: cycles of a step in k, and of one HMMA on its tensor core."""
    sheets = gpus()
    cycles = {}
    with TemporaryDirectory() as folder:
        for opcode, n in ((o, n) for o in HMMA for n in steps):
            trace = write_trace(Path(folder) / f"{opcode}-{n}", opcode, n)
            cycles["amali", opcode, n] = amali_cycles(trace, list(sheets.values()))
            cycles["gcom", opcode, n] = np.array([gcom_cycles(trace, sheet) for sheet in sheets.values()])
    rows = []
    for model, (opcode, fma) in ((m, o) for m in ("gcom", "amali") for o in HMMA.items()):
        step = (cycles[model, opcode, steps[1]] - cycles[model, opcode, steps[0]]) / (steps[1] - steps[0])
        issued = WARPS / 4 * len(ACCUMULATORS) * 2048 / fma  # HMMAs of a step on a tensor core: a CTA on each SM
        columns = {"model": model, "opcode": opcode, "cycles_of_step": step, "cycles_of_hmma": step / issued}
        rows.append(pd.DataFrame({"gpu": list(sheets)} | columns))
    return pd.concat(rows, ignore_index=True)
