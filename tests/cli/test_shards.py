"""Shards from the command line: refused where they cannot be."""

from dse.cli.shards import file_name
from tests.cli.commands import refused


def test_a_shard_refines_nothing(quick, write_space, capsys) -> None:
    space = str(write_space(quick))
    assert "--refine needs the whole front" in refused(["sweep", space, "--shard", "1/2", "--refine"], capsys)


def test_a_folder_is_named_after_its_space() -> None:
    assert file_name("a space / of mine") == "a_space___of_mine"
