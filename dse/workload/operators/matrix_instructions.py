"""Classes of matrix instructions: what a warp instruction does, and on which GPUs it exists."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from dse.base.errors import InputError
from dse.hardware.capability import ANY_NEWER
from dse.hardware.data_types import data_types
from dse.hardware.presets import GpuSheet


@dataclass(frozen=True)
class MatrixInstruction:
    """A class of matrix instructions.

    ``fma`` [FMA/warp instruction] by data type (the opcode's modifiers, AMALI Eq. 25), of a warpgroup's instruction for
    each column of the second operand; ``compute_capability`` at least; ``warpgroup``: issued by four warps together,
    operands read from shared memory by the tensor core; ``rows``: rows of the first operand that one instruction takes;
    ``stages`` of the software pipeline.
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


def _instruction(name: str, compute_capability: float, stages: int, **others: Any) -> MatrixInstruction:
    fma = {dtype: kind.instructions[name] for dtype, kind in data_types().items() if name in kind.instructions}
    return MatrixInstruction(name, compute_capability, fma, stages, **others)


CUDA_CORE = _instruction("ffma", 0.0, stages=2)
"""One FP32 multiply-add a lane: matrix products without tensor cores."""

MMA_884 = _instruction("hmma_884", 7.0, stages=2)
"""Volta: HMMA.884 works in steps, four warp instructions for four 8x8x4 products of quad-pairs."""

MMA_1688 = _instruction("hmma_1688", 7.5, stages=2)
"""Turing: HMMA.1688 and IMMA.8816."""

MMA_16816 = _instruction("hmma_16816", 8.0, stages=4)
"""Ampere and later: HMMA.16816, HMMA.1688.TF32, IMMA.16832, QMMA.16832, DMMA.884."""

WGMMA = _instruction("wgmma", 9.0, stages=4, warpgroup=True, rows=64, capability_end=10.0)
"""Hopper: wgmma.m64nNk32B, over four warps."""

TCGEN05 = _instruction("tcgen05", 10.0, stages=4, warpgroup=True, rows=128, capability_end=12.0)
"""Blackwell data-centre parts: tcgen05.mma.m128nNk32B, over four warps."""

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
