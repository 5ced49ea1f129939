"""A memory that is too small for JAX, told before XLA would end the process without a word."""

from dse.base.errors import InputError
from dse.base.units import GIGA

LEAST = 2.0 * GIGA
"""Address space [B] that a command with JAX needs; with 1.5 GB XLA ends the process (std::bad_alloc, exit code 134)."""


def address_space() -> float | None:
    """Return the most address space that this process may take [B], None where nothing limits or tells it."""
    try:
        import resource
    except ImportError:  # not a Unix
        return None
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if limit == resource.RLIM_INFINITY else float(limit)


def refuse_little_memory() -> None:
    """Raise InputError where the process may take less than LEAST."""
    limit = address_space()
    if limit is not None and limit < LEAST:
        raise InputError(
            f"memory: this process may take {limit / GIGA:.1f} GB of address space, and JAX needs {LEAST / GIGA:g}; "
            "raise the limit (ulimit -v, or the job's memory)"
        )
