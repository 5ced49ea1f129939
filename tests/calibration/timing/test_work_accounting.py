"""Work accounting on a synthetic export: counts are read, factors found, times nearer, and the file holds them."""

import csv
from dataclasses import replace

import jax
import numpy as np
import pytest

from dse.base.errors import InputError
from dse.base.skipped_rows import Skipped
from dse.calibration.timing.rows_fit import fit_timed, left_out
from dse.calibration.timing.work_accounting import FEWEST, STAGE, work_account
from dse.hardware.presets import load_sheet
from dse.measured.table import read_times
from dse.measured.timed_rows import best, blocks, joined
from dse.timing.calibration import implementation_calibration, load_timing_calibration
from dse.timing.work import Work, generated

GPU = "a100_sxm_80gb"
TRUE = {"instructions": 1.6, "lanes": 1.3}
"""What the profiled kernels execute for one generated instruction."""

SHAPES = [(m, n, k) for m in (512, 1024, 2048, 4096) for n in (1024, 3072, 5120) for k in (1024, 4096)]


def export(path, shapes, us, counts):
    """Write an export of Nsight Compute: a column a metric; ``counts``: of all instructions and of lanes."""
    metrics = ["gpu__time_duration.sum", "smsp__inst_executed.sum", "smsp__inst_executed_pipe_alu.sum",
               "smsp__inst_executed_pipe_fma.sum"]  # fmt: skip
    head = ["ID", "Kernel Name", "Block Size", "Grid Size", "thread Domain:Push/Pop_Range:PL_Type:PL_Value:CLR_Type"]
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow([*head, *metrics])
        rows.writerow(["", "", "", "", "", "us", "inst", "inst", "inst"])
        for i, ((m, n, k), time, (every, lanes)) in enumerate(zip(shapes, us, counts, strict=True)):
            said = f"gemm m={m} n={n} k={k} dtype=fp32 device={GPU}"
            cells = [f"{time:.4f}", f"{every:.0f}", f"{0.25 * lanes:.2f}", f"{0.75 * lanes:.2f}"]
            rows.writerow([i, "sgemm", "(256, 1, 1)", "(1, 1, 1)", said, *cells])
    return path


def timed(path):
    frame = read_times(path).frame
    return joined(list(blocks(frame, {GPU: load_sheet(GPU)}, None, Skipped())))


@pytest.fixture(scope="module")
def profiled(tmp_path_factory):
    """The path of an export of products on CUDA cores, whose times and counts are those of TRUE."""
    path = tmp_path_factory.mktemp("work") / "profile.csv"
    none = [(0, 0)] * len(SHAPES)
    rows = timed(export(path, SHAPES, np.full(len(SHAPES), 100.0), none))
    model = replace(load_timing_calibration(GPU).model, work=Work(**TRUE))
    us, _ = best(model, rows)
    _, chosen = best(load_timing_calibration(GPU).model, rows)
    ran = jax.tree.map(lambda x: np.asarray(x, float)[:, 0], chosen.kernels)
    noise = np.random.default_rng(0).lognormal(0.0, 0.02, (2, len(SHAPES)))
    counts = [TRUE[name] * np.asarray(generated(ran, name)) * off for name, off in zip(TRUE, noise, strict=True)]
    return export(path, SHAPES, us, list(zip(*counts, strict=True)))


def test_factors_are_found_class_by_class_and_bring_times_nearer(profiled):
    rows, model = timed(profiled), load_timing_calibration(GPU).model
    out = left_out(rows.table["family"])
    assert 0 < out.sum() < len(out)
    account = work_account(rows, model, out)
    assert account is not None and account.names == ("instructions", "lanes")
    for one in account.classes:
        assert one.factor == pytest.approx(TRUE[one.name], rel=0.02)
        assert one.rows == (~out).sum()
        assert one.before > 20 and one.after < 3 and (one.left_out_after or 99) < 3 < (one.left_out_before or 0)
        assert one.words().startswith(f"{one.name}: {one.factor:.3g} executed for one generated")
    us, _ = best(model, account.applied(rows))
    error = 100 * np.abs(us / rows.table["latency_us"].to_numpy() - 1)
    assert (account.before.fitted or 0) > 10 and error.mean() < 3
    again, _ = best(replace(model, work=account.work), rows)
    np.testing.assert_allclose(again, us, rtol=1e-5)


def test_rows_left_out_move_no_factor(profiled):
    rows, model = timed(profiled), load_timing_calibration(GPU).model
    out = np.arange(len(rows.table)) % 2 == 0
    notes = rows.table["notes"].str.replace(r"executed_lanes=[\d.e+]+", "executed_lanes=1e12", regex=True)
    wild = replace(rows, table=rows.table.assign(notes=rows.table["notes"].where(~out, notes)))
    found = [work_account(some, model, out) for some in (rows, wild)]
    assert found[0] is not None and found[1] is not None
    assert found[0].work.factors() == found[1].work.factors()


def test_without_enough_counts_there_is_no_stage(profiled):
    rows, model = timed(profiled), load_timing_calibration(GPU).model
    out = np.arange(len(rows.table)) >= FEWEST - 1
    assert work_account(rows, model, out) is None
    bare = replace(rows, table=rows.table.assign(notes="kernel=sgemm"))
    assert work_account(bare, model, np.zeros(len(out), bool)) is None


def test_a_fit_begins_with_the_stage_and_its_file_holds_the_factors(profiled, tmp_path):
    rows, told = timed(profiled), []
    near, table = implementation_calibration("matrix_simt"), read_times(profiled)
    answer = fit_timed(GPU, [table], (GPU,), rows, report=told.append, implementation="matrix_simt",
                       start=near.values, near=near)  # fmt: skip
    names = [stage.name for stage in answer.fit.stages]
    assert names[:2] == ["starting values", STAGE] and [stage.name for stage in told][:2] == names[:2]
    assert answer.fit.stages[1].free == ("instructions", "lanes")
    assert (answer.fit.stages[1].fitted or 99) < 0.5 * (answer.fit.stages[0].fitted or 0)
    assert answer.work is not None and answer.document()["work"][0]["name"] == "instructions"
    lines = answer.lines("implementations.matrix_simt.")
    path = tmp_path / "mine.toml"
    head = ['format = "dse timing calibration 2"', f'name = "{GPU}"', f'gpus = ["{GPU}"]', f'like = "{GPU}"']
    path.write_text("\n".join([*head, "[implementations.matrix_simt]", *lines]) + "\n")
    model = load_timing_calibration(path).model
    us, _ = best(model, rows)
    np.testing.assert_allclose(us, answer.fit.predicted_us, rtol=1e-3)
    path.write_text(path.read_text().replace("lanes = ", "lances = "))
    with pytest.raises(InputError, match=r"implementations\.matrix_simt\.work.*lanes"):
        load_timing_calibration(path)
