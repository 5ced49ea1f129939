"""Where commands write their pages: names that browsers open as pages, and folders that are not called as one."""

from pathlib import Path

import pytest

from dse.base.errors import InputError
from dse.cli import run_command
from dse.cli.pages import folder_of_results, page_file

PRODUCT = "m,n,k\n1024,4096,4096\n"
ROWS = "device,op,dtype,m,n,k,latency_us\nH100,gemm,bf16,1024,4096,4096,59.07\nH100,gemm,bf16,2048,4096,4096,111.3\n"


@pytest.mark.parametrize(
    ("given", "written"),
    [
        ("why", "why.html"),
        ("why.html", "why.html"),
        ("why.HTM", "why.HTM"),
        ("llama3.1", "llama3.1.html"),
        (".hidden", ".hidden.html"),
    ],
)
def test_a_name_without_an_end_gets_one(tmp_path, given, written):
    assert page_file(tmp_path / given) == tmp_path / written


def test_places_that_are_no_files_stay():
    assert page_file(Path("/dev/null")) == Path("/dev/null")


@pytest.mark.parametrize("end", [".pdf", ".toml", ".json"])
def test_another_kind_of_file_is_refused(tmp_path, end):
    with pytest.raises(InputError, match=rf"a page is HTML, not \{end}; give a name that ends in .html"):
        page_file(tmp_path / f"a{end}")


def test_what_the_end_leads_to_is_not_written_over(tmp_path):
    (tmp_path / "a.html").mkdir()
    with pytest.raises(InputError, match="is a folder"):
        page_file(tmp_path / "a")
    read = tmp_path / "b.html"
    read.touch()
    with pytest.raises(InputError, match="is read by this command"):
        page_file(tmp_path / "b", read)


@pytest.mark.parametrize("json_", [False, True])
@pytest.mark.parametrize(
    "command",
    [
        ["compare", "h100_sxm", "h200", "product.csv"],
        pytest.param(["explain", "h100_sxm", "product.csv"], marks=pytest.mark.slow),
        ["validate", "rows.csv", "--timing", "roofline"],
    ],
)
def test_commands_tell_where_the_page_is(tmp_path, monkeypatch, capsys, command, json_):
    monkeypatch.chdir(tmp_path)
    Path("rows.csv").write_text(ROWS)
    Path("product.csv").write_text(PRODUCT)
    assert run_command([*command, "-o", "mine", *["--json"][: int(json_)]]) == 0
    printed = capsys.readouterr()
    assert Path("mine.html").read_text().startswith("<!DOCTYPE html>") and not Path("mine").exists()
    assert (printed.err if json_ else printed.out).endswith(
        "dse: wrote mine.html\n" if json_ else "The page with the plots: mine.html\n"
    )


@pytest.mark.parametrize("command", ["sweep", "search"])
def test_a_folder_of_results_is_not_called_as_a_page(tmp_path, capsys, command):
    out = tmp_path / "mine.html"
    assert run_command([command, "h100_tensor_core", "-o", str(out)]) == 2
    assert "the page in it is mine/report.html" in " ".join(capsys.readouterr().err.split()) and not out.exists()


def test_a_folder_that_has_such_a_name_is_taken(tmp_path):
    (tmp_path / "a.html").mkdir()
    assert folder_of_results(tmp_path / "a.html", "b") == tmp_path / "a.html"
    assert folder_of_results(None, "b") == Path("b")
