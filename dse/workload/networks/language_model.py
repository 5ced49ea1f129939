"""Inference of a language model as operators: one step of prefill or decode, the way serving engines fuse it."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

from dse.base.errors import InputError
from dse.workload.dtypes import Precision, element_bytes
from dse.workload.networks.network import Network
from dse.workload.operator import Operator
from dse.workload.operators.attention import Attention, attention_operator
from dse.workload.operators.collective import all_reduce_operator
from dse.workload.operators.gemm import Gemm, gemm_operator
from dse.workload.operators.vector import vector_operator, vector_ops
from dse.workload.serving_engine import Engine, Host
from dse.workload.target import Target
from dse.workload.workload import MemoryFootprint, Phase, Workload

EXPERT = "expert_"
"""Begins the names of the operators of experts, each with its share of the tokens."""

WHOLE = 0.01
"""By how much an expert's mean number of tokens may pass a whole number and still be that [token]: 16.0000002 of 64
tokens are 16, where 7.9999999 of 8 experts are read."""


@dataclass(frozen=True)
class Serving:
    """How a network is run: ``batch`` requests, ``prompt`` and ``output`` [token] each, on ``gpus`` in parallel.

    ``phase``: ``prefill`` (the prompt at once), ``decode`` (one token a request at ``context`` tokens), or ``generate``
    (prefill, then ``output`` decode steps at the mean context). ``engine``: what runs it (None: kernels alone count).
    """

    phase: str
    batch: int
    prompt: int
    context: float
    output: int
    precision: Precision
    gpus: int = 1
    engine: Engine | None = None


def llm_workload(network: Network, serving: Serving, name: str, target: Target | None = None) -> Workload:
    """Return the workload of one network served one way; raises InputError where the two do not fit together."""
    _check(network, serving, name)
    target = target or Target()
    steps = []
    if serving.phase in ("prefill", "generate"):
        steps.append((_Step(network, serving, target, "prefill", serving.prompt, serving.prompt), 1.0))
    runs = {"prefill": 0, "decode": 1, "generate": serving.output - 1}[
        serving.phase
    ]  # the prefill yields the first token
    if runs:
        steps.append((_Step(network, serving, target, "decode", 1, serving.context), float(runs)))
    operators: list[Operator] = []
    phases: list[Phase] = []
    for step, runs in steps:
        made = step.operators()
        operators += made
        phases.append(Phase(step.phase, runs, step.host(made)))
    tokens = {"prefill": serving.prompt, "decode": 1, "generate": serving.output}[serving.phase]
    return Workload(
        name,
        _describe(network, serving),
        tuple(operators),
        tuple(phases),
        memory_needed(network, serving),
        serving.gpus,
        float(serving.batch * tokens),
        serving.engine,
        _caution(network, serving),
    )


def _caution(network: Network, serving: Serving) -> str:
    """What is asked beyond the tokens that a network was made for: it costs what it costs, but was never trained."""
    longest = _longest(serving)
    if not 0 < network.positions < longest:
        return ""
    return (
        f"{longest:,.0f} tokens are beyond the {network.positions:,} positions that {network.title} was made for; they "
        "are timed all the same"
    )


def _longest(serving: Serving) -> float:
    """The tokens of a request when it has most of them."""
    return {
        "prefill": serving.prompt,
        "decode": max(serving.context, serving.prompt + serving.output if serving.output else 0),
        "generate": serving.prompt + serving.output,
    }[serving.phase]


def _describe(network: Network, serving: Serving) -> str:
    p = serving.precision
    types = p.weights if p.weights == p.activations == p.kv else f"{p.weights} weights, {p.activations}, {p.kv} KV"
    gpus = f" on {serving.gpus} GPUs" if serving.gpus > 1 else ""
    what = {
        "prefill": f"prefill of {serving.prompt} token{'s' * (serving.prompt != 1)}",
        "decode": f"decode at {serving.context:g} tokens of context",
        "generate": f"{serving.prompt} prompt and {serving.output} output token{'s' * (serving.output != 1)}",
    }[serving.phase]
    engine = f" under {serving.engine.title}" if serving.engine else ""
    return f"{network.title}, {what}, batch {serving.batch}, {types}{gpus}{engine}"


def _check(network: Network, serving: Serving, name: str) -> None:
    for what, count in (("attention heads", network.heads), ("MLP columns", network.ffn)):
        if count % serving.gpus:
            raise InputError(
                f"{name}: tp={serving.gpus} does not divide the {count} {what} of {network.title}; "
                f"give a divisor of {count}"
            )
    if network.kv_heads % serving.gpus and serving.gpus % network.kv_heads:
        raise InputError(
            f"{name}: tp={serving.gpus} neither divides the {network.kv_heads} key-value heads of {network.title} "
            "nor is a multiple of them"
        )


def memory_needed(network: Network, serving: Serving) -> MemoryFootprint:
    """Return what one GPU must hold: its share of the weights, the KV cache at its longest, and activations."""
    p = serving.precision
    copied = _kv_heads(network, serving.gpus) * serving.gpus - network.kv_heads  # heads that several GPUs hold
    layer = network.attention_parameters + network.experts * network.expert_parameters
    layer += 2.0 * copied * network.head_dim * network.hidden
    embeddings = network.embedding_parameters * (1 if network.tied else 2)
    weights = (network.layers * layer * element_bytes(p.weights) + embeddings * element_bytes(p.output)) / serving.gpus
    longest = _longest(serving)
    tokens = serving.batch * (min(longest, network.window) if network.window else longest)
    kv = 2.0 * network.layers * _kv_heads(network, serving.gpus) * network.head_dim * tokens * element_bytes(p.kv)
    rows = serving.batch * (1 if serving.phase == "decode" else serving.prompt)
    mlp_columns = network.ffn * (2 if network.gated else 1) * network.experts_per_token / serving.gpus
    activations = rows * (3.0 * network.hidden + mlp_columns) * element_bytes(p.output)
    logits = serving.batch * network.vocab / serving.gpus * 4.0
    return MemoryFootprint(weights, kv, activations + logits)


def _kv_heads(network: Network, gpus: int) -> int:
    """Key-value heads a GPU holds: shared out, or copied where there are fewer than GPUs."""
    return max(1, network.kv_heads // gpus)


def distinct_experts(experts: int, per_token: int, tokens: float) -> float:
    """Return the expected number of distinct experts that ``tokens`` use under uniform routing.

    E (1 - (1 - k/E)^t) for t tokens with k of E experts each.
    """
    return experts * (1.0 - (1.0 - per_token / experts) ** tokens)


@dataclass(frozen=True)
class _Step:
    """One forward pass: ``queries`` new tokens a request that attend ``keys`` tokens."""

    network: Network
    serving: Serving
    target: Target
    phase: str
    queries: int
    keys: float

    @property
    def rows(self) -> float:
        """Tokens computed in the step."""
        return float(self.serving.batch * self.queries)

    @property
    def step_bytes(self) -> float:
        """Bytes touched between two uses of the same weight: all weights and the KV cache."""
        memory = memory_needed(self.network, self.serving)
        return memory.weights + memory.kv

    @property
    def layer_bytes(self) -> float:
        """Bytes touched between two uses of an activation buffer in consecutive layers."""
        hidden = self.rows * self.network.hidden * element_bytes(self.serving.precision.output)
        return self.step_bytes / self.network.layers + 6.0 * hidden

    def operators(self) -> list[Operator]:
        """The operators of the step in the order they run; those of a layer carry the number of layers."""
        layers = self.network.layers
        before = [self._embedding()]
        layer = [op.times(layers) for op in self._layer()]
        return before + layer + self._output()

    def host(self, operators: list[Operator]) -> Host:
        """What the engine's host does in the step of ``operators``; nothing where no engine is given."""
        engine = self.serving.engine
        if engine is None:
            return Host()
        reductions = sum(op.repeats for op in operators if op.kind == "all_reduce")
        served = {"prompts" if self.phase == "prefill" else "requests": float(self.serving.batch)}
        return engine.host(sum(op.repeats for op in operators), reductions, **served)

    def _embedding(self) -> Operator:
        """Gather the tokens' rows: from DRAM, since a table that large is cold at every step."""
        dtype = self.serving.precision.output
        return vector_operator(
            "embedding",
            "embedding",
            self.rows,
            self.network.hidden,
            dtype,
            input_distance=self.step_bytes,
            out_distance=self.layer_bytes,
            phase=self.phase,
        )

    def _layer(self) -> Iterator[Operator]:
        yield self._norm("attention_norm")
        yield from self._attention()
        yield from self._reduce("attention_all_reduce")
        yield self._norm("mlp_norm")
        yield from self._moe() if self.network.experts > 1 else self._mlp("", self.rows, 1.0, self.rows)
        yield from self._reduce("mlp_all_reduce")

    def _attention(self) -> Iterator[Operator]:
        net, p, gpus = self.network, self.serving.precision, self.serving.gpus
        heads, kv_heads = net.heads // gpus, _kv_heads(net, gpus)
        yield from self._gemm("qkv_projection", self.rows, (heads + 2 * kv_heads) * net.head_dim, net.hidden)
        if net.rotary:
            yield self._vector("rope", "rope", self.rows, (heads + kv_heads) * net.head_dim, kv_heads * net.head_dim)
        kv_columns = 2 * kv_heads * net.head_dim
        yield vector_operator(
            "kv_write",
            "copy",
            self.rows,
            kv_columns,
            p.output,
            out_dtype=p.kv,
            input_distance=3.0 * self._bytes(kv_columns),
            out_distance=self.step_bytes,
            phase=self.phase,
        )
        fresh = self.phase == "prefill"
        attention = Attention(
            self.serving.batch,
            heads,
            kv_heads,
            net.head_dim,
            self.queries,
            self._attended(),
            window=net.window,
            dtype=p.output,
            kv=p.kv,
            q_distance=2.0 * self._bytes(heads * net.head_dim),
            kv_distance=2.0 * self._bytes((heads + 2 * kv_heads) * net.head_dim) if fresh else self.step_bytes,
            out_distance=self.layer_bytes,
        )
        target = self.target
        yield attention_operator(
            "attention",
            attention,
            target.capabilities,
            target.warpgroup,
            self.phase,
            library=target.attention,
            elsewhere=True,
        )
        yield from self._gemm("output_projection", self.rows, net.hidden, heads * net.head_dim)

    def _attended(self) -> float:
        """Keys in reach: all of a prompt, but only the window's of a cache."""
        return min(self.keys, self.network.window) if self.phase == "decode" and self.network.window else self.keys

    def _mlp(self, prefix: str, rows: float, experts: float, activated: float) -> Iterator[Operator]:
        """``rows`` of each of ``experts``, of which ``activated`` in all pass the activation: products pad theirs."""
        net = self.network
        columns = net.ffn // self.serving.gpus
        gates = 2 if net.gated else 1
        filled = min(1.0, activated / (rows * experts))
        yield from self._gemm(
            f"{prefix}{'gate_up' if net.gated else 'up'}_projection", rows, gates * columns, net.hidden, experts, filled
        )
        kernel = "silu_and_mul" if net.gated else "relu" if net.activation == "relu" else "gelu"
        yield self._vector(f"{prefix}{net.activation}", kernel, activated, columns)
        yield from self._gemm(f"{prefix}down_projection", rows, net.hidden, columns, experts, filled)

    def _moe(self) -> Iterator[Operator]:
        """Mixture of experts: the expected number of distinct experts is read, each with its share of the tokens."""
        net = self.network
        distinct = distinct_experts(net.experts, net.experts_per_token, self.rows)
        rows = ceil(self.rows * net.experts_per_token / distinct - WHOLE)
        yield from self._gemm("router", self.rows, net.experts, net.hidden)
        yield from self._mlp(EXPERT, rows, distinct, self.rows * net.experts_per_token)
        yield self._vector("combine_experts", "add", self.rows, net.hidden, inputs=net.experts_per_token)

    def _output(self) -> list[Operator]:
        """The last token's logits and the choice of the next token."""
        net, p, rows = self.network, self.serving.precision, float(self.serving.batch)
        columns = ceil(net.vocab / self.serving.gpus)
        element = element_bytes(p.output)
        gemm = Gemm(
            rows,
            columns,
            net.hidden,
            a=p.output,
            b=p.output,
            compute=p.output,
            out=p.output,
            a_distance=2.0 * rows * net.hidden * element,
            b_distance=self.step_bytes,
            out_distance=self.step_bytes,
        )
        return [
            vector_operator("final_norm", net.norm, rows, net.hidden, p.output, phase=self.phase,
                            input_distance=2.0 * rows * net.hidden * element, out_distance=self.step_bytes),
            self._product("logits", gemm),
            vector_operator("sampling", "softmax", rows, columns, p.output, outputs=1.0 / columns, phase=self.phase,
                            input_distance=rows * columns * element, out_distance=self.step_bytes),
        ]  # fmt: skip

    def _bytes(self, columns: float) -> float:
        return self.rows * columns * element_bytes(self.serving.precision.output)

    def _gemm(
        self, name: str, rows: float, columns: float, depth: float, batch: float = 1.0, filled: float = 1.0
    ) -> Iterator[Operator]:
        """A projection, after the quantisation of its input where activations are narrower than the residual stream;
        ``filled``: share of the rows of a ``batch`` that hold a token."""
        p, tokens = self.serving.precision, batch * rows * filled
        if p.activations != p.output:
            yield vector_operator(
                f"{name}_quantise",
                "elementwise_quant_bf16_fp8",
                tokens,
                depth,
                p.output,
                out_dtype=p.activations,
                out_distance=self.layer_bytes,
                phase=self.phase,
                input_distance=2.0 * tokens * depth * element_bytes(p.output),
            )
        gemm = Gemm(
            rows,
            columns,
            depth,
            batch,
            p.activations,
            p.weights,
            p.compute,
            p.output,
            a_distance=2.0 * tokens * depth * element_bytes(p.activations),
            b_distance=self.step_bytes,
            out_distance=self.layer_bytes,
            filled=filled,
        )
        yield self._product(name, gemm)

    def _product(self, name: str, gemm: Gemm) -> Operator:
        target = self.target
        return gemm_operator(name, gemm, target.capabilities, target.warpgroup, self.phase, library=target.library)

    def _vector(
        self, name: str, kernel: str, rows: float, columns: float, second: float = 0.0, inputs: float | None = None
    ) -> Operator:
        dtype = self.serving.precision.output
        reads = vector_ops()[kernel].reads if inputs is None else inputs
        return vector_operator(
            name,
            kernel,
            rows,
            columns,
            dtype,
            inputs=inputs,
            second=second,
            phase=self.phase,
            input_distance=(reads + 1.0) * rows * columns * element_bytes(dtype),
            out_distance=self.layer_bytes,
        )

    def _norm(self, name: str) -> Operator:
        """The norm of the residual stream, fused with the addition to it: two arrays in, two out."""
        net = self.network
        return vector_operator(
            name,
            net.norm,
            self.rows,
            net.hidden,
            self.serving.precision.output,
            inputs=2.0,
            outputs=2.0,
            input_distance=self.layer_bytes / 2.0,
            out_distance=self.layer_bytes,
            phase=self.phase,
        )

    def _reduce(self, name: str) -> Iterator[Operator]:
        if self.serving.gpus > 1:
            yield all_reduce_operator(name, self._bytes(self.network.hidden), self.serving.gpus, self.phase)
