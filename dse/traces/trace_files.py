"""Accel-Sim trace directories: the list of kernels, each kernel's facts, and its CTAs as a stream.

Format: Accel-Sim's NVBit tracer, versions 1 to 5; plain, gzip and xz. A kernel is read CTA by CTA, so memory is
bounded by the largest CTA, whatever the trace's size.
"""

import gzip
import lzma
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

from dse.base.errors import InputError, accepted

LIST = "kernelslist.g"
LATEST_VERSION = 5
UNREAD = {
    ".tracez": "is of Accel-Sim 2.0's compressed format, which is not read; trace as text (.traceg, plain, gzip or xz)",
    ".trace": "is raw, as the tracer leaves it; run Accel-Sim's post-traces-processing on its folder",
}
"""Suffixes of kernels' files that are not read -> why, and what to do."""
_BLOCK = 1 << 20
_MOST_HEADER = 1 << 16
_MOST_COUNT = 1 << 31
_MOST_REGISTERS = 255  # a thread's, of every compute capability here: CUDA programming guide, technical specifications
_DAMAGED = (OSError, EOFError, zlib.error, lzma.LZMAError, ValueError)


@dataclass(frozen=True)
class KernelHeader:
    """What a kernel's trace says before its instructions.

    ``shared_bytes`` of static shared memory a CTA [B], ``registers`` a thread; base addresses resolve generic
    accesses; ``binary`` is the compute capability times ten.
    """

    name: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    registers: int
    binary: int
    version: int
    line_info: bool
    shared_base: int
    local_base: int

    @property
    def ctas(self) -> int:
        """CTAs in the grid."""
        return self.grid[0] * self.grid[1] * self.grid[2]

    @property
    def warps_per_cta(self) -> int:
        """Warps of one CTA, the last perhaps not full."""
        return -(-self.block[0] * self.block[1] * self.block[2] // 32)


@dataclass(frozen=True)
class KernelFile:
    """A kernel's trace file: its number in the list (from 1), its path and its header."""

    number: int
    path: Path
    header: KernelHeader


@dataclass(frozen=True)
class TraceDirectory:
    """A trace directory: its kernels in the order of the list."""

    path: Path
    kernels: tuple[KernelFile, ...]


def read_directory(path: Path | str) -> TraceDirectory:
    """Return the kernels of a trace directory with their headers; raises InputError with file and line."""
    folder = Path(path)
    listing = folder / LIST
    if not listing.is_file():
        raise InputError(f"{folder}: {_no_list(folder)}")
    try:
        lines = listing.read_bytes().decode("utf-8", "replace").splitlines()
    except _DAMAGED as error:
        raise InputError(f"{listing}: cannot be read: {_reason(error)}") from None
    kernels = []
    for number, line in enumerate(lines, 1):
        where = f"{listing}, line {number}"
        if line.startswith("MemcpyHtoD"):
            _check_copy(line, where)
        elif line.startswith("kernel"):
            kernels.append(_kernel_file(folder / line.strip(), len(kernels) + 1, where))
    if not kernels:
        raise InputError(f"{listing}: names no kernel; a line 'kernel-1.traceg.gz' was expected")
    return TraceDirectory(folder, tuple(kernels))


def _no_list(folder: Path) -> str:
    """Return why a path is no trace directory, and what to do."""
    if not folder.exists():
        return f"no such folder; give one that holds {LIST}"
    if not folder.is_dir():
        return f"is a file; give the folder that holds {LIST}"
    if (folder / "kernelslist").is_file():
        return f"raw traces, as the tracer leaves them: run Accel-Sim's post-traces-processing on the folder for {LIST}"
    files = sorted(file.name for file in folder.glob("*.traceg*"))
    if files:
        return f"holds no {LIST}; write it, with a line for each kernel in the order in which they run: {files[0]} ..."
    for suffix, why in UNREAD.items():
        for file in sorted(folder.glob(f"*{suffix}")):
            return f"{file.name} {why}"
    return f"no trace directory: it holds neither {LIST} nor a .traceg file"


def picked(traces: TraceDirectory, wanted: Sequence[str]) -> TraceDirectory:
    """Return a trace with some of its kernels, by number or name, all where none is wanted; raises InputError."""
    names = [kernel.header.name for kernel in traces.kernels]
    for each in wanted:
        if each not in names and not (each.isascii() and each.isdigit() and 1 <= int(each) <= len(names)):
            hint = accepted(each, dict.fromkeys(names))
            raise InputError(f"--kernel {each}: the trace has kernels 1 to {len(names)}; {hint}")
    chosen = [k for k in traces.kernels if not wanted or str(k.number) in wanted or k.header.name in wanted]
    return TraceDirectory(traces.path, tuple(chosen))


def _check_copy(line: str, where: str) -> None:
    """Refuse a copy that is cut off or garbled: the list is damaged then. No model times copies to the device."""
    if re.fullmatch(r"MemcpyHtoD,\s*(?:0[xX])?[0-9a-fA-F]{1,16},\s*[0-9]{1,18}\s*", line) is None:
        raise InputError(f"{where}: {line[:80]!r} is not 'MemcpyHtoD,<hexadecimal address>,<bytes>'")


def _kernel_file(path: Path, number: int, where: str) -> KernelFile:
    try:
        exists = path.is_file()
    except ValueError:
        exists = False
    if not exists:
        raise InputError(f"{where}: the kernel's trace {path.name!r} is not in {path.parent}")
    if path.suffix in UNREAD:
        raise InputError(f"{where}: {path.name} {UNREAD[path.suffix]}")
    with TraceText(path) as text:
        return KernelFile(number, path, read_header(text))


class TraceText:
    """A trace file as decompressed text: whole lines, counted; every damage is an InputError with file and line."""

    def __init__(self, path: Path):
        self.path = path
        self.line = 0
        self._rest = b""
        try:
            self._stream = _open(path)
        except _DAMAGED as error:
            raise InputError(f"{path}: cannot be opened: {_reason(error)}") from None

    def __enter__(self) -> "TraceText":
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()

    def where(self) -> str:
        """Return file and line for a sentence."""
        return f"{self.path}, line {self.line}"

    def read(self) -> bytes:
        """Return the next whole lines, at least one; empty at the end of the file."""
        parts = [self._rest]
        self._rest = b""
        while True:
            block = self._block()
            cut = block.rfind(b"\n") + 1
            if cut or not block:
                parts.append(block[:cut] if block else b"")
                self._rest = block[cut:]
                return b"".join(parts)
            parts.append(block)
            if sum(map(len, parts)) > 4 * _BLOCK:
                self.line += 1
                raise InputError(f"{self.where()}: the line is longer than {4 * _BLOCK} bytes; this is not a trace")

    def give_back(self, text: bytes) -> None:
        """Put text that was read too far in front of what comes next."""
        self._rest = text + self._rest

    def _block(self) -> bytes:
        try:
            return self._stream.read(_BLOCK)
        except _DAMAGED as error:
            raise InputError(f"{self.where()} and on: cannot be decompressed: {_reason(error)}") from None


def _open(path: Path) -> BinaryIO:
    """Open a file by its first bytes (as zlib's gzopen does), whatever its name."""
    with path.open("rb") as raw:
        magic = raw.read(6)
    if magic.startswith(b"\x1f\x8b"):
        return cast(BinaryIO, gzip.open(path, "rb"))  # a reader of bytes, which its annotation does not say
    if magic == b"\xfd7zXZ\x00":
        return cast(BinaryIO, lzma.open(path, "rb"))
    return path.open("rb")


def _reason(error: BaseException) -> str:
    return (getattr(error, "strerror", None) or str(error) or type(error).__name__).lower()


def header_lines(text: TraceText) -> Iterator[str]:
    """Yield the lines before the first that starts with '#'; a '#BEGIN_TB' there is given back."""
    seen = 0
    while block := text.read():
        lines = block.split(b"\n")
        for i, line in enumerate(lines):
            if line.startswith(b"#"):
                begins = line.startswith(b"#BEGIN_TB")
                text.line += not begins
                text.give_back(b"\n".join(lines[i + (not begins) :]))
                return
            text.line += i < len(lines) - 1
            seen += len(line) + 1
            if seen > _MOST_HEADER:
                raise InputError(
                    f"{text.where()}: no line starts with '#' in {_MOST_HEADER} bytes; this is not a trace"
                )
            yield line.decode("utf-8", "replace").rstrip()
    raise InputError(f"{text.where()}: the file ends before its instructions; a line that starts with '#' was expected")


def read_header(text: TraceText) -> KernelHeader:
    """Read a kernel's header and leave ``text`` at its first CTA; raises InputError."""
    fields: dict[str, str] = {}
    places: dict[str, str] = {}
    for line in header_lines(text):
        key, equals, value = line.removeprefix("-").partition("=")
        if line.startswith("-") and equals:
            fields[key.strip()], places[key.strip()] = value.strip(), text.where()
    at = _Fields(text, fields, places)
    version, registers = at.number("accelsim tracer version"), at.number("nregs")
    if registers > _MOST_REGISTERS:
        raise InputError(f"{places['nregs']}: nregs = {registers} is not a thread's; give at most {_MOST_REGISTERS}")
    if not 1 <= version <= LATEST_VERSION:
        raise InputError(f"{places['accelsim tracer version']}: tracer version {version} is not known; 1 to 5 are")
    return KernelHeader(
        name=fields.get("kernel name", ""),
        grid=at.dimensions("grid dim"),
        block=at.dimensions("block dim"),
        shared_bytes=at.number("shmem"),
        registers=registers,
        binary=at.number("binary version"),
        version=version,
        line_info=at.number("enable lineinfo", "0") != 0,
        shared_base=at.address("shmem base_addr"),
        local_base=at.address("local mem base_addr"),
    )


class _Fields:
    """The header's fields, read with a sentence for each that is missing or mistyped."""

    def __init__(self, text: TraceText, fields: dict[str, str], places: dict[str, str]):
        self.text, self.fields, self.places = text, fields, places

    def _raw(self, key: str, default: str | None = None) -> str:
        value = self.fields.get(key, default)
        if value is None:
            raise InputError(f"{self.text.where()}: the header holds no line '-{key} = ...'")
        return value

    def _refuse(self, key: str, expected: str) -> InputError:
        return InputError(f"{self.places[key]}: {key} = {self.fields[key][:80]!r} is not {expected}")

    def number(self, key: str, default: str | None = None) -> int:
        """Return a non-negative integer below 2**31."""
        value = self._raw(key, default)
        if not re.fullmatch(r"[0-9]{1,10}", value, re.ASCII) or int(value) >= _MOST_COUNT:
            raise self._refuse(key, "a whole number below 2**31")
        return int(value)

    def address(self, key: str) -> int:
        """Return a hexadecimal address of at most 64 bits, 0 where the header has none."""
        value = self._raw(key, "0")
        match = re.fullmatch(r"(?:0[xX])?([0-9a-fA-F]{1,16})", value, re.ASCII)
        if match is None:
            raise self._refuse(key, "a hexadecimal address")
        return int(match[1], 16)

    def dimensions(self, key: str) -> tuple[int, int, int]:
        """Return ``(x,y,z)``, each at least 1."""
        match = re.fullmatch(r"\(\s*([0-9]{1,10}),\s*([0-9]{1,10}),\s*([0-9]{1,10})\s*\)", self._raw(key), re.ASCII)
        if match is None or not 0 < int(match[1]) * int(match[2]) * int(match[3]) < _MOST_COUNT:
            raise self._refuse(key, "(x,y,z) with each at least 1 and a product below 2**31")
        if key == "block dim" and int(match[1]) * int(match[2]) * int(match[3]) > 1 << 16:
            raise self._refuse(key, "a block of at most 65536 threads")
        return int(match[1]), int(match[2]), int(match[3])
