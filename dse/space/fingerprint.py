"""Fingerprints: hashes of what decides a result, by its values alone.

A record counts by the values of its fields in their order, so no name of Python's takes part: classes and fields can be
renamed, and interrupted sweeps and stored searches go on. Coefficients with an entry for each implementation of kernels
count by the entries that are in use, so another implementation changes no other space.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import equinox as eqx
import numpy as np

from dse.workload.implementation import PerImplementation
from dse.workload.workload import Workload


def fingerprint(record: Any, implementations: Sequence[int] | None = None) -> str:
    """Return a hash of the values of a record: of the entries of these ``implementations``, None: of all."""
    return hashlib.sha256(json.dumps(values_of(record, implementations), sort_keys=True).encode()).hexdigest()[:16]


def implementations_in(workloads: Iterable[Workload]) -> list[int]:
    """Return the implementations that run in some workload, as indices into IMPLEMENTATIONS; traces have none."""
    used = [workload.implementations for workload in workloads]
    return np.unique(np.concatenate([np.zeros(0), *used])).astype(int).tolist()


def values_of(record: Any, implementations: Sequence[int] | None = None, each: bool = False) -> Any:
    """Return the values of a record as nested lists, an array of numbers as its shape and its hash.

    ``each``: whether arrays hold an entry for each implementation.
    """
    if is_dataclass(record):
        each = isinstance(record, PerImplementation)
        values = [getattr(record, f.name) for f in fields(record) if f.compare]
    elif isinstance(record, Mapping):
        return {str(key): values_of(value, implementations, each) for key, value in record.items()}
    elif isinstance(record, tuple | list):
        values = record
    else:
        return _value(record, implementations if each else None)
    return [values_of(value, implementations, each) for value in values]


def _value(value: Any, entries: Sequence[int] | None) -> Any:
    """Return a value that is no record, as JSON holds it."""
    if value is None or isinstance(value, str | bool):
        return value
    if not eqx.is_array_like(value):
        return repr(value)
    numbers = np.asarray(value, float)
    if numbers.ndim == 0:
        return float(numbers)
    numbers = numbers if entries is None else numbers[entries]
    return [numbers.shape, hashlib.sha256(numbers.tobytes()).hexdigest()]
