"""Objectives and constraints of a space, as its file states them."""

from dataclasses import dataclass
from typing import Any

from dse.base.errors import InputError, accepted, shown
from dse.hardware.schema import gpu_schema
from dse.space.expression import Expression, parse_expression
from dse.space.impossible import refuse_expression
from dse.space.links import OF_BASE
from dse.space.metrics import design_metrics, metric_unit, priced_metrics, workload_metrics
from dse.space.workloads import Around
from dse.timing.timing import causes_of
from dse.workload.workload import Workload

KEYS = {
    "name",
    "question",
    "base",
    "gpu",
    "axes",
    "links",
    "constraints",
    "workloads",
    "objectives",
    "timing",
    "power",
    "yield_model",
}
"""Keys of a space's file."""


@dataclass(frozen=True)
class Objective:
    """A number to minimise or maximise: an expression over attributes and results."""

    name: str
    unit: str
    direction: str
    expression: Expression

    @property
    def sign(self) -> float:
        """+1 where smaller is better, else -1."""
        return 1.0 if self.direction == "minimize" else -1.0


def text_of(content: dict, key: str, where: str, default: str) -> str:
    """Return the text of a key, or its default; raises InputError."""
    value = content.get(key, default)
    if not isinstance(value, str):
        raise InputError(f"{where}: {key} = {value!r} is not accepted; give a text")
    return value


def stated_name(content: dict, where: str, default: str) -> str:
    """Return the name that a table states, or its default; raises InputError."""
    name = text_of(content, "name", where, default)
    if "name" in content and not name.strip():
        raise InputError(f"{where}: name = {name!r} is empty; give a text, or leave it out ({default!r} then)")
    return name


def allowed_names(workloads: tuple[Workload, ...]) -> set[str]:
    """Return what expressions may name: attributes and results, the base's too."""
    allowed = set(gpu_schema()) | set(design_metrics()) | {"total.time_ms"}
    allowed |= {f"{w.name}.{metric}" for w in workloads for metric in (*workload_metrics(w), *priced_metrics(w))}
    return allowed | {f"{OF_BASE}{name}" for name in allowed}


def stack_columns(workloads: tuple[Workload, ...]) -> set[str]:
    """Columns of a sweep's tables that hold the time of each cause."""
    return {f"{w.name}.{cause}_ms" for w in workloads for cause in causes_of(w)}


def read_constraints(items: Any, where: str, around: Around, allowed: set[str]) -> tuple[Expression, ...]:
    """Return the constraints of a space; raises InputError naming the entry."""
    if not isinstance(items, list):
        raise InputError(f'{where}: constraints = {items!r} is not accepted; give a list, as ["die_mm2 <= 814"]')
    constraints = []
    for number, text in enumerate(items, start=1):
        here = f"{where}: constraints, entry {number}"
        expression = parse_expression(text, here, allowed)
        if not expression.condition:
            raise InputError(f"{here}: {text!r} is not a condition; give a comparison, as 'die_mm2 <= 814'")
        refuse_expression(expression, around.base, around.axes, around.links, here)
        constraints.append(expression)
    return tuple(constraints)


RESERVED = ("feasible", "reason", "code")
"""Columns of a sweep's tables that are neither attributes nor metrics."""

_DIRECTIONS = {"min": "minimize", "minimize": "minimize", "max": "maximize", "maximize": "maximize"}


def read_objectives(
    items: Any, where: str, around: Around, allowed: set[str], columns: set[str]
) -> tuple[Objective, ...]:
    """Return the objectives of a space; raises InputError naming the entry."""
    form = 'give [[objectives]] tables with value = "decode.tbt_ms" and goal = "min"'
    if not isinstance(items, list) or not items or not all(isinstance(item, dict) for item in items):
        raise InputError(f"{where}: objectives are missing; {form}")
    objectives: list[Objective] = []
    for number, item in enumerate(items, start=1):
        here = f"{where}: [[objectives]], entry {number}"
        for key in item:
            if key in KEYS - {"name"}:
                raise InputError(f"{here}: {key!r} belongs to the whole file; put it before the first [table]")
            if key not in ("value", "goal", "name", "unit"):
                raise InputError(
                    f"{here}: {key!r} is not a key of an objective; {accepted(key, ('value', 'goal', 'name', 'unit'))}"
                )
        if not isinstance(item.get("goal"), str) or item["goal"] not in _DIRECTIONS:
            said = f"goal = {shown(item['goal'])} is not accepted" if "goal" in item else "goal is missing"
            raise InputError(f'{here}: {said}; give "min" or "max"')
        expression = parse_expression(item.get("value", ""), f"{here}: value", allowed)
        if expression.condition:
            raise InputError(f"{here}: value = {expression.text!r} is a condition; give a number")
        refuse_expression(expression, around.base, around.axes, around.links, f"{here}: value")
        name = stated_name(item, here, expression.text)
        own = metric_unit(expression.text)
        unit = text_of(item, "unit", here, own)
        if own and unit != own:
            raise InputError(f"{here}: unit = {unit!r}, but {expression.text} is in {own}; leave unit out")
        if name != expression.text and (name in allowed or name in columns or name in RESERVED):
            raise InputError(f"{here}: name = {name!r} means something else already; give a name of its own")
        if any(o.name == name for o in objectives):
            raise InputError(f"{here}: {name!r} is an objective already; give each a name of its own")
        objectives.append(Objective(name, unit, _DIRECTIONS[item["goal"]], expression))
    return tuple(objectives)
