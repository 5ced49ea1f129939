"""The compiled cache simulation against the plain one, on random traces with every kind of access."""

import random
from pathlib import Path

import pytest

from dse.base.errors import InputError
from dse.traces.cache_simulation import simulate
from dse.traces.trace_files import read_directory
from dse.traces.warp_profile import CacheGeometry
from tests.traces.naive_caches import Naive, atomic_sectors, sectors
from tests.traces.traces import kernel_text, write_directory

SMALL = CacheGeometry(3, 2, 2, 3, 128, 0, 4, 3, 2, 16, 2, 128, 2)
GEOMETRIES = {
    "small": SMALL,
    "one SM": SMALL._replace(sms=1, ctas_per_sm=1),
    "power-of-two channels": SMALL._replace(channels=4, l2_sets=32),
    "64 sets": SMALL._replace(l2_sets=64, l1_sets=4, l1_ways=1, sms=5),
}
KINDS = {"LDG.E.SYS": 4, "STG.E.128.SYS": 16, "LDL": 4, "LDL.64": 8, "ATOMG.E.ADD": 4, "RED.E.ADD.64": 8, "LDG.E.U8": 1}


def random_line(rng: random.Random, pc: int) -> tuple[str, tuple[int, list[int]] | None]:
    """Return an instruction line and what it accesses."""
    name = rng.choice([*KINDS, "FFMA"])
    if name == "FFMA":
        return f"{pc:x} ffffffff 1 R1 FFMA 1 R2 0", None
    mask = rng.choice([0, 0xFFFFFFFF, rng.getrandbits(32), 1])
    width, step = KINDS[name], rng.choice([0, 4, 8, 32, 100, 3])
    atomic = name.startswith(("ATOMG", "RED"))
    step = step // width * width if atomic else step
    base = rng.randrange(1 << 13) * 16
    lanes = [base + step * lane for lane in range(mask.bit_count())]
    accesses = atomic_sectors(lanes, width) if atomic else sectors(lanes, width, name.startswith("LDL"))
    text = " ".join(f"{address:#x}" for address in lanes)
    return f"{pc:x} {mask:x} 1 R1 {name} 1 R2 {width} 0 {text}", (pc, accesses)


def random_kernel(seed: int, warps: int = 2) -> tuple[str, list]:
    rng = random.Random(seed)
    ctas, plain = [], []
    for _ in range(rng.randint(1, 17)):
        pairs = [[random_line(rng, 16 * rng.randrange(3)) for _ in range(rng.randrange(12))] for _ in range(warps)]
        ctas.append([[text for text, _ in warp] for warp in pairs])
        plain.append([[accesses for _, accesses in warp] for warp in pairs])
    return kernel_text(ctas, threads=32 * warps), plain


@pytest.mark.parametrize("geometry", GEOMETRIES.values(), ids=GEOMETRIES)
@pytest.mark.parametrize("seed", range(8))
def test_equals_the_plain_simulation(tmp_path: Path, geometry: CacheGeometry, seed: int) -> None:
    text, plain = random_kernel(seed)
    (kernel,) = read_directory(write_directory(tmp_path, text)).kernels
    naive = Naive(geometry)
    naive.run(plain)
    for number in range(2 * len(plain)):
        ours = simulate(kernel, geometry, number)
        cta, warp = divmod(number, 2)
        for i, pc in enumerate(ours.pc.tolist()):
            used = plain[cta][warp][i] is not None
            assert ours.own[i].tolist() == naive.own.get((cta, warp, i), [0] * 4)
            assert ours.pooled[i].tolist() == (naive.pooled[pc, i] if used else [0] * 4)
            accesses = ours.access[ours.access_at[i] : ours.access_at[i + 1]].tolist()
            assert accesses == (plain[cta][warp][i][1] if used else [])


def test_atomic_that_straddles_is_refused(tmp_path: Path) -> None:
    text = kernel_text([[["0 1 0 RED.E.ADD 1 R2 4 0 0x1e"]]])
    (kernel,) = read_directory(write_directory(tmp_path, text)).kernels
    with pytest.raises(InputError, match="two 32-byte segments"):
        simulate(kernel, SMALL, 0)


def test_representative_outside_the_grid_is_refused(tmp_path: Path) -> None:
    text, plain = random_kernel(3)
    (kernel,) = read_directory(write_directory(tmp_path, text)).kernels
    with pytest.raises(InputError, match="not in the grid"):
        simulate(kernel, SMALL, 2 * len(plain))
