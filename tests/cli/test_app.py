"""What every command stands on: help, JSON on stdout, readers that leave."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from dse.base.errors import InputError
from dse.cli.app import app, made, one_line_paragraphs, print_json, reader_left


@pytest.mark.parametrize("command", [["show", "schema"], ["show", "schema", "--json"], ["--help"]])
def test_a_reader_that_leaves_is_no_error(command: list[str]) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "dse.cli", *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout and process.stderr
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait() == 0


def test_help_wraps_a_paragraph_to_the_terminal_alone():
    """Where the docstring wraps its lines is nothing to the reader's terminal."""
    text = """One sentence that
    goes on.

    Another paragraph.

    Parameters
    ----------
    space:
        Path of a space,
        or its name.
    out:
        Folder.
    """
    assert one_line_paragraphs(text).split("\n") == [
        "One sentence that goes on.",
        "",
        "Another paragraph.",
        "",
        "Parameters",
        "----------",
        "space:",
        "    Path of a space, or its name.",
        "out:",
        "    Folder.",
    ]


def test_every_command_s_help_is_wrapped_anew():
    texts = [app[name].default_command.__doc__ for name in ("sweep", "search", "validate")]
    assert all(text == one_line_paragraphs(text) for text in texts)


def test_the_folder_of_a_file_is_made_and_what_cannot_be_is_told(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "page.html"
    assert made(path) == path and path.parent.is_dir()
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"page\.html: cannot be written \(.*\); give another path with -o"):
        made(tmp_path / "file" / "page.html")


def test_a_closed_pipe_is_a_reader_that_left_and_so_is_the_exit_that_it_causes() -> None:
    assert reader_left(BrokenPipeError())
    assert not reader_left(SystemExit(1))
    assert not reader_left(OSError())
    try:
        try:
            raise BrokenPipeError
        except BrokenPipeError:
            raise SystemExit(1)  # noqa: B904  (as rich's console does)
    except SystemExit as error:
        assert reader_left(error)


def test_json_holds_no_number_that_is_not_finite(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"a": [1.5, None]})
    assert json.loads(capsys.readouterr().out) == {"a": [1.5, None]}
    with pytest.raises(ValueError):
        print_json({"a": float("nan")})
    assert capsys.readouterr().out == ""
