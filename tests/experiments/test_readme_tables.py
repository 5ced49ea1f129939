"""Tables that experiments write into their READMEs, and that the quick ones still write what stands there."""

import subprocess
import sys
from pathlib import Path

import pytest

from experiments.common.readme_tables import markdown, table_in, write_table

EXPERIMENTS = Path(__file__).parents[2] / "experiments"

QUICK = {
    "004_accelwattch": "statistics",
    "008_dvfs": "clocks",
    "010_scale_model_h100": "errors",
    "028_host_to_target": "scenarios",
}
"""Experiments that run in minutes -> the table that they write."""


def test_a_table_stands_between_its_marks_and_nothing_else_changes(tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text("# before\n\n<!-- t: written by run.py -->\nold\n<!-- end of t -->\n\nafter\n")
    table = markdown(["a", "b"], [["x", "1"]])
    assert table == "| a | b |\n| --- | ---: |\n| x | 1 |"
    write_table(readme, "t", table)
    assert table_in(readme, "t") == table
    assert readme.read_text().startswith("# before\n\n<!-- t") and readme.read_text().endswith("of t -->\n\nafter\n")
    with pytest.raises(ValueError, match="has no marks of a table 'u'"):
        write_table(readme, "u", table)


@pytest.mark.parametrize("between", ["", "\n", "\n\n", "\nold\n\nold\n"])
def test_marks_with_nothing_between_them_get_a_table_too(tmp_path: Path, between: str) -> None:
    readme = tmp_path / "README.md"
    readme.write_text(f"a\n<!-- t: written by run.py -->{between}<!-- end of t -->\nb\n")
    write_table(readme, "t", "| x |")
    assert readme.read_text() == "a\n<!-- t: written by run.py -->\n| x |\n<!-- end of t -->\nb\n"


def test_marks_that_stand_twice_or_in_the_other_order_are_refused(tmp_path: Path) -> None:
    readme, start, end = tmp_path / "README.md", "<!-- t: written by run.py -->", "<!-- end of t -->"
    for text, why in ((f"{end}{start}", "no marks"), (f"{start}{end}{start}{end}", "more than once")):
        readme.write_text(text)
        with pytest.raises(ValueError, match=why):
            write_table(readme, "t", "| x |")
        assert readme.read_text() == text


@pytest.mark.parametrize("name", QUICK)
def test_every_readme_has_the_marks_that_its_command_writes_between(name: str) -> None:
    assert table_in(EXPERIMENTS / name / "README.md", QUICK[name]).startswith("| ")


@pytest.mark.slow
@pytest.mark.parametrize("name", QUICK)
def test_the_command_writes_what_stands_in_the_readme(name: str) -> None:
    readme = EXPERIMENTS / name / "README.md"
    whole = readme.read_text(encoding="utf-8")
    try:
        subprocess.run([sys.executable, str(EXPERIMENTS / name / "run.py")], check=True, capture_output=True)
        written = table_in(readme, QUICK[name])
    finally:
        readme.write_text(whole, encoding="utf-8")
    assert written == table_in(readme, QUICK[name])
