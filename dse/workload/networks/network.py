"""Shapes of language models: an embedding, layers of some kinds, a head; and the shipped ones."""

from dataclasses import dataclass
from functools import cache
from typing import TypeVar

from dse.base.package_tables import read_table
from dse.workload.dtypes import Precision
from dse.workload.networks.configuration.encoders import shipped_encoder
from dse.workload.networks.encoder import Encoder
from dse.workload.networks.layers import Layer, layer_from_row

Kind = TypeVar("Kind")


@dataclass(frozen=True)
class Network:
    """The shape of a decoder-only language model."""

    name: str
    title: str
    hidden: int  # [element] of the residual stream
    vocab: int  # [token]
    layers: tuple[tuple[Layer, int], ...]  # kinds of layers, and how many there are of each
    norm: str = "rmsnorm"  # the vector operator of every norm
    tied: bool = False  # whether the head's weights are the embedding's
    positions: int = 0  # [token] that it was made for (0: not known), beyond which it is timed all the same
    source: str = ""
    logit_softcap: bool = False  # whether the logits' magnitude is capped by a tanh
    embedded: int = 0  # [element] of embeddings that are projected to the stream, and back before the head (0: as wide)
    encoder: Encoder | None = None  # of images or sounds beside the language model, whose parameters are its own

    @property
    def depth(self) -> int:
        """Layers of all kinds."""
        return sum(count for _, count in self.layers)

    @property
    def embedding_parameters(self) -> float:
        """Parameters of the embedding table (the head has as many again, unless tied)."""
        return float(self.vocab * (self.embedded or self.hidden))

    @property
    def end_parameters(self) -> float:
        """Parameters of embedding and head, with the projections between them and the stream."""
        return self.embedding_parameters * (1 if self.tied else 2) + 2.0 * self.embedded * self.hidden

    @property
    def parameters(self) -> float:
        """Parameters in all (norms and biases left out: below 0.1 %)."""
        return self.layer_parameters() + self.end_parameters

    @property
    def active_parameters(self) -> float:
        """Parameters that one token passes: where experts are idle, a table of the embedding beside the head is, too,
        of which a row is looked up."""
        layers = sum(count * layer.active_parameters(self.hidden) for layer, count in self.layers)
        mixture = layers < self.layer_parameters()
        return layers + (self.embedding_parameters if mixture else self.end_parameters)

    def layer_parameters(self, gpus: int = 1) -> float:
        """Return the parameters of all layers that ``gpus`` hold together, copies among them."""
        return sum(count * layer.parameters(self.hidden, gpus) for layer, count in self.layers)

    def cache_bytes(self, tokens: float, precision: Precision, gpus: int = 1) -> float:
        """Return what one of ``gpus`` keeps of a request of so many ``tokens`` from step to step [B]."""
        return sum(count * layer.attention.cache_bytes(tokens, precision, gpus) for layer, count in self.layers)

    def shared(self, kind: type[Kind]) -> Kind | None:
        """Return the attention or MLP of a ``kind`` that all layers have, None where they do not."""
        blocks = [block for layer, _ in self.layers for _, block in layer.blocks if isinstance(block, kind)]
        return blocks[0] if len(blocks) == len(self.layers) and len(set(blocks)) == 1 else None


@cache
def networks() -> dict[str, Network]:
    """Return the shipped networks by name."""
    layers: dict[str, tuple[tuple[Layer, int], ...]] = {}
    for row in read_table("networks/layers.csv"):
        layers[row["network"]] = (*layers.get(row["network"], ()), (layer_from_row(row), int(row["count"])))
    return {
        row["network"]: Network(
            name=row["network"],
            title=row["name"],
            hidden=int(row["hidden"]),
            vocab=int(row["vocab"]),
            layers=layers[row["network"]],
            norm=row["norm"],
            tied=row["tied_embeddings"] == "1",
            positions=int(row["positions"]),
            source=row["source"],
            logit_softcap=row["logit_softcap"] == "1",
            encoder=shipped_encoder(row["network"], int(row["hidden"])),
        )
        for row in read_table("networks/networks.csv")
    }
