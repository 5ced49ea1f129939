"""Over how many GPUs a network is shared out: its layers, replicas of its attention, its experts."""

from collections.abc import Mapping
from typing import Any

from dse.base.errors import InputError
from dse.hardware.schema import gpu_schema
from dse.workload.counts import positive
from dse.workload.networks.mlp_kinds import Mixture
from dse.workload.networks.network import Network
from dse.workload.operators.expert_rows import checked_routing

DEGREE_KEYS = {
    "tp": "GPUs that share each layer (tensor parallel), up to as many as NVLink joins",
    "dp": "replicas of attention, each on tp GPUs, that share the requests; experts are shared out over all GPUs",
    "ep": "GPUs that share out the experts of a mixture (expert parallel): 1, a divisor of tp, or all tp x dp",
    "routing": "how tokens choose experts: balanced, uniform, or power_law_EXPONENT (power_law_1.2)",
}
"""Keys of a workload that share a network out, and what they mean."""

MOST_GPUS = int(gpu_schema()["nvlink_gpus"].high)
"""Most GPUs that share a layer: as many as NVLink may join. Whether a GPU's does is seen when its kernels are."""


def degrees(network: Network, settings: Mapping[str, str], batch: int, where: str) -> dict[str, Any]:
    """Return GPUs, replicas of attention, ranks of experts and routing, named as in
    :class:`~dse.workload.networks.language_model.Serving`.

    Raises InputError where one does not divide what it shares out, or where the network has no experts.
    """
    mixture = any(isinstance(layer.mlp, Mixture) for layer, _ in network.layers)
    if not mixture and (given := [key for key in ("ep", "routing") if key in settings]):
        raise InputError(f"{where}: {given[0]} shares out experts, and {network.title} has none; leave it out")
    tp, dp = _whole(settings, "tp", where, 1), _whole(settings, "dp", where, 1)
    if tp > MOST_GPUS:
        raise InputError(f"{where}: tp={tp} is not accepted; give a whole number from 1 to {MOST_GPUS:,}")
    ep = _whole(settings, "ep", where, tp * dp if dp > 1 and mixture else 1)
    if batch % dp:
        raise InputError(f"{where}: dp={dp} does not divide the {batch} requests of batch; give a multiple of {dp}")
    if dp > 1 and mixture and ep != tp * dp:
        raise InputError(
            f"{where}: ep={ep} with dp={dp}: replicas share the experts out over all their GPUs; give ep={tp * dp}"
        )
    if dp == 1 and tp % ep:
        raise InputError(f"{where}: ep={ep} does not divide tp={tp}; give a divisor, or dp replicas of attention")
    routing = checked_routing(where, settings["routing"]) if "routing" in settings else ""
    return {"gpus": tp, "ranks": ep, "replicas": dp, "routing": routing}


def _whole(settings: Mapping[str, str], key: str, where: str, default: int) -> int:
    if key not in settings:
        return default
    return positive(settings[key], f"{where}: {key}={settings[key]}", DEGREE_KEYS[key])
