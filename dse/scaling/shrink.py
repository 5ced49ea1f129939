"""Scale models of a GPU record: the SM unchanged, everything shared in proportion to the SM count."""

import jax.numpy as jnp

from dse.base.errors import InputError
from dse.hardware.gpu import ATTRIBUTES, Gpu
from dse.hardware.schema import gpu_schema

SHARED = ("sm_count", "l2_mib", "l2_slices", "dram_bandwidth_gbs", "dram_bus_bits", "dram_gb", "nvlink_gbs", "tdp_w")
"""Attributes that all SMs share: cores, LLC capacity and slices (and with them the network's bandwidth), memory
controllers and their capacity, links, power."""

PACKAGE = ("dies", "l2_partitions")
"""Attributes that several dies have in proportion: a scale model of a package is one of fewer such dies."""

APART = ("pcie_gbs", "sm_enabled_fraction", "l2_enabled_fraction")
"""Attributes neither of an SM nor of its share of the chip: a host's link, which only GPUs without NVLink reduce
over, and shares of the die, from which no timing follows."""

TOLERANCE = 0.01
"""Largest relative departure from proportion that is accepted: data sheets round."""


def shared(gpu: Gpu) -> tuple[str, ...]:
    """Return the attributes of a GPU that shrink in proportion to its SMs."""
    return (*SHARED, *PACKAGE) if float(gpu.dies) > 1 else SHARED


def shrink(gpu: Gpu, sm_count: int) -> Gpu:
    """Return the scale model of a GPU with ``sm_count`` SMs.

    Raises InputError where a whole number would be broken (half a slice), or a bound of the schema is left. Latencies,
    clocks and L2 partitions are kept, as the paper keeps its SM; ``PAPERS.md`` says what that means. Of a package the
    dies and their partitions shrink, and a die and its link stay as they are.

    Worked example, a quarter of an H100 (20 of 80 slices, 837.5 of 3350 GB/s)::

        from dse import load_gpu
        from dse.scaling.shrink import shrink

        quarter = shrink(load_gpu("h100_sxm"), 33)
        print(quarter.l2_slices, quarter.dram_bandwidth_gbs)
    """
    factor = sm_count / float(gpu.sm_count)
    values = {}
    for name in shared(gpu):
        attribute, value = gpu_schema()[name], float(gpu.attribute(name)) * factor
        if attribute.type == "int" and abs(value - round(value)) > 1e-6 * max(value, 1.0):
            raise InputError(
                f"{sm_count} of {float(gpu.sm_count):g} SMs: {name} would be {value:g}, which is no whole number; give "
                f"{_whole_counts(gpu)}"
            )
        low = min(attribute.low, float(gpu.attribute(name)))
        if not low <= value <= attribute.high:
            raise InputError(
                f"{sm_count} of {float(gpu.sm_count):g} SMs: {name} would be {value:g}; give {attribute.range_text}"
            )
        values[name] = round(value) if attribute.type == "int" else value
    changes = {name: jnp.asarray(value, dtype=gpu.attribute(name).dtype) for name, value in values.items()}
    return gpu.with_attributes(changes)


def refuse_disproportionate(model: Gpu, target: Gpu) -> None:
    """Refuse a target that is no larger edition of a scale model: raises InputError with the attribute and its value.

    For a scale model that does not come from :func:`shrink`, whose own are in proportion by construction. Everything
    shared must grow as the SM count does, everything else must be equal.
    """
    factor, in_proportion = float(target.sm_count) / float(model.sm_count), shared(target)
    for name in ATTRIBUTES:
        if name in APART:
            continue
        small, large = float(model.attribute(name)), float(target.attribute(name))
        expected = small * factor if name in in_proportion else small
        if abs(large - expected) > TOLERANCE * max(abs(expected), abs(large)):
            how = f"{factor:g} times the scale model's" if name in in_proportion else "as in the scale model"
            raise InputError(
                f"target with {float(target.sm_count):g} SMs: {name} is {large:g}, in proportion it would be "
                f"{expected:g} ({how}); scale-model prediction covers proportional targets only"
            )


def _whole_counts(gpu: Gpu) -> str:
    """Return the SM counts that keep every whole number whole, in words."""
    whole = [float(gpu.attribute(name)) for name in shared(gpu) if gpu_schema()[name].type == "int"]
    total = round(float(gpu.sm_count))
    fitting = [n for n in range(1, total) if all(abs(v * n / total - round(v * n / total)) < 1e-6 for v in whole)]
    return ", ".join(f"{n}" for n in fitting) + " SMs" if fitting else "a GPU whose slices and bus its SMs divide"
