"""What takes minutes says so in a log, a line a part."""

from dse.reports.common.progress import counting


def test_a_log_has_a_line_a_part(capsys):
    with counting(3, "fitting", log=True) as progress:
        progress(1)
        progress(2)
    lines = capsys.readouterr().err.splitlines()
    assert [line.rpartition(",")[0] for line in lines] == ["dse: fitting: 1 of 3 done", "dse: fitting: 3 of 3 done"]


def test_without_it_a_log_has_none(capsys):
    with counting(3, "fitting") as progress:
        progress(3)
    assert capsys.readouterr().err == ""
