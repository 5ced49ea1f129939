"""Fits of a batch, shared out over the devices of this process."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax import Array
from jax.sharding import Mesh, PartitionSpec

FITS = "fits"
"""Axis of a mesh of devices: each takes some of a batch's fits."""


def shared_out(fits: Callable[..., Any], batch: Sequence[Array]) -> Any:
    """Return ``fits(*batch)`` while tracing, whose arrays are of shape (fits, ...), each device taking as many.

    ``fits`` must treat each fit alone. It is traced for the fits of one device, so that loops over them end there
    without waiting for other devices. The first fits are repeated where their number is no multiple of the devices'.
    """
    devices = jax.local_devices()
    if len(devices) == 1:
        return fits(*batch)
    count = len(batch[0])
    whole = np.arange(-(-count // len(devices)) * len(devices)) % count
    along = PartitionSpec(FITS)
    each = jax.shard_map(
        lambda some: fits(*some),
        mesh=Mesh(np.asarray(devices), (FITS,)),
        in_specs=along,
        out_specs=along,
        check_vma=False,  # loops carry constants that are equal on all devices
    )
    return jax.tree.map(lambda x: x[:count], each(tuple(x[whole] for x in batch)))
