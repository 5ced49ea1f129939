"""Small traces written by the tests."""

import gzip
from pathlib import Path

from dse.traces.opcodes import AddressSpace
from dse.traces.trace_files import read_directory
from dse.traces.trace_reader import KernelStream

HEADER = """-kernel name = {name}
-kernel id = 1
-grid dim = ({ctas},1,1)
-block dim = ({threads},1,1)
-shmem = {shmem}
-nregs = {nregs}
-binary version = {binary}
-cuda stream id = 0
-shmem base_addr = {shared_base}
-local mem base_addr = {local_base}
-nvbit version = 1.5.5
-accelsim tracer version = {version}

#traces format = PC mask dest_num [reg_dests] opcode src_num [reg_srcs] mem_width [adrrescompress?] [mem_addresses]

"""
FACTS = {
    "name": "k",
    "threads": 32,
    "shmem": 0,
    "nregs": 16,
    "binary": 75,
    "version": 3,
    "shared_base": "0x00007f0000000000",
    "local_base": "0x00007f0002000000",
}


def kernel_text(ctas: list[list[list[str]]], **facts) -> str:
    """Return a kernel's trace: CTA -> warp -> instruction lines."""
    parts = [HEADER.format(**{**FACTS, "ctas": len(ctas), **facts})]
    for number, warps in enumerate(ctas):
        parts.append(f"#BEGIN_TB\n\nthread block = {number},0,0\n\n")
        for warp, lines in enumerate(warps):
            parts.append(f"warp = {warp}\ninsts = {len(lines)}\n" + "".join(line + "\n" for line in lines) + "\n")
        parts.append("#END_TB\n\n")
    return "".join(parts)


def write_directory(folder: Path, *kernels: str | bytes, suffix: str = ".gz") -> Path:
    """Write kernels (text is compressed with gzip, bytes are written as they are) and their list."""
    folder.mkdir(parents=True, exist_ok=True)
    names = []
    for number, content in enumerate(kernels, 1):
        name = f"kernel-{number}.traceg{suffix}"
        data = content if isinstance(content, bytes) else gzip.compress(content.encode(), 1)
        (folder / name).write_bytes(data)
        names.append(name)
    listing = "MemcpyHtoD,0x00007fff00000000,4096\n" + "\n".join(names) + "\n"
    (folder / "kernelslist.g").write_text(listing, encoding="utf-8")
    return folder


LOAD = "0010 ffffffff 1 R2 LDG.E.SYS 1 R4 4 1 0x7fff00000000 4"
LINES = [
    "0000 ffffffff 1 R1 FFMA 3 R1 R2 R3 0",
    LOAD,
    "0020 0000000f 0 STG.E.64.SYS 2 R4 R2 8 0 0x7fff00000000 7fff00000100 0x7fff00000008 0x20",
    "0030 00000f0f 1 R9 LD.E 1 R4 4 2 0x7f0002000000 4 -4 8 16 4 4 4 4",
    "0040 ffffffff 0 EXIT 0 0",
]


def instructions(folder: Path) -> list[dict]:
    """Read every kernel and return its rows as dictionaries."""
    rows = []
    for kernel in read_directory(folder).kernels:
        stream = KernelStream(kernel)
        for cta in stream:
            for warp in range(kernel.header.warps_per_cta):
                for row in range(*cta.warp(warp).indices(1 << 60)):
                    c = cta.columns
                    at, lanes = int(c.address_at[row]), int(c.mask[row]).bit_count()
                    rows.append(
                        {
                            "cta": cta.number,
                            "warp": warp,
                            "pc": int(c.pc[row]),
                            "opcode": stream.opcodes[c.opcode[row]].text,
                            "space": AddressSpace(c.space[row]),
                            "sources": c.sources[row, : c.source_count[row]].tolist(),
                            "addresses": [] if at < 0 else c.address[at : at + lanes].tolist(),
                        }
                    )
    return rows


def one_warp(lines: list[str], **facts) -> str:
    """Return the trace of a kernel of one warp."""
    return kernel_text([[lines]], **facts)
