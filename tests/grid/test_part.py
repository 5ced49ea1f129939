"""Parts of a grid: each shard in one of them; a part goes on, and is read again."""

from pathlib import Path

import pytest

from dse.base.errors import InputError
from dse.evaluate.platform import PLATFORMS
from dse.grid.part import Part, sweep_shard
from dse.grid.shard import shards
from tests.grid.trivial import trivial, with_chunks


def test_parts_of_a_grid_cover_it_once() -> None:
    grid = shards(100_000, 512)
    for count in (1, 2, 7, len(grid), len(grid) + 5):
        parts = [Part(number, count).of(grid) for number in range(1, count + 1)]
        assert [shard for part in parts for shard in part] == grid
        assert max(map(len, parts)) - min(map(len, parts)) <= 1


@pytest.mark.parametrize("text", ["0/3", "4/3", "3", "a/b", "1/0", "-1/3", "1/3/5", ""])
def test_what_is_no_shard_is_a_sentence(text: str) -> None:
    with pytest.raises(InputError, match=r"give K/N, the K-th of N shards, as 3/64"):
        Part.read(text)


def test_a_shard_goes_on_and_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PLATFORMS, "cpu", with_chunks())

    def stops(count: int) -> None:
        raise KeyboardInterrupt

    space, out = trivial(10_000, tmp_path), tmp_path / "2"
    with pytest.raises(KeyboardInterrupt):
        sweep_shard(space, out, "2/3", stops)
    sweep_shard(space, out, "2/3", resume=True)
    assert sweep_shard(space, out, "2/3", resume=True).notes == ("was finished already",)
    with pytest.raises(InputError, match=r"differs in --shard \(2/3, now 1/3\)"):
        sweep_shard(space, out, "1/3", resume=True)
