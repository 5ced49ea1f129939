"""What the commands answer is what they answered before."""

from pathlib import Path

import pytest

from tests.golden.cases import CASES, Case
from tests.golden.compare import differences
from tests.golden.inputs import write_inputs
from tests.golden.runs import answer, expected


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("golden")
    write_inputs(path)
    return path


@pytest.mark.parametrize(
    "case", [pytest.param(c, id=c.name, marks=() if c.fast else (pytest.mark.slow,)) for c in CASES]
)
def test_the_answer_is_as_before(case: Case, folder: Path) -> None:
    assert differences(expected(case), answer(case, folder), case.tolerance) == []
