"""GCoM's configuration files: what is read, ignored, assumed and refused."""

from pathlib import Path

import pytest

from dse.base.errors import InputError
from dse.timing.traced.gcom_config import GcomConfig, read_gcom_config


def test_config_reports_what_it_ignores(write_config) -> None:
    config = read_gcom_config(write_config(l2DnSet=3, L2nSet=None, fuQue=None))
    assert config.ignored == ("l2DnSet",)
    assert config.assumed == ("fuQue",)
    assert config["fuQue"] == 2
    assert (config["L2nSet"], config["sharedMemSizeOption"], config["coreFreq"]) == (64, (32768, 65536), 1.365)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"numSMs": "many"}, "line 1: numSMs = 'many'"),
        ({"numSMs": 0}, "of at least 1"),
        ({"coreFreq": "nan"}, "coreFreq = 'nan'"),
        ({"coreFreq": "1365"}, "coreFreq = 1365 is no GPU's clock in GHz; give 0.1 to 10 GHz"),  # in MHz
        ({"coreFreq": "0.001365"}, "coreFreq = 0.001365 is no GPU's clock in GHz"),
        ({"wrapSchedulePolicy": "fifo"}, "gto|lrr"),
        ({"sharedMemSizeOption": "{2, 1}"}, "sharedMemSizeOption"),
        ({"sharedMemSizeOption": "{}"}, "sharedMemSizeOption"),
        ({"nSectorPerLine": 2}, "nSectorPerLine = '2'"),
    ],
    ids=str,
)
def test_bad_configs_are_refused(write_config, changes, words: str) -> None:
    with pytest.raises(InputError, match=words):
        read_gcom_config(write_config(**changes))


def test_missing_config_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.config: no such file"):
        read_gcom_config(tmp_path / "none.config")
    assert isinstance(GcomConfig("x", {"a": 1})["a"], int)


def test_comments_blanks_and_keys_without_a_value_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "a.config"
    path.write_text("\n// unsigned numSMs = 4\nunsigned numSMs = 8 // = 9\nunsigned numMems =\nnumSMs\n")
    config = read_gcom_config(path)
    assert config["numSMs"] == 8
    assert config.ignored == ()
    assert "numMems" in config.assumed


def test_a_file_without_a_key_is_none(tmp_path: Path) -> None:
    path = tmp_path / "a.config"
    path.write_text("int nothing = 3\n")
    with pytest.raises(InputError, match="holds no key of a GCoM configuration"):
        read_gcom_config(path)


def test_a_later_line_stands_for_an_earlier_one(tmp_path: Path) -> None:
    path = tmp_path / "a.config"
    path.write_text("unsigned numSMs = 8\nunsigned numSMs = 9\n")
    assert read_gcom_config(path)["numSMs"] == 9
