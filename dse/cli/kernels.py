"""Commands over one GPU: run, trace and explain a workload on it."""

from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from dse.cli.app import Json, Whole, app, print_json, print_notes
from dse.cli.pages import Page, page_file, say_page

if TYPE_CHECKING:
    from dse.power.models import PowerChoice
    from dse.timing.timing import TimingModel
    from dse.timing.traced.trace_answer import TraceQuestion


@app.command
def run(
    gpu: str,
    workload: str,
    /,
    *,
    timing: str = "amali",
    calibration: str | None = None,
    power: str | None = None,
    price: float | None = None,
    json_: Json = False,
) -> None:
    """Time one workload on one GPU, kernel by kernel.

    Parameters
    ----------
    gpu:
        Name of a GPU ('dse show gpus') or path of a GPU TOML.
    workload:
        As llama3_8b:phase=decode,batch=32,context=2048,dtype=bf16; a workload TOML; a CSV of GEMMs; or a trace
        directory.
    timing:
        Timing model: amali, mdm or roofline.
    calibration:
        Calibration of the timing model: a shipped one ('shared', 'h100_sxm' ...), a TOML of 'dse calibrate timing',
        'priors' (what fits begin with) or 'none'. By default the GPU's own, and for a GPU that nobody has measured
        'shared'; traces have none.
    power:
        Power model: board, accelwattch, or a TOML of 'dse calibrate power' with coefficients of the board's. By default
        the board's shipped ones.
    price:
        Price of the GPU's hour [USD], in place of its file's or the shipped list's.
    """
    from dse.base.kept.between_commands import cache_compilations

    cache_compilations("run")  # first: executables are loaded while the rest is imported
    from dse.evaluate.run import run as run_one
    from dse.reports.common.progress import doing
    from dse.reports.run.notes import run_notes
    from dse.reports.run.terminal import print_run

    model, watts = timing_option(timing, calibration, [gpu], workload), power_option(power)
    with doing("timing every kernel"):
        result = run_one(gpu, workload, model, watts, price)
    if json_:
        print_json(result.summary() | {"notes": run_notes(result)})
    else:
        print_run(result, Console())


@app.command
def trace(
    directory: Path,
    /,
    *,
    gpu: str | None = None,
    timing: str | None = None,
    representative: Whole | None = None,
    kernel: tuple[str, ...] = (),
    power: str | None = None,
    miss_rate_curve: bool = False,
    json_: Json = False,
) -> None:
    """Time the kernels of an Accel-Sim trace directory: the stack of each kernel and the total.

    Parameters
    ----------
    directory:
        Folder with kernelslist.g and the kernels' .traceg files (plain, gzip or xz).
    gpu:
        Name of a GPU ('dse show gpus'), path of a GPU TOML, or a GCoM .config file; without it the GPU that the trace
        was made for.
    timing:
        Timing model: gcom, amali, mdm or roofline; without it gcom for a .config file, else amali.
    representative:
        Representative warp of every kernel (CTA index times warps per CTA plus warp); without it rep_warp_out.bin's,
        or the one that k-means chooses.
    kernel:
        Number in the list (from 1) or name of a kernel to time; several by repeating the option. By default all.
    power:
        Watts by component too: accelwattch (from the trace's opcodes, lanes, cache traffic and cycles), board, or a
        TOML of 'dse calibrate power'. No power limit is held.
    miss_rate_curve:
        Instead of times: what an L2 of each size from 128 KiB to 512 MiB misses.
    """
    from dse.timing.traced.trace_answer import TraceQuestion

    question, choice = TraceQuestion.of(directory, gpu, timing, representative, kernel), power_option(power)
    print_notes(*question.notes)
    if miss_rate_curve:
        _print_curves(question, json_)
    elif choice is not None:
        _print_watts(question, choice, json_)
    else:
        _print_times(question, json_)


def _print_times(question: "TraceQuestion", json_: bool) -> None:
    """Print the stack of each kernel of a trace."""
    from dse.evaluate.trace import trace_result
    from dse.reports.common.progress import doing
    from dse.reports.trace.terminal import print_gcom, print_trace

    with doing("timing the kernels of the trace"):
        found = trace_result(question)
    results = list(found.results)
    if json_:
        print_json(found.document())
    elif question.timing == "gcom":
        print_gcom(results, Console())
    else:
        print_trace(question, results, Console())


def _print_watts(question: "TraceQuestion", choice: "PowerChoice", json_: bool) -> None:
    """Print stack and watts of each kernel of a trace."""
    from dse.evaluate.trace import trace_result
    from dse.reports.common.progress import doing
    from dse.reports.trace.terminal import print_watts

    with doing("timing the kernels of the trace"):
        found = trace_result(question, choice)
    results = list(found.results)
    if json_:
        print_json(found.document())
    else:
        print_watts(question, choice.model, results, Console())


@app.command
def explain(
    gpu: str,
    workload: str,
    /,
    *,
    against: str | None = None,
    timing: str = "amali",
    calibration: str | None = None,
    power: str | None = None,
    top: Whole | None = None,
    out: Page = None,
    json_: Json = False,
) -> None:
    """Say why a workload takes its time and energy on a GPU, and what 10 % more of each attribute would change.

    Parameters
    ----------
    gpu:
        Name of a GPU ('dse show gpus') or path of a GPU TOML.
    workload:
        As for 'dse run': a network with its settings, a workload TOML, a CSV of GEMMs, or a trace directory.
    against:
        A second GPU beside the first, and what accounts for the difference.
    timing:
        Timing model: amali, mdm or roofline.
    calibration:
        Calibration of the timing model, as for 'dse run'.
    power:
        Power model, as for 'dse run'.
    top:
        Tell so many attributes, kernels of a phase and causes, those that matter most, --json too. By default 20
        attributes, three causes of a kernel and every kernel; all of them with --json.
    """
    from dse.base.kept.between_commands import cache_compilations

    cache_compilations("explain")  # first: executables are loaded while the rest is imported
    from dse.explanation.compare import compare
    from dse.explanation.explain import explain as explain_one
    from dse.explanation.shortened import check_top, shortened
    from dse.hardware.presets import load_sheet
    from dse.reports.common.progress import doing
    from dse.reports.explain.terminal import print_answer

    check_top(top)
    page = None if out is None else page_file(out, gpu, against, workload.partition(":")[0], calibration, power)
    other = None if against is None else load_sheet(against, "--against")
    model = timing_option(timing, calibration, [one for one in (gpu, against) if one is not None], workload)
    of = workload, model, power_option(power)
    with doing("timing every kernel, and moving every attribute"):
        found = explain_one(gpu, *of) if other is None else compare(gpu, other, *of)
    if page is not None:
        from dse.reports.explain.page import write_explain_page

        write_explain_page(found, page, top)
    if json_:
        print_json(found.document() if top is None else shortened(found.document(), top))
    else:
        print_answer(found, Console(), top)
    say_page(page, json_)


def _print_curves(question: "TraceQuestion", json_: bool) -> None:
    """Print the miss-rate curve of each kernel of a trace."""
    from dse.reports.trace.terminal import print_curves
    from dse.scaling.from_trace import miss_rate_curve

    curves = [(kernel.name, miss_rate_curve(kernel)) for kernel in question.kernels()]
    if json_:
        print_json([{"kernel": name, "curve": [point._asdict() for point in curve]} for name, curve in curves])
    else:
        print_curves(curves, Console())


def timing_option(timing: str, calibration: str | None, gpus: list[str], workload: str) -> "TimingModel":
    """The timing model that the options name."""
    from dse.hardware.presets import load_sheet
    from dse.timing.calibration import load_timing_calibration, passed_over
    from dse.timing.models import default_model, timing_model

    if calibration is None and timing == "amali":
        sheets = [load_sheet(gpu) for gpu in gpus]
        model = default_model(sheets, workload)
        if model.errors is not None and (said := passed_over(*sheets)):
            print_notes(said)
        return model
    if calibration in (None, "none"):
        return timing_model(timing, "--timing")
    found = load_timing_calibration(calibration, "--calibration")  # refuses a wrong name by the option's
    model = timing_model({"model": timing, "calibration": calibration}, "--timing")
    if said := found.not_fitted_on(*map(load_sheet, gpus)):
        print_notes(f"{said}: no interval")
    return model


def power_option(said: str | None) -> "PowerChoice | None":
    """The power model of a name, or the board's with the coefficients of a file; None: the board's shipped ones."""
    from dse.base.errors import InputError
    from dse.power.models import POWER_MODELS, power_choice

    if said is None:
        return None
    if said not in POWER_MODELS and not Path(said).exists():
        raise InputError(f"--power {said}: neither a model ({', '.join(POWER_MODELS)}) nor a file of coefficients")
    return power_choice(said if said in POWER_MODELS else {"calibration": said}, "--power")
