"""Fit the board power model to measured power of an H200, and judge it on shape families left out of the fit.

Run from a checkout with the measured tables beside it (../shared/data/measured); ``--write`` puts the fitted
coefficients and the errors on held-out families into dse/data/power.
"""

import argparse
import csv
import zlib
from functools import cache
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor

from dse.calibrate import launches
from dse.calibrate.board_fit import FREE, LONG_US, fit, predicted, prior_model, watts_of, with_values
from dse.calibrate.fit import descend
from dse.calibrate.launches import Rows
from dse.hardware.gpu import Gpu
from dse.hardware.presets import load_sheet
from dse.power.activity import Activity, activity
from dse.power.board import BoardPower
from dse.tables import read_table
from dse.timing.amali import Amali
from dse.workload.kernel import TENSOR_DTYPES
from dse.workload.llm import Target
from dse.workload.parse import load_workload

HERE = Path(__file__).resolve().parent
DATA = HERE.parents[1] / ".." / "shared" / "data" / "measured"
TABLES = HERE.parents[1] / "dse" / "data" / "power"

PAIR_US = 50.0
"""Short runs whose time is compared with the sustained run's: launch overheads no longer matter."""

HELD_OUT = (7, 8, 9)
"""Of ten classes of shape families, by checksum of the family's name, those that no fit sees."""


def load_rows(table: pd.DataFrame, preset: str) -> Rows:
    """Rows of a measured table on a preset, with the mark of the families that no fit sees."""
    rows = launches.load_rows(table, preset)
    rows.table["held_out"] = [zlib.crc32(name.encode()) % 10 in HELD_OUT for name in rows.table["family"]]
    return rows


@cache
def power_rows() -> Rows:
    """All measured rows with power."""
    return load_rows(pd.read_csv(DATA / "aiconfigurator__power.csv"), "h200")


@cache
def pair_rows() -> Rows:
    """GEMMs of an H200 measured both short and sustained; column ``sustained_us`` beside the short ``latency_us``."""
    shape = ["m", "n", "k"]
    short = pd.read_csv(DATA / "aiconfigurator__gemm.csv", low_memory=False)
    short = short[short.device.str.contains("H200") & (short.dtype == "bf16") & (short.latency_us >= PAIR_US)]
    power = pd.read_csv(DATA / "aiconfigurator__power.csv")
    long = power[power.op == "gemm"][[*shape, "latency_us", "power_w"]]
    long = long.rename(columns={"latency_us": "sustained_us"})
    return load_rows(short.drop(columns="power_w").merge(long, on=shape), "h200")


# ---- the judgement


def ape(rows: Rows, watts: np.ndarray) -> np.ndarray:
    """|predicted / measured - 1| [%]."""
    return 100 * np.abs(np.asarray(watts) / rows.table.power_w.to_numpy() - 1)


def scores(rows: Rows, watts: np.ndarray, keep: np.ndarray) -> dict[str, float]:
    """Mean and median error [%] and the geometric mean of predicted over measured, of the kept rows."""
    error = ape(rows, watts)[keep]
    bias = np.exp(np.mean(np.log(np.asarray(watts)[keep] / rows.table.power_w.to_numpy()[keep])))
    return {"rows": int(keep.sum()), "mean": error.mean(), "median": float(np.median(error)), "bias": bias}


def masks(rows: Rows) -> dict[str, np.ndarray]:
    """Long rows to fit on, long rows left out, and short rows."""
    long, out = rows.table.latency_us.to_numpy() >= LONG_US, rows.table.held_out.to_numpy()
    return {"train": long & ~out, "held out": long & out, "short": ~long}


def folds(rows: Rows, count: int = 5) -> np.ndarray:
    """A fold for each row, by family, independent of the held-out split."""
    return np.array([zlib.crc32(name[::-1].encode()) % count for name in rows.table.family])


def cross_validated(free: tuple[str, ...] = FREE, all_rows: bool = False) -> np.ndarray:
    """Watts of each row from a fit without its family's fold: among the training rows, or among all long rows."""
    rows, pairs = power_rows(), pair_rows()
    long = rows.table.latency_us.to_numpy() >= LONG_US
    use, pair_use = (long, np.ones(len(pairs.table), bool)) if all_rows else (masks(rows)["train"], _seen(pairs))
    fold, pair_fold = folds(rows), folds(pairs)
    watts = np.ones(len(use))
    for k in np.unique(fold):
        values = fit(rows, use & (fold != k), pairs, pair_use & (pair_fold != k), free)
        watts[fold == k] = watts_of(with_values(prior_model(), arrays(values)), rows)[fold == k]
    return watts


def _seen(pairs: Rows) -> np.ndarray:
    """Pairs of families that a fit may see."""
    return ~pairs.table.held_out.to_numpy()


def interval(rows: Rows, watts: np.ndarray, keep: np.ndarray) -> tuple[float, float]:
    """95 % interval of the mean error [%] over families drawn with replacement."""
    error = pd.Series(ape(rows, watts)[keep]).groupby(rows.table.family.to_numpy()[keep]).agg(["sum", "size"])
    drawn = np.random.default_rng(0).integers(0, len(error), (2000, len(error)))
    means = error["sum"].to_numpy()[drawn].sum(axis=1) / error["size"].to_numpy()[drawn].sum(axis=1)
    return float(np.percentile(means, 2.5)), float(np.percentile(means, 97.5))


def arrays(values: dict[str, float]) -> dict[str, jax.Array]:
    """Return numbers as arrays."""
    return {name: jnp.asarray(value) for name, value in values.items()}


def gradient_boosting(rows: Rows) -> np.ndarray:
    """A flexible regression on the shapes alone, fitted to the training rows: how far hidden states follow shapes."""
    columns = ["m", "n", "k", "batch", "heads", "kv_heads", "head_dim", "seq_q", "seq_kv"]
    table = rows.table
    features = np.log1p(table[columns]).assign(op=table.op.astype("category").cat.codes).to_numpy()
    target, train = np.log(table.power_w.to_numpy()), masks(rows)["train"]
    forest = HistGradientBoostingRegressor(
        loss="absolute_error", max_iter=200, min_samples_leaf=8, learning_rate=0.05, random_state=0
    )
    return np.exp(forest.fit(features[train], target[train]).predict(features))


def compact(rows: Rows) -> np.ndarray:
    """The compact physical fit of spec/operators.md: base, active SMs, FMAs, L2 and DRAM bytes, a soft cap."""
    counts, train = rows.measured, masks(rows)["train"]
    fma = counts.tensor_fma + counts.softmax_fma + counts.padding_fma
    columns = (
        counts.nanoseconds * counts.busy,
        fma,
        counts.sfu,
        counts.l2_bytes - counts.dram_bytes,
        counts.dram_bytes,
    )
    rates = jnp.stack([x / counts.nanoseconds for x in columns], axis=1)
    scale, watts = rates[train].mean(axis=0), jnp.asarray(rows.table.power_w.to_numpy())

    def predict(theta: jax.Array) -> jax.Array:
        free = 60.0 + jnp.exp(theta[0]) + rates / scale @ jnp.exp(theta[1:])
        return free - 10.0 * jax.nn.softplus((free - 693.0) / 10.0)

    def loss(theta: jax.Array) -> jax.Array:
        return jnp.mean(jnp.sqrt((predict(theta)[train] / watts[train] - 1) ** 2 + 1e-4))

    start = jnp.log(jnp.full(1 + rates.shape[1], 100.0))
    return np.asarray(predict(jax.jit(lambda x: descend(loss, x, 800))(start)))


def baselines(rows: Rows) -> dict[str, np.ndarray]:
    """What must be beaten: the constant with the least error in training, the power limit, a compact fit."""
    train, measured = masks(rows)["train"], rows.table.power_w.to_numpy()
    trials = np.arange(200.0, 701.0, 5.0)
    best = trials[np.argmin([np.mean(np.abs(c / measured[train] - 1)) for c in trials])]
    ones = np.ones(len(measured))
    return {"constant": best * ones, "TDP": 700.0 * ones, "compact physical fit": compact(rows)}


# ---- the power limit in time


def slowdowns(model: BoardPower, pairs: Rows) -> dict[str, np.ndarray]:
    """Sustained over short time [1]: measured, of the model, and of laws with one exponent."""
    uncapped = jax.jit(jax.vmap(lambda counts: model.uncapped(counts, pairs.gpu).watts))(pairs.measured)
    over = np.maximum(np.asarray(uncapped) / float(model.limit(pairs.gpu)), 1.0)
    _, slower = jax.jit(predicted)(model, pairs.measured, pairs.measured_timing, pairs.gpu)
    laws = {f"max(1, P/limit)^{gamma}": over**gamma for gamma in (0.33, 0.4)}
    measured = (pairs.table.sustained_us / pairs.table.latency_us).to_numpy()
    return {"measured": measured, "none": np.ones(len(over)), "model": np.asarray(slower)} | laws


# ---- other devices, seen by no fit

NETWORKS = {"anl_Llama-2-7b-hf": "llama2_7b", "anl_Meta-Llama-3-8B": "llama3_8b"}
DEVICES = {"A100-SXM4-40GB": "a100_sxm_40gb", "A100-SXM4-80GB": "a100_sxm_80gb", "H100-SXM5-80GB": "h100_sxm"}


@cache
def serving_activity(preset: str, text: str) -> tuple[Gpu, Activity]:
    """The activities of all launches of a workload together, as AMALI chooses its kernels."""
    gpu = load_sheet(preset).record()
    capability = float(gpu.compute_capability)
    workload = load_workload(text, Target((capability, capability), bool(gpu.warpgroup_mma > 0)))
    kernels = jax.tree.map(jnp.asarray, workload.kernels)
    timing = jax.jit(jax.vmap(lambda kernel: Amali()(kernel, gpu)))(kernels)
    counts = jax.vmap(lambda kernel, timing: activity(kernel, timing, gpu))(kernels, timing)
    time = np.where(np.asarray(timing.feasible) > 0, np.asarray(timing.microseconds), np.inf)
    best = jnp.asarray([part.start + int(np.argmin(time[part])) for part in workload.slices])
    runs = {phase.name: phase.runs for phase in workload.phases}
    repeats = jnp.asarray([o.repeats * runs.get(o.phase, 1.0) for o in workload.operators])
    return gpu, jax.tree.map(lambda x: jnp.sum(x[best] * repeats), counts)


def serving_watts(model: BoardPower, preset: str, text: str, microseconds: float) -> float:
    """Average watts of a workload that takes ``microseconds``: the activities of all its launches, over that time."""
    gpu, total = serving_activity(preset, text)
    dtype = jnp.asarray(TENSOR_DTYPES.index("fp16"))
    rest = {"nanoseconds": jnp.asarray(microseconds * 1e3), "clock_ghz": gpu.tensor_clock_ghz, "busy": jnp.ones(())}
    return min(float(model.uncapped(total._replace(tensor_dtype=dtype, **rest), gpu).watts), float(model.limit(gpu)))


def serving_rows() -> pd.DataFrame:
    """Measured serving power of A100 and H100: generation of 1024 tokens (LLM-Inference-Bench), prefill (splitwise)."""
    bench = pd.read_csv(DATA / "llm_inference_bench__e2e.csv")
    bench = bench[bench.power_w.notna() & bench.group.isin(NETWORKS)]
    bench = bench.assign(text=[
        f"{NETWORKS[r.group]}:phase=generate,batch={r.batch:.0f},prompt={r.seq_q:.0f},output={r.seq_kv:.0f},dtype=fp16"
        for r in bench.itertuples()
    ])  # fmt: skip
    split = pd.read_csv(DATA / "splitwise__llm_e2e.csv")
    split = split[(split.device == "A100-SXM4-80GB") & (split.op == "llm_prefill") & (split.power_w > 100)]
    split = split[split.batch * split.seq_q >= 1024]
    split = split.assign(text=[
        f"llama2_70b:phase=prefill,batch={r.batch:.0f},prompt={r.seq_q:.0f},dtype=fp16,tp={r.tp:.0f}"
        for r in split.itertuples()
    ])  # fmt: skip
    return pd.concat([bench, split])[["source", "device", "text", "latency_us", "power_w"]].reset_index(drop=True)


PUBLISHED = (
    # preset, GB/s, FP32 TFLOP/s, tensor TFLOP/s, watts; streams with FMAs: RRZE-HPC gpu-benches gpu-roofline
    ("h200", 3759.0, 0.5, 0.0, 572.0),
    ("h200", 3300.0, 20.6, 0.0, 675.0),
    ("h200", 426.0, 42.6, 0.0, 398.0),
    ("a100_sxm_40gb", 1372.0, 0.5, 0.0, 227.0),
    ("a100_sxm_40gb", 1267.0, 15.2, 0.0, 309.0),
    ("a100_sxm_40gb", 165.0, 19.2, 0.0, 181.0),
    ("v100_pcie_16gb", 869.0, 0.5, 0.0, 131.0),
    ("a40", 679.0, 0.5, 0.0, 206.0),
    ("l40", 845.0, 0.5, 0.0, 199.0),
    # best sustained matrix products, at the power limit (stas00/ml-engineering)
    ("a100_sxm_80gb", 100.0, 0.0, 271.2, 400.0),
    ("h100_sxm", 100.0, 0.0, 794.5, 700.0),
    ("b200", 200.0, 0.0, 1745.0, 1000.0),
)


def streaming_watts(model: BoardPower, preset: str, gbs: float, fp32: float, tensor: float) -> float:
    """Uncapped watts of a kernel given by its rates: bytes streamed through registers, FP32 FMAs, BF16 products."""
    gpu, us = load_sheet(preset).record(), 1e3
    streamed, fma, products = gbs * us * 1e3, fp32 * us * 1e6 / 2, tensor * us * 1e6 / 2
    operands = products / 64  # bytes from the L2 of a tile of 128 x 128
    counts = dict.fromkeys(Activity._fields, 0.0) | {
        "nanoseconds": us * 1e3, "busy": 1.0,
        "clock_ghz": float(gpu.tensor_clock_ghz if tensor else gpu.boost_clock_ghz),
        "tensor_dtype": TENSOR_DTYPES.index("bf16"), "tensor_fma": products, "fp32": fma,
        "instructions": fma / 32 + streamed / 512, "register_bytes": 16 * fma + streamed, "shared_bytes": 2 * operands,
        "l1_bytes": streamed + operands, "l2_bytes": 2 * streamed + operands, "dram_bytes": streamed,
    }  # fmt: skip
    return float(model.uncapped(Activity(**{k: jnp.asarray(v) for k, v in counts.items()}), gpu).watts)


# ---- what the data identify


def bootstrap(free: tuple[str, ...], count: int = 40) -> pd.DataFrame:
    """Coefficients of fits to families drawn with replacement, one row a draw."""
    rows, pairs = power_rows(), pair_rows()
    train, pair_train = masks(rows)["train"], _seen(pairs)
    names = np.unique(rows.table.family[train])
    rng, draws = np.random.default_rng(0), []
    for _ in range(count):
        drawn = pd.Series(rng.choice(names, len(names))).value_counts()
        keep = rows.table.family.map(drawn).fillna(0).to_numpy() * train
        pair_keep = pairs.table.family.map(drawn).fillna(0).to_numpy() * pair_train
        # Every weight is kept above zero, so that all draws share one compiled fit.
        draws.append(fit(rows, np.where(train, np.maximum(keep, 1e-9), 0), pairs,
                         np.where(pair_train, np.maximum(pair_keep, 1e-9), 0), free))  # fmt: skip
    return pd.DataFrame(draws)


def profile(names: tuple[str, ...]) -> dict[str, tuple[float, float]]:
    """Training error [%] with a coefficient held at the low and at the high end of its range, the others refitted."""
    rows, pairs = power_rows(), pair_rows()
    train, pair_train = masks(rows)["train"], _seen(pairs)
    ranges = {row["coefficient"]: row for row in read_table("power/board.csv")}
    found = {}
    for name in names:
        free = tuple(x for x in FREE if x != name)
        errors = []
        for end in ("low", "high"):
            held = with_values(prior_model(), {name: jnp.asarray(float(ranges[name][end]))})
            values = fit(rows, train, pairs, pair_train, free, held)
            errors.append(scores(rows, watts_of(with_values(held, arrays(values)), rows), train)["mean"])
        found[name] = (errors[0], errors[1])
    return found


# ---- the report


def coefficient_table(values: dict[str, float]) -> None:
    """Put fitted values into board.csv: the prior stays beside each."""
    path = TABLES / "board.csv"
    rows = read_table("power/board.csv")
    scale = values["tensor_bf16"] / float(next(r["prior"] for r in rows if r["coefficient"] == "tensor_bf16"))
    for row in rows:
        name = row["coefficient"]
        if name.startswith("tensor_"):
            row["value"] = f"{scale * float(row['prior']):.4g}"
        elif name in values:
            row["value"] = f"{values[name]:.4g}"
    _write(path, rows)


def error_table(rows: Rows, watts: np.ndarray) -> None:
    """Put the held-out errors into board_error.csv: the uncertainty that the page prints."""
    error = ape(rows, watts)[masks(rows)["held out"]] / 100
    found = {"mean": error.mean(), "rows": len(error)} | {
        f"q{q}": np.percentile(error, q) for q in (50, 68, 80, 90, 95)
    }
    keep = masks(rows)["held out"]
    ratio = rows.table.power_w.to_numpy()[keep] / np.asarray(watts)[keep]
    found |= {"low": np.percentile(ratio, 10), "high": np.percentile(ratio, 90)}  # measured over predicted
    source = "experiments/006_board_power: H200 runs of 200 us and longer, shape families left out of the fit"
    unit = {"rows": "row"}
    _write(
        TABLES / "board_error.csv",
        [{"statistic": k, "value": f"{v:.4g}", "unit": unit.get(k, "1"), "source": source} for k, v in found.items()],
    )


def _write(path: Path, rows: list[dict[str, str]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def show(name: str, found: dict[str, float]) -> None:
    """Print a line of the result."""
    print(f"| {name} | " + " | ".join(f"{x:.2f}" if k == "bias" else f"{x:.1f}" for k, x in found.items()) + " |")


def report_fit(values: dict[str, float]) -> BoardPower:
    """Print errors by split, operator and regime, baselines, own time, the limit's law."""
    rows, pairs = power_rows(), pair_rows()
    model, kinds, op = with_values(prior_model(), arrays(values)), masks(rows), rows.table.op.to_numpy()
    watts = watts_of(model, rows)
    print("| what | rows | mean | median | bias |")
    for kind, keep in kinds.items():
        show(f"model, {kind}", scores(rows, watts, keep))
    print(
        "| 95 % of the held-out mean, by families | "
        + " to ".join(f"{x:.1f}" for x in interval(rows, watts, kinds["held out"]))
    )
    crossed, long = cross_validated(all_rows=True), rows.table.latency_us.to_numpy() >= LONG_US
    show("model, every family left out in turn", scores(rows, crossed, long))
    print("| its 95 % | " + " to ".join(f"{x:.1f}" for x in interval(rows, crossed, long)))
    others = {"priors alone": watts_of(prior_model(), rows)} | baselines(rows)
    others |= {"boosted trees on shapes": gradient_boosting(rows), "model at its own time": watts_of(model, rows, True)}
    for name, other in others.items():
        show(f"{name}, held out", scores(rows, other, kinds["held out"]))
    capped = rows.table.power_w.to_numpy() > 670
    for name in np.unique(op):
        show(f"{name}, held out", scores(rows, watts, kinds["held out"] & (op == name)))
        show(f"{name}, short", scores(rows, watts, kinds["short"] & (op == name)))
    show("not at the limit, held out", scores(rows, watts, kinds["held out"] & ~capped))
    show("constant, not at the limit, held out", scores(rows, others["constant"], kinds["held out"] & ~capped))
    us = rows.table.latency_us.to_numpy()
    for low, high in ((0, 10), (10, 50), (50, 200), (200, 500), (500, 2000), (2000, 1e9)):
        show(f"{low} to {high:g} us", scores(rows, watts, (us >= low) & (us < high)))
    out, at_limit = pairs.table.held_out.to_numpy(), pairs.table.power_w.to_numpy() > 670
    laws = slowdowns(model, pairs)
    for name, law in laws.items():
        error = 100 * np.abs(law / laws["measured"] - 1)
        cells = [error[at_limit & out], error[at_limit & ~out], error[out], error[~out]]
        print(f"| sustained time, {name} | " + " | ".join(f"{c.mean():.1f} ({len(c)})" for c in cells) + " |")
    return model


def report_devices(model: BoardPower) -> None:
    """Print the errors on other devices, and the published points."""
    table = serving_rows()
    table["model"] = [serving_watts(model, DEVICES[r.device], r.text, r.latency_us) for r in table.itertuples()]
    table["error"] = 100 * (table.model / table.power_w - 1).abs()
    table["ratio"] = np.log(table.model / table.power_w)
    for (source, device), group in table.groupby(["source", "device"]):
        found = {"rows": len(group), "mean": group.error.mean(), "median": group.error.median()}
        show(f"{source} {device}", found | {"bias": float(np.exp(group.ratio.mean()))})
    for preset, *rates, measured in PUBLISHED:
        print(f"| {preset} | {rates} | {measured:g} | {streaming_watts(model, preset, *rates):.0f} |")


def report_identified(names: tuple[str, ...]) -> None:
    """Print what a bootstrap over families and a profile say of each coefficient."""
    draws = bootstrap(FREE)
    for name in FREE:
        print(f"| {name} | " + " | ".join(f"{np.percentile(draws[name], q):.4g}" for q in (5, 50, 95)) + " |")
    for name, (low, high) in profile(names).items():
        print(f"| {name} | {low:.1f} | {high:.1f} |")


def main() -> None:
    """Fit on the training families, then report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="put coefficients and errors into dse/data/power")
    parser.add_argument(
        "--devices", action="store_true", help="compare with serving power and published points of other GPUs"
    )
    parser.add_argument("--identified", action="store_true", help="bootstrap and profile the coefficients (minutes)")
    parser.add_argument("--table", type=Path, help="judge the shipped model on another table of this schema")
    parser.add_argument("--preset", default="h200", help="the GPU of --table")
    options = parser.parse_args()
    if options.table:
        rows = load_rows(pd.read_csv(options.table, low_memory=False).query("power_w > 0"), options.preset)
        watts, long = watts_of(BoardPower.from_table(), rows), rows.table.latency_us.to_numpy() >= LONG_US
        show(f"{options.preset}, {LONG_US:g} us and longer", scores(rows, watts, long))
        show(f"{options.preset}, shorter", scores(rows, watts, ~long))
        return
    rows, pairs = power_rows(), pair_rows()
    values = fit(rows, masks(rows)["train"], pairs, _seen(pairs))
    print({name: round(value, 4) for name, value in values.items()})
    model = report_fit(values)
    if options.write:
        coefficient_table(values)
        error_table(rows, watts_of(model, rows))
    if options.devices:
        report_devices(model)
    if options.identified:
        ranges = [r["coefficient"] for r in read_table("power/board.csv") if float(r["low"]) < float(r["high"])]
        tables = ("energy_", "leakage_", "clock_", "dram_", "tensor_", "cap_")
        report_identified(tuple(n for n in ranges if not n.startswith(tables) and n not in ("temperature", "link")))


if __name__ == "__main__":
    main()
