"""What tools take and tell: spaces as texts, long fronts in few rows."""

import pytest

pytest.importorskip("pydantic", reason="pip install 'gpu-dse[mcp]'")

from dse.agents import tools
from dse.base.errors import InputError


def test_a_long_front_is_told_in_few_rows() -> None:
    told = tools._few({"pareto": [{"design": n} for n in range(1000)]})
    assert told["n_pareto"] == 1000 and 20 <= len(told["pareto"]) <= tools.ROWS
    assert tools._few({"pareto": []})["pareto"] == []


def test_a_space_is_a_name_or_a_text(small, write_space) -> None:
    path = write_space(small)
    assert tools.space_of_text(str(path)).size == tools.space_of_text(path.read_text()).size == 45
    assert tools.space_of_text("h100_tensor_core").name == "h100_tensor_core"
    with pytest.raises(InputError, match="is not valid TOML"):
        tools.space_of_text("a = [" + "[" * 5000)
