"""Programs kept as executables from one command to the next: a warm command neither traces nor compiles them.

A program is found by a hash of all that decides it (:func:`_key`): the function, what it is called with, every file of
this package, the versions and settings of what traces and compiles, and the processor. What cannot be described
whole is traced as without a folder: an object of a class that lies outside this package and those that it computes
with, a function within a function, an array on another device, a context that this package's code reads. So is what
cannot be read, is not whole, or does not load.

They lie in the user's store (:mod:`dse.base.kept.user_cache`), which nobody else can write to: a program is native
code. On a CPU alone: on no GPU was it tried.
"""

import hashlib
import io
import pickle
import sys
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from functools import cache
from secrets import token_hex
from threading import RLock
from typing import Any, NamedTuple, TypeVar

import equinox as eqx
import jax
import numpy as np
from jax.core import Tracer

from dse.base.kept.early_loading import EARLY, Written, deserialised
from dse.base.kept.machine import is_one_cpu, machine
from dse.base.kept.user_cache import STORE, NotKeptError

T = TypeVar("T")

KNOWN = {"dse", "jax", "jaxlib", "numpy", "equinox", *sys.stdlib_module_names} - {"__main__"}
"""Packages whose code a key describes: by its files, or by a version."""


def kept_or_traced(
    function: Callable[..., T], options: Callable[[], Mapping[str, Any] | None], traced: Callable[..., T]
) -> Callable[..., T]:
    """Return ``traced``, the program of a function of a module, which is kept where a folder is open.

    As of ``equinox.filter_jit``, arrays are arguments of the program and all else is a part of it.
    """
    kept = _KeptPrograms(function, options)

    def call(*arguments: Any) -> T:
        if STORE.package is not None:
            with suppress(Exception):  # whatever it is: a kept program saves time and nothing else
                return kept(arguments)
        return traced(*arguments)

    return call


@dataclass(frozen=True)
class _Place:
    """Where an array of a result stands among those that an executable returns."""

    number: int


class _Program(NamedTuple):
    """An executable of arrays under its key, and the result that it gives, with places for its arrays."""

    key: str
    executable: Any
    result: Any

    def __call__(self, arrays: Sequence[Any]) -> Any:
        found = self.executable(*arrays)
        return jax.tree.map(lambda x: found[x.number] if isinstance(x, _Place) else x, self.result)


class _KeptPrograms:
    """A function's programs: those that are kept, and new ones, which are kept then. A call raises any error where
    there is none, and what no command should try again has nothing (b"") under its key."""

    def __init__(self, function: Callable[..., Any], options: Callable[[], Mapping[str, Any] | None]) -> None:
        self._function, self._options = function, options
        self._programs: dict[Hashable, _Program | None] = {}
        self._one_at_a_time = RLock()

    def __call__(self, arguments: tuple[Any, ...]) -> Any:
        leaves, tree = jax.tree.flatten(arguments)
        which = (tree, *map(_described, leaves), _settings())
        with self._one_at_a_time:
            if which not in self._programs:
                self._programs[which] = None  # unless it is found
                self._programs[which] = self._program(arguments)
        program = self._programs[which]
        if program is None:
            raise NotKeptError
        try:
            return program([x for x in leaves if eqx.is_array(x)])
        except Exception:  # whatever an executable raises, it is traced from now on: the caller does so
            self._programs[which] = None
            STORE.write(program.key, b"")
            raise

    def _program(self, arguments: tuple[Any, ...]) -> _Program:
        options = self._options()
        key = _key(self._function, options, arguments)
        content = STORE.read(key)
        if content is None:
            STORE.write(key, b"")
            try:
                content, program = _made(key, self._function, options, arguments)
            except KeyboardInterrupt:
                STORE.remove(key)
                raise
            STORE.write(key, content)
            return program
        if not content:
            raise NotKeptError
        try:
            return _loaded(key, content)
        except Exception:  # damaged, or of another runtime: no command is to try it again
            STORE.write(key, b"")
            raise


def _loaded(key: str, content: bytes) -> _Program:
    """Return a program as it was kept."""
    written = pickle.loads(content)
    return _Program(key, EARLY.taken(key) or deserialised(written), pickle.loads(written.result))


def _made(
    key: str, function: Callable[..., Any], options: Mapping[str, Any] | None, arguments: tuple[Any, ...]
) -> tuple[bytes, _Program]:
    """Return a new program as it is kept, and as it is loaded: its results are those of the trace, bit for bit."""
    from jax.experimental.serialize_executable import serialize

    leaves, tree = jax.tree.flatten(arguments)
    arrays = [x for x in leaves if eqx.is_array(x)]
    results = []

    def program(*given: Any) -> list[Any]:
        rest = iter(given)
        found = function(*jax.tree.unflatten(tree, [next(rest) if eqx.is_array(x) else x for x in leaves]))
        returned = [x for x in jax.tree.leaves(found) if eqx.is_array(x)]
        places = iter(range(len(returned)))
        results.append(jax.tree.map(lambda x: _Place(next(places)) if eqx.is_array(x) else x, found))
        return returned

    # A name of its own, so that XLA compiles it: what JAX loads from its own cache cannot be written a second time.
    program.__name__ = f"{function.__name__}_{token_hex(8)}"
    made = jax.jit(program, compiler_options=None if options is None else dict(options)).lower(*arrays).compile()
    found = made(*arrays)
    content = pickle.dumps(Written(serialize(made)[0], len(arrays), len(found), pickle.dumps(results[-1])))
    loaded = _loaded(key, content)
    if [*map(_bits, found)] != [*map(_bits, loaded.executable(*arrays))]:
        raise NotKeptError
    return content, loaded


def _bits(array: Any) -> tuple[Any, ...]:
    return _described(array), np.asarray(array).tobytes()


def _key(function: Callable[..., Any], options: Mapping[str, Any] | None, arguments: tuple[Any, ...]) -> str:
    """Return a hash of all that decides a program; raises NotKeptError, or pickle's errors, where something is not
    described whole."""
    if not is_one_cpu() or STORE.package is None or _in_context():
        raise NotKeptError
    home, name = function.__module__, function.__qualname__
    if home.partition(".")[0] not in KNOWN or function.__closure__ or "<" in name:
        raise NotKeptError
    written = io.BytesIO()
    what = home, name, sorted((options or {}).items()), arguments
    _Description(written).dump((what, repr(_settings()), machine(), STORE.package))
    return hashlib.sha256(written.getvalue()).hexdigest()


class _Description(pickle.Pickler):
    """Writes what a program is made of by value, an array by its shape and type: equal bytes, equal programs."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, protocol=5)
        self.fast = True  # a value that stands twice is written twice: equal values are equal bytes, shared or not

    def persistent_id(self, obj: Any) -> Any:
        if eqx.is_array(obj):
            return _described(obj)
        for of in (obj, type(obj)):
            module = getattr(of, "__module__", None)
            if isinstance(module, str) and module.partition(".")[0] not in KNOWN:
                raise NotKeptError
        return None


def _described(leaf: Any) -> Hashable:
    """Return what of an argument decides a program: of an array its shape and type, else its class and itself."""
    if not eqx.is_array(leaf):
        return type(leaf), leaf
    if not isinstance(leaf, jax.Array):
        return leaf.shape, jax.dtypes.canonicalize_dtype(leaf.dtype), False  # as JAX takes it: 64 bits may be 32
    if isinstance(leaf, Tracer) or leaf.devices() != _devices():
        raise NotKeptError
    return leaf.shape, leaf.dtype, leaf.aval.weak_type  # pyright: ignore[reportAttributeAccessIssue]


@cache
def _devices() -> set[Any]:
    """The device that programs run on."""
    return {jax.devices()[0]}


def _settings() -> tuple[Any, ...]:
    """Return JAX's settings as they hold in this thread, 64 bits among them."""
    return tuple(jax.config.values.items())


def _in_context() -> bool:
    """Whether a context variable of this package is set, which code reads that is traced."""
    modules = [module for name, module in [*sys.modules.items()] if name.partition(".")[0] == "dse"]
    ours = {id(x) for module in modules for x in vars(module).values() if isinstance(x, ContextVar)}
    return any(id(variable) in ours for variable in copy_context())
