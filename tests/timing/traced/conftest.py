"""Configurations of GCoM for tests."""

from pathlib import Path
from typing import Any

import pytest

from dse.base.package_tables import read_table


def config_text(**changes: Any) -> str:
    """Return a whole configuration with the program's own values but for the changes; None leaves a key out."""
    values = {row["key"]: row["default"] for row in read_table("sass/gcom_config.csv")} | changes
    return "".join(f"unsigned {key} = {value} // note\n" for key, value in values.items() if value is not None)


@pytest.fixture
def write_config(tmp_path: Path):
    def write(**changes: Any) -> Path:
        path = tmp_path / "gpu.config"
        path.write_text(config_text(**changes), encoding="utf-8")
        return path

    return write
