"""What shards left on disk: damage is told or made good, never merged in silence."""

import shutil
from pathlib import Path

import pytest

from dse.base.errors import InputError
from dse.evaluate.platform import PLATFORMS
from dse.grid.merge import merge
from dse.grid.part import sweep_shard
from tests.grid.trivial import trivial, with_chunks


def test_damaged_and_unfinished_shards_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PLATFORMS, "cpu", with_chunks())
    three = [tmp_path / str(number) for number in (1, 2, 3)]
    for folder in three:
        sweep_shard(trivial(10_000, tmp_path), folder, f"{folder.name}/3")
    hurt = Path(shutil.copytree(three[1], tmp_path / "hurt"))
    rows = next((hurt / "shard").glob("*.arrow"))
    rows.write_bytes(rows.read_bytes()[:100])
    merged = merge([three[0], hurt, three[2]], tmp_path / "out")
    assert merged.notes == (f"{hurt}: rows of a portion were damaged or missing; its designs were evaluated again",)
    (hurt / "shard" / "state.npz").write_bytes(b"PK")
    with pytest.raises(InputError, match=r"state\.npz: is cut short or damaged; sweep that shard again"):
        merge([three[0], hurt, three[2]], tmp_path / "out")
    (hurt / "shard").rename(hurt / "unfinished")
    with pytest.raises(InputError, match="its shard is not finished; the same command with --resume goes on"):
        merge([three[0], hurt, three[2]], tmp_path / "out")
