"""Shards of a sweep that share nothing merge to the bytes of one sweep; what is missing or foreign is named."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from dse.base.errors import InputError
from dse.evaluate.platform import PLATFORMS
from dse.grid.merge import merge
from dse.grid.part import sweep_shard
from dse.grid.shard import shards
from dse.grid.sweep import sweep
from tests.grid.trivial import CHUNK, trivial, with_chunks

SIZE = 10_000
SIZES = [("all", 512), *(pytest.param("front", chunk, marks=pytest.mark.slow) for chunk in (512, 5120))]
TABLES = {"all": ("points.parquet", "pareto.parquet"), "front": ("sample.parquet", "pareto.parquet")}


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PLATFORMS, "cpu", with_chunks())


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The three shards of a sweep."""
    folder = tmp_path_factory.mktemp("three")
    before, PLATFORMS["cpu"] = PLATFORMS["cpu"], with_chunks()
    for number in (1, 2, 3):
        sweep_shard(trivial(SIZE, folder), folder / str(number), f"{number}/3")
    PLATFORMS["cpu"] = before
    return [folder / str(number) for number in (1, 2, 3)]


@pytest.mark.slow
def test_so_many_jobs_that_the_grid_is_cut_finer_merge_to_the_bytes_of_one_sweep(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setitem(PLATFORMS, "cpu", replace(with_chunks(), reduced_from=0))
    space, count = trivial(20 * SIZE, tmp_path), 12
    assert len(shards(space.size, CHUNK, count)) > len(shards(space.size, CHUNK))
    sweep(space, tmp_path / "alone", keep="front")
    folders = [tmp_path / str(number) for number in range(1, count + 1)]
    for folder in folders:
        sweep_shard(space, folder, f"{folder.name}/{count}", keep="front")
    merge(folders, tmp_path / "merged")
    for name in TABLES["front"]:
        assert (tmp_path / "merged" / name).read_bytes() == (tmp_path / "alone" / name).read_bytes(), name


@pytest.mark.parametrize(("keep", "chunk"), SIZES)
def test_merged_tables_are_those_of_one_sweep(keep: str, chunk: int, tmp_path: Path, monkeypatch) -> None:
    """The last has fewer portions than shards."""
    monkeypatch.setitem(PLATFORMS, "cpu", with_chunks(chunk))
    space, count = trivial(SIZE, tmp_path), 3
    alone = sweep(space, tmp_path / "alone", keep=keep)
    folders = [tmp_path / str(number) for number in range(1, count + 1)]
    designs = [sweep_shard(space, f, f"{f.name}/{count}", keep=keep).designs for f in reversed(folders)]
    assert sum(designs) == SIZE
    merged = merge(folders[::-1], tmp_path / "merged")
    for name in TABLES[keep]:
        assert (tmp_path / "merged" / name).read_bytes() == (tmp_path / "alone" / name).read_bytes(), name
    records = [json.loads((tmp_path / which / "run.json").read_text()) for which in ("alone", "merged")]
    assert [record.pop("timing") for record in records]
    assert records[0] == records[1]
    assert merged.notes == ()
    assert merged.summary()["pareto"] == alone.summary()["pareto"]
    assert {p.name for p in folders[0].iterdir()} == {"shard"}  # shards stay, and can be merged again


def test_missing_doubled_and_foreign_shards_are_named(three: list[Path], tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"of 3 shards 1 is missing: 2; give"):
        merge([three[0], three[2]], tmp_path / "out")
    with pytest.raises(InputError, match=rf"shard 1/3 is given twice, in {three[0]} and {tmp_path / 'copy'}"):
        merge([*three, Path(shutil.copytree(three[0], tmp_path / "copy"))], tmp_path / "out")
    sweep_shard(trivial(SIZE, tmp_path), tmp_path / "four", "4/4")
    with pytest.raises(InputError, match=r"four: holds shard 4 of 4, .* one of 3"):
        merge([*three, tmp_path / "four"], tmp_path / "out")
    sweep_shard(trivial(SIZE, tmp_path, constraints=["die_mm2 <= 750"]), tmp_path / "other", "2/3")
    with pytest.raises(InputError, match=r"other: is of another sweep than .*differs in constraints of the space"):
        merge([three[0], tmp_path / "other", three[2]], tmp_path / "out")
    with pytest.raises(InputError, match=r"nowhere: holds no shard"):
        merge([tmp_path / "nowhere"], tmp_path / "out")
    assert not (tmp_path / "out").exists()
