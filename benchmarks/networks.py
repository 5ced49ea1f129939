"""What a pair of a network with layers of several kinds costs a sweep, beside one of Llama-3-8B's.

Run with ``python -m benchmarks.networks [--json] [--phase prefill]`` (some minutes of a core, most of them compiling).
Sweeps of the shipped main space around an H200, calibrated, on one thread: both networks in turn, the fastest of
REPEATS each, by processor time. A pair is one of a workload's candidates on one design, as ``dse check`` counts them;
operators that are alike are evaluated once (:mod:`dse.workload.once`), so that fewer are computed.
"""

import json
import time
from typing import Any

from benchmarks.arguments import parser
from benchmarks.throughput import from_the_middle
from dse.base.toml_file import read_toml
from dse.evaluate.infeasibility import Reasons
from dse.evaluate.space_program import Evaluator
from dse.space.shipped import find_space
from dse.space.space import space_from_mapping
from dse.workload.once import once

REPEATS = 7

NETWORKS = {"deepseek_v3": "dtype=fp8_block,dp=8,ep=8", "llama3_8b": "dtype=bf16"}
"""Network -> how it is served."""

PHASES = {"decode": ("batch=64,context=2048", "tbt_ms"), "prefill": ("batch=8,prompt=2048", "ttft_ms")}
"""Phase -> its requests, and the metric that a sweep minimises beside the area."""


def evaluator(network: str, phase: str) -> Evaluator:
    """Return the evaluator of the main space around an H200, with one phase of one network."""
    requests, metric = PHASES[phase]
    path = find_space("h100_tensor_core")
    use = {"use": f"{network}:phase={phase},{requests},{NETWORKS[network]}"}
    goals = [{"value": value, "goal": "min"} for value in (f"it.{metric}", "die_mm2")]
    content = read_toml(path) | {"base": "h200", "workloads": {"it": use}, "objectives": goals}
    space = space_from_mapping(content, str(path), path.stem)
    return Evaluator(space, Reasons(space), in_order=True)


def measured(phase: str) -> dict[str, dict[str, float]]:
    """Return what a design of each network costs, and its pairs."""
    every = {network: evaluator(network, phase) for network in NETWORKS}
    columns = {network: from_the_middle(e.space, e.chunk) for network, e in every.items()}
    seconds: dict[str, list[float]] = {network: [] for network in NETWORKS}
    for _ in range(1 + REPEATS):
        for network, e in every.items():
            start = time.process_time()
            e(columns[network], [objective.name for objective in e.space.objectives])
            seconds[network].append(time.process_time() - start)
    found = {}
    for network, e in every.items():
        (workload,) = e.space.workloads
        pairs, computed = workload.candidate_count, once(workload)[0].candidate_count
        nanoseconds = 1e9 * min(seconds[network][1:]) / e.chunk  # the first has compiled
        each = {"ns_a_design": nanoseconds, "ns_a_pair": nanoseconds / pairs}
        found[network] = {"pairs": pairs, "computed": computed} | each
    return found


def main() -> None:
    """Print the figures of a phase as a table, or as JSON with --json."""
    known = parser("networks", __doc__)
    known.add_argument("--phase", choices=list(PHASES), default="decode", help="decode (the default) or prefill")
    options = known.parse_args()
    found: dict[str, Any] = measured(options.phase)
    one, other = (found[network]["ns_a_pair"] for network in NETWORKS)
    document = found | {"ratio": one / other}
    if options.json:
        print(json.dumps(document))
        return
    for network, figures in found.items():
        print(f"{network:12}", "  ".join(f"{name} {value:,.2f}" for name, value in figures.items()))
    print(f"a pair of the first costs {document['ratio']:.2f} times one of the second")


if __name__ == "__main__":
    main()
