"""Commands over many designs: sweep, search, and what goes before and after them."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console

from dse.cli.app import Json, Out, app, print_json


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
        print_json(figures.document())
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
def sweep(space: str, /, *, refine: bool = False, out: Out = None, json_: Json = False) -> None:
    """Evaluate every design of a space; print the Pareto set and write tables and a page.

    Writes points.parquet, pareto.parquet, run.json and report.html to the folder (by default out-NAME).

    Parameters
    ----------
    space:
        Path of a space TOML, or the name of a shipped one ('dse show spaces').
    refine:
        Then descend from every member of the front between the grid's values, on the axes of real numbers; what
        dominates a member joins the front, marked off_grid.
    """
    from dse.report.page import write_page
    from dse.report.progress import counting, doing
    from dse.report.terminal import front_table
    from dse.report.terminal_scatter import print_scatter
    from dse.report.why import explain_designs
    from dse.space.shipped import find_space
    from dse.space.space import load_space
    from dse.sweep.evaluate import cache_compilations
    from dse.sweep.sweep import sweep as run_sweep

    loaded = load_space(find_space(space))
    folder = out or Path("out-" + "".join(c if c.isalnum() or c in "-_." else "_" for c in loaded.name))
    cache_compilations()
    with counting(loaded.size, f"{loaded.size:,} designs") as progress:
        result = run_sweep(loaded, folder, progress)
    refinement = None
    if refine:
        from dse.search.refined import refined

        result, refinement = refined(result)
    with doing("looking into the designs of the page"):
        write_page(result, folder / "report.html", explain_designs(result))
    if json_:
        print_json(result.summary() | ({"refinement": refinement.record()} if refinement else {}))
        return
    if refinement:
        print(refinement.sentence())
    front_table(result, Console())
    print_scatter(result, Console())
    print(f"\nThe page with the plots: {folder / 'report.html'}")


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
    refine: bool = False,
    out: Out = None,
    json_: Json = False,
) -> None:
    """Search a space that is too large to sweep for its Pareto set.

    Writes points.parquet (what was evaluated), pareto.parquet, run.json and report.html to the folder (by default
    out-NAME-search).
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
    refine:
        Then descend from every member of the front between the grid's values, on the axes of real numbers; what
        dominates a member joins the front, marked off_grid.
    """
    from dse.report.page import write_page
    from dse.report.progress import doing
    from dse.report.searched import searched
    from dse.report.terminal_scatter import print_scatter
    from dse.report.terminal_search import print_search, searching
    from dse.report.why import explain_designs
    from dse.search.search import search as run_search
    from dse.space.shipped import find_space
    from dse.space.space import load_space
    from dse.sweep.evaluate import cache_compilations

    loaded = load_space(find_space(space))
    name = "".join(c if c.isalnum() or c in "-_." else "_" for c in loaded.name)
    folder = out or Path(f"out-{name}-search")
    cache_compilations()
    with searching(loaded, evaluations, seconds) as progress:
        found = run_search(loaded, folder, sampler=sampler, evaluations=evaluations, seconds=seconds, storage=storage,
                           seed=seed, refine=refine, progress=progress)  # fmt: skip
    with doing("looking into the designs of the page"):
        write_page(searched(found), folder / "report.html", explain_designs(found.result))
    if json_:
        print_json(found.summary())
        return
    print_search(found, Console())
    print_scatter(found.result, Console())
    print(f"\nThe page with the plots: {folder / 'report.html'}")


@app.command
def report(folder: Path, /) -> None:
    """Draw the page of a finished sweep or search again; only the few designs that it looks into are evaluated.

    Parameters
    ----------
    folder:
        Folder of a sweep or a search: holds run.json, points.parquet and pareto.parquet.
    """
    from dse.report.page import write_page
    from dse.report.progress import doing
    from dse.report.searched import Searched, load_page
    from dse.report.why import explain_designs
    from dse.sweep.evaluate import cache_compilations

    cache_compilations()
    found = load_page(folder)
    with doing("looking into the designs of the page"):
        why = explain_designs(found.result if isinstance(found, Searched) else found)
        write_page(found, folder / "report.html", why)
    print(f"Wrote {folder / 'report.html'}")
