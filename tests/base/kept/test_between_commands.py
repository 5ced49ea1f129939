"""What commands begin with: a device, or a sentence that names what asks for another."""

import jax
import pytest

from dse.base.errors import InputError
from dse.base.kept.between_commands import cache_compilations


@pytest.mark.parametrize("error", [RuntimeError("no libtpu.so"), AssertionError()])
def test_without_a_device_a_sentence_names_what_asks_for_it(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise error

    monkeypatch.setattr(jax, "devices", fail)
    monkeypatch.setenv("JAX_PLATFORMS", "cuda")
    with pytest.raises(InputError, match="JAX_PLATFORMS: 'cuda' gives JAX no device") as told:
        cache_compilations()
    assert (str(error) in str(told.value)) and "()" not in str(told.value)
