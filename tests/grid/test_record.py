"""Finished runs read back: a wrong record is refused by its key, counts are compared, nothing is replaced."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from dse.base.errors import InputError
from dse.grid.record import load_result
from dse.grid.result import SweepResult
from dse.grid.sweep import sweep
from dse.reports.search.data import load_page
from dse.space.space import space_from_mapping
from tests.grid.trivial import trivial

AXES = {"sm_count": [100, 132, 150], "dram_bandwidth_gbs": [2000, 4000]}


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a finished sweep of six designs, four of them feasible, with its workload's file beside it."""
    folder = tmp_path_factory.mktemp("record")
    result = sweep(trivial(1, folder, axes=AXES, constraints=["sm_count <= 140"]), folder / "out")
    assert (result.n, result.n_feasible) == (6, 4)
    return folder


@pytest.fixture
def broken(swept: Path, tmp_path: Path) -> Callable[[dict[str, Any]], Path]:
    """Copy the folder and change keys of its record, those of a table after a point; None removes one."""

    def change(changes: dict[str, Any]) -> Path:
        shutil.copytree(swept, tmp_path, dirs_exist_ok=True)
        path = tmp_path / "out" / "run.json"
        document = json.loads(path.read_text())
        for key, value in changes.items():
            table, _, inner = key.partition(".")
            place, name = (document[table], inner) if inner else (document, table)
            if value is None:
                del place[name]
            else:
                place[name] = value
        path.write_text(json.dumps(document))
        return path.parent

    return change


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"n": "six"}, "n = 'six' is not accepted; give a whole number"),
        ({"n": 999}, "n = 999, but points.parquet holds 6"),
        ({"n_feasible": 0}, "n_feasible = 0, but the feasible rows of points.parquet are 4"),
        ({"n_pareto": 99}, "n_pareto = 99, but pareto.parquet holds"),
        ({"infeasible": {}}, "n = 6, but n_feasible and infeasible are 4"),
        ({"infeasible": []}, r"infeasible = \[\] is not accepted; give a table of whole numbers"),
        ({"libraries": {}}, "libraries = {} is not accepted; give the version of each of jax"),
        ({"folder": 7}, "folder = 7 is not accepted; give a text"),
        ({"space": []}, r"space = \[\] is not accepted; give a table"),
        ({"keep": "some"}, "keep = 'some' is not accepted; give all or front"),
        ({"digest": None}, "digest is missing; sweep again"),
        ({"timing": []}, r"timing = \[\] is not accepted; give a table"),
        ({"timing.seconds": None}, "timing.seconds is missing; sweep again"),
        ({"baseline": {}}, "baseline: column 'sm_count' is missing"),
        ({"baseline": "x"}, "baseline = 'x' is not accepted; give columns of the same length"),
        ({"baseline.die_mm2": [1, 2]}, "baseline = .* is not accepted; give columns of the same length"),
        ({"baseline.die_mm2": ["x"]}, "baseline: die_mm2 = 'x' is not accepted; give a number"),
        ({"top": 5}, "top = 5 is not accepted"),
        ({"axis_effects": {}}, "axis_effects: column 'axis' is missing"),
        ({"axis_effects": {"axis": [1], "value": []}}, "axis_effects = .* is not accepted; give columns of the same"),
        ({"search": {}}, "search.sampler is missing; search again"),
    ],
)
def test_a_wrong_record_is_named_by_its_key(broken: Any, changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=rf"run\.json: {sentence}"):
        load_page(broken(changes))


def test_tables_that_lack_columns_or_rows_are_named_by_their_file(broken: Any) -> None:
    folder = broken({})
    assert load_result(folder).n == 6
    points, front = (pq.read_table(folder / f"{name}.parquet") for name in ("points", "pareto"))
    pq.write_table(points.slice(0, 2), folder / "points.parquet")
    with pytest.raises(InputError, match=r"n = 6, but points\.parquet holds 2; sweep again"):
        load_result(folder)
    pq.write_table(points.drop(["feasible"]), folder / "points.parquet")
    with pytest.raises(InputError, match=r"points\.parquet: column 'feasible' is missing"):
        load_result(folder)
    pq.write_table(points, folder / "points.parquet")
    pq.write_table(front.drop(["gemm.time_ms"]), folder / "pareto.parquet")
    with pytest.raises(InputError, match=r"pareto\.parquet: column 'gemm\.time_ms' is missing"):
        load_result(folder)


def test_a_file_is_no_folder_of_a_sweep(swept: Path) -> None:
    with pytest.raises(InputError, match=r"one\.csv: is a file; give the folder of a finished sweep"):
        load_result(swept / "one.csv")


def test_a_finished_sweep_of_a_file_that_changed_is_not_replaced(broken: Any, tmp_path: Path) -> None:
    out = broken({})
    before = (out / "points.parquet").read_bytes()
    content = load_result(out).space.content
    (tmp_path / "one.csv").write_text("m,n,k,dtype\n4096,4096,512,bf16\n")
    changed = space_from_mapping(content, "here", "trivial", tmp_path)
    with pytest.raises(
        InputError, match=r"or of trivial before it was changed \(or a file that it names.*leave --resume"
    ):
        sweep(changed, out, resume=True)
    assert (out / "points.parquet").read_bytes() == before


@pytest.mark.parametrize("changes", [{"model": "0123abcd"}, {"model": None}])
def test_a_finished_sweep_of_another_model_is_not_gone_on_with(broken: Any, changes: dict[str, Any]) -> None:
    out = broken(changes)
    content = load_result(out).space.content
    same = space_from_mapping(content, "here", "trivial", out.parent)
    with pytest.raises(InputError, match=r"another version of the model than this \([0-9a-f]{8}\); leave --resume"):
        sweep(same, out, resume=True)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({}, ""),
        ({"model": "0123abcd", "dse": "0.0.9"}, "dse 0.0.9 (model 0123abcd) on 20"),
        ({"model": None, "timing": {"seconds": {}}}, "dse "),
        ({"model": 7, "dse": None}, "another dse on 20"),
    ],
)
def test_a_result_of_another_version_says_so(broken: Any, changes: dict[str, Any], told: str) -> None:
    found = load_page(broken(changes))
    assert isinstance(found, SweepResult)
    assert found.computed_by.startswith(told)
    assert bool(found.computed_by) == bool(told)
    assert found.n == 6


def test_other_inputs_are_another_result_too(broken: Any) -> None:
    folder = broken({})
    (folder.parent / "one.csv").write_text("m,n,k,dtype\n4096,4096,512,bf16\n")
    with pytest.raises(InputError, match="of other inputs or of another version"):
        load_result(folder)
    assert load_result(folder, any_version=True).computed_by


@pytest.mark.parametrize("name", ["points.parquet", "pareto.parquet"])
@pytest.mark.parametrize("left", [0, 3, 100, -100])
def test_a_table_that_is_cut_short_is_named_by_its_name(broken: Any, name: str, left: int) -> None:
    path = broken({}) / name
    path.write_bytes(path.read_bytes()[:left])
    with pytest.raises(InputError) as refused:
        load_page(path.parent)
    message = str(refused.value)
    assert message.startswith(f"{path}: cannot be read, as if cut short or damaged (")
    assert message.endswith("); sweep again") and ".;" not in message and ".)" not in message and "\n" not in message


def test_damaged_rows_are_named_by_their_file(broken: Any) -> None:
    path = broken({}) / "points.parquet"
    content = bytearray(path.read_bytes())
    content[4:300] = bytes(296)
    path.write_bytes(content)
    with pytest.raises(
        InputError, match=r"points\.parquet: cannot be read, as if cut short or damaged .*; sweep again$"
    ):
        load_result(path.parent).points()


@pytest.mark.parametrize("name", ["points.parquet", "pareto.parquet"])
def test_a_table_that_is_gone_is_named_by_its_name(broken: Any, name: str) -> None:
    path = broken({}) / name
    path.unlink()
    with pytest.raises(
        InputError, match=rf"{name}: no such file; give the folder of a finished sweep, or sweep again$"
    ):
        load_page(path.parent)


@pytest.mark.parametrize("left", [0, 1, 700])
def test_a_record_that_is_cut_short_says_what_to_do(broken: Any, left: int) -> None:
    path = broken({}) / "run.json"
    path.write_bytes(path.read_bytes()[:left])
    with pytest.raises(InputError, match=r"run\.json: is cut short or damaged \(.*\); sweep or search again$"):
        load_page(path.parent)
