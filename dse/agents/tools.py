"""What an agent may ask for: each tool takes plain arguments and returns the JSON document of the command of its name.

Annotations become the schemas of the arguments; docstrings what the agent reads.
"""

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from dse.base.errors import InputError
from dse.base.extras import extra
from dse.space.space import Space, load_space, space_from_mapping

with extra("mcp", "dse mcp"):
    from pydantic import Field

MOST_DESIGNS = 20_000
"""Designs of a sweep, and evaluations of a search, at most: an agent waits some seconds, not minutes."""

ROWS = 30
"""Designs of a front that are told, at most, spread over it."""

NAMED_SPACE = "Name of a shipped space, path of a space TOML, or the TOML text itself."
NAMED_GPU = "Name of a GPU as h100_sxm, or path of a GPU TOML."

SpaceText = Annotated[str, Field(description=NAMED_SPACE, min_length=1)]
GpuText = Annotated[str, Field(description=NAMED_GPU, min_length=1)]
WorkloadText = Annotated[
    str,
    Field(
        description="A network with its settings, as llama3_8b:phase=decode,batch=32,context=2048,dtype=bf16; a "
        "workload TOML; a CSV of GEMMs; or a trace directory.",
        min_length=1,
    ),
]


def space_of_text(text: str) -> Space:
    """Return the space of a name, a path or the text of a space file; raises InputError."""
    if "\n" not in text and "=" not in text:
        return load_space(text)
    try:
        content = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        raise InputError(f"space: is not valid TOML: {error}") from None
    return space_from_mapping(content, "space", "space", Path.cwd())


def check(space: SpaceText) -> dict[str, Any]:
    """Read a space and tell its designs, and what time, memory and disk a sweep of it would take. Nothing runs."""
    from dse.grid.estimate import estimate

    return estimate(space_of_text(space)).document()


def run(gpu: GpuText, workload: WorkloadText) -> dict[str, Any]:
    """Time a workload on a GPU: time, tokens a second, watts and joules of each phase, causes of stalls, intervals."""
    from dse.evaluate.run import run as run_one
    from dse.reports.run.notes import run_notes

    result = run_one(gpu, workload)
    return result.summary() | {"notes": run_notes(result)}


def compare(
    gpus: Annotated[list[str], Field(description=f"Two or more. {NAMED_GPU}", min_length=2)],
    workload: WorkloadText,
    axis: Annotated[str, Field(description="A key of the workload that varies, as batch.")] = "",
    values: Annotated[list[str] | None, Field(description="Its values, as 1, 8, 64.")] = None,
) -> dict[str, Any]:
    """Put GPUs side by side on a workload: times, energy, dollars, and ratios to the first with their intervals."""
    from dse.explanation.gpu_comparison import compare_gpus

    if bool(axis) != bool(values):
        raise InputError("give axis and values together, as batch and 1, 8, 64")
    return compare_gpus(gpus, workload, axis, values or []).document()


def explain(
    gpu: GpuText,
    workload: WorkloadText,
    against: Annotated[str | None, Field(description="A second GPU: what accounts for the difference.")] = None,
    top: Annotated[int, Field(description="Entries of each list that are told, those that matter most.", ge=1)] = 5,
) -> dict[str, Any]:
    """Say why a workload takes its time and energy on a GPU, and what 10 % more of each attribute would change."""
    from dse.explanation.compare import compare as compare_two
    from dse.explanation.explain import explain as explain_one
    from dse.explanation.shortened import shortened

    found = explain_one(gpu, workload) if against is None else compare_two(gpu, against, workload)
    return shortened(found.document(), top)


def sweep(space: SpaceText) -> dict[str, Any]:
    """Evaluate every design of a small space: the Pareto set, the best designs, and until where each axis pays.

    Spaces of more than 20,000 designs are refused.
    """
    from dse.explanation.axis_verdicts import axis_verdicts
    from dse.grid.sweep import sweep as run_sweep
    from dse.reports.sweep.answer import all_notes
    from dse.reports.sweep.verdicts import document

    loaded = space_of_text(space)
    if loaded.size > MOST_DESIGNS:
        raise InputError(
            f"{loaded.name}: {loaded.size:,} designs are too many for a tool call, which sweeps at most "
            f"{MOST_DESIGNS:,}; shorten its axes, use the tool search, or run 'dse sweep' in a shell"
        )
    result = run_sweep(loaded)
    told = {"notes": [*result.notes, *all_notes(result)], "verdicts": document(axis_verdicts(loaded))}
    return _few(result.summary() | told)


def search(
    space: SpaceText,
    evaluations: Annotated[int, Field(description=f"Designs to evaluate, at most {MOST_DESIGNS}.", ge=1)] = 2000,
    seed: Annotated[int, Field(description="The same seed evaluates the same designs.", ge=0)] = 0,
) -> dict[str, Any]:
    """Search a large space for its Pareto set; what is told is the best of the designs that were seen."""
    from dse.pareto.search import search as run_search
    from dse.reports.sweep.answer import all_notes

    if evaluations > MOST_DESIGNS:
        raise InputError(
            f"evaluations = {evaluations:,} is too many for a tool call; give at most {MOST_DESIGNS:,}, or run "
            "'dse search' in a shell"
        )
    answer = run_search(space_of_text(space), evaluations=evaluations, seed=seed)
    return _few(answer.summary() | {"notes": all_notes(answer.result)})


def _few(document: dict[str, Any]) -> dict[str, Any]:
    """A sweep's document with designs spread over its front; ``n_pareto`` says of how many."""
    front = document["pareto"]
    step = -(-len(front) // ROWS) or 1
    return document | {"n_pareto": len(front), "pareto": front[::step]}


TOOLS: tuple[Callable[..., dict[str, Any]], ...] = (check, run, compare, explain, sweep, search)
