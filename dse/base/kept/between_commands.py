"""What one command keeps for the next: compiled programs, and which of them to load at once.

A command opens it before its other imports: executables are loaded while these go on.
"""

import os
import warnings

import jax

from dse.base.errors import InputError
from dse.base.kept.early_loading import EARLY
from dse.base.kept.user_cache import STORE, cache_folder

WORTH_KEEPING = 0.1
"""Seconds of compiling from which a program is kept: the programs of one design take less than a second each."""


def cache_compilations(command: str = "") -> None:
    """Keep programs that took WORTH_KEEPING to compile in the user's cache folder: a second command starts at once.

    With the name of a command, what the last one of this name used is loaded from now on, on a thread. Where there is
    no such folder, or it cannot be read or written, every command compiles for itself. Raises InputError where JAX has
    no device: of its second attempt it would say less.
    """
    _start_device()
    folder = cache_folder()
    if folder is None:
        return
    STORE.open(folder / "programs")
    warnings.filterwarnings("ignore", "Error (reading|writing) persistent compilation cache")
    jax.config.update("jax_compilation_cache_dir", str(folder / "compiled"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", WORTH_KEEPING)
    if command:
        EARLY.begin(command)


def _start_device() -> None:
    try:
        jax.devices()
    except (RuntimeError, AssertionError) as error:  # the second of a platform that is not installed
        asked, why = os.environ.get("JAX_PLATFORMS", ""), f" ({error})" if str(error) else ""
        remedy = "unset it for those that there are, or install what it needs, as pip install '.[cuda]'"
        raise InputError(f"JAX_PLATFORMS: {asked!r} gives JAX no device{why}; {remedy}") from None
