"""Kinds of MLP: the operators of each and its parameters."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import ceil

from dse.base.errors import InputError
from dse.workload.networks.mlp_products import mlp_products
from dse.workload.networks.routed_experts import experts_library, routed_experts
from dse.workload.networks.step import Step, refuse_uneven
from dse.workload.operator import Operator
from dse.workload.operators.expert_rows import UNIFORM, ExpertRows

EXPERT = "expert_"
"""Begins the names of the operators of experts, each with its share of the tokens."""

WHOLE = 0.01
"""By how much an expert's mean number of tokens may pass a whole number and still be that [token]: 16.0000002 of 64
tokens are 16, where 7.9999999 of 8 experts are read."""


@dataclass(frozen=True)
class Dense:
    """An MLP that every token passes: one or two projections up, an activation, one down."""

    ffn: int  # [element] between the projections
    gated: bool  # whether a second projection up multiplies the activation
    activation: str  # silu, gelu or relu

    @property
    def facts(self) -> dict[str, object]:
        """What a table of networks shows of it."""
        return {"ffn": self.ffn, "experts": ""}

    @property
    def kind(self) -> str:
        """What it is, in words."""
        return "dense"

    def check(self, gpus: int, name: str, title: str) -> None:
        """Raise InputError where ``gpus`` cannot share the columns out."""
        refuse_uneven(self.ffn, "MLP columns", gpus, name, title)

    def parameters(self, hidden: int, gpus: int = 1) -> float:
        """Return the parameters that ``gpus`` hold together: none twice."""
        return (3.0 if self.gated else 2.0) * hidden * self.ffn

    def active_parameters(self, hidden: int) -> float:
        """Return the parameters that a token passes: all."""
        return self.parameters(hidden)

    def columns(self, gpus: float) -> float:
        """Return the elements of a token's products up on one GPU."""
        return self.ffn * (2 if self.gated else 1) / gpus

    def operators(self, step: Step) -> Iterator[Operator]:
        """Yield projections up, activation and projection down of every token."""
        return self.shared_out(step, "", step.rows, 1.0, step.rows)

    def shared_out(self, step: Step, prefix: str, rows: float, experts: float, activated: float) -> Iterator[Operator]:
        """Yield the operators of ``rows`` tokens of each of ``experts``; ``activated`` of them in all pass the
        activation, since products pad theirs."""
        columns, filled = self.ffn // step.gpus, min(1.0, activated / (rows * experts))
        yield from mlp_products(
            step, prefix, columns, self.gated, self.activation, rows, experts, filled, activated=activated
        )


@dataclass(frozen=True)
class Mixture:
    """A mixture of experts, each an MLP, of which a router chooses some for every token."""

    experts: int  # in all
    experts_per_token: int
    ffn: int  # [element] between the projections of an expert
    gated: bool
    activation: str
    shared_ffn: int = 0  # [element] of the experts that every token passes
    shared_gate: bool = False  # whether a number for each token gates the result of these
    latent: int = 0  # [element] to which tokens are projected before their experts (0: they are not)

    @property
    def shared(self) -> Dense:
        """The experts that every token passes, as one MLP."""
        return Dense(self.shared_ffn, self.gated, self.activation)

    @property
    def kind(self) -> str:
        """What it is, in words."""
        return "latent mixture" if self.latent else "mixture"

    @property
    def expert(self) -> Dense:
        """One expert."""
        return Dense(self.ffn, self.gated, self.activation)

    @property
    def facts(self) -> dict[str, object]:
        """What a table of networks shows of it."""
        shared = f" + {self.shared_ffn:g} shared" if self.shared_ffn else ""
        return {"ffn": self.ffn, "experts": f"{self.experts_per_token} of {self.experts}{shared}"}

    def check(self, gpus: int, name: str, title: str) -> None:
        """Raise InputError where ``gpus`` cannot share the columns of an expert out."""
        self.expert.check(gpus, name, title)
        if self.shared_ffn:
            self.shared.check(gpus, name, title)

    def check_ranks(self, gpus: int, ranks: int, name: str, title: str) -> None:
        """Raise InputError where ``ranks`` of ``gpus`` cannot share the experts out."""
        if self.experts % ranks:
            raise InputError(
                f"{name}: ep={ranks} does not divide the {self.experts} experts of {title}; give a divisor"
            )
        self.expert.check(max(1, gpus // ranks), name, title)

    def parameters(self, hidden: int, gpus: int = 1) -> float:
        """Return the parameters of all experts (the router's left out: below 0.1 %); every GPU has the projections to
        latents."""
        shared = self.shared.parameters(hidden, gpus) if self.shared_ffn else 0.0
        return self.routed_parameters(hidden) + shared + 2.0 * hidden * self.latent * gpus

    def routed_parameters(self, hidden: int) -> float:
        """Return the parameters of the experts that are chosen among, the router's left out."""
        return self.experts * self.expert.parameters(self.latent or hidden)

    def active_parameters(self, hidden: int) -> float:
        """Return the parameters that a token passes: of its experts, and what every token passes."""
        idle = 1.0 - self.experts_per_token / self.experts
        return self.parameters(hidden) - idle * self.routed_parameters(hidden)

    def columns(self, gpus: float) -> float:
        """Return the elements of a token's products up on one GPU, of all its experts."""
        return self.experts_per_token * self.expert.columns(gpus)

    def operators(self, step: Step) -> Iterator[Operator]:
        """Yield router, experts and the sum over them: of the experts the expected number of distinct ones is read,
        each with its share of the tokens."""
        shared_out = step.routing or step.ranks > 1 or step.replicas > 1 or self.shared_ffn or self.latent
        if shared_out or experts_library(step):
            yield from self._routed(step)
            return
        used = step.rows * self.experts_per_token
        distinct = distinct_experts(self.experts, self.experts_per_token, step.rows)
        yield from step.gemm("router", step.rows, self.experts, step.hidden)
        yield from self.expert.shared_out(step, EXPERT, ceil(used / distinct - WHOLE), distinct, used)
        yield step.vector("combine_experts", "add", step.rows, step.hidden, inputs=self.experts_per_token)

    def _routed(self, step: Step) -> Iterator[Operator]:
        """Router, the experts of this GPU's rank by the tiles of their rows, and those that every token passes."""
        tokens = step.rows * step.replicas
        rows = ExpertRows(tokens, self.experts, self.experts_per_token, step.ranks, step.routing or UNIFORM)
        split = max(1, step.gpus * step.replicas // step.ranks)
        yield from step.gemm("router", step.rows, self.experts, step.hidden)
        if self.latent:
            yield from step.gemm("latent_down_projection", step.rows, self.latent, step.hidden)
        inside = replace(step, hidden=self.latent or step.hidden)
        yield from routed_experts(inside, self.ffn, self.gated, self.activation, rows, split)
        if self.latent:
            yield from step.gemm("latent_up_projection", step.rows, step.hidden, self.latent)
        yield from self._shared(step)

    def _shared(self, step: Step) -> Iterator[Operator]:
        """The experts that every token passes, their gate, and the sum with the others."""
        if not self.shared_ffn:
            return
        yield from self.shared.shared_out(step, "shared_", step.rows, 1.0, step.rows)
        if self.shared_gate:
            yield from step.gemm("shared_gate", step.rows, 1, step.hidden)
            yield step.vector("shared_scale", "mul_scalar", step.rows, step.hidden, implementation="pytorch_vector")
        yield step.vector("combine_shared", "add", step.rows, step.hidden)


def distinct_experts(experts: int, per_token: int, tokens: float) -> float:
    """Return the expected number of distinct experts that ``tokens`` use under uniform routing.

    E (1 - (1 - k/E)^t) for t tokens with k of E experts each.
    """
    return experts * (1.0 - (1.0 - per_token / experts) ** tokens)
