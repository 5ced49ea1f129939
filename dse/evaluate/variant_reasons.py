"""Why designs of a space with variants cannot be had: the reasons of each variant, one after the other."""

from collections import Counter
from collections.abc import Mapping

import numpy as np
from jax import Array

from dse.evaluate.infeasibility import Reason, Reasons
from dse.space.space import Space


class VariantReasons(Reasons):
    """The reasons of a space with variants: number 0, then for each variant that it cannot be, and its own reasons;
    at the end objectives that are no finite number.

    Variants that are found not to be while designs are evaluated are told by :meth:`refuse`.
    """

    def __init__(self, space: Space) -> None:
        assert space.variants
        self.space, self._every = space, space.variants.every
        self._of = [Reasons(one.space) if one.space else None for one in self._every]
        objectives = [Reason("objective", o.name) for o in space.objectives]
        every, self.starts, self._refused = [Reason("feasible", "")], list[int](), {}
        for variant, reasons in zip(self._every, self._of, strict=True):
            self.starts.append(len(every))
            every.append(Reason("variant", variant.base.name, variant.reason))
            every += reasons.all[1 : len(reasons.all) - len(objectives)] if reasons else ()
        self.all = (*every, *objectives)
        self._variant = np.searchsorted(self.starts, np.arange(len(every)), side="right") - 1
        blank = np.zeros(len(self.all), bool)
        for start, reasons in zip(self.starts, self._of, strict=True):
            own = np.arange(len(reasons.all)) if reasons else np.arange(1)
            blank[start] = True
            mine = np.asarray(reasons.is_blank(own))[1 : len(own) - len(objectives)] if reasons else own[:0] > 0
            blank[start + 1 : start + 1 + len(mine)] = mine
        self._blank_codes = blank

    def of_variant(self, variant: int) -> Reasons:
        """Return the reasons of a variant that can be."""
        found = self._of[variant]
        assert found
        return found

    def refuse(self, variant: int, why: str) -> None:
        """Note why no design of a variant can be had after all."""
        self._refused[variant] = why

    def combined(self, variant: int, code: np.ndarray) -> np.ndarray:
        """Return a variant's codes as codes of the whole; objectives that are no finite number are not among them."""
        return np.where(code == 0, 0, code + self.starts[variant])

    def is_blank(self, code: Array | np.ndarray) -> np.ndarray:
        return self._blank_codes[np.asarray(code)]

    def counts(self, code: np.ndarray, columns: Mapping[str, np.ndarray]) -> Counter[str]:
        found: Counter[str] = Counter()
        for reasons, places, own in self._parts(code):
            if isinstance(reasons, str):
                found[reasons] += len(places)
            else:
                found.update(reasons.counts(own, {name: values[places] for name, values in columns.items()}))
        return found

    def texts(self, code: np.ndarray, columns: Mapping[str, np.ndarray]) -> np.ndarray:
        texts = np.full(len(code), "", object)
        for reasons, places, own in self._parts(code):
            if isinstance(reasons, str):
                texts[places] = reasons
            else:
                texts[places] = reasons.texts(own, {name: values[places] for name, values in columns.items()})
        return texts

    def _parts(self, code: np.ndarray) -> list[tuple[Reasons | str, np.ndarray, np.ndarray]]:
        """The reasons of designs that cannot be had: of a variant with its own codes, or one sentence."""
        parts: list[tuple[Reasons | str, np.ndarray, np.ndarray]] = []
        first_objective = len(self.all) - len(self.space.objectives)
        for number in np.unique(code[code >= first_objective]):
            text = f"objective: {self.all[number].subject} is not a finite number"
            parts.append((text, np.flatnonzero(code == number), code[:0]))
        own = (code > 0) & (code < first_objective)
        which = np.where(own, self._variant[np.where(own, code, 0)], -1)
        for variant in np.unique(which[own]).tolist():
            here = np.flatnonzero(which == variant)
            numbers = code[here] - self.starts[variant]
            if (whole := here[numbers == 0]).size:
                parts.append((self._text_of(variant), whole, code[:0]))
            if (some := here[numbers > 0]).size:
                parts.append((self.of_variant(variant), some, numbers[numbers > 0]))
        return parts

    def _text_of(self, variant: int) -> str:
        """What is wrong with a variant, without what an author could do about it."""
        one = self._every[variant]
        text = self._refused.get(variant, one.reason).removeprefix("[workloads] ").partition(";")[0]
        return f"base: {text}" if one.base.title in text else f"base: {one.base.title}: {text}"


def reasons_of(space: Space) -> Reasons:
    """Return the reasons of a space."""
    return VariantReasons(space) if space.variants else Reasons(space)
