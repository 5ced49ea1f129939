"""An explanation against finite differences, and its sentences against running the changed GPU."""

import io
import json
import math
from dataclasses import replace
from html import escape
from pathlib import Path

import jax
import numpy as np
import pytest
from rich.console import Console

from dse.base.brief import MOST
from dse.cli import run_command
from dse.evaluate.by_workload import evaluation_of
from dse.evaluate.derivatives import NUMERIC
from dse.evaluate.run import run
from dse.explanation.attribute_words import ATTRIBUTE_WORDS, METRIC_WORDS, percent
from dse.explanation.compare import compare as side_by_side
from dse.explanation.explain import Explanation, covered, explain, explained
from dse.explanation.next_step import next_sentence
from dse.explanation.roofline_points import TOTAL, bandwidth_gbs
from dse.explanation.sensitivity_steps import quantities, steps
from dse.explanation.sensitivity_table import TOLERANCE, TOLERANCE_SHARE, agrees
from dse.explanation.shortened import shortened
from dse.hardware.presets import changed, preset_sheet
from dse.hardware.schema import gpu_schema
from dse.power.models import power_choice
from dse.reports.common.figures import plotly_script
from dse.reports.explain.data import kernel_stacks, tornado
from dse.reports.explain.page import explain_page_html
from dse.reports.explain.terminal import print_answer
from dse.timing.amali import Amali
from dse.timing.calibration import load_timing_calibration
from dse.timing.roofline import Roofline
from dse.workload.operators.gemm import Gemm, gemm_operator
from dse.workload.parse import load_workload
from dse.workload.workload import Phase, Workload
from tests.timing.traced.test_trace_answer import lines
from tests.traces.traces import kernel_text, write_directory

SHEET = preset_sheet("h100_sxm")


def with_an_edge() -> Workload:
    """A decode step, and in a phase of its own a kernel of 140 CTAs, each alone on its SM: two waves on 132 SMs."""
    decode = load_workload("gpt2_xl:phase=decode,batch=8,context=512")
    operator = gemm_operator("edge", Gemm(128 * 14, 256 * 10, 8192))
    kept = [c for c in operator.candidates if float(c.kernel.ctas) == 140 and float(c.kernel.shared_kib) > 120]
    edge = replace(operator, candidates=tuple(kept[:1]), repeats=100.0)
    return replace(decode, operators=(*decode.operators, edge), phases=(*decode.phases, Phase("kernel")))


@pytest.fixture(scope="module")
def explanation() -> Explanation:
    return explained(SHEET, with_an_edge(), Amali(), power_choice("board", "power"))


@pytest.mark.slow
def test_elasticities_are_finite_differences_away_from_kinks() -> None:
    step, numbers = 1e-5, SHEET.numbers()
    names = list(quantities(numbers)[0])
    with jax.enable_x64(True):
        evaluation = evaluation_of(with_an_edge(), Amali(), power_choice("board", "power"))
        explanation = explained(SHEET, evaluation.workload, Amali(), power_choice("board", "power"), evaluation)
        base, up, down = (
            evaluation.on_designs([numbers | {name: numbers[name] * factor} for name in names])
            for factor in (1.0, 1 + step, 1 - step)
        )
        slopes = evaluation.elasticities(numbers, names, base.chosen[0])
    checked = 0
    for metric in explanation.metrics:
        table = explanation.elasticities[explanation.elasticities["metric"] == metric].set_index("attribute")[
            "elasticity"
        ]
        checked += compare(table[names].to_numpy(), *(side.metrics[metric] for side in (base, up, down)), step)
    for own, values in ((slopes.microseconds, "microseconds"), (slopes.joules, "joules")):
        checked += compare(own, *(getattr(side, values) for side in (base, up, down)), step)
    assert checked > 0.9 * len(names) * (len(explanation.metrics) + 2 * len(evaluation.workload.operators))


def compare(slope: np.ndarray, base: np.ndarray, up: np.ndarray, down: np.ndarray, step: float) -> int:
    """Assert that slopes are central differences where the second difference shows no kink; return how many."""
    above, below = np.log(up / base), np.log(down / base)
    smooth = np.abs(above + below) < 1e-3 * step + 10 * step * np.maximum(np.abs(above), np.abs(below))
    assert np.isfinite(slope).all()
    np.testing.assert_allclose(slope[smooth], ((above - below) / (2 * step))[smooth], rtol=1e-3, atol=1e-4)
    return int(smooth.sum())


def test_the_elasticities_are_not_all_nothing(explanation: Explanation) -> None:
    steep = explanation.elasticities.set_index(["metric", "attribute"])["elasticity"]
    assert steep["tbt_ms", "dram_bandwidth_gbs"] < -0.2
    assert steep["time_ms", "tensor_fma_bf16"] < -0.2
    assert (explanation.elasticities["elasticity"].abs() > 0.01).sum() > 10


@pytest.mark.parametrize("name", ["dram_bandwidth_gbs", "sm_count"])
def test_sentences_agree_with_running_the_changed_gpu(explanation: Explanation, name: str) -> None:
    rows = explanation.steps[explanation.steps["attribute"] == name].set_index("metric")
    attr = gpu_schema()[name]
    after = changed(SHEET, {name: attr.decode(rows["after"].iloc[0])}, "test")
    other = run(after, explanation.run.workload, explanation.run.model)
    sentences = [s for s in explanation.sentences() if s.startswith(rows["text"].iloc[0])]
    for metric in explanation.metrics:
        exact = other.metrics[metric][0] / explanation.run.metrics[metric][0] - 1
        assert rows["change"][metric] == pytest.approx(exact, abs=5e-7)  # 32 bits, by programs of their own
        assert all(f"{percent(exact)} {METRIC_WORDS[metric]}" in sentence for sentence in sentences)
    assert len(sentences) == (rows["change"].abs() >= 0.0005).any()


def test_a_wave_edge_is_flagged(explanation: Explanation) -> None:
    row = explanation.steps.set_index(["attribute", "metric"]).loc["sm_count", "time_ms"]
    assert row["change"] < -0.2  # one wave instead of two
    assert abs(row["promised"]) < 0.05
    assert not row["agrees"]
    (sentence,) = [s for s in explanation.sentences() if " SMs (132 to 145)" in s]
    assert "the elasticity promises" in sentence
    assert "a wave edge: edge runs in 1 instead of 2 waves" in sentence


def test_what_agrees_is_within_the_stated_tolerance(explanation: Explanation) -> None:
    for _, row in explanation.steps.iterrows():
        off = abs(row["change"] - row["promised"])
        allowed = max(TOLERANCE, TOLERANCE_SHARE * max(abs(row["change"]), abs(row["promised"])))
        assert row["agrees"] == (off <= allowed) == agrees(row["change"], row["promised"])
        assert bool(row["why"]) == (not row["agrees"])


def test_steps_are_sorted_by_what_they_change(explanation: Explanation) -> None:
    times = explanation.steps[explanation.steps["metric"] != "energy_j"]
    largest = times.groupby("attribute", sort=False)["change"].agg(lambda c: c.abs().max()).to_numpy()
    above = largest[largest >= 0.0005]
    assert len(above) > 5
    assert (np.diff(above) <= 0).all()


def test_every_attribute_is_changed_legally_or_left_out_with_a_reason(explanation: Explanation) -> None:
    assert set(explanation.steps["attribute"]) | set(explanation.left_out) == set(gpu_schema())
    assert not set(explanation.steps["attribute"]) & set(explanation.left_out)
    for preset in ("h100_sxm", "a100_sxm_80gb", "t4"):
        for move in steps(preset_sheet(preset).numbers()):
            value = move.attribute.decode(move.after)
            assert move.attribute.encode(value, "test") == pytest.approx(move.after)
            assert move.after != move.before
            assert move.attribute.name in ATTRIBUTE_WORDS
    assert set(ATTRIBUTE_WORDS) <= set(NUMERIC)


def test_the_roofline_holds_every_kernel_below_its_roof(explanation: Explanation) -> None:
    points = explanation.roofline
    assert (points["kernel"] == TOTAL).sum() == 2
    assert len(points) == len(explanation.run.kernels) + 2
    placed = points[points["tflops"].notna()]
    assert (placed["of_roof"] <= 1).all()
    slope = bandwidth_gbs(SHEET)
    roof = np.minimum(placed["peak_tflops"], placed["intensity"] * slope / 1e3)
    np.testing.assert_allclose(placed["roof_tflops"].astype(float), roof.astype(float))
    rows = explanation.run.kernels.iloc[placed["operator"][placed["operator"] >= 0]]
    np.testing.assert_allclose(placed["tflops"][placed["operator"] >= 0].astype(float), rows["tflops"], rtol=1e-6)


def test_an_explanation_is_shown_by_its_first_sentences(explanation: Explanation) -> None:
    first, *rest, last = repr(explanation).splitlines()
    assert first == f"Explanation({explanation.run.workload.description} on H100 SXM5 80GB"
    assert [line.strip() for line in rest] == explanation.sentences()[:MOST]
    assert last == f"  ... {len(explanation.sentences()) - MOST} more of sentences())"


def test_the_document_is_finite_and_the_text_is_plain(explanation: Explanation) -> None:
    document = json.loads(json.dumps(explanation.document(), allow_nan=False))
    assert document["sentences"] == explanation.sentences()
    assert len(document["moves"]) == len(explanation.steps)
    console = Console(width=80, record=True, file=io.StringIO())
    print_answer(explanation, console)
    text = console.export_text()
    assert explanation.steps["text"].iloc[0] in text
    said = [" ".join(part.split()) for part in text.split("\n\n")]
    assert next_sentence(explanation.steps) in said[0] and "Decode takes" in said[0]  # the answer comes first
    assert text.index("Faster with") < text.index("Not faster with") < text.index("timing model")
    assert "stack and roofline by kernel" in text
    assert "nan" not in text


def test_the_page_loads_nothing_and_holds_every_sentence(explanation: Explanation) -> None:
    page = explain_page_html(explanation)
    drawn = page.replace(plotly_script(), "")
    assert 'src="http' not in drawn and "NaN" not in drawn
    for sentence in explanation.sentences():
        assert escape(sentence) in drawn
    for name in ("figure-moves", "figure-stack", "figure-roofline"):
        assert drawn.count(f'id="{name}"') == 1


def test_the_tornado_and_the_stacks_are_those_of_the_explanation(explanation: Explanation) -> None:
    bars = tornado(explanation)
    first = explanation.steps.iloc[0]
    assert bars["text"].iloc[0] == first["text"]
    assert bars["change"].iloc[0] == pytest.approx(100 * first["change"])
    stacks = kernel_stacks(explanation.run)
    for phase in explanation.run.workload.phases:
        total = explanation.run.kernels.groupby("phase")["time_ms"].sum()[phase.name]
        part = stacks[stacks["workload"] == phase.name]
        assert part[part["name"] == TOTAL]["ms"].sum() == pytest.approx(total)
        assert part[part["name"] != TOTAL]["ms"].sum() == pytest.approx(total)
        np.testing.assert_allclose(part.groupby("name")["share"].sum(), 1.0)


def products(folder: Path) -> str:
    """Path of a list of products: what comparisons share, to be compiled once."""
    path = folder / "g.csv"
    path.write_text("m,n,k\n4096,4096,4096\n32,4096,4096\n64,2048,8192\n512,512,1024\n")
    return str(path)


@pytest.mark.slow
def test_kernels_slowed_by_the_power_limit_take_as_long_as_in_a_run(tmp_path: Path) -> None:
    """What DRAM hides of the SMs' work shows as the clock falls, kernel by kernel."""
    path = tmp_path / "held.csv"
    path.write_text("m,n,k,dtype,count\n4096,4096,4096,fp16,3\n16,8192,8192,fp16,40\n")
    workload, sheet = load_workload(str(path)), preset_sheet("t4")
    evaluation = evaluation_of(workload, Amali(), power_choice("board", "power"))
    ran = run(sheet, workload, Amali())
    assert ran.metrics["clock_share"][0] < 0.7
    microseconds = evaluation.on_designs([sheet.numbers()]).microseconds[0]
    np.testing.assert_allclose(microseconds, ran.kernels["time_us"], rtol=1e-5)


def test_against_puts_two_designs_side_by_side(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["explain", "h100_sxm", products(tmp_path), "--timing", "roofline", "--against", "a100_sxm_80gb"]
    page = tmp_path / "page.html"
    assert run_command([*command, "--json", "-o", str(page)]) == 0
    document = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    for row in document["metrics"]:
        assert row["ratio"] == pytest.approx(row["second"] / row["first"])
    alone = [
        run(gpu, str(tmp_path / "g.csv"), Roofline()).metrics["time_ms"][0] for gpu in ("h100_sxm", "a100_sxm_80gb")
    ]
    assert [document["metrics"][0][side] for side in ("first", "second")] == pytest.approx(alone, rel=1e-5)
    for table in ("stack", "kernels"):
        total = sum(row["difference_ms"] for row in document[table])
        assert total == pytest.approx(alone[1] - alone[0], rel=1e-4)
    swap = next(r for r in document["swaps"] if (r["attribute"], r["metric"]) == ("dram_bandwidth_gbs", "time_ms"))
    one = run(changed(SHEET, {"dram_bandwidth_gbs": 2039}, "test"), str(tmp_path / "g.csv"), Roofline())
    assert swap["change"] == pytest.approx(one.metrics["time_ms"][0] / alone[0] - 1, abs=1e-5)
    assert any(s.startswith("only dram_bandwidth_gbs 3350 to 2039 GB/s: +") for s in document["sentences"])
    assert (document["first"]["gpu"], document["second"]["gpu"]) == ("h100_sxm", "a100_sxm_80gb")
    assert page.read_text().count("only dram_bandwidth_gbs 3350 to 2039") == 1


@pytest.mark.slow
def test_a_comparison_tells_units_and_where_differences_lie() -> None:
    """Under an engine the interval of a ratio is narrower than that of either, and the host is told."""
    model = load_timing_calibration("shared").model
    comparison = side_by_side(
        "h100_sxm", "a100_sxm_80gb", "gpt2_xl:phase=decode,batch=8,context=512,engine=vllm_0_12", model
    )
    document = comparison.document()
    assert repr(comparison).startswith(f"Comparison({comparison.sentences()[0]}\n")
    assert "tbt_ms" in comparison._repr_html_()
    metrics = {row["metric"]: row for row in document["metrics"]}
    low, high = (end / metrics["tbt_ms"]["ratio"] for end in metrics["tbt_ms"]["ratio_80"])
    alone = document["first"]["metrics"]["tbt_ms"]
    ends = [math.log(end / alone["value"]) for end in alone["interval_80"]]
    assert math.log(high) == pytest.approx(-math.log(low))
    assert 0 < math.log(high) < math.hypot(*ends)  # what both share cancels
    assert metrics["memory_gb"]["ratio_80"] is None and tuple(metrics["memory_gb"]["ratio_interval_80"]) == (1, 1)
    assert 0 <= metrics["tbt_ms"]["probability_better"] < 0.5  # an A100 beside an H100
    assert metrics["clock_share"]["unknown"] == "no pairs of real GPUs tell ratios of clock_share"
    assert "pairs of real GPUs" in document["ratio_80_of"]
    (note,) = document["host"]
    assert f"{document['first']['stack_ms']['decode']['host']:.4g} ms of" in note
    printed = io.StringIO()
    print_answer(comparison, Console(file=printed, width=160))
    text = " ".join(printed.getvalue().split())
    for name in ("time between tokens [ms]", "energy of all boards [J]", "DRAM needed per GPU [GB]"):
        assert name in text
    assert "pairs of real GPUs" in text and "the GPU waits for the host of vLLM 0.12" in text


def test_top_cuts_every_list_to_what_matters_most(explanation: Explanation, capsys: pytest.CaptureFixture[str]) -> None:
    whole, cut = explanation.document(), shortened(explanation.document(), 2)
    assert cut["sentences"] == whole["sentences"][:2]
    assert cut["cut"]["sentences"] == len(whole["sentences"]) - 2
    for phase in ("decode", "kernel"):
        times = sorted((k["time_ms"] for k in whole["kernels"] if k["phase"] == phase), reverse=True)
        assert sorted((k["time_ms"] for k in cut["kernels"] if k["phase"] == phase), reverse=True) == times[:2]
        assert sum(cut["stack_ms"][phase].values()) == pytest.approx(sum(whole["stack_ms"][phase].values()))
        assert len(cut["stack_ms"][phase]) == min(3, len(whole["stack_ms"][phase]))
    for name in ("moves", "elasticities"):
        assert {row["metric"] for row in cut[name]} == {row["metric"] for row in whole[name]}
        assert len({row["attribute"] for row in cut[name]}) == 2
    operators = {row["operator"] for row in cut["kernel_elasticities"]}
    assert operators < {row["operator"] for row in whole["kernel_elasticities"]}
    assert {row["operator"] for row in cut["roofline"] if row["operator"] >= 0} == operators
    console = Console(file=io.StringIO(), width=160)
    print_answer(explanation, console, 2)
    text = console.file.getvalue()  # pyright: ignore[reportAttributeAccessIssue]
    others = len([k for k in whole["kernels"] if k["phase"] == "decode"]) - 2
    assert f"{others} others" in text and whole["sentences"][2] not in text
    assert len(tornado(explanation, 2)["text"].unique()) == 2
    bars = kernel_stacks(explanation.run, 2).query("workload == 'decode'")["name"].unique()
    assert len(bars) == 3  # the phase, too


def test_top_cuts_a_comparison_and_refuses_nothing_to_tell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["explain", "h100_sxm", products(tmp_path), "--timing", "roofline"]
    assert run_command([*command, "--against", "a100_sxm_80gb", "--top", "3", "--json"]) == 0
    document = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert len(document["sentences"]) == 4  # the first is on the two designs
    assert len(document["kernels"]) == 3 and "longer" not in document["kernels"][0]
    assert len({row["attribute"] for row in document["swaps"]}) == 3
    assert len(document["first"]["kernels"]) == 3 and document["cut"]["kernels"] > 0
    assert run_command([*command, "--top", "0"]) == 2
    assert "--top 0: give 1 or more" in capsys.readouterr().err


@pytest.mark.slow
def test_a_trace_is_explained_by_simulating_it_for_each_move(tmp_path: Path) -> None:
    ctas = [[lines(2 * c + w) for w in range(2)] for c in range(330)]
    trace = write_directory(tmp_path / "trace", kernel_text(ctas, threads=64))
    explanation = explain("rtx_2060", str(trace))
    base = run("rtx_2060", str(trace))
    assert explanation.run.metrics["time_ms"][0] == pytest.approx(base.metrics["time_ms"][0], rel=1e-6)
    rows = explanation.steps.set_index(["attribute", "metric"])
    after = int(rows.loc[("sm_count", "time_ms"), "after"])  # where the trace is simulated anew
    other = run(changed(preset_sheet("rtx_2060"), {"sm_count": after}, "test"), str(trace))
    exact = other.metrics["time_ms"][0] / base.metrics["time_ms"][0] - 1
    assert abs(exact) > 1e-3
    assert rows.loc[("sm_count", "time_ms"), "change"] == pytest.approx(exact, abs=1e-5)
    assert "sector_bytes" in explanation.left_out
    assert explanation.elasticities["elasticity"].abs().max() > 0.1
    _, refused = covered(base.workload, preset_sheet("rtx_2060"), steps(preset_sheet("rtx_2060").numbers()))
    assert "give its path" in refused["sm_count"]


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["h100_smx", "llama3_8b"], "h100_sxm"),
        (["h100_sxm", "llama9"], "llama9"),
        (["h100_sxm", "llama3_8b", "--against", "a101"], "a101"),
        (["h100_sxm", "llama3_8b", "--timing", "gut"], "amali"),
        (["h100_sxm", "llama3_70b"], "needs"),
        (["h100_sxm"], "WORKLOAD"),
        (["h100_sxm", "gpt2_xl", "-o", "."], "is a folder"),
        (["h100_sxm", "gpt2_xl", "-o", f"{__file__}/a.html"], "is a file"),
        (["h100_sxm", __file__, "-o", __file__], "is read by this command"),
        (["h100_sxm", "gpt2_xl:dtype=fp8", "--timing", "roofline", "--against", "a100_sxm_80gb"], "have fp64"),
    ],
)
def test_wrong_questions_exit_2(arguments: list[str], part: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["explain", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert part in captured.err


def test_a_clock_has_no_ratio_of_real_gpus() -> None:
    compared = side_by_side("h100_sxm", "a100_sxm_80gb", "gpt2_xl:phase=decode,batch=1,context=128,dtype=bf16")
    clock = compared.metrics.set_index("metric").loc["clock_share"]
    assert clock["ratio_interval_80"] is None and "no pairs of real GPUs" in clock["unknown"]
