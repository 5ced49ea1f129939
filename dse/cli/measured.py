"""Commands around measurements: measure makes them, calibrate and validate hold the models against them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter
from rich.console import Console

from dse.base.errors import InputError
from dse.cli.app import Json, app, calibrate, made, print_json, print_notes
from dse.cli.pages import Page, page_file, say_page


@calibrate.command(name="power")
def calibrate_power(
    table: Path,
    /,
    *,
    out: Annotated[Path | None, Parameter(name=["-o", "--out"])] = None,
    variant: str | None = None,
    gpu: str | None = None,
    json_: Json = False,
) -> None:
    """Fit power coefficients to measured watts; errors on what no fit has seen, beside baselines.

    Parameters
    ----------
    table:
        CSV of operators with power_w and latency_us, or of kernels with meas_W and the components of AccelWattch.
    out:
        TOML file for the fitted coefficients.
    variant:
        Components of a table of kernels: hw (the default), sass, ptx or hybrid.
    gpu:
        GPU (name or TOML) that stands for the device of a table of operators; without it the preset of its name.
    """
    from dse.base.kept.between_commands import cache_compilations
    from dse.calibration.power.answer import PARTS, calibrate_power
    from dse.measured.nsight_export import files_of
    from dse.reports.calibrate.terminal import print_power_fit
    from dse.reports.common.page_parts import check_writable
    from dse.reports.common.progress import counting

    cache_compilations()
    check_writable(out, *files_of(table), gpu)
    with counting(PARTS, "fitting and leaving out", log=True) as progress:
        answer = calibrate_power(table, variant, progress, gpu)
    if out:
        answer.write(made(out))
    if json_:
        print_json(answer.document())
    else:
        print_power_fit(answer, Console())


@calibrate.command(name="timing")
def calibrate_timing(
    gpu: str,
    /,
    *tables: Path,
    out: Annotated[Path | None, Parameter(name=["-o", "--out"])] = None,
    harness: str | None = None,
    sensitivity: bool = False,
    json_: Json = False,
) -> None:
    """Fit the timing model to measured operators of one GPU, stage by stage; errors on shape families left out.

    Matrix products, attention and vector kernels are fitted, each by the implementation (library) that ran.

    Parameters
    ----------
    gpu:
        Name of a GPU ('dse show gpus') or path of a GPU TOML.
    tables:
        CSVs of measured operators (device, op, dtype, m, n, k ..., latency_us), or exports of Nsight Compute with
        shapes (NVTX ranges 'gemm m=.. n=.. k=.. dtype=..', or NAME.shapes.csv beside NAME.csv).
    out:
        TOML file for the calibration: give it to --calibration, or to a space's timing.
    harness:
        How the rows were measured: aiconfigurator, vidur, llmservingsim, llmcompass, deepbench, neusight, dse_measure,
        dse_measure_warm, dse_measure_cold, nsight_compute or unknown; without it by the column source.
    sensitivity:
        Tell how the error changes with each parameter, all others held.
    """
    from dse.base.kept.between_commands import cache_compilations
    from dse.calibration.timing.gpu_timing import calibrate_timing as fit
    from dse.measured.nsight_export import files_of
    from dse.reports.calibrate.terminal import print_timing_fit
    from dse.reports.common.page_parts import check_writable

    cache_compilations()
    check_writable(out, gpu, *(file for table in tables for file in files_of(table)))

    def report(implementation, stage) -> None:
        on = f" on {stage.rows} rows" if stage.rows else ""
        off = "" if stage.fitted is None else f": {stage.fitted:.1f} % off"
        print_notes(f"{implementation}: {stage.name}{on}{off}")

    answer = fit(gpu, tables, harness, report, sensitivity)
    if out:
        answer.write(made(out))
    if json_:
        print_notes(*answer.notes)
        print_json(answer.document())
    else:
        print_timing_fit(answer, Console())
    if out:
        print_notes(f"wrote {out}; give it to --calibration, or to a space's timing")


@calibrate.command(name="engine")
def calibrate_engine(
    name: str,
    /,
    *tables: Path,
    out: Annotated[Path | None, Parameter(name=["-o", "--out"])] = None,
    like: str = "shared",
    eager: bool | None = None,
    gpu: str | None = None,
    calibration: str | None = None,
    json_: Json = False,
) -> None:
    """Fit what a serving engine's host adds to kernels, to measured runs of whole networks.

    Parameters
    ----------
    name:
        Name of the engine.
    tables:
        CSVs of runs: device, op (llm_prefill, llm_decode_step_avg, llm_e2e, serving_tpot), dtype, group (the network),
        batch, seq_q (prompt), seq_kv (output), tp, latency_us.
    out:
        TOML file for the engine: give it to a workload's engine=.
    like:
        Engine ('dse show engines') whose kernel libraries ran, and whose costs stand in for what the runs do not tell.
    eager:
        Kernels are launched one by one, not replayed as a graph: their host time is fitted too; without it as --like.
    gpu:
        GPU (name or TOML) of devices without a preset; of all runs where every device has one.
    calibration:
        Name or path of a timing calibration of the kernels; without it the device's shipped one, else shared.
    """
    from dse.base.kept.between_commands import cache_compilations
    from dse.calibration.engine.calibrate import calibrate_engine as fit
    from dse.measured.nsight_export import files_of
    from dse.reports.calibrate.terminal import print_engine
    from dse.reports.common.page_parts import check_writable
    from dse.reports.common.progress import doing

    cache_compilations()
    if out and out.suffix != ".toml":
        raise InputError(f"-o: {out} is no TOML, and engine= takes TOMLs; give a name that ends in .toml")
    check_writable(out, *(file for table in tables for file in files_of(table)), gpu, calibration, like)
    with doing("timing the runs' kernels, and fitting the host"):
        answer = fit(name, tables, like, eager, gpu, calibration)
    if out:
        answer.write(made(out))
    if json_:
        print_notes(*(f"warning: {warning}" for warning in answer.warnings))
        print_notes(*answer.notes)
        print_json(answer.document())
    else:
        print_engine(answer, Console())


@app.command
def measure(
    *,
    out: Annotated[Path, Parameter(name=["-o", "--out"])] = Path("measured.csv"),
    quick: bool = False,
    only: str = "",
    seconds: float | None = None,
    graphs: bool = True,
    device: Annotated[str | None, Parameter(show=False)] = None,
    json_: Json = False,
) -> None:
    """Measure kernels, power and clock on the GPU of this machine; what stands in the table is not measured again.

    Parameters
    ----------
    out:
        CSV for the measured rows: 'dse calibrate timing' and 'dse validate' read it.
    quick:
        A coarse grid in a few minutes.
    only:
        What to measure, by comma: gemm, attention, vector, stream, latency, launch, power.
    seconds:
        Begin no operator after so long; a second run goes on.
    graphs:
        Launch a program as one CUDA graph (--no-graphs: every kernel by itself).
    device:
        Platform of JAX to measure instead of the GPU: cpu, for tests.
    """
    from dse.measurement.measure import measure as measured
    from dse.measurement.measure import plan
    from dse.reports.common.progress import counting

    try:
        with counting(plan(quick, only), "measuring") as progress:
            answer = measured(
                out, quick=quick, only=only, seconds=seconds, platform=device, graphs=graphs, progress=progress
            )
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"interrupted; {out} holds what was measured, the same command goes on") from None
    print_notes(*answer.notes)
    if json_:
        print_json(answer.document())
    else:
        print(f"{out}: {answer.rows} rows of {answer.device}, {answer.new_rows} of them new")
        for reason, n in answer.skipped.items():
            print(f"  not measured: {reason} ({n})")


@app.command
def validate(
    table: Path,
    /,
    *,
    quantity: str | None = None,
    time: str = "measured",
    timing: str = "amali",
    gpu: str | None = None,
    harness: str | None = None,
    calibration: str | None = None,
    engine: str | None = None,
    rows: Path | None = None,
    out: Page = None,
    json_: Json = False,
) -> None:
    """Compare a model with a measured table, by device and operator.

    Parameters
    ----------
    table:
        CSV of measured operators with latency_us, for power with power_w; or an export of Nsight Compute with shapes.
    quantity:
        What is compared: time, power, or stalls (causes beside warp states of an export). Without it power where a
        kernel of the table has any, else time; runs of whole networks have their power with power alone.
    time:
        Time under the power: measured (the power model alone) or model (the timing model's own).
    timing:
        Timing model of --quantity time: amali, mdm or roofline.
    gpu:
        GPU (name or TOML) that predicts devices without a preset; all rows where every device has one.
    harness:
        How the rows were measured ('dse calibrate timing --help' names them); without it by the column source.
    calibration:
        Name or path of a timing calibration, none for the model uncalibrated, priors for what fits begin with; without
        it the device's shipped one, else shared. Of --quantity power a TOML of 'dse calibrate power'; without it the
        shipped coefficients.
    engine:
        Engine that all runs of whole networks ran: one of 'dse show engines', or a TOML of 'dse calibrate engine';
        without it by the column notes, else shared.
    rows:
        CSV or Parquet file, by its name, for every row of --quantity time: its columns, predicted time, 80 % interval,
        library, way of measuring, and the cause that takes most of it.
    out:
        HTML page of --quantity time (a name without an end gets .html): predicted against measured, errors over shapes,
        the rows farthest off.
    """
    from dse.base.kept.between_commands import cache_compilations
    from dse.validation.validate import quantity_of
    from dse.validation.validate import validate as compared

    cache_compilations()
    beside_time = {"--harness": harness, "--engine": engine, "--rows": rows, "-o": out}
    _refuse_of_others(asked := quantity_of(table, quantity), time, timing, beside_time)
    if asked == "time":
        _validate_time(table, timing, gpu, harness, calibration, engine, rows, out, json_)
        return
    found = compared(table, asked, time=time, timing=timing, gpu=gpu, calibration=calibration)
    _print_beside(found.document, asked, json_)


def _refuse_of_others(quantity: str, time: str, timing: str, beside_time: Mapping[str, object]) -> None:
    """Refuse options of another quantity than what is compared; ``beside_time``: option of time -> what was given."""
    if quantity != "power" and time != "measured":
        raise InputError(f"--time {time}: is the time under the power; give --quantity power, or leave it out")
    given = beside_time if quantity == "stalls" else {"--timing": timing != "amali", **beside_time}
    if quantity != "time" and any(given.values()):
        named = ", ".join(option for option, used in given.items() if used)
        raise InputError(f"{named}: belongs to --quantity time; give it, or leave the option out")


def _print_beside(document: dict[str, Any], quantity: str, json_: bool) -> None:
    """Print the comparison of what is not time: power, or stalls."""
    from dse.reports.validate.terminal import print_stalls, print_validation

    if json_:
        print_json(document)
    else:
        (print_stalls if quantity == "stalls" else print_validation)(document, Console())


def _validate_time(
    table: Path,
    timing: str,
    gpu: str | None,
    harness: str | None,
    calibration: str | None,
    engine: str | None,
    rows: Path | None,
    out: Path | None,
    as_json: bool,
) -> None:
    from dse.measured.nsight_export import files_of
    from dse.reports.common.page_parts import check_writable
    from dse.reports.common.progress import doing
    from dse.reports.validate.terminal import print_time_validation
    from dse.validation.row_file import check_rows_file, write_rows
    from dse.validation.time import validate_time

    check_rows_file(rows)
    inputs = (*files_of(table), gpu, calibration, engine)
    check_writable(rows, *inputs)
    page = None if out is None else page_file(out, *inputs)
    with doing(f"predicting the rows of {table.name}"):
        found = validate_time(table, timing, gpu, harness, calibration, engine, bindings=rows is not None)
    if rows:
        write_rows(found.rows, rows)
    if page:
        from dse.reports.validate.page import write_validation_page

        write_validation_page(found, page)
    if as_json:
        print_notes(*found.notes)
        print_json(found.document)
    else:
        print_time_validation(found, Console())
    say_page(page, as_json)
