"""One door for text: byte-order marks, UTF-16, Latin-1 where anything goes, and what is no text."""

import codecs
import os

import pytest

from dse.base.csv_table import csv_rows, read_csv
from dse.base.errors import InputError
from dse.base.text_file import printable, read_text, there_is
from dse.base.toml_file import read_toml

TEXT = 'name = "Größe"\n'


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_the_same_text_in_every_encoding(tmp_path, encoding):
    path = tmp_path / "a.toml"
    path.write_bytes(TEXT.encode(encoding))
    assert read_text(path) == TEXT
    assert read_toml(path) == {"name": "Größe"}


def test_big_endian_with_its_mark(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(codecs.BOM_UTF16_BE + "m,n\r\n1,2\r\n".encode("utf-16-be"))
    assert read_csv(path).to_dict("list") == {"m": [1], "n": [2]}


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b'a = "\xe9"', r"is no text in UTF-8: byte 6 is 0xe9; save it as UTF-8"),
        (b"\xff\xfea", "is no text in UTF-16-LE"),
        (b"a\0\0\0\0b", "holds a zero byte"),
        (b"a" * 101, "is longer than"),
    ],
)
def test_what_is_no_text_is_refused(tmp_path, content, sentence):
    path = tmp_path / "a"
    path.write_bytes(content)
    with pytest.raises(InputError, match=sentence):
        read_text(path, most=100)


def test_any_bytes_are_latin_1(tmp_path):
    path = tmp_path / "a"
    path.write_bytes("µs".encode("latin-1") + "µs".encode())
    assert read_text(path, any_bytes=True) == "µsµs"


def test_what_is_no_file_is_refused(tmp_path):
    (tmp_path / "me").symlink_to(tmp_path / "me")
    for path, sentence in (
        (tmp_path, "is a folder"),
        (tmp_path / "none", "no such file"),
        (tmp_path / "me", "cannot be read"),
        (tmp_path / ("x" * 300), "cannot be read"),
        ("a\0b", "cannot be read"),
        (os.devnull, "is a device or a pipe"),
    ):
        with pytest.raises(InputError, match=sentence):
            read_text(path)


def test_what_can_name_nothing_is_not_there(tmp_path):
    assert there_is(tmp_path)
    assert not there_is(tmp_path / ("x" * 300))
    assert not there_is(tmp_path / "a\0b")


@pytest.mark.parametrize(("text", "kind"), [("a = " + "[" * 5000, "nested too deep"), ("a = " + "9" * 5000, "TOML")])
def test_depth_and_length_are_bounded(tmp_path, text, kind):
    path = tmp_path / "a.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=kind):
        read_toml(path)


def test_comments_of_tables_are_passed_over_and_lines_stay_numbered(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('# mine\nm,n\n# again\n1,"#2"\n"a\n#b",3\n')
    assert csv_rows(path) == [(2, ["m", "n"]), (4, ["1", "#2"]), (5, ["a\n#b", "3"])]
    assert read_csv(path).to_dict("list") == {"m": ["1", "a\n#b"], "n": ["#2", "3"]}


def test_a_terminal_gets_no_control_characters():
    assert printable("a\x1b[31mb\nc µ") == "a\\x1b[31mb\\nc µ"
