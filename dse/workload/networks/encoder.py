"""Encoders of images and sounds: from patches to the tokens that a language model reads between those of its text."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from dse.hardware.data_types import element_bytes
from dse.workload.dtypes import Precision, precision
from dse.workload.networks.encoder_attention import EncoderAttention
from dse.workload.networks.images import Grid, Images, Sounds
from dse.workload.networks.layers import Layer
from dse.workload.networks.step import Step
from dse.workload.operator import Operator
from dse.workload.target import Target

ENCODE = "encode"
"""Phase of a workload that is an encoder alone."""

CONVOLUTION = 3
"""Frames that each of the two convolutions before an encoder of sounds looks at (Whisper)."""


@dataclass(frozen=True)
class Encoder:
    """The shape of a transformer over patches, and of the projectors that make tokens of its result."""

    source: Images | Sounds
    hidden: int  # [element] of the residual stream
    layers: tuple[tuple[Layer, int], ...]  # kinds of layers, and how many there are of each
    norm: str  # the vector operator of every norm
    positions: int  # learnt positions (0: they are rotated alone)
    pooled: bool  # whether the patches of a token are averaged: else they are put side by side
    widths: tuple[int, ...]  # [element] after each product of a projector
    projectors: int = 1  # of this layer and of earlier ones, whose results deeper layers of the language model take

    @property
    def medium(self) -> str:
        """What it encodes, in words."""
        return "images" if isinstance(self.source, Images) else "sounds"

    @property
    def depth(self) -> int:
        """Layers of all kinds."""
        return sum(count for _, count in self.layers)

    @property
    def merged(self) -> int:
        """Elements of the patches of a token, as the projector takes them."""
        if self.pooled:
            return self.hidden
        return self.hidden * (self.source.merge**2 if isinstance(self.source, Images) else self.source.merge)

    @property
    def stem_parameters(self) -> float:
        """Parameters before the layers: of the patches' projection or the convolutions, and of positions."""
        inputs = self.source.values if isinstance(self.source, Images) else CONVOLUTION * self.source.bins
        second = 0 if isinstance(self.source, Images) else CONVOLUTION * self.hidden
        return float(self.hidden * (inputs + second + self.positions))

    @property
    def projector_parameters(self) -> float:
        """Parameters of all projectors."""
        ends = (self.merged, *self.widths)
        return float(self.projectors * sum(a * b for a, b in pairwise(ends)))

    @property
    def parameters(self) -> float:
        """Parameters in all (norms and biases left out: below 0.5 %)."""
        layers = sum(count * layer.parameters(self.hidden) for layer, count in self.layers)
        return self.stem_parameters + layers + self.projector_parameters

    def check(self, gpus: int, name: str, title: str) -> None:
        """Raise InputError where ``gpus`` cannot share it out; ``name`` of the workload, ``title`` of the network."""
        for layer, _ in self.layers:
            for _, block in layer.blocks:
                block.check(gpus, name, title)

    def weight_bytes(self, types: Precision, gpus: int) -> float:
        """Return the bytes of its weights on one of ``gpus`` [B], in the type of the residual stream: those of layers
        are shared out."""
        ends = self.stem_parameters + self.projector_parameters
        return (ends + (self.parameters - ends) / gpus) * element_bytes(types.output)

    def activation_bytes(self, types: Precision, gpus: int, count: float, grid: Grid) -> float:
        """Return the bytes of its widest activations, of ``count`` media together [B]."""
        columns = 3.0 * self.hidden + max(layer.mlp.columns(gpus) for layer, _ in self.layers)
        return count * grid.pieces * grid.patches * columns * element_bytes(types.output)

    def operators(
        self, count: int, grid: Grid, types: Precision, gpus: int, target: Target, phase: str
    ) -> list[Operator]:
        """Return its operators over ``count`` media of one ``grid`` on one of ``gpus``, in the order they run, in the
        type of the residual stream."""
        wide, pieces = precision("encoder", types.output), count * grid.pieces
        weights = self.weight_bytes(types, gpus)
        stream = float(pieces * grid.patches * self.hidden * element_bytes(types.output))
        cycle = weights / self.depth + 6.0 * stream
        shape = (phase, pieces, grid.patches, grid.patches, self.hidden, self.norm)
        step = Step(*shape, wide, gpus, target, step_bytes=weights, layer_bytes=cycle)
        made = list(self._stem(step, pieces, grid))
        for layer, layers in self.layers:
            suffix = f"_{layer.label}" if layer.label else ""
            placed = replace(layer, attention=replace(_attention(layer), grid=grid))
            made += [operator.times(layers, name=operator.name + suffix) for operator in placed.operators(step)]
        made += [operator.times(self.projectors) for operator in self._projector(step, count * grid.tokens)]
        return [replace(operator, name=f"encoder_{operator.name}") for operator in made]

    def _stem(self, step: Step, pieces: int, grid: Grid) -> Iterator[Operator]:
        """Patches to the residual stream, and the positions that are added to them."""
        if isinstance(self.source, Images):
            patches = float(pieces * grid.rows * grid.columns)
            yield from step.gemm("patch_embedding", patches, self.hidden, self.source.values)
        else:
            taken = {"first": (2.0, self.source.bins), "second": (1.0, self.hidden)}
            for name, (frames, channels) in taken.items():
                rows = frames * pieces * grid.patches
                yield from step.gemm(f"{name}_convolution", rows, self.hidden, CONVOLUTION * channels)
                yield step.vector(f"{name}_gelu", "gelu", rows, self.hidden)
        if self.positions:
            yield step.vector("positions", "add", step.rows, self.hidden)

    def _projector(self, step: Step, tokens: int) -> Iterator[Operator]:
        """A norm, the patches of a token together, and products with an activation between two."""
        yield step.stream_norm("final_norm")
        if self.pooled:
            yield step.vector("pooling", "add", tokens, self.hidden, inputs=step.rows / tokens)
        depth = self.merged
        for i, width in enumerate(self.widths):
            last = i == len(self.widths) - 1
            yield from step.gemm(f"projector_{i + 1}", float(tokens), width, depth)
            if not last:
                yield step.vector(f"projector_gelu_{i + 1}", "gelu", tokens, width)
            depth = width


def _attention(layer: Layer) -> EncoderAttention:
    assert isinstance(layer.attention, EncoderAttention)  # of an encoder's layers all are
    return layer.attention
