"""Tables of IPC and MPKI by size: what is read, and with which sentence the rest is refused."""

import openpyxl
import pytest

from dse.base.errors import InputError
from dse.scaling.scale import scale
from dse.scaling.table import Benchmark, Sheet, read_scale_table
from tests.scaling.tables import HEAD, written

ROWS = "a,8,10,5,0.4,60\n,16,19,5,,130\n,32,,1,,\nb,8,20,1,,\n,16,40,1,,\n"


def test_csv_with_the_name_in_the_first_row_only(tmp_path):
    (sheet,) = read_scale_table(written(tmp_path, HEAD + ROWS))
    assert (sheet.name, sheet.unit) == ("t", "SM")
    a, b = sheet.benchmarks
    assert (a.name, a.sizes, a.ipc, a.mpki) == ("a", (8, 16, 32), (10, 19, None), (5, 5, 1))
    assert (a.f_mem_of(32, 16), b.f_mem_of(32, 16)) == (0.4, None)
    assert a.at("seconds", 16) == 130
    assert not a.weak


def test_each_cliff_may_have_its_own_f_mem(tmp_path):
    (sheet,) = read_scale_table(written(tmp_path, HEAD + "a,8,10,5,0.4,\n,16,19,5,,\n,32,,1,0.6,\n,64,,0.1,,\n"))
    assert (sheet.benchmarks[0].f_mem_of(32, 16), sheet.benchmarks[0].f_mem_of(64, 16)) == (0.6, 0.4)


def test_a_share_at_every_size_is_each_size_s_own_and_the_large_scale_model_s_counts(tmp_path):
    rows = "a,8,100,5,0.5,\n,16,195,5,0.4,\n,32,,5,0.5,\n,64,,0.2,0.6,\n"
    (sheet,) = read_scale_table(written(tmp_path, HEAD + rows))
    assert sheet.benchmarks[0].f_mem_of(64, 16) == 0.4


@pytest.mark.parametrize(
    ("rows", "f_mem"),
    [
        ("a,8,100,5,0.3,\n,16,195,5,0.52,\n,32,,5,,\n,64,,0.2,,\n", 0.52),  # rows to predict have none
        ("a,8,100,5,,\n,16,195,5,0.52,\n,32,,5,,\n,64,,0.2,,\n", 0.52),
        ("a,4,50,5,0.1,\n,8,100,5,0.3,\n,16,195,5,0.52,\n,64,,0.2,,\n", 0.52),  # the large one is not the second
        ("a,8,100,5,,\n,16,195,5,,\n,32,,5,0.9,\n,64,,0.2,,\n", None),  # of another cliff
    ],
)
def test_the_large_scale_model_s_share_is_taken_wherever_it_stands(tmp_path, rows, f_mem):
    (sheet,) = read_scale_table(written(tmp_path, HEAD + rows))
    assert sheet.benchmarks[0].f_mem_of(64, 16) == f_mem


@pytest.mark.parametrize("column", ["f_mem_percent", "f_mem [%]", "Fmem (%)"])
def test_a_share_in_percent(tmp_path, column):
    (sheet,) = read_scale_table(written(tmp_path, f"benchmark,size,ipc,mpki,{column}\na,8,10,5,52\n"))
    assert sheet.benchmarks[0].f_mem == (0.52,)


def test_sheets_and_weak_scaling_by_column(tmp_path):
    text = "sheet,benchmark,chiplets,ipc,scaling\nx,a,4,1,weak\nx,a,8,2,weak\ny,a,4,1,Weak\ny,a,8,2,Weak\n"
    sheets = read_scale_table(written(tmp_path, text))
    assert [(s.name, s.unit, s.benchmarks[0].weak) for s in sheets] == [("x", "chiplet", True), ("y", "chiplet", True)]


def test_scaling_and_sheet_in_the_first_row_only(tmp_path):
    text = "sheet,benchmark,size,ipc,scaling\nx,a,4,1,weak\n,,8,2,\ny,a,4,1,\n,,8,2,weak\n"
    sheets = read_scale_table(written(tmp_path, text))
    assert [(s.name, s.benchmarks[0].sizes, s.benchmarks[0].weak) for s in sheets] == [
        ("x", (4, 8), True),
        ("y", (4, 8), True),
    ]


def test_cells_beyond_the_header_of_a_spreadsheet(tmp_path):
    book = openpyxl.Workbook()
    for row in (("benchmark", "size", "ipc", "mpki", None), ("a", 8, 1.0, 5.0, None), ("a", 16, 1, 100, 5.0)):
        book.active.append(row)  # pyright: ignore
    book.save(tmp_path / "t.xlsx")
    with pytest.raises(InputError, match=r"sheet Sheet: row 3: '5(\.0)?' stands beyond the 4 columns of the header"):
        read_scale_table(tmp_path / "t.xlsx")


@pytest.mark.parametrize("text", ["Fmem = 0.52 %", "0.52%", "Fmem=.52%"])
def test_a_small_share_with_its_sign_is_percent(tmp_path, text):
    (sheet,) = read_scale_table(written(tmp_path, HEAD + f"a,8,10,5,{text},\n"))
    assert sheet.benchmarks[0].f_mem == (pytest.approx(0.0052),)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"ipc": (0.0, 190.0)}, "benchmark x: size 8: ipc is 0; give a positive number"),
        ({"ipc": (100.0, -5.0)}, "benchmark x: size 16: ipc is -5"),
        ({"ipc": (100.0, float("nan"))}, "size 16: ipc is nan; give a number"),
        ({"ipc": (100.0,)}, "ipc has 1 values of 2 sizes; give one each"),
        ({"mpki": (5.0, 2000.0)}, "mpki is 2000; give 0 to 1000"),
        ({"f_mem": (52.0, None)}, "f_mem is 52; give a fraction from 0 to below 1"),
        ({"seconds": (0.0, None)}, "seconds is 0; give a positive number"),
        ({"sizes": (16.0, 8.0)}, "size 8 follows 16; give each size once, ascending"),
        ({"sizes": (8.0, 16.5)}, "size is 16.5; give a whole number"),
        ({"sizes": (), "ipc": (), "mpki": (), "f_mem": (), "seconds": ()}, "has no sizes"),
    ],
)
def test_records_are_held_to_what_tables_are(changes, sentence):
    columns = {"sizes": (8.0, 16.0), "ipc": (100.0, 190.0), "mpki": (5.0, 5.0), "f_mem": (None,) * 2}
    with pytest.raises(InputError) as refused:
        Benchmark("x", **columns | {"seconds": (None,) * 2} | changes)
    assert sentence in str(refused.value)


def test_records_hold_each_name_once():
    one = Benchmark("x", (8.0, 16.0), (1.0, 2.0), (5.0, 5.0), (None,) * 2, (None,) * 2)
    for make, sentence in (
        (lambda: Sheet("s", "SM", ()), "sheet s: has no benchmarks"),
        (lambda: Sheet("s", "SM", (one, one)), "sheet s: benchmark x stands twice; give it once"),
        (lambda: scale([Sheet("s", "SM", (one,))] * 2), "sheets: sheet s stands twice"),
    ):
        with pytest.raises(InputError) as refused:
            make()
        assert sentence in str(refused.value)


def test_spreadsheet_with_percent_text_and_an_empty_sheet(tmp_path):
    book = openpyxl.Workbook()
    book.active.title = "mineWeak"  # pyright: ignore
    for row in (("Benchmark Name", "#SM", "IPC", "MPKI", "Fmem"), ("a", 8, 1.0, None, "Fmem = 52"), (None, 16, 2.0)):
        book.active.append(row)  # pyright: ignore
    book.create_sheet("empty")
    book.save(tmp_path / "t.xlsx")
    (sheet,) = read_scale_table(tmp_path / "t.xlsx")
    assert sheet.benchmarks[0].f_mem[0] == pytest.approx(0.52)
    assert sheet.benchmarks[0].weak


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("benchmark,size,mpki\na,8,1\n", "no column ipc"),
        ("size,ipc,mpki\n8,1,1\n", "no column benchmark"),
        ("benchmark,size,ipc\na,8,1\n", "row 2: no column mpki; strong scaling needs it"),
        ("benchmark,size,cpi,mpki\na,8,1,1\n", "column 'cpi' is in another unit; give ipc"),
        ("benchmark,size,ipc,mpki,simulation_time_ms\na,8,1,1,5\n", "another unit; give simulation_time_s"),
        (HEAD + "a,8,10,5,,-3\n", "row 2: seconds is -3; give a positive number"),
        (HEAD + "a,8,-10,5,,\n", "row 2: ipc is -10; give a positive number"),
        (HEAD + "a,8,ten,5,,\n", "row 2: ipc is 'ten'; give a number"),
        (HEAD + "a,8,nan,5,,\n", "row 2: ipc is 'nan'; give a number"),
        (HEAD + "a,,10,5,,\n", "row 2: no size"),
        (HEAD + "a,0,10,5,,\n", "row 2: size is 0"),
        (
            HEAD + "a,8,10,5,,\n,1e300,,5,,\n",
            "row 3: size is 1e+300; give a whole number of SMs or chiplets, at most 1,000,000",
        ),
        (HEAD + ",8,10,5,,\n", "row 2: no benchmark is named"),
        (HEAD + "a,8,10,-1,,\n", "row 2: mpki is -1"),
        (HEAD + "a,8,10,5,52,\n", "row 2: f_mem is '52'; give a fraction"),
        (
            HEAD + "a,8,10,5,Fmem = 0.52,\n",
            "row 2: f_mem is 'Fmem = 0.52', a fraction or percent; give the number",
        ),
        (HEAD + "a,8,10,5,Fmem = 1,\n", "row 2: f_mem is 'Fmem = 1', a fraction or percent"),
        (HEAD + "a,100000.2,10,5,,\n", "row 2: size is 100000.2; give a whole number"),
        (HEAD + "a,8,1,100,5.0,,60\n", "row 2: '60' stands beyond the 6 columns of the header; give a cell a column"),
        ("benchmark,size,ipc,mpki,\na,8,1,100,5\n", "row 2: '5' stands beyond the 4 columns"),  # none is named there
        ("benchmark,size,ipc,mpki,scaling\na,8,1,1,weak\n,16,2,1,strong\n", "row 2: benchmark a is strong and weak"),
        (HEAD + "a,8,10,5,,\na,8,11,5,,\n", "row 3: benchmark a has size 8 twice"),
        ("benchmark,size,ipc,mpki,scaling\na,8,1,1,steady\n", "scaling is 'steady'; give strong or weak"),
        (
            "benchmark,size,SMs,ipc,mpki\na,1,8,1,1\n",
            "columns 'size' and 'SMs' both state the size; give one of the two",
        ),
        (HEAD, "has no rows"),
        ("", "has no rows"),
    ],
)
def test_wrong_tables_are_refused(tmp_path, text, sentence):
    with pytest.raises(InputError) as refused:
        read_scale_table(written(tmp_path, text))
    assert sentence in str(refused.value)


def test_files_that_are_no_tables(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        read_scale_table(tmp_path / "none.csv")
    with pytest.raises(InputError, match="its columns stand apart by semicolons"):
        read_scale_table(written(tmp_path, "benchmark;size;ipc\na;1;2,5\n"))
    with pytest.raises(InputError, match=r"is no \.xlsx spreadsheet"):
        read_scale_table(written(tmp_path, "not a zip", "t.xlsx"))
    with pytest.raises(InputError, match=r"neither \.xlsx nor \.csv"):
        read_scale_table(written(tmp_path, "x", "t.ods"))
