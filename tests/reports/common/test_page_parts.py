"""The parts of a page: escaped, loading nothing, and files that are not written over what is read."""

from pathlib import Path

import pytest

from dse.base.errors import InputError
from dse.reports.common.page_parts import check_writable, document, note, row, section, swatches, table, write_document

HOSTILE = '<script>alert("1")</script> & co'


def test_a_document_is_whole_and_its_title_escaped() -> None:
    page = document(HOSTILE, "<p>body</p>")
    assert page.startswith("<!DOCTYPE html>") and page.endswith("</html>\n")
    assert HOSTILE not in page
    assert "<main>\n<p>body</p>\n</main>" in page
    head = page[: page.index("<script>")]
    assert "src=" not in head and "@import" not in head and "url(" not in head


@pytest.mark.parametrize(
    "part", [note(HOSTILE), section("a", HOSTILE), table("", [], HOSTILE), swatches({HOSTILE: ("#000", HOSTILE)})]
)
def test_texts_are_escaped(part: str) -> None:
    assert "<script>" not in part
    assert "&lt;script&gt;" in part and "&amp; co" in part


def test_a_section_has_its_name_and_leaves_empty_parts_out() -> None:
    assert section("speed", "Speed", "a", "", "b") == '<section id="speed">\n<h2>Speed</h2>\na\nb\n</section>'
    assert section("", "Speed").startswith("<section>")


def test_a_table_marks_the_baseline_and_has_no_empty_head() -> None:
    made = table("", [row("<td>1</td>"), row("<td>2</td>", is_base=True)])
    assert "<thead>" not in made and "<caption>" not in made
    assert made.count("<tr") == 2 and made.count('<tr class="base">') == 1


def test_a_page_is_written_whole_and_leaves_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "new" / "page.html"
    write_document(path, "text")
    assert path.read_text() == "text"
    assert list(path.parent.iterdir()) == [path]


def test_what_is_read_is_not_written_over(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("a\n1\n")
    (tmp_path / "link.csv").symlink_to(path)
    for target in (path, tmp_path / "link.csv"):
        with pytest.raises(InputError, match="is read by this command; give another path"):
            check_writable(target, "nothing.csv", None, path)
    check_writable(None, path)
    check_writable(tmp_path / "page.html", path)


def test_what_cannot_be_a_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="is a folder; give the path of a file"):
        check_writable(tmp_path)
    with pytest.raises(InputError, match=r"cannot be written .* is a file"):
        check_writable(tmp_path / "file" / "page.html")
    check_writable(tmp_path / "new" / "page.html")
    assert not (tmp_path / "new").exists()
