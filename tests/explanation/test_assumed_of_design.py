"""Assumed numbers of one design: what running the GPU with another number says."""

import pytest

from dse.evaluate.by_workload import evaluation_of
from dse.evaluate.run import run
from dse.explanation.assumed_effects import BASE, AssumedEffects
from dse.explanation.assumed_of_design import assumed_of_design
from dse.hardware.presets import changed, preset_sheet
from dse.power.models import power_of
from dse.timing.roofline import Roofline
from dse.workload.parse import load_workload

SHEET = preset_sheet("h100_sxm_350w")
WORKLOAD = load_workload("gpt2_xl:phase=decode,batch=8,context=512")
STATED = "dram_sustained_fraction"


@pytest.fixture(scope="module")
def effects() -> AssumedEffects:
    evaluation = evaluation_of(WORKLOAD, Roofline(), power_of(None))
    return assumed_of_design(SHEET, WORKLOAD, Roofline(), power_of(None), evaluation)


def test_both_ends_are_what_a_run_says(effects: AssumedEffects) -> None:
    rows = effects.effects[effects.effects["name"] == STATED].set_index("objective")
    for end in ("low", "high"):
        ran = run(changed(SHEET, {STATED: float(rows[end].iloc[0])}, "here"), WORKLOAD, Roofline())
        for metric in ("tbt_ms", "energy_j", "power_w"):
            assert rows.loc[metric, f"at_{end}"] == pytest.approx(ran.metrics[metric][0], rel=1e-4)


def test_it_is_of_the_one_design_alone(effects: AssumedEffects) -> None:
    assert set(effects.effects["design"]) == {BASE}
    assert effects.changes.empty and effects.challengers == 0
    document = effects.document(3)
    assert len(document["deciding"]) == 3 and len(document["varied"]) == len(effects.numbers)


def test_a_number_that_a_user_states_is_none_of_them() -> None:
    stated = changed(SHEET, {STATED: 0.9}, "mine.toml")
    found = assumed_of_design(
        stated, WORKLOAD, Roofline(), power_of(None), evaluation_of(WORKLOAD, Roofline(), power_of(None))
    )
    assert STATED not in {number.name for number in found.numbers}
