"""The sweep as a whole: every design, the front, the files, and why a design cannot be had."""

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dse import sweep
from dse.base.errors import InputError
from dse.base.pareto_filter import pareto_mask
from dse.evaluate.platform import CPU, PLATFORMS
from dse.evaluate.run import run
from dse.explanation.explain import explain
from dse.grid.record import load_result
from dse.grid.result import SweepResult
from dse.hardware.presets import changed, gpu_from_mapping, preset_sheet
from dse.space.designs import sample_positions
from dse.space.space import space_from_mapping
from dse.timing.amali import Amali
from dse.timing.timing import CAUSES
from tests.conftest import SMALL


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> SweepResult:
    folder = tmp_path_factory.mktemp("sweep")
    return sweep(space_from_mapping(SMALL, "here", "small"), folder)


@pytest.fixture
def quick(small: dict[str, Any]) -> dict[str, Any]:
    """One workload and the model that compiles soonest, for what does not depend on them."""
    decode = {"decode": small["workloads"]["decode"]}
    return small | {"timing": "roofline", "workloads": decode, "objectives": small["objectives"][1:]}


def test_progress_begins_when_all_is_checked(quick: dict[str, Any], tmp_path: Path) -> None:
    counts: list[int] = []
    swept = sweep(space_from_mapping(quick, "here", "quick"), tmp_path, counts.append)
    assert counts[0] == 0
    assert sum(counts) == swept.n
    counts.clear()
    with pytest.raises(InputError, match="front"):
        sweep(swept.space, tmp_path, counts.append, keep="none")
    assert not counts


def test_every_design_is_there_and_finite(result: SweepResult) -> None:
    points = result.points()
    assert len(points) == result.n == result.n_feasible == 45
    assert points["feasible"].all()
    numbers = points.select_dtypes("number")
    assert np.isfinite(numbers.to_numpy()).all()
    assert (points[["prefill.ttft_ms", "decode.tbt_ms", "die_mm2"]] > 0).all().all()


def test_stacks_add_up_to_the_time(result: SweepResult) -> None:
    points = result.points()
    for workload in ("prefill", "decode"):
        total = points[[f"{workload}.{cause}_ms" for cause in CAUSES]].sum(axis=1)
        np.testing.assert_allclose(total, points[f"{workload}.time_ms"], rtol=1e-5)


def test_front_is_the_non_dominated_set(result: SweepResult) -> None:
    points = result.points()
    costs = points[[o.name for o in result.space.objectives]].to_numpy()
    expected = points[pareto_mask(costs)].reset_index(drop=True)
    pd.testing.assert_frame_equal(result.pareto(), expected)


@pytest.mark.parametrize("number", [0, 17, 44])
def test_a_design_of_the_grid_is_the_same_alone(result: SweepResult, number: int) -> None:
    """One design through the one-GPU path, without blocks, choice by gather, or fast-math."""
    row = result.points().iloc[number]
    rate = float(row["tensor_fma_bf16"])
    sheet = gpu_from_mapping(
        {
            "base": "h100_sxm",
            "sm_count": int(row["sm_count"]),
            "dram_bandwidth_gbs": row["dram_bandwidth_gbs"],
            "tensor_fma_bf16": rate,
            "tensor_fma_fp16": rate,
            "tensor_fma_fp8": 2 * rate,
        },
        "here",
        "alone",
    )
    for workload, metric in zip(result.space.workloads, ("ttft_ms", "tbt_ms"), strict=True):
        alone = run(sheet, workload, result.space.model)
        assert alone.metrics[metric][0] == pytest.approx(row[f"{workload.name}.{metric}"], rel=1e-5)
        for cause in CAUSES:
            stack = alone.stack(workload.phases[0].name).get(cause, 0.0)
            assert stack == pytest.approx(row[f"{workload.name}.{cause}_ms"], rel=2e-3, abs=1e-5)


def test_baseline_is_the_base_gpu(result: SweepResult) -> None:
    base = result.baseline.iloc[0]
    assert base["sm_count"] == 132
    for workload, metric in zip(result.space.workloads, ("ttft_ms", "tbt_ms"), strict=True):
        alone = run("h100_sxm", workload, result.space.model).metrics[metric][0]
        assert base[f"{workload.name}.{metric}"] == pytest.approx(alone, rel=1e-5)


def test_a_run_of_its_own_is_calibrated_where_a_gpu_is_a_measured_one_s() -> None:
    workload, sheet = SMALL["workloads"]["prefill"]["use"], preset_sheet("h100_sxm")
    wider = changed(sheet, {"dram_bandwidth_gbs": 4800}, "here")
    result = [run(gpu, workload).model.calibration for gpu in ("h100_sxm", sheet, wider, "l40s")]
    assert result == ["h100_sxm", "h100_sxm", "shared", "shared"]


def test_same_inputs_same_bytes(result: SweepResult, tmp_path: Path) -> None:
    sweep(space_from_mapping(SMALL, "here", "small"), tmp_path)
    assert result.folder is not None
    for name in ("points.parquet", "pareto.parquet"):
        digests = [hashlib.sha256((folder / name).read_bytes()).hexdigest() for folder in (result.folder, tmp_path)]
        assert digests[0] == digests[1], name


def test_memory_and_folder_give_the_same(result: SweepResult) -> None:
    kept = sweep(space_from_mapping(SMALL, "here", "small"))
    pd.testing.assert_frame_equal(kept.points(), result.points())
    pd.testing.assert_frame_equal(kept.points(["sm_count"]), result.points(["sm_count"]))


def test_result_reads_back(result: SweepResult) -> None:
    assert result.folder is not None
    read = load_result(result.folder)
    assert read.summary() == result.summary()
    pd.testing.assert_frame_equal(read.sample, result.sample)
    pd.testing.assert_frame_equal(read.front, result.front)
    pd.testing.assert_frame_equal(read.axis_effects, result.axis_effects, check_dtype=False)


def test_axis_effects_agree_with_the_points(result: SweepResult) -> None:
    points, effects = result.points(), result.axis_effects
    row = effects.query("axis == 'sm_count' and number == 120 and objective == 'decode.tbt_ms'")
    values = points.loc[points["sm_count"] == 120, "decode.tbt_ms"]
    assert row["best"].item() == pytest.approx(values.min())
    assert row["median"].item() == pytest.approx(values.median(), rel=0.01)
    base = effects[(effects["axis"] == "sm_count") & (effects["number"] == 132)]
    assert base["at_baseline"].tolist() == pytest.approx([result.baseline[o].item() for o in base["objective"]])


@pytest.mark.slow
def test_chunks_do_not_change_results(result: SweepResult, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(PLATFORMS, "cpu", replace(CPU, chunk=16, kernel_block=8))
    small = sweep(space_from_mapping(SMALL, "here", "small"), tmp_path)
    pd.testing.assert_frame_equal(small.points(), result.points(), rtol=2e-6)
    assert len(small.front) == len(result.front)


def test_reasons_are_counted_and_written(quick: dict[str, Any]) -> None:
    quick["axes"] = {"dram_gb": [2, 80], "tensor_fma_bf16": [0, 512], "shared_memory_kib": [16, 228]}
    quick["links"] = {}
    quick["constraints"] = ["decode.tbt_ms > 0"]
    result = sweep(space_from_mapping(quick, "here", "small"))
    points = result.points()
    assert result.n == 8
    assert result.n_feasible == 1
    axes = ["dram_gb", "tensor_fma_bf16", "shared_memory_kib"]
    assert points.loc[points["feasible"], axes].to_numpy().tolist() == [[80, 512, 228]]
    memory = [reason for reason in result.infeasible if reason.startswith("memory")]
    assert memory
    assert "GB" in memory[0]
    assert "has 2 GB" in memory[0]
    assert sum(result.infeasible.values()) == 7
    kernels = points["reason"].str.startswith("kernel")  # before memory: such a design has no time, whatever fits
    assert kernels.sum() == 6
    assert points["decode.tbt_ms"].isna().equals(kernels)


def test_dies_without_a_link_or_with_unequal_shares_are_a_reason(quick: dict[str, Any]) -> None:
    axes = {"dies": [1, 2, 5], "die_link_gbs": [0, 5000], "sm_count": [130, 132, 133]}
    result = sweep(space_from_mapping(quick | {"axes": axes, "links": {}}, "here", "small"))
    # one die: all 6; two: 130 and 132 with a link; five: 130 with one
    assert result.infeasible == {"dies: several dies need a die_link_gbs, and each the same number of SMs": 9}
    points = result.points()
    for row in points.to_dict("records"):
        content = {"base": "h100_sxm"} | {name: row[name] for name in axes}
        if row["feasible"]:
            gpu_from_mapping(content, "x", "x")
        else:
            with pytest.raises(InputError, match="dies = "):
                gpu_from_mapping(content, "x", "x")


def test_shared_memory_that_no_l1_holds_is_a_reason(quick: dict[str, Any]) -> None:
    quick |= {"axes": {"shared_memory_kib": [228, 400], "l1_kib": [128, 256, 512]}, "links": {}}
    result = sweep(space_from_mapping(quick, "here", "small"))
    assert result.infeasible == {"room: shared_memory_kib is more than l1_kib, which holds it too": 3}
    points = result.points()
    for row in points[points["feasible"]].to_dict("records"):
        gpu_from_mapping({"base": "h100_sxm"} | {name: row[name] for name in quick["axes"]}, "x", "x")


@pytest.mark.slow
def test_what_decides_which_tiles_fit_is_swept_as_it_is_run(quick: dict[str, Any]) -> None:
    """Warp-level tiles where warpgroup ones have no room, CTA by CTA where there are no clusters, fewer stages."""
    text = "gpt2_xl:phase=prefill,batch=1,prompt=1024"
    quick |= {"axes": {"shared_memory_kib": [48, 100, 228], "cluster_size": [1, 8]}, "links": {}}
    quick |= {"workloads": {"p": text}, "objectives": [{"value": "p.ttft_ms", "goal": "min"}]}
    space = space_from_mapping(quick, "here", "small")
    result, times = sweep(space).points(), []
    for row in result.to_dict("records"):
        sheet = gpu_from_mapping({"base": "h100_sxm"} | {name: row[name] for name in quick["axes"]}, "x", "x")
        times.append(run(sheet, text, space.model).metrics["ttft_ms"][0])
    assert result["p.ttft_ms"].to_list() == pytest.approx(times, rel=1e-4)
    assert times[0] > times[2] > times[5]


def test_a_limit_that_no_clock_holds_is_a_reason(quick: dict[str, Any]) -> None:
    quick |= {"axes": {"tdp_w": [30, 700]}, "links": {}}
    result = sweep(space_from_mapping(quick, "here", "small"))
    (reason,) = result.infeasible
    assert reason.startswith(
        "power: decode draws more than its board is held to, tdp_w or a little less, at the lowest"
    )
    assert result.points()["feasible"].tolist() == [False, True]
    quick["power"] = {"model": "board", "limit": False}
    assert sweep(space_from_mapping(quick, "here", "small")).n_feasible == 2


def test_a_folder_of_a_search_is_not_overwritten(quick: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text('{"format": 1, "search": {}}')
    with pytest.raises(InputError, match=r"holds a search \(run.json\); give -o another folder for the sweep"):
        sweep(space_from_mapping(quick, "here", "small"), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]


def test_a_folder_of_another_space_is_not_overwritten(quick: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text('{"format": 1, "name": "mine"}')
    with pytest.raises(InputError, match=r"holds a sweep of the space 'mine' \(run.json\); give -o another folder"):
        sweep(space_from_mapping(quick, "here", "small"), tmp_path)


@pytest.mark.parametrize("content", ["{", "[]", "3"])
def test_results_that_nobody_knows_of_are_not_overwritten(quick: dict[str, Any], tmp_path: Path, content: str) -> None:
    (tmp_path / "run.json").write_text(content)
    with pytest.raises(InputError, match=r"run\.json: cannot be read, nor whose results these are; give -o another"):
        sweep(space_from_mapping(quick, "here", "small"), tmp_path)
    assert (tmp_path / "run.json").read_text() == content


def test_nothing_feasible_is_an_answer(quick: dict[str, Any]) -> None:
    quick["constraints"] = ["die_mm2 <= 1"]
    result = sweep(space_from_mapping(quick, "here", "small"))
    assert result.n_feasible == len(result.front) == 0
    assert result.infeasible == {"constraint: die_mm2 <= 1": 45}


def test_unwritable_folder_is_refused(tmp_path: Path) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        sweep(space_from_mapping(SMALL, "here", "small"), blocker / "out")


def test_maximised_objectives_and_expressions(quick: dict[str, Any]) -> None:
    quick["objectives"] = [
        {"value": "decode.tokens_per_s / die_mm2", "goal": "max", "name": "density", "unit": "token/s/mm2"},
        {"value": "total.time_ms", "goal": "min"},
    ]
    result = sweep(space_from_mapping(quick, "here", "small"))
    points = result.points()
    np.testing.assert_allclose(points["density"], points["decode.tokens_per_s"] / points["die_mm2"], rtol=1e-5)
    assert points["density"].max() in result.front["density"].to_numpy()
    assert result.summary()["objectives"][0] == {"name": "density", "unit": "token/s/mm2", "direction": "maximize"}


def test_row_groups_hold_the_space_and_no_clock(result: SweepResult) -> None:
    assert result.folder is not None
    metadata = pq.read_metadata(result.folder / "points.parquet").metadata
    assert metadata is not None
    assert metadata[b"dse.digest"].decode() == result.space.digest


def test_an_axis_can_be_an_objective(quick: dict[str, Any]) -> None:
    quick["objectives"] = [{"value": "sm_count", "goal": "min"}, {"value": "decode.tbt_ms", "goal": "min"}]
    points = sweep(space_from_mapping(quick, "here", "small")).points()
    assert points["sm_count"].dtype == np.int64


def test_an_objective_without_a_value_is_a_reason(quick: dict[str, Any]) -> None:
    quick["objectives"] = [{"value": "decode.tbt_ms / (sm_count - 132)", "goal": "min", "name": "odd"}]
    result = sweep(space_from_mapping(quick, "here", "small"))
    assert result.infeasible == {"objective: odd is not a finite number": 9}
    points = result.points()
    assert points["odd"].isna().equals(points["sm_count"] == 132)  # not drawn as 0
    assert points["decode.tbt_ms"].notna().all()


def test_an_objective_without_a_value_has_none_where_memory_lacks_too(quick: dict[str, Any]) -> None:
    quick["axes"] |= {"dram_gb": [2, 80]}
    quick["objectives"] = [{"value": "decode.tbt_ms / (sm_count - 132)", "goal": "min", "name": "odd"}]
    result = sweep(space_from_mapping(quick, "here", "small"))
    points = result.points()
    assert points["odd"].isna().equals(points["sm_count"] == 132)
    effects = result.axis_effects.set_index(["axis", "number"])["at_baseline"]
    assert np.isnan(effects["dram_gb", 2])  # it cannot be had
    assert effects["sm_count", 120] < 0


@pytest.mark.slow
def test_capacities_that_print_alike_are_all_counted(quick: dict[str, Any]) -> None:
    """Memory that follows other attributes is one reason, however many capacities there are; an axis' one each."""
    quick["axes"] = {"sm_count": [96, 108, 120, 132], "tdp_w": [500, 600, 700]}
    quick["links"] = {"dram_gb": "1.5 + sm_count * 1e-7 * tdp_w"}
    result = sweep(space_from_mapping(quick, "here", "small"))
    points = result.points()
    assert result.n_feasible == points["feasible"].sum() == 0
    (reason,) = result.infeasible
    assert result.infeasible[reason] == 12 and reason.endswith("GB, more than dram_gb")
    quick |= {"axes": {"sm_count": [96, 108], "dram_gb": [1.50000001, 1.50000002]}, "links": {}}
    result = sweep(space_from_mapping(quick, "here", "small"))
    assert result.n_feasible == 0
    assert list(result.infeasible.values()) == [4] and "has 1.5 GB" in next(iter(result.infeasible))


def test_resuming_another_finished_space_is_refused(quick: dict[str, Any], tmp_path: Path) -> None:
    quick["axes"] = {"sm_count": [96, 132]}
    sweep(space_from_mapping(quick, "here", "small"), tmp_path)
    before = (tmp_path / "points.parquet").read_bytes()
    quick["axes"] = {"sm_count": [96, 120]}
    with pytest.raises(InputError, match="holds the finished sweep of another space, or of small before it was"):
        sweep(space_from_mapping(quick, "here", "small"), tmp_path, resume=True)
    assert (tmp_path / "points.parquet").read_bytes() == before


def test_objectives_off_the_scale_have_no_median(quick: dict[str, Any]) -> None:
    quick["objectives"] = [{"value": "decode.tbt_ms - 1000", "goal": "min", "name": "odd"}]
    effects = sweep(space_from_mapping(quick, "here", "small")).axis_effects
    assert effects["median"].isna().all()
    assert effects["best"].notna().all()


@pytest.mark.parametrize("size", [300_000, 1_358_280, 45])
def test_the_sample_runs_through_every_axis_value(size: int) -> None:
    positions = sample_positions(size, np.ones(size, dtype=bool))
    assert len(positions) <= 2 * 20_000
    for length in (2, 3, 5, 7, 15):
        assert set(positions % length) == set(range(length))


def test_tables_of_another_run_are_refused(result: SweepResult, tmp_path: Path) -> None:
    assert result.folder is not None
    for file in result.folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    record = tmp_path / "run.json"
    record.write_text(record.read_text().replace(result.space.digest, "0" * 16))
    with pytest.raises(InputError, match="is not of the run"):
        load_result(tmp_path)
    (tmp_path / "points.parquet").write_bytes(b"garbage")
    with pytest.raises(InputError, match=r"finished sweep|points\.parquet"):
        load_result(tmp_path)


@pytest.mark.parametrize("answer", [run, explain])
@pytest.mark.parametrize(
    ("workload", "model", "sentence"),
    [
        (None, None, "workload = None is not accepted; give a network with its settings"),
        (5, "roofline", "workload = 5 is not accepted"),
        (
            "gpt2_xl",
            Amali,
            "model = <class .* is not accepted; give one of amali, mdm, roofline, or a model as dse.Amali",
        ),
        ("gpt2_xl", "rofline", "no model is called 'rofline'; did you mean 'roofline'"),
    ],
)
def test_what_is_no_workload_or_model_is_refused(answer: Any, workload: Any, model: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        answer("h100_sxm", workload, model)


def test_what_is_no_folder_is_refused(quick: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"^out = 5 is not accepted; give the path of a folder"):
        sweep(space_from_mapping(quick, "here", "small"), out=5)  # pyright: ignore[reportArgumentType]


def test_a_sweep_is_shown_by_its_counts_and_its_front(result: SweepResult) -> None:
    low, high = result.front["die_mm2"].min(), result.front["die_mm2"].max()
    first, second = repr(result).splitlines()
    assert first == f"SweepResult('small': 45 designs, 45 feasible, {len(result.front)} on the front"
    assert f"die_mm2 {low:.4g} to {high:.4g} mm2)" in second
    html = result._repr_html_()
    assert "<th>sm_count</th>" in html and "<th>decode.tbt_ms</th>" in html and "power_w" not in html


def test_a_run_is_shown_by_its_metrics() -> None:
    result = run("h100_sxm", "gpt2_xl:phase=decode,batch=8,context=512", "roofline")
    shown = repr(result)
    assert shown.startswith("RunResult(GPT-2 XL, decode at 512 tokens of context, batch 8, bf16 on H100 SXM5 80GB\n")
    assert f"tbt_ms={result.metrics['tbt_ms'][0]:.4g}, " in shown
    assert f"{len(result.kernels)} kernels; timing model Roofline, calibration uncalibrated)" in shown
    assert len(repr(result.power)) < 120
    assert "bound_by" in result._repr_html_()


@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        ({"space": 7}, "space = 7 is not accepted; give a path, the name of a shipped space, or a loaded space"),
        ({"keep": 3}, "keep = 3 is not accepted; give all or front"),
        ({"progress": "yes"}, "progress = 'yes' is not accepted; give a function"),
        ({"resume": "yes"}, "resume = 'yes' is not accepted; give True or False"),
    ],
)
def test_options_of_another_type_are_refused(quick: dict[str, Any], option: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=f"^{sentence}"):
        sweep(**{"space": space_from_mapping(quick, "here", "small")} | option)


@pytest.mark.parametrize("kept", ["in memory", "in a folder"])
def test_columns_that_are_not_there_are_refused(result: SweepResult, kept: str) -> None:
    points = (replace(result, table=pa.Table.from_pandas(result.points())) if kept == "in memory" else result).points
    assert list(points(pd.Index(["die_mm2"]))) == list(points(["die_mm2"])) == ["die_mm2"]  # pyright: ignore
    with pytest.raises(InputError, match=r"^columns = 'die_mm2' is not accepted; give a list of names"):
        points("die_mm2")  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputError, match=r"^column = 'die_mm3' is not accepted; did you mean 'die_mm2'"):
        points(["die_mm3"])


def test_phases_and_metrics_that_a_run_has_not_are_refused() -> None:
    result = run("h100_sxm", "gpt2_xl:phase=decode,batch=8,context=512", "roofline")
    with pytest.raises(InputError, match=r"^phase = 'prefill' is not accepted; accepted are: decode"):
        result.stack("prefill")
    with pytest.raises(InputError, match=r"^metric = 'tbt' is not accepted; did you mean 'tbt_ms'"):
        result.metric_error("tbt")


@pytest.mark.parametrize("answer", [run, explain])
def test_a_power_model_is_given_by_its_name(answer: Any) -> None:
    workload = "gpt2_xl:phase=decode,batch=8,context=512"
    answer("h100_sxm", workload, "roofline", "board")
    with pytest.raises(InputError, match=r"^power: 5 is not accepted; give power = "):
        answer("h100_sxm", workload, "roofline", 5)
