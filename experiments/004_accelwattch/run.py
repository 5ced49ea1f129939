"""AccelWattch's published numbers from our model: errors, shares, relative power, lanes, constant power.

Run with ``python experiments/004_accelwattch/run.py [--data FOLDER] [--out FOLDER]``: the data are AccelWattch's tidy
tables (volta_kernels.csv ...; their README says where they come from). Prints the README's tables, writes two figures.
"""

import argparse
from pathlib import Path

import equinox as eqx
import jax
import numpy as np
import pandas as pd
import plotly.graph_objects as go

from dse.base.package_tables import read_table
from dse.calibration.bootstrap import mean_interval
from dse.power.accelwattch import AccelWattch, TargetScaling, sheet_columns, superseded_idle_correction
from dse.power.counters import AccelWattchActivity, constants, hw_activity
from dse.power.static import CATEGORIES, StaticPower
from experiments import data
from experiments.common.readme_tables import markdown, write_table
from experiments.common.voltage import cubic_power, fit_cubic

HERE = Path(__file__).parent
VOLTA_SMS = 80.0
WRAPPED = ("binomialOptions_k1", "cudaTensorCoreGemm_k1", "sad_k1")
OMITTED = ("IBP", "ICP", "DCP", "TCP", "CCP", "SHRDP")  # by the sheet's total of Turing PTX


def components(frame: pd.DataFrame, prefix: str) -> pd.DataFrame:
    """A sheet's component watts by AccelWattch's names, a row a kernel; kernels that the sheet lacks are left out."""
    ends = tuple(f"{prefix}_{name}_W" for name in ("FP_EXP",))
    columns = [c for c in frame if (c.startswith(f"{prefix}_") and c.endswith("P_W")) or c in ends]
    columns = [c for c in columns if "unscaled" in prefix or "unscaled" not in c]
    parts = frame.set_index("kernel")[columns].dropna(how="all").fillna(0.0)
    return parts.rename(columns=lambda c: c.removeprefix(f"{prefix}_").removesuffix("_W"))


def on_target(parts: pd.DataFrame, target: TargetScaling) -> pd.DataFrame:
    """Component watts on another GPU."""
    scaled = target({part: parts[part].to_numpy() for part in parts})
    return pd.DataFrame({part: np.asarray(watts) for part, watts in scaled.items()}, index=parts.index)


def launches(volta: pd.DataFrame, mended: bool) -> AccelWattchActivity:
    """The 25 kernels with hardware counters, with published lanes or with those of the wrapped counts mended to 32."""
    clock = constants()["reference_clock_ghz"]
    columns = {c.removeprefix("ctr_"): volta[c].to_numpy() for c in volta if c.startswith("ctr_")}
    columns["Elapsed_Cycles"] = volta["time_s_hw"].to_numpy() * clock * 1e9
    instructions = {c.removeprefix("act_"): volta[c].to_numpy() for c in volta if c.startswith("act_")}
    lanes = volta["lanes_y_hw_published"].fillna(32.0).to_numpy()  # tensor mixes have no lane term
    lanes = np.where(mended & volta["kernel"].isin(WRAPPED), 32.0, lanes)
    return hw_activity(columns, instructions, lanes=lanes, clock_ghz=clock, sm_count=VOLTA_SMS)


def modelled(volta: pd.DataFrame, model: AccelWattch, mended: bool = False) -> pd.DataFrame:
    """Component watts of our model, all kernels in one vmapped call."""
    parts = jax.jit(jax.vmap(lambda a: sheet_columns(model.watts_by_part(a))))(launches(volta, mended))
    return pd.DataFrame({p: np.asarray(w) for p, w in parts.items()}, index=pd.Index(volta["kernel"]))


def errors(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Return the mean absolute percentage error of every variant on every GPU, ours or recomputed, by where from."""
    volta, pascal, turing = (tables[gpu] for gpu in ("volta", "pascal", "turing"))
    with_counters = volta[volta["hw_total_W"].notna()].reset_index(drop=True)
    hybrid = modelled(with_counters, AccelWattch.variant("hybrid"))
    simulated = components(with_counters, "hybrid")["L2CP"]
    node, idle = TargetScaling.at_node("tsmc_16ff"), superseded_idle_correction()
    unscaled, ours = components(pascal, "sass_unscaled"), "our model"
    scaled = on_target(unscaled, TargetScaling(dynamic=node.dynamic, idle=idle))
    titan = components(pascal, "sass")
    with_static = scaled.assign(STATICP=titan["STATICP"])
    turing_ptx = on_target(components(turing, "ptx"), TargetScaling(constant=constants()["turing_constant_ptx_sim"]))
    turing_sass = on_target(components(turing, "sass"), TargetScaling(constant=constants()["turing_constant_sass_sim"]))
    ptx = on_target(components(pascal, "ptx_unscaled"), TargetScaling(dynamic=node.dynamic, idle=idle))
    by_hand = "published components, our factors"
    hw = AccelWattch.variant("hw")
    rows = [
        ("Volta", "HW", modelled(with_counters, hw), volta, 7.46, ours),
        ("Volta", "HW, wrapped lanes mended", modelled(with_counters, hw, True), volta, 7.11, ours),
        ("Volta", "HW, mended, static paper", modelled(with_counters, _read(hw, "paper"), True), volta, None, ours),
        ("Volta", "HW, mended, static blend", modelled(with_counters, _read(hw, "blend"), True), volta, None, ours),
        ("Volta", "HYBRID, L2+NoC as published", hybrid.assign(L2CP=simulated), volta, 8.15, ours),
        ("Volta", "HYBRID, L2+NoC from hardware", hybrid, volta, None, ours),
        ("Volta", "SASS_SIM", components(volta, "sass"), volta, 9.23, "published components, quoted"),
        ("Volta", "PTX_SIM", components(volta, "ptx"), volta, 13.65, "published components, quoted"),
        ("Pascal", "SASS_SIM, unscaled", unscaled, pascal, 12.84, "published components, quoted"),
        ("Pascal", "SASS_SIM, dynamic scaled", on_target(unscaled, node), pascal, 12.10, by_hand),
        ("Pascal", "SASS_SIM, idle SMs too", scaled, pascal, None, by_hand),
        ("Pascal", "SASS_SIM, static of the scaled table", with_static, pascal, 10.99, by_hand),
        ("Pascal", "SASS_SIM, static by Eq. 9, 10", _static(titan, "per_sm", 28), pascal, None, by_hand),
        ("Pascal", "SASS_SIM, static by first SM", _static(titan, "first_sm", 28), pascal, None, by_hand),
        ("Pascal", "PTX_SIM", ptx, pascal, None, by_hand),
        ("Turing", "SASS_SIM", turing_sass, turing, 12.95, by_hand),
        ("Turing", "SASS_SIM, constant of Volta", components(turing, "sass"), turing, 19.8, "published components"),
        ("Turing", "SASS_SIM, static by Eq. 9, 10", _static(turing_sass, "per_sm", 34), turing, None, by_hand),
        ("Turing", "SASS_SIM, static by first SM", _static(turing_sass, "first_sm", 34), turing, None, by_hand),
        (
            "Turing",
            "PTX_SIM, sheet's omissions",
            turing_ptx.drop(columns=list(OMITTED), errors="ignore"),
            turing,
            14.28,
            by_hand,
        ),
        ("Turing", "PTX_SIM", turing_ptx, turing, 14.03, by_hand),
    ]
    return pd.DataFrame(
        {
            "gpu": gpu,
            "variant": name,
            "kernels": len(parts),
            "MAPE %": round(float(off(parts, frame).mean()), 2),
            "published %": published,
            **spread(parts, frame),
            "from": source,
        }
        for gpu, name, parts, frame, published, source in rows
    )


def _read(model: AccelWattch, reading: str) -> AccelWattch:
    """The same model with another reading of its static power."""
    return eqx.tree_at(lambda m: m.static, model, StaticPower.from_table(reading))


def _static(parts: pd.DataFrame, sm_scaling: str, sms: int) -> pd.DataFrame:
    """Component watts with another reading of how static power follows the SM count."""
    activity = AccelWattchActivity.of({}, cycles=1.0, clock_ghz=1.0, lanes=1.0, sm_count=sms)
    share = [StaticPower.from_table(sm_scaling=name).sm_share(activity) for name in (sm_scaling, "released")]
    return on_target(parts, TargetScaling(static=share[0] / share[1]))


def off(parts: pd.DataFrame, frame: pd.DataFrame) -> pd.Series:
    """Absolute error of the summed components against the measured power [%], a row a kernel."""
    measured = frame.set_index("kernel")["meas_W"].reindex(parts.index)
    return 100 * (parts.sum(axis=1) - measured).abs() / measured


def spread(parts: pd.DataFrame, frame: pd.DataFrame) -> dict[str, float]:
    """The statistics of the paper's Fig. 7: 95 % interval of the mean (kernels drawn with replacement) and the largest
    error [%], the share of kernels within 10 % [%], and Pearson's correlation of the watts."""
    errors = off(parts, frame)
    low, high = mean_interval(errors.to_numpy(), list(errors.index))
    watts = np.stack([parts.sum(axis=1), frame.set_index("kernel")["meas_W"].reindex(parts.index)])
    return {
        "low %": round(low, 1),
        "high %": round(high, 1),
        "max %": round(float(errors.max()), 1),
        "within 10 %": round(100 * float((errors <= 10).mean())),
        "r": round(float(np.corrcoef(watts)[0, 1]), 3),
    }


def summary(found: pd.DataFrame) -> str:
    """Return the README's table of errors and their statistics."""
    rows = [
        [row["gpu"], row["variant"], row["from"], str(row["kernels"]), f"{row['MAPE %']:.2f}",
         "" if np.isnan(row["published %"]) else f"{row['published %']:g}",
         f"{row['low %']:.1f} to {row['high %']:.1f}", f"{row['max %']:.1f}",
         f"{row['within 10 %']:.0f}", f"{row['r']:.3f}"]
        for row in found.to_dict("records")
    ]  # fmt: skip
    of_errors = ["mean %", "published %", "95 % interval", "largest %", "kernels within 10 %, %"]
    return markdown(["GPU", "variant", "from", "kernels", *of_errors, "r"], rows, 3)


def shares(volta: pd.DataFrame) -> pd.DataFrame:
    """Return every component's share of the total on Volta, a row a kernel (SASS_SIM as published; it has an RF)."""
    parts = components(volta, "sass")
    return parts.div(parts.sum(axis=1), axis=0)


def relative(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Return measured and modelled power of one GPU relative to another, -1, and how often the signs agree."""
    factor = {"volta": 1.0, "pascal": 1.0, "turing": constants()["turing_constant_sass_sim"]}
    ours = {
        gpu: on_target(components(frame, "sass"), TargetScaling(constant=factor[gpu])).sum(axis=1)
        for gpu, frame in tables.items()
    }
    measured = {gpu: frame.set_index("kernel")["meas_W"] for gpu, frame in tables.items()}
    rows = []
    for one, other in (("pascal", "volta"), ("turing", "volta"), ("turing", "pascal")):
        both = pd.DataFrame({"m": measured[one] / measured[other] - 1, "o": ours[one] / ours[other] - 1}).dropna()
        agree = int((np.sign(both["m"]) == np.sign(both["o"])).sum())
        rows.append(
            {
                "pair": f"{one}/{other}",
                "kernels": len(both),
                "same sign": agree,
                "measured, mean %": round(100 * both["m"].mean(), 1),
                "modelled, mean %": round(100 * both["o"].mean(), 1),
            }
        )
    return pd.DataFrame(rows)


def lane_ratios() -> pd.DataFrame:
    """Return the first lane's watts over a later one's, by category of the static table."""
    rows = [row for row in read_table("power/accelwattch_static.csv") if float(row["added_lane_w"]) > 0]
    return pd.DataFrame(
        {
            "category": row["category"],
            "mix": row["mix"],
            "first lane / later lane": round(float(row["first_lane_w"]) / float(row["added_lane_w"]), 1),
        }
        for row in rows
    )


def sawtooth() -> dict[str, np.ndarray]:
    """Return static watts over active lanes of one, two and three units at work (the paper's reading)."""
    static, lanes = StaticPower.from_table("paper"), np.arange(1.0, 33.0)
    units = {"INT_MUL (one unit)": ("intmul", 1.0), "INT+FP (two)": ("cat2", 2.0), "INT+FP+SFU (three)": ("cat4", 3.0)}
    out = {"lanes": lanes}
    for name, (category, count) in units.items():
        row = CATEGORIES.index(category)
        out[name] = np.asarray(static.first_lane_w[row] + static.added_lane_w[row] * static.added_lanes(lanes, count))
    return out


def constant_power(noise: float) -> tuple[float, float]:
    """Return (mean, standard deviation) of the constant power that the cubic finds on synthetic sweeps of clocks [W].

    Four kernels from 45 to 210 W at 1.417 GHz, twelve clocks, relative Gaussian ``noise``, true intercept 32.5 W.
    """
    clocks = np.linspace(0.6, 1.417, 12)
    cubic, linear = np.array([48.0, 30.0, 20.0, 1.0]), np.array([27.3, 23.6, 17.9, 8.0])
    exact = np.asarray(cubic_power(clocks, cubic[:, None], linear[:, None], 32.5))
    rng = np.random.default_rng(0)
    found = [
        float(fit_cubic(clocks, exact * (1 + noise * rng.standard_normal(exact.shape))).constant) for _ in range(100)
    ]
    return float(np.mean(found)), float(np.std(found))


def drawn_shares(share: pd.DataFrame) -> go.Figure:
    """Stacked shares of the largest components, a bar a kernel."""
    largest = list(share.mean().sort_values(ascending=False).index[:10])
    shown = share[largest].assign(others=1 - share[largest].sum(axis=1))
    figure = go.Figure([go.Bar(name=part, y=shown.index, x=100 * shown[part], orientation="h") for part in shown])
    figure.update_layout(barmode="stack", title="Components of power on Volta (SASS_SIM)", xaxis_title="share [%]")
    return figure


def drawn_sawtooth(lines: dict[str, np.ndarray]) -> go.Figure:
    """Static power over active lanes."""
    named = {name: watts for name, watts in lines.items() if name != "lanes"}
    figure = go.Figure(
        [go.Scatter(name=name, x=lines["lanes"], y=watts, mode="lines+markers") for name, watts in named.items()]
    )
    figure.update_layout(title="Static power over active lanes", xaxis_title="lanes", yaxis_title="static power [W]")
    return figure


def main() -> None:
    """Write the README's table, print what is finer, and write the two figures as html."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--data", type=Path, default=data.ACCELWATTCH, help="folder with {volta,pascal,turing}_kernels.csv"
    )
    parser.add_argument("--out", type=Path, default=Path("out_accelwattch"), help="where the figures go (html)")
    options = parser.parse_args()
    tables = {gpu: pd.read_csv(options.data / f"{gpu}_kernels.csv") for gpu in ("volta", "pascal", "turing")}
    with jax.enable_x64(True):
        found = errors(tables)
        if options.data == data.ACCELWATTCH:
            write_table(HERE / "README.md", "statistics", summary(found))
        share = shares(tables["volta"])
        print((100 * share.mean()).sort_values(ascending=False).head(10).round(1).to_string(), end="\n\n")
        tensor = share["TENSORP"][share["TENSORP"] > 0]
        print(f"register file + static + constant {100 * share[['RFP', 'STATICP', 'CONSTP']].mean().sum():.1f} %")
        print(
            f"tensor cores where used: {100 * np.exp(np.log(tensor).mean()):.1f} % (geometric mean of {len(tensor)})\n"
        )
        print(relative(tables).to_string(index=False), end="\n\n")
        print(lane_ratios().to_string(index=False), end="\n\n")
        for noise in (0.0, 0.002, 0.01):
            mean, spread = constant_power(noise)
            print(f"constant power with {100 * noise:g} % noise: {mean:.2f} +- {spread:.2f} W (true 32.5)")
        lines = sawtooth()
    options.out.mkdir(parents=True, exist_ok=True)
    drawn_shares(share).write_html(options.out / "shares.html")
    drawn_sawtooth(lines).write_html(options.out / "sawtooth.html")
    print(f"\nfigures in {options.out}")
    print({name: [round(float(w[i]), 2) for i in (0, 15, 16, 31)] for name, w in lines.items()})


if __name__ == "__main__":
    main()
