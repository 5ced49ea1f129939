"""Causes of a kernel's time in plain words; Nsight Compute's names stand beside them where a reader looks further."""

from collections.abc import Mapping

from dse.timing.timing import PHASE_CAUSES

CAUSE_WORDS = {
    "selected": "instruction issue",
    "wait": "instruction latency",
    "short_scoreboard": "shared-memory latency",
    "long_scoreboard": "memory latency",
    "math_pipe_throttle": "arithmetic on tensor cores and lanes",
    "lg_throttle": "the SM's path to the L2",
    "mio_throttle": "queues of memory requests",
    "launch": "kernel launches",
    "divergence": "partly filled waves",
    "dram_bandwidth": "DRAM bandwidth",
    "l2_bandwidth": "L2 bandwidth",
    "die_link": "the links between dies",
    "interconnect": "messages between GPUs",
    "host": "the serving engine's host",
}
"""Cause -> what takes the time."""

assert CAUSE_WORDS.keys() == PHASE_CAUSES.keys()


def cause_text(cause: str) -> str:
    """Return a cause in plain words, with its own name in brackets where that says something else."""
    plain = CAUSE_WORDS[cause]
    return plain if plain.lower() == cause.replace("_", " ") else f"{plain} ({cause})"


def meaning(cause: str) -> str:
    """Return what a cause means, with its own name in front where its plain words are others."""
    text = PHASE_CAUSES[cause]
    return text if cause_text(cause) == CAUSE_WORDS[cause] else f"{cause}: {text}"


def held_by(stack: Mapping[str, float]) -> str:
    """Return the causes of the larger half of a stack, the largest first: "83 % for DRAM bandwidth"."""
    total, told, parts = sum(stack.values()), 0.0, []
    for cause, value in sorted(stack.items(), key=lambda item: -item[1]):
        parts.append(f"{100 * value / total:.0f} % for {CAUSE_WORDS[cause]}")
        told += value
        if told >= total / 2:
            break
    return " and ".join(filter(None, [", ".join(parts[:-1]), parts[-1]]))
