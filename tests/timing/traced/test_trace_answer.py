"""Traces as workloads: swept in a space, timed by ``run`` and by ``dse trace``."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dse.base.errors import InputError
from dse.cli import run_command
from dse.evaluate.run import run
from dse.grid.sweep import sweep
from dse.space.space import space_from_mapping
from dse.timing.timing import CAUSES
from tests.traces.traces import kernel_text, write_directory


def lines(warp: int) -> list[str]:
    address = 0x7F0000000000 + 512 * warp
    return [
        f"0010 ffffffff 1 R2 LDG.E.SYS 1 R1 4 1 {address:#x} 4",
        "0020 ffffffff 1 R3 FFMA 2 R2 R3 0",
        "0030 ffffffff 1 R4 MUFU.EX2 1 R3 0",
        f"0040 ffffffff 0 STG.E.SYS 2 R1 R4 4 1 {address + (1 << 24):#x} 4",
        "0050 ffffffff 0 EXIT 0 0",
    ]


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    ctas = [[lines(2 * c + w) for w in range(2)] for c in range(300)]
    kernels = [kernel_text(ctas, threads=64, name=name) for name in ("first", "second")]
    return write_directory(tmp_path / "trace", *kernels)


def space(trace: Path, **changes: Any) -> dict[str, Any]:
    return {
        "base": "rtx_2060",
        "axes": {"sm_count": [10, 30], "dram_bandwidth_gbs": [168, 336, 672], "l2_mib": [3, 6]},
        "workloads": {"kernels": str(trace)},
        "objectives": [{"value": "kernels.time_ms", "goal": "min"}, {"value": "die_mm2", "goal": "min"}],
    } | changes


@pytest.mark.slow
def test_a_trace_is_swept_as_any_workload(trace: Path, tmp_path: Path) -> None:
    loaded = space_from_mapping(space(trace), "s.toml", "s")
    assert loaded.workloads[0].recorded[0].made_for.shape[0] == 2  # one simulation for each number of SMs
    assert all(trace.compiled is not None for trace in loaded.workloads[0].recorded)
    result = sweep(loaded, tmp_path / "out")
    base = result.baseline.iloc[0]
    alone = run("rtx_2060", str(trace))
    assert base["kernels.time_ms"] == pytest.approx(alone.metrics["time_ms"][0], rel=1e-5)
    for cause in CAUSES:
        assert base[f"kernels.{cause}_ms"] == pytest.approx(alone.kernels[f"{cause}_ms"].sum(), rel=1e-4, abs=1e-9)
    assert len(result.points()) == 12
    times = result.front["kernels.time_ms"].to_numpy()
    assert np.isfinite(times).all() and times.min() < base["kernels.time_ms"]


def test_the_digest_follows_the_trace(trace: Path) -> None:
    first = space_from_mapping(space(trace), "s.toml", "s").digest
    assert space_from_mapping(space(trace), "s.toml", "s").digest == first
    kernels = [kernel_text([[lines(w)] for w in range(40)], name="first")]
    assert space_from_mapping(space(write_directory(trace, *kernels)), "s.toml", "s").digest != first


def test_a_trace_stands_relative_to_its_space(trace: Path, tmp_path: Path) -> None:
    loaded = space_from_mapping(space(Path("trace")), "s.toml", "s", tmp_path)
    assert loaded.workloads[0].recorded


def test_too_many_gpus_to_simulate_are_refused(trace: Path) -> None:
    axes = {"sm_count": {"from": 1, "to": 100, "step": 1}, "l1_kib": [96, 192]}
    with pytest.raises(InputError, match=r"200 .* sm_count, l1_kib"):
        space_from_mapping(space(trace, axes=axes), "s.toml", "s")


def test_linked_attributes_count(trace: Path) -> None:
    content = space(trace, axes={"l2_mib": [3, 6]}, links={"sm_count": "10 * l2_mib"})
    made_for = space_from_mapping(content, "s.toml", "s").workloads[0].recorded[0].made_for
    assert sorted(made_for[:, 0]) == [30, 60]


@pytest.mark.parametrize("model", ["amali", "mdm", "roofline"])
def test_command_with_a_gpus_name(trace: Path, model: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["trace", str(trace), "--gpu", "rtx_2060", "--timing", model]
    assert run_command([*command, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["kernel"] for row in rows] == ["first", "second"]
    assert sum(rows[0][cause] for cause in CAUSES) == pytest.approx(rows[0]["cycles"])
    assert rows[0]["time_us"] == pytest.approx(rows[0]["cycles"] / rows[0]["clock_ghz"] / 1e3)
    assert run_command(command) == 0
    shown = capsys.readouterr().out
    assert "uncalibrated" in shown and "total" in shown and "us at" in shown


def test_command_chooses_gpu_and_model(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["trace", str(trace)]) == 0
    captured = capsys.readouterr()
    assert "rtx_2060, by the trace's binary version" in captured.err
    assert "Amali" in captured.out
    assert run_command(["trace", str(trace), "--gpu", "rtx_2060", "--timing", "gcom", "--json"]) == 0
    assert "parts" in json.loads(capsys.readouterr().out)[0]
    for wrong in (["--timing", "gcomm"], ["--gpu", "rtx_2061"], ["--representative", "99999"]):
        assert run_command(["trace", str(trace), *wrong]) == 2
        assert capsys.readouterr().err.count("\n") <= 2


def test_command_times_the_kernels_that_are_asked_for(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["trace", str(trace), "--kernel", "2", "--timing", "roofline", "--json"]) == 0
    assert [row["kernel"] for row in json.loads(capsys.readouterr().out)] == ["second"]


def test_another_generations_trace_is_marked_and_instructions_that_a_gpu_lacks_are_refused(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["trace", str(trace), "--gpu", "h100_sxm", "--timing", "roofline"]) == 0
    assert "recorded for compute capability 7.5, timed on 9.0: " in capsys.readouterr().err
    copies = ["0010 ffffffff 0 UTMALDG.2D 0 0", "0020 ffffffff 0 EXIT 0 0"]
    hopper = write_directory(tmp_path / "hopper", kernel_text([[copies]], name="copies", binary=90))
    assert run_command(["trace", str(hopper), "--gpu", "a100_sxm_80gb", "--timing", "roofline"]) == 2
    assert "its instructions need compute capability 9, it has 8" in capsys.readouterr().err
    assert run_command(["run", "a100_sxm_80gb", str(hopper), "--timing", "roofline"]) == 2
    assert "its instructions need compute capability 9, it has 8" in capsys.readouterr().err
    assert run_command(["trace", str(hopper), "--timing", "roofline"]) == 0


def test_a_configuration_of_gpgpu_sim_is_named(trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "gpgpusim.config"
    path.write_text("-gpgpu_compute_capability_major 7\n-gpgpu_n_clusters 80\n")
    assert run_command(["trace", str(trace), "--gpu", str(path)]) == 2
    assert "is a configuration of GPGPU-Sim, which is not read; give a GPU's name" in capsys.readouterr().err
