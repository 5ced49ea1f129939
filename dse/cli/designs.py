"""Commands over many designs: sweep, search, and what goes before and after them."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from cyclopts import Parameter
from rich.console import Console

from dse.cli.app import Json, Notes, Out, Whole, app, print_json, print_notes
from dse.cli.pages import folder_of_results
from dse.cli.shards import file_name, sweep_shard_into

PAGE = "report.html"
"""The page of a sweep or a search in its folder."""


class Looked(NamedTuple):
    """What was looked into after an answer: what assumed numbers decide of it, what each axis is worth, and a record of
    each design that its power limit slows or may slow."""

    assumed: Any = None
    verdicts: Any = None
    limits: Sequence[dict[str, Any]] = ()


@app.command
def check(space: str, /, *, json_: Json = False) -> None:
    """Read a space and tell its designs, and about what time, memory and disk a sweep takes; nothing runs.

    Parameters
    ----------
    space:
        Path of a space TOML, or the name of a shipped one.
    """
    from dse.base.kept.between_commands import cache_compilations
    from dse.grid.estimate import estimate
    from dse.reports.show.terminal import print_check
    from dse.space.space import load_space

    cache_compilations()
    loaded = load_space(space)
    figures = estimate(loaded)
    if json_:
        print_json(figures.document())
    else:
        print_check(loaded, figures, Console())
        _say_times(figures.parts)


def _say_times(parts: dict[str, float]) -> None:
    from dse.reports.common.terminal_parts import say

    compiling, designs, page = parts["compilation"], max(parts["designs"], 1), parts["page"]
    say(
        Console(),
        f"Of the time about {compiling:,.0f} s compile (kept for the next time), {designs:,.0f} s "
        f"evaluate and write the designs and {page:,.0f} s draw the page (none with --no-page).",
    )


@app.command
def new(
    path: Path,
    /,
    *,
    template: Annotated[str, Parameter(name="--from")] = "h100_tensor_core",
    json_: Json = False,
) -> None:
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
    if json_:
        print_json({"space": str(path)})
    else:
        print(f"Wrote {path}. Edit it, then: dse check {path}; dse sweep {path}")


@app.command
def sweep(
    space: str,
    /,
    *,
    keep: str | None = None,
    resume: Annotated[bool, Parameter(negative="")] = False,
    cluster: str | None = None,
    shard: str | None = None,
    refine: bool = False,
    page: bool = True,
    out: Out = None,
    notes: Notes = False,
    json_: Json = False,
) -> None:
    """Evaluate every design of a space; print the Pareto set and write tables and a page.

    Writes points.parquet, pareto.parquet, run.json and report.html to the folder (by default out-NAME).

    Parameters
    ----------
    space:
        Path of a space TOML, or the name of a shipped one ('dse show spaces').
    keep:
        all: every design, at most 20 million (the default where they fit). front: the Pareto set, the best designs of
        each objective, the statistics of the axes and a sample, of any number of designs.
    resume:
        Go on where the sweep into this folder was interrupted; the files are the same bytes.
    cluster:
        Address of a Dask scheduler (tcp://HOST:PORT, tls://HOST:PORT), or local:N for N processes of this machine.
    shard:
        K/N: evaluate the K-th of N shards of the grid alone, into a folder of its own; 'dse merge' makes one result of
        all of them. Each may run on another machine.
    refine:
        Then descend from every member of the front between the grid's values, on the axes of real numbers; what
        dominates a member joins the front, marked off_grid.
    page:
        Draw the page, which takes 3 to 15 s to look into its designs; 'dse report' draws one that was left out.
    """
    from dse.base.kept.between_commands import cache_compilations

    cache_compilations("sweep")  # first: executables are loaded while the rest is imported
    from dse.reports.sweep.design_explanations import Programs
    from dse.space.space import load_space

    loaded = load_space(space)
    if shard is not None:
        return sweep_shard_into(loaded, shard, out, keep, resume, cluster, refine, json_)
    loaded.refuse_refinement(refine)
    folder = folder_of_results(out, f"out-{file_name(loaded.name)}")
    programs = Programs(loaded)
    result, refinement = _swept(loaded, folder, keep, resume, cluster, refine, programs if page else None)
    return _answer(result, refinement, folder, programs, page, notes, json_)


def _answer(result: Any, refinement: Any, folder: Path, programs: Any, page: bool, notes: bool, json_: bool) -> None:
    """Draw the page of a sweep, then print the answer."""
    from dse.reports.sweep.answer import all_notes

    looked = _page(result, result, folder, page, programs, look=page or json_)
    print_notes(*result.notes)
    if json_:
        told = {"notes": [*result.notes, *all_notes(result)]} | _seen(result, looked)
        print_json(result.summary() | told | ({"refinement": refinement.record()} if refinement else {}))
    else:
        _print_sweep(result, refinement, folder, looked, notes)
    _refuse_empty(result)


def _refuse_empty(result: Any) -> None:
    """Raise InputError where no design can be had, after the answer: what follows in a script is not to go on."""
    from dse.base.errors import InputError
    from dse.reports.sweep.data import infeasible

    if result.front.empty:
        reasons = infeasible(result)["reason"]
        more = f", and {len(reasons) - 1} more reasons" if len(reasons) > 1 else ""
        raise InputError(f"none of the {result.n:,} designs can be had: {reasons.iloc[0]}{more}")


@app.command
def merge(
    shards: list[Path], /, *, page: bool = True, out: Out = None, notes: Notes = False, json_: Json = False
) -> None:
    """Make one result of all shards of a sweep: the tables and the page of a single sweep, byte for byte.

    Writes points.parquet, pareto.parquet, run.json and report.html to the folder (by default out-NAME).

    Parameters
    ----------
    shards:
        Folders that 'dse sweep SPACE --shard K/N -o FOLDER' wrote, all N, in any order.
    page:
        Draw the page, which takes 3 to 15 s to look into its designs; 'dse report' draws one that was left out.
    """
    from dse.base.kept.between_commands import cache_compilations
    from dse.grid.merge import merge as run_merge
    from dse.grid.merge import parts_of, space_of_parts
    from dse.reports.common.progress import doing
    from dse.reports.sweep.design_explanations import Programs

    cache_compilations()
    space = space_of_parts(parts_of(shards))
    folder = folder_of_results(out, f"out-{file_name(space.name)}")
    with doing(f"merging {len(shards)} shards"):
        result = run_merge(shards, folder)
    _answer(result, None, folder, Programs(space), page, notes, json_)


def _swept(
    space: Any, folder: Path, keep: str | None, resume: bool, cluster: str | None, refine: bool, programs: Any
) -> Any:
    """Sweep under a progress bar, the page's programs beginning beside it, then refine if wanted; Ctrl-C tells how to
    go on."""
    from dse.grid.sweep import sweep as run_sweep
    from dse.reports.common.progress import counting, doing

    try:
        with counting(space.size, f"{space.size:,} designs") as progress:
            progress = _compiling_alongside(programs, progress)
            result = run_sweep(space, folder, progress, keep=keep, resume=resume, cluster=cluster)
    except KeyboardInterrupt:
        raise KeyboardInterrupt("interrupted; the same command with --resume goes on") from None
    if not refine:
        return result, None
    from dse.pareto.refine_sweep import refine_sweep

    with doing("refining the front between the grid's values: a minute or several to compile", minutes=True):
        return refine_sweep(result)


def _compiling_alongside(programs: Any, progress: Callable[..., None]) -> Callable[..., None]:
    """Return ``progress``, whose first call begins the page's programs too, if there are to be any."""

    def both(*figures: float) -> None:
        if programs:
            programs.begin()
        progress(*figures)

    return both


def _print_sweep(result: Any, refinement: Any, folder: Path, looked: Looked, notes: bool) -> None:
    from dse.reports.sweep.terminal import print_front

    if refinement:
        print(refinement.sentence())
    print_front(result, Console(), assumed=looked.assumed, verdicts=looked.verdicts, notes=notes)
    _say_page(folder)


def _say_page(folder: Path) -> None:
    drawn = (folder / PAGE).exists()
    print(f"\nThe page with the plots: {folder / PAGE}" if drawn else f"\ndse report {folder} draws the page")


def _page(answer: Any, result: Any, folder: Path, wanted: bool, programs: Any = None, look: bool = True) -> Looked:
    """Look into the designs of an answer and write its page, and return what was seen.

    Where no page is wanted, an older sweep's does not stay; without ``look`` nothing is looked into.
    """
    if not wanted:
        (folder / PAGE).unlink(missing_ok=True)
    if not look:
        return Looked()
    from dse.explanation.axis_verdicts import axis_verdicts
    from dse.reports.common.progress import doing
    from dse.reports.sweep.assumed import assumed_numbers
    from dse.reports.sweep.data_explanations import limits_document
    from dse.reports.sweep.design_explanations import explain_designs
    from dse.reports.sweep.page import write_page

    try:
        with doing("looking into the designs of the answer"):
            explanations = explain_designs(result, programs) if wanted else None
            looked = Looked(assumed_numbers(result, programs), axis_verdicts(result.space))
            if wanted:
                write_page(answer, folder / PAGE, explanations, *looked[:2])
            return looked._replace(limits=limits_document(explanations) if explanations else [])
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"interrupted; the tables are whole, dse report {folder} draws the page") from None


def _seen(result: Any, looked: Looked) -> dict[str, Any]:
    """What was looked into, as JSON."""
    from dse.reports.sweep import assumed, verdicts
    from dse.reports.sweep.data_ratios import comparisons

    return {
        "assumed_numbers": assumed.document(result, looked.assumed),
        "comparisons": comparisons(result),
        "verdicts": verdicts.document(looked.verdicts),
        "power_limit": list(looked.limits),
    }


@app.command
def search(
    space: str,
    /,
    *,
    sampler: str = "local",
    evaluations: Whole | None = None,
    seconds: float | None = None,
    storage: str | None = None,
    seed: Whole = 0,
    refine: bool = False,
    page: bool = True,
    out: Out = None,
    notes: Notes = False,
    json_: Json = False,
) -> None:
    """Search a space that is too large to sweep for its Pareto set.

    Writes points.parquet (what was evaluated), pareto.parquet, run.json and report.html to the folder (by default
    out-NAME-search). The same command goes on where a search was killed.

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
    refine:
        Then descend from every member of the front between the grid's values, on the axes of real numbers; what
        dominates a member joins the front, marked off_grid.
    page:
        Draw the page, which takes 3 to 15 s to look into its designs; 'dse report' draws one that was left out.
    """
    from dse.base.kept.between_commands import cache_compilations

    cache_compilations("search")  # first: executables are loaded while the rest is imported
    from dse.reports.search.data import search_report
    from dse.reports.sweep.answer import all_notes
    from dse.reports.sweep.design_explanations import Programs
    from dse.space.space import load_space

    loaded = load_space(space)
    folder = folder_of_results(out, f"out-{file_name(loaded.name)}-search")
    programs, asked = Programs(loaded), {"sampler": sampler, "seconds": seconds, "storage": storage, "seed": seed}
    answer = _search(loaded, folder, programs if page else None, **asked, evaluations=evaluations, refine=refine)
    looked = _page(search_report(answer), answer.result, folder, page, programs, look=page or json_)
    if json_:
        print_json(answer.summary() | {"notes": all_notes(answer.result)} | _seen(answer.result, looked))
    else:
        _print_search(answer, folder, looked, notes)
    _refuse_empty(answer.result)


def _search(space: Any, folder: Path, programs: Any, **options: Any) -> Any:
    """Search under a progress line, the page's programs beginning beside it."""
    from dse.pareto.search import search as run_search
    from dse.reports.search.terminal import searching

    try:
        with searching(space, options["evaluations"], options["seconds"]) as progress:
            return run_search(space, folder, **options, progress=_compiling_alongside(programs, progress))
    except KeyboardInterrupt:
        raise KeyboardInterrupt("interrupted; the same command goes on") from None


def _print_search(answer: Any, folder: Path, looked: Looked, notes: bool) -> None:
    from dse.reports.search.terminal import print_search

    print_search(answer, Console(), assumed=looked.assumed, verdicts=looked.verdicts, notes=notes)
    _say_page(folder)


@app.command
def report(folder: Path, /, *, json_: Json = False) -> None:
    """Draw the page of a finished sweep or search again; only the few designs that it looks into are evaluated.

    Parameters
    ----------
    folder:
        Folder of a sweep or a search: holds run.json, points.parquet and pareto.parquet.
    """
    from dse.base.kept.between_commands import cache_compilations
    from dse.reports.common.progress import doing
    from dse.reports.redraw import report as redraw

    cache_compilations()
    with doing("looking into the designs of the answer"):
        page = redraw(folder)
    if json_:
        print_json({"page": str(page)})
    else:
        print(f"Wrote {page}")
