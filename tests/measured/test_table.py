"""Measured tables: what is read, what is counted as skipped, what is refused with which sentence."""

import numpy as np
import pandas as pd
import pytest

from dse.base.errors import InputError
from dse.measured.table import (
    KNOWN_SHAPES,
    notes_of_gpus,
    read_kernels,
    read_operators,
    read_times,
    table_kind,
    tensor_parallel,
)
from tests.calibration.tables import DYNAMIC, kernel_table, operator_table


def changed(path, **columns):
    """The same file with columns replaced; None drops one."""
    frame = pd.read_csv(path)
    for name, values in columns.items():
        frame = frame.drop(columns=name) if values is None else frame.assign(**{name: values})
    frame.to_csv(path, index=False)
    return path


def test_kernels_with_their_components(tmp_path):
    table = read_kernels(kernel_table(tmp_path / "t.csv"), "sass")
    assert set(table.parts) == {*DYNAMIC, "IDLE_COREP", "CONSTP", "STATICP"}
    assert len(table.watts) == 24
    assert len(set(table.groups)) == 8
    assert table.skipped == 0


def test_kernels_without_components_are_counted(tmp_path):
    path = kernel_table(tmp_path / "t.csv")
    frame = pd.read_csv(path)
    frame.loc[3, "sass_INTP_W"] = np.nan
    frame.loc[5, "meas_W"] = 0  # not measured
    frame.to_csv(path, index=False)
    table = read_kernels(path, "sass")
    assert (len(table.watts), table.skipped) == (22, 2)
    assert not {"k3", "k5"} & set(table.kernels)


def test_the_kind_of_a_table(tmp_path):
    assert table_kind(kernel_table(tmp_path / "a.csv")) == "kernels"
    assert table_kind(operator_table(tmp_path / "b.csv")) == "operators"
    (tmp_path / "c.csv").write_text("x,y\n1,2\n")
    with pytest.raises(InputError, match=r"neither power_w .* nor meas_W"):
        table_kind(tmp_path / "c.csv")
    with pytest.raises(InputError, match="no such file"):
        table_kind(tmp_path / "d.csv")
    (tmp_path / "e.csv").write_text("op;power_w\ngemm;3,5\n")
    with pytest.raises(InputError, match=r"its columns stand apart by semicolons; give commas \(and decimal points\)"):
        table_kind(tmp_path / "e.csv")


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({"benchmark_group": None}, "no column benchmark_group"),
        ({"meas_W": -5.0}, "row 2: meas_W is -5; power cannot be negative"),
        ({"meas_W": 170_000.0}, "is it in milliwatts"),
        ({"meas_W": "high"}, "row 2: meas_W is 'high'; give a number"),
        ({"benchmark_group": "only"}, "needs two benchmarks to leave one out"),
    ],
)
def test_refused_kernels(tmp_path, columns, sentence):
    with pytest.raises(InputError, match=sentence):
        read_kernels(changed(kernel_table(tmp_path / "t.csv"), **columns), "sass")


def test_a_variant_that_the_table_does_not_hold(tmp_path):
    with pytest.raises(InputError, match="no components of variant 'hw'; accepted are: sass"):
        read_kernels(kernel_table(tmp_path / "t.csv"), "hw")


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({"power_w": [np.nan, np.nan, 0.0]}, "no row of 3 has power_w above 0"),
        ({"power_w": [690.0, -1.0, 300.0]}, "row 3: power_w is -1"),
        ({"latency_us": [1.0, 2.0, 0.0]}, "row 4: latency_us is 0; give a positive time"),
        ({"latency_us": [1.0, np.inf, 3.0]}, "row 3: latency_us is inf; give a positive time"),
        ({"m": [8192, "4k", 8192]}, "row 3: m is '4k'; give a number"),
        ({"m": ["8k", "4k", "8k"]}, r"row 2: m is '8k'; give a number \(2 more: 3, 4\)"),
        ({"latency_us": None, "latency_ms": 1.6}, "column latency_ms is not read; give latency_us"),
        ({"latency_us": None, "Latency_us": 1.6}, "column 'Latency_us' is not known; did you mean 'latency_us'"),
        ({"batch": None, "Batch": 1}, "column 'Batch' is not known; did you mean 'batch'"),
        ({"power_w": None, "power_mw": 690e3}, "column power_mw is not read; give power_w"),
        ({"power_w": [690.0, 0.69, 300.0]}, "row 3: power_w is 0.69; is it in kilowatts"),
        ({"dtype": None}, "no column dtype"),
        (dict.fromkeys(sum(KNOWN_SHAPES[:-1], ())), r"no columns of a shape; .* \(m, n, k; rows, cols; batch"),
    ],
)
def test_refused_operators(tmp_path, columns, sentence):
    with pytest.raises(InputError, match=sentence):
        read_operators(changed(operator_table(tmp_path / "t.csv"), **columns))


RUNS = {"op": ["llm_e2e", "llm_prefill", "gemm"], "batch": 1, "seq_q": 128, "seq_kv": 8}


def test_runs_without_tp_are_on_one_gpu_and_told(tmp_path):
    path = operator_table(tmp_path / "t.csv", **RUNS)
    for tp, said in ({}, "no column tp"), ({"tp": np.nan}, "an empty column tp"):
        table = read_times(changed(path, **tp))
        assert tensor_parallel(table).tolist() == [1, 1, 1]
        assert notes_of_gpus(table) == [
            f"{said} (GPUs that share each layer): each of 2 runs is taken to be on one GPU"
        ]
    table = read_times(changed(path, tp=[2, np.nan, np.nan]))  # a cell that is missing beside others is a wrong one
    np.testing.assert_array_equal(tensor_parallel(table), [2, np.nan, 1])
    assert notes_of_gpus(table) == notes_of_gpus(read_times(operator_table(path))) == []


@pytest.mark.parametrize(
    ("column", "meant"),
    [("tp_size", "tp"), ("Tensor_Parallel", "tp"), ("num_gpus", "tp"), ("note", "notes"), ("sources", "source")],
)
def test_a_misspelt_column_is_refused(tmp_path, column, meant):
    path = operator_table(tmp_path / "t.csv", **{column: 1})
    with pytest.raises(InputError, match=rf"t\.csv: column '{column}' is not known; did you mean '{meant}'"):
        read_times(path)


def test_watts_as_words_are_refused_where_times_alone_are_read(tmp_path):
    with pytest.raises(InputError, match="row 3: power_w is '900 W'; give a number"):
        read_times(changed(operator_table(tmp_path / "t.csv"), power_w=[690.0, "900 W", 300.0]))


def test_operators_without_power_are_counted_by_reason(tmp_path):
    table = read_operators(operator_table(tmp_path / "t.csv", power_w=[690.0, np.nan, 0.0]))
    assert len(table.frame) == 1
    assert table.skipped == {"no power_w": 1, "power_w is 0: not measured": 1}


@pytest.mark.parametrize("column", ["weight", "family", "overhead_us", "predicted_us"])
def test_a_column_that_the_schema_does_not_name_is_refused(tmp_path, column):
    with pytest.raises(InputError, match=rf"t\.csv: column '{column}' is not known; .*'dse show columns'"):
        read_times(operator_table(tmp_path / "t.csv", **{column: 3}))


def test_parquet_is_read_as_the_same_csv(tmp_path):
    path = operator_table(tmp_path / "t.csv")
    pd.read_csv(path).to_parquet(tmp_path / "t.parquet")
    assert table_kind(tmp_path / "t.parquet") == "operators"
    for read in (read_times, read_operators):
        pd.testing.assert_frame_equal(read(tmp_path / "t.parquet").frame, read(path).frame)


def test_a_table_of_products_needs_no_columns_of_other_operators(tmp_path):
    others = {column: None for shape in KNOWN_SHAPES[1:-1] for column in shape}
    path = operator_table(tmp_path / "t.csv")
    whole = read_times(path).frame
    assert read_times(changed(path, **others)).frame[whole.columns].equals(whole)


@pytest.mark.parametrize("read", [read_times, read_operators])
def test_names_have_no_blanks_around_them(tmp_path, read):
    plain = read(operator_table(tmp_path / "t.csv", device="My H100", source="mine", group="a")).frame
    blanks = {
        "device": ["My H100 ", "My H100", " My H100"],
        "op": ["gemm ", "gemm", "gemm"],
        "dtype": ["bf16", "bf16\t", "bf16"],
        "source": "mine ",
        "group": ["a", "a ", "a"],
    }
    told = read(operator_table(tmp_path / "u.csv", **blanks)).frame
    pd.testing.assert_frame_equal(told, plain)
    text = (tmp_path / "u.csv").read_text().replace(" My H100", '" My H100"')
    (tmp_path / "u.csv").write_text(text)
    assert set(read(tmp_path / "u.csv").frame["device"]) == {"My H100"}


def test_a_name_of_blanks_is_empty_and_a_number_stays_one(tmp_path):
    assert read_times(operator_table(tmp_path / "t.csv", device=["a", '"  "', "a"])).frame["device"].notna().all()
    (tmp_path / "u.csv").write_text((tmp_path / "t.csv").read_text().replace('"""  """', '"  "'))
    assert read_times(tmp_path / "u.csv").frame["device"].isna().tolist() == [False, True, False]
    assert read_times(operator_table(tmp_path / "t.csv", device=3090)).frame["device"].tolist() == [3090] * 3


def test_groups_of_kernels_have_no_blanks_around_them(tmp_path):
    groups = read_kernels(kernel_table(tmp_path / "t.csv"), "sass").groups
    changed(tmp_path / "t.csv", benchmark_group=[f"{name}{' ' * (i % 2)}" for i, name in enumerate(groups)])
    assert read_kernels(tmp_path / "t.csv", "sass").groups == groups
