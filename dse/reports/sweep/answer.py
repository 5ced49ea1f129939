"""The answer of a sweep in three sentences, and its caveats."""

import re

import numpy as np
import pandas as pd

from dse.explanation.cause_words import cause_text
from dse.grid.result import SweepResult
from dse.hardware.cost import DieCost
from dse.hardware.memory_pins import pin_gbps, too_fast
from dse.hardware.own_guards import own_gpu_notes
from dse.hardware.presets import gpu_index
from dse.hardware.tensor_area import TENSOR_AXES, tensor_area_note
from dse.reports.common.price_note import price_note
from dse.reports.common.words import (
    change,
    changes_text,
    gpu_name,
    joined,
    label,
    number,
    power_calibration,
    quantity,
    span_text,
)
from dse.reports.sweep.data import (
    best_no_worse,
    chosen_designs,
    costs,
    gains,
    measured_baseline,
    no_worse_than_baseline,
    stack,
    varied_axes,
)
from dse.reports.sweep.data_errors import error_notes
from dse.reports.sweep.data_infeasible import unmet
from dse.reports.sweep.idle_axes import idle_note
from dse.reports.sweep.verdicts import variant_note
from dse.space.designs import of_table
from dse.space.setting_axes import BASE
from dse.space.space import Objective, Space
from dse.space.unlinked import unlinked_notes
from dse.timing.amali import Amali
from dse.workload.networks.mlp_kinds import EXPERT
from dse.workload.workload import Workload

_POWER = re.compile(r"power|energy|joule")


def question(result: SweepResult) -> str:
    """Return the question of a sweep: the space's own, or one made from its axes and objectives."""
    if result.space.question:
        return result.space.question
    axes = joined([axis.name for axis in varied_axes(result)]) or "one design"
    goals = list(dict.fromkeys(o.direction for o in result.space.objectives))
    of_goal = [[label(o) for o in result.space.objectives if o.direction == goal] for goal in goals]
    aims = joined([f"{goal} {joined(names)}" for goal, names in zip(goals, of_goal, strict=True)])
    where = "" if any(axis.name == BASE for axis in varied_axes(result)) else f" on {gpu_name(result.space)}"
    return f"Which {axes}{where} {aims}?"


def answer(result: SweepResult) -> list[str]:
    """Return the answer in three sentences: the front against the baseline, the gains at no loss, and why."""
    if result.front.empty:
        nothing = f"None of the {_designs(result)} can be had; the reasons are counted below."
        return [nothing, *(f"{sentence[0].upper()}{sentence[1:]}." for sentence in unmet(result))]
    return [sentence for sentence in (_reach(result), _at_no_loss(result), _why(result)) if sentence]


def all_notes(result: SweepResult) -> list[str]:
    """Return what should be linked, of which the first screen warns, then the caveats."""
    return [*unlinked_notes(result.space), *caveats(result)]


def caveats(result: SweepResult) -> list[str]:
    """Return what a reader must know first: calibration, power, axes without effect, an infeasible baseline."""
    notes = [
        *_older(result),
        _of_the_timing(result),
        f"Power: {power_calibration(result.space.power)}.",
        *error_notes(result),
    ]
    if not covers_power(result):
        charged = "only through the power limit" if result.space.power.limit else "not at all"
        notes.append(f"No objective covers power: watts are charged {charged}.")
    notes += [*_fast_pins(result), *_several_dies(result), *_tensor_area(result.space), *_unpublished_die(result.space)]
    notes += own_gpu_notes(result.space.base)
    notes += [f"{w.name}: {w.caution}." for w in result.space.workloads if w.caution]
    notes += [f"{w.name}: {w.static_batch}." for w in result.space.workloads if w.static_batch]
    notes += [*price_note(result.space), *variant_note(result.space)]
    notes += idle_note(result)
    if result.keep == "front":
        notes.append(
            f"Of {result.n:,} designs only the Pareto set, the best of each objective, the statistics of the axes and "
            f"a sample of {len(result.sample):,} feasible ones were kept (--keep front): there is no points.parquet."
        )
    base = result.baseline.iloc[0]
    if not base["feasible"]:
        notes.append(f"The baseline itself is infeasible in this space ({base['reason']}).")
    return notes


def _older(result: SweepResult) -> list[str]:
    """That another version computed the result, where one did."""
    if not result.computed_by:
        return []
    return [
        f"The numbers are those of {result.computed_by}, of other inputs or of a model before this version's. "
        "Intervals and notes are this version's. Its designs are not looked into: sweep or search again for that."
    ]


def good_to(result: SweepResult) -> str:
    """Return in a few words how good the objectives are: where most measured values lie, or that nothing says so."""
    known = {o.name: result.intervals()[o.name] for o in result.space.objectives}
    texts = [
        f"{label(o)} good to {span_text((found['low'], found['high']))}"
        for o in result.space.objectives
        if (found := known[o.name])
    ]
    without = [label(o) for o in result.space.objectives if not known[o.name]]
    parts = [f"{', '.join(texts)} (80 % of measured values)"] if texts else []
    return "; ".join(parts + [f"{joined(without)} uncalibrated"] * bool(without))


def _of_the_timing(result: SweepResult) -> str:
    """What the times rest on."""
    model = type(result.space.model).__name__
    if result.calibration == "uncalibrated":
        return (
            f"Uncalibrated: the timing model {model} has not been fitted to measured times; compare designs, and do "
            "not take a time for what a machine would show."
        )
    return (
        f"Timing model {model}, calibration {result.calibration}{_fitted(result)}. "
        "Products run on the fastest of the tiles that win most often; "
        "'dse run', which tries a whole library's, finds a dense kernel 0.2 % faster in the mean, 15 % at "
        f"most{_experts(result)}; where several take as long, its energy may be 6 % lower."
    )


def _fitted(result: SweepResult) -> str:
    """What a calibration was fitted to; a learned model's says so itself."""
    if not isinstance(result.space.model, Amali):
        return ""
    return (
        ", fitted to measured matrix products and attention in bf16 and fp16 and to vector kernels; messages between "
        "GPUs, other types and traces stay uncalibrated. Intervals of times are those of single products that the fit "
        f"has not seen{_served(result)}"
    )


def _experts(result: SweepResult) -> str:
    """What small products of experts lose beside a whole library's: 5.7 % of Qwen3-30B-A3B's decode, 1.2 on 188 SMs."""
    experts = any(o.name.startswith(EXPERT) for w in result.space.workloads for o in w.operators)
    return ", and decodes of many experts (128 on 20 SMs) up to 6 % faster" if experts else ""


def _fast_pins(result: SweepResult) -> list[str]:
    """What designs of the front ask of their DRAM that no memory of their type gives."""
    columns = result.space.base.numbers() | of_table(result.space, result.front)
    fast, rates = (np.broadcast_to(x, len(result.front)) for x in (too_fast(columns), pin_gbps(columns)))
    if not fast.any():
        return []
    what = f"{fast.sum():,} designs of the front ask up to {rates[fast].max():.3g} Gbit/s of a DRAM pin"
    return [f"{what}, more than any memory of their type gives: link dram_bus_bits to dram_bandwidth_gbs."]


def _several_dies(result: SweepResult) -> list[str]:
    """What designs above a scanner's field are whose record states fewer dies."""
    field, space = float(DieCost.from_table(result.space.yield_model).reticle), result.space
    columns = of_table(space, result.front)
    bases = space.variants.of_bases(columns) if space.variants else space.base.numbers()
    many = int((result.front["die_mm2"].to_numpy() > field * np.asarray((bases | columns)["dies"])).sum())
    if not many:
        return []
    what = f"{many:,} designs of the front have more than {field:g} mm2 a die, a scanner's field"
    return [f"{what}: they cost as several dies, whose links take no time: state dies and die_link_gbs."]


def _tensor_area(space: Space) -> list[str]:
    """What is known of the area of tensor cores where their rate moves."""
    varied = {axis.name for axis in space.axes} | {name for name, _ in space.links}
    known = tensor_area_note(space.base) if varied & set(TENSOR_AXES) else ""
    return [f"{known}."] if known else []


def _unpublished_die(space: Space) -> list[str]:
    """That the area of a base was never held against its die, where a space asks for areas or their costs."""
    names = {n for e in (*(o.expression for o in space.objectives), *space.constraints) for n in e.names}
    entry = gpu_index().get(space.base.base or space.base.name, {})
    if not names & {"die_mm2", "die_usd"} or entry.get("die_mm2", "unknown"):
        return []
    return [
        f"Area: the die of {entry['name']} is not published, so that its area here was never checked; the model is "
        "within 8 % of 22 published dies (experiments/005_die_area)."
    ]


def _served(result: SweepResult) -> str:
    """Where the intervals of workloads come from that a serving engine runs."""
    names = [w.name for w in result.space.workloads if w.engine is not None]
    return f"; those of {joined(names)} are of whole runs under the engine" if names else ""


def covers_power(result: SweepResult) -> bool:
    """Whether an objective or a constraint looks at power or energy."""
    expressions = [*(o.expression for o in result.space.objectives), *result.space.constraints]
    return any(_POWER.search(name) for expression in expressions for name in expression.names)


def _reach(result: SweepResult) -> str:
    base, name = measured_baseline(result), gpu_name(result.space)
    parts = []
    for position, o in enumerate(result.space.objectives):
        low, high = result.front[o.name].min(), result.front[o.name].max()
        same = number(low) == number(high)
        span = f"of {quantity(low, o.unit)}" if same else f"from {number(low)} to {quantity(high, o.unit)}"
        own = f" ({name + ': ' if position == 0 else ''}{number(base[o.name].iloc[0])})" if len(base) else ""
        parts.append(f"{label(o)} {span}{own}")
    count = len(result.front)
    verb = "is" if count == 1 else "are"
    feasible = "" if result.n_feasible == result.n else f", {result.n_feasible:,} of them feasible"
    among = " among them" if result.n < result.space.size else ""
    between = f" ({result.n_off_grid:,} of them refined between the grid's values)" if result.n_off_grid else ""
    sentence = f"Of {_designs(result)}{feasible}, {count:,} {verb} Pareto-optimal{among}{between}: {joined(parts)}"
    better = int(no_worse_than_baseline(result).sum())
    no_worse = f"; {better:,} of these {'is' if better == 1 else 'are'} no worse than the {name} in any objective"
    return sentence + (no_worse if len(base) and len(result.space.objectives) > 1 else "") + "."


def _designs(result: SweepResult) -> str:
    """How many designs were looked at: all of a sweep, some of a search."""
    if result.n == result.space.size:
        return f"{result.n:,} designs"
    size = f"{result.space.size:,}" if result.space.size < 1e9 else f"{result.space.size:.3g}"
    return f"{result.n:,} designs evaluated (of {size} in the space)"


def _at_no_loss(result: SweepResult) -> str:
    base, objectives = measured_baseline(result), result.space.objectives
    if base.empty:
        return "The base GPU has no result to compare with: " + result.baseline.iloc[0]["reason"] + "."
    chosen = chosen_designs(result)
    parts: list[str] = []
    for o in objectives:
        parts += _gain(result, o, base.iloc[0], chosen, in_full=not parts)
    name = gpu_name(result.space)
    if not parts:
        seen = "No design" if result.n == result.space.size else f"None of the {result.n:,} designs seen"
        return f"{seen} betters the {name} in one objective without being worse in another."
    if len(objectives) == 1:
        return f"The best {parts[0]}."
    others = "the other objective" if len(objectives) == 2 else "every other objective"
    return f"With {others} no worse than on the {name}, the best {joined(parts)}."


def _gain(result: SweepResult, objective: Objective, base: pd.Series, chosen: pd.DataFrame, in_full: bool) -> list[str]:
    """What an objective gains while the others are held, and by which design; nothing where none gains."""
    if not no_worse_than_baseline(result, objective).any() or not gains(result, objective):
        return []
    position = best_no_worse(result, objective)
    row = result.front.iloc[position]
    value, before = float(row[objective.name]), float(base[objective.name])
    percent = f", {text}" if (text := change(value, before)) else ""
    letter = chosen.loc[chosen["position"] == position, "letter"]
    design = [f"design {letter.iloc[0]}"] if len(letter) else []
    details = [*design, changes_text(varied_axes(result), row, base)] if in_full or not design else design
    return [f"{label(objective)} is {quantity(value, objective.unit)}{percent} ({': '.join(details)})"]


def _why(result: SweepResult) -> str:
    chosen = chosen_designs(result)
    parts = [part for w in result.space.workloads if (part := _takeover(result, w, chosen))]
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]}." if text else ""


def _takeover(result: SweepResult, workload: Workload, chosen: pd.DataFrame) -> str:
    """Which cause leads on the baseline, and which on the design chosen for this workload."""
    base, others = chosen[chosen["position"] < 0], chosen[chosen["position"] >= 0]
    first = _leaders(base.iloc[0], workload) if len(base) else []
    here = f"{workload.name} on the {gpu_name(result.space)} is held back by " + _of(first) if first else ""
    if others.empty:
        return here
    design = _design_for(result, workload, others)
    then, where = _leaders(design, workload), f"design {design['letter']}"
    if not then or not first:
        return f"{workload.name} on {where} is held back by {_of(then)}" if then else here
    if then[0][0] != first[0][0]:
        return f"{here}; on {where} {cause_text(then[0][0])} takes over ({then[0][1]:.0f} % of {number(then[0][2])} ms)"
    second = f", with {cause_text(then[1][0])} next ({then[1][1]:.0f} %)" if len(then) > 1 else ""
    return f"{here}, which still leads on {where} ({then[0][1]:.0f} % of {number(then[0][2])} ms){second}"


def _of(leaders: list[tuple[str, float, float]]) -> str:
    cause, percent, total = leaders[0]
    return f"{cause_text(cause)} ({percent:.0f} % of {number(total)} ms)"


def _design_for(result: SweepResult, workload: Workload, others: pd.DataFrame) -> pd.Series:
    """The chosen design that is best in an objective of this workload, else the first."""
    for o in result.space.objectives:
        if any(name.startswith(f"{workload.name}.") for name in o.expression.names):
            return others.iloc[int(costs(others, [o])[:, 0].argmin())]
    return others.iloc[0]


def _leaders(row: pd.Series, workload: Workload) -> list[tuple[str, float, float]]:
    """The causes of a workload on a design from the largest on: cause, percent of the time, the time [ms]."""
    times = stack(row, workload)
    total = sum(times.values())
    return [(cause, 100 * ms / total, total) for cause, ms in sorted(times.items(), key=lambda item: -item[1])]
