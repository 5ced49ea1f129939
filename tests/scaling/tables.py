"""Small tables of scale models as a user writes them."""

from pathlib import Path

HEAD = "benchmark,size,ipc,mpki,f_mem,simulation_time_s\n"
TABLE = HEAD + (
    "flat,8,10,5,,60\n,16,19,5,,130\n,32,36,5,,300\n,48,,5,,\n"
    "cliff,8,10,5,,\n,16,19,5,,\n,32,60,1,,\n"
    "slow,8,10,5,,\n,16,9,5,,\n,32,8,5,,\n"
    "alone,8,10,5,,\n"
    "holes,8,10,5,,\n,16,20,,,\n,32,40,5,,\n"
)


def written(tmp_path: Path, text: str, name: str = "t.csv") -> Path:
    """Write a table and return its path."""
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path
