"""What a search returns: apart from searching, which needs packages that reading and drawing a result does not."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from dse.base.brief import block, with_table
from dse.base.drawn import Drawn
from dse.base.pareto_filter import REFERENCE
from dse.base.passwords import without_password
from dse.grid.result import SweepResult
from dse.pareto.gradient import Refinement

HYPERVOLUME_OF = f"box of the first batch's front, reference {REFERENCE:g}: compares batches of a search, not searches"
"""What a search's hypervolume is measured in."""


@dataclass(frozen=True)
class SearchResult(Drawn):
    """The result of a search."""

    result: SweepResult  # as a sweep's, over the different designs that were evaluated
    sampler: str
    seed: int
    storage: str | None
    evaluations: int  # designs evaluated, repeats and those of earlier runs included
    restored: int  # those of earlier runs, from the storage
    repeated: int  # designs of the storage that were evaluated again for the table
    seconds: float  # of this run, without compilation and refinement [s]
    hypervolume: float
    knees: np.ndarray  # positions on the front
    # After each batch: evaluations, seconds of this run, members of the front, hypervolume.
    history: list[tuple[int, float, int, float]] = field(repr=False)
    refinement: Refinement | None = None  # its designs stand on the front

    def __repr__(self) -> str:
        of = f"of {self.result.space.size:,} designs, {self.seconds:.3g} s, hypervolume {self.hypervolume:.4g}"
        result = repr(self.result).replace("\n", "\n  ")
        return block(self, f"sampler {self.sampler}, seed {self.seed}: {self.evaluations:,} evaluations {of}", result)

    def _repr_html_(self) -> str:
        return with_table(self, self.result.shown)

    def pareto(self) -> pd.DataFrame:
        """Return the non-dominated designs that were seen."""
        return self.result.front

    def to_frame(self) -> pd.DataFrame:
        """Return the same, as every result has it."""
        return self.result.front

    @property
    def rate(self) -> float:
        """Evaluations a second of this run, the sampler's work included."""
        return (self.evaluations - self.restored) / self.seconds if self.seconds > 0 else 0.0

    def record(self) -> dict[str, Any]:
        """Return the search as a run's record holds it: the same for the same search."""
        return {
            "sampler": self.sampler,
            "seed": self.seed,
            "size": self.result.space.size,
            "evaluations": self.evaluations,
            "hypervolume": self.hypervolume,
            "knees": self.knees.tolist(),
        } | ({"refinement": self.refinement.record()} if self.refinement else {})

    def summary(self) -> dict[str, Any]:
        """Return the JSON document of ``dse search --json``."""
        timing = {"restored": self.restored, "repeated": self.repeated}
        timing |= {"seconds": round(self.seconds, 3), "evaluations_per_s": round(self.rate)}
        context = {"hypervolume_of": HYPERVOLUME_OF, "storage": self.storage and without_password(self.storage)}
        return self.result.summary() | {"search": self.record() | context | timing}
