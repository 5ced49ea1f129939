"""Too little memory is a sentence with a remedy, told before JAX starts."""

import resource

import pytest

from dse.base.errors import InputError
from dse.base.memory_limit import LEAST, address_space, refuse_little_memory
from dse.cli import run_command


def limited(monkeypatch: pytest.MonkeyPatch, size: float) -> None:
    monkeypatch.setattr("resource.getrlimit", lambda _: (size, size))


def test_a_small_address_space_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    limited(monkeypatch, 1.5e9)
    with pytest.raises(InputError, match=r"may take 1\.5 GB of address space, and JAX needs 2; raise the limit"):
        refuse_little_memory()


@pytest.mark.parametrize("size", [resource.RLIM_INFINITY, LEAST, 1e12])
def test_enough_is_not(size: float, monkeypatch: pytest.MonkeyPatch) -> None:
    limited(monkeypatch, size)
    refuse_little_memory()
    assert address_space() == (None if size == resource.RLIM_INFINITY else size)


def test_commands_tell_it_and_tables_are_shown_all_the_same(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    limited(monkeypatch, 1.5e9)
    assert run_command(["run", "h100_sxm", "llama3_8b"]) == 2
    assert capsys.readouterr().err.startswith("dse: memory: this process may take 1.5 GB")
    assert run_command(["show", "gpus"]) == 0


def test_memory_that_runs_out_is_a_sentence(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    def full(*_: object, **__: object) -> None:
        raise MemoryError("Unable to allocate 7 GiB")

    monkeypatch.setattr("dse.cli.app", full)
    assert run_command(["show", "gpus"]) == 2
    assert "memory ran out (Unable to allocate 7 GiB); give fewer" in capsys.readouterr().err
