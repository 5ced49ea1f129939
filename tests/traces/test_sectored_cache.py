"""Set hashes, and sectored caches with the least recently used line replaced."""

import random

import numpy as np
import pytest

from dse.base.errors import InputError
from dse.traces.sectored_cache import FERMI, RESIDUE, hash_index, make_hash
from tests.traces.naive_caches import l2_set


@pytest.mark.parametrize("sets", [16, 32, 64])
def test_residue_hash(sets: int) -> None:
    h = make_hash(RESIDUE, sets, 128, "L2")
    rng = random.Random(sets)
    for address in [rng.getrandbits(48) for _ in range(200)]:
        assert hash_index(np.uint64(address), h.kind, h.bins, h.offset, h.residues) == l2_set(address, sets)
    with pytest.raises(InputError, match="no polynomial for 48"):
        make_hash(RESIDUE, 48, 128, "L2")
    with pytest.raises(InputError, match="Fermi"):
        make_hash(FERMI, 16, 128, "L2")
