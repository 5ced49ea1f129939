"""Files of a sweep: folders that are kept or not, locks, and disks that are full."""

import errno
import subprocess
import sys
from pathlib import Path

import pytest

from dse.base.errors import InputError
from dse.grid.store import alone_in, design_schema, writing
from dse.grid.sweep import sweep
from dse.space.space import space_from_mapping
from tests.conftest import SMALL
from tests.grid.trivial import trivial

SIZE = 10_000


def test_a_second_sweep_into_a_folder_is_refused_while_one_runs(tmp_path: Path) -> None:
    refusals = []

    def progress(count: int) -> None:
        if not refusals:
            for resume in (False, True):
                with pytest.raises(InputError, match="another sweep or search is writing there") as refusal:
                    sweep(trivial(SIZE, tmp_path), tmp_path / "out", resume=resume)
                refusals.append(str(refusal.value))

    result = sweep(trivial(SIZE, tmp_path), tmp_path / "out", progress)
    assert len(refusals) == 2 and result.n == len(result.points()) == SIZE
    assert sweep(trivial(SIZE, tmp_path), tmp_path / "out", resume=True).n == SIZE


def test_a_killed_process_leaves_no_lock(tmp_path: Path) -> None:
    hold = (
        "import sys, time; from pathlib import Path; from dse.grid.store import alone_in\n"
        "with alone_in(Path(sys.argv[1])): print(flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", hold, str(tmp_path)], stdout=subprocess.PIPE) as holder:
        assert holder.stdout and holder.stdout.readline()
        with pytest.raises(InputError, match="another sweep or search"), alone_in(tmp_path):
            pass
        holder.kill()
    with alone_in(tmp_path):
        pass


def test_a_file_that_is_gone_is_no_full_disk(tmp_path: Path) -> None:
    gone = FileNotFoundError(errno.ENOENT, "No such file or directory", str(tmp_path / "unfinished" / "state.npz"))
    with (
        pytest.raises(InputError, match=r"state\.npz is gone, as if another .*; let one") as refusal,
        writing(tmp_path, "go on"),
    ):
        raise gone
    assert "make room" not in str(refusal.value)


def test_the_columns_of_designs_are_typed_by_their_attributes() -> None:
    axes = {"process": ["tsmc_4n", "tsmc_n5"], "async_copy": [False, True], "sm_count": [96, 132], "l2_mib": [40, 50.5]}
    space = space_from_mapping(SMALL | {"axes": axes, "links": {}}, "typed", "typed")
    result = sweep(space)
    kinds = {name: str(kind) for name, kind in result.points().dtypes.items() if name in axes}
    assert kinds == {"process": "category", "async_copy": "bool", "sm_count": "int64", "l2_mib": "float64"}
    schema = design_schema(space, ["die_mm2", "l2_mib"])
    assert schema.names == [*axes, "die_mm2", "feasible", "reason"]
    assert [str(schema.field(name).type) for name in ("die_mm2", "feasible")] == ["float", "bool"]
