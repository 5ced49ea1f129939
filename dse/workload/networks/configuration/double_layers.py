"""Layers of two attentions and two dense MLPs, beside the second half of which experts run (LongCat-Flash).

Some of the experts that a token may choose hand it on as it is. Those that compute are as many as the share of them.
"""

from pathlib import Path

from dse.workload.networks.configuration.attention_words import FULL
from dse.workload.networks.configuration.attentions import attention_of
from dse.workload.networks.configuration.mlps import activation_of
from dse.workload.networks.configuration.model_types import ModelType
from dse.workload.networks.configuration.values import SPELLINGS, Config, refuse_part, whole
from dse.workload.networks.layers import Layer
from dse.workload.networks.mlp_kinds import Dense, Mixture

TYPE = "longcat_flash"


def double_layers(config: Config, kind: ModelType, path: Path) -> list[Layer] | None:
    """Return the layers of such a network as twice as many, None of another; raises InputError.

    The first of two has the experts, whose tokens pass its MLP, too: Meituan, *LongCat-Flash* (2025), 2.1 and 2.2.
    """
    if kind.name != TYPE:
        return None
    gated, activation = activation_of(config, kind, path)
    dense = Dense(whole(config, ("ffn_hidden_size", "intermediate_size"), path), gated, activation)
    width = whole(config, ("expert_ffn_hidden_size", "moe_intermediate_size"), path)
    experts, idle = whole(config, SPELLINGS["experts"], path), whole(config, ("zero_expert_num",), path, 0)
    chosen = whole(config, SPELLINGS["used"], path)
    refuse_part(chosen, "experts a token", experts, path)
    computing = max(1, round(chosen * experts / (experts + idle)))
    mixture = Mixture(experts, computing, width, gated, activation, shared_ffn=dense.ffn)
    attention = attention_of(FULL, 0, config, kind, path)
    return [Layer(attention, mixture), Layer(attention, dense)] * whole(config, SPELLINGS["layers"], path)
