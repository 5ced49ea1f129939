"""Files of other programs are told by name, with the way to a measured table."""

import pytest

from dse.base.errors import InputError
from dse.measured.foreign_files import refuse_foreign
from dse.measured.table import read_times, table_kind


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("n.csv", "Time (%),Total Time (ns),Instances,Avg (ns),Name\n60.1,590700,10,59070.0,k\n", "Nsight Systems"),
        ("p.csv", ",mean HW_power,st_dev,var,#samples\nmix6_2000000000,298.6,0.1,0.01,2\n", "AccelWattch's measured"),
        ("v.json", '{"backend": "vllm", "mean_ttft_ms": 350.1, "mean_tpot_ms": 9.1}', "JSON of a serving benchmark"),
        ("j.json", '[{"a": 1}]', "is JSON; give a CSV"),
    ],
)
def test_another_programs_file_is_told_with_the_way(tmp_path, name, text, sentence):
    path = tmp_path / name
    path.write_text(text)
    for reader in (refuse_foreign, read_times, table_kind):
        with pytest.raises(InputError, match=sentence):
            reader(path)


def test_others_pass(tmp_path):
    (tmp_path / "t.csv").write_text("device,op\n")
    refuse_foreign(tmp_path / "t.csv")
    refuse_foreign(tmp_path / "none.csv")
    refuse_foreign(tmp_path)
