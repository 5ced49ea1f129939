"""The blocks of docs/python.md run as they stand there, in their order and in one folder; slow ones with slow tests."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "python.md"
BLOCK = re.compile(r"(<!-- slow -->\n)?```python\n(.*?)```", re.DOTALL)

TIMES = "device,op,dtype,m,n,k,latency_us\n" + "".join(
    f"NVIDIA H200,gemm,bf16,{m},{n},4096,{max(2 * m * n * 4096 / 7e8, 2 * 4096 * (m + n) / 3.5e6) + 5:.2f}\n"
    for m in (16, 64, 256, 1024, 4096)
    for n in (2048, 4096, 6144, 8192)
)
FILES = {
    "mine.toml": 'base = "h100_sxm"\n[axes]\nsm_count = [96, 132]\nl2_mib = [25, 50]\n[workloads]\ngemm = "gemms.csv"\n'
    '[[objectives]]\nvalue = "gemm.time_ms"\ngoal = "min"\n[[objectives]]\nvalue = "die_mm2"\ngoal = "min"\n',
    "gemms.csv": "m,n,k\n4096,4096,4096\n",
    "measured.csv": TIMES,
    "sizes.csv": "benchmark,size,ipc,mpki\nbfs,8,10,2\nbfs,16,19,2\nbfs,32,37,2\nbfs,64,,2\n",
}


def blocks(slow):
    return [code for mark, code in BLOCK.findall(PAGE.read_text(encoding="utf-8")) if bool(mark) == slow]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)


@pytest.mark.slow
def test_blocks_run(folder):
    names = {}
    for code in blocks(slow=False):
        exec(compile(code, str(PAGE), "exec"), names)


@pytest.mark.slow
@pytest.mark.parametrize("code", blocks(slow=True))
def test_slow_blocks_run(folder, code):
    exec(compile(code, str(PAGE), "exec"), {})


def test_every_command_has_its_function_on_the_page():
    import dse

    text = PAGE.read_text(encoding="utf-8")
    assert len(blocks(slow=False)) >= 5
    missing = [name for name in dse.__all__ if f"dse.{name}" not in text and name[0].islower() and name[0] != "_"]
    assert missing == []
