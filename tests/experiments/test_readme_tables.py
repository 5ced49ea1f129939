"""Tables that experiments write into their READMEs, and that the quick ones still write what stands there."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from experiments.common.readme_tables import markdown, table_in, tables_in, write_table

EXPERIMENTS = Path(__file__).parents[2] / "experiments"

QUICK = {
    "001_tensor_core_capability": (),
    "002_amali_ablation": (),
    "004_accelwattch": (),
    "005_die_area": (),
    "006_board_power": (),
    "008_dvfs": (),
    "010_scale_model_h100": (),
    "012_timing_calibration": ("--quick",),
    "013_attention": ("--quick",),
    "014_vector_kernels": ("--quick",),
    "015_layer_totals": (),
    "016_calibrated_design": (),
    "017_amali_claim": (),
    "018_simt_products": ("--quick",),
    "022_ratio_intervals": (),
    "023_novelty": (),
    "024_narrow_products": (),
    "025_latent_and_mixtures": ("--write",),
    "026_mixtures": ("--write",),
    "027_attention_today": ("--write",),
    "028_host_to_target": (),
    "029_before_calibration": (),
}
"""Experiments that run in minutes -> arguments with which they write their tables."""

LONGER = ("007_power_fit", "011_predict_h100", "019_whole_networks")
"""Those that take longer: their tables stand between marks, and nothing runs them here."""

OTHERWISE = {
    "009_scale_model": "needs the paper's spreadsheet (GPU_DSE_SCALE_MODEL), which is not shipped",
    "020_scoreboard": "scoreboard.md is written as a whole",
    "021_natural_experiments": "has marks of its own, and tests of its own",
}


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


def test_every_experiment_is_here_and_its_readme_has_tables_that_its_command_writes() -> None:
    named = {*QUICK, *LONGER, *OTHERWISE}
    assert sorted(named) == sorted(path.parent.name for path in EXPERIMENTS.glob("*/run.py"))
    for name in (*QUICK, *LONGER, "009_scale_model"):
        tables = tables_in(EXPERIMENTS / name / "README.md")
        assert tables, name
        source = "".join(path.read_text(encoding="utf-8") for path in (EXPERIMENTS / name).glob("*.py"))
        assert all("| " in table and "README" in source for table in tables.values()), name


def same(one: str, other: str) -> bool:
    """Whether two texts have the same words, and numbers that differ by one in their last place at most.

    Another processor sums in another order, which moves what is rounded.
    """
    words, others = re.split(r"(\d+(?:\.\d+)?)", one), re.split(r"(\d+(?:\.\d+)?)", other)
    return len(words) == len(others) and all(map(_alike, words, others))


def _alike(one: str, other: str) -> bool:
    digits = len(one.partition(".")[2])
    if one == other or not re.fullmatch(r"\d+(\.\d+)?", one) or digits != len(other.partition(".")[2]):
        return one == other
    return abs(float(one) - float(other)) < 1.5 * 10.0**-digits


def test_what_counts_as_the_same_table() -> None:
    assert same("| a | 3.41 % |", "| a | 3.42 % |") and same("| 12 | b |", "| 13 | b |")
    for other in ("| a | 3.43 % |", "| a | 3.4 % |", "| b | 3.41 % |", "| a | 3.41 % | 1 |", "| a | -3.41 % |"):
        assert not same("| a | 3.41 % |", other), other


@pytest.mark.slow
@pytest.mark.parametrize("name", QUICK)
def test_the_command_writes_what_stands_in_the_readme(name: str, tmp_path: Path) -> None:
    readme = EXPERIMENTS / name / "README.md"
    whole, stands = readme.read_text(encoding="utf-8"), tables_in(readme)
    command = [sys.executable, str(EXPERIMENTS / name / "run.py"), *QUICK[name]]
    try:
        subprocess.run(command, check=True, capture_output=True, cwd=tmp_path)
        written = tables_in(readme)
    finally:
        readme.write_text(whole, encoding="utf-8")
    assert {table: same(text, stands[table]) for table, text in written.items()} == dict.fromkeys(stands, True)
