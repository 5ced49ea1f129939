"""The command line: thin commands over the Python interface; heavy imports happen inside them."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, CycloptsError, Parameter
from rich.console import Console

from dse import __version__
from dse.errors import DseError

app = App(
    name="dse",
    version=f"dse {__version__}",
    help="Explore GPU designs: state a space and a workload, get the Pareto set with its reasons.",
    help_format="plaintext",
    suppress_keyboard_interrupt=False,
    result_action="return_value",
)
show = App(name="show", help="Print what is shipped: GPUs, networks, spaces, attributes, metrics.")
app.command(show)
calibrate = App(name="calibrate", help="Fit coefficients to measurements.")
app.command(calibrate)
app.register_install_completion_command(add_to_startup=False)

Json = Annotated[bool, Parameter(name="--json", negative="", help="Print one JSON document on stdout.")]
Out = Annotated[Path | None, Parameter(name=["-o", "--out"], help="Folder for the results.")]


def main() -> None:
    """Run the command line: exit 0, 2 on bad input, 130 when interrupted."""
    sys.exit(run_command(sys.argv[1:]))


def run_command(arguments: list[str]) -> int:
    """Run one command and return its exit code; errors become a sentence on stderr."""
    try:
        app(arguments, exit_on_error=False, print_error=False)
    except BrokenPipeError:  # the reader, such as head, has seen enough
        sys.stderr.close()
    except (DseError, CycloptsError, OSError) as error:
        print("dse:", " ".join(str(error).split()), file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("dse: interrupted", file=sys.stderr)
        return 130
    return 0


@app.command
def sweep(space: str, /, *, out: Out = None, json_: Json = False) -> None:
    """Evaluate every design of a space; print the Pareto set and write tables and a page.

    Writes points.parquet, pareto.parquet, run.json and report.html to the folder (by default out-NAME).

    Parameters
    ----------
    space:
        Path of a space TOML, or the name of a shipped one ('dse show spaces').
    """
    from dse.report.page import write_page
    from dse.report.progress import counting
    from dse.report.terminal import front_table
    from dse.space.shipped import find_space
    from dse.space.space import load_space
    from dse.sweep.evaluate import cache_compilations
    from dse.sweep.sweep import sweep as run_sweep

    loaded = load_space(find_space(space))
    folder = out or Path("out-" + "".join(c if c.isalnum() or c in "-_." else "_" for c in loaded.name))
    cache_compilations()
    with counting(loaded.size, f"{loaded.size:,} designs") as progress:
        result = run_sweep(loaded, folder, progress)
    write_page(result, folder / "report.html")
    if json_:
        _print_json(result.summary())
        return
    front_table(result, Console())
    print(f"\nThe page with the plots: {folder / 'report.html'}")


@app.command
def run(gpu: str, workload: str, /, *, timing: str = "amali", json_: Json = False) -> None:
    """Time one workload on one GPU, kernel by kernel.

    Parameters
    ----------
    gpu:
        Name of a GPU ('dse show gpus') or path of a GPU TOML.
    workload:
        As llama3_8b:phase=decode,batch=32,context=2048,dtype=bf16; a workload TOML; or a CSV of GEMMs.
    timing:
        Timing model: amali or roofline.
    """
    from dse.report.terminal_run import print_run
    from dse.sweep.run import run as run_one
    from dse.timing.models import timing_model

    result = run_one(gpu, workload, timing_model(timing, "--timing"))
    if json_:
        _print_json(result.summary())
    else:
        print_run(result, Console())


@app.command
def trace(
    directory: Path,
    /,
    *,
    gpu: str | None = None,
    timing: str | None = None,
    representative: int | None = None,
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
    """
    from dse.report.terminal_trace import print_gcom, print_trace
    from dse.sweep.trace import TraceQuestion

    question = TraceQuestion.of(directory, gpu, timing, representative)
    for note in question.notes:
        print(f"dse: {note}", file=sys.stderr)
    results = question.answer()
    if json_:
        _print_json([result.document() for result in results])
    elif question.timing == "gcom":
        print_gcom(results, Console())
    else:
        print_trace(question, results, Console())


@app.command
def check(space: str, /, *, json_: Json = False) -> None:
    """Read a space and tell its designs, and about what time, memory and disk a sweep takes; nothing runs.

    Parameters
    ----------
    space:
        Path of a space TOML, or the name of a shipped one.
    """
    from dse.report.terminal_show import print_check
    from dse.space.shipped import find_space
    from dse.space.space import load_space
    from dse.sweep.estimate import estimate

    loaded = load_space(find_space(space))
    figures = estimate(loaded)
    if json_:
        _print_json(figures.document())
    else:
        print_check(loaded, figures, Console())


@app.command
def new(path: Path, /, *, template: Annotated[str, Parameter(name="--from")] = "h100_tensor_core") -> None:
    """Write a space to start from.

    Parameters
    ----------
    path:
        File to write; it must not exist.
    template:
        Shipped space to copy ('dse show spaces').
    """
    from dse.space.shipped import write_template

    write_template(path, template)
    print(f"Wrote {path}. Edit it, then: dse check {path}; dse sweep {path}")


@app.command
def report(folder: Path, /) -> None:
    """Draw the page of a finished sweep again, without running anything.

    Parameters
    ----------
    folder:
        Folder of a sweep: holds run.json, points.parquet and pareto.parquet.
    """
    from dse.report.page import write_page
    from dse.sweep.record import load_result

    write_page(load_result(folder), folder / "report.html")
    print(f"Wrote {folder / 'report.html'}")


@app.command
def search(
    space: str,
    /,
    *,
    sampler: str = "local",
    evaluations: int | None = None,
    seconds: float | None = None,
    storage: str | None = None,
    seed: int = 0,
    out: Out = None,
    json_: Json = False,
) -> None:
    """Search a space that is too large to sweep for its Pareto set.

    Writes points.parquet (what was evaluated), pareto.parquet and run.json to the folder (by default out-NAME-search).
    The same command goes on where a search was killed.

    Parameters
    ----------
    space:
        Path of a space TOML, or the name of a shipped one ('dse show spaces').
    sampler:
        local (Pareto local search, whole generations at once), or Optuna's nsga2, nsga3, tpe, gp, qmc, random.
    evaluations:
        Designs to evaluate in all; by default, where --seconds is not given either, a hundredth of the designs, at
        least 2,000 and at most 200,000.
    seconds:
        Seconds to search, compilation not counted.
    storage:
        journal:PATH (by default search.journal in the folder), sqlite:///PATH, postgresql://..., or grpc://host:port
        for many workers; optuna-dashboard reads all of them.
    seed:
        Whole number: the same seed evaluates the same designs.
    """
    from dse.report.terminal_search import print_search, searching
    from dse.search.search import search as run_search
    from dse.space.shipped import find_space
    from dse.space.space import load_space
    from dse.sweep.evaluate import cache_compilations

    loaded = load_space(find_space(space))
    name = "".join(c if c.isalnum() or c in "-_." else "_" for c in loaded.name)
    folder = out or Path(f"out-{name}-search")
    cache_compilations()
    with searching() as progress:
        found = run_search(loaded, folder, sampler=sampler, evaluations=evaluations, seconds=seconds, storage=storage,
                           seed=seed, progress=progress)  # fmt: skip
    if json_:
        _print_json(found.summary())
    else:
        print_search(found, Console())
        print(f"\nThe tables: {folder}")


@show.command(name="gpus")
def show_gpus(*, json_: Json = False) -> None:
    """List the GPUs with their names."""
    from dse.report import terminal_show

    terminal_show.print_gpus(Console(), json_)


@show.command(name="gpu")
def show_gpu(name: str, /, *, json_: Json = False) -> None:
    """Print a GPU: every attribute with unit, source and how sure it is, and its peaks.

    Parameters
    ----------
    name:
        Name of a GPU, any of its aliases, or the path of a GPU TOML.
    """
    from dse.report import terminal_show

    terminal_show.print_gpu(name, Console(), json_)


@show.command(name="schema")
def show_schema(*, json_: Json = False) -> None:
    """Print the attributes of a GPU: unit, range, default and meaning. Each can be an axis."""
    from dse.report import terminal_show

    terminal_show.print_schema(Console(), json_)


@show.command(name="networks")
def show_networks(*, json_: Json = False) -> None:
    """List the language models and their shapes."""
    from dse.report import terminal_show

    terminal_show.print_networks(Console(), json_)


@show.command(name="spaces")
def show_spaces(*, json_: Json = False) -> None:
    """List the shipped spaces and their questions."""
    from dse.report import terminal_show

    terminal_show.print_spaces(Console(), json_)


@show.command(name="metrics")
def show_metrics(*, json_: Json = False) -> None:
    """Print what objectives and constraints can name beside attributes."""
    from dse.report import terminal_show

    terminal_show.print_metrics(Console(), json_)


@calibrate.command(name="power")
def calibrate_power(
    table: Path, /, *, out: Annotated[Path | None, Parameter(name=["-o", "--out"])] = None, variant: str = "hw",
    json_: Json = False,
) -> None:  # fmt: skip
    """Fit power coefficients to measured watts; errors on what no fit has seen, beside baselines.

    Parameters
    ----------
    table:
        CSV of operators with power_w and latency_us, or of kernels with meas_W and the components of AccelWattch.
    out:
        TOML file for the fitted coefficients.
    variant:
        Components of a table of kernels: hw, sass, ptx or hybrid.
    """
    from dse.calibrate.power import PARTS, calibrate_power
    from dse.report.progress import counting
    from dse.report.terminal_calibrate import print_power_fit

    with counting(PARTS, "fitting and leaving out") as progress:
        answer = calibrate_power(table, variant, progress)
    if out:
        answer.write(out)
    if json_:
        _print_json(answer.document())
    else:
        print_power_fit(answer, Console())


@app.command
def validate(table: Path, /, *, quantity: str, time: str = "measured", json_: Json = False) -> None:
    """Compare a model with a measured table, by device and operator.

    Parameters
    ----------
    table:
        CSV of measured operators with power_w and latency_us.
    quantity:
        What is compared: power.
    time:
        Time under the power: measured (the power model alone) or model (the timing model's own).
    """
    from dse.calibrate.validate import validate as answer
    from dse.report.terminal_calibrate import print_validation

    document = answer(table, quantity, time)
    if json_:
        _print_json(document)
    else:
        print_validation(document, Console())


@app.command
def explain(
    gpu: str,
    workload: str,
    /,
    *,
    against: str | None = None,
    timing: str = "amali",
    out: Annotated[Path | None, Parameter(name=["-o", "--out"], help="HTML page to write.")] = None,
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
    """
    from dse.report.terminal_explain import print_found
    from dse.search.compare import compare
    from dse.search.explain import explain as explain_one
    from dse.sweep.evaluate import cache_compilations
    from dse.timing.models import timing_model

    cache_compilations()
    model = timing_model(timing, "--timing")
    found = explain_one(gpu, workload, model) if against is None else compare(gpu, against, workload, model)
    if out is not None:
        from dse.report.page_explain import write_explain_page

        write_explain_page(found, out)
    if json_:
        _print_json(found.document())
    else:
        print_found(found, Console())


def _print_json(document: Any) -> None:
    print(json.dumps(document, indent=1, allow_nan=False))


if __name__ == "__main__":
    main()
