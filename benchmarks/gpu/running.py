"""The programs of a sweep and of a search on the GPU that is there: designs a second, beside what was projected."""

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import jax

from benchmarks.gpu.programs import Call, Subject, evaluating
from dse.base.kept.between_commands import cache_compilations

SECONDS = 5.0
"""How long a program is called again and again."""

Projected = Mapping[str, Mapping[str, float]]
"""Program -> ``projected_designs_per_second`` and ``bound_designs_per_second``."""


def refusal() -> str | None:
    """Return why nothing can be run here; None where JAX has a GPU."""
    try:
        if jax.default_backend() == "gpu":
            return None
        has = f"{jax.default_backend()} alone"
    except (RuntimeError, AssertionError):  # how JAX says that no platform of JAX_PLATFORMS can begin
        has = "no device"
    return f"--run needs a GPU that JAX sees; this process has {has}"


def designs_per_second(call: Call, seconds: float = SECONDS) -> float:
    """Return how many designs a second a call evaluates that is made again for so many seconds, after a first one.

    As in a sweep one call is enqueued while another one runs, and no more.
    """
    jax.block_until_ready(call.make())
    begin, count, running = time.perf_counter(), 0, None
    while time.perf_counter() - begin < seconds:
        following = call.make()
        jax.block_until_ready(running)
        running, count = following, count + 1
    jax.block_until_ready(running)
    return count * call.designs / (time.perf_counter() - begin)


def figures(
    name: str, make: Callable[[Any], Subject], device: Any, projected: Projected, seconds: float = SECONDS
) -> dict[str, Any]:
    """Return what is measured of a program on a device; None where no projection is known."""
    subject = make(device)
    assert subject.call
    subject.compile()
    rate = designs_per_second(subject.call(), seconds)
    known = projected.get(name, {})
    bound = known.get("bound_designs_per_second")
    return {
        "program": name,
        "device": device.device_kind,
        "measured_designs_per_second": rate,
        "projected_designs_per_second": known.get("projected_designs_per_second"),
        "bound_designs_per_second": bound,
        "share_of_bound": rate / bound if bound else None,
        "date": date.today().isoformat(),
    }


def run(wanted: Sequence[str], projections: Mapping[str, Projected]) -> list[dict[str, Any]]:
    """Return the figures of programs on this process's first GPU, all by default; ``projections`` by kind of device."""
    cache_compilations()
    device = jax.devices()[0]
    projected = projections.get(device.device_kind, {})
    with tempfile.TemporaryDirectory() as folder:
        every = evaluating(Path(folder))
        return [figures(name, every[name], device, projected) for name in every if not wanted or name in wanted]


def table(programs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the figures as a Markdown table; cells are empty where no projection is known."""
    forms = dict.fromkeys(programs[0], "{}") | {name: "{:,.0f}" for name in programs[0] if name.endswith("second")}
    forms |= {"share_of_bound": "{:.0%}"}
    rows = ["| " + " | ".join(name.replace("_", " ") for name in forms) + " |", "|---" * len(forms) + "|"]
    for one in programs:
        cells = ["" if one[name] is None else form.format(one[name]) for name, form in forms.items()]
        rows.append("| " + " | ".join(cells) + " |")
    return rows
