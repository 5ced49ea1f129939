"""AccelWattch's published sheets: every component of its validation kernels, and the errors against measured power.

Totals come from our components, never from the sheets' totals. Execution units, instruction buffer and scheduler of HW
come from instruction counts that were inverted from its own watts: for them only the other variants are evidence.
"""

from functools import cache

import jax
import numpy as np
import pandas as pd
import pytest

from dse.base.units import WARP_SIZE
from dse.power.accelwattch import (
    AccelWattch,
    TargetScaling,
    by_component,
    part_counters,
    sheet_columns,
    superseded_idle_correction,
)
from dse.power.accelwattch_counts import FETCHED, FULL_RATE
from dse.power.counters import COUNTERS, AccelWattchActivity, constants, hw_activity
from dse.power.static import CATEGORIES, StaticPower, one_hot
from experiments import data

SMS = 80
WRAPPED = ("binomialOptions_k1", "cudaTensorCoreGemm_k1", "sad_k1")  # lane counts that wrapped at 2**32
WATTS = 1e-3

HYBRID_SIMULATED = ("L2_RH", "L2_RM", "L2_WH", "L2_WM", "NOC_A")
"""The counters that the published HYBRID numbers take from the simulator; its others are those of HW."""

pytestmark = pytest.mark.usefixtures("in_64_bits")


@cache
def table(name: str) -> pd.DataFrame:
    return pd.read_csv(data.ACCELWATTCH / f"{name}_kernels.csv")


@cache
def volta() -> pd.DataFrame:
    frame = table("volta")
    return frame[frame["hw_total_W"].notna()].reset_index(drop=True)


def launches(lanes: np.ndarray | None = None) -> AccelWattchActivity:
    """The 25 kernels' hardware counters, with the instruction counts that the published watts imply."""
    frame = volta()
    columns = {c.removeprefix("ctr_"): frame[c].to_numpy() for c in frame if c.startswith("ctr_")}
    columns["Elapsed_Cycles"] = frame["time_s_hw"].to_numpy() * constants()["reference_clock_ghz"] * 1e9
    instructions = {c.removeprefix("act_"): frame[c].to_numpy() for c in frame if c.startswith("act_")}
    return hw_activity(
        columns,
        instructions,
        lanes=published_lanes() if lanes is None else lanes,
        clock_ghz=constants()["reference_clock_ghz"],
        sm_count=SMS,
    )


def published_lanes() -> np.ndarray:
    return volta()["lanes_y_hw_published"].fillna(32.0).to_numpy()  # cat6 has no lane term


def mended_lanes() -> np.ndarray:
    return np.where(volta()["kernel"].isin(WRAPPED), 32.0, published_lanes())


def sheet(model: AccelWattch, activity: AccelWattchActivity) -> dict[str, np.ndarray]:
    """Our components under the sheet's names, all kernels in one vmapped call."""
    parts = jax.jit(jax.vmap(lambda a: sheet_columns(model.watts_by_part(a))))(activity)
    return {part: np.asarray(watts) for part, watts in parts.items()}


def published(frame: pd.DataFrame, prefix: str) -> dict[str, np.ndarray]:
    """A sheet's components by AccelWattch's names; the constant and the total are not components of the table's."""
    marked = [c for c in frame if (c.startswith(f"{prefix}_") and c.endswith("P_W")) or c == f"{prefix}_FP_EXP_W"]
    unscaled = "unscaled" in prefix
    names = [c for c in marked if unscaled or "unscaled" not in c]
    return {c.removeprefix(f"{prefix}_").removesuffix("_W"): frame[c].to_numpy() for c in names}


def total(parts: dict[str, np.ndarray]) -> np.ndarray:
    return np.sum(list(parts.values()), axis=0)


def mape(watts: np.ndarray, measured: np.ndarray) -> float:
    known = ~np.isnan(watts)
    return float(np.mean(np.abs(watts - measured)[known] / measured[known]) * 100)


def test_hw_every_component_of_every_kernel():
    ours, theirs = sheet(AccelWattch.variant("hw"), launches()), published(volta(), "hw")
    assert len(volta()) == 25
    assert theirs.keys() - ours.keys() == set()
    for part, watts in ours.items():
        np.testing.assert_allclose(watts, theirs.get(part, 0.0), atol=WATTS, rtol=0, err_msg=part)


def test_hw_static_category_follows_from_the_instructions():
    weights = jax.vmap(AccelWattch.variant("hw").static.weights)(launches())
    assert [CATEGORIES[i] for i in np.argmax(weights, axis=1)] == volta()["static_cat_hw"].tolist()


def test_hw_static_from_the_published_category_and_lanes():
    static = StaticPower.from_table()
    weights = np.stack([one_hot(category) for category in volta()["static_cat_hw"]])
    watts = jax.vmap(lambda w, a: static.of_mix(w, 3.0, a))(weights, launches())
    np.testing.assert_allclose(watts, volta()["hw_STATICP_W"], atol=WATTS)


def test_hw_error_as_published_and_with_the_wrapped_lanes_mended():
    model, measured = AccelWattch.variant("hw"), volta()["meas_W"].to_numpy()
    assert mape(total(sheet(model, launches())), measured) == pytest.approx(7.46, abs=0.01)
    assert mape(total(sheet(model, launches(mended_lanes()))), measured) == pytest.approx(7.11, abs=0.01)


def test_hw_components_of_our_vocabulary_add_up():
    model = AccelWattch.variant("hw")
    power = jax.vmap(model.power)(launches())
    np.testing.assert_allclose(power.watts, total(sheet(model, launches())), rtol=1e-12)
    np.testing.assert_allclose(power.watts, total(published(volta(), "hw")), atol=WATTS)


def test_hybrid_every_component_but_the_simulated_l2_and_noc():
    """HYBRID drives L2 and NoC with the simulator's counts (not public), everything else with the hardware's."""
    ours, theirs = sheet(AccelWattch.variant("hybrid"), launches()), published(volta(), "hybrid")
    for part in ours.keys() - {"L2CP"}:
        np.testing.assert_allclose(ours[part], theirs.get(part, 0.0), atol=WATTS, rtol=0, err_msg=part)
    assert np.abs(ours["L2CP"] - theirs["L2CP"]).max() > 10  # kmeans: so the activity is another one


def simulated_l2() -> np.ndarray:
    """HYBRID's L2 and NoC watts as the SASS sheet implies them: the simulator's events, HYBRID's energies.

    The energies of all L2 and NoC counters differ by one factor between the variants, and the instruction buffer's
    watts give the simulated time (the instructions are the same).
    """
    frame, sass, hybrid = volta(), AccelWattch.variant("sass_sim"), AccelWattch.variant("hybrid")
    rows = [COUNTERS.index(name) for name in HYBRID_SIMULATED]
    factor = np.asarray(hybrid.energy_pj)[rows] / np.asarray(sass.energy_pj)[rows]
    np.testing.assert_allclose(factor, factor[0], rtol=1e-6)
    return factor[0] * frame["sass_L2CP_W"].to_numpy() * simulated_seconds() / frame["time_s_hw"].to_numpy()


def simulated_seconds() -> np.ndarray:
    energy = float(AccelWattch.variant("sass_sim").energy_pj[COUNTERS.index("TOT_INST")])
    return volta()["act_TOT_INST"].to_numpy() * energy * 1e-12 / volta()["sass_IBP_W"].to_numpy()


def test_hybrid_l2_and_noc_are_the_simulators():
    theirs = volta()["hybrid_L2CP_W"].to_numpy()
    np.testing.assert_allclose(simulated_l2(), theirs, rtol=0.011)  # kernels of several launches: means of ratios
    assert np.median(np.abs(simulated_l2() / theirs - 1)) < 1e-3


def test_hybrid_error():
    ours = sheet(AccelWattch.variant("hybrid"), launches())
    measured = volta()["meas_W"].to_numpy()
    published_l2 = total(ours) - ours["L2CP"] + volta()["hybrid_L2CP_W"].to_numpy()
    assert mape(published_l2, measured) == pytest.approx(8.15, abs=0.01)
    assert mape(total(ours) - ours["L2CP"] + simulated_l2(), measured) == pytest.approx(8.15, abs=0.01)
    assert mape(total(ours), measured) == pytest.approx(8.00, abs=0.01)  # were L2 and NoC the hardware's too


def test_sass_execution_units_from_the_same_instructions():
    """The simulator runs the traces whose instructions the HW watts imply; only its time differs."""
    model, frame = AccelWattch.variant("sass_sim"), volta()
    watts = np.asarray(launches().counts) * np.asarray(model.energy_pj) * 1e-12 / simulated_seconds()[:, None]
    held = [c.removeprefix("act_") for c in frame if c.startswith("act_")]
    checked = 0
    for part, rows in part_counters().items():
        if part != "IBP" and all(COUNTERS[row] in held for row in rows) and f"sass_{part}_W" in frame:
            ours = watts[:, list(rows)].sum(axis=1)
            np.testing.assert_allclose(ours, frame[f"sass_{part}_W"], atol=0.013, rtol=0, err_msg=part)
            checked += 1
    assert checked == 13


@pytest.mark.parametrize(("variant", "error"), [("sass", 9.23), ("ptx", 13.65)])
def test_simulated_variants_from_component_columns(variant, error):
    """Their activities are not public: this recomputes a quoted number, it does not claim it."""
    parts = published(table("volta"), variant)
    power = by_component({p: w for p, w in parts.items() if p != "TCP"}).watts + np.nan_to_num(parts.get("TCP", 0.0))
    assert mape(np.asarray(power), table("volta")["meas_W"].to_numpy()) == pytest.approx(error, abs=0.01)


def pascal(variant: str) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Components scaled by our factors from the unscaled columns, and the sheet's scaled ones."""
    target = TargetScaling(dynamic=TargetScaling.at_node("tsmc_16ff").dynamic, idle=superseded_idle_correction())
    scaled = target(published(table("pascal"), f"{variant}_unscaled"))
    return {part: np.asarray(w) for part, w in scaled.items()}, published(table("pascal"), variant)


@pytest.mark.parametrize("variant", ["sass", "ptx"])
def test_pascal_scaled_components_from_the_unscaled(variant):
    ours, theirs = pascal(variant)
    assert ours.keys() == theirs.keys()
    for part in ours.keys() - ({"STATICP"} if variant == "sass" else set()):
        np.testing.assert_allclose(ours[part], theirs[part], atol=WATTS, rtol=0, err_msg=part)


def test_pascal_error():
    """The SASS sheet's two tables hold different static watts (up to 0.33 W): 10.99 needs the scaled table's."""
    measured, unscaled = table("pascal")["meas_W"].to_numpy(), published(table("pascal"), "sass_unscaled")
    ours, theirs = pascal("sass")
    assert mape(total(ours | {"STATICP": theirs["STATICP"]}), measured) == pytest.approx(10.99, abs=0.01)
    assert mape(total(ours), measured) == pytest.approx(10.96, abs=0.01)
    only_dynamic = {p: np.asarray(w) for p, w in TargetScaling.at_node("tsmc_16ff")(unscaled).items()}
    assert mape(total(unscaled), measured) == pytest.approx(12.84, abs=0.01)
    assert mape(total(only_dynamic), measured) == pytest.approx(12.10, abs=0.01)


@pytest.mark.parametrize(
    ("variant", "error", "omitting"), [("sass", 12.95, None), ("ptx", 14.28, 14.28), ("ptx", 14.03, None)]
)
def test_turing_totals(variant, error, omitting):
    """The PTX sheet's total leaves out instruction buffer, L1I, L1D, texture and constant cache and shared memory."""
    frame = table("turing")
    target = TargetScaling(constant=constants()[f"turing_constant_{variant}_sim"])
    parts = {part: np.asarray(watts) for part, watts in target(published(frame, variant)).items()}
    if omitting:
        parts = {p: w for p, w in parts.items() if p not in ("IBP", "ICP", "DCP", "TCP", "CCP", "SHRDP")}
    watts, measured = total(parts), frame["meas_W"].to_numpy()
    assert mape(watts, measured) == pytest.approx(error, abs=0.01)
    if omitting or variant == "sass":  # the sheet's own totals, as a check of what it adds up
        np.testing.assert_allclose(watts, frame[f"{variant}_total_W"], atol=WATTS)


@pytest.mark.parametrize(("gpu", "sms", "error"), [("pascal", 28, 20.8), ("turing", 34, 18.0)])
def test_equations_9_and_10_taken_literally(gpu, sms, error):
    """Static watts per SM of an 80-SM GPU, times the target's SMs, from the sheets' components."""
    frame = table(gpu)
    factor = constants()["turing_constant_sass_sim"] if gpu == "turing" else 1.0
    released, per_sm = StaticPower.from_table("released"), StaticPower.from_table("released", sm_scaling="per_sm")
    activity = AccelWattchActivity.of({"INT_ACC": 1.0}, cycles=1.0, clock_ghz=1.0, lanes=32.0, sm_count=sms)
    ratio = float(per_sm(activity) / released(activity))
    parts = TargetScaling(constant=factor, static=ratio)(published(frame, "sass"))
    assert mape(total(parts), frame["meas_W"].to_numpy()) == pytest.approx(error, abs=0.05)


def simulated_accesses(part: str, counter: str) -> np.ndarray:
    """The accesses that SASS_SIM's published watts of a part imply, were they all of one counter."""
    frame, energies = volta(), AccelWattch.variant("sass_sim").energy_pj
    energy = 1e-12 * np.asarray(energies)[[COUNTERS.index("INT_ACC"), COUNTERS.index(counter)]]
    seconds = frame["act_INT_ACC"] * energy[0] / frame["sass_INTP_W"]
    return (frame[f"sass_{part}_W"] * seconds / energy[1]).to_numpy()


def test_the_simulator_counts_as_designs_and_traces_are_counted() -> None:
    """Two instructions a fetch; thread instructions a cycle over 256 as duty; instructions as in the HW variant."""
    instructions = volta()["act_TOT_INST"].to_numpy()
    assert simulated_accesses("IBP", "TOT_INST") == pytest.approx(instructions, rel=2e-3)
    fetches = simulated_accesses("ICP", "IC_H") / instructions * FETCHED
    assert fetches.min() > 0.99 and np.median(fetches) < 1.05  # misses count here as the hits that cost the same
    duty = WARP_SIZE * instructions / FULL_RATE / simulated_accesses("PIPEP", "PIPE_A")
    assert duty.min() > 0.99 and np.median(duty) < 1.05  # all lanes are taken to work
