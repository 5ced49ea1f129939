"""Command that puts several GPUs side by side: compare."""

from rich.console import Console

from dse.base.errors import InputError
from dse.cli.app import Json, app, print_json
from dse.cli.pages import Page, page_file, say_page


@app.command
def compare(
    *names: str,
    axis: str = "",
    timing: str = "amali",
    calibration: str | None = None,
    power: str | None = None,
    price: tuple[str, ...] = (),
    limit: tuple[str, ...] = (),
    out: Page = None,
    json_: Json = False,
) -> None:
    """Put several GPUs side by side on one workload: times, energy, dollars, and ratios to the first with intervals.

    Parameters
    ----------
    names:
        Two or more GPUs ('dse show gpus', or paths of GPU TOMLs), then the workload, as for 'dse run'.
    axis:
        A key of the workload and its values, as batch=1,8,64: a table and a point of the page each.
    timing:
        Timing model: amali, mdm or roofline.
    calibration:
        Calibration of the timing model, one for all GPUs. By default the one that was fitted to all measured GPUs.
    power:
        Power model, as for 'dse run'.
    price:
        Price of a GPU's hour, as h100_sxm=2.5, in place of the shipped list's; may be given several times.
    limit:
        Condition on a result, as 'tbt_ms <= 40'; may be given several times. The best are those that keep to it.
    """
    from dse.base.kept.between_commands import cache_compilations

    cache_compilations("compare")  # first: executables are loaded while the rest is imported
    from dse.cli.kernels import power_option, timing_option
    from dse.explanation.gpu_comparison import compare_gpus
    from dse.reports.common.progress import doing
    from dse.reports.compare.page import write_comparison_page
    from dse.reports.compare.terminal import print_comparison

    *gpus, workload = names if len(names) > 2 else _too_few(names)
    page = None if out is None else page_file(out)
    key, values = _axis(axis)
    model, watts = timing_option(timing, calibration, gpus, workload), power_option(power)
    with doing("timing every kernel on every GPU"):
        comparison = compare_gpus(gpus, workload, key, values, model, watts, _prices(price), limit)
    if page is not None:
        write_comparison_page(comparison, page)
    if json_:
        print_json(comparison.document())
    else:
        print_comparison(comparison, Console())
    say_page(page, json_)


def _too_few(names: tuple[str, ...]) -> tuple[str, ...]:
    raise InputError(
        f"compare takes two GPUs at least and then a workload, not {len(names)} names; as dse compare h100_sxm h200 "
        "llama3_8b:phase=decode,batch=32,context=2048"
    )


def _axis(said: str) -> tuple[str, list[str]]:
    """The key of a workload that varies, and its values."""
    key, _, texts = said.partition("=")
    values = [text.strip() for text in texts.split(",") if text.strip()]
    if said and (not key.strip() or not values):
        raise InputError(f"--axis {said} is not accepted; give a key of the workload and values, as batch=1,8,64")
    twice = [value for value in dict.fromkeys(values) if values.count(value) > 1]
    if twice:
        raise InputError(f"--axis {said}: {twice[0]} is given twice; give each value once")
    return key.strip(), values


def _prices(said: tuple[str, ...]) -> dict[str, float]:
    found = {}
    for text in said:
        name, _, usd = text.partition("=")
        try:
            found[name.strip()] = float(usd)
        except ValueError:
            raise InputError(f"--price {text} is not accepted; give GPU=USD an hour, as h100_sxm=2.5") from None
    return found
