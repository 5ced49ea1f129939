"""Small traces written by the tests."""

import gzip
from pathlib import Path

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
