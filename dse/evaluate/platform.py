"""What depends on the device that a program runs on: sizes of blocks, calls and generations, and how loops are made.

A CPU wants arrays that fit a core's cache, whole vectors, and products instead of divisions. A GPU wants few large
kernels: no loops over parts, no rows that are only filled up, and 1 / x, which is one instruction there.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any

from dse.base.compilation import LEAST, Options

CHEAP = 64
"""Most pairs with kernels of a design that is cheap: it takes a core about a microsecond (benchmarks.host)."""


@dataclass(frozen=True)
class Platform:
    """Sizes and ways of programs on a kind of device; ``block``: designs whose arrays are in memory at once."""

    chunk: int  # designs of a sweep that are evaluated in one piece
    chunks: int  # pieces of a call that makes and reduces its designs on the device, at most
    cheap_chunks: int  # ... where designs have few pairs with kernels (CHEAP): the host's part is a call's
    reduced_from: int  # designs of a sweep from which such a call is worth its compilation; fewer the host reduces
    kernel_block: int  # ... of which so many together, where kernels are generated
    recorded_block: int  # ... and where they are recorded: steps of a trace are short
    generation: int  # designs of a search that are evaluated together, at most
    share: int  # ... of which a device takes so many at least, where a machine has several
    rows: int  # measured rows that a call times
    fits: int  # fits of a linear model that run side by side
    long_fits: int | None  # fits of other models that do; None: one after the other, each busy enough
    parts: int  # a block is taken in so many parts, one after the other; 1: at once
    lanes: int  # operators of a workload are filled up to a multiple of it
    divides: bool  # 1 / x is an instruction like others
    apart: bool  # a sweep reduces designs by a program that returns no results: those of given designs have their own
    kernels: str  # who writes the two stages of generated kernels: xla, pallas, or pallas by plain operations, in tests
    options: Options = field(hash=False)  # how XLA compiles what runs often
    quick: Options | None = field(hash=False)  # ... and what runs for milliseconds

    def sharers(self, designs: int, devices: int) -> int:
        """Return how many of a machine's devices share out a generation of so many designs."""
        return max(1, min(devices, designs // self.share))

    def chunks_of_call(self, pairs: int) -> int:
        """Return the most pieces of a call whose designs have so many pairs with kernels; 0: a recorded program."""
        return self.cheap_chunks if pairs <= CHEAP else self.chunks


CPU = Platform(
    chunk=32768,
    chunks=16,  # a second of a large space's on a core: who interrupts a sweep waits for it
    cheap_chunks=64,
    reduced_from=2**21,  # 0.4 us a design on the host; a program that reduces takes 3 s more to compile (benchmarks)
    kernel_block=1024,  # with some 200 kernels a temporary array is 0.8 MB, less than a core's L2 cache
    recorded_block=2048,
    generation=512,
    share=512,  # half of it takes 0.7 of the whole's time (benchmarks/README.md)
    rows=8192,
    fits=64,
    long_fits=None,
    parts=2,  # the fewest that make it a loop: what it returns is not computed anew
    lanes=16,  # 32-bit numbers in a vector of the widest
    divides=False,
    apart=False,  # a program takes longer to compile than results to be written
    kernels="xla",
    options={
        "xla_cpu_enable_fast_math": True,
        "xla_cpu_enable_fast_min_max": True,
        "xla_cpu_prefer_vector_width": 512,
    },
    quick=LEAST,
)
"""Fast-math lets the reductions over kernels vectorise, and a minimum that need not heed NaN is one instruction; every
value is finite, and whole numbers survive it (:func:`dse.base.numerics.floor_div`)."""

GPU = Platform(
    chunk=2**18,  # a GiB of temporary arrays
    chunks=1,  # without a loop: it would wait for the host
    cheap_chunks=1,
    reduced_from=0,  # what is not fetched need not pass through PCIe
    kernel_block=2**18,
    recorded_block=2**18,
    generation=2**14,
    share=2**15,  # blocks of 256 for an H100's 132 multiprocessors: fewer designs take as long
    rows=2**16,
    fits=4096,
    long_fits=256,
    parts=1,
    lanes=1,
    divides=True,
    apart=True,
    kernels="xla",
    options={"xla_gpu_ftz": True, "xla_gpu_enable_fast_min_max": True},
    quick=None,
)

LARGE = 2**20
"""Designs of a call where the project's own kernels run: they need 0.6 GiB of temporary arrays, and the host's part of
a call and the launches are shared by four times as many designs."""

CUDA = replace(GPU, chunk=LARGE, kernel_block=LARGE, recorded_block=LARGE, kernels="pallas")
"""A GPU of NVIDIA's: some lines are its instructions."""

PLATFORMS = {"cpu": CPU, "cuda": CUDA}
"""Name of a platform -> what is known of it; others are as GPU."""


def platform_of(name: str) -> Platform:
    """Return the platform of this name of JAX's (``device.platform``), or "cuda" (:func:`platform_of_device`)."""
    return PLATFORMS.get(name, GPU)


def platform_of_device(device: Any) -> Platform:
    """Return the platform of a device; JAX calls GPUs of every maker "gpu"."""
    nvidia = device.platform == "gpu" and "NVIDIA" in getattr(device, "device_kind", "NVIDIA")
    return platform_of("cuda" if nvidia else device.platform)


def local_platform() -> Platform:
    """Return the platform of this process's devices."""
    import jax

    return platform_of(jax.default_backend())


_TRACED: ContextVar[Platform] = ContextVar("platform", default=CPU)


@contextmanager
def traced_for(platform: Platform) -> Iterator[None]:
    """Trace what is inside for a platform; without it programs are a CPU's, which run anywhere."""
    token = _TRACED.set(platform)
    try:
        yield
    finally:
        _TRACED.reset(token)


def traced_platform() -> Platform:
    """Return the platform for which a program is being traced."""
    return _TRACED.get()
