"""Inference of a language model as operators: steps of prefill and decode, the way serving engines fuse them."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

from dse.base.constants import constant
from dse.base.errors import InputError
from dse.hardware.data_types import element_bytes
from dse.workload.dtypes import Precision
from dse.workload.networks.encoder import ENCODE
from dse.workload.networks.images import Grid
from dse.workload.networks.layers import MlpKind
from dse.workload.networks.mlp_kinds import Mixture
from dse.workload.networks.network import Network
from dse.workload.networks.step import Step
from dse.workload.operator import Operator
from dse.workload.operators.forms import usual_form
from dse.workload.operators.gemm import Gemm
from dse.workload.operators.gemm_main_loop import BLOCK
from dse.workload.serving_engine import Engine, Host
from dse.workload.target import Target
from dse.workload.workload import MemoryFootprint, Phase, Workload

MEASURED_GPUS = int(constant("measured_gpus"))
"""Most GPUs over which an all-reduce was measured: of more its costs are carried on."""


@dataclass(frozen=True)
class Serving:
    """How a network is run: ``batch`` requests, ``prompt`` and ``output`` [token] each, on ``gpus`` in parallel.

    ``phase``: ``encode`` (its images or sounds alone), ``prefill`` (the prompt at once), ``decode`` (one token a
    request at ``context`` tokens), or ``generate`` (prefill, then ``output`` decode steps at the mean context).
    ``media`` images or sounds of each request, all of one ``grid``, are encoded before its prompt, which holds their
    tokens. ``engine``: what runs it (None: kernels alone count). ``replicas`` of attention, each on ``gpus``, share
    the requests; ``ranks`` GPUs share out the experts of a mixture, whose tokens choose them by ``routing``.
    ``prefix`` [token] of each request stand before its prompt, their keys and values kept.
    """

    phase: str
    batch: int
    prompt: int
    context: float
    output: int
    precision: Precision
    gpus: int = 1
    engine: Engine | None = None
    ranks: int = 1
    replicas: int = 1
    routing: str = ""
    media: int = 0
    grid: Grid | None = None
    prefix: int = 0

    @property
    def requests(self) -> int:
        """Requests of a replica."""
        return self.batch // self.replicas


def llm_workload(network: Network, serving: Serving, name: str, target: Target | None = None) -> Workload:
    """Return the workload of one network served one way; raises InputError where the two do not fit together."""
    if serving.phase == ENCODE:
        return _encoding(network, serving, name, target or Target())
    for layer, _ in network.layers:
        for _, block in layer.blocks:
            block.check(serving.gpus, name, network.title)
            if isinstance(block, Mixture) and serving.ranks > 1:
                block.check_ranks(serving.gpus * serving.replicas, serving.ranks, name, network.title)
        _check_blocks(layer.mlp, serving, name, network.title)
    decodes = {"prefill": 0, "decode": 1, "generate": serving.output - 1}[serving.phase]  # prefill yields a token
    passes = [] if serving.phase == "decode" else [("prefill", 1.0)]
    passes += [("decode", float(decodes))] if decodes else []
    memory = memory_needed(network, serving)
    operators: list[Operator] = []
    phases: list[Phase] = []
    for phase, runs in passes:
        step = _step(network, serving, target or Target(), memory, phase)
        made = [*_encoder(network, serving, target or Target(), phase, name), *step_operators(network, step)]
        operators += made
        phases.append(Phase(phase, runs, _host(serving, phase, made)))
    tokens = {"prefill": serving.prompt, "decode": 1, "generate": serving.output}[serving.phase]
    return Workload(
        name,
        _describe(network, serving),
        tuple(operators),
        tuple(phases),
        memory,
        serving.gpus * serving.replicas,
        float(serving.batch * tokens),
        serving.engine,
        _caution(network, serving),
        0 if serving.phase == "decode" else int(serving.batch),
    )


def _encoding(network: Network, serving: Serving, name: str, target: Target) -> Workload:
    """The workload of a network's encoder alone."""
    operators, grid, encoder = _encoder(network, serving, target, ENCODE, name), serving.grid, network.encoder
    assert grid is not None and encoder is not None  # a phase of its own has something to encode
    types, gpus, count = serving.precision, serving.gpus, serving.requests * serving.media
    return Workload(
        name,
        _describe(network, serving),
        tuple(operators),
        (Phase(ENCODE),),
        MemoryFootprint(encoder.weight_bytes(types, gpus), 0.0, encoder.activation_bytes(types, gpus, count, grid)),
        gpus * serving.replicas,
        float(serving.batch * serving.media * grid.tokens),
    )


def _encoder(network: Network, serving: Serving, target: Target, phase: str, name: str) -> list[Operator]:
    """The operators of a replica's images or sounds, before its prompts; none in a decode step."""
    if serving.grid is None or network.encoder is None or phase == "decode":
        return []
    network.encoder.check(serving.gpus, name, network.title)
    count = serving.requests * serving.media
    return network.encoder.operators(count, serving.grid, serving.precision, serving.gpus, target, phase)


def _check_blocks(mlp: MlpKind, serving: Serving, name: str, title: str) -> None:
    """Refuse weights with scales by block whose slice on a GPU ends within a block: no engine loads them."""
    if serving.precision.activations != "fp8_block" or not isinstance(mlp, Mixture):
        return
    split = max(1, serving.gpus * serving.replicas // serving.ranks)
    if mlp.ffn // split % BLOCK:
        raise InputError(
            f"{name}: {split} GPUs split the {mlp.ffn} columns of an expert of {title} into slices of "
            f"{mlp.ffn // split}, no multiple of the {BLOCK} that share a scale in fp8_block: no engine loads them; "
            f"give ep={split}, or dtype=fp8"
        )


def memory_needed(network: Network, serving: Serving) -> MemoryFootprint:
    """Return what one GPU must hold: its share of the weights, the KV cache at its longest, and activations."""
    p, gpus = serving.precision, serving.gpus
    ends = network.end_parameters * element_bytes(p.output)
    elsewhere = sum(n * _elsewhere(layer.mlp, network.hidden, serving) for layer, n in network.layers)
    weights = (network.layer_parameters(gpus) - elsewhere) * element_bytes(p.weights) + ends
    if network.encoder is not None and serving.media:
        weights += network.encoder.weight_bytes(p, gpus) * gpus
    request = network.cache_bytes(_longest(serving), p, gpus)
    rows = serving.requests * (1 if serving.phase == "decode" else serving.prompt)
    columns = 3.0 * network.hidden + max(layer.mlp.columns(gpus) for layer, _ in network.layers)
    logits = serving.requests * network.vocab / gpus * 4.0
    return MemoryFootprint(
        weights / gpus, serving.requests * request, rows * columns * element_bytes(p.output) + logits
    )


def _elsewhere(mlp: MlpKind, hidden: int, serving: Serving) -> float:
    """Parameters of a layer's experts that other replicas hold."""
    return mlp.routed_parameters(hidden) * (1.0 - 1.0 / serving.replicas) if isinstance(mlp, Mixture) else 0.0


def _step(network: Network, serving: Serving, target: Target, memory: MemoryFootprint, phase: str) -> Step:
    """The step of a phase; ``memory`` of the whole network."""
    queries, keys = (1, serving.context) if phase == "decode" else (serving.prompt, serving.prefix + serving.prompt)
    step_bytes = memory.weights + memory.kv
    hidden = serving.requests * queries * network.hidden * element_bytes(serving.precision.output)
    return Step(
        phase,
        serving.requests,
        queries,
        keys,
        network.hidden,
        network.norm,
        serving.precision,
        serving.gpus,
        target,
        step_bytes,
        step_bytes / network.depth + 6.0 * hidden,
        serving.ranks,
        serving.replicas,
        serving.routing,
    )


def step_operators(network: Network, step: Step) -> list[Operator]:
    """Return the operators of a step in the order they run: those of a kind of layer carry the number of its layers,
    and its label where the network has several kinds."""
    operators = list(_embedding(network, step))
    for layer, count in network.layers:
        suffix = f"_{layer.label}" if layer.label else ""
        operators += [operator.times(count, name=operator.name + suffix) for operator in layer.operators(step)]
    return operators + _head(network, step)


def _embedding(network: Network, step: Step) -> Iterator[Operator]:
    """Gather the tokens' rows: from DRAM, since a table that large is cold at every step."""
    columns = network.embedded or network.hidden
    yield step.vector("embedding", "embedding", step.rows, columns, input_distance=step.step_bytes)
    if network.embedded:
        yield from step.gemm("embedding_projection", step.rows, network.hidden, columns)


def _head(network: Network, step: Step) -> list[Operator]:
    """The last token's logits and the choice of the next token."""
    dtype, rows, hidden = step.precision.output, float(step.batch), network.hidden
    depth = network.embedded or hidden
    columns = ceil(network.vocab / step.gpus)
    stream = 2.0 * rows * hidden * element_bytes(dtype)
    logits = Gemm(
        rows,
        columns,
        depth,
        a=dtype,
        b=dtype,
        compute=dtype,
        out=dtype,
        a_distance=stream,
        b_distance=step.step_bytes,
        out_distance=step.step_bytes,
    )
    chosen = rows * columns * element_bytes(dtype)
    late = {"out_distance": step.step_bytes}
    capped = ("logit_scale", "mul_scalar"), ("logit_tanh", "tanh"), ("logit_unscale", "mul_scalar")
    return [
        step.vector("final_norm", network.norm, rows, hidden, input_distance=stream, **late),
        *(step.gemm("head_projection", rows, depth, hidden) if network.embedded else ()),
        step.product("logits", logits),
        *(
            step.vector(name, op, rows, columns, implementation="pytorch_vector", out_distance=2.0 * chosen)
            for name, op in (capped if network.logit_softcap else ())
        ),
        step.vector("sampling", "softmax", rows, columns, outputs=1.0 / columns, input_distance=chosen, **late),
    ]


def _host(serving: Serving, phase: str, operators: list[Operator]) -> Host:
    """What the engine's host does in the step of ``operators``; nothing where no engine is given. Each replica of
    attention has a host of its own (vllm-project/vllm data_parallel; sglang's dp attention)."""
    if serving.engine is None:
        return Host()
    operators = usual_form(operators)
    reductions = sum(op.repeats for op in operators if op.kind == "all_reduce")
    served = {"prompts" if phase == "prefill" else "requests": float(serving.requests)}
    return serving.engine.host(sum(op.repeats for op in operators), reductions, **served)


def _caution(network: Network, serving: Serving) -> str:
    """What is asked beyond what a network was made for, or beyond what was measured."""
    longest, said = _longest(serving), []
    if 0 < network.positions < longest:
        said.append(
            f"{longest:,.0f} tokens are beyond the {network.positions:,} positions that {network.title} was made for; "
            "they are timed all the same"
        )
    if serving.gpus > MEASURED_GPUS:
        said.append(
            f"all-reduces were measured over at most {MEASURED_GPUS} GPUs; those over {serving.gpus} carry their costs "
            "on, uncalibrated"
        )
    return "; ".join(said)


def _longest(serving: Serving) -> float:
    """The tokens of a request when it has most of them."""
    return {
        "prefill": serving.prefix + serving.prompt,
        "decode": max(serving.context, serving.prompt + serving.output if serving.output else 0),
        "generate": serving.prefix + serving.prompt + serving.output,
    }[serving.phase]


def _describe(network: Network, serving: Serving) -> str:
    p = serving.precision
    types = p.weights if p.weights == p.activations == p.kv else f"{p.weights} weights, {p.activations}, {p.kv} KV"
    count = serving.gpus * serving.replicas
    gpus = f" on {count} GPUs" if count > 1 else ""
    if serving.replicas > 1:
        gpus += f" in {serving.replicas} replicas of attention"
    if serving.ranks > 1:
        gpus += f", experts over {serving.ranks}"
    what = {
        ENCODE: "its encoder alone",
        "prefill": f"prefill of {serving.prompt} token{'s' * (serving.prompt != 1)}",
        "decode": f"decode at {serving.context:g} tokens of context",
        "generate": f"{serving.prompt} prompt and {serving.output} output token{'s' * (serving.output != 1)}",
    }[serving.phase]
    what += f" after {serving.prefix:,} that are kept" if serving.prefix else ""
    if serving.grid is not None and network.encoder is not None:
        kind = network.encoder.medium if serving.media > 1 else network.encoder.medium.removesuffix("s")
        what += f", {serving.media} {kind} of {serving.grid.tokens:,} tokens in each request"
    engine = f" under {serving.engine.title}" if serving.engine else ""
    return f"{network.title}, {what}, batch {serving.batch}, {types}{gpus}{engine}"
