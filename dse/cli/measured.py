"""Commands that hold the models against measurements: calibrate and validate."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console

from dse.cli.app import Json, app, calibrate, print_json


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
        print_json(answer.document())
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
        print_json(document)
    else:
        print_validation(document, Console())
