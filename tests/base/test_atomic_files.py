"""A file is written whole or not at all."""

import errno
import os
from pathlib import Path

import pytest

from dse.base.atomic_files import write_whole
from dse.base.errors import InputError


def test_a_full_disk_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "mine.toml"
    write_whole(path, "before")

    def full(self: Path, content: bytes) -> int:
        self.write_text(content.decode()[:2])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(InputError, match=r"mine\.toml: cannot be written \(No space left on device\)"):
        write_whole(path, "after")
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [("mine.toml", "before")]


def test_a_link_and_a_pipe_stay_what_they_are(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("target")
    write_whole(tmp_path / "link", "text")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "target").read_text() == "text"
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    write_whole(tmp_path / "pipe", "text")
    assert os.read(reader, 10) == b"text" and (tmp_path / "pipe").is_fifo()
    os.close(reader)


def test_the_disk_holds_a_file_before_it_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[bool] = []
    monkeypatch.setattr(os, "fsync", lambda file: synced.append((tmp_path / "mine.toml").exists()))
    write_whole(tmp_path / "mine.toml", "text")
    assert synced == [False]
