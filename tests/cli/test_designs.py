"""Commands over many designs: sweep, report, check and new."""

import json
from pathlib import Path
from typing import Any

import pytest

from dse.base.pareto_filter import pareto_mask
from dse.cli import run_command
from dse.space.space import load_space
from dse.space.unlinked import unlinked_notes
from tests.cli.commands import refused


def test_sweep_answers_in_json_and_writes_everything(
    quick: dict[str, Any], write_space, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert run_command(["sweep", str(write_space(quick)), "-o", str(out), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert list(document) == [
        "n",
        "n_feasible",
        "infeasible",
        "objectives",
        "baseline",
        "pareto",
        "ratios_unknown",
        "seconds",
        "calibration",
        "intervals",
        "notes",
        "assumed_numbers",
        "comparisons",
        "verdicts",
        "power_limit",
    ]
    assert document["n"] == document["n_feasible"] == 45
    assert document["calibration"] == "uncalibrated"
    assert document["objectives"][0] == {"name": "prefill.ttft_ms", "unit": "ms", "direction": "minimize"}
    assert set(document["seconds"]) == {"compile", "evaluate", "write"}
    costs = [[row[o["name"]] for o in document["objectives"]] for row in document["pareto"]]
    assert pareto_mask(costs).all()  # pyright: ignore[reportArgumentType]
    assert document["baseline"]["sm_count"] == 132
    assert {p.name for p in out.iterdir()} == {"points.parquet", "pareto.parquet", "run.json", "report.html"}
    assert run_command(["sweep", str(write_space(quick)), "-o", str(out), "--no-page"]) == 0
    assert f"dse report {out} draws the page" in capsys.readouterr().out
    assert not (out / "report.html").exists()  # that of an earlier sweep is not left beside new tables


@pytest.mark.slow
def test_report_draws_the_same_page_again(quick, write_space, tmp_path, capsys) -> None:
    out = tmp_path / "out"
    assert run_command(["sweep", str(write_space(quick)), "-o", str(out)]) == 0
    page = (out / "report.html").read_bytes()
    capsys.readouterr()
    assert run_command(["report", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"page": str(out / "report.html")}
    assert (out / "report.html").read_bytes() == page


def test_sweep_prints_a_table(quick, write_space, tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert run_command(["sweep", str(write_space(quick)), "-o", str(tmp_path / "out")]) == 0
    out = capsys.readouterr().out
    assert "uncalibrated" in out
    assert "\x1b" not in out
    assert "report.html" in out


def test_a_space_without_room_ends_with_a_sentence_and_its_page(quick, write_space, tmp_path, capsys) -> None:
    out = tmp_path / "out"
    path = write_space(quick | {"axes": {"dram_gb": [1, 2]}, "links": {}})
    assert run_command(["sweep", str(path), "-o", str(out), "--json"]) == 2
    said = capsys.readouterr()
    assert json.loads(said.out)["n_feasible"] == 0  # the answer stands, and a script does not go on
    assert said.err.splitlines()[-1].startswith("dse: none of the 2 designs can be had: memory: ")
    assert {p.name for p in out.iterdir()} == {"points.parquet", "pareto.parquet", "run.json", "report.html"}


def test_check_tells_what_a_sweep_takes(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["check", "h100_tensor_core", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["n"] >= 1_000_000
    assert document["memory_gb"] < 2
    assert document["seconds"] < 120
    assert sum(document["parts"].values()) == pytest.approx(document["seconds"], rel=0.01)
    assert run_command(["check", "h100_tensor_core"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "designs" in told
    assert f"{document['parts']['page']:.0f} s draw the page (none with --no-page)" in told


def test_check_counts_on_less_time_for_less_work(quick, small, write_space, capsys) -> None:
    def seconds(space: dict[str, Any]) -> float:
        assert run_command(["check", str(write_space(space)), "--json"]) == 0
        return json.loads(capsys.readouterr().out)["seconds"]

    many = small["axes"] | {"l2_mib": {"from": 20, "to": 50, "step": 1}}
    assert seconds(quick) < seconds(small) < seconds(small | {"axes": many}) < 120


def test_check_warns_of_a_space_without_room(small, write_space, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_space(small | {"axes": {"dram_gb": [1, 2]}, "links": {}})
    assert run_command(["check", str(path), "--json"]) == 0
    warnings = json.loads(capsys.readouterr().out)["warnings"]
    assert [w.partition(":")[0] for w in warnings] == [f"no design has room for {w}" for w in ("prefill", "decode")]
    assert run_command(["check", str(path)]) == 0
    assert "dram_gb is 2 at most" in " ".join(capsys.readouterr().out.split())


def test_check_tells_what_constraints_leave(small, write_space, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_space(small | {"constraints": ["sm_count <= 108", "prefill.ttft_ms < 50", "die_mm2 <= 10"]})
    assert run_command(["check", str(path), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["within"] == {"sm_count <= 108": 0.4, "prefill.ttft_ms < 50": None, "die_mm2 <= 10": 0}
    assert document["warnings"][0].startswith("no design is within die_mm2 <= 10:")
    assert document["warnings"][1:] == unlinked_notes(load_space(path))
    assert run_command(["check", str(path)]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "constraint sm_count <= 108: 40 % of designs" in told
    assert "constraint prefill.ttft_ms < 50: a sweep tells how many designs" in told


def test_new_writes_a_space_that_checks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.toml"
    assert run_command(["new", str(path)]) == 0
    assert run_command(["check", str(path)]) == 0
    capsys.readouterr()
    assert "exists already" in refused(["new", str(path)], capsys)
    assert run_command(["new", str(tmp_path / "again.toml"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"space": str(tmp_path / "again.toml")}
    assert "h100_tensor_core" in refused(["new", str(tmp_path / "b.toml"), "--from", "h100_tensor_cor"], capsys)
    assert not (tmp_path / "b.toml").exists()
    assert "there is no folder" in refused(["new", str(tmp_path / "no" / "c")], capsys)


WRONG_SPACES = {
    "unknown key": ({"bse": "h100"}, "did you mean 'base'"),
    "unknown base": ({"base": "h100_sxn"}, "h100_sxm"),
    "unknown axis": ({"axes": {"sm_cuont": [1]}}, "did you mean 'sm_count'"),
    "mistyped value": ({"axes": {"sm_count": ["many"]}}, "'many'"),
    "out of range": ({"axes": {"sm_count": [5000]}}, "1 to 1024"),
    "bad range": ({"axes": {"sm_count": {"from": 9, "to": 1, "step": 1}}}, "not below"),
    "unknown network": ({"workloads": {"a": "llama9"}}, "no network"),
    "unsafe constraint": ({"constraints": ["exit() > 1"]}, "not allowed"),
    "unknown metric": ({"objectives": [{"value": "decode.speed", "goal": "min"}]}, "decode.speed"),
    "missing objectives": ({"objectives": []}, "objectives are missing"),
    "missing data type": ({"workloads": {"prefill": "gpt2_xl:dtype=fp4"}}, "fp4"),
    "unknown model": ({"timing": "amalli"}, "did you mean 'amali'"),
}


@pytest.mark.parametrize("kind", WRONG_SPACES)
def test_wrong_spaces_exit_2_and_write_nothing(
    kind: str, small: dict[str, Any], write_space, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change, part = WRONG_SPACES[kind]
    path = write_space(small | change)
    message = refused(["sweep", str(path), "-o", str(tmp_path / "out")], capsys)
    assert str(path) in message
    assert part in message
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_commands_give_the_page_of_one_sweep(quick, write_space, tmp_path, capsys) -> None:
    space, out = str(write_space(quick)), [str(tmp_path / name) for name in ("1", "2", "merged", "alone")]
    for number in (1, 2):
        assert run_command(["sweep", space, "--shard", f"{number}/2", "-o", out[number - 1], "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["shard"] == f"{number}/2"
    assert run_command(["merge", out[1], out[0], "-o", out[2]]) == 0
    merged = capsys.readouterr().out
    assert run_command(["sweep", space, "-o", out[3]]) == 0
    assert capsys.readouterr().out.replace(out[3], out[2]) == merged
    for name in ("points.parquet", "pareto.parquet", "report.html"):
        assert (tmp_path / "merged" / name).read_bytes() == (tmp_path / "alone" / name).read_bytes(), name
