"""The samplers of a search by name, and the study that each needs."""

import importlib.util

from dse.base.errors import InputError, accepted, expect
from dse.pareto.generations import LOCAL, GenerationStudy, generation_sizes
from dse.pareto.optuna_storage import CHOICES, open_storage
from dse.pareto.trials import DesignStudy
from dse.space.space import Space

SAMPLERS = (LOCAL, *CHOICES)

Searching = GenerationStudy | DesignStudy


def check_sampler(name: str) -> None:
    """Refuse a sampler that does not exist or cannot run here; raises InputError."""
    expect("sampler", name, str, accepted("", SAMPLERS))
    if name not in SAMPLERS:
        raise InputError(f"--sampler {name!r} is not known; {accepted(name, SAMPLERS)}")
    if name == "gp" and importlib.util.find_spec("torch") is None:
        raise InputError("--sampler gp needs torch, which is not installed; pip install torch, or use tpe")


def make_study(space: Space, url: str | None, sampler: str, seed: int, evaluations: int) -> Searching:
    """Return the study of a sampler by name in the storage at ``url``; one that was begun there goes on.

    Raises InputError where the storage cannot be opened or holds another space.
    """
    storage = open_storage(url)
    if sampler == LOCAL:
        return GenerationStudy(space, storage, seed, *generation_sizes(evaluations))
    return DesignStudy(space, storage, sampler, seed)
