"""Gradient refinement: derivatives against finite differences, and what is found against evaluating it again."""

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pyarrow.parquet as pq
import pytest

from dse.base.numerics import ceil_div, floor_div, smooth_steps
from dse.base.pareto_filter import Box, pareto_mask
from dse.cli import run_command
from dse.grid.record import load_result
from dse.pareto import gradient
from dse.pareto.batch_model import BatchModel, EvaluatedDesigns
from dse.pareto.fronts import thin_to
from dse.pareto.gradient import LEAST_GAIN, OFF_GRID, Refinement, _Descents, dominates, refine
from dse.pareto.smooth_model import Coordinates, Slopes, Smoothed, continuous_axes
from dse.space import designs
from dse.space.space import Space, space_from_mapping
from tests.conftest import SMALL

COARSE = SMALL | {
    "axes": {
        "tensor_fma_bf16": [256, 512, 1024],
        "sm_count": [96, 132],
        "dram_bandwidth_gbs": [1675, 3350, 6700],
        "boost_clock_mhz": [1200, 1980],
        "l2_slice_bytes_per_cycle": [32, 64, 128],
    },
    "links": {
        "tensor_fma_fp16": "tensor_fma_bf16",
        "tensor_clock_mhz": "boost_clock_mhz * base.tensor_clock_mhz / base.boost_clock_mhz",
        "dram_bus_bits": "round(base.dram_bus_bits * dram_bandwidth_gbs / base.dram_bandwidth_gbs)",
        "l2_slices": "round(2 * dram_bus_bits / 128)",
    },
    "workloads": {"decode": "gpt2_xl:phase=decode,batch=64,context=512"},
    "constraints": ["die_mm2 <= 850", "decode.power_w <= 550"],
    "objectives": [
        {"value": "decode.energy_j", "goal": "min"},
        {"value": "decode.tokens_per_s", "goal": "max"},
        {"value": "die_mm2", "goal": "min"},
    ],
}
CONTINUOUS = ["tensor_fma_bf16", "dram_bandwidth_gbs", "boost_clock_mhz", "l2_slice_bytes_per_cycle"]


@pytest.fixture(scope="module")
def space() -> Space:
    return space_from_mapping(COARSE, "coarse", "coarse")


@pytest.fixture(scope="module")
def model(space: Space) -> BatchModel:
    return BatchModel(space, 512)


@pytest.fixture(scope="module")
def front(space: Space, model: BatchModel) -> dict[str, np.ndarray]:
    """Axes of the grid's front."""
    index = np.arange(space.size)
    evaluated = model(index)
    index = index[evaluated.violation == 0]
    costs = evaluated.costs[evaluated.violation == 0]
    return space.at(index[pareto_mask(costs)])


@pytest.fixture(scope="module")
def refinement(space: Space, model: BatchModel, front: dict[str, np.ndarray]) -> Refinement:
    return refine(space, front, model)


class Flat(NamedTuple):
    """Stands in for the smooth model: the same values and slopes wherever a descent is."""

    found: Slopes

    def __call__(self, places: np.ndarray, staying: Any) -> Slopes:
        return self.found

    def staying(self, columns: Any) -> None:
        return None


def descents(costs: np.ndarray, objectives: int, smooth: Any = None) -> _Descents:
    """Descents from designs with these ``costs``, without a model that evaluates them."""
    found = object.__new__(_Descents)
    found.space = SimpleNamespace(objectives=[None] * objectives)  # pyright: ignore[reportAttributeAccessIssue]
    found.origin = SimpleNamespace(costs=costs)  # pyright: ignore[reportAttributeAccessIssue]
    found.count, found.box, found.smooth, found.columns = len(costs), Box.of(costs), smooth, {}
    found.member, found.lean = found._lanes()
    found.costs, found.places = costs[found.member], np.full((len(found.member), 2), 0.5)
    return found


@pytest.mark.parametrize(("excess", "holds"), [(-0.5, False), (-0.021, False), (-0.019, True), (0.3, True)])
def test_a_constraint_turns_a_descent_from_two_hundredths_before_it_breaks(excess: float, holds: bool) -> None:
    """The objective falls towards lower values of the first axis alone; the constraint's excess grows there."""
    costs = np.array([[1.0], [2.0]])
    slopes = np.broadcast_to(np.array([[1.0, 0.0], [-1.0, 0.5]]), (2, 2, 2))
    flat = Flat(Slopes(np.array([[1.0, excess], [2.0, excess]]), slopes))
    direction = descents(costs, 1, flat)._directions(np.arange(2))
    assert (np.abs(direction).max(axis=1) == 1).all()
    if holds:  # lowers the objective and keeps the excess from growing
        assert (direction @ slopes[0].T <= 1e-9).all() and (direction[:, 1] < -0.1).all()
    else:
        np.testing.assert_allclose(direction, [[-1.0, 0.0]] * 2, atol=1e-9)


def test_of_too_many_members_descents_begin_from_the_whole_front(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gradient, "LANES", 30)
    x = np.linspace(0.0, 1.0, 500)
    costs = np.stack([1.0 + x, 2.0 - x], axis=1)
    found = descents(costs, 2)
    begun = np.unique(found.member)
    assert begun.tolist() == thin_to(costs, 30).tolist()
    assert begun[0] < 50 and begun[-1] > 450 and 5 < len(begun) <= 30
    assert np.diff(begun).max() < 100


def again(space: Space, model: BatchModel, axes: dict[str, Any]) -> Any:
    """Evaluate designs by their axes."""
    axes = {axis.name: np.asarray(axes[axis.name], float) for axis in space.axes}
    return model.of(np.full(len(axes["sm_count"]), -1), designs.with_links(space, axes))


@pytest.mark.slow
def test_a_refined_member_dominates_its_origin_under_exact_evaluation(space, model, front, refinement):
    improved = np.isfinite(refinement.successors["sm_count"])
    assert improved.sum() == refinement.improved > 0
    origin = again(space, model, {name: values[improved] for name, values in front.items()})
    end = again(space, model, {name: values[improved] for name, values in refinement.successors.items()})
    assert (end.violation == 0).all()
    assert (end.costs <= origin.costs).all()
    assert (end.costs < origin.costs * (1 - np.sign(origin.costs) * LEAST_GAIN)).any(axis=1).all()


def test_only_real_axes_change_and_stay_in_their_range(space, front, refinement):
    assert list(refinement.axes) == CONTINUOUS
    table = refinement.table.to_pandas()
    improved = np.isfinite(refinement.successors["sm_count"])
    assert np.array_equal(refinement.successors["sm_count"][improved], front["sm_count"][improved])
    for axis in space.axes:
        assert table[axis.name].between(min(axis.numbers), max(axis.numbers)).all()
        assert table[axis.name][~table[OFF_GRID]].isin(axis.numbers).all()
    off = table[table[OFF_GRID]]
    assert all((~off[CONTINUOUS].isin({a.name: a.numbers for a in space.axes})).any(axis=1))


def test_the_refined_front_can_be_had_and_is_one(space, model, refinement):
    table = refinement.table.to_pandas()
    assert table["feasible"].all()
    assert (table["die_mm2"] <= 850).all()
    assert (table["decode.power_w"] <= 550).all()
    evaluated = again(space, model, table)
    for number, objective in enumerate(space.objectives):
        stated = objective.sign * table[objective.name].to_numpy(float)
        assert evaluated.costs[:, number] == pytest.approx(stated, rel=1e-6)
    assert pareto_mask(evaluated.costs).all()
    assert table[OFF_GRID].sum() == refinement.off_grid > 0


def test_the_gain_is_the_difference_of_hypervolumes(space, model, front, refinement):
    before = again(space, model, front).costs
    after = again(space, model, refinement.table.to_pandas()).costs
    box = Box.of(before)
    assert refinement.before == pytest.approx(box.hypervolume(before))
    assert refinement.after == pytest.approx(box.hypervolume(after), rel=1e-6)
    assert refinement.gain == refinement.after - refinement.before > 0


class Blind:
    """Slopes that know nothing of objectives and constraints: descents go anywhere, exact evaluation alone decides."""

    def __init__(self, space: Space, _: Any) -> None:
        self.coordinates = Coordinates(continuous_axes(space))
        self.rows = len(space.objectives) + len(space.constraints)
        self.random = np.random.default_rng(0)

    def __call__(self, places: np.ndarray, _: Any) -> Slopes:
        slopes = self.random.standard_normal((len(places), 1, places.shape[1]))
        return Slopes(np.full((len(places), self.rows), -1.0), np.repeat(slopes, self.rows, axis=1))

    def staying(self, _: Any) -> dict[str, np.ndarray]:
        return {}


class Refusing:
    """A space's model in which nothing between the grid's values can be had where ``refused`` of its columns and
    results; ``worth`` of costs: what stands there for them. It keeps what it said."""

    def __init__(self, model: BatchModel, refused: Any, worth: Any = lambda costs: costs) -> None:
        self.model, self.refused, self.worth, self.batches = model, refused, worth, []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.model, name)

    def of(self, index: np.ndarray, columns: Any) -> EvaluatedDesigns:
        evaluated = self.model.of(index, columns)
        if self.batches:  # not the members
            no = self.refused(evaluated.columns | evaluated.results)
            costs = np.where(no[:, None], self.worth(evaluated.costs), evaluated.costs)
            evaluated = replace(evaluated, costs=costs, violation=np.where(no, 1.0, evaluated.violation))
        self.batches.append(evaluated)
        return evaluated


def test_a_step_that_gains_by_breaking_a_constraint_is_not_accepted(space, model, front, monkeypatch):
    """More watts are faster: nothing but the exact evaluation keeps a descent from those of another board."""
    monkeypatch.setattr("dse.pareto.gradient.Smoothed", Blind)
    watts = np.median(again(space, model, front).results["decode.power_w"])
    refusing = Refusing(model, lambda of: of["decode.power_w"] > watts)
    tried, attempt = [], _Descents._try

    def noted(descents: _Descents, lanes: np.ndarray, step: np.ndarray) -> np.ndarray:
        tried.append(descents.member[lanes])
        return attempt(descents, lanes, step)

    monkeypatch.setattr(_Descents, "_try", noted)
    refinement = refine(space, front, refusing)
    table, (origin, first, *_), member = refinement.table.to_pandas(), refusing.batches, tried[0]
    gains = dominates(first.costs, origin.costs[member])
    assert (gains & (first.violation > 0)).any()  # it was there to be taken
    assert np.isfinite(
        refinement.successors["sm_count"][member[gains & (first.violation == 0)]]
    ).all()  # a gain is kept
    assert table[OFF_GRID].any()
    assert (table["decode.power_w"][table[OFF_GRID]] <= watts).all()
    assert table["feasible"].all()
    costs = again(space, model, table).costs
    assert pareto_mask(costs).all()
    assert all((costs <= member).all(axis=1).any() for member in origin.costs)  # left only for what dominates it


def test_a_step_to_where_nothing_runs_is_not_accepted(space, model, front, monkeypatch):
    """Whatever stands there for its results."""
    monkeypatch.setattr("dse.pareto.gradient.Smoothed", Blind)
    low, high = 1200, 1980

    def between(of: Any) -> np.ndarray:
        return (of["boost_clock_mhz"] > low) & (of["boost_clock_mhz"] < high)

    refusing = Refusing(model, between, lambda costs: costs - 1e3 * np.abs(costs))
    table = refine(space, front, refusing).table.to_pandas()
    assert sum(between(refinement.columns).sum() for refinement in refusing.batches) > 10
    assert table[OFF_GRID].any()
    assert table["boost_clock_mhz"].isin([low, high]).all()


@pytest.fixture(scope="module")
def smooth(space: Space) -> Smoothed:
    """The smooth model, to be called in 64 bits."""
    with jax.enable_x64(True):
        return Smoothed(space, {})


@pytest.mark.slow
def test_slopes_are_finite_differences_of_the_smooth_model(smooth):
    step, random = 1e-6, np.random.default_rng(0)
    with jax.enable_x64(True):
        places = random.uniform(0.05, 0.95, (40, len(CONTINUOUS)))
        columns = {"sm_count": random.choice([96.0, 132.0], 40)}
        here = smooth(places, columns)
        checked = 0
        for axis in range(len(CONTINUOUS)):
            move = step * (np.arange(len(CONTINUOUS)) == axis)
            up, down = (smooth(places + sign * move, columns).values for sign in (1, -1))
            forward, backward = (up - here.values) / step, (here.values - down) / step
            size = np.abs(here.values) + 1e-3
            smooth_here = np.abs(forward - backward) < 1e-4 * size  # no kink between them
            np.testing.assert_allclose(
                (here.slopes[:, :, axis] / size)[smooth_here],
                ((up - down) / (2 * step) / size)[smooth_here],
                rtol=1e-4,
                atol=1e-6,
            )
            checked += smooth_here.sum()
    assert checked > 0.9 * here.slopes.size
    assert (np.abs(here.slopes) > 1e-3).mean() > 0.2


@pytest.mark.slow
def test_the_smooth_model_is_near_the_exact_one(space, model, smooth, front):
    """It differs by the ramps of waves and by unrounded links."""
    exact = again(space, model, front)
    with jax.enable_x64(True):
        values = smooth(smooth.coordinates.places(exact.columns), smooth.staying(exact.columns)).values
    assert values[:, :3] == pytest.approx(exact.costs, rel=0.1)
    assert values[:, 2] == pytest.approx(exact.costs[:, 2], rel=0.01)
    assert (values[:, 3] <= 0.001).all()
    assert (values[:, 4] <= 0.05).all()  # ramps make busier SMs: more power


@pytest.mark.parametrize("ramp", [0.1, 0.25, 1.0])
def test_smooth_steps_are_continuous_monotone_and_exact_at_whole_numbers(ramp):
    whole, fine = np.arange(0.0, 9.0), np.linspace(0.0, 8.0, 8001)
    with jax.enable_x64(True), smooth_steps(ramp):
        for smooth, exact in ((ceil_div, np.ceil), (floor_div, np.floor)):
            assert np.array_equal(smooth(whole, 1.0), whole)
            values = np.asarray(smooth(fine, 1.0))
            assert (np.diff(values) >= 0).all()
            assert np.diff(values).max() < 2e-3 / ramp
            assert np.abs(values - exact(fine)).max() <= 1
            from_edge = fine - np.floor(fine) if exact is np.ceil else np.ceil(fine) - fine
            away = from_edge >= ramp + 1e-9
            assert np.array_equal(values[away], exact(fine)[away])
            middle = jnp.asarray(2.0 + ramp / 2 - (exact is np.floor) * ramp)
            assert float(jax.grad(smooth)(middle, 1.0)) == pytest.approx(1.5 / ramp)
    assert float(ceil_div(9.0, 4.0)) == 3.0  # exact again outside


def test_dominates_is_the_definition_with_a_least_gain():
    costs = np.asarray([[1.0, 2.0], [1.0, 1.9], [1.0, 2.0 - 1e-6], [0.5, 2.1]])
    assert dominates(costs, np.broadcast_to([1.0, 2.0], costs.shape)).tolist() == [False, True, False, False]


def test_a_space_without_continuous_axes_gains_nothing_and_says_so():
    axes = {"axes": {"sm_count": [96, 132], "l1_banks": [2, 4]}, "links": {}}
    content = COARSE | axes | {"timing": "roofline", "constraints": []}
    space = space_from_mapping(content, "whole", "whole")
    refinement = refine(space, {"sm_count": np.asarray([96.0, 132.0]), "l1_banks": np.asarray([4.0, 4.0])})
    assert (refinement.gain, refinement.improved, refinement.off_grid, refinement.evaluations) == (0.0, 0, 0, 0)
    assert "no axis is a real number" in refinement.sentence()
    assert not refinement.table.to_pandas()[OFF_GRID].any()


@pytest.mark.slow
def test_the_command_marks_what_is_off_the_grid(write_space, tmp_path, capsys):
    out, path = tmp_path / "out", write_space(COARSE | {"name": "coarse"})
    command = ["search", str(path), "--evaluations", "60", "--refine", "-o", str(out)]
    assert run_command([*command, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    record = json.loads((out / "run.json").read_text())
    front = pq.read_table(out / "pareto.parquet").to_pandas()
    assert record["search"]["refinement"] == document["search"]["refinement"]
    assert front[OFF_GRID].sum() == record["search"]["refinement"]["off_grid"] > 0
    assert record["n_pareto"] == len(front) == len(document["pareto"])
    assert record["search"]["refinement"]["gain"] > 0
    assert record["search"]["evaluations"] == 60
    first = (out / "pareto.parquet").read_bytes()
    assert run_command(command) == 0
    assert "refinement:" in " ".join(capsys.readouterr().out.split())
    assert (out / "pareto.parquet").read_bytes() == first


@pytest.mark.slow
def test_a_sweep_s_front_is_refined_the_same_way_and_its_page_drawn(space, refinement, write_space, tmp_path, capsys):
    out = tmp_path / "out"
    assert run_command(["sweep", str(write_space(COARSE)), "--refine", "-o", str(out), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["refinement"]["members"] == refinement.members
    assert document["refinement"]["gain"] == pytest.approx(refinement.gain, rel=1e-3)
    assert json.loads((out / "run.json").read_text())["refinement"] == document["refinement"]
    front = load_result(out).front
    assert front[OFF_GRID].sum() == document["refinement"]["off_grid"] > 0
    assert (out / "report.html").stat().st_size > 1_000_000
