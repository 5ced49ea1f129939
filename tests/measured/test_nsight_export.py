"""Nsight Compute's CSV exports, in the layouts that ncu 2020 to 2025 writes (names and order of its columns)."""

import json

import pytest

from dse.base.errors import InputError
from dse.calibration.timing.gpu_timing import calibrate_timing
from dse.cli import run_command
from dse.measured.nsight_export import NO_SHAPE, TIME, is_export, read_export
from dse.measured.table import read_times, table_kind

NVTX = "thread Domain:Push/Pop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg"
GPU = "NVIDIA H100 80GB HBM3"
SHAPES = [(4096, 4096, 4096), (64, 8192, 1024), (1024, 1024, 1024)]
KERNEL = "void gemm<float, 256>(T1 *, int)"


def quoted(values):
    return ",".join('"' + str(v).replace('"', '""') + '"' for v in values)


def ranged(text):
    return f'1  "<default domain>:{text}:none:none:none:none:none:none" ' if text else ""


def raw_page(path, times, ranges=None, unit="us", kernels=None, device=GPU):
    """Write ``ncu --csv --page raw``: a column a metric, their units in a row of their own."""
    header = ["ID", "Process ID", "Process Name", "Host Name", NVTX, "Kernel Name", "Context", "Stream", "Block Size",
              "Grid Size", "Device", "CC", "device__attribute_display_name", "dram__bytes.sum", TIME]  # fmt: skip
    ranges, kernels = ranges or [""] * len(times), kernels or [KERNEL] * len(times)
    lines = [
        "==PROF== Connected to process 1234",
        "loss: 0.5, accuracy: 3",
        quoted(header),
        quoted([""] * 13 + ["Mbyte", unit]),
    ]
    for i, (time, text, kernel) in enumerate(zip(times, ranges, kernels, strict=True)):
        lines.append(quoted([i, 1234, "python", "127.0.0.1", ranged(text), kernel, 1, 7, "(256, 1, 1)", "(132, 1, 1)",
                             0, "9.0", device, "12.50", time]))  # fmt: skip
    path.write_text("\n".join(lines) + "\n==PROF== Disconnected\n", encoding="utf-8")
    return path


def long_form(path, times, unit="nsecond", metric=TIME, ids=None):
    """Write ``ncu --csv``: a line a metric, times as ncu writes large numbers."""
    header = ["ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream", "Block Size",
              "Grid Size", "Device", "CC", "Section Name", "Metric Name", "Metric Unit", "Metric Value"]  # fmt: skip
    lines = ["==PROF== Connected to process 1234", quoted(header)]
    for i, time in zip(ids or range(len(times)), times, strict=True):
        front = [i, 1, "python", "host", KERNEL, 1, 7, "(256, 1, 1)", "(8, 8, 1)", 0, "9.0", "Command line profiler"]
        lines.append(quoted([*front, "dram__bytes.sum", "Mbyte", "2,000.00"]))
        lines.append(quoted([*front, metric, unit, f"{time:,}"]))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def said(m, n, k):
    return f"gemm m={m} n={n} k={k} dtype=bf16"


def test_the_raw_page_with_ranges_is_a_measured_table(tmp_path):
    path = raw_page(tmp_path / "raw.csv", ["1,210.5", "30.1", "14"], [said(*s) for s in SHAPES])
    assert is_export(path)
    assert table_kind(path) == "operators"
    frame = read_times(path).frame
    assert [*zip(frame["m"], frame["n"], frame["k"], strict=True)] == SHAPES
    assert frame["latency_us"].tolist() == [1210.5, 30.1, 14.0]
    assert set(frame["device"]) == {GPU}
    assert set(frame["dtype"]) == {"bf16"}
    assert frame["notes"][0] == f"kernel={KERNEL}; grid=(132, 1, 1); block=(256, 1, 1); kernels=1; ID=0"


@pytest.mark.parametrize(
    ("unit", "us"), [("ns", 1e-3), ("nsecond", 1e-3), ("us", 1), ("usecond", 1), ("ms", 1e3), ("msecond", 1e3)]
)
@pytest.mark.parametrize("metric", [TIME, "Duration"])
def test_the_long_form_is_read_in_its_unit(unit, us, metric, tmp_path):
    path = long_form(tmp_path / "long.csv", [1500, 2500], unit, metric)
    (tmp_path / "long.shapes.csv").write_text("op,dtype,m,n,k,device\ngemm,bf16,8,16,32,H200\ngemm,bf16,9,16,32,H200\n")
    frame = read_export(path)
    assert frame["latency_us"].tolist() == pytest.approx([1500 * us, 2500 * us])
    assert frame["m"].tolist() == [8, 9]
    assert set(frame["device"]) == {"H200"}


def test_kernels_whose_id_comes_again_are_kernels_of_their_own(tmp_path):
    path = long_form(tmp_path / "long.csv", [1000, 2000, 3000], ids=[0, 0, 1])
    shapes = tmp_path / "long.shapes.csv"
    shapes.write_text("op,dtype,m,n,k\n" + "".join(f"gemm,bf16,{m},16,32\n" for m in (8, 9, 10)))
    frame = read_export(path)
    assert frame[["latency_us", "m"]].to_numpy().tolist() == [[1, 8], [2, 9], [3, 10]]
    shapes.write_text("ID,op,dtype,m,n,k\n1,gemm,bf16,8,16,32\n")
    with pytest.raises(InputError, match=r"ID: .* has kernel 0 more than once; leave the column out"):
        read_export(path)


def test_kernels_of_one_operation_are_added_up(tmp_path):
    names = ["splitk", "reduce", "splitk", "reduce", "relu", "gemm"]
    ranges = [said(8, 16, 32)] * 4 + ["", said(8, 16, 64)]
    frame = read_export(raw_page(tmp_path / "raw.csv", [10, 2, 11, 3, 5, 7], ranges, kernels=names))
    assert frame["latency_us"].tolist() == [12, 14, 5, 7]
    assert frame["op"].tolist() == ["gemm", "gemm", NO_SHAPE, "gemm"]
    assert frame["notes"].str.contains("kernels=2").tolist() == [True, True, False, False]


def test_shapes_by_id_leave_other_kernels_unsaid(tmp_path):
    path = long_form(tmp_path / "long.csv", [1000, 2000, 3000])
    (tmp_path / "long.shapes.csv").write_text("ID,op,dtype,m,n,k\n2,gemm,fp16,8,16,32\n")
    frame = read_export(path)
    assert frame["op"].tolist() == [NO_SHAPE, NO_SHAPE, "gemm"]
    assert frame["k"].tolist()[2] == 32
    assert set(frame["device"]) == {"GPU of compute capability 9.0"}


@pytest.mark.parametrize(
    ("shapes", "words"),
    [
        ("op,m,n,k\ngemm,1,1,1\n", "has 1 rows for the 2 kernels"),
        ("ID,op,m\n7,gemm,1\n", "has no kernel 7"),
        ("ID,op,m\n1,gemm,1\n1,gemm,2\n", "stands twice"),
        ("ID,op,rowz\n1,gemm,1\n", "'rowz' is unknown; accepted are: ID, op, dtype"),
        ("ID,m\n1,1\n", "no column op"),
        ("ID,op,m\n1,gemm,many\n", "m: give numbers"),
        ("", "is no CSV table"),
        ("op;m\ngemm;1\n", "its columns stand apart by semicolons"),
        ("ID,op,M\n1,gemm,1\n", "column 'M' is not known; did you mean 'm'"),
    ],
)
def test_wrong_tables_of_shapes_are_refused(shapes, words, tmp_path):
    path = long_form(tmp_path / "long.csv", [1000, 2000])
    (tmp_path / "long.shapes.csv").write_text(shapes)
    with pytest.raises(InputError, match=words):
        read_export(path)


def test_exports_that_cannot_be_read_are_refused(tmp_path):
    path = tmp_path / "export.csv"
    with pytest.raises(InputError, match=r"export.csv: no kernel says its shape; give NVTX .*export\.shapes\.csv"):
        read_export(raw_page(path, [10, 11]))
    with pytest.raises(InputError, match="is in 'cycle'; give ns, us, ms or s"):
        read_export(raw_page(path, [10], [said(1, 1, 1)], unit="cycle"))
    with pytest.raises(InputError, match=r"kernel 0: .* is 'n/a'; give a number"):
        read_export(raw_page(path, ["n/a"], [said(1, 1, 1)]))
    with pytest.raises(InputError, match="range 'gemm m=1 hed_dim=1': hed_dim: did you mean 'head_dim'"):
        read_export(raw_page(path, [10], ["gemm m=1 hed_dim=1"]))
    with pytest.raises(InputError, match="m is 'x'; give a number"):
        read_export(raw_page(path, [10], ["gemm m=x"]))
    with pytest.raises(InputError, match=f"kernel 0 has no {TIME}"):
        read_export(long_form(path, [10], metric="sm__cycles_elapsed.avg"))
    path.write_text('"ID","Kernel Name","dram__bytes.sum"\n"0","gemm","1"\n')
    with pytest.raises(InputError, match=f"no column {TIME}; profile with --metrics"):
        read_export(path)
    path.write_text(f'"ID","Kernel Name","{TIME}"\n"","","ns"\n')
    with pytest.raises(InputError, match="holds no kernel"):
        read_export(path)


def test_measured_tables_are_no_exports(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("device,op,latency_us\nH200,gemm,1\n")
    assert not is_export(path)
    assert not is_export(tmp_path / "absent.csv")


def test_validate_predicts_or_counts_every_kernel(tmp_path, capsys):
    ranges = [*(said(*s) for s in SHAPES), ""]
    path = raw_page(tmp_path / "raw.csv", ["215", "9", "8", "3"], ranges)
    assert run_command(["validate", str(path), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    groups = [g for g in document["groups"] if g["regime"] == "all"]
    assert [(g["device"], g["op"], g["dtype"], g["n"]) for g in groups] == [(GPU, "gemm", "bf16", 3)]
    assert {row["harness"] for row in document["worst"]} == {"nsight_compute"}
    assert document["rows_skipped"] == {f"no kernel is made yet for operator '{NO_SHAPE}'": 1}


def test_calibrate_reads_an_export_and_tells_what_is_too_little(tmp_path):
    path = raw_page(tmp_path / "raw.csv", ["215", "9", "8"], [said(*s) for s in SHAPES])
    with pytest.raises(InputError, match="3 of matrix"):
        calibrate_timing("h100_sxm", [path])
    with pytest.raises(InputError, match=f"h200: the tables have no row of it; they hold {GPU}"):
        calibrate_timing("h200", [path])
    unnamed = long_form(tmp_path / "long.csv", [1000])
    (tmp_path / "long.shapes.csv").write_text("op,dtype,m,n,k\ngemm,bf16,8,16,32\n")
    with pytest.raises(
        InputError, match=r"needs device=h200 in the names of its ranges, a column device .*, or device__"
    ):
        calibrate_timing("h200", [unnamed])


@pytest.mark.parametrize("command", [["validate"], ["calibrate", "timing", "h200"], ["calibrate", "engine", "mine"]])
def test_the_table_of_shapes_is_not_written_over(tmp_path, capsys, command):
    path, shapes = long_form(tmp_path / "long.csv", [1000]), tmp_path / "long.shapes.csv"
    shapes.write_text("op,dtype,m,n,k\ngemm,bf16,8,16,32\n")
    out = shapes
    if command[1:2] == ["engine"]:  # which only writes TOMLs
        (out := tmp_path / "engine.toml").symlink_to(shapes)
    assert run_command([*command, str(path), "-o", str(out)]) == 2
    assert "is read by this command; give another path" in capsys.readouterr().err
    assert shapes.read_text().startswith("op,dtype")
