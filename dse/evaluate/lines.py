"""What a program of :mod:`dse.evaluate.partial_evaluation` consists of: lines, and the sides on which they stand."""

from collections import Counter
from collections.abc import Callable
from enum import Flag, auto
from typing import Any, NamedTuple

import numpy as np


class Side(Flag):
    """What a term depends on that is not known when the program is built."""

    KERNEL = auto()
    GROUP = auto()  # what a group of designs has in common
    MEMBER = auto()  # what its designs differ in
    DESIGN = GROUP | MEMBER
    TABLE = KERNEL | GROUP
    PAIR = KERNEL | DESIGN


class Rows:
    """A term of the kernels alone: ``values`` of shape (kernels, ...), not all alike."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values
        self.key = (values.dtype.str, values.tobytes())


class Line(NamedTuple):
    """An operation on designs or pairs: ``given`` are known numbers, Rows, or places of earlier lines.

    ``side`` is DESIGN or PAIR, before anything is known of groups; ``inputs``: bit n is set where the line depends on
    the n-th argument that was not known, and one more where NumPy lacks it. ``name``: the primitive's, empty where it
    works on arrays.
    """

    name: str
    apply: Callable[..., Any]
    given: tuple[Any, ...]
    side: Side
    inputs: int
    is_bool: bool


class Operations(NamedTuple):
    """Operations by where they are done: on each of the pairs, once a kernel and group; and numbers in a table."""

    pairs: Counter[str]
    tabulated: Counter[str]
    columns: int


class Parts(NamedTuple):
    """A program taken apart, for whoever runs it line by line: ``lines`` in order, and places among them.

    ``designs``, ``pairs``: what is computed for a design alone, and for a pair; ``columns``: the terms of a kernel and
    a group, read from a table. ``rows``: the terms of the kernels that pairs read. ``results``: places, Rows, or known
    numbers, in the order of ``tree``.
    """

    lines: list[Line]
    designs: list[int]
    pairs: list[int]
    columns: list[int]
    rows: list[Rows]
    results: list[Any]
    tree: Any
