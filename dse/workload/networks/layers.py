"""A kind of layer: an attention and an MLP, each after a norm; and the tables of the kinds of both."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, Protocol

from dse.workload.dtypes import Precision
from dse.workload.networks.absent import Absent
from dse.workload.networks.attention_kinds import GroupedQueryAttention
from dse.workload.networks.block_sparse_attention import BlockSparseAttention
from dse.workload.networks.compressed_attention import CompressedAttention
from dse.workload.networks.hyper_connections import mixed, spread
from dse.workload.networks.latent_attention import LatentAttention
from dse.workload.networks.mlp_kinds import Dense, Mixture
from dse.workload.networks.sparse_latent_attention import SparseLatentAttention
from dse.workload.networks.states.gated_delta_net import GatedDeltaNet
from dse.workload.networks.states.kimi_delta import KimiDelta
from dse.workload.networks.states.lightning_attention import LightningAttention
from dse.workload.networks.states.mamba2 import Mamba2
from dse.workload.networks.states.short_convolution import ShortConvolution
from dse.workload.networks.step import Step
from dse.workload.operator import Operator


class Block(Protocol):
    """Half of a layer: a record of its sizes that makes its operators and counts its parameters."""

    @property
    def facts(self) -> dict[str, object]:
        """What a table of networks shows of it, by column."""
        ...

    @property
    def kind(self) -> str:
        """What it is, in words."""
        ...

    def check(self, gpus: int, name: str, title: str) -> None:
        """Raise InputError where ``gpus`` cannot share it; ``name`` of the workload, ``title`` of the network."""

    def parameters(self, hidden: int, gpus: int = 1) -> float:
        """Return the parameters that ``gpus`` hold together, copies among them."""
        ...

    def operators(self, step: Step) -> Iterator[Operator]:
        """Yield the operators of one layer on one GPU, in the order they run."""
        ...


class AttentionKind(Block, Protocol):
    """A way in which tokens see those before them."""

    def cache_bytes(self, tokens: float, precision: Precision, gpus: int) -> float:
        """Return what one GPU keeps of a request of so many ``tokens`` from step to step [B]; of none, its state."""
        ...


class MlpKind(Block, Protocol):
    """What is done to each token by itself."""

    def active_parameters(self, hidden: int) -> float:
        """Return the parameters that one token passes."""
        ...

    def columns(self, gpus: float) -> float:
        """Return the elements of a token's intermediate results on one GPU."""
        ...


ATTENTION_KINDS: dict[str, type[AttentionKind]] = {
    "grouped_query": GroupedQueryAttention,
    "latent": LatentAttention,
    "sparse_latent": SparseLatentAttention,
    "compressed": CompressedAttention,
    "block_sparse": BlockSparseAttention,
    "gated_delta_net": GatedDeltaNet,
    "mamba2": Mamba2,
    "kimi_delta": KimiDelta,
    "lightning": LightningAttention,
    "short_convolution": ShortConvolution,
    "none": Absent,
}
MLP_KINDS: dict[str, type[MlpKind]] = {"dense": Dense, "mixture": Mixture, "none": Absent}
"""Kinds by their names in the table of layers, whose columns are the names of the kinds' fields."""


PRE, SANDWICH, POST, PARALLEL = "pre", "sandwich", "post", "parallel"
"""Where a layer's norms stand: before each half; before and after each; after each alone; one before both halves, which
run side by side and are added to the stream together."""


@dataclass(frozen=True)
class Layer:
    """One kind of layer; ``label`` tells it from the others of its network, "" where all are alike."""

    attention: AttentionKind
    mlp: MlpKind
    label: str = ""
    arrangement: str = PRE  # of its norms
    streams: int = 1  # residual streams, which hyper-connections mix where there are several

    @property
    def blocks(self) -> tuple[tuple[str, Block], ...]:
        """Its halves in the order they run, by name; one where it has no other."""
        halves: tuple[tuple[str, Block], ...] = (("attention", self.attention), ("mlp", self.mlp))
        return tuple((name, block) for name, block in halves if not isinstance(block, Absent))

    @property
    def kind(self) -> str:
        """What its halves are, in words."""
        return " + ".join(block.kind for _, block in self.blocks)

    def parameters(self, hidden: int, gpus: int = 1) -> float:
        """Return the parameters that ``gpus`` hold together (norms and biases left out: below 0.1 %)."""
        return sum(block.parameters(hidden, gpus) for _, block in self.blocks)

    def active_parameters(self, hidden: int) -> float:
        """Return the parameters that one token passes."""
        return self.attention.parameters(hidden) + self.mlp.active_parameters(hidden)

    def operators(self, step: Step) -> Iterator[Operator]:
        """Yield the operators of one layer on one GPU."""
        if self.arrangement == PARALLEL:
            yield step.vector("layer_norm", step.norm, step.rows, step.hidden)
        for name, block in self.blocks:
            if self.streams > 1:
                yield from mixed(step, name, self.streams)
            elif self.arrangement in (PRE, SANDWICH):
                yield step.stream_norm(f"{name}_norm")
            yield from block.operators(step)
            # The exchange between replicas brings every token the sum of its experts.
            if step.replicas == 1 or not isinstance(block, Mixture):
                yield from step.all_reduce(f"{name}_all_reduce")
            if self.streams > 1:
                yield spread(step, name, self.streams)
            if self.arrangement in (SANDWICH, POST):
                yield step.vector(f"{name}_post_norm", step.norm, step.rows, step.hidden)
            if self.arrangement == POST:
                yield step.vector(f"{name}_residual", "add", step.rows, step.hidden)
        if self.arrangement == PARALLEL:
            yield step.vector("residual", "add3", step.rows, step.hidden)


def layer_from_row(row: Mapping[str, str]) -> Layer:
    """Return the kind of layer that a row of the table of layers states."""
    attention, mlp = _block(ATTENTION_KINDS[row["attention"]], row), _block(MLP_KINDS[row["mlp"]], row)
    return Layer(attention, mlp, row["label"], row["arrangement"] or PRE, int(row["streams"] or 1))


def _block(kind: Any, row: Mapping[str, str]) -> Any:
    types: dict[str, Any] = {field.name: field.type for field in fields(kind)}
    return kind(**{name: _cell(row[name], type_) for name, type_ in types.items()})


def _cell(text: str, kind: Any) -> Any:
    """A cell as a field's type; an empty number is 0."""
    if kind is bool:
        return text == "1"
    return int(text or 0) if kind is int else kind(text)
