"""Kinds of layers that keep a state, by their sizes in a configuration."""

from collections.abc import Callable
from pathlib import Path

from dse.workload.networks.configuration.attention_words import CONV, KIMI_DELTA, LIGHTNING, LINEAR, MAMBA, of_kimi
from dse.workload.networks.configuration.values import SPELLINGS, Config, head_dim, whole
from dse.workload.networks.layers import AttentionKind
from dse.workload.networks.states.gated_delta_net import GatedDeltaNet
from dse.workload.networks.states.kimi_delta import KimiDelta
from dse.workload.networks.states.lightning_attention import LightningAttention
from dse.workload.networks.states.mamba2 import Mamba2
from dse.workload.networks.states.short_convolution import ShortConvolution


def _delta_net(config: Config, path: Path) -> GatedDeltaNet:
    keys = ("num_key_heads", "num_value_heads", "key_head_dim", "value_head_dim", "conv_kernel_dim")
    return GatedDeltaNet(*(whole(config, (f"linear_{key}",), path) for key in keys))


def mamba_of(config: Config, path: Path) -> Mamba2:
    """Return the Mamba2 of a configuration; raises InputError."""
    heads = whole(config, ("mamba_num_heads", "mamba_n_heads"), path)
    if config.get("mamba_d_head") == "auto":
        expanded = whole(config, ("mamba_expand",), path, 2) * whole(config, SPELLINGS["hidden"], path)
        width = whole(config, ("mamba_d_ssm",), path, expanded)
        config = config | {"mamba_d_head": width // heads}
    return Mamba2(
        heads,
        whole(config, ("mamba_head_dim", "mamba_d_head"), path),
        whole(config, ("ssm_state_size", "mamba_d_state"), path),
        whole(config, ("n_groups", "mamba_n_groups"), path),
        whole(config, ("conv_kernel", "mamba_d_conv"), path),
        whole(config, ("chunk_size", "mamba_chunk_size"), path),
    )


def _kimi_delta(config: Config, path: Path) -> KimiDelta:
    said = config | {f"linear_{key}": value for key, value in of_kimi(config, path).items()}
    return KimiDelta(
        whole(said, ("linear_num_heads",), path),
        whole(said, ("linear_head_dim",), path),
        whole(said, ("linear_short_conv_kernel_size", "linear_conv_kernel_dim"), path),
    )


def _lightning(config: Config, path: Path) -> LightningAttention:
    hidden, heads = whole(config, SPELLINGS["hidden"], path), whole(config, SPELLINGS["heads"], path)
    return LightningAttention(
        heads, head_dim(config, ("head_dim",), hidden, heads, path), whole(config, ("block_size",), path)
    )


def _short_convolution(config: Config, path: Path) -> ShortConvolution:
    return ShortConvolution(whole(config, SPELLINGS["hidden"], path), whole(config, ("conv_L_cache",), path))


KEEPING: dict[str, Callable[[Config, Path], AttentionKind]] = {
    LINEAR: _delta_net,
    MAMBA: mamba_of,
    KIMI_DELTA: _kimi_delta,
    LIGHTNING: _lightning,
    CONV: _short_convolution,
}
"""What reads the sizes of a kind that keeps a state and nothing else."""
