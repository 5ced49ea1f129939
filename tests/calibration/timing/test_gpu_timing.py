"""A GPU's calibration from tables of several operators: implementations fitted to their own rows, in one file."""

import json
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dse.base.errors import InputError
from dse.base.skipped_rows import Skipped
from dse.calibration.timing import gpu_timing
from dse.calibration.timing.answer import GpuTimingAnswer, TimingAnswer
from dse.calibration.timing.fit import Determined, parameters
from dse.calibration.timing.gpu_timing import calibrate_timing
from dse.calibration.timing.stages import StagedFit, StageResult, with_points
from dse.cli import run_command
from dse.hardware.presets import load_sheet
from dse.measured.table import OPERATOR_COLUMNS
from dse.measured.timed_rows import TimedRows, best, blocks, joined
from dse.timing.calibration import (
    UNSEEN,
    implementation_calibration,
    load_timing_calibration,
    shipped_calibrations,
)
from dse.timing.error_quantiles import ErrorQuantiles
from dse.workload.implementation import IMPLEMENTATIONS, KINDS

GPU = "a100_sxm_80gb"


def products(source: str, count: int, dtype: str = "bf16") -> pd.DataFrame:
    sizes = 2.0 ** np.random.default_rng(0).integers(9, 13, (count, 3))
    return pd.DataFrame(sizes, columns=["m", "n", "k"]).assign(source=source, op="gemm", dtype=dtype)


def decodes(count: int, seed: int = 0) -> pd.DataFrame:
    """Decode steps of an A100's FlashAttention 2 in several head shapes, batches and lengths."""
    rng = np.random.default_rng(seed)
    kv_heads = 2.0 ** rng.integers(0, 5, count)
    shape = {"kv_heads": kv_heads, "heads": kv_heads * 2.0 ** rng.integers(0, 4, count), "head_dim": 128.0}
    shape |= {"batch": 2.0 ** rng.integers(0, 8, count), "seq_q": 1.0, "seq_kv": 2.0 ** rng.integers(6, 14, count)}
    return pd.DataFrame(shape).assign(source="aiconfigurator", op="attn_decode", dtype="bf16")


def vectors(source: str, count: int) -> pd.DataFrame:
    rows = 2.0 ** np.arange(4, 4 + count)
    return pd.DataFrame({"rows": rows, "cols": 4096.0}).assign(source=source, op="gelu", dtype="bf16")


def table(path: Path, *parts: pd.DataFrame) -> Path:
    frame = pd.concat(parts, ignore_index=True).assign(device=GPU, latency_us=50.0)
    frame = frame.assign(latency_us=50.0 + np.arange(len(frame)))  # told apart
    extra = ["source", "notes", "batch", "rows", "cols", "heads", "kv_heads", "head_dim", "seq_q", "seq_kv"]
    frame.reindex(columns=list(dict.fromkeys([*extra, *OPERATOR_COLUMNS]))).to_csv(path, index=False)
    return path


def a_fit(name: str, also: tuple[str, ...] = (), error_quantiles: tuple[ErrorQuantiles, ...] = (), scale: float = 0.9):
    """A fit of an implementation whose every parameter is ``scale`` times the shipped one's, within its bounds."""
    shipped = (load_timing_calibration("shared") if name == "matrix" else implementation_calibration(name)).values
    ends = {p.name: (p.low, p.high) for p in parameters(KINDS[name]) if p.stage != "fixed" and p.name in shipped}
    free = tuple(ends)
    values = shipped | {n: float(np.clip(scale * shipped[n], *ends[n])) for n in free}
    at = np.array([values[n] for n in free])
    known = Determined(free, at, np.ones(len(free)), at / 2, at * 2, np.zeros(len(free), bool))
    stages = (StageResult("starting values", 0, (), 9.0, 10.0, None, None),)
    fit = StagedFit(values, stages, known, np.zeros(0), None)  # pyright: ignore[reportArgumentType]
    return TimingAnswer(GPU, (GPU,), (), 100, 40, {"unknown": 0.0}, fit, error_quantiles, name, also)


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        (
            24.0,
            16.7,
            "The fit gained 7.3 points: it is 16.7 % off on rows it has not seen, and what it started from 24.0",
        ),
        (
            8.0,
            8.4,
            "The fit gained nothing: it is 8.4 % off on rows it has not seen, and what it started from 8.0 %. Keep",
        ),
        (
            None,
            None,
            "Too few rows to leave any out: on its own rows the fit is 6.0 % off, and what it started from 9.0",
        ),
    ],
)
def test_a_verdict_says_what_the_fit_is_worth(before: float | None, after: float | None, sentence: str) -> None:
    answer = a_fit("matrix")
    first = replace(answer.fit.stages[0], left_out=before)
    stages = (first, replace(first, name="polish", fitted=6.0, left_out=after))
    judged = replace(answer, fit=replace(answer.fit, stages=stages))
    assert judged.verdict.startswith(sentence) and judged.document()["verdict"] == judged.verdict


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple[TimedRows, dict]]:
    """What is asked of the fit, by implementation; the fit itself is left out."""
    found = {}

    def fit_timed(name, tables, gpus, rows, **options) -> TimingAnswer:
        found[options["implementation"]] = (rows, options)
        return a_fit(options["implementation"])

    monkeypatch.setattr(gpu_timing, "fit_timed", fit_timed)
    return found


def test_every_row_is_fitted_with_the_implementation_that_ran_it(asked, tmp_path):
    parts = (products("aiconfigurator", 20), products("vidur", 12, "fp16"), decodes(16), vectors("vidur", 9))
    answer = calibrate_timing(GPU, [table(tmp_path / "t.csv", *parts)])
    of_rows = {name: (len(rows.table), set(rows.table["op"])) for name, (rows, _) in asked.items()}
    assert of_rows == {
        "matrix": (20, {"gemm"}),
        "matrix_early": (12, {"gemm"}),
        "vllm_vector": (9, {"gelu"}),
        "fa2_decode": (16, {"attn_decode"}),
    }
    for name, (rows, options) in asked.items():
        assert set(np.asarray(rows.kernels.implementation)) == {IMPLEMENTATIONS.index(name)}
        start = load_timing_calibration("shared") if name == "matrix" else implementation_calibration(name)
        assert options["start"] == start.values
        assert options["near"].error_quantiles == start.error_quantiles
    assert answer.products is not None
    assert [fit.implementation for fit in answer.others] == ["matrix_early", "vllm_vector", "fa2_decode"]
    assert answer.skipped == {}


def test_what_no_fit_can_use_is_counted(asked, tmp_path):
    few, fp8 = vectors("vidur", 3), products("aiconfigurator", 5, "fp8")
    runs = decodes(4).assign(op="llm_prefill")
    answer = calibrate_timing(GPU, [table(tmp_path / "t.csv", decodes(16), few, fp8, runs)])
    assert set(asked) == {"fa2_decode"}
    assert answer.skipped == {
        "data type is not fitted: gemm in fp8": 5,
        "operator is not fitted: llm_prefill": 4,
        "vllm_vector: fewer than the 8 rows that a fit needs": 3,
    }
    assert answer.like == GPU  # its own shipped products
    with pytest.raises(InputError, match=r"too few rows can be fitted \(3 of vllm_vector\); give at least 8"):
        calibrate_timing(GPU, [table(tmp_path / "few.csv", few)])


def test_rows_that_one_of_two_libraries_ran_fit_both(asked, tmp_path):
    answer = calibrate_timing(GPU, [table(tmp_path / "t.csv", vectors("dse_measure", 10))])
    assert list(asked) == ["vllm_vector"]
    assert answer.fits[0].also == ("pytorch_vector",)
    both = (vectors("dse_measure", 10), vectors("neusight", 10))
    answer = calibrate_timing(GPU, [table(tmp_path / "t.csv", *both)])
    assert [(fit.implementation, fit.also) for fit in answer.fits] == [("vllm_vector", ()), ("pytorch_vector", ())]


def written(path: Path, *fits: TimingAnswer, like: str = GPU) -> Path:
    GpuTimingAnswer(GPU, (GPU,), (), fits, like, {}).write(path)
    return path


def of(model, name: str, parameter: str) -> float:
    return float(np.asarray(getattr(model.sustained, parameter))[IMPLEMENTATIONS.index(name)])


def test_a_file_replaces_what_it_was_fitted_to_and_nothing_else(tmp_path):
    mine = ErrorQuantiles("fa2_decode", "attn_decode", "bf16", "all", 40, -0.01, 0.0, 0.02, GPU, "unknown", True)
    fits = (a_fit("fa2_decode", error_quantiles=(mine,)), a_fit("vllm_vector", ("pytorch_vector",)))
    loaded = load_timing_calibration(written(tmp_path / "mine.toml", *fits))
    shipped = load_timing_calibration(GPU)
    for name in ("fa2_decode", "vllm_vector"):
        assert of(loaded.model, name, "dram") == pytest.approx(0.9 * of(shipped.model, name, "dram"), rel=1e-5)
    assert of(loaded.model, "pytorch_vector", "dram") == of(loaded.model, "vllm_vector", "dram")
    for name in set(IMPLEMENTATIONS) - {"fa2_decode", "vllm_vector", "pytorch_vector"}:
        assert of(loaded.model, name, "dram") == of(shipped.model, name, "dram")
    ours = [r for r in loaded.error_quantiles if r.implementation == "fa2_decode"]
    assert [r for r in ours if r.gpu != UNSEEN] == [mine]
    assert [r for r in ours if r.gpu == UNSEEN] == [
        r for r in shipped.error_quantiles if (r.implementation, r.gpu) == ("fa2_decode", UNSEEN)
    ]
    assert loaded.quantiles("fa2_decode", "attn_decode", "bf16", "all", GPU, "unknown") == mine
    for field in fields(loaded.model.sustained):  # products are those of the shipped one to the last number
        assert of(loaded.model, "matrix", field.name) == of(shipped.model, "matrix", field.name), field.name
    products = [[r for r in c.error_quantiles if r.implementation == "matrix"] for c in (loaded, shipped)]
    assert products[0] == products[1]
    known = loaded.model.error_interval
    assert known is not None
    assert known.source == f"matrix products in shapes left out of the fit of {GPU}"
    assert (loaded.model.calibration, loaded.name) == (f"{GPU} (products as {GPU}), mine.toml", GPU)


def test_products_like_those_of_any_gpu_belong_to_the_files_gpu(tmp_path):
    loaded = load_timing_calibration(written(tmp_path / "mine.toml", a_fit("fa2_decode"), like="shared"))
    assert of(loaded.model, "matrix", "dram") == of(load_timing_calibration("shared").model, "matrix", "dram")
    assert loaded.fitted_on(load_sheet(GPU)) and not loaded.fitted_on(load_sheet("h100_sxm"))


def test_products_of_a_file_are_its_own(tmp_path):
    loaded = load_timing_calibration(written(tmp_path / "mine.toml", a_fit("matrix"), a_fit("fa2_decode")))
    assert loaded.values["dram"] == pytest.approx(0.9 * load_timing_calibration("shared").values["dram"], rel=1e-5)
    assert of(loaded.model, "fa2_decode", "dram") != of(load_timing_calibration(GPU).model, "fa2_decode", "dram")


@pytest.mark.parametrize(("old", "new", "words"), [
    ("implementations.fa2_decode", "implementations.fa2_decoder", "'fa2_decoder' is no implementation; did you mean"),
    ("\nimplementation = ", "\nimplementations = ", "'implementations' is no key of implementations.fa2_decode"),
    (f'like = "{GPU}"', f'like = "{GPU}"\nrows = 3', "'rows' is no key of a timing calibration with products"),
    ("\nunknown = 0", "\nunknwon = 0",
     "'unknwon' is no key of implementations.fa2_decode.harnesses; did you mean 'unknown'"),
    (f'like = "{GPU}"', 'like = "a100"', "like is 'a100'; accepted are: a100_sxm_80gb, "),
    ("\n[implementations.fa2_decode.parameters.dram]", "\n[implementations.fa2_decode.parameters.drum]",
     "implementations.fa2_decode.parameters.drum is not a parameter of fa2_decode; did you mean 'dram'"),
])  # fmt: skip
def test_files_that_say_something_else_are_refused(tmp_path, old, new, words):
    path = written(tmp_path / "mine.toml", a_fit("fa2_decode"))
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    with pytest.raises(InputError, match=words):
        load_timing_calibration(path)


def test_a_folder_and_what_is_read_are_refused_before_the_fit(tmp_path, capsys):
    path = table(tmp_path / "t.csv", decodes(16))
    assert run_command(["calibrate", "timing", GPU, str(path), "-o", str(tmp_path)]) == 2
    assert "is a folder; give the path of a file" in capsys.readouterr().err
    before = path.read_text()
    assert run_command(["calibrate", "timing", GPU, str(path), "-o", str(path)]) == 2
    assert "t.csv: is read by this command; give another path" in capsys.readouterr().err
    assert path.read_text() == before


def test_what_was_assumed_of_rows_is_told(asked, tmp_path):
    mine = tmp_path / "mine.toml"
    mine.write_text('base = "a100_sxm_80gb"\nname = "Mine"\nsm_count = 100\n')
    named = decodes(8).assign(notes="impl=vllm_flash_attn")
    notes = calibrate_timing(str(mine), [table(tmp_path / "t.csv", decodes(9), named)]).notes
    assert notes == (
        "ways of measuring, by source or --harness: aiconfigurator (0.71 us added to a kernel)",
        "9 rows of attention name no library in their notes: taken as FlashAttention 2 of vLLM (paged)",
        "no products of a tuned library, the usual runs', to fit: theirs stay those of the calibration shared",
    )
    prompts = decodes(9).assign(op="attn_prefill", seq_q=64.0, seq_kv=64.0)
    (unsaid,) = (n for n in calibrate_timing(GPU, [table(tmp_path / "p.csv", prompts)]).notes if "causal" in n)
    assert unsaid.startswith("attn_prefill without causal (9 of 9 rows): taken as causal")
    frame = pd.read_csv(tmp_path / "t.csv").assign(device="H200-SXM-141GB")
    frame.to_csv(tmp_path / "t.csv", index=False)
    notes = calibrate_timing(str(mine), [tmp_path / "t.csv"]).notes
    assert "the rows' device H200-SXM-141GB is the preset h200, not Mine" in notes


def test_overheads_that_differ_are_told_as_a_range(asked, tmp_path):
    path = table(tmp_path / "t.csv", products("vidur", 12, "fp16"), vectors("vidur", 9))
    note = calibrate_timing(GPU, [path]).notes[0]
    ways = {float(us) for rows, _ in asked.values() for us in rows.table["overhead_us"]}
    told = f"vidur ({min(ways):.2g} to {max(ways):.2g} us, by operator and device, added to a kernel)"
    assert len(ways) > 1 and note == f"ways of measuring, by source or --harness: {told}"


@pytest.mark.parametrize("name", ["shared", "h100_sxm"])
def test_a_gpu_by_the_name_of_a_calibration_of_others_is_refused(asked, tmp_path, name):
    mine = tmp_path / f"{name}.toml"
    mine.write_text('base = "a100_sxm_80gb"\nname = "Mine"\nsm_count = 100\n')
    with pytest.raises(InputError, match=f"'{name}' is the name of a shipped calibration"):
        calibrate_timing(str(mine), [table(tmp_path / "t.csv", decodes(9))])


def test_a_file_that_claims_to_be_the_shared_one_is_judged_by_its_content(tmp_path):
    path, shipped = written(tmp_path / "mine.toml", a_fit("fa2_decode")), shipped_calibrations()["shared"]
    path.write_text(path.read_text().replace(f'name = "{GPU}"', 'name = "shared"', 1))
    with pytest.raises(InputError, match="name is 'shared', that of the shipped calibration of any GPU"):
        load_timing_calibration(path)
    path.write_text(shipped.read_text())
    assert load_timing_calibration(path).name == "shared"


def test_names_that_nothing_has_are_told_with_the_nearest(asked, tmp_path):
    other = products("aiconfigurator", 3).assign(op="gem"), products("aiconfigurator", 2, "bfloat17")
    skipped = calibrate_timing(GPU, [table(tmp_path / "t.csv", decodes(16), *other)]).skipped
    (no_operator, first), (no_type, second) = skipped.items()
    assert (first, second) == (3, 2)
    assert "did you mean 'gemm'" in no_operator
    assert "bf16" in no_type.partition("accepted are")[2]


@pytest.mark.slow
def test_a_kernel_of_other_costs_is_recovered_and_predicted(tmp_path, capsys):
    """Decodes as the shipped model with a dearer CTA and less DRAM bandwidth predicts them, with 3 % noise."""
    before = implementation_calibration("fa2_decode")
    shipped = before.values
    truth = shipped | {"cta": 1.5 * shipped["cta"], "dram": 0.75 * shipped["dram"]}
    path = table(tmp_path / "t.csv", decodes(300))
    frame = pd.read_csv(path)
    rows = joined(list(blocks(frame, {GPU: load_sheet(GPU)}, None, Skipped())))
    us = best(with_points(truth, before.discrepancy), rows)[0] * np.exp(
        0.03 * np.random.default_rng(1).standard_normal(len(frame))
    )
    frame.assign(latency_us=us).to_csv(path, index=False)
    out = tmp_path / "mine.toml"
    assert run_command(["calibrate", "timing", GPU, str(path), "-o", str(out), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    fit = document["implementations"]["fa2_decode"]
    assert document["like"] == GPU
    assert fit["stages"][0]["left_out"] > 8.0 > 4.0 > fit["stages"][-1]["left_out"]
    found = {p["name"]: p for p in fit["parameters"]}
    for name in ("cta", "dram"):
        assert not found[name]["determined"] or found[name]["low"] <= truth[name] <= found[name]["high"], name
    with_it, without = (
        100 * np.abs(best(load_timing_calibration(c).model, replace(rows))[0] / us - 1).mean() for c in (out, GPU)
    )
    assert with_it < 4.0 < 8.0 < without
