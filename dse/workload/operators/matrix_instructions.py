"""Classes of matrix instructions: what a warp instruction does, and on which GPUs it exists."""

from collections.abc import Iterable
from dataclasses import dataclass

from dse.base.errors import InputError
from dse.hardware.presets import GpuSheet
from dse.workload.dtypes import BITS
from dse.workload.kernel import ANY_NEWER


@dataclass(frozen=True)
class MatrixInstruction:
    """A class of matrix instructions.

    ``fma`` [FMA/warp instruction] by data type (the opcode's modifiers, AMALI Eq. 25); ``compute_capability`` at
    least; ``warpgroup``: issued by four warps together, operands read from shared memory by the tensor core;
    ``rows``: rows of the first operand that one instruction takes; ``stages`` of the software pipeline.
    """

    name: str
    compute_capability: float
    fma: dict[str, float]
    stages: int
    warpgroup: bool = False
    rows: int = 16
    capability_end: float = ANY_NEWER

    def supports(self, dtype: str) -> bool:
        """Whether the class computes in ``dtype``."""
        return dtype in self.fma


_WARPGROUP_DTYPES = ("tf32", "bf16", "fp16", "fp8", "int8", "fp4")


def _warpgroup_fma(rows: int) -> dict[str, float]:
    """FMAs a warp does per instruction and column of the second operand: rows x 32 bytes of k over four warps."""
    return {dtype: rows * (32 * 8 / BITS[dtype]) / 4 for dtype in _WARPGROUP_DTYPES}


class NoInstructionError(InputError):
    """No matrix instruction of the GPUs in question computes in ``dtype``, as ``operator`` does."""

    def __init__(self, operator: str, dtype: str, library: str = "") -> None:
        of = f" of {library}" if library else ""
        super().__init__(f"{operator}: no matrix instruction{of} of these GPUs computes in {dtype}")
        self.operator, self.dtype = operator, dtype

    def on(self, sheets: Iterable[GpuSheet]) -> str:
        """Return the sentence that names the GPUs and the types that they have."""
        have = {sheet.title: ", ".join(["fp32", *_tensor_types(sheet)]) for sheet in sheets}
        can = "; ".join(f"{title} can in {types}" for title, types in have.items())
        return f"{self.operator} computes in {self.dtype}, in which no kernels of {' or '.join(have)} are known; {can}"


CUDA_CORE = MatrixInstruction("ffma", 0.0, {"fp32": 32.0}, stages=2)
"""One FP32 multiply-add a lane: matrix products without tensor cores."""

MMA_884 = MatrixInstruction("hmma_884", 7.0, {"fp16": 256.0}, stages=2)
"""Volta: HMMA.884 works in steps, four warp instructions for four 8x8x4 products of quad-pairs."""

MMA_1688 = MatrixInstruction("hmma_1688", 7.5, {"fp16": 1024.0, "int8": 1024.0}, stages=2)
"""Turing: HMMA.1688 and IMMA.8816."""

MMA_16816 = MatrixInstruction(
    "hmma_16816",
    8.0,
    {"fp64": 256.0, "tf32": 1024.0, "bf16": 2048.0, "fp16": 2048.0, "int8": 4096.0, "fp8": 4096.0, "fp4": 8192.0},
    stages=4,
)
"""Ampere and later: HMMA.16816, HMMA.1688.TF32, IMMA.16832, QMMA.16832, DMMA.884."""

WGMMA = MatrixInstruction("wgmma", 9.0, _warpgroup_fma(64), stages=4, warpgroup=True, rows=64, capability_end=10.0)
"""Hopper: wgmma.m64nNk32B; ``fma`` is per column of N."""

TCGEN05 = MatrixInstruction(
    "tcgen05", 10.0, _warpgroup_fma(128), stages=4, warpgroup=True, rows=128, capability_end=12.0
)
"""Blackwell data-centre parts: tcgen05.mma.m128nNk32B; ``fma`` is per column of N."""

INSTRUCTIONS = (CUDA_CORE, MMA_884, MMA_1688, MMA_16816, WGMMA, TCGEN05)


def instruction_fma(instruction: MatrixInstruction, dtype: str, columns: int) -> float:
    """Return the multiply-adds of one warp instruction; a warpgroup instruction takes up to 256 ``columns``."""
    return instruction.fma[dtype] * (min(columns, 256) if instruction.warpgroup else 1)


def instructions_for(capabilities: tuple[float, float] | None, warpgroup: bool, dtype: str) -> list[MatrixInstruction]:
    """Return the classes worth trying for ``dtype`` on GPUs whose compute capability lies in ``capabilities``.

    Of the warp-level classes a library uses the newest that the oldest GPU has, and any newer one; ``None`` means any
    GPU. FP32 runs on CUDA cores.
    """
    low, high = capabilities or (0.0, ANY_NEWER)
    usable = [i for i in INSTRUCTIONS if i.supports(dtype) and i.compute_capability <= high and i.capability_end > low]
    warp_level = [i for i in usable if not i.warpgroup]
    oldest = max((i.compute_capability for i in warp_level if i.compute_capability <= low), default=0.0)
    kept = [i for i in warp_level if i.compute_capability >= oldest]
    return kept + [i for i in usable if i.warpgroup and warpgroup]


def _tensor_types(sheet: GpuSheet) -> list[str]:
    """Return the data types that a GPU's tensor cores compute in and that an instruction of it names."""
    numbers = sheet.numbers()
    capability, warpgroup = numbers["compute_capability"], numbers["warpgroup_mma"] > 0
    return [dtype for dtype in sheet.tensor_types() if instructions_for((capability, capability), warpgroup, dtype)]
