"""Kept programs: the bits of a fresh trace, and none where anything that decides a program differs."""

import hashlib
import os
import pickle
import time
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array

import dse
from dse.base import numerics
from dse.base.compilation import LEAST
from dse.base.kept import kept_programs, machine, user_cache
from dse.base.kept.kept_programs import kept_or_traced
from dse.base.kept.user_cache import STORE

TRACES = []
"""One element for each trace of this module's functions."""

X = np.linspace(-3.0, 3.0, 17, dtype=np.float32)


@dataclass(frozen=True, repr=False)
class Law:
    """A part of a program whose repr hides what it holds."""

    power: float
    name: str = ""


class Model(eqx.Module):
    """A record as models are: arrays, and what programs are made with."""

    scale: Array | np.ndarray
    law: Law = eqx.field(static=True)
    strict: bool = eqx.field(default=True, static=True)


class Answer(eqx.Module):
    values: Array
    title: str = eqx.field(static=True)
    total: dict[str, Array] | None = None


def evaluated(model: Model, x: Array, wanted: bool) -> tuple[Answer, int]:
    TRACES.append(1)
    values = jnp.exp(x * model.scale) ** model.law.power / (1.0 if model.strict else 3.0)
    total = {"sum": jnp.sum(values), "one": np.float32(1.0)} if wanted else None
    return Answer(values, model.law.name, total), 7


def other(model: Model, x: Array, wanted: bool) -> tuple[Answer, int]:
    return evaluated(model, x, wanted)


MODEL = Model(np.float32(0.7), Law(1.5, "law"))


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package of two files, whose functions are this module's."""
    folder = tmp_path / "package"
    (folder / "data").mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    (folder / "data" / "table.csv").write_text("a,1\n")
    monkeypatch.setattr(dse, "__file__", str(folder / "__init__.py"))
    monkeypatch.setattr(dse, "_IMPORTED_NS", time.time_ns() + 3600 * 10**9)
    monkeypatch.setattr(kept_programs, "KNOWN", kept_programs.KNOWN | {"tests"})
    return folder


@pytest.fixture
def folder(tmp_path, package):
    folder = tmp_path / "programs"
    STORE.open(folder)
    yield folder
    STORE.close()


def answer(*arguments, function=evaluated, options=None):
    """What a command answers that has traced nothing yet, and whether it traces."""
    before = len(TRACES)

    def traced(*given):
        TRACES.append(1)
        return eqx.filter_jit(function, compiler_options=options)(*given)

    found = kept_or_traced(function, lambda: options, traced)(*arguments)
    return found, len(TRACES) > before


def equal(one, two):
    same = jax.tree.map(
        lambda a, b: type(a) is type(b) and np.asarray(a).tobytes() == np.asarray(b).tobytes(), one, two
    )
    return jax.tree.structure(one) == jax.tree.structure(two) and all(jax.tree.leaves(same))


def test_a_second_command_traces_nothing_and_answers_the_same_bits(folder):
    first, traced = answer(MODEL, X, True)
    assert traced
    second, traced = answer(MODEL, X, True)
    assert not traced
    assert equal(first, second)
    assert equal(second, eqx.filter_jit(evaluated)(MODEL, X, True))
    assert (second[0].title, second[1]) == ("law", 7)
    other_numbers = Model(np.float32(-0.2), MODEL.law)
    third, traced = answer(other_numbers, X + 1, True)
    assert not traced
    assert equal(third, eqx.filter_jit(evaluated)(other_numbers, X + 1, True))
    assert [oct(path.stat().st_mode & 0o777) for path in (folder, *folder.iterdir())] == ["0o700", "0o600"]


def test_a_program_in_memory_is_one_for_each_kind_of_call(folder):
    before = len(TRACES)
    call = kept_or_traced(evaluated, lambda: None, eqx.filter_jit(evaluated))
    for wanted in (True, False, True):
        for x in (X, X[:5], X + 1):
            assert call(MODEL, x, wanted)[0].values.shape == x.shape
    assert len(TRACES) - before == 4


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"arguments": (Model(MODEL.scale, Law(1.6, "law")), X, True)}, id="within a part without repr"),
        pytest.param({"arguments": (Model(MODEL.scale, Law(1.5, "Law")), X, True)}, id="text"),
        pytest.param({"arguments": (Model(MODEL.scale, MODEL.law, False), X, True)}, id="static field"),
        pytest.param({"arguments": (MODEL, X, False)}, id="static argument"),
        pytest.param({"arguments": (MODEL, X, 1)}, id="1 for True"),
        pytest.param({"arguments": (Model(0.7, MODEL.law), X, True)}, id="number for array"),
        pytest.param({"arguments": (MODEL, X[:16], True)}, id="shape"),
        pytest.param({"arguments": (MODEL, X.astype(np.float16), True)}, id="type"),
        pytest.param({"arguments": (Model(jnp.asarray(0.7), MODEL.law), X, True)}, id="weak type"),
        pytest.param({"function": other}, id="function"),
        pytest.param({"options": LEAST}, id="option"),
    ],
)
def test_whatever_decides_a_program_is_in_its_key(folder, changed):
    answer(MODEL, X, True)
    given = {"arguments": (MODEL, X, True)} | changed
    found, traced = answer(*given.pop("arguments"), **given)
    assert traced
    arguments = changed.get("arguments", (MODEL, X, True))
    assert equal(
        found, eqx.filter_jit(changed.get("function", evaluated), compiler_options=changed.get("options"))(*arguments)
    )
    assert len(list(folder.iterdir())) == 2


@pytest.mark.parametrize("setting", [lambda: jax.enable_x64(True), lambda: jax.default_matmul_precision("float32")])
def test_settings_of_jax_are_in_the_key(folder, setting):
    x = np.arange(3.0)
    narrow, _ = answer(MODEL, x, True)
    with setting():
        assert answer(MODEL, x, True)[1]
        wide, traced = answer(MODEL, x, True)
        assert not traced
        assert equal(wide, eqx.filter_jit(evaluated)(MODEL, x, True))
    again, traced = answer(MODEL, x, True)
    assert not traced
    assert equal(again, narrow)


def test_numbers_of_64_bits_are_those_of_32_where_jax_takes_them_so(folder):
    narrow, _ = answer(MODEL, X, True)
    wide, traced = answer(Model(np.float64(0.7), MODEL.law), X.astype(float), True)
    assert not traced
    assert equal(wide, narrow)


@pytest.mark.parametrize("name", ["XLA_FLAGS", "EQX_ON_ERROR"])
def test_flags_and_the_processor_are_in_the_key(folder, monkeypatch, name):
    answer(MODEL, X, True)
    machine.machine.cache_clear()
    monkeypatch.setenv(name, "--xla_cpu_enable_fast_math=true")
    assert answer(MODEL, X, True)[1]
    monkeypatch.undo()
    machine.machine.cache_clear()


def test_the_processor_is_in_the_key(folder, monkeypatch):
    answer(MODEL, X, True)
    machine.machine.cache_clear()
    monkeypatch.setattr(machine, "_processor", lambda: ["flags : sse2"])
    assert answer(MODEL, X, True)[1]
    machine.machine.cache_clear()


def grow(table):
    table.write_text("a,1\nb,2\n")


def later(table):
    os.utime(table, ns=(table.stat().st_atime_ns, table.stat().st_mtime_ns + 1))


def rewritten(table):
    """Another content of the same size and time."""
    state = table.stat()
    time.sleep(0.02)  # the clock of file systems ticks every few milliseconds
    table.write_text("a,2\n")
    os.utime(table, ns=(state.st_atime_ns, state.st_mtime_ns))


def added(table):
    table.with_name("other.csv").write_text("")


def renamed(table):
    table.rename(table.with_name("other.csv"))


@pytest.mark.parametrize("change", [grow, later, rewritten, added, renamed])
def test_a_changed_file_of_the_package_is_in_the_key(folder, package, change):
    answer(MODEL, X, True)
    change(package / "data" / "table.csv")
    STORE.open(folder)
    assert answer(MODEL, X, True)[1]


def test_compiled_python_is_not(folder, package):
    answer(MODEL, X, True)
    (package / "__pycache__").mkdir()
    (package / "__pycache__" / "__init__.pyc").write_text("")
    STORE.open(folder)
    assert not answer(MODEL, X, True)[1]


def test_a_package_that_changes_while_a_command_runs_keeps_nothing(folder, package, monkeypatch):
    grow(package / "data" / "table.csv")
    answer(MODEL, X, True)
    assert not list(folder.iterdir())
    monkeypatch.setattr(dse, "_IMPORTED_NS", time.time_ns())  # of a command that began while files changed
    STORE.open(folder)
    assert STORE.package is None


def spoilt(content):
    return content[:-1] + bytes([content[-1] ^ 1])


@pytest.mark.parametrize(
    "spoil",
    [
        lambda content: b"",
        lambda content: content[:-1],
        spoilt,
    ],
)
def test_what_is_not_whole_is_traced_and_kept_anew(folder, spoil):
    wanted, _ = answer(MODEL, X, True)
    (path,) = folder.iterdir()
    path.write_bytes(spoil(path.read_bytes()))
    found, traced = answer(MODEL, X, True)
    assert traced
    assert equal(found, wanted)
    assert not answer(MODEL, X, True)[1]


@pytest.mark.parametrize("content", [b"no pickle", pickle.dumps((b"none", 3, ()))])
def test_what_does_not_load_is_traced_from_now_on(folder, content):
    wanted, _ = answer(MODEL, X, True)
    (path,) = folder.iterdir()
    path.write_bytes(hashlib.sha256(content).digest() + content)
    for _ in range(2):
        found, traced = answer(MODEL, X, True)
        assert traced
        assert equal(found, wanted)
    assert path.read_bytes() == hashlib.sha256(b"").digest()


class Failing:
    def __init__(self, *_):
        pass

    def __call__(self, *arrays):
        raise RuntimeError("NOT_FOUND: Function multiply_exponential_fusion not found")


class OffByABit(Failing):
    def __call__(self, *arrays):
        return [np.nextafter(x, np.float32(9)) for x in kept_programs_loaded[-1](*arrays)]


kept_programs_loaded = []


@pytest.mark.parametrize("executable", [Failing, OffByABit])
def test_what_does_not_run_or_give_the_same_bits_is_not_kept(folder, monkeypatch, executable):
    from jax.experimental import serialize_executable

    load = serialize_executable.deserialize_and_load

    def wrong(*given):
        kept_programs_loaded.append(load(*given))
        return executable()

    wanted = eqx.filter_jit(evaluated)(MODEL, X, True)
    with monkeypatch.context() as patch:
        patch.setattr(serialize_executable, "deserialize_and_load", wrong)
        assert equal(answer(MODEL, X, True)[0], wanted)
    (path,) = folder.iterdir()
    assert path.read_bytes() == hashlib.sha256(b"").digest()


def test_what_no_longer_runs_is_traced_from_now_on(folder, monkeypatch):
    from jax.experimental import serialize_executable

    wanted, _ = answer(MODEL, X, True)
    with monkeypatch.context() as patch:
        patch.setattr(serialize_executable, "deserialize_and_load", Failing)
        found, traced = answer(MODEL, X, True)
        assert traced
        assert equal(found, wanted)
    found, traced = answer(MODEL, X, True)
    assert traced
    assert equal(found, wanted)


def test_who_interrupts_leaves_nothing(folder):
    with pytest.raises(KeyboardInterrupt):
        answer(X, None, function=interrupted)
    assert not list(folder.iterdir())


def interrupted(x, part):
    raise KeyboardInterrupt


@pytest.mark.parametrize(("of_file", "mode"), [(False, 0o770), (False, 0o707), (True, 0o660), (True, 0o602)])
def test_what_others_can_write_is_not_used(folder, of_file, mode):
    answer(MODEL, X, True)
    ((path,), before) = folder.iterdir(), folder.stat().st_mode
    (path if of_file else folder).chmod(mode)
    STORE.open(folder)
    assert (STORE.package is None) == (not of_file)
    assert answer(MODEL, X, True)[1]
    folder.chmod(before)


def test_what_others_own_or_is_no_folder_is_not_used(tmp_path, package, monkeypatch):
    link = tmp_path / "link"
    link.symlink_to(tmp_path)
    (tmp_path / "file").write_text("")
    for place in (link, tmp_path / "file", tmp_path / "file" / "below"):
        STORE.open(place)
        assert STORE.package is None
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    STORE.open(tmp_path / "programs")
    assert STORE.package is None
    monkeypatch.delattr(os, "getuid")  # as on Windows, where modes say nothing
    STORE.open(tmp_path / "programs")
    assert STORE.package is None


VARIABLE = ContextVar("variable", default=0.0)


def test_what_no_key_describes_is_traced_and_not_kept(folder, monkeypatch):
    class Local:
        pass

    def local(x):
        return x * MODEL.scale

    for part in (Local(), lambda x: x, pytest, Law(1.0, pytest), partial(Law, pytest.Config)):
        assert answer(X, part, function=pair)[0][1] is part
    assert answer(X, function=local)[0].shape == X.shape
    assert answer(X, function=lambda x: x)[0].shape == X.shape
    with monkeypatch.context() as patch:
        patch.setattr(kept_programs, "KNOWN", kept_programs.KNOWN - {"tests"})
        answer(MODEL, X, True)
    with monkeypatch.context() as patch:
        patch.setattr(numerics, "VARIABLE", VARIABLE, raising=False)
        token = VARIABLE.set(0.0)
        answer(MODEL, X, True)
        VARIABLE.reset(token)
    assert not list(folder.iterdir())


def pair(x, part):
    return 2 * x, part


def test_a_transformed_program_is_traced_within_the_transformation(folder):
    call = kept_or_traced(evaluated, lambda: None, eqx.filter_jit(evaluated))
    slope = jax.grad(lambda x: call(MODEL, x, True)[0].total["sum"])(jnp.asarray(X))
    wanted = jax.grad(lambda x: evaluated(MODEL, x, True)[0].total["sum"])(jnp.asarray(X))
    np.testing.assert_allclose(slope, wanted, rtol=1e-6)
    assert not list(folder.iterdir())


def test_an_error_of_the_function_is_the_functions(folder):
    with pytest.raises(TypeError, match="unsupported operand"):
        answer(X, "text", function=product)


def product(x, part):
    return x / part


def test_what_was_not_loaded_for_longest_is_removed(folder, monkeypatch):
    answer(MODEL, X, True)
    (first,) = folder.iterdir()
    answer(MODEL, X[:5], True)
    (second,) = set(folder.iterdir()) - {first}
    os.utime(first, (0, 0))
    os.utime(second, (1, 1))
    assert not answer(MODEL, X, True)[1]  # the first is loaded again
    monkeypatch.setattr(user_cache, "MOST_BYTES", int(2.5 * first.stat().st_size))
    answer(MODEL, X[:6], True)
    assert first.exists()
    assert not second.exists()
    assert len(list(folder.iterdir())) == 2


def test_without_a_folder_nothing_is_kept(tmp_path):
    assert STORE.package is None
    assert answer(MODEL, X, True)[1]
    assert answer(MODEL, X, True)[1]


def test_the_digest_is_of_every_file_of_the_package(monkeypatch):
    monkeypatch.setattr(dse, "_IMPORTED_NS", time.time_ns() + 3600 * 10**9)
    seen = []
    scandir = os.scandir
    monkeypatch.setattr(os, "scandir", lambda path: seen.append(Path(path)) or scandir(path))
    assert user_cache.package_digest() == user_cache.package_digest()
    root = Path(dse.__file__).parent
    assert set(seen) == {p for p in (root, *root.rglob("*")) if p.is_dir() and p.name != "__pycache__"}
