"""Runs a golden case through the command line and reduces what it answers to what is held."""

import io
import json
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype

from dse.cli import run_command
from tests.golden.cases import Case

EXPECTED = Path(__file__).parent / "expected"

LEFT_OUT = (
    "seconds",
    "fit_seconds",
    "evaluations_per_s",
    "digest",
    "sha256",
    "table_sha256",
    "source",
    "sources",
    "discrepancy",
)
"""Keys of documents that a clock or the contents of a file decide, or that are long and shipped."""

DIGITS = 9
"""Significant digits of a recorded number."""

DESIGNS = 4
"""Designs of a front whose every column is recorded."""


def answer(case: Case, folder: Path) -> dict[str, Any]:
    """Return what the command of a case answers, run in a folder that holds the inputs.

    ``document``: its JSON; of a sweep or a search ``front`` and ``tables``, too. Raises RuntimeError with the
    command's sentence where it fails.
    """
    out, error = io.StringIO(), io.StringIO()
    with chdir(folder), redirect_stdout(out), redirect_stderr(error):
        code = run_command([*case.command.split(), "--json"])
    if code:
        raise RuntimeError(f"{case.command}: exit code {code}: {error.getvalue()}")
    document = _held(json.loads(out.getvalue()))
    if case.folder is None:
        return {"document": document}
    pareto, top = document.pop("pareto"), document.pop("top", [])
    tables = {path.stem: pd.read_parquet(path) for path in sorted((folder / case.folder).glob("*.parquet"))}
    return {
        "document": document | {"pareto_keys": list(pareto[0]), "best": [row[row["best_in"]] for row in top]},
        "front": _front(tables["pareto"], document["objectives"]),
        "tables": {name: _columns(table, whole=name == "points") for name, table in tables.items()},
    }


def expected(case: Case) -> dict[str, Any]:
    """Return the recorded answer of a case."""
    return json.loads((EXPECTED / f"{case.name}.json").read_text(encoding="utf-8"))


def record(case: Case, got: dict[str, Any]) -> None:
    """Write an answer as the expected one."""
    (EXPECTED / f"{case.name}.json").write_text(_text(got, 3) + "\n", encoding="utf-8")


def _text(value: Any, levels: int) -> str:
    """JSON with a line for each entry of the outer levels, so that a change shows as few lines."""
    if not levels or not value or not isinstance(value, dict | list):
        return json.dumps(value)
    if isinstance(value, list):
        return "[\n" + ",\n".join(_text(item, levels - 1) for item in value) + "\n]"
    return "{\n" + ",\n".join(f"{json.dumps(key)}: {_text(item, levels - 1)}" for key, item in value.items()) + "\n}"


def _held(value: Any) -> Any:
    """A document without what is left out, numbers rounded, lists of named records as mappings."""
    if isinstance(value, dict):
        return {key: _held(item) for key, item in value.items() if key not in LEFT_OUT}
    if isinstance(value, list):
        return [_held(item) for item in value]
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def _front(table: pd.DataFrame, objectives: list[dict[str, str]]) -> dict[str, Any]:
    """Objectives of the whole front, to be minimised, and every column of its first designs by their axes."""
    signs = {o["name"]: -1 if o["direction"] == "maximize" else 1 for o in objectives}
    rows = [[_held(sign * float(row[name])) for name, sign in signs.items()] for _, row in table.iterrows()]
    axes = list(table.columns[: table.columns.get_loc(next(iter(signs)))])
    first = table.sort_values(axes).head(DESIGNS)
    designs = {
        " ".join(f"{name}={row[name]:g}" for name in axes): _held(row.drop(axes).to_dict())
        for row in (pd.Series(r) for r in first.to_dict("records"))
    }
    return {"objectives": list(signs), "costs": sorted(rows), "designs": designs}


def _columns(table: pd.DataFrame, whole: bool) -> dict[str, Any]:
    """Type of every column; of a table whose designs are given by the space also what it holds, summed up."""
    return {name: [str(table[name].dtype), *(_summary(table[name]) if whole else ())] for name in table}


def _summary(column: pd.Series) -> list[Any]:
    """Count, smallest, largest and mean of numbers; counts of everything else."""
    if not is_numeric_dtype(column) or is_bool_dtype(column):
        return [{str(key): int(n) for key, n in column.value_counts().sort_index().items() if n}]
    numbers = column.dropna().astype(float)
    return [len(numbers), *(_held(float(n)) for n in (numbers.min(), numbers.max(), numbers.mean()))]
