"""Pareto local search as a sampler of Optuna: it proposes what a search does, goes on after an end, and says values."""

import numpy as np
import optuna
import pytest

import dse
from dse.base.errors import InputError
from dse.evaluate import by_workload
from dse.pareto import search as search_module
from dse.pareto import space_objective
from dse.pareto.batch_model import BatchModel
from dse.pareto.generations import generation_sizes
from dse.pareto.optuna_storage import open_storage
from dse.pareto.pareto_sampler import ParetoSampler
from dse.pareto.search import search
from dse.pareto.space_objective import SpaceObjective
from dse.space.space import Space, space_from_mapping
from tests.conftest import SMALL

AXES = {
    "tensor_fma_bf16": {"from": 128, "to": 1024, "step": 64},
    "sm_count": {"from": 72, "to": 168, "step": 8},
    "dram_bandwidth_gbs": [1675, 2010, 2680, 3350, 4020, 5360, 6700],
    "l2_mib": [30, 50, 80],
}
BATCH = 16
NAMES = [o["value"] for o in SMALL["objectives"]]


@pytest.fixture(scope="module")
def space() -> Space:
    """4,095 designs, of which a constraint refuses some."""
    quick = {"timing": "roofline"}  # what a search proposes does not depend on the model
    return space_from_mapping(SMALL | quick | {"axes": AXES, "constraints": ["die_mm2 <= 900"]}, "finer", "finer")


@pytest.fixture(scope="module")
def model(space: Space) -> BatchModel:
    """One compiled model for all tests: a search and a study see the same last digit."""
    patch = pytest.MonkeyPatch()
    patch.setattr(by_workload, "MOST_DESIGNS", 0)
    made = BatchModel(space)
    made.compile()
    patch.undo()
    return made


@pytest.fixture(autouse=True)
def one_model(model: BatchModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_module, "BatchModel", lambda space, expected=None: model)
    monkeypatch.setattr(space_objective, "BatchModel", lambda space: model)


def study_of(space: Space, storage: optuna.storages.BaseStorage | None = None, **sampler: int) -> optuna.Study:
    """A study with a new sampler, loaded from ``storage`` where it is there."""
    made = ParetoSampler(space, **{"seed": 5, "batch": BATCH} | sampler)
    return optuna.create_study(
        study_name="study", storage=storage, sampler=made, directions=made.directions, load_if_exists=True
    )


def designs(study: optuna.Study) -> list[list[float]]:
    return [[trial.params[name] for name in AXES] for trial in study.trials]


def searched(space: Space, evaluations: int) -> list[list[float]]:
    return search(space, evaluations=evaluations, seed=5).result.points()[list(AXES)].to_numpy(float).tolist()


def test_it_proposes_what_a_search_does_trial_by_trial(space: Space) -> None:
    evaluations = 48 * BATCH
    assert generation_sizes(evaluations) == (BATCH, 1)
    study, objective = study_of(space), SpaceObjective(space)
    for _ in range(12):
        objective.ask_and_tell(study, BATCH)
    assert designs(study) == searched(space, evaluations)[: 12 * BATCH]


def test_one_trial_at_a_time_asks_for_the_same_as_batches(space: Space) -> None:
    single, batches, objective = study_of(space), study_of(space), SpaceObjective(space)
    single.optimize(objective, n_trials=3 * BATCH)
    for count in (BATCH, BATCH // 2, BATCH // 2, BATCH):
        objective.ask_and_tell(batches, count)
    assert designs(single) == designs(batches)
    assert len({tuple(design) for design in designs(single)}) == 3 * BATCH


@pytest.mark.parametrize("first", [2 * BATCH, 2 * BATCH + 5])
def test_a_study_that_is_loaded_again_goes_on_as_if_it_had_not_ended(space: Space, first: int) -> None:
    objective, whole, storage = SpaceObjective(space), study_of(space), open_storage(None)
    whole.optimize(objective, n_trials=4 * BATCH)
    study_of(space, storage).optimize(objective, n_trials=first)
    study_of(space, storage).optimize(objective, n_trials=4 * BATCH - first)
    assert designs(study_of(space, storage)) == designs(whole)


def test_trials_say_values_constraints_and_metrics(space: Space, model: BatchModel) -> None:
    study = study_of(space)
    SpaceObjective(space).ask_and_tell(study, 4 * BATCH)
    refused = [trial for trial in study.trials if trial.constraints["feasible"] > 0]
    assert refused
    for trial in study.trials:
        assert trial.params["l2_mib"] in AXES["l2_mib"]
        assert trial.params["dram_bandwidth_gbs"] in AXES["dram_bandwidth_gbs"]
        metrics = trial.user_attrs["metrics"]
        assert trial.values == [metrics[name] for name in NAMES]
        assert (trial in refused) == (metrics["die_mm2"] > 900) == ("reason" in trial.user_attrs)
    assert "die_mm2 <= 900" in refused[0].user_attrs["reason"]
    # A member of Optuna's own front is no design that the constraint refuses.
    assert all(trial.user_attrs["metrics"]["die_mm2"] <= 900 for trial in study.best_trials)


def test_trials_of_others_are_learnt_from(space: Space) -> None:
    """A design that somebody enqueued counts as evaluated, and one off the grid is passed over."""
    study, objective = study_of(space), SpaceObjective(space)
    known = {name: values[0] if isinstance(values, list) else values["from"] for name, values in AXES.items()}
    study.enqueue_trial(known)
    objective.ask_and_tell(study, 1)
    off = optuna.create_trial(
        params=known | {"l2_mib": 7},
        distributions=study.sampler.distributions | {"l2_mib": optuna.distributions.CategoricalDistribution([7])},  # pyright: ignore[reportAttributeAccessIssue]
        values=[1.0] * len(NAMES),
    )
    study.add_trial(off)
    objective.ask_and_tell(study, 4 * BATCH)
    assert designs(study)[0] == list(known.values())
    assert designs(study)[2:].count(list(known.values())) == 0


def test_batches_of_none_are_refused(space: Space) -> None:
    with pytest.raises(InputError, match="batch 0 is not accepted; give a whole number of at least 1"):
        dse.ParetoSampler(space, batch=0)


def test_an_exhausted_grid_goes_on_at_random(space: Space) -> None:
    tiny = space_from_mapping(SMALL | {"axes": {"l2_mib": [30, 50, 80]}}, "tiny", "tiny")
    made = ParetoSampler(tiny, batch=2)
    study = optuna.create_study(sampler=made, directions=made.directions)
    for _ in range(5):
        trial = study.ask()
        value = trial.suggest_categorical("l2_mib", [30, 50, 80])
        study.tell(trial, [float(value)] * len(NAMES))
    assert {trial.params["l2_mib"] for trial in study.trials[:3]} == {30, 50, 80}


def test_directions_are_those_of_the_objectives(space: Space) -> None:
    made = ParetoSampler(space)
    assert [d.name == "MINIMIZE" for d in made.directions] == [o.sign > 0 for o in space.objectives]
    assert list(made.distributions) == list(AXES)
    assert np.all(made.state.local.grid.lengths == [15, 13, 7, 3])
