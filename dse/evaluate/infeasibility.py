"""Why a design cannot be had: numbered reasons inside the batch, sentences outside it."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from dse.base.units import GIGA
from dse.hardware.schema import gpu_schema, overfull, uneven, unlinked
from dse.power.power_limit import NO_LOWER, SLOWEST
from dse.space.space import Space

Masks = dict[str, np.ndarray]
"""Objective -> which designs lack it, (designs,); objectives that none lacks are left out."""


@dataclass(frozen=True)
class Reason:
    """One reason: its ``kind`` (link, kernel, room, dies, memory, power, constraint, objective) and subject's name."""

    kind: str
    subject: str
    detail: str = ""


class Reasons:
    """The reasons of a space in order of precedence; number 0 means that a design can be had."""

    def __init__(self, space: Space) -> None:
        self.space = space
        links = [Reason("link", name) for name, _ in space.links]
        varied = {axis.name for axis in space.axes} | {name for name, _ in space.links}
        room = [Reason("room", "shared_memory_kib")] if varied & {"shared_memory_kib", "l1_kib"} else []
        several = "dies" in varied or space.base.numbers()["dies"] > 1
        dies = [Reason("dies", "dies")] if several and varied & {"dies", "die_link_gbs", "sm_count"} else []
        memory = [Reason("memory", w.name) for w in space.workloads]
        kernels = [Reason("kernel", w.name, o.name) for w in space.workloads for o in w.operators]
        power = [Reason("power", w.name) for w in space.workloads if space.power.limit]
        constraints = [Reason("constraint", c.text) for c in space.constraints]
        objectives = [Reason("objective", o.name) for o in space.objectives]
        self.all = (Reason("feasible", ""), *links, *kernels, *room, *dies, *memory, *power, *constraints, *objectives)
        self._blank = len(links) + len(kernels)
        self._room, self._dies = bool(room), bool(dies)
        self._axes = {axis.name for axis in space.axes}

    def codes(self, results: Mapping[str, Any], runs: Sequence[Array | np.ndarray]) -> Array:
        """Return the number of each design's first reason, shape (designs,).

        ``results``: attributes and metrics by name; ``runs``: for each workload, 1 where an operator has a kernel that
        runs, shape (designs, operators).
        """
        schema = gpu_schema()
        failed = []
        for name, _ in self.space.links:
            value = results[name]
            failed.append((value < schema[name].low) | (value > schema[name].high))
        for can_run in runs:
            failed += [can_run[:, number] <= 0 for number in range(can_run.shape[1])]
        if self._room:
            failed.append(overfull(results))
        if self._dies:
            failed.append(unlinked(results) | uneven(results))
        for workload in self.space.workloads:
            failed.append(results["dram_gb"] < workload.memory.total / GIGA)
        for workload in self.space.workloads if self.space.power.limit else ():
            failed.append(results[f"{workload.name}.clock_share"] <= NO_LOWER)
        for constraint in self.space.constraints:
            failed.append(jnp.logical_not(constraint(results, jnp)))
        code = jnp.zeros(results["total.time_ms"].shape, dtype=jnp.int32)
        for number in range(len(failed), 0, -1):
            code = jnp.where(failed[number - 1], number, code)
        return code

    def add_non_finite(self, code: np.ndarray, results: dict[str, np.ndarray]) -> tuple[np.ndarray, Masks]:
        """Return the codes with designs whose objectives are not finite (a division by 0) marked, and which those are
        by objective, also of designs that fail for another reason; such values become 0.

        Outside the batch's program, because fast-math does not know infinity.
        """
        code, lacking = code.copy(), {}
        first = len(self.all) - len(self.space.objectives)
        for number, objective in enumerate(self.space.objectives):
            bad = ~np.isfinite(results[objective.name])
            if bad.any():
                lacking[objective.name] = bad
                code[bad & (code == 0)] = first + number
                results[objective.name] = np.where(bad, 0.0, results[objective.name])
        return code, lacking

    def is_blank(self, code: Array | np.ndarray) -> Array | np.ndarray:
        """Whether designs of these codes have no results: a link leaves its range, or an operator has no kernel."""
        return (code > 0) & (code <= self._blank)

    def empty(self, code: np.ndarray, lacking: Masks, names: Iterable[str]) -> dict[str, np.ndarray]:
        """Return for each result whether designs of these codes lack it: blank ones, and objectives not finite, which
        are ``lacking`` (:meth:`add_non_finite`)."""
        blank = np.asarray(self.is_blank(code))
        return {name: blank | lacking[name] if name in lacking else blank for name in names}

    def counts(self, code: np.ndarray, columns: Mapping[str, np.ndarray]) -> Counter[str]:
        """Return how many designs fall to each reason, those that can be had left out: sentences of :meth:`texts`, of
        memory one a capacity where that is an axis, and one for all capacities where it follows others."""
        found: Counter[str] = Counter()
        for number in np.flatnonzero(np.bincount(code, minlength=1)).tolist():
            reason, hit = self.all[number], code == number
            if reason.kind == "memory" and "dram_gb" in self._axes:
                for size, count in zip(*np.unique(columns["dram_gb"][hit], return_counts=True), strict=True):
                    found[self._memory_text(reason, size)] += int(count)  # capacities that print alike add up
            elif reason.kind == "memory" and "dram_gb" in columns:
                found[self._memory_text(reason, None)] += int(hit.sum())
            elif number:
                found[self._text(reason)] += int(hit.sum())
        return found

    def named(self, counts: np.ndarray) -> Counter[str]:
        """Return the same of ``counts`` (reasons, capacities of the axis of memory; one where it is none)."""
        found: Counter[str] = Counter()
        sizes = next((axis.numbers for axis in self.space.axes if axis.name == "dram_gb"), [None])
        linked = any(name == "dram_gb" for name, _ in self.space.links)
        for number, place in zip(*(x.tolist() for x in np.nonzero(counts)), strict=True):
            reason = self.all[number]
            if reason.kind == "memory" and (linked or sizes[place] is not None):
                found[self._memory_text(reason, sizes[place])] += int(counts[number, place])
            elif number:
                found[self._text(reason)] += int(counts[number, place])
        return found

    def texts(self, code: np.ndarray, columns: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return a sentence for each design ("" where it can be had); memory names both numbers."""
        texts = np.array([self._text(reason) for reason in self.all], dtype=object)[code]
        for number, reason in enumerate(self.all):
            if reason.kind == "memory" and "dram_gb" in columns:
                hit = code == number
                texts[hit] = [self._memory_text(reason, value) for value in columns["dram_gb"][hit]]
        return texts

    def _text(self, reason: Reason) -> str:
        if reason.kind == "link":
            attr = gpu_schema()[reason.subject]
            return f"link: {reason.subject} is not {attr.range_text}"
        if reason.kind == "memory":
            return self._memory_text(reason, self.space.base.numbers()["dram_gb"])
        if reason.kind == "kernel":
            return (
                f"kernel: {reason.subject} has no kernel for {reason.detail} that runs "
                "(data type, instructions, or a CTA that does not fit an SM)"
            )
        if reason.kind == "power":
            return (
                f"power: {reason.subject} draws more than its board is held to, tdp_w or a little less, at the lowest "
                f"clock, {SLOWEST:g} of what is asked for"
            )
        if reason.kind == "room":
            return "room: shared_memory_kib is more than l1_kib, which holds it too"
        if reason.kind == "dies":
            return "dies: several dies need a die_link_gbs, and each the same number of SMs"
        if reason.kind == "objective":
            return f"objective: {reason.subject} is not a finite number"
        return f"constraint: {reason.subject}" if reason.kind == "constraint" else ""

    def _memory_text(self, reason: Reason, dram_gb: float | None) -> str:
        """The sentence on a capacity; None: on those of several designs."""
        workload = next(w for w in self.space.workloads if w.name == reason.subject)
        gpus = f" on each of {workload.gpus} GPUs" if workload.gpus > 1 else ""
        has = "more than dram_gb" if dram_gb is None else f"has {dram_gb:g} GB"
        return f"memory: {workload.name} needs {workload.memory.total / GIGA:.1f} GB{gpus}, {has}"


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
